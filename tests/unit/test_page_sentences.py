"""What the pages of the studies say in words: a number or comparison is computed, or its sentence listed as reviewed.

The list of a study, ``tests/<study>/page_sentences.txt``, holds what the sources say, how something is defined, or
what was chosen. What this reproduction found stands on a page by functions alone (``says``, ``number``, ``value``,
``verdict``, tables and figures), so that a sentence about a result cannot outlive the result.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
STUDIES = list(YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))["studies"])
FOUND, DIFFERS = "What this reproduction found", "Where this reproduction differs from the text"
FINDINGS = (3, 5)  # of a page: at least, at most
GROWN = 6  # figures; a page with fewer is one of a study that is begun
COMPUTED = re.compile(r"\{\{ *(?:says|stands|number|at|value|percent)\(")

# Names that have a number: figures, sections, equations, models, probes, claims, years; what is code, and addresses.
NAMES = re.compile(
    r"(Figures?|Table|[Ss]ections?|[Ee]qs?\.|Theorems?|Corollary|Lemmas?|Propositions?|Definitions?|Examples?|Algorithm"
    r"|appendix|[Cc]hapter|footnote|[Cc]laims?|embedding|panels?|layer|et al\.|Li|Zou|Liu|Risteski)"
    r" *\(?[A-Z]?\.?[0-9][0-9.]*\)?(( to| and|,) \(?[0-9.]+\)?)*|\b[A-Z]+[0-9]+\b|`[^`]*`|\$[^$]*\$|\]\([^)]*\)"
)
NUMBER = re.compile(
    r"[\d½]|\b(twice|half|halve[sd]?|double|times|one of|two|three|four|five|six|seven|eight|nine|ten|sixteen|quarter"
    r"|handful)\b",
    re.IGNORECASE,
)
COMPARISON = re.compile(
    r"\b(more|less|fewer|larger|largest|smaller|smallest|higher|highest|lower|lowest|greater|better|best|worse|worst"
    r"|nearer|further|farther|closer|closest|longer|shorter|faster|slower|above|below|before|behind|ahead|most|least"
    r"|mostly|hardly|nearly|exceeds?|falls?|rises?|grows?|shrinks?|increas\w+|decreas\w+|improves?|vanish(es)?"
    r"|perfect(ly)?|never|always|throughout|exponential(ly)?|polynomial(ly)?|outperform\w*|comparable|brittle"
    r"|as published|agrees?|differs?)\b",
    re.IGNORECASE,
)


def page(study: str) -> str:
    return (ROOT / "pipeline/studies" / study / "report.md.j2").read_text(encoding="utf-8")


def sentences(text: str) -> list[str]:
    """The sentences of a page, each call of a function as ``{}``."""
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}", "", text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", "{}", text, flags=re.DOTALL)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\n|\n(?=[|#-])", text)]
    return [each for part in paragraphs for each in re.split(r"(?<=[.:?!])\** (?=[A-Z*`{])", part) if each]


def typed(text: str) -> set[str]:
    """The sentences that name a number or a comparison in words of their own."""
    own = [sentence for sentence in sentences(text) if sentence not in (f"## {FOUND}", f"## {DIFFERS}")]
    plain = {sentence: NAMES.sub("", sentence) for sentence in own}
    return {each for each, words in plain.items() if NUMBER.search(words) or COMPARISON.search(words)}


@pytest.mark.parametrize("study", STUDIES)
def test_a_number_or_comparison_on_a_page_is_computed_or_reviewed(study: str) -> None:
    file = ROOT / "tests" / study / "page_sentences.txt"
    reviewed = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    assert len(reviewed) == len(set(reviewed))
    statements = typed(page(study))
    assert statements - set(reviewed) == set(), f"compute it, or list it in {file} if no result could change it"
    assert set(reviewed) - statements == set(), "these are on the page no more"


@pytest.mark.parametrize(
    "sentence",
    [
        "In every seed normalised gradients come closer.",
        "The area is −0.23 on NCE.",
        "eNCE is behind NCE.",
        "The steps grow exponentially.",
        "Lemma 47 is of order −5.",
        "Two layers are enough.",
        "- Shortcuts are brittle.",
    ],
)
def test_a_typed_finding_is_found(sentence: str) -> None:
    assert typed(f'## Heading\n\n{{{{ figure("one") }}}}\n\n{sentence}') == {sentence}


def test_what_is_computed_or_named_is_let_through() -> None:
    assert not typed(
        'The area is {{ number("15", "area 1") }} (Theorem 19, Lemmas 53 and 54); it\n'
        '{{ says("15", "area 1", "is larger", "is not larger") }} for C2 and `n = 3`.'
    )


@pytest.mark.parametrize("study", STUDIES)
def test_a_page_tells_its_findings_between_the_world_and_what_differs(study: str) -> None:
    parts = re.split(r"^## (.*)\n", page(study), flags=re.MULTILINE)
    headings, texts = parts[1::2], dict(zip(parts[1::2], parts[2::2], strict=True))
    question, world, *rest = headings
    assert question == "The question" and world.startswith("The world: ") and rest == [FOUND, DIFFERS, "Evidence"]
    words = re.findall(r"^- \*\*[^*]+\*\*: ", texts[world], re.MULTILINE)
    is_grown = page(study).count("{{ figure(") >= GROWN
    if is_grown:  # what the source is, one drawn example, and the words
        assert "](https://arxiv.org/abs/" in texts[question] and re.search(r"\{\{ (embed|figure)\(", texts[question])
    assert len(words) >= (5 if is_grown else 1)
    assert "\n|---|" in texts[DIFFERS]
    short, *findings = re.split(r"^### .*\n", texts[FOUND], flags=re.MULTILINE)
    assert COMPUTED.search(short)
    findings = [each for each in findings if "judged(" in each]
    assert (FINDINGS[0] if is_grown else 1) <= len(findings) <= FINDINGS[1]
    for each in findings:
        assert each.count("{{ judged(") == each.count("{{ figure(") == 1, each
        assert each.index("judged(") < each.index("figure("), each
