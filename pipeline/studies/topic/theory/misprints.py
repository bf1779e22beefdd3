"""Misprints of the proofs, beside what holds: printed and corrected forms, executed (chapter 3.9)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions, judged, row
from pipeline.languages.topic import Masking, Population
from pipeline.studies.topic.constructions import OWN_CHECK, SOURCE, masking_of, slip
from pipeline.studies.topic.exact import stage_two
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Misprints

HERE = SOURCE.format("")
# Rows of Table 2.1: attention to the same word, to other words of its topic, and to words of other topics.
TABLE = {
    "Adam 0.003": (0.00759, 0.0108, 0.00689),
    "Adam 0.01": (0.00811, 0.010, 0.00707),
    "Adam 0.03": (0.00453, 0.0116, 0.00665),
    "SGD 0.01": (0.0105, 0.0106, 0.00673),
    "SGD 0.03": (0.0140, 0.0103, 0.00641),
}
EPSILON = 1e-12  # of a normalisation, as BERT has it


def check(entry: Misprints, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on misprints; those that a theorem's own checks need stand with them."""
    rng = stream(seed, entry.study, key)
    masking = masking_of(entry)
    made = [
        *_softmax(entry, rng),
        *_places(masking),
        *judged("1", "constants of Theorem 2.1.3", _constants(entry)),
        *_simplified(masking, rng),
        *_combination(entry, masking),
        *_caption(),
        *_released(),
    ]
    return theory.rows(entry.study, key, HERE, made)


