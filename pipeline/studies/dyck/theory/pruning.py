"""DYCK-TH6: a random Transformer of 4L layers, pruned to a target of L layers (Wen et al. 2023, Theorem 2).

The theorem says that widths logarithmic in 1/epsilon suffice. Executed: widths grow linearly with the number n
of candidates per weight, so log10 of the error has to fall along a line in n; a perfect choice among the 2^n
subsets would give the slope -log10(2) = -0.301.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import stats

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.studies.dyck.exact import pruning
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import PruningCheck

# The target and the inputs of the checks; LN_C of target and parent.
M, M_A, W = 4, 2, 8
M_LARGE = 24  # one parent in 270 of width 16 has no weight of 1/2 for its values (Lemma 9)
LENGTH, INPUTS = 6, 100
FLOOR = 0.1

SLOPE, SLOPE_TOLERANCE = -0.30, 0.06
CONFIDENCE = 0.95
JUDGED = 16  # candidates
LARGEST_AT_16 = 2e-3  # error with 16 candidates; it halves with each further one

SOURCE = "Wen et al. 2023, Theorem 2"
ERRATUM = "dyck-lemma-4"


def check(entry: PruningCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`: for every number of ``entry.layers`` and ``entry.candidates``,
    ``entry.seeds`` parents, each pruned to a target of its own."""
    checks: list[dict[str, Any]] = []
    norms: list[float] = []
    for layers in entry.layers:
        points: list[tuple[int, float]] = []
        wrong = 0
        for n in entry.candidates:
            shape = pruning.Shape(M, M_A, W, layers, n, M_LARGE)
            for replica in range(entry.seeds):
                names = ("dyck", theory_id, layers, n, replica)
                parent = pruning.Parent(shape, seed, names)
                target = pruning.random_target(shape, stream(seed, *names, "target"))
                pruned = pruning.prune(parent, target)
                x = pruning.random_inputs(M, INPUTS, LENGTH, stream(seed, *names, "inputs"))
                errors = pruning.approximation_errors(target, pruned, x, FLOOR)
                checks += _errors(shape, replica, pruned, errors)
                points.append((n, float(errors.max())))
                wrong += pruning.illegal(parent, pruned)
                norms.append(_preparation_norm(parent, target))
        checks += [_legal(layers, wrong, entry), *_slope(layers, points)]
    return theory.rows("dyck", theory_id, SOURCE, [*checks, *_lemma_4(norms)])


def error_check(layers: int, n: int, replica: int, what: str = "error") -> str:
    """Return the name of the row that holds an error of one pruned parent."""
    return f"pruning-{what}-l{layers}-n{n}-seed{replica}"


