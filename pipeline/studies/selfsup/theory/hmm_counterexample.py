"""The published pair of HMMs that no predictor of one token tells apart (Liu 2024, Eq. 2.47; chapter 5.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.languages import hmm
from pipeline.studies.selfsup.constructions import row
from pipeline.studies.selfsup.names import SOURCE
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.selfsup.params import Theory

EQUATION = SOURCE.format("Eq. 2.47")
THEOREM_6 = SOURCE.format("Theorem 6")
SIZE = "d = 4, k = 3"
ROUNDED = 1e-7  # eight printed digits


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return rows on the published matrices: sums, determinants, the rotation between them, their predictors."""
    models = [hmm.published(which) for which in (0, 1)]
    found = [*_sums(models), *_determinants(models), *_turn(models), *_statement(models)]
    return rows(entry.study, key, EQUATION, found)


def _sums(models: list[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    wrong = [
        np.concatenate(
            [emission.sum(0) - 1, emission.sum(1) - 0.75, transition.sum(0) - 1, transition.sum(1) - 1]
        )
        for emission, transition in models
    ]
    yield row(
        "sums", "Columns of O and T and rows of T sum to 1, rows of O to k/d: largest difference", SIZE,
        np.abs(wrong).max(), "<=", ROUNDED, claim="1", part="the published matrices",
    )  # fmt: skip
    yield row(
        "symmetric", "T is symmetric: largest difference from its transpose", SIZE,
        max(np.abs(transition - transition.T).max() for _, transition in models), "<=", ROUNDED,
        claim="1", part="the published matrices",
    )  # fmt: skip


def _determinants(models: list[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    part = {"claim": "2", "part": "determinants"}
    for name, (emission, transition) in zip(("", "-twin"), models, strict=True):
        volume = np.sqrt(np.linalg.det(emission.T @ emission))
        yield part | row(
            f"volume-O{name}".lower(), "The square root of det(O'O) is 0.0110", SIZE, volume, "within", 0.0110,
            tolerance=5e-5, erratum="selfsup-eq-2-47-determinant", form="corrected",
        )  # fmt: skip
        yield part | row(
            f"det-T{name}".lower(), "The determinant of T is -0.1611", SIZE, np.linalg.det(transition), "within",
            -0.1611, tolerance=5e-5,
        )  # fmt: skip
    yield row(
        "det-o-printed", "O is printed with a determinant, and is not square: rows less columns", SIZE,
        models[0][0].shape[0] - models[0][0].shape[1], "beyond", 0, tolerance=0.5,
        erratum="selfsup-eq-2-47-determinant", form="printed",
    )  # fmt: skip


def _turn(models: list[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    (emission, transition), (other, other_transition) = models
    turn = np.linalg.pinv(other) @ emission  # R of Eq. 2.43
    part = {"claim": "1", "part": "the rotation"}
    yield part | row(
        "rotation-orthogonal", "R = pinv(O~) O is orthogonal: largest entry of R'R - I", SIZE,
        np.abs(turn.T @ turn - np.eye(3)).max(), "<=", 1e-6,
    )  # fmt: skip
    yield part | row(
        "rotation-sums", "Rows and columns of R sum to 1 (Claim 2): largest difference", SIZE,
        np.abs([turn.sum(0) - 1, turn.sum(1) - 1]).max(), "<=", 1e-6, source=SOURCE.format("Claim 2"),
    )  # fmt: skip
    yield part | row(
        "rotation-angle", "R turns by 0.1 radian: its angle", SIZE,
        np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)), "within", 0.1, tolerance=1e-5,
    )  # fmt: skip
    words = "With R = pinv(O~) O of Eq. 2.43 the twin is O {}: largest difference from O~"
    note: dict[str, Any] = {
        "erratum": "selfsup-rotation-direction",
        "source": SOURCE.format("section 2.2.3.2"),
    }
    yield note | row(
        "direction-printed", words.format("R") + " (printed; it fails)", SIZE, np.abs(emission @ turn - other).max(),
        ">=", 1e-3, form="printed",
    )  # fmt: skip
    yield note | row(
        "direction-corrected", words.format("R'"), SIZE, np.abs(emission @ turn.T - other).max(), "<=", ROUNDED,
        form="corrected",
    )  # fmt: skip
    yield note | row(
        "direction-corrected-t", "And T~ is R T R', as in Eq. 2.43: largest difference", SIZE,
        np.abs(turn @ transition @ turn.T - other_transition).max(), "<=", ROUNDED, form="corrected",
    )  # fmt: skip


def _statement(models: list[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Yield rows on what Theorem 6 asks for: its words let a relabelled model pass."""
    (emission, transition), (other, other_transition) = models
    order = [1, 2, 0]
    same, moved = emission[:, order], transition[np.ix_(order, order)]
    note: dict[str, Any] = {"erratum": "selfsup-theorem-6", "source": THEOREM_6}
    apart = max(
        np.abs(hmm.predictor(emission, transition, task) - hmm.predictor(same, moved, task)).max()
        for task in hmm.PAIR_TASKS
    )
    yield note | row(
        "relabelled-passes",
        "A relabelled copy has O~ other than O (asked for as printed) and the same pairwise predictors: their largest "
        "difference",
        SIZE, apart, "<=", 1e-14, form="printed",
        detail=f"largest entry of O - O~: {np.abs(emission - same).max():.2g}",
    )  # fmt: skip
    yield note | row(
        "relabelled-distance", "Up to relabelling, the published pair differs: Frobenius distance of O", SIZE,
        float(hmm.distance(emission, transition, other, other_transition)[0]), ">=", 0.02, form="corrected",
    )  # fmt: skip
