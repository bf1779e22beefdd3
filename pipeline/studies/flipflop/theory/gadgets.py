"""The look-up of Lemma 16 and the gadgets below Proposition 3 (Liu 2024, sections 3.4.4.1 and 3.4.4.3.1).

Lemmas 10, 12, 13 and 16 are executed with the weights of the automata study; what is new here is how far Lemma 16
reaches beyond the length that it was made for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions, row
from pipeline.languages.automata import automaton, every_input, simulate
from pipeline.models.automata import exact
from pipeline.studies.flipflop.constructions import ERRATUM, OWN, judged
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.flipflop.params import Theory

LEMMA = "Liu 2024, section 3.4.4{}"
LEMMA_16 = LEMMA.format(".3.1, Lemma 16")
HORIZON = 64


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Lemmas 10, 12, 13 and 16."""
    rng = stream(seed, entry.study, key)
    made = [
        *judged("Lemma 16", [*_memories(entry, rng), *_reach()]),
        *judged("Lemmas 10 and 13", _rounding(rng)),
        *judged("Lemma 12", _threshold()),
        *judged("Lemmas 10 and 13", _hard(entry, rng)),
    ]
    return theory.rows(entry.study, key, LEMMA_16, made)


def _memories(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for states in (2, 3, 5):
        table = np.array([[q, *range(states)] for q in range(states)])
        known = type(automaton("memory2"))(f"memory{states}", table, states - 1, (), ())
        cases = [("random", rng.integers(0, states + 1, (entry.draws, length))) for length in entry.lengths[:2]]
        sparse = rng.integers(1, states + 1, (entry.draws, entry.lengths[0]))
        cases += [("sparse", np.where(rng.random(sparse.shape) < 0.1, sparse, 0))]
        short = min(entry.short // 2, 4 if states == 5 else 6)
        cases += [("all", every_input(states + 1, short))]
        for name, words in cases:
            built = exact.memory(states, states - 1, words.shape[1])
            outputs, off = built.run(words)
            yield row(
                f"lem-16.q{states}.{name}-{words.shape[1]}",
                f"Lemma 16 remembers one of {states} states, also before the first write: errors",
                f"{len(words)} inputs of length {words.shape[1]}",
                exceptions(outputs != simulate(known, words), off),
                "<=",
                0,
            )


def first_miss(C: int, weight: float) -> tuple[int, int]:
    """Return the first place at which Lemma 16, made for length C, looks away from the write of [1, 0, 0, ...], and the
    first at which it is undecided; ``weight`` is that of the term 1[no-op]."""
    built = exact.memory(2, 0, C, printed_score=weight == 1)
    head = built.network.layers[0].heads[0]
    length = 3 * C
    x = np.zeros((length, 4))
    x[0, 0], x[1:, 0], x[1:, 1], x[:, 2], x[:, 3] = 2, 1, 1, np.arange(1, length + 1) / C, 1
    scores = (x @ head.Q) @ (x @ head.K).T
    lead = scores[:, 0] - np.diagonal(scores)
    scale = np.abs(scores).max() * 1e-12
    return int(np.flatnonzero(lead[1:] < -scale)[0]) + 2, int(np.flatnonzero(np.abs(lead[1:]) <= scale)[0]) + 2


def _reach() -> Iterator[dict[str, Any]]:
    for weight, printed in ((1.0, "1[⊥], as the text says"), (2.0, "2 · 1[⊥], as the matrices say")):
        miss, tie = first_miss(HORIZON, weight)
        yield row(
            f"lem-16.reach-{weight:g}",
            f"Made for a length C, with the score c(j/T - {printed}), it loses the write "
            "of [1, 0, 0, ...] at C times that factor, plus 2: first place",
            f"C = {HORIZON}",
            miss,
            "within",
            weight * HORIZON + 2,
            tolerance=0.0,
            source=OWN,
            detail=f"tie at place {tie}",
        )


def _through(mlp: exact.Mlp, x_NxD: NDArray) -> NDArray:
    dim = x_NxD.shape[1]
    return exact.Network([exact.Layer([], np.ones(dim), mlp, np.zeros(dim))], dim)(x_NxD[None])[0]


def _rounding(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for spacing in (0.25, 1.0, 2.0):
        points = np.arange(-5, 6)
        table = {(int(k),): [float(rng.normal())] for k in points}
        mlp = exact.lookup(2, [0], table, [1], spacing)
        targets = np.array([table[int(k),][0] for k in points])
        off = [
            np.abs(_through(mlp, np.stack([(points + shift) * spacing, np.zeros(11)], 1))[:, 1] - targets)
            for shift in (-0.25, -0.1, 0.0, 0.1, 0.25)
        ]
        yield row(
            f"lem-10.spacing-{spacing:g}",
            "Lemma 10 reproduces a function on a grid for deviations up to a quarter of the spacing: largest error",
            f"11 points {spacing:g} apart",
            largest(*off),
            "<=",
            1e-12,
            source=LEMMA.format(".1, Lemma 10"),
        )


def _threshold() -> Iterator[dict[str, Any]]:
    x = np.concatenate([[-2.0, -1.0, -0.75], [0.75, 1.0, 2.0]])  # in units of the margin
    metadata = {"source": LEMMA.format(".1, Lemma 12"), "erratum": ERRATUM.format("lemma-12")}
    forms = {"printed": (1.0, 2.0, ">=", 0.1), "corrected": (0.5, 1.0, "<=", 1e-12)}
    for form, (shift, width, comparison, bound) in forms.items():
        outputs = np.maximum((x + shift) / width, 0) - np.maximum((x - shift) / width, 0)
        yield row(
            f"lem-12.{form}",
            f"The threshold of Lemma 12, with (x ± {'Δ' if form == 'printed' else 'Δ/2'}) over "
            f"{'2Δ' if form == 'printed' else 'Δ'}, under deviations of Δ/4: largest error",
            "6 points",
            largest(np.abs(outputs - (x > 0))),
            comparison,
            bound,
            form=form,
            detail=f"{outputs[3]:.3g} at x = 0.75 Δ",
            **metadata,
        )


def _hard(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    excess = []
    for length in (2, *entry.lengths[:2]):
        for gap in (0.0, 1.0, 5.0, 20.0):
            scores = -gap - rng.exponential(2.0, (entry.draws, length)) * rng.integers(0, 2, (entry.draws, 1))
            scores[:, 0] = 0
            weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
            lead = -scores[:, 1:].max(1)
            excess.append(np.abs(weights - np.eye(length)[0]).sum(1) - 2 * length * np.exp(-lead))
    yield row(
        "lem-13.excess",
        "A maximum that leads by γ: |softmax - e|_1 - 2T exp(-γ), at most",
        f"T = 2, {', '.join(map(str, entry.lengths[:2]))}",
        largest(*excess),
        "<=",
        1e-12,
        source=LEMMA.format(".1, Lemma 13"),
    )
