"""Assumption 2.1.2: are its attention patterns optimal among all? Logits without constraint (chapter 5.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import one_thread, stream
from pipeline.kit.theory_rows import judged, row
from pipeline.languages.topic import Population
from pipeline.studies.topic.constructions import OWN_CHECK, SOURCE, masking_of, named, slip
from pipeline.studies.topic.exact import stage_two
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import FreeAttention

ASSUMPTION = SOURCE.format(".4.3, Assumption 2.1.2")
# Free and constrained losses that were computed before, over blocks with u = 0 and a diagonal.
PRINTED: dict[tuple[str, tuple[int, ...]], tuple[float, float]] = {
    ("proof", (6, 4, 2)): (0.165769, 0.165796),
    ("proof", (8, 5, 3)): (0.177043, 0.177060),
    ("diag", (6, 4, 2)): (0.109526, 0.109553),
}
MATRIX = {
    "block": "the matrix of Theorem 2.1.2",
    "proof": "the same with u = 0, as the proof has it",
    "diag": "a diagonal matrix",
}


def check(entry: FreeAttention, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on attention that is not constrained to the family."""
    rng = stream(seed, entry.study, key)
    with one_thread():
        made = [record for size in entry.sizes for kind in MATRIX for record in _compared(entry, size, kind, rng)]
    return theory.rows(entry.study, key, ASSUMPTION, judged("7", "free attention", made))


def _compared(entry: FreeAttention, size: list[int], kind: str, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    topics, v, tau = size
    name, words = named(size)
    known = Population(topics, v, tau, masking_of(entry))
    W = known.diagonal_VxV if kind == "diag" else known.block_VxV.copy()
    if kind == "proof":  # the member of the optimal set with u = 0 and uniform blocks
        W[1:, 1:] -= known.constants.u
        W[1:, 0] = -known.constants.c1
    free, weights = [], []
    for _ in range(entry.starts):
        loss, pattern = stage_two.free_minimum(known, W, rng.normal(size=(known.words + 1, known.words)), entry.steps)
        free.append(loss)
        weights.append(pattern)
    family, _ = stage_two.family_minimum(known, W, free_mask=False)
    wider, three = stage_two.family_minimum(known, W, free_mask=True)
    same = known.topic_V[:, None] == known.topic_V[1:]
    gammas = np.array([np.where(same, pattern, 0).sum(0) / v for pattern in weights])
    masks = np.array([pattern[0] for pattern in weights])
    matrix = f"over {MATRIX[kind]}"
    at = f"{words}, {len(known.masked_DxV)} documents, {len(free)} starts"
    yield row(
        f"free.not-worse.{kind}-{name}",
        f"Logits without constraint reach the least loss of the family {matrix}: largest excess",
        at,
        largest(free) - family,
        "<=",
        entry.tolerance,
        source=OWN_CHECK,
        part="not worse",
    )
    yield row(
        f"free.gap.{kind}-{name}",
        f"The family's least loss is within 5e-4 of the free one {matrix}: largest relative gap",
        at,
        largest(family / np.array(free) - 1),
        "<=",
        5e-4,
        source=OWN_CHECK,
        part="gap",
    )
    yield row(
        f"free.spread.{kind}-{name}",
        f"All query words learn the same γ {matrix}: largest standard deviation over mean",
        at,
        largest(gammas.std(1) / gammas.mean(1)),
        "<=",
        0.01,
        source=OWN_CHECK,
        detail=f"γ {gammas.mean():.3f}, weight of [MASK] {masks.mean():.3f}",
        part="spread",
    )
    yield row(
        f"free.family.printed.{kind}-{name}",
        "The family with weight 1 for [MASK] is among the optimal patterns "
        f"{matrix}: smallest relative gap to free logits",
        at,
        smallest(family / np.array(free) - 1),
        ">=",
        1e-5,
        **slip("assumption-2.1.2", "printed"),
    )
    yield row(
        f"free.family.corrected.{kind}-{name}",
        f"With the weight of [MASK] free as well it is {matrix}: largest relative distance",
        at,
        largest(np.abs(wider / np.array(free) - 1)),
        "<=",
        entry.equal,
        detail=f"weight of [MASK] {three[2]:.4f}",
        **slip("assumption-2.1.2", "corrected"),
    )
    yield row(
        f"free.mask.{kind}-{name}",
        f"Free logits give [MASK] the weight that the wider family has {matrix}: largest distance",
        at,
        largest(np.abs(masks - three[2])),
        "<=",
        1e-3,
        source=OWN_CHECK,
    )
    if (kind, tuple(size)) in PRINTED:
        for what, value, printed in zip(
            ("free", "family"), (smallest(free), family), PRINTED[kind, tuple(size)], strict=True
        ):
            yield row(
                f"free.value.{what}.{kind}-{name}",
                f"The least loss of {what} attention {matrix}, as computed before, to the digits noted",
                at,
                value,
                "within",
                printed,
                tolerance=6e-7,
                source=OWN_CHECK,
            )
