"""Pairs of HMMs that predictors of one token do not tell apart: the published one, exact twins, cycles with one power.

Liu 2024, Theorems 4 and 6, Claims 1 to 3; chapter 5.6 to 5.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import row
from pipeline.languages import hmm
from pipeline.studies.selfsup.names import SOURCE
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.selfsup.params import HmmPairs

EQUATION = SOURCE.format("Eq. 2.47")
THEOREM_6 = SOURCE.format("Theorem 6")
SIZE = "d = 4, k = 3"
ROUNDED = 1e-7  # eight printed digits


def check(entry: HmmPairs, key: str, seed: int) -> pl.DataFrame:
    """Return rows on the published matrices, on rotations about the all-ones axis, and on powers of cycles."""
    models = [hmm.published(which) for which in (0, 1)]
    found = [
        *_sums(models),
        *_determinants(models),
        *_turn(models),
        *_statement(models),
        *_rotations(entry, stream(seed, entry.study, key)),
        *_two_states(entry),
        *_powers(entry),
        *_printed_powers(entry),
    ]
    return rows(entry.study, key, EQUATION, found)


# --- the published pair (5.6) -------------------------------------------------------------------------


def _sums(models: list[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    wrong = [
        np.concatenate([emission.sum(0) - 1, emission.sum(1) - 0.75, transition.sum(0) - 1, transition.sum(1) - 1])
        for emission, transition in models
    ]
    yield row(
        "sums",
        "Columns of O and T and rows of T sum to 1, rows of O to k/d: largest difference",
        SIZE,
        np.abs(wrong).max(),
        "<=",
        ROUNDED,
        claim="1",
        part="the published matrices",
    )
    yield row(
        "symmetric",
        "T is symmetric: largest difference from its transpose",
        SIZE,
        max(np.abs(transition - transition.T).max() for _, transition in models),
        "<=",
        ROUNDED,
        claim="1",
        part="the published matrices",
    )


def _determinants(models: list[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    part = {"claim": "2", "part": "determinants"}
    for name, (emission, transition) in zip(("", "-twin"), models, strict=True):
        volume = np.sqrt(np.linalg.det(emission.T @ emission))
        yield part | row(
            f"volume-O{name}".lower(),
            "The square root of det(O'O) is 0.0110",
            SIZE,
            volume,
            "within",
            0.0110,
            tolerance=5e-5,
            erratum="selfsup-eq-2-47-determinant",
            form="corrected",
        )
        yield part | row(
            f"det-T{name}".lower(),
            "The determinant of T is -0.1611",
            SIZE,
            np.linalg.det(transition),
            "within",
            -0.1611,
            tolerance=5e-5,
        )
    yield row(
        "det-o-printed",
        "O is printed with a determinant, and is not square: rows less columns",
        SIZE,
        models[0][0].shape[0] - models[0][0].shape[1],
        "beyond",
        0,
        tolerance=0.5,
        erratum="selfsup-eq-2-47-determinant",
        form="printed",
    )


def _turn(models: list[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    (emission, transition), (other, other_transition) = models
    turn = np.linalg.pinv(other) @ emission  # R of Eq. 2.43
    part = {"claim": "1", "part": "the rotation"}
    yield part | row(
        "rotation-orthogonal",
        "R = pinv(O~) O is orthogonal: largest entry of R'R - I",
        SIZE,
        np.abs(turn.T @ turn - np.eye(3)).max(),
        "<=",
        1e-6,
    )
    yield part | row(
        "rotation-sums",
        "Rows and columns of R sum to 1 (Claim 2): largest difference",
        SIZE,
        np.abs([turn.sum(0) - 1, turn.sum(1) - 1]).max(),
        "<=",
        1e-6,
        source=SOURCE.format("Claim 2"),
    )
    yield part | row(
        "rotation-angle",
        "R turns by 0.1 radian: its angle",
        SIZE,
        np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)),
        "within",
        0.1,
        tolerance=1e-5,
    )
    words = "With R = pinv(O~) O of Eq. 2.43 the twin is O {}: largest difference from O~"
    note: dict[str, Any] = {"erratum": "selfsup-rotation-direction", "source": SOURCE.format("section 2.2.3.2")}
    yield note | row(
        "direction-printed",
        words.format("R") + " (printed; it fails)",
        SIZE,
        np.abs(emission @ turn - other).max(),
        ">=",
        1e-3,
        form="printed",
    )
    yield note | row(
        "direction-corrected",
        words.format("R'"),
        SIZE,
        np.abs(emission @ turn.T - other).max(),
        "<=",
        ROUNDED,
        form="corrected",
    )
    yield note | row(
        "direction-corrected-t",
        "And T~ is R T R', as in Eq. 2.43: largest difference",
        SIZE,
        np.abs(turn @ transition @ turn.T - other_transition).max(),
        "<=",
        ROUNDED,
        form="corrected",
    )


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
        SIZE,
        apart,
        "<=",
        1e-14,
        form="printed",
        detail=f"largest entry of O - O~: {np.abs(emission - same).max():.2g}",
    )
    yield note | row(
        "relabelled-distance",
        "Up to relabelling, the published pair differs: Frobenius distance of O",
        SIZE,
        float(hmm.distance(emission, transition, other, other_transition)[0]),
        ">=",
        0.02,
        form="corrected",
    )


# --- rotations about the all-ones axis (5.7) -----------------------------------------------------------


def _rotations(entry: HmmPairs, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on twins O G, G' T G of random models, for any row sums of O and any doubly stochastic T."""
    words = "Twins O G, G'TG with G orthogonal, G 1 = 1, predict one token alike at every gap: largest difference"
    gaps = [f"x{far}|x1" for far in range(2, entry.longest_gap + 2)]
    tasks = [*gaps, *("|".join(reversed(task.split("|"))) for task in gaps)]
    source = SOURCE.format("section 2.2.3.2, Claim 2")
    for d, k in entry.shapes:
        alike, apart, sums, symmetric = [], [], [], []
        for _ in range(entry.draws):
            model = hmm.draw(rng, d, k, concentration=3.0, power=1, offset=0.3)
            turn = hmm.turn_near_identity(rng, k, entry.turn)
            other = hmm.twin(*model, turn)
            hmm.check(*other)
            alike.append(max(_apart(model, other, task) for task in tasks))
            apart.append(min(_apart(model, other, task) for task in hmm.TRIPLE_TASKS))
            sums.append(np.abs([turn.sum(0) - 1, turn.sum(1) - 1]).max())
            symmetric.append(np.abs(model[1] - model[1].T).max())
        size = f"d = {d}, k = {k}, {entry.draws} models, gaps 1 to {entry.longest_gap}, both directions"
        part = {"claim": "1", "part": "twins"}
        # Neither T is symmetric nor are row sums of O equal, as the printed construction has them.
        detail = f"smallest max|T - T'| of these: {min(symmetric):.2g}"
        yield part | row(f"twins-{d}-{k}", words, size, max(alike), "<=", 1e-14, source=source, detail=detail)
        yield part | row(
            f"twins-told-{d}-{k}",
            "Predictors of two tokens differ: the smallest largest difference",
            size,
            min(apart),
            ">=",
            1e-8,
            source=SOURCE.format("Theorem 7"),
        )
        yield part | row(
            f"claim-2-{d}-{k}",
            "Rows and columns of G sum to 1: largest difference",
            size,
            max(sums),
            "<=",
            1e-14,
            source=SOURCE.format("Claim 2"),
        )


