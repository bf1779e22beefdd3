"""Theorems 2.1.3 and 2.1.5: optimal attention over block and diagonal value matrices (chapter 5.4 and 5.5)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions, judged, of, row
from pipeline.languages.topic import Masking, Population
from pipeline.studies.topic.constructions import NORMALISERS, OWN_CHECK, SOURCE, masking_of, named, slip
from pipeline.studies.topic.exact import stage_two
from pipeline.studies.topic.exact.stage_two import KINDS, VARIANTS, Optimum
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Attention

THEOREM = {"block": SOURCE.format(".4.3, Theorem 2.1.3, and .7.7"), "diag": SOURCE.format(".7.8, Theorem 2.1.5")}
MATRIX = {"block": "uniform blocks", "diag": "diagonal value matrix"}
PROPOSITION = SOURCE.format(".7.5, Proposition 2.1.2")
# Computed before, for T = 100, v = 300 and tau = 20, 40, 60, 80: optimal gamma to a tenth, least losses to the last
# digit.
GAMMAS: dict[str, tuple[float, ...]] = {"paper": (53.3, 66.3, 72.1, 75.3), "consistent": (60.2, 75.1, 81.7, 85.3)}
LOSSES: dict[str, tuple[tuple[float, ...], float]] = {
    "block": ((0.19970346, 0.19975155, 0.19978427, 0.19980897), 6e-9),
    "diag": ((0.116656, 0.128570, 0.137500, 0.144443), 6e-7),
}
POINTS = ((1, 1), (1e2, 1e2), (1e-4, 1e4), (1e3, 1e-4), (1e7, 1e7))
VALUES: dict[tuple[int, str], tuple[float, ...]] = {
    (20, "block"): (0.19996729, 0.19970956, 0.19970918, 0.19974488, 0.20011211),
    (20, "diag"): (0.19996729, 0.19970956, 0.11787356, 0.20050271, 0.20011211),
    (80, "block"): (0.19999183, 0.19981305, 0.19983858, 0.19996752, 0.20011243),
    (80, "diag"): (0.19999183, 0.19981305, 0.15263444, 0.20068376, 0.20011243),
}
FIGURE = (100, 300)  # T and v of Figures 2.7 and 2.8
LONG = (10**8, 10**4)  # T and tau at which claim 5 asks for the limit
AT = "at T = 1e8, τ = 1e4"  # what its gate is called


def check(entry: Attention, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on stage-2 losses and their optima (TH4, TH5)."""
    rng = stream(seed, entry.study, key)
    masking = masking_of(entry)
    optima = {
        (topics, tau, v, kind, variant): (
            stage_two.numeric_optimum(known, kind, variant),
            stage_two.exact_optimum(known, kind, variant),
        )
        for topics, tau in entry.settings
        for v in entry.v
        for known in [Population(topics, v, tau, masking)]
        for kind in KINDS
        for variant in VARIANTS
    }
    made = [
        *judged("1", "losses of stage 2", _enumerated(entry, masking)),
        *judged("1", "Remark 2.1.5", [*_shared(entry, masking, rng), *_same_gamma(entry, masking)]),
        *_normaliser(entry, masking),
        *judged("1", "landscapes at points", _figures(masking)),
        *judged("1", "optima of stage 2", _two_ways(entry, optima)),
        *judged("1", "Theorem 2.1.3, other maskings", _intervals(entry, masking, optima)),
        *judged("4", "growth with τ", _growth(masking, optima)),
        *_limits(entry, masking, optima),
    ]
    return theory.rows(entry.study, key, THEOREM["block"], made)


# Formulas against enumeration


