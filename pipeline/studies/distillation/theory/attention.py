"""Two Transformers that compute sparse parities, and the networks that they rest on.

Liu 2024, sections 3.4.4.1 (Lemmas 10, 11) and 4.2.7.2.1 (Propositions 9, 10).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import judged, row
from pipeline.languages import parity
from pipeline.studies.distillation.constructions import ERRATUM, LIU, UNPUBLISHED
from pipeline.studies.distillation.exact import attention as exact
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.distillation.params import Selecting

HERE = LIU.format("7.2.1, Proposition {}")
LEMMAS = "Liu 2024, section 3.4.4.1, Lemma {}"
DEVIATIONS = (-0.25, -0.1, 0.0, 0.1, 0.25)  # of the spacing
ROUNDING = 1e-9


def check(entry: Selecting, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Lemmas 10 and 11 and on Propositions 9 and 10."""
    rng = stream(seed, entry.study, key)
    made = [*_line(rng), *_tables(rng)]
    for d, k in entry.sizes:
        made += [*_selecting(d, k), *_example(d, k, rng), *_spreading(d, k, entry, rng)]
    made += _widths()
    return theory.rows(entry.study, key, LIU.format("7.2.1"), judged("7", "lemmas", made))


def _line(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for spacing in (0.25, 1.0, 2.0):
        points = np.cumsum(spacing * (1 + rng.integers(0, 3, 9))) - 5.0
        values = rng.uniform(-2, 2, (9, 2))
        built = exact.interpolation(points.tolist(), values, spacing)
        off = [np.abs(built((points + shift * spacing)[:, None]) - values) for shift in DEVIATIONS]
        size = f"9 points at least {spacing:g} apart, two outputs"
        yield row(
            f"lemma-10.{spacing:g}",
            "A network of one hidden layer takes given values at points, and up to a quarter of "
            "their spacing around them: largest error",
            size,
            largest(*off),
            "<=",
            ROUNDING,
            source=LEMMAS.format(10),
        )
        (first, bias), (second, last) = built.norms()
        bounds = 4 / spacing, 4 * float(np.abs(points).max()) / spacing + 2, float(np.abs(values).max()), 0.0
        over = [norm - bound for norm, bound in zip((first, bias, second, last), bounds, strict=True)]
        yield row(
            f"lemma-10.{spacing:g}.norms",
            "with 4 |X| hidden units, and weights and biases within the printed bounds: largest excess",
            f"{built.hidden[0]} hidden units",
            largest(over, abs(built.hidden[0] - 36)),
            "<=",
            ROUNDING,
            source=LEMMAS.format(10),
        )


def _tables(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    points = np.array(list(itertools.product((-1.0, 0.0, 2.0), (0.0, 1.0), (0.5, 1.5))))
    values = rng.uniform(-2, 2, (len(points), 2))
    shifts = np.array(list(itertools.product((-0.25, 0.0, 0.25), repeat=3)))
    sources = {"source": LEMMAS.format(11), "erratum": ERRATUM.format("lemma-11")}
    size = f"{len(points)} points of 3 coordinates, {len(shifts)} deviations each"
    for form, bias, comparison, bound in (("printed", 3, ">=", 0.1), ("corrected", 2, "<=", ROUNDING)):
        built = exact.table(points, values, 1.0, bias)
        off = largest(*(np.abs(built(points + shift) - values) for shift in shifts))
        peak = largest(np.abs(built(points)))
        yield row(
            f"lemma-11.{form}",
            f"Indicators of {3} coordinates added up, less {bias}, make a table: largest error",
            size,
            off,
            comparison,
            bound,
            form=form,
            detail=f"largest output {peak:.3g}",
            **sources,
        )
    built = exact.table(points, values, 1.0)
    norms = built.norms()
    bounds = ((4.0, 4 * 2 + 2.0), (1.0, 3.0), (float(np.abs(values).max()), 0.0))
    over = [a - b for layer, bound in zip(norms, bounds, strict=True) for a, b in zip(layer, bound, strict=True)]
    wrong = [abs(a - b) for a, b in zip(built.hidden, (4 * 7, len(points)), strict=True)]
    yield row(
        "lemma-11.norms",
        "with 4 Σ |X_i| and |X| hidden units, and norms within the printed bounds: largest excess",
        f"{built.hidden[0]} and {built.hidden[1]} hidden units",
        largest(over, wrong),
        "<=",
        ROUNDING,
        source=LEMMAS.format(11),
    )


def _selecting(d: int, k: int) -> Iterator[dict[str, Any]]:
    least, size = exact.threshold(d, k), f"d = {d}, k = {k}, all strings by their numbers of ones"
    source = HERE.format(9)
    for name, c in (("threshold", least), ("beyond", 2 * least)):
        built = exact.selecting(d, range(k), c)
        right, off, mass = exact.measured(built, d, k)
        yield row(
            f"prop-9.{d}-{k}.{name}",
            f"Attention ∝ exp(c 1[i in S]) with c = {c:.2f}, where at most 1/(4k) leaves the "
            "support, and an MLP compute the parity: largest error",
            size,
            off,
            "<=",
            ROUNDING,
            source=source,
            detail=f"accuracy {right:.6f}, off the support {mass:.3g}",
        )
    built = exact.selecting(d, range(k), 1.0)
    right, _, mass = exact.measured(built, d, k)
    yield row(
        f"prop-9.{d}-{k}.one",
        "With c = 1 they do not: accuracy",
        size,
        right,
        "<=",
        0.9,
        source=UNPUBLISHED,
        detail=f"off the support {mass:.3g}",
    )
    masses = [
        abs(exact.measured(exact.selecting(d, range(k), c), d, k)[2] - exact.off_mass(d, k, c)) for c in (1.0, least)
    ]
    yield row(
        f"prop-9.{d}-{k}.mass",
        "Attention off the support is (d - k)/(k e^c + d - k): largest error",
        size,
        largest(masses),
        "<=",
        1e-12,
        source=UNPUBLISHED,
    )
    norms = built.mlp.norms()
    yield row(
        f"prop-9.{d}-{k}.width",
        "The MLP has 4 (k + 1) hidden units: difference",
        f"{built.mlp.hidden[0]} units",
        abs(built.mlp.hidden[0] - 4 * (k + 1)),
        "<=",
        0,
        source=source,
    )
    yield row(
        f"prop-9.{d}-{k}.norm",
        "and norms of at most 4k (k + 1): largest",
        f"k = {k}",
        largest(norms),
        "<=",
        4 * k * (k + 1),
        source=source,
    )


def _strings(d: int, count: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    return parity.sample(rng, (count,), d).astype(np.int64), count


def _signs(bits: np.ndarray, k: int) -> np.ndarray:
    """Return (N,) the parities of the first k bits as signs."""
    signs: np.ndarray = 1 - 2 * parity.labels(bits.astype(np.uint8), k, 1)
    return signs


def _example(d: int, k: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the printed example: where the last position is outside the support, and where it is inside."""
    sources = {"source": HERE.format("9, example"), "erratum": ERRATUM.format("proposition-9-example")}
    bits, count = _strings(d, 2000, rng)
    signs, c = _signs(bits, k), 2 * exact.threshold(d, k)
    size = f"d = {d}, k = {k}, c = {c:.2f}, {count} strings, last position outside the support"
    for form, printed, comparison, bound in (("printed", True, "<=", 0.9), ("corrected", False, ">=", 1)):
        built = exact.selecting(d, range(k), c, printed)
        outputs = built(bits)
        right = math.nan if np.isnan(outputs).any() else float((outputs * signs > 0).mean())
        how = (
            "p_n = e_3 and W_Q = W_K, as the example has it"
            if printed
            else "a query that does not depend on the position"
        )
        yield row(
            f"prop-9.{d}-{k}.example-{form}",
            f"With {how}: accuracy",
            size,
            right,
            comparison,
            bound,
            form=form,
            detail=f"attention of the last position to itself {built.attention(bits)[:, -1].max():.3f}",
            **sources,
        )
    support = [*range(k - 1), d - 1]
    moved = np.concatenate([bits[:, : k - 1], bits[:, k:], bits[:, k - 1 : k]], 1)  # the k-th bit comes last
    outputs = exact.selecting(d, support, c, True)(moved)
    yield row(
        f"prop-9.{d}-{k}.example-inside",
        "With the last position in the support the example holds as it stands: largest error",
        f"d = {d}, k = {k}, {count} strings",
        largest(np.abs(outputs - signs)),
        "<=",
        ROUNDING,
        source=HERE.format("9, example"),
    )


def _spreading(d: int, k: int, entry: Selecting, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    source = HERE.format(10)
    corners = exact.vertices(k)[0].astype(np.int64)
    rest, _ = _strings(d, len(corners) * entry.repeats, rng)
    bits = np.concatenate([np.tile(corners, (entry.repeats, 1)), rest[:, k:]], 1)
    signs = _signs(bits, k)
    size = f"d = {d}, k = {k}, all {len(corners)} strings on the support, {entry.repeats} beside each"
    built = exact.spreading(d, range(k))
    yield row(
        f"prop-10.{d}-{k}",
        "Attention 1/d on every position and a table of the support's bits compute the parity: largest error",
        size,
        largest(np.abs(built(bits) - signs)),
        "<=",
        ROUNDING,
        source=source,
    )
    yield row(
        f"prop-10.{d}-{k}.uniform",
        "Attention is 1/d: largest error",
        size,
        largest(np.abs(built.attention(bits[:50]) - 1 / d)),
        "<=",
        1e-12,
        source=source,
    )
    widths = built.mlp.hidden
    yield row(
        f"prop-10.{d}-{k}.width",
        "The hidden layers have 8k and 2^k units: differences",
        f"{widths}",
        largest(abs(widths[0] - 8 * k), abs(widths[1] - 2**k)),
        "<=",
        0,
        source=LEMMAS.format(11),
    )
    yield from _norms(d, k, built)
    yield _sums(d, k)
    yield row(
        f"prop-10.{d}-{k}.embedding-corrected",
        "With an embedding for each pair of bit and place: share of strings on the support that are wrong",
        size,
        float((built(bits) * signs <= 0).mean()),
        "<=",
        0,
        form="corrected",
        source=source,
        erratum=ERRATUM.format("proposition-10-embedding"),
    )


def _norms(d: int, k: int, built: exact.Transformer) -> Iterator[dict[str, Any]]:
    """Yield the printed bound on norms; and, where it matters, that it needs values which are 0 and 1."""
    source, bound, size = HERE.format(10), 2 ** (k + 2), f"d = {d}, k = {k}"
    matters = 4 * d > bound
    sources = {"erratum": ERRATUM.format("proposition-10-scale"), "form": "corrected"} if matters else {}
    yield row(
        f"prop-10.{d}-{k}.norm",
        "Where W_V multiplies by d, values are 0 and 1, and norms of the MLP are at most 2^(k + 2): largest",
        size,
        largest(built.mlp.norms()),
        "<=",
        bound,
        source=source,
        **sources,
    )
    if matters:
        plain = exact.spreading(d, range(k), scaled=False)
        yield row(
            f"prop-10.{d}-{k}.norm-printed",
            "Without that factor values are 0 and 1/d, and norms exceed 2^(k + 2): largest less that",
            size,
            largest(plain.mlp.norms()) - bound,
            ">=",
            1,
            source=source,
            erratum=sources["erratum"],
            form="printed",
        )


def _sums(d: int, k: int) -> dict[str, Any]:
    """Return the row that attention 1/d over embeddings v_z + p_i leaves only the number of ones."""
    parts = [
        (inside + outside, inside % 2, math.comb(k, inside) * math.comb(d - k, outside) / 2**d)
        for inside in range(k + 1)
        for outside in range(d - k + 1)
    ]
    chances = np.zeros((d + 1, 2))
    for ones, odd, chance in parts:
        chances[ones, odd] += chance
    return row(
        f"prop-10.{d}-{k}.embedding-printed",
        "With embeddings v_z + p_i, as the proof of Proposition 9 has them, attention "
        "1/d passes on how many ones there are and nothing else: largest accuracy of any MLP behind it",
        f"d = {d}, k = {k}, all strings",
        float(chances.max(1).sum()),
        "<=",
        0.95,
        form="printed",
        source=HERE.format(10),
        erratum=ERRATUM.format("proposition-10-embedding"),
    )


def _widths() -> Iterator[dict[str, Any]]:
    """Yield from which k on 2^k units are enough for both layers."""
    sources = {"source": HERE.format(10), "erratum": ERRATUM.format("proposition-10-width")}
    least = next(k for k in range(2, 20) if 8 * k <= 2**k)
    widths = {k: exact.spreading(k + 1, range(k)).mlp.hidden for k in range(1, 8)}
    over = [k for k, hidden in widths.items() if max(hidden) > 2**k]
    sizes = ", ".join(f"k = {k}: {hidden[0]} and {hidden[1]}" for k, hidden in widths.items())
    yield row(
        "prop-10.width-printed",
        "By Lemma 11 the hidden layers are wider than the printed 2^k for some k: how many of k = 1 to 7",
        "the first layer has 8k units",
        len(over),
        ">=",
        1,
        form="printed",
        detail=sizes,
        **sources,
    )
    yield row(
        "prop-10.width-corrected",
        "Widths are at most max(8k, 2^k), which is 2^k from this k on: difference from 6",
        "k = 1 to 7",
        abs(least - 6) + sum(max(hidden) > max(8 * k, 2**k) for k, hidden in widths.items()),
        "<=",
        0,
        form="corrected",
        detail=sizes,
        **sources,
    )
