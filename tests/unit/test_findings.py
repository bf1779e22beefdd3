"""What a study found is said in the words that the verdict chooses, with numbers as sentences have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workspace import REPOSITORY, STUDIES

from pipeline.errors import SandglassError
from pipeline.report import findings, wording
from schemas.claims import FAILS, HOLDS, NOT_RUN, UNDECIDED

TEXT = """## Head
{% block finding %}
**In short.** {{ says("1", "a", "It holds", "It fails", "It is open") }}: {{ percent("1", "a") }} of
{{ models("1", "a") }}, {{ number("1", "a") }}.
{% endblock %}
{{ figure("none") }}
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "pipeline/studies/s"
    folder.mkdir(parents=True)
    (folder / "report.md.j2").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return "s"


def gate(verdict: str = HOLDS, value: float | None = 0.29512, **more: Any) -> dict[str, Any]:
    own = {"claim": "1", "gate": "a", "verdict": verdict, "value": value, "lo": 0.2, "hi": 0.39999, "n": 6}
    return own | {"scale": "quick", "references": []} | more


def in_set(verdict: str, **more: Any) -> list[tuple[None, dict[str, Any]]]:
    """What a reference set at scale long says of the gate."""
    return [(None, gate(verdict, 0.9, lo=0.85, hi=0.95, n=12, scale="long", same=True) | more)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (gate(), "It holds: 29.5\xa0% of six, 0.295 (0.2 to 0.4)."),
        (gate(FAILS), "It fails: 29.5\xa0% of six, 0.295 (0.2 to 0.4)."),
        (gate(UNDECIDED, n=40), "It is open: 29.5\xa0% of 40, 0.295 (0.2 to 0.4)."),
        # What a set at a larger scale found is told with that scale; a set that asked something else is not.
        (gate(references=in_set(FAILS)), "It fails: 90\xa0% of twelve, 0.9 (0.85 to 0.95; longer run)."),
        (gate(UNDECIDED, references=in_set(HOLDS, lo=None, hi=None)), "It holds: 90\xa0% of twelve, 0.9 (longer run)."),
        (gate(FAILS, references=in_set(NOT_RUN)), "It fails: 29.5\xa0% of six, 0.295 (0.2 to 0.4)."),
        (gate(FAILS, references=in_set(HOLDS, same=False)), "It fails: 29.5\xa0% of six, 0.295 (0.2 to 0.4)."),
        (
            gate(NOT_RUN, None, lo=None, hi=None, n=None),
            f"It is open: {findings.NOT_MEASURED} of {findings.NOT_MEASURED}, {findings.NOT_MEASURED}.",
        ),
    ],
)
def test_the_verdict_chooses_the_words(study: str, row: dict[str, Any], words: str) -> None:
    assert findings.plain(study, [row]) == words
    assert findings.plain(study, [row], findings.SURPRISING) == ""


def test_a_gate_that_is_not_there_is_named(study: str) -> None:
    with pytest.raises(SandglassError, match=r"report.md.j2, block finding: no gate 'a' of claim 1"):
        findings.plain(study, [gate(claim="2")])


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_says_what_it_found(name: str) -> None:
    text = (REPOSITORY / "pipeline/studies" / name / findings.WORDS).read_text(encoding="utf-8")
    for block in findings.BLOCKS:
        assert f"{{% block {block} %}}" in text


@pytest.mark.parametrize(
    ("share", "words"),
    [(1.0, "100"), (0.0, "0"), (0.99996, "99.996"), (0.00012, "0.012"), (0.5, "50"), (0.12345, "12.3")],
)
def test_percents_round_to_three_digits_and_100_is_said_of_all_alone(share: float, words: str) -> None:
    assert wording.percent(share) == f"{words}\xa0%"