def _apart(one: tuple[Any, Any], two: tuple[Any, Any], task: str) -> float:
    return float(np.abs(hmm.predictor(*one, task) - hmm.predictor(*two, task)).max())


def _two_states(entry: HmmPairs) -> Iterator[dict[str, Any]]:
    """Yield rows on where the rotation ends: a third of a turn relabels, and two states leave no freedom."""
    third = hmm.rotation(2 * np.pi / 3)
    yield row(
        "third-of-a-turn",
        "G(2 pi/3) is a relabelling: largest difference from a permutation matrix",
        "k = 3",
        np.abs(third - third.round()).max(),
        "<=",
        1e-15,
        claim="1",
        part="twins",
    )
    angle = np.linspace(0, 2 * np.pi, 721)[:, None, None]
    cos, sin = np.cos(angle), np.sin(angle)
    keeps = []
    for sign in (1, -1):  # rotations and reflections of the plane
        turns = np.block([[cos, -sign * sin], [sin, sign * cos]])
        kept = np.abs(turns.sum(-1) - 1).max(-1) < 1e-12
        keeps += [turn for turn, keep in zip(turns, kept, strict=True) if keep]
    yield row(
        "two-states",
        "Of two states G is the identity or the relabelling: largest difference from either",
        f"k = 2, {2 * len(angle)} orthogonal matrices",
        max(min(np.abs(turn - np.eye(2)).max(), np.abs(turn - np.eye(2)[::-1]).max()) for turn in keeps),
        "<=",
        1e-12,
        claim="1",
        part="twins",
        detail=f"{len(keeps)} of them keep 1",
    )


# --- powers (5.8) --------------------------------------------------------------------------------------


