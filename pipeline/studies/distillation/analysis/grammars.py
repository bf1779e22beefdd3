"""The grammars, the best predictors, and attention with weights written down: what needs no trained model.

Figures 4.6 and 4.23, sections 4.2.8.3 and 4.2.7.2.1; chapter TH-LEN, A-ORACLE, TH-P9, TH-P10.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import pcfg
from pipeline.studies.distillation.exact import attention, inside

Row = dict[str, Any]
FIGURE = "Liu 2024, Figure 4.23"
CODE = "published code, Panigrahi et al. 2025"
MAIN = 0.3  # mask rate of the source, where the full grammars are compared
DRAWN = 15  # root of the tree that is drawn
# Accuracies of trained models, by grammar and task (chapter E7, E9, E10); those of figures are read from graphics.
TEACHER = (0.98, "Figure 4.4, right: teacher after 16,000 steps")
MASKED = {"cfg3b": TEACHER, "cfg3b_pdcode": TEACHER, "cfg3i": (0.75, "Figure 4.30: student of 8 heads")}
NEXT = {("cfg3f", 3): (0.9, "Figure 4.35: student of 8 heads"), ("cfg3g", 3): (0.84, "Figure 4.35: student of 8 heads")}


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the tables of the grammars."""
    lengths = {name: _lengths(context, name) for name in pcfg.NAMES}
    with one_thread():
        oracle = [*_truncated(context), *_full(context), *_following(context)]
    return {
        "grammar_rules": pl.DataFrame(list(_rules())),
        "pcfg_length_stats": pl.DataFrame([row for name in lengths for row in _stats(name, lengths[name])]),
        "pcfg_length_law": pl.DataFrame([row for name in lengths for row in _law(name, lengths[name])]),
        "parse_tree": pl.DataFrame(list(_tree(context)), infer_schema_length=None),
        "oracle": pl.DataFrame(oracle, infer_schema_length=None),
        "constructions": pl.DataFrame(list(_constructions(context)), infer_schema_length=None),
    }


def _rules() -> Iterator[Row]:
    for name in pcfg.NAMES:
        for symbol, place, side, chance in pcfg.nodes_of(name):
            yield {
                "grammar": name,
                "lhs": symbol,
                "rule_idx": place,
                "rhs": list(side),
                "depth": pcfg.depth(symbol),
                "level": pcfg.level(symbol),
                "prob": chance,
                "source": CODE if name in pcfg.WITHOUT else FIGURE,
            }


def _lengths(context: Inputs, name: str) -> NDArray[np.int64]:
    rng = stream(context.seed, context.study, context.experiment, "lengths", name)
    return pcfg.strings(rng, name, context.entry.sentences)[1]


def _stats(name: str, drawn: NDArray[np.int64]) -> Iterator[Row]:
    law = pcfg.length_law(name)
    at = np.arange(len(law))
    mean = float(at @ law)
    least, most = pcfg.extent(name)
    exact: dict[str, tuple[float, float]] = {
        f"q{round(100 * q)}": (pcfg.quantile(law, q), float(np.quantile(drawn, q, method="inverted_cdf")))
        for q in pcfg.QUANTILES
    }
    exact |= {
        "mean": (mean, float(drawn.mean())),
        "sd": (math.sqrt(float((at - mean) ** 2 @ law)), float(drawn.std())),
        "min": (least, drawn.min()),
        "max": (most, drawn.max()),
    }
    published = dict(zip(exact, pcfg.PERCENTILES.get(name, ()), strict=False))
    for quantity, (value, estimate) in exact.items():
        yield {
            "grammar": name,
            "quantity": quantity,
            "exact": float(value),
            "sampled": float(estimate),
            "n_sampled": len(drawn),
            "published": None if quantity not in published else float(published[quantity]),
        }


def _law(name: str, drawn: NDArray[np.int64]) -> Iterator[Row]:
    law = pcfg.length_law(name)
    shares = np.bincount(drawn, minlength=len(law)) / len(drawn)
    total = np.cumsum(law)
    for length in np.flatnonzero(law):
        yield {
            "grammar": name,
            "length": int(length),
            "probability": float(law[length]),
            "cumulative": float(total[length]),
            "sampled": float(shares[length]),
        }


def _tree(context: Inputs) -> Iterator[Row]:
    rng = stream(context.seed, context.study, context.experiment, "tree")
    nodes = pcfg.sample(rng, "cfg3b", 1, DRAWN).tree(0)
    starts: dict[int, int] = {}
    for number, (place, symbol, parent, first, end) in enumerate(nodes):
        starts.setdefault(place, number)
        yield {
            "grammar": "cfg3b",
            "root": DRAWN,
            "node": number,
            "parent": starts[place - 1] + parent if place else None,
            "level": pcfg.level(symbol),
            "symbol": symbol,
            "first": first,
            "last": end - 1,
        }


# --- best predictors ---------------------------------------------------------------------------------------------


def _scores(keys: Row, p_NxTxA: NDArray[Any], words_NxT: NDArray[Any], chosen_NxT: NDArray[Any]) -> Iterator[Row]:
    """Yield accuracy and loss of distributions at the chosen tokens; errors are over strings, in which tokens depend on
    each other."""
    p, x = p_NxTxA[chosen_NxT], words_NxT[chosen_NxT]
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(p > 0, p * np.log(p), 0).sum(-1)
        losses = -np.log(p[np.arange(len(x)), x])
    scores = {"acc": (p.max(-1), p.argmax(-1) == x), "loss": (entropy, losses)}
    published = keys.pop("published", None)
    counts = chosen_NxT.sum(1)
    for quantity, (expected, realised) in scores.items():
        value = float(expected.mean())
        by_string = np.zeros(chosen_NxT.shape)
        by_string[chosen_NxT] = expected
        spread = by_string.sum(1) - value * counts
        yield keys | {
            "quantity": quantity,
            "value": value,
            "realised": float(realised.mean()),
            "n": len(x),
            "se": float(np.sqrt((spread**2).sum()) / counts.sum()),
            "published": published[0] if published and quantity == "acc" else None,
            "where": published[1] if published and quantity == "acc" else None,
        }