def _softmax(entry: Misprints, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield which index the softmax sums over, given that each column of attention adds up to 1."""
    scores = np.exp(rng.normal(size=(entry.draws, 7, 7)))
    for form, axis, comparison, bound in (("printed", 2, ">=", 0.01), ("corrected", 1, "<=", 1e-12)):
        index = "second" if axis == 2 else "first"
        off = np.abs((scores / scores.sum(axis, keepdims=True)).sum(1) - 1).max(1)
        yield row(
            f"softmax.{form}",
            f"With the softmax normalised over the {index} index, columns of attention add up to 1: "
            + ("smallest of the largest distances" if axis == 2 else "largest distance"),
            f"{entry.draws} random score matrices of 7 positions",
            smallest(off) if axis == 2 else largest(off),
            comparison,
            bound,
            **slip("softmax", form),
            source=SOURCE.format(".1, before equation 2.5, and .6.1"),
        )


def _places(masking: Masking) -> Iterator[dict[str, Any]]:
    """Yield equation 2.20 in a finite document: i is a word, j a position, and 'i = j' means that j shows i."""
    known = Population(3, 2, 2, masking)
    document = np.array([1, 1, 2, 4, 3, 0, 6, 2, 4])  # of the words 1 to 6, and [MASK]
    share = np.bincount(document, minlength=known.words + 1) / len(document)
    alpha, beta = 3.0, 7.0
    topic = known.topic_V
    weights_NxN = np.where(topic[document][:, None] == topic[document], alpha, 1.0)
    weights_NxN[document[:, None] == document] = beta
    attention_NxN = weights_NxN / weights_NxN.sum(0)
    shown_VxN = np.eye(known.words + 1)[document].T @ attention_NxN
    positions = np.flatnonzero(document)
    off: dict[str, list[float]] = {"printed": [], "corrected": []}
    for j in positions:
        word = document[j]
        for form, query in (("printed", j + 1), ("corrected", word)):
            for i in range(1, known.words + 1):
                weight = beta if i == query else alpha if topic[i] == topic[word] else 1.0
                off[form].append(abs(share[i] * len(document) * weight / weights_NxN[:, j].sum() - shown_VxN[i, j]))
    for form, comparison, bound in (("printed", ">=", 0.01), ("corrected", "<=", 1e-12)):
        case = "i = j, a word and a position," if form == "printed" else "the word at position j being i"
        yield row(
            f"equation-2.20.{form}",
            f"With {case} as the case of the same word, (2.20) gives what a position attends to: largest distance",
            "a document of 9 positions",
            largest(off[form]),
            comparison,
            bound,
            **slip("equation-2.20", form),
            source=SOURCE.format(".7.6, equation 2.20"),
        )


def _constants(entry: Misprints) -> Iterator[dict[str, Any]]:
    """Yield how the printed lambda_1 differs from the proof's c_5, and where the proof's argument reaches it."""
    where = SOURCE.format(".4.3, Theorem 2.1.3, and .7.7, Case 1")
    maskings = [(entry.p_mask, entry.p_keep), *entry.maskings]
    ratios, distances, reached, swapped = [], [], [], []
    for p_m, p_c in maskings:
        masking = Masking(p_m, p_c, p_c)
        a, rho = masking.a, masking.rho
        c_4 = 1 / (1 - a)
        c_5 = (1 + c_4 * rho) * (2 - c_4) / (2 * c_4)
        printed = (1 - a + rho) * (1 + a) / (2 * (1 - a))
        ratios.append(printed / c_5)
        distances.append(abs(c_5 - (1 - a + rho) * (1 - 2 * a) / (2 * (1 - a))))
        swapped.append(abs(printed - (1 + c_4 * rho) * (2 - 1 / c_4) / 2))
        # (2.28) exceeds (2.30) for all v exactly if twice its fraction is less than c_4 (2 - c_4).
        reached.append((2 / (1 + (1 + c_4 * rho) / printed) < 2 - c_4) == (a < 0.2))
    size = f"{len(maskings)} maskings"
    yield row(
        "lambda-1.printed",
        "The printed λ₁ is the constant c₅ with which the proof ends: smallest ratio of the two",
        size,
        smallest(ratios),
        ">=",
        1.1,
        source=where,
        **slip("lambda-1", "printed"),
        detail=f"{ratios[0]:.4f} with the masking of the source",
    )
    yield row(
        "lambda-1.corrected",
        "c₅ is (1 - a + ρ)(1 - 2a)/(2(1 - a)) with a = (1 - p_c) p_m and ρ = p_m p_r: largest distance",
        size,
        largest(distances),
        "<=",
        1e-14,
        source=where,
        **slip("lambda-1", "corrected"),
    )
    yield row(
        "lambda-1.swapped",
        "The printed λ₁ is what 2 - 1/c₄ in place of (2 - c₄)/c₄ gives: largest distance",
        size,
        largest(swapped),
        "<=",
        1e-14,
        source=OWN_CHECK,
    )
    yield row(
        "lambda-1.reached",
        "The proof's comparison of (2.28) with (2.30) reaches up to the printed λ₁ exactly where "
        "a < 0.2: maskings for which it is otherwise",
        size,
        exceptions(np.logical_not(reached)),
        "<=",
        0,
        source=OWN_CHECK,
    )
    grid = np.linspace(1e-3, 0.4999, 60)
    needed = [(1 / (1 - (1 - p_c) * p_m) + 1) ** 2 + 1 for p_m in grid for p_c in grid]
    yield row(
        "assumption.v",
        "Ten words in a topic are enough for Assumption 2.1.3, v > (c₄ + 1)² + 1, wherever p_m and p_c "
        "are below one half: largest right side",
        f"{len(needed)} maskings",
        largest(needed),
        "<=",
        10,
        source=SOURCE.format(".4.3, Assumptions 2.1.3 and 2.1.4"),
        part="Assumption 2.1.3",
    )


def _simplified(masking: Masking, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield equations 2.26 to 2.30 against the exact case 3, far into the asymptotic regime."""
    T, tau = 10**10, 10**5
    c_4, rho = 1 / (1 - masking.a), masking.rho
    places = [10 ** rng.uniform(1, 3) for _ in range(20)]
    for v in (10, 300):
        known = Population(T, v, tau, masking)
        p_1, p_2 = known.present, known.absent
        off: dict[str, list[float]] = {"printed": [], "corrected": []}
        for place in places:
            g = place * T
            d_2 = stage_two.offsets(known, "paper")[1]
            z = p_2 * g * v + d_2
            kappa = c_4 * rho / known.words

            def q(share: float, kappa: float = kappa) -> float:
                return c_4 * share - kappa

            exact = (1 - q(p_1 / z)) ** 2 + (v * tau - 1) * q(p_1 / z) ** 2 + v * q(p_2 * g / z) ** 2
            exact += v * (T - tau - 1) * q(p_2 / z) ** 2
            off["printed"].append(abs(1 + q(p_2 * g / z) ** 2 - exact))
            off["corrected"].append(abs(1 + v * q(p_2 * g / z) ** 2 - exact))
        size = f"T = 1e10, v = {v}, τ = 1e5, γ from 10 T to 1000 T"
        for form, comparison, bound in (("printed", ">=", 5e-5), ("corrected", "<=", 1e-5)):
            factor = "without the factor v" if form == "printed" else "with the factor v"
            ends = smallest if form == "printed" else largest
            yield row(
                f"equation-2.26.{form}.{v}",
                f"Case 3 of the proof tends to (2.26) {factor} on its last square: "
                f"{'smallest' if form == 'printed' else 'largest'} distance",
                size,
                ends(off[form]),
                comparison,
                bound,
                **slip("equation-2.26", form),
                source=SOURCE.format(".7.7, equations 2.26 and 2.27"),
            )
        # The comparison of (2.28) with (2.30).
        c_5 = (1 + c_4 * rho) * (2 - c_4) / (2 * c_4)
        for form, fraction, comparison in (
            ("printed", c_4 / (1 + c_4 * rho), "<="),
            ("corrected", (1 + c_4 * rho) / c_5, ">="),
        ):
            lead = (1 - c_4 / (v * (1 + fraction))) ** 2 - (1 - c_4 * (2 - c_4) / v)
            term = "c₄/(1 + c₄ρ)" if form == "printed" else "(1 + c₄ρ)/c₅, as (2.28) has it"
            yield row(
                f"comparison.{form}.{v}",
                f"With the inner fraction {term}, the bound on Case 1 exceeds (2.30): lead",
                f"v = {v}",
                lead,
                comparison,
                0 if form == "printed" else 1e-6,
                **slip("comparison", form),
                source=SOURCE.format(".7.7, comparing the cases"),
            )


def _combination(entry: Misprints, masking: Masking) -> Iterator[dict[str, Any]]:
    """Yield the normaliser of queries of absent topics, where the cases of the proof are combined."""
    off: dict[str, list[float]] = {"printed": [], "corrected": []}
    for size in entry.sizes:
        known = Population(size[0], size[1], size[2], masking)
        T, v, tau, p_1, p_2 = known.topics, known.v, known.tau, known.present, known.absent
        absent_DxQ = ~(known.law_DxV[:, 1:] > 0)
        for g in (0.5, 5.0, 50.0):
            # The words' part of the attention of a query whose topic the document lacks.
            total_DxQ = known.masked_DxV[:, 1:] @ stage_two.family(known, g, g)[1:]
            rest = p_1 * v * tau + p_2 * v * (T - tau - 1)
            for form, p in (("printed", p_1), ("corrected", p_2)):
                off[form].append(float(np.abs((p * g * v + rest) / total_DxQ - 1)[absent_DxQ].max()))
    for form, comparison, bound in (("printed", ">=", 0.05), ("corrected", "<=", 1e-12)):
        term = "p₁γv" if form == "printed" else "p₂γv"
        ends = smallest if form == "printed" else largest
        yield row(
            f"combination.{form}",
            f"Where the cases are combined, attention of a query of an absent topic adds up to "
            f"{term} and more: {'smallest' if form == 'printed' else 'largest'} relative distance",
            f"{len(off[form])} settings",
            ends(off[form]),
            comparison,
            bound,
            **slip("combination", form),
            source=SOURCE.format(".7.7, combining the cases"),
        )


def _caption() -> Iterator[dict[str, Any]]:
    """Yield what the caption of Table 2.1 says, against the numbers of the table."""
    first = sum(same > topical for same, topical, _ in TABLE.values())
    second = sum(topical > other for _, topical, other in TABLE.values())
    for form, count, what, comparison, bound in (
        ("printed", first, "the same word is above that to other words of its topic", "<=", 2),
        ("corrected", second, "other words of the topic is above that to other topics", ">=", 5),
    ):
        yield row(
            f"table-2.1.{form}",
            f"Printed rows of five in which attention to {what}",
            f"{len(TABLE)} rows",
            count,
            comparison,
            bound,
            **slip("table-2.1", form),
            source=SOURCE.format(".5.3, Table 2.1"),
        )


def _released() -> Iterator[dict[str, Any]]:
    """Yield what the released code makes of one-hot embeddings: its class BertEmbeddings normalises them, whatever the
    setting ``layer_norm`` says (src/transformer.py, BertModelCustom)."""
    ids = 104  # of words, [MASK] and three more
    rows = np.eye(ids)
    read = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + EPSILON)
    own, others = np.diag(read), read[~np.eye(ids, dtype=bool)]
    entry = math.sqrt(ids - 1)
    for form, what, measured, comparison, bound in (
        ("printed", "is one-hot: smallest distance of its own entry from 1", smallest(np.abs(own - 1)), ">=", 1.0),
        (
            "corrected",
            "has an own entry of √103 and others of -1/√103: largest distance",
            largest(np.abs(own - entry), np.abs(others + 1 / entry)),
            "<=",
            1e-8,
        ),
    ):
        yield row(
            f"normalised-embeddings.{form}",
            f"What the released attention reads of a word (gain 1, no bias, no type embedding) {what}",
            f"{ids} ids",
            measured,
            comparison,
            bound,
            **slip("normalised-embeddings", form),
            source=SOURCE.format(".5, the model, and the released code"),
        )
