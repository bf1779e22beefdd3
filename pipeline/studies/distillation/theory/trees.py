"""Hierarchical parity: its classes, and which way each one goes at each node (Liu 2024, section 4.2.7.3)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.languages import parity
from pipeline.studies.distillation.constructions import ERRATUM, SOURCE, row
from schemas.theory import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.studies.distillation.params import Theory

SECTION = SOURCE.format(".7.3")
SIGNS = 2  # of a parity: enough, since only its product matters


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return one row for each depth and check, on all strings of two signs for each parity."""
    found = [row for depth in entry.depths for row in _checks(depth)]
    return rows(entry.study, key, SECTION, found)


def _checks(depth: int) -> Iterator[dict[str, Any]]:
    d = parity.need(SIGNS, depth)
    bits = np.array(list(itertools.product([0, 1], repeat=d)), np.uint8)
    labels = parity.labels(bits, SIGNS, depth)
    counts = np.bincount(labels, minlength=2**depth)
    size = f"depth {depth}, {len(bits)} strings"
    statement = "All classes are equally frequent: largest count minus smallest"
    yield row(f"classes-{depth}", statement, size, float(np.ptp(counts)), "<=", 0)
    if depth == 1:
        return
    right = 1 - parity.node_products(bits, SIGNS, depth)
    wrong = {"corrected": 0, "printed": 0}
    for leaf in range(2**depth):
        own = right[labels == leaf]
        for level, node in enumerate(parity.leaf_nodes(leaf, depth), 1):
            taken, place = own[:, node - 1], 2 ** (depth - level)
            wrong["corrected"] += int((taken != (leaf // place) % 2).sum())
            wrong["printed"] += int((taken != (leaf >= place)).sum())
    erratum = ERRATUM.format("branches")
    yield row(
        f"digits-{depth}", "The j-th binary digit of a leaf says where its strings go at the j-th node: wrong turns",
        size, wrong["corrected"], "<=", 0, erratum=erratum, form="corrected",
    )  # fmt: skip
    yield row(
        f"printed-{depth}", "As printed, they go right exactly if the leaf's number is at least 2^(D - j): wrong turns",
        size, wrong["printed"], "beyond", 0, tolerance=0.5, erratum=erratum, form="printed",
    )  # fmt: skip
