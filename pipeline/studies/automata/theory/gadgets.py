"""Approximation gadgets: Lemmas 10 to 14 and Proposition 2 (Liu 2024, section 3.4.4.1)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions
from pipeline.models.automata import exact
from pipeline.models.automata.exact import Array, Layer, Network
from pipeline.studies.automata.constructions import SOURCE, row
from schemas import theory

NOISE = 0.24  # below the quarter of the spacing that the lemmas allow


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the gadgets."""
    rng = stream(seed, "automata", theory_id)
    made = [
        *_lemma_10(rng),
        *_lemma_11(rng),
        *_lemma_12(),
        *_lemma_13(rng, entry),
        *_proposition_2(entry),
        *_lemma_14(rng),
    ]
    return theory.rows("automata", theory_id, SOURCE.format(".1"), made)


def through(mlp: exact.Mlp, x_NxD: Array) -> NDArray:
    """Return what an MLP makes of rows."""
    D = x_NxD.shape[1]
    return Network([Layer([], np.ones(D), mlp, np.zeros(D))], D)(x_NxD[None])[0]


def _lemma_10(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    worst, width, norm = [], [], []
    for spacing in (0.1, 1.0, 3.0):
        points = np.arange(-6, 7)
        table = {(int(k),): [float(rng.normal())] for k in points}
        mlp = exact.lookup(2, [0], table, [1], spacing)
        for noise in (-NOISE, 0.0, NOISE):
            x = np.stack([(points + noise) * spacing, np.zeros(len(points))], 1)
            worst.append(np.abs(through(mlp, x)[:, 1] - [table[int(k),][0] for k in points]).max())
        width.append(len(mlp[0][1]) / (4 * len(points)))
        norm.append(largest(np.abs(mlp[0][0]).max() * spacing / 4, np.abs(mlp[0][1]).max() / (4 * 6 + 2)))
    yield row(
        "lem-10.exact",
        "Lemma 10 is exact for deviations below a quarter of the spacing: largest error",
        "13 points, three spacings",
        largest(worst),
        "<=",
        1e-12,
    )
    yield row(
        "lem-10.sizes",
        "Width 4|X| and weights of 4/spacing and 4B/spacing + 2: largest share of the bounds",
        "13 points, three spacings",
        largest(width, norm),
        "<=",
        1 + 1e-12,
    )


def _lemma_11(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    keys = list(itertools.product(range(3), range(4), range(2)))
    table = {key: [float(1 + rng.integers(5))] for key in keys}
    x = np.concatenate([np.array(keys, float), np.zeros((len(keys), 1))], 1)
    x[:, :3] += rng.uniform(-NOISE, NOISE, (len(keys), 3))
    targets = np.array([table[key][0] for key in keys])
    metadata = {"source": SOURCE.format(".1, Lemma 11"), "erratum": "automata-lemma-11"}
    for form, bias in (("corrected", 2), ("printed", 3)):
        outputs = through(exact.lookup(4, [0, 1, 2], table, [3], 1.0, bias), x)[:, 3]
        errors = exceptions(np.abs(outputs - targets) > 1e-9, outputs)
        name, comparison = ("-(d_in - 1)", "<=") if form == "corrected" else ("-d_in, so that every output is 0", ">=")
        yield row(
            f"lem-11.{form}",
            f"Lemma 11 with the bias {name}: values that are wrong",
            f"{len(keys)} values in three coordinates",
            errors,
            comparison,
            0 if form == "corrected" else len(keys),
            form=form,
            **metadata,
        )


def _lemma_12() -> Iterator[dict[str, Any]]:
    x = np.concatenate([[-3.0, -1.0, -1 + NOISE], [1 - NOISE, 1.0, 3.0]])  # in units of Delta
    targets = np.array([0, 0, 0, 1, 1, 1.0])
    metadata = {"source": SOURCE.format(".1, Lemma 12"), "erratum": "automata-lemma-12"}
    forms = {"corrected": (0.5, 1.0, "(x ± Δ/2)/Δ"), "printed": (1.0, 2.0, "(x ± Δ)/2Δ")}
    for form, (shift, scale, shown) in forms.items():
        outputs = np.maximum((x + shift) / scale, 0) - np.maximum((x - shift) / scale, 0)
        error = float(np.abs(outputs - targets).max())
        detail = f"{(0.75 + shift) / scale - max((0.75 - shift) / scale, 0):.3g} at x = 0.75 Δ"
        yield row(
            f"lem-12.{form}",
            f"Lemma 12 as {shown}, at |x| >= Δ with deviations of Δ/4: largest error",
            "6 points",
            error,
            "<=" if form == "corrected" else ">=",
            1e-12 if form == "corrected" else 0.1,
            form=form,
            detail=detail,
            **metadata,
        )


def _lemma_13(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    worst = []
    for length in (2, 8, entry.length):
        for gap in (0.5, 2.0, 8.0, 20.0):
            for spread in (0.0, 3.0):
                scores = -gap - spread * rng.random((64, length))
                scores[:, 0] = 0
                weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
                off = np.abs(weights - np.eye(length)[0]).sum(1).max()
                worst.append(off / (2 * length * np.exp(-gap)))
    yield row(
        "lem-13.ratio",
        "A maximum that leads by γ: |softmax - e|_1 over 2T exp(-γ), at most",
        f"T = 2, 8, {entry.length}",
        largest(worst),
        "<=",
        1.0,
        source=SOURCE.format(".1, Lemma 13"),
    )


def _proposition_2(entry: Any) -> Iterator[dict[str, Any]]:
    metadata = {"source": SOURCE.format(".1, Proposition 2"), "erratum": "automata-proposition-2"}
    excess, ratio = [], []
    for T in range(2, entry.length + 1):
        angle = 2 * np.pi * np.arange(T) / T
        products = np.cos(angle[1:])  # of p_0 with the others; all rows of the table are rotations of this one
        excess.append(np.abs(products).max() - (1 - 2 * np.pi**2 / T**2))
        ratio.append(products.max() - (1 - 8 / T**2))
    size = f"T = 2..{entry.length}"
    yield row(
        "prop-2.printed",
        "|<p_t, p_t'>| <= 1 - 2π²/T² is violated at every T: smallest excess",
        size,
        smallest(excess),
        ">=",
        1e-9,
        form="printed",
        **metadata,
    )
    yield row(
        "prop-2.corrected",
        "<p_t, p_t'> <= cos(2π/T) <= 1 - 8/T²: largest excess",
        size,
        largest(ratio),
        "<=",
        1e-12,
        form="corrected",
        **metadata,
    )


def _lemma_14(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    source = SOURCE.format(".2, Lemma 14")
    for n in (2, 3, 4):
        maps = np.array(list(itertools.product(range(1, n + 1), repeat=n)), float)
        g, f = np.repeat(maps, len(maps), 0), np.tile(maps, (len(maps), 1))
        mlp = exact.composition(n, range(n), range(n, 2 * n), 2 * n)
        targets = np.take_along_axis(f, g.astype(int) - 1, 1)
        for noise in (0.0, NOISE):
            noisy = np.concatenate([g + rng.choice([-noise, noise], g.shape), f], 1)
            outputs = through(mlp, noisy)[:, n:]
            yield row(
                f"lem-14.q{n}{'.noise' if noise else ''}",
                f"Lemma 14 composes all pairs of maps{', 0.24 off on the left' if noise else ''}: largest error",
                f"|Q| = {n}, all {len(g)} pairs",
                np.abs(outputs - targets).max(),
                "<=",
                1e-9,
                source=source,
            )
    metadata = {"source": source, "erratum": "automata-lemma-14"}
    printed = int((np.take_along_axis(g, g.astype(int) - 1, 1) != targets).any(1).sum())
    yield row(
        "lem-14.display",
        "The display sums g(q') 1[g(q) = q'], which is g after g: pairs that are wrong",
        f"|Q| = {n}",
        printed,
        ">=",
        1,
        form="printed",
        **metadata,
    )
    yield row(
        "lem-14.sum",
        "The sum of f(q') 1[g(q) = q'] is f after g: pairs that are wrong",
        f"|Q| = {n}",
        exceptions((np.abs(outputs - targets) > 1e-9).any(1), outputs),
        "<=",
        0,
        form="corrected",
        **metadata,
    )
    leak = through(mlp, np.concatenate([g, f + 0.01], 1))[:, n:]
    yield row(
        "lem-14.leak",
        "A deviation ε on the right is not removed, as 'perturbation robust' says, but grows: largest error over ε",
        f"|Q| = {n}, ε = 0.01",
        np.abs(leak - targets).max() / 0.01,
        ">=",
        1.0,
        source=source,
        erratum="automata-lemma-14-robust",
        form="printed",
    )
    noisy = np.concatenate([g + rng.choice([-NOISE, NOISE], g.shape), f], 1)
    yield row(
        "lem-14.left",
        "It is robust to deviations on the left: largest error",
        f"|Q| = {n}, deviations of {NOISE}",
        np.abs(through(mlp, noisy)[:, n:] - targets).max(),
        "<=",
        1e-9,
        source=source,
        erratum="automata-lemma-14-robust",
        form="corrected",
    )