def _masked(context: Inputs, name: str, root: int, n: int, rate: float) -> Iterator[Row]:
    """Yield what can be done at best with masked tokens, without and with selected positions hidden, and without
    context."""
    keys: Row = {"grammar": name, "root": root, "mask_rate": rate}
    rng = stream(context.seed, context.study, context.experiment, "masked", name, root, str(rate))
    words, seen, kind, lengths = pcfg.masked(rng, name, root, n, rate)
    for task, hide in (("masked", False), ("hidden", True)):
        posterior = inside.best(name, root, seen, lengths, rate, kind, hide)
        published = MASKED.get(name) if root == pcfg.ROOT and rate == MAIN else None
        yield from _scores(keys | {"task": task, "published": published}, posterior, words, kind != pcfg.NONE)
    for quantity, value in zip(
        ("plateau_loss", "plateau_acc"), inside.plateau(pcfg.token_law(name, root)), strict=True
    ):
        yield keys | {"task": "masked", "quantity": quantity, "value": value, "n": 0}


def _truncated(context: Inputs) -> Iterator[Row]:
    for root in context.entry.roots:
        for rate in context.entry.rates:
            yield from _masked(context, "cfg3b", root, context.entry.truncated, rate)
        yield from _windows(context, root)


def _windows(context: Inputs, root: int) -> Iterator[Row]:
    """Yield medians of L_robust and L_close at a quarter, a half and three quarters of the longest string."""
    rng = stream(context.seed, context.study, context.experiment, "windows", root)
    tokens, lengths = pcfg.strings(rng, "cfg3b", context.entry.truncated // 4, root)
    words = pcfg.padded(tokens, lengths)[:, 1:]
    longest = pcfg.extent("cfg3b", root)[1]
    for task, hide in (("masked", False), ("hidden", True)):
        parts = []
        for quarter in (1, 2, 3):
            place = np.full(len(lengths), quarter * longest // 4)
            some = place < lengths
            own = words[some], lengths[some], place[some]
            parts.append(inside.distances("cfg3b", root, *own, context.entry.ngrams, MAIN, hide))
        for i, quantity in enumerate(("robust", "close")):
            for n, values in zip(context.entry.ngrams, np.concatenate([part[i] for part in parts], 1), strict=True):
                yield {
                    "grammar": "cfg3b",
                    "root": root,
                    "mask_rate": MAIN,
                    "task": task,
                    "quantity": quantity,
                    "ngram": n,
                    "value": float(np.median(values)),
                    "n": len(values),
                }


def _full(context: Inputs) -> Iterator[Row]:
    for name in pcfg.NAMES:
        for rate in context.entry.rates if name == "cfg3b" else [MAIN]:
            yield from _masked(context, name, pcfg.ROOT, context.entry.full, rate)


def _following(context: Inputs) -> Iterator[Row]:
    """Yield what can be foretold of the last token of spans from what is left of it, L^(l) of section 4.2.9."""
    for name in pcfg.PERCENTILES:
        rng = stream(context.seed, context.study, context.experiment, "next", name)
        drawn = pcfg.sample(rng, name, context.entry.full)
        words = pcfg.padded(drawn.tokens, drawn.lengths)[:, 1:]
        levels = pcfg.padded(drawn.boundary_levels, drawn.lengths, 0, 0)[:, 1:]
        for level in context.entry.levels:
            posterior = inside.following(name, pcfg.ROOT, words, level)
            keys: Row = {"grammar": name, "root": pcfg.ROOT, "task": "next", "level": level, "mask_rate": None}
            yield from _scores(
                keys | {"published": NEXT.get((name, level))}, posterior, words, pcfg.ends(levels, level)
            )


# --- attention ---------------------------------------------------------------------------------------------------


def _constructions(context: Inputs) -> Iterator[Row]:
    for d, k in context.entry.sizes:
        least = attention.threshold(d, k)
        for c in sorted({*context.entry.sharpness, least}):
            built = attention.selecting(d, range(k), c)
            yield _construction(9, d, k, built, attention.measured(built, d, k), c)
        built = attention.spreading(d, range(k))
        corners, signs = attention.vertices(k)
        bits = np.zeros((len(corners), d), np.int64)  # what stands outside the support has the weight 0
        bits[:, :k] = corners
        bits[:, k:] = stream(context.seed, context.study, context.experiment, "bits", d, k).integers(
            0, 2, (len(corners), d - k)
        )
        off = np.abs(built(bits) - signs[:, 0])
        mass = float(built.attention(bits)[:, k:].sum(1).max())
        yield _construction(10, d, k, built, (float((off < 1).mean()), float(off.max()), mass))


def _construction(
    prop: int, d: int, k: int, built: attention.Transformer, stats: tuple[float, float, float], c: float | None = None
) -> Row:
    hidden, norms = built.mlp.hidden, built.mlp.norms()
    return {
        "prop": prop,
        "d": d,
        "k": k,
        "c": c,
        "accuracy": stats[0],
        "max_err": stats[1],
        "off_mass": min(1.0, stats[2]),
        "threshold_c": None if c is None else attention.threshold(d, k),
        "hidden1": hidden[0],
        "hidden2": hidden[1] if len(hidden) > 1 else None,
        "w1_max": norms[0][0],
        "b1_max": norms[0][1],
    }