def _powers(entry: HmmPairs) -> Iterator[dict[str, Any]]:
    part = {"claim": "3", "part": "powers", "source": SOURCE.format("Claim 3, Eq. 2.48")}
    commutes, same, sums, smallest = [], [], [], []
    for t in entry.powers:
        cycle = hmm.lazy_cycle(0.5)
        turn, turned = hmm.turned_cycle(0.5, t)
        commutes.append(np.abs(turn @ cycle - cycle @ turn).max())
        same.append(np.abs(np.linalg.matrix_power(turned, t) - np.linalg.matrix_power(cycle, t)).max())
        sums.append(np.abs([turned.sum(0) - 1, turned.sum(1) - 1]).max())
        smallest.append(turned.min())
    size = f"a = 1/2, t = {entry.powers[0]} to {entry.powers[-1]}"
    yield part | row("commutes", "G T = T G: largest difference", size, max(commutes), "<=", 1e-14)
    yield part | row("same-power", "(G T)^t = T^t: largest difference", size, max(same), "<=", 1e-13)
    yield part | row("power-sums", "Rows and columns of G T sum to 1: largest difference", size, max(sums), "<=", 1e-14)
    yield part | row("non-negative", "Entries of G T are not negative: the smallest", size, min(smallest), ">=", -1e-15)
    dense = np.linspace(0, 2 * np.pi, 100_001)
    first = np.array([1 + np.cos(dense + np.pi / 3), 1 - np.cos(dense), 1 + np.cos(dense - np.pi / 3)]) / 3
    yield part | row(
        "closed-form",
        "At a = 1/2 the entries (1 + cos(th +- pi/3))/3 and (1 - cos th)/3 are not negative at any angle: the smallest",
        f"{len(dense)} angles",
        first.min(),
        ">=",
        -1e-15,
    )


def _printed_powers(entry: HmmPairs) -> Iterator[dict[str, Any]]:
    """Yield rows on printed forms of Claim 3 and its proof that do not hold."""
    claim_3 = SOURCE.format("Claim 3")
    printed = [t for t in range(2, 11) if t != 3]
    note: dict[str, Any] = {"erratum": "selfsup-claim-3-factor", "source": claim_3}
    yield note | row(
        "factor-printed",
        "T~ as printed, M^-1 R^-1 M, has a negative entry: of the smallest entries the largest",
        "t = 2, 4 to 10",
        max(hmm.turned_cycle(0.5, t)[0].min() for t in printed),
        "<=",
        -0.05,
        form="printed",
        detail="at t = 3 it is a permutation",
    )
    yield note | row(
        "factor-corrected",
        "With the factor T of Eq. 2.48 no entry is negative: the smallest",
        "a = 1/2, t = 2 to 10",
        min(hmm.turned_cycle(0.5, t)[1].min() for t in range(2, 11)),
        ">=",
        -1e-15,
        form="corrected",
    )
    theta = 2 * np.pi / 10
    bound = hmm.lazy_cycle(0.5) + theta / np.sqrt(12) * np.array([[-1, 0, 1], [1, -1, 0], [0, 1, -1]])
    bound = bound + theta**2 * np.array([[-0.25, -0.16, -0.25], [-0.09, -0.25, 0.01], [0.01, -0.25, -0.09]])
    note = {"erratum": "selfsup-eq-2-53", "source": SOURCE.format("Eq. 2.53")}
    yield note | row(
        "taylor-printed",
        "The bound of Eq. 2.53, said to be non-negative, has a negative entry: the smallest",
        "th = 2 pi/10",
        bound.min(),
        "<=",
        -0.01,
        form="printed",
    )
    yield note | row(
        "taylor-corrected",
        "The closed form needs no bound: smallest entry of G T",
        "t = 10 to 50",
        min(hmm.turned_cycle(0.5, t)[1].min() for t in range(10, 51)),
        ">=",
        -1e-15,
        form="corrected",
    )
    note = {"erratum": "selfsup-claim-3-first-power", "source": claim_3}
    yield note | row(
        "first-power-printed",
        "Claim 3 says any positive t; at t = 1, T~^t = T^t is T~ = T: largest difference of G T",
        "t = 1",
        np.abs(hmm.turned_cycle(0.5, 1)[1] - hmm.lazy_cycle(0.5)).max(),
        "<=",
        1e-14,
        form="printed",
    )
    yield note | row(
        "first-power-corrected",
        "From t = 2 on, as in Claim 1, T~ differs from every relabelling of T: smallest of the largest differences",
        f"t = {entry.powers[0]} to {entry.powers[-1]}",
        min(hmm.relabelled_distance(hmm.lazy_cycle(0.5), hmm.turned_cycle(0.5, t)[1]) for t in entry.powers),
        ">=",
        0.03,
        form="corrected",
    )
