"""DEP-T7, T1: attention by position, and memorizing with one layer (Chen and Zou 2024, Lemmas 1 to 4, Theorem 1)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks
from pipeline.models.attention_only import network as model
from pipeline.studies.depth import constructions
from pipeline.studies.depth.constructions import Model
from schemas import theory

TOKENS, LENGTH = 6, 7  # of the gadgets' inputs
SMALL = (3, 4), (4, 5)  # tokens, and tokens per sequence, where every sequence is memorized
PATTERN = "blocks.0.attn.pattern"
FIRST = "Chen and Zou 2024, Theorem 1 and section 12"
SECTION_10 = "Chen and Zou 2024, section 10"
SIGN, WIDTH = "depth-lemma-2-sign", "depth-lemma-4-width"


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Lemmas 1 to 4 and Theorem 1.

    Gadgets run on ``entry.inputs`` random inputs, and datasets have ``entry.sequences``.
    """
    checks = [*_gadgets(entry.inputs, theory_id, seed), *_memorizing(entry, theory_id, seed), *_width()]
    return theory.rows("depth", theory_id, FIRST, checks)


def _attention(W: NDArray[np.float64], ids: NDArray) -> NDArray[np.float64]:
    """Return the pattern of one head on inputs of the gadgets' shape, (N, T, T)."""
    d = TOKENS + LENGTH
    spec = model.Spec(1, (1,), "relu", d, LENGTH, TOKENS, TOKENS, "task")
    weights = {"blocks.0.W": W[None, None], "blocks.0.V": np.eye(d)[None, None], "head.W": np.eye(d, TOKENS)[None]}
    return Model(spec, weights).run(ids, [PATTERN])[1][PATTERN][0, :, 0]


def _gadgets(inputs: int, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    rng = stream(seed, "depth", theory_id, "gadgets")
    ids = rng.integers(TOKENS, size=(inputs, LENGTH))
    alpha = rng.uniform(0, 10, (LENGTH, LENGTH))
    size = f"{TOKENS} tokens, {LENGTH} positions, {inputs} inputs"
    attention = _attention(tasks.reading(alpha, TOKENS, TOKENS + LENGTH), ids)
    yield {
        "check": "instructive",
        "statement": "With W = A on the position rows attention is A for every input: largest difference",
        "source": f"{SECTION_10}, Lemma 1",
        "size": size,
        "measured": np.abs(attention - alpha).max(),
        "comparison": "<=",
        "bound": 0.0,
    }
    free = np.zeros((TOKENS + LENGTH, TOKENS + LENGTH))
    free[:TOKENS, :TOKENS] = rng.normal(size=(TOKENS, TOKENS))
    forbidden = rng.random((LENGTH, LENGTH)) < 0.5
    unmasked = _attention(free, ids)
    wall = tasks.reading(np.where(forbidden, tasks.FORBIDDEN, 0.0), TOKENS, TOKENS + LENGTH)
    masked = _attention(free + wall, ids)
    yield {
        "check": "constrained-allowed",
        "statement": "A large negative entry at pairs of positions leaves all others as they were: largest difference",
        "source": f"{SECTION_10}, Lemma 2",
        "size": size,
        "measured": np.abs(masked - unmasked)[:, ~forbidden].max(),
        "comparison": "<=",
        "bound": 0.0,
    }
    for form, weights in (("printed", _attention(free - wall, ids)), ("corrected", masked)):
        yield {
            "check": f"constrained-{form}",
            "statement": "With W_pp(i, j) towards infinity, the first of two printed ways to mask a pair, all "
            "attention goes there instead: largest weight at masked pairs"
            if form == "printed"
            else "With a large negative entry masked pairs have no weight: largest weight",
            "source": f"{SECTION_10}, Lemma 2",
            "size": size,
            "measured": weights[:, forbidden].max(),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": 0.0,
            "erratum": SIGN,
            "form": form,
        }


def _memorizing(entry: Any, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    angles = stream(seed, "depth", theory_id, "directions").uniform(0, 2 * np.pi, entry.sequences)
    vectors = np.stack([np.cos(angles), np.sin(angles)], -1) * np.arange(1.0, len(angles) + 1)[:, None]
    outputs = vectors @ constructions.nearest(vectors, np.arange(len(vectors)))
    yield {
        "check": "directions",
        "statement": "A linear classifier tells vectors of different directions apart, in the plane: share right",
        "source": "Chen and Zou 2024, Lemma 3",
        "size": f"{len(vectors)} vectors of 2 entries",
        "measured": constructions.accuracy(outputs[None], np.arange(len(vectors))),
        "comparison": ">=",
        "bound": 1.0,
    }
    for tokens, length in SMALL:
        everything = np.array([*itertools.product(range(tokens), repeat=length)])
        labels = stream(seed, "depth", theory_id, "labels", tokens).permutation(len(everything))
        ids = np.column_stack([everything, np.full(len(everything), tokens)])
        yield _memorized(f"memorize-all-{tokens}-{length}", "every sequence", ids, labels, tokens)
    for count in sorted({entry.sequences // 10, entry.sequences}):
        rng = stream(seed, "depth", theory_id, "sequences", count)
        sample = tasks.classification(rng, count, entry.tokens, 6)
        yield _memorized(f"memorize-{count}", "random sequences", sample.ids_NxT, sample.label_N, entry.tokens)


def _memorized(name: str, which: str, ids: NDArray, labels: NDArray, tokens: int) -> dict[str, Any]:
    built = constructions.memorizer(ids, labels, tokens + 1)
    outputs, _ = built.run(ids)
    return {
        "check": name,
        "statement": f"One layer of n heads, as built, gives {which} a label of its own: share right",
        "size": f"{len(ids)} sequences of {ids.shape[1] - 1} out of {tokens} tokens",
        "measured": constructions.accuracy(outputs, labels),
        "comparison": ">=",
        "bound": 1.0,
        "detail": f"n={ids.shape[1]}, d'={built.spec.width}, "
        f"smallest margin {constructions.margin(outputs, labels).min():.3g}",
        "claim": "7",
        "part": "T1",
    }


def _width() -> Iterator[dict[str, Any]]:
    """Yield rows on Lemma 4: with k tokens before the sign, d + k rows hold one position too few."""
    d, k = 3, 1
    printed, corrected = max(k * d, d + k), constructions.memorization_width(d, k + 1)
    for form, width in (("printed", printed), ("corrected", corrected)):
        yield {
            "check": f"width-{form}",
            "statement": "With d' = max(kd, d + k), k tokens and the sign, the input does not fit: missing rows"
            if form == "printed"
            else "With n = k + 1 in the place of k, as in Theorem 1, it does: missing rows",
            "source": "Chen and Zou 2024, Lemma 4, beside Theorem 1",
            "size": f"d={d}, k={k}",
            "measured": float(max(0, d + k + 1 - width)),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": 0.0,
            "erratum": WIDTH,
            "form": form,
        }