def _enumerated(entry: Attention, masking: Masking) -> Iterator[dict[str, Any]]:
    for size in entry.enumerated:
        known = Population(size[0], size[1], size[2], masking)
        name, words = named(size)
        frozen = {"block": (known.block_VxV, known.constants.u), "diag": (known.diagonal_VxV, 0)}
        for kind, (W, u) in frozen.items():
            direct = [stage_two.enumerated(known, W, stage_two.family(known, *point)) for point in entry.points]
            shifts = {"shift": u} if kind == "block" else {}
            closed = {
                variant: [
                    stage_two.LOSSES[kind](known, *point, variant, **(shifts if variant == "consistent" else {}))
                    for point in entry.points
                ]
                for variant in VARIANTS
            }
            off = {variant: np.abs(np.subtract(losses, direct)) for variant, losses in closed.items()}
            at = f"{words}, {len(direct)} pairs of α and β"
            yield row(
                f"loss.enumerated.{kind}-{name}",
                f"The exact loss over {MATRIX[kind]} is that of all documents, "
                "labels and query words: largest distance",
                at,
                largest(off["consistent"]),
                "<=",
                entry.tolerance,
                source=OWN_CHECK,
            )
            yield row(
                f"normaliser.{kind}-{name}",
                "With the normaliser of Proposition 2.1.2 as printed it is not: smallest distance",
                at,
                smallest(off["paper"]),
                ">=",
                1e-5,
                source=PROPOSITION,
                **slip("normaliser", "printed"),
            )
        uniform = stage_two.block_loss(known, 1.0, 1.0, "consistent")
        expected = (masking.keep + masking.random) * (1 - 1 / (known.v * known.tau))
        yield row(
            f"loss.uniform.{name}",
            "At α = β = 1 it is (p_c + p_r)(1 - 1/(vτ)), the loss of uniform attention: distance",
            words,
            abs(uniform - expected),
            "<=",
            entry.tolerance,
            source=OWN_CHECK,
        )
        # What the value matrix of Theorem 2.1.2 makes of attended shares, and what the proof's q makes of them.
        alpha, beta = entry.points[-1]
        z = np.array(stage_two.normalisers(known, alpha, beta, "consistent"))
        x, weights = known.masked_DxV[0], stage_two.family(known, alpha, beta)
        query = [int(np.flatnonzero(x[1:] == shares)[0]) for shares in (x[1:].max(), x[1:].min())]
        attended = x[:, None] * weights[:, query] / z
        output = (known.block_VxV @ attended)[1:]
        means = known.block_sums(attended.T) / known.v
        c1, _, c3, u = known.constants
        for form, shift, comparison, bound in (("printed", 0.0, ">=", 1e-4), ("corrected", u, "<=", entry.tolerance)):
            kappa = c1 * masking.hidden
            proof_q = c3 * np.repeat(means, known.v, axis=1).T - kappa / z + shift * (1 - 1 / z)
            formula = "the proof's q, without the entry u* between topics" if shift == 0 else "q with u*(1 - 1/z)"
            yield row(
                f"proof-q.{form}.{name}",
                f"What the matrix of Theorem 2.1.2 makes of attended shares is {formula}: largest distance",
                f"{words}, α = {alpha:g}, β = {beta:g}",
                largest(np.abs(output - proof_q)),
                comparison,
                bound,
                **slip("proof-q", form),
                source=THEOREM["block"],
            )


