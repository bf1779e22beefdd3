"""The page of the study names no direction, order or number that is not computed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "pipeline/studies/nce/report.md.j2"

# What a page may not type. "optimum" and the like are no directions; "one" and "two" count things, and are words.
NUMBER = re.compile(r"\d|½")
DIRECTION = re.compile(
    r"\b(more|less|fewer|most|lower|lowest|higher|highest|faster|slower|closer|closest|farther|smaller|smallest|larger"
    r"|largest|greater|before|behind|ahead|above|below|exceeds?|falls?|grows?|rises?|increas\w+|decreas\w+|better|worse"
    r"|best|worst|throughout|always|never|handful|exponential(?:ly)?|polynomial(?:ly)?|outperform\w*|comparable)\b",
    re.IGNORECASE,
)
# Places in the thesis, and years
REFERENCE = re.compile(
    r"\b(?:sections?|Lemmas?|Theorems?|Propositions?|Corollary|Figures?|Claims?|Definitions?|Eq\.)\s+"
    r"(?:\d+(?:\.\d+)*(?:, | and | to )?)+|\(2024\)",
    re.IGNORECASE,
)
# What the thesis states or prints, quoted as its own
PUBLISHED = (
    "The text of Figure 4.2 shows the step size with the lowest loss on fresh samples.",
    "The text selects the run with the lowest loss on fresh samples, which may mean the loss of its last iterate or "
    "the lowest that it met on the way; the figure plots a distance.",
    "it is exponentially flat, so that gradient descent and Newton's method with their usual step sizes need "
    "exponentially many steps. Dividing the gradient by its norm removes the exponential; an exponential loss in place "
    "of the logistic one (eNCE) makes what is left provably polynomial.",
    "where Lemma 47 prints −1",
    "Proposition 7 prints a loss at the optimum between ½ and 2 times exp(−*R*²/8).",
    "flat enough that crossing it takes exponentially many",
)
# Definitions of the setting and of what is measured; names of rules, quantities and laws
DEFINED = (
    "Data *P\\** are N(*R*, 1), noise *Q* is N(0, 1).",
    "an exponential family with its log partition function as one more parameter",
    "ψ(*x*) = (τ − τ_q) · [*x*, −1]",
    "NCE minimises ½ E_P\\* log(1 + exp(−ψ)) + ½ E_Q log(1 + exp(ψ)), eNCE ½ E_P\\* exp(−ψ/2) + ½ E_Q exp(ψ/2).",
    "*R*^s · exp(−*R*²/8)", "16 dimensions", "proof of the lower bound", "8 × 8 digits", "1 − sigmoid(ψ)",
    "With step size 1,",
    "Up to *R* = 7,", "up to *R* = 10 they", "how they grow", "Two laws of growth", "not a 95 % interval",
    "the ratio of their smallest distances is", "their smallest distances differ by",
    "With the lowest loss met on the way they differ by",
    "The step size with the smallest distance needs the answer to be",
    "The smallest curvature at the optimum is of order", "so the figure plots the smallest distance so far",
    "That one method trains faster is not to say that it ends lower.",
)  # fmt: skip


def typed(text: str) -> str:
    """Return the words of a template that are typed: without calls, statements, comments and headings' marks."""
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", " ", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"\]\([^)]*\)", "]", text))


def found(text: str) -> list[str]:
    words = typed(text)
    for allowed in (*PUBLISHED, *DEFINED):
        words = words.replace(allowed, " ")
    words = REFERENCE.sub(" ", words)
    return [
        words[max(match.start() - 40, 0) : match.end() + 20]
        for pattern in (NUMBER, DIRECTION)
        for match in pattern.finditer(words)
    ]


def macros_removed(text: str) -> str:
    return re.sub(r"\{% macro.*?\{% endmacro %\}", " ", text, flags=re.DOTALL)


def test_no_sentence_types_a_direction_an_order_or_a_number() -> None:
    assert found(macros_removed(PAGE.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "In every seed normalised gradients come closer.",
        "The area is −0.23 on NCE.",
        "eNCE is behind NCE.",
        "The steps grow exponentially.",
        "Lemma 47 is of order −5.",
    ],
)
def test_a_typed_finding_is_found(sentence: str) -> None:
    assert found(sentence)


def test_what_is_computed_or_quoted_is_let_through() -> None:
    assert not found('The area is {{ number("15", "area 1") }} (Theorem 19, Lemmas 53 and 54).')


def test_what_may_be_typed_is_on_the_page() -> None:
    words = typed(macros_removed(PAGE.read_text(encoding="utf-8")))
    assert [phrase for phrase in (*PUBLISHED, *DEFINED) if phrase not in words] == []


def test_the_page_begins_with_what_was_found() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings[0] == "What this reproduction found"