def _errors(
    shape: pruning.Shape, replica: int, pruned: pruning.Pruned, errors: np.ndarray[Any, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one pruned parent: its largest and its median error, and the largest error of a weight."""
    bar = f"at most {LARGEST_AT_16:g} with 16 candidates and half as much with each further one"
    judged = shape.layers == 1 and shape.n == JUDGED
    metadata = {
        "size": f"L={shape.layers}, n={shape.n}, width {shape.w_large}, {INPUTS} inputs of {LENGTH} columns",
        "comparison": "<=",
        "bound": LARGEST_AT_16 * 2.0 ** (16 - shape.n),
        "detail": f"{pruned.kept} of {shape.weights} weights kept",
    }
    for what, statement, measured in (
        (
            "error",
            "The pruned parent computes the target: largest |f~(X) - f(X)| / |X| over random inputs",
            errors.max(),
        ),
        ("median", "The same error, its median over random inputs", np.median(errors)),
        ("weight", "Largest error of a weight of the target, as the pruned parent multiplies it", pruned.worst),
    ):
        drawn = {"group": f"L = {shape.layers}", "x": float(shape.n)} if what == "error" else {}
        part = {"claim": "18", "part": f"error, L=1, n={JUDGED}"} if what == "error" and judged else {}
        yield (
            metadata
            | drawn
            | part
            | {
                "check": error_check(shape.layers, shape.n, replica, what),
                "statement": f"{statement}, {bar}",
                "measured": float(measured),
            }
        )


def _legal(layers: int, wrong: int, entry: PruningCheck) -> dict[str, Any]:
    return {
        "check": f"pruning-legal-l{layers}",
        "claim": "18",
        "part": f"masks, L={layers}",
        "statement": "Every weight is the parent's, bit for bit, or zero: number of weights that are not",
        "source": "Wen et al. 2023, Definition 4",
        "size": f"L={layers}, n={entry.candidates}, {entry.seeds} parents of each",
        "measured": float(wrong),
        "comparison": "<=",
        "bound": 0.0,
        "detail": f"for every input the best of {pruning.POOLS} random pools of candidates: a search for the mask",
    }


def _slope(layers: int, points: list[tuple[int, float]]) -> list[dict[str, Any]]:
    value, lo, hi = slope([n for n, _ in points], [error for _, error in points])
    candidates = sorted({n for n, _ in points})
    size = f"L={layers}, n={candidates}, {len(points)} parents"
    what = f"of the least-squares line of log10 of the largest error over n, L={layers}"
    return [
        {
            "check": f"pruning-slope-l{layers}",
            "claim": "18",
            "part": f"slope, L={layers}",
            "group": f"slope, L = {layers}",
            "statement": "Widths logarithmic in 1/epsilon suffice: each candidate more divides the error by 2. "
            f"Slope {what}",
            "size": size,
            "measured": value,
            "comparison": "within",
            "bound": SLOPE,
            "tolerance": SLOPE_TOLERANCE,
            "detail": f"{CONFIDENCE:.0%} interval [{lo:.3f}, {hi:.3f}]; -log10(2) = {-np.log10(2):.3f}",
        },
        {
            "check": f"pruning-slope-low-l{layers}",
            "group": f"lower end of the slope, L = {layers}",
            "statement": f"Lower end of the {CONFIDENCE:.0%} interval of the slope {what}",
            "size": size,
            "measured": lo,
            "comparison": ">=",
            "bound": SLOPE - SLOPE_TOLERANCE,
        },
        {
            "check": f"pruning-slope-high-l{layers}",
            "group": f"upper end of the slope, L = {layers}",
            "statement": f"Upper end of the {CONFIDENCE:.0%} interval of the slope {what}",
            "size": size,
            "measured": hi,
            "comparison": "<=",
            "bound": SLOPE + SLOPE_TOLERANCE,
        },
    ]


def slope(candidates: list[int], errors: list[float]) -> tuple[float, float, float]:
    """Return the slope of log10(error) on the number of candidates by least squares, with its t interval."""
    fit = stats.linregress(candidates, np.log10(errors))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(errors) - 2) * fit.stderr)
    return float(fit.slope), float(fit.slope) - half, float(fit.slope) + half


def _preparation_norm(parent: pruning.Parent, target: list[dict[str, Any]]) -> float:
    """Return the spectral norm of the linear map that the first parent layer has to realise."""
    matrix, _ = pruning.preparation(parent.layer(1)["W_V"], target[0]["W_V"])
    return float(np.linalg.norm(matrix, 2))


def _lemma_4(norms: list[float]) -> list[dict[str, Any]]:
    """Return rows on Lemma 4, which Lemma 14 applies to [I; W^-1 P W_V], a map with a norm above 1."""
    metadata = {"source": "Wen et al. 2023, Lemmas 4 and 14", "size": f"{len(norms)} parents and targets"}
    metadata |= {"erratum": ERRATUM}
    return [
        metadata
        | {
            "check": "lemma-4-printed",
            "statement": "Lemma 4 asks for |W| <= 1, but Lemma 14 applies it to [I; W^-1 P W_V]: "
            "smallest spectral norm of this map",
            "measured": smallest(norms),
            "comparison": ">=",
            "bound": 1.01,
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-4-corrected",
            "statement": "With W = diag(w_i), |w_i| >= 1/2, and |W_V| <= 1 the map has a norm of at most "
            "sqrt(1 + 2^2): largest spectral norm",
            "measured": largest(norms),
            "comparison": "<=",
            "bound": 5**0.5,
            "form": "corrected",
        },
    ]