def _shared(entry: Attention, masking: Masking, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for tau in (20, 80):
        known = Population(*FIGURE, tau, masking)
        beta = 10 ** rng.uniform(-4, 6, 500)
        alpha = 10 ** rng.uniform(-4, 6, 500)
        same = stage_two.gamma(known, alpha, beta)
        for variant in VARIANTS:
            off = stage_two.block_loss(known, alpha, beta, variant) - stage_two.block_loss(known, same, same, variant)
            yield row(
                f"loss.gamma-only.{variant}-{tau}",
                "Over uniform blocks the loss depends on γ alone: largest distance to α = β = γ",
                f"{named((*FIGURE, tau))[1]}, 500 pairs, {NORMALISERS[variant]}",
                largest(np.abs(off)),
                "<=",
                entry.tolerance,
                source=SOURCE.format(".4.3, Remark 2.1.5"),
            )


def _same_gamma(entry: Attention, masking: Masking) -> Iterator[dict[str, Any]]:
    """Yield the same by enumeration, which knows nothing of gamma."""
    for size in entry.enumerated:
        known = Population(size[0], size[1], size[2], masking)
        losses = []
        for share in (0.0, 0.2, 0.5, 0.9, 1.0):  # of beta in 6 v, the sum of the weights of a topic's words
            beta = share * 6.0 * known.v
            alpha = (6.0 * known.v - beta) / (known.v - 1)
            losses.append(stage_two.enumerated(known, known.block_VxV, stage_two.family(known, alpha, beta)))
        name, words = named(size)
        yield row(
            f"loss.same-gamma.{name}",
            "Over uniform blocks enumeration finds the same loss for all α and β of one γ: largest difference",
            f"{words}, γ = 6",
            max(losses) - min(losses),
            "<=",
            entry.tolerance,
            source=SOURCE.format(".4.3, Remark 2.1.5"),
        )


def _normaliser(entry: Attention, masking: Masking) -> Iterator[dict[str, Any]]:
    for form, variant, comparison, bound in (
        ("printed", "paper", ">=", 0.05),
        ("corrected", "consistent", "<=", entry.tolerance),
    ):
        off = []
        for size in entry.enumerated:
            known = Population(size[0], size[1], size[2], masking)
            x = known.masked_DxV
            # Of a query word in a document: whether its topic is one of the document's decides between z_1 and z_2.
            present_DxQ = known.law_DxV[:, 1:] > 0
            for alpha, beta in entry.points:
                z_1, z_2 = stage_two.normalisers(known, alpha, beta, variant)
                total_DxQ = x @ stage_two.family(known, alpha, beta) / np.where(present_DxQ, z_1, z_2)
                off.append(np.abs(total_DxQ - 1).max())
        keys = "words alone" if variant == "paper" else "words and [MASK]"
        yield row(
            f"normaliser.{form}",
            f"With z₁ and z₂ of {keys}, attention adds up to 1 over keys: "
            + ("smallest" if variant == "paper" else "largest")
            + " of the largest distances",
            f"{len(off)} pairs and sizes",
            smallest(off) if variant == "paper" else largest(off),
            comparison,
            bound,
            **slip("normaliser", form),
            source=PROPOSITION,
        )


# Optima


def _figures(masking: Masking) -> Iterator[dict[str, Any]]:
    for (tau, kind), printed in VALUES.items():
        known = Population(*FIGURE, tau, masking)
        values = [stage_two.LOSSES[kind](known, *map(float, point), "paper") for point in POINTS]
        yield row(
            f"landscape.points.{kind}-{tau}",
            f"Losses over {MATRIX[kind]} at five points of Figures 2.7 and 2.8, as "
            "computed before, to the digits noted: largest distance",
            named((*FIGURE, tau))[1],
            largest(np.abs(np.subtract(values, printed))),
            "<=",
            5.1e-9,
            source=OWN_CHECK,
        )
    for place, tau in enumerate((20, 40, 60, 80)):
        known = Population(*FIGURE, tau, masking)
        for kind, (losses, tolerance) in LOSSES.items():
            optimum = stage_two.numeric_optimum(known, kind, "paper")
            yield row(
                f"landscape.least.{kind}-{tau}",
                f"The least loss over {MATRIX[kind]}, as computed before, to the digits noted",
                named((*FIGURE, tau))[1],
                float(optimum.loss),
                "within",
                losses[place],
                tolerance=tolerance,
                source=OWN_CHECK,
            )
        for variant, gammas in GAMMAS.items():
            optimum = stage_two.exact_optimum(known, "block", variant)
            yield row(
                f"landscape.gamma.{variant}-{tau}",
                "The optimal γ over uniform blocks, as computed before, within one part in a hundred",
                f"{named((*FIGURE, tau))[1]}, {NORMALISERS[variant]}",
                float(optimum.gamma),
                "within",
                gammas[place],
                tolerance=0.01 * gammas[place],
                source=OWN_CHECK,
            )


Optima = dict[tuple[int, int, int, str, str], tuple[Optimum, Optimum]]


def _two_ways(entry: Attention, optima: Optima) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        pairs = [pair for (_, _, _, own, _), pair in optima.items() if own == kind]
        parts = [
            abs(float(one.gamma) / float(two.gamma) - 1) + abs(float(one.beta) / float(two.beta) - 1)
            for one, two in pairs
        ]
        how = (
            "Brent's method and a quartic in fractions"
            if kind == "block"
            else ("Nelder and Mead's method and golden section over exact parabolas in decimals")
        )
        yield row(
            f"optimum.two-ways.{kind}",
            f"{how} find the same optimum over {MATRIX[kind]}: largest relative distance",
            f"{len(pairs)} settings",
            largest(parts),
            "<=",
            1e-4,
            source=OWN_CHECK,
        )
        yield row(
            f"optimum.least.{kind}",
            f"And the same least loss over {MATRIX[kind]}: largest distance",
            f"{len(pairs)} settings",
            largest(abs(float(one.loss) - float(two.loss)) for one, two in pairs),
            "<=",
            entry.tolerance,
            source=OWN_CHECK,
        )
    changes = []
    for topics, tau, v, kind, variant in optima:
        if kind == "block":
            quartic = stage_two.stationarity(Population(topics, v, tau, masking_of(entry)), variant)
            signs = [quartic(Fraction(10) ** power * 2**half) > 0 for power in range(-6, 16) for half in (0, 2)]
            changes.append(sum(first != second for first, second in itertools.pairwise(signs)))
    yield row(
        "optimum.unique",
        "Over uniform blocks the loss falls and then rises along γ from 1e-6 to 1e15: settings in "
        "which its slope does not change sign exactly once",
        f"{len(changes)} settings",
        exceptions([each != 1 for each in changes]),
        "<=",
        0,
        source=OWN_CHECK,
    )


def _intervals(entry: Attention, masking: Masking, optima: Optima) -> Iterator[dict[str, Any]]:
    others = {
        (p_m, p_c, topics, tau, variant): stage_two.exact_optimum(
            Population(topics, entry.v[0], tau, Masking(p_m, p_c, p_c)), "block", variant
        )
        for p_m, p_c in entry.maskings
        for topics, tau in entry.settings
        for variant in VARIANTS
    }
    for kind in KINDS:
        for variant in VARIANTS:
            for form in ("printed", "proof") if kind == "block" else ("printed",):
                outside, tried = [], 0
                for (topics, tau, v, own, used), (_, optimum) in optima.items():
                    if (own, used) == (kind, variant):
                        tried += 1
                        known = Population(topics, v, tau, masking)
                        if not stage_two.inside(known, kind, optimum, form):
                            outside.append(f"{topics}-{v}-{tau}")
                what = "printed" if form == "printed" else "proof's"
                part = "Theorem 2.1.5" if kind == "diag" else f"Theorem 2.1.3, {what} interval"
                weights = "γ" if kind == "block" else "β, and α below λ₅β,"
                yield row(
                    f"interval.{kind}-{variant}.{form}",
                    f"The optimal {weights} in the {what} interval over {MATRIX[kind]}: settings outside",
                    f"{tried} settings, {NORMALISERS[variant]}",
                    len(outside),
                    "<=",
                    0,
                    source=THEOREM[kind],
                    detail=", ".join(outside),
                    **of("3", part),
                )
    # Other maskings, where the printed lower end is more than the proof gives. The theorem is one of sparse documents.
    for name, form, is_tried, comparison, claim in (
        (
            "printed",
            "printed",
            lambda T, tau: 3 * tau <= T,
            "<=",
            "With other p_m and p_c = p_r, too, and at most a "
            "third of the topics in a document, the optimal γ is in the printed interval: settings outside",
        ),
        (
            "proof",
            "proof",
            lambda T, tau: True,
            "<=",
            "With other p_m and p_c = p_r, too, the optimal γ is in the proof's interval: settings outside",
        ),
        (
            "dense",
            "printed",
            lambda T, tau: 3 * tau > T,
            ">=",
            "With more topics in a document, which the theorem "
            "leaves out, it can lie outside the printed interval: settings outside",
        ),
    ):
        outside, tried = [], 0
        for (p_m, p_c, topics, tau, variant), optimum in others.items():
            if is_tried(topics, tau):
                tried += 1
                known = Population(topics, entry.v[0], tau, Masking(p_m, p_c, p_c))
                if not stage_two.inside(known, "block", optimum, form):
                    outside.append(f"p_m = {p_m:g}, p_c = {p_c:g}, T = {topics}, τ = {tau}, {NORMALISERS[variant]}")
        yield row(
            f"interval.maskings.{name}",
            claim,
            f"{tried} settings, {len(entry.maskings)} maskings",
            len(outside),
            comparison,
            1 if name == "dense" else 0,
            source=OWN_CHECK,
            detail="; ".join(outside[:4]),
        )


def _growth(masking: Masking, optima: Optima) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        for variant in VARIANTS:
            taus = sorted(tau for (T, tau, v, own, used) in optima if (T, v, own, used) == (*FIGURE, kind, variant))
            minima = [optima[FIGURE[0], tau, FIGURE[1], kind, variant][1] for tau in taus]
            values = np.array([float(each.gamma if kind == "block" else each.beta) for each in minima])
            yield row(
                f"growth.{kind}-{variant}",
                f"The optimal {'γ' if kind == 'block' else 'β'} over {MATRIX[kind]} grows with τ: least increase",
                f"T = {FIGURE[0]}, v = {FIGURE[1]}, τ = {', '.join(map(str, taus))}",
                smallest(np.diff(values)) if len(values) > 1 else float("nan"),
                ">=",
                1e-3,
                source=THEOREM[kind],
                detail=", ".join(f"{each:.5g}" for each in values),
            )


def _limits(entry: Attention, masking: Masking, optima: Optima) -> Iterator[dict[str, Any]]:
    limits = {"consistent": 1 / masking.a, "paper": (1 - masking.hidden) / masking.a}
    long = [(T, tau) for T, tau in entry.settings if T >= 10**6]
    for kind in KINDS:
        for variant in VARIANTS:
            for v in entry.v:
                minima = [optima[T, tau, v, kind, variant][1] for T, tau in long]
                scaled = [
                    float(each.gamma) / tau if kind == "block" else float(each.beta) / (v * tau)
                    for each, (_, tau) in zip(minima, long, strict=True)
                ]
                off = np.abs(np.array(scaled) / limits[variant] - 1)
                at = f"v = {v}, {NORMALISERS[variant]}"
                what = "γ/τ" if kind == "block" else "β/(vτ)"
                part = "limit of γ" if kind == "block" else "limit of β"
                limit = "1/a" if variant == "consistent" else "(1 - p_M)/a"
                a = "a = (1 - p_c) p_m" + (", p_M = p_m(1 - p_c - p_r)" if variant == "paper" else "")
                if LONG in long:
                    yield row(
                        f"limit.{kind}-{variant}-{v}",
                        f"The optimal {what} is near {limit}, its limit as T and τ grow, where {a}: relative distance",
                        f"T = {LONG[0]:.0e}, τ = {LONG[1]:.0e}, {at}",
                        float(off[long.index(LONG)]),
                        "<=",
                        0.01,
                        source=OWN_CHECK,
                        detail=f"{scaled[long.index(LONG)]:.5f}",
                        **of("5", AT if (kind, variant) == ("block", "consistent") else part),
                    )
                yield row(
                    f"limit.nearer.{kind}-{variant}-{v}",
                    f"{what} comes nearer to {limit} as T and τ grow, where {a}: "
                    "largest distance relative to that of the setting before",
                    f"{len(long)} settings, {at}",
                    largest(off[1:] / off[:-1]),
                    "<=",
                    0.5,
                    source=OWN_CHECK,
                    **of("5", part),
                )
                if kind == "diag":
                    ratios = np.array([float(each.alpha / each.beta) for each in minima])
                    excess = np.array([float(each.loss) for each in minima]) - float(masking.random)
                    yield row(
                        f"limit.alpha.{variant}-{v}",
                        "Over a diagonal matrix the optimal α/β tends to 0: largest "
                        "ratio to that of the setting before",
                        f"{len(long)} settings, {at}",
                        largest(ratios[1:] / ratios[:-1]),
                        "<=",
                        0.5,
                        source=OWN_CHECK,
                        detail=f"{ratios[-1]:.2g} at last",
                        **of("5", part),
                    )
                    yield row(
                        f"limit.loss.{variant}-{v}",
                        "Over a diagonal matrix the least loss tends to p_r: largest "
                        "distance relative to that of the setting before",
                        f"{len(long)} settings, {at}",
                        largest(excess[1:] / excess[:-1]),
                        "<=",
                        0.5,
                        source=OWN_CHECK,
                        **of("5", part),
                    )
