"""The words of the page: what is measured is computed, so that no number of ours is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "pipeline" / "studies" / "depth" / "report.md.j2"
REFERENCES = (
    r"\(2024\)", r"\[0, 1\)", r"1/\*k\*", r"\b[Ss]ections? \d+(\.\d+)?",
    r"\b(Theorem|Lemma|Figure|Table)s? \d+( and \d+)?",
    r"\beqs?\.? \(\d+\)( to \(\d+\))?",
)  # fmt: skip
# Quoted from the paper, of our definitions, or arithmetic of the task.
ALLOWED = (
    "The paper has 100, 210 and 5.", "and 3/4 is the most", "1/{{", "Lists such as [1, 2]",
    "In layer 1 it is", "in layer 2\n",
    "claims 4 and 5 take a GPU", "templates of length 4,", "powers of 3 weigh positions", "powers of 3 times",
    "V = −2*l*(*l* + 2) I", "γ ≥ 1", "uniform in [0, {{", "for contextual generalization in [0, {{",
    "for nested lookups in [0, {{", "2*l* heads",
)  # fmt: skip


def test_the_page_types_no_number_of_ours() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for quoted in ALLOWED:
        assert quoted in text, f"no longer on the page, so no longer allowed: {quoted}"
        text = text.replace(quoted, "{{" if quoted.endswith("{{") else "")
    text = re.sub(r"\{\{.*?\}\}|`[^`]*`", "", text, flags=re.DOTALL)
    for reference in REFERENCES:
        text = re.sub(reference, "", text)
    assert [line for line in text.splitlines() if re.search(r"\d", line)] == []


@pytest.mark.parametrize("words", ["What this reproduction found", 'where={"leads": true}'])
def test_the_page_begins_with_what_was_found(words: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.index(words) < text.index("## The question")


def test_sentences_of_findings_follow_the_tables() -> None:
    """The direction of a sentence is that of its numbers."""
    import depth_tables

    from pipeline.studies.depth.measures import findings
    from pipeline.studies.depth.names import LIKENESS

    contrasts = depth_tables.every()["contrasts"]
    for sign, word in ((1, "rises in layer 2"), (-1, "falls in layer 2")):
        changed = contrasts.filter(contrast=LIKENESS[2])
        rows = contrasts.filter(contrast=LIKENESS[1]).vstack(
            changed.with_columns(value=sign * changed["value"])
        )
        ((_, sentence),) = findings._likeness(rows)
        assert word in sentence and "rises in layer 1" in sentence
