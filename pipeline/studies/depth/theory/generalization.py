"""DEP-T5: two layers tell templates apart whatever fills them (Chen and Zou 2024, Theorem 5, section 14.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth import constructions
from schemas import theory

FEWEST_TOKENS = 3  # an alphabet in which a template leaves choices open
PATTERN, FIRST_LAYER = "blocks.1.attn.pattern", "blocks.0.out"
ANGLE = 1e-9  # smallest difference from 1 of a cosine that float64 can tell from rounding
THEOREM_5 = "Chen and Zou 2024, Theorem 5 and section 14.2"
VALUES, ENCODING = "depth-theorem-5-values", "depth-theorem-5-encoding"


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Theorem 5.

    Inputs are all sequences of each of ``entry.lengths`` over as many tokens, and ``entry.inputs`` random
    ones over ``entry.tokens``.
    """
    checks: list[dict[str, Any]] = []
    for length in entry.lengths:
        checks += _templates(entry, length, theory_id, seed)
    checks += _errata(max(each for each in entry.lengths if each <= 4))
    return theory.rows("depth", theory_id, THEOREM_5, checks)


def every_sequence(length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all sequences of this length over as many tokens, at least 3, and their templates.

    The sequences have the CLS token.
    """
    tokens = max(length, FEWEST_TOKENS)
    ids = np.array([*itertools.product(range(tokens), repeat=length)])
    return np.column_stack([ids, np.full(len(ids), tokens)]), tasks.template_of(ids)


def _templates(entry: Any, length: int, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    templates = tasks.templates(length)
    ids, labels = every_sequence(length)
    rng = stream(seed, "depth", theory_id, "sequences", length)
    random = tasks.template_matching(rng, entry.inputs, length, (0, entry.tokens), entry.tokens, None)
    for name, which, alphabet, (x, y) in (
        ("all", "every sequence", int(ids.max()), (ids, labels)),
        ("random", "random sequences", entry.tokens, (random.ids_NxT, random.label_N)),
    ):
        built = constructions.generalizer(templates, alphabet)
        outputs, _ = built.run(x)
        yield {
            "check": f"parse-map-{name}-{length}",
            "statement": f"Two layers of one head, as built, tell the template of {which}: share right",
            "size": f"l={length}, {len(templates)} templates, {len(x)} sequences over {alphabet} tokens",
            "measured": constructions.accuracy(outputs, y),
            "comparison": ">=",
            "bound": 1.0,
            "detail": f"d'={built.spec.width}, smallest margin {constructions.margin(outputs, y).min():.3g}",
            "claim": "7",
            "part": "T5",
        }
    directions = constructions.generalizer(templates, length).weights["head.W"][0]
    cosines = directions.T @ directions - np.eye(len(templates))
    yield {
        "check": f"angles-{length}",
        "statement": "What the classifier reads of two templates is not parallel: largest cosine",
        "size": f"l={length}, {len(templates)} templates",
        "measured": cosines.max(),
        "comparison": "<=",
        "bound": 1 - ANGLE,
        "detail": f"1 less {1 - cosines.max():.3g}",
    }


def _errata(length: int) -> Iterator[dict[str, Any]]:
    templates = tasks.templates(length)
    ids, labels = every_sequence(length)
    tokens = int(ids.max())
    size = f"l={length}, {len(templates)} templates, every sequence over {tokens} tokens"
    right = constructions.generalizer(templates, tokens)
    printed = constructions.generalizer(templates, tokens, "printed")

    rows = printed.run(ids, [FIRST_LAYER])[1][FIRST_LAYER][0, :, :, :tokens]
    left = np.array([np.abs(rows[labels == y]).max() for y in range(len(templates))])
    read = constructions.last_columns(right, ids)[0][:, tokens + 1 : tokens + 1 + length]
    apart = np.array([np.ptp(read[labels == y], axis=0).max() for y in range(len(templates))])
    for form, each in (("printed", left), ("corrected", apart)):
        yield {
            "check": f"values-{form}",
            "statement": "The value matrix of the first layer is to clear the token rows, but takes a token away as "
            "often as it occurs: templates that keep some of it"
            if form == "printed"
            else "Token rows left as they are and not read, all sequences of a template look the same to the "
            "classifier: templates where they do not",
            "size": size,
            "measured": np.nan if np.isnan(each).any() else float(np.count_nonzero(each)),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": 0.0,
            "erratum": VALUES,
            "form": form,
        }

    seen = right.run(ids, [PATTERN])[1][PATTERN][0, :, 0, :length, length]
    w = constructions.ternary(length)[:length, length]
    same = ids[:, :length, None] == ids[:, None, :length]
    for form, expected in (("printed", w), ("corrected", (same + np.eye(length)) @ w)):
        yield {
            "check": f"encoding-{form}",
            "statement": "The second layer is to weigh position i by 3^(l-1-i), but position rows are no longer "
            "one-hot: largest difference"
            if form == "printed"
            else "It weighs the columns of M by M w, w the powers of 3: largest difference",
            "size": size,
            "measured": float(np.abs(seen - expected).max()),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": 0.0,
            "detail": "" if form == "printed" else "so the last column holds M M w, which differs between templates",
            "erratum": ENCODING,
            "form": form,
        }
