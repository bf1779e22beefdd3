"""What the page of the study says in words: a number or comparison is computed, or its sentence listed as reviewed.

The list, ``page_sentences.txt``, holds what the sources say, how something is defined, or what was chosen. What this
reproduction found stands on the page by functions alone (``value``, ``interval``, ``verdict``, tables and figures), so
that a sentence about a result cannot outlive the result.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "pipeline/studies/dyck/report.md.j2"
REVIEWED = Path(__file__).with_name("page_sentences.txt")
# Names that have a number: figures, sections, equations, models, probes, claims.
NAMES = re.compile(
    r"(Figures?|Table|sections?|eqs?\.|Theorem|Corollary|Lemma|Proposition|appendix|footnote|[Cc]laims?|embedding|panels?"
    r"|layer|et al\.|Li|Zou|Liu)"
    r" *\(?[A-Z]?\.?[0-9][0-9.]*\)?(( to| and|,) \(?[0-9.]+\)?)*|\b[A-Z]+[0-9]+\b|`[^`]*`|\]\(#[^)]*\)"
)
NUMBER = re.compile(
    r"\d|\b(twice|half|halve[sd]?|double|times|one of|two|three|four|five|six|ten|eight|sixteen|quarter)\b"
)
COMPARISON = re.compile(
    r"\b(more|less|fewer|larger|smaller|higher|lower|better|worse|nearer|further|closer|longer|shorter|faster|slower|above"
    r"|below|most|least|mostly|hardly|nearly|falls?|rises?|grows?|shrinks?|increases?|decreases?|improves?|vanish(es)?"
    r"|perfect(ly)?|never|always|as published|agrees?|differs?)\b"
)


def sentences() -> list[str]:
    """The sentences of the page, each call of a function as ``{}``."""
    text = re.sub(r"\{\{.*?\}\}", "{}", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\n|\n(?=[|#])", text)]
    return [each for part in paragraphs for each in re.split(r"(?<=[.:?!])\** (?=[A-Z*`{])", part) if each]


def test_a_number_or_comparison_on_the_page_is_computed_or_reviewed() -> None:
    reviewed = set(REVIEWED.read_text(encoding="utf-8").splitlines())
    plain = {sentence: NAMES.sub("", sentence) for sentence in sentences()}
    typed = {each for each, text in plain.items() if NUMBER.search(text) or COMPARISON.search(text)}
    assert typed - reviewed == set(), (
        "compute it, or list it in page_sentences.txt if no result could change it"
    )
    assert reviewed - typed == set(), "these are on the page no more"


def test_the_page_begins_with_what_was_found() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith("## What this reproduction found\n")
    found = text.split("\n## ")[0]
    assert {'verdict("23")', 'verdict("24")', 'verdict("25")', 'figure("stack_cells")'} <= set(
        re.findall(r"(?:verdict|figure)\(\"[a-z0-9_]+\"\)", found)
    )
