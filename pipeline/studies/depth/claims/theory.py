"""Claims 7 and 8: what is possible is built, what is not is certified. Theory rows carry the claim and the part."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit.evidence import Part, part_gates
from pipeline.kit.verdicts import Gate

_PAPER = "Chen and Zou 2024"
# What each construction does; on every input of a small size and at least 1,000 random ones.
CONSTRUCTIONS = {
    "T1": Part("the construction by which one layer memorizes is right on all inputs", f"{_PAPER}, Theorem 1"),
    "T3": Part("the construction by which two layers reason is right on all inputs", f"{_PAPER}, Theorem 3"),
    "T5": Part("the construction by which two layers generalize is right on all inputs", f"{_PAPER}, Theorem 5"),
    "T6": Part(
        "the construction by which three layers generalize in context is right on all inputs", f"{_PAPER}, Theorem 6"
    ),
    "T9": Part("the construction by which six layers follow three hops is right on all inputs", f"{_PAPER}, section 7"),
}
_DEPENDENT = "outputs of random models of one layer are dependent"
_NONE = "no linear program finds a classifier of outputs of random models of one layer"
_PROPOSITIONS = f"{_PAPER}, Propositions 9, 10"
IMPOSSIBLE = {
    "T2, residual": Part(f"{_DEPENDENT}, reasoning", f"{_PAPER}, Theorem 2"),
    "T2, classifiers": Part(f"{_NONE}, reasoning", f"{_PAPER}, Theorem 2"),
    "T4, residual": Part(f"{_DEPENDENT}, generalization", f"{_PAPER}, Theorem 4"),
    "T4, classifiers": Part(f"{_NONE}, generalization", f"{_PAPER}, Theorem 4"),
    "T8, residual": Part(f"{_DEPENDENT}, both tasks with one softmax head", _PROPOSITIONS),
    "T8, classifiers": Part(f"{_NONE}, both tasks with one softmax head", _PROPOSITIONS),
}
PARTS = {"7": CONSTRUCTIONS, "8": IMPOSSIBLE}


def gates(checks: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claims 7 and 8: constructions are right on all inputs, and outputs of one layer are
    dependent, so that no classifier tells the labels apart."""
    for claim, parts in PARTS.items():
        yield from part_gates(checks, claim, parts)
