"""VGB-DYCK: exact laws of samplers under the trained verifier, on the trees below prompts (Li 2025, section 3.3.1).

A tree has the four brackets as actions, and its strings are right if they are balanced (`measures.below`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.extremes import largest
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import dyck_strings as language
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.measures import below, material
from pipeline.studies.verifier.names import STRINGS
from schemas.verifier.vgb_dyck import ALRS, BASE, EXACT, FIRST_LEAF, LEARNED, STATIONARY, TRS, WHOLE

ACTIONS = range(4)
LEAVES = 16_384  # of all trees of all models together that are held at once


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return how far every sampler is from the target, for every model and prompt."""
    models, entry = material.language_models(context), context.entry
    rows: list[dict[str, Any]] = []
    with one_thread():
        verifier = material.trained(context, models)
        tokens, lengths = material.strings(context, STRINGS, "unseen", models.limit)
        for horizon in entry.horizons:
            begun = models.brackets - horizon + 1
            chosen = np.flatnonzero(lengths == begun)[: entry.prompts]
            size = max(1, LEAVES // (models.count * len(ACTIONS) ** horizon))
            for start in range(0, len(chosen), size):
                ids = chosen[start : start + size]
                prompts = tokens[ids][:, :begun]
                trees = below.trees(models.spec, models.params, verifier, prompts, ACTIONS, [()] * horizon)
                ends = np.full(len(trees.tokens), begun + horizon)
                balanced = language.completable(trees.tokens, ends, models.brackets).reshape(len(ids), -1)
                for r in range(models.count):
                    for place in range(len(ids)):
                        key = {"replica": r, "prompt_id": int(ids[place]), "horizon": horizon}
                        base, values, removed = trees.of(r, place)
                        right = balanced[place].astype(float)
                        found = below.laws(base, values, right, removed, context.settings.verifier.threshold)
                        rows += [key | row for row in found]
    table = pl.DataFrame(rows, schema_overrides=below.COSTS)
    return {"vgb_dyck": table, "comparisons": _compared(context, table)}


def _compared(context: Inputs, table: pl.DataFrame) -> pl.DataFrame:
    found, first = Measurements(context), min(context.entry.horizons)
    own = table.filter(horizon=first)
    exact = own.filter(leaf_values=EXACT)
    by_sampler = own.group_by("replica", "leaf_values", "method", maintain_order=True)
    means = by_sampler.agg(pl.mean("distance", "oracle_expansions"))

    def of(method: str, leaves: str = EXACT, column: str = "distance") -> pl.Series:
        return means.filter(method=method, leaf_values=leaves).sort("replica")[column]

    found.add(declared.VGB_NEARER, of(FIRST_LEAF), of(ALRS))
    found.add(declared.HARD_FARTHER, of(TRS), of(ALRS))
    for leaves in (EXACT, LEARNED):
        found.add(declared.VGB_BASE[leaves], of(FIRST_LEAF, leaves), of(BASE, leaves))
        found.add(declared.ALRS_BASE[leaves], of(ALRS, leaves), of(BASE, leaves))
    found.add(declared.VGB_NEARER_LEARNED, of(FIRST_LEAF, LEARNED), of(ALRS, LEARNED))
    found.add(declared.WHOLE_LEARNED, of(FIRST_LEAF, LEARNED), of(WHOLE, LEARNED))
    laws = "oracle_expansions"
    found.add(declared.WHOLE_COST, of(FIRST_LEAF, column=laws), of(WHOLE, column=laws))
    walks = exact.filter(pl.col("method").is_in([FIRST_LEAF, STATIONARY]))
    by_model = [rows for _, rows in walks.group_by("replica", maintain_order=True)]
    apart = [largest(rows.filter(method=STATIONARY)["distance"].to_numpy()) for rows in by_model]
    invalid = [largest(abs(1 - rows["p_valid"].to_numpy())) for rows in by_model]
    found.add(declared.VGB_EXACT, apart)
    found.add(declared.VGB_VALID, invalid)
    return found.table()
