"""VGB-DYCK: exact laws of samplers under the trained verifier, on the trees below prompts (Li 2025, section 3.3.1).

A tree has the four brackets as actions; its base model is a language model restricted to brackets and normalised
again. Its target is what the base model writes given that the string is balanced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.comparisons import Measurements
from pipeline.kit.extremes import largest
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import dyck_strings as language
from pipeline.languages.constrained import prefix_mass
from pipeline.models.llama.decoding import Cached
from pipeline.models.llama.verifiers import Trained
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.exact.tokenwise import action_level_calls, action_level_law
from pipeline.studies.verifier.exact.vgb import Tree
from pipeline.studies.verifier.measures import material
from pipeline.studies.verifier.measures.generation import Models
from pipeline.studies.verifier.names import STRINGS
from schemas.verifier.vgb_dyck import ALRS, BASE, EXACT, FIRST_LEAF, LEARNED, STATIONARY, TRS

ACTIONS = 4
LEAVES = 16_384  # of all trees of all models together that are held at once

Array = NDArray[np.float64]


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return how far every sampler is from the target, for every model and prompt."""
    models, entry = material.language_models(context), context.entry
    rows: list[dict[str, Any]] = []
    with one_thread():
        verifier = material.trained(context, models)
        tokens, lengths = material.strings(context, STRINGS, "unseen", models.limit)
        for horizon in entry.horizons:
            chosen = np.flatnonzero(lengths == models.brackets - horizon + 1)[: entry.prompts]
            size = max(1, LEAVES // (models.count * ACTIONS**horizon))
            for start in range(0, len(chosen), size):
                ids = chosen[start : start + size]
                for r, place, values in _trees(models, verifier, tokens[ids], horizon):
                    key = {"replica": r, "prompt_id": int(ids[place]), "horizon": horizon}
                    rows += [key | row for row in _laws(*values, context.settings.verifier.threshold)]
    null = dict.fromkeys(("expected_steps", "oracle_expansions", "value_evals"), pl.Float64)
    table = pl.DataFrame(rows, schema_overrides=null)
    return {"vgb_dyck": table, "comparisons": _compared(context, table)}


Values = tuple[list[Array], list[Array], Array, float]


def _trees(
    models: Models, verifier: Trained, tokens_PxT: NDArray[np.int64], horizon: int
) -> Iterator[tuple[int, int, Values]]:
    """Yield for each model and prompt the base laws (4^h, 4), the verifier's values (4^h,), whether each leaf is
    balanced, and the probability that the model has outside of the brackets."""
    R, P, start = models.count, len(tokens_PxT), models.brackets - horizon + 1
    written = torch.from_numpy(tokens_PxT[:, :start]).expand(R, -1, -1)
    oracle = Cached(models.spec, models.params, models.limit)
    laws, values, kept = [], [torch.ones(R, P, 1).double()], [torch.ones(R, P, 1).double()]
    with torch.no_grad():
        logits = oracle.read(written, 1)[:, :, -1]
        for h in range(horizon):
            p = logits.double().softmax(-1)[..., :ACTIONS]
            inside = p.sum(-1, keepdim=True)
            laws.append((p / inside).view(R, P, -1, ACTIONS))
            kept.append((kept[-1][..., None] * p.view(R, P, -1, ACTIONS)).flatten(2))
            rows = torch.arange(P * ACTIONS**h).repeat_interleave(ACTIONS).expand(R, -1)
            oracle.keep(rows)
            action = torch.arange(ACTIONS).repeat(P * ACTIONS**h).expand(R, -1)
            written = torch.cat([written[:, rows[0]], action[..., None]], -1)
            place = torch.full_like(action, start + h)
            logits, states = oracle.advance(action, place, verifier.layer)
            value = verifier(states, written, place + 1, torch.zeros(1), torch.ones(1))
            values.append(value.double().view(R, P, -1))
    flat = written[0].numpy()
    balanced = language.completable(flat, np.full(len(flat), start + horizon), models.brackets).reshape(P, -1)
    for r in range(R):
        for n in range(P):
            own = [law[r, n].numpy() for law in laws], [value[r, n].numpy() for value in values]
            yield r, n, (*own, balanced[n].astype(float), 1 - float(kept[-1][r, n].sum()))


def _laws(
    laws: list[Array], values: list[Array], balanced: Array, removed: float, threshold: float
) -> Iterator[dict[str, Any]]:
    """Yield for each sampler, with exact and with learned values of leaves, how far its law is from the target."""
    base = prefix_mass(tuple(laws))[-1]
    target = base * balanced / (base * balanced).sum()
    for kind in (EXACT, LEARNED):
        own = [*values[:-1], balanced if kind == EXACT else values[-1]]
        hard = [(value >= threshold).astype(float) for value in own]
        tree = Tree(tuple(laws), tuple(own))
        found: dict[str, tuple[Array, float]] = {
            BASE: (base, 0.0),
            TRS: action_level_law(laws, hard),
            ALRS: action_level_law(laws, own),
            FIRST_LEAF: (tree.first_leaf_law(), 0.0),
            STATIONARY: (tree.leaf_law(), 0.0),
        }
        steps = tree.absorbed()[1]
        costs = _costs(laws, own, hard, steps)
        for method, (law, stuck) in found.items():
            expansions, evaluations = costs[method]
            yield {
                "leaf_values": kind,
                "method": method,
                "p_valid": float((law * balanced).sum()),
                "distance": float(abs(law - target).sum() / 2 + stuck / 2),
                "fail_mass": stuck,
                "expected_steps": steps if method == FIRST_LEAF else None,
                "oracle_expansions": expansions,
                "value_evals": evaluations,
                "removed_mass": removed,
            }


def _costs(
    laws: list[Array], values: list[Array], hard: list[Array], steps: float
) -> dict[str, tuple[float | None, float | None]]:
    """Return how many laws of a next bracket and how many values each sampler is expected to ask for, by its name, if
    it remembers none of them; None where it may never end, or has no rule when to."""
    costs: dict[str, tuple[float | None, float | None]] = {BASE: (float(len(laws)), 0.0), STATIONARY: (None, None)}
    for method, own in ((TRS, hard), (ALRS, values)):
        # A law for each prefix that it comes to, and a value for each bracket that it draws.
        prefixes = 1 + sum(float(action_level_law(laws[:h], own[: h + 1])[0].sum()) for h in range(1, len(laws)))
        calls = action_level_calls(laws, own)
        costs[method] = prefixes, calls if np.isfinite(calls) else None
    # Half of the steps stay where they are; each of the others weighs all children. Its own value it knows.
    costs[FIRST_LEAF] = steps / 2, ACTIONS * steps / 2
    return costs


def _compared(context: Inputs, table: pl.DataFrame) -> pl.DataFrame:
    found, first = Measurements(context), min(context.entry.horizons)
    exact = table.filter(horizon=first, leaf_values=EXACT)
    means = exact.group_by("replica", "method", maintain_order=True).agg(pl.mean("distance", "p_valid"))

    def of(method: str) -> pl.Series:
        return means.filter(method=method).sort("replica")["distance"]

    found.add(declared.VGB_NEARER, of(FIRST_LEAF), of(ALRS))
    found.add(declared.HARD_FARTHER, of(TRS), of(ALRS))
    walks = exact.filter(pl.col("method").is_in([FIRST_LEAF, STATIONARY]))
    by_model = [rows for _, rows in walks.group_by("replica", maintain_order=True)]
    apart = [largest(rows.filter(method=STATIONARY)["distance"].to_numpy()) for rows in by_model]
    invalid = [largest(abs(1 - rows["p_valid"].to_numpy())) for rows in by_model]
    found.add(declared.VGB_EXACT, apart)
    found.add(declared.VGB_VALID, invalid)
    return found.table()
