"""Models that copy: what their attention looks at, and what it is worth (Wen et al. 2023, appendix B.1).

The lifts and ablations are DYCK-A6, ours; the paper shows maps (Figures 4 to 6) and says what they seem to attend to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pipeline.kit.comparisons import Measurements
from pipeline.kit.streams import one_thread
from pipeline.languages import dyck
from pipeline.models.transformer import decoder as transformer
from pipeline.studies.dyck.comparisons import COPIED, MISLEADING
from pipeline.studies.dyck.measures import comparisons, rows
from pipeline.studies.dyck.measures.model import (
    COPY,
    HELD_OUT_COPY,
    Model,
    inputs,
    measure,
    of_language,
    padded,
    patterns,
)
from pipeline.studies.dyck.names import ALL_QUERIES, CURRENT, LIFTS_READ, MISLEADING_BELOW, PROBE, SAME, UNIFORM_MODE

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy.typing import NDArray

    from pipeline.kit.inputs import Inputs

Hooks = Mapping[str, transformer.Hook]
# What stands in place of a map of N positions, (N, N).
MODES: dict[str, Callable[[int], Tensor]] = {
    UNIFORM_MODE: lambda n: torch.ones(n, n).tril() / torch.arange(1, n + 1)[:, None],
    "identity": torch.eye,
    "zero": lambda n: torch.zeros(n, n),
}


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E10."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    found = Measurements(context)
    parts: list[rows.Rows] = []
    with one_thread():
        for run in context.runs():
            model = measure(context, run, datasets)
            parts += [rows.of_run(context, model), _of_run(context, model, datasets, found)]
        return rows.tables_of(context, parts, found)


def _of_run(context: Inputs, model: Model, datasets: dict[str, pl.DataFrame], found: Measurements) -> rows.Rows:
    """Return rows of ``class_lift``, ``ablation`` and ``copy_maps`` of a run that copies, of all replicas that did not
    diverge, and measure its comparisons; nothing of other runs, and none without held-out strings of its language."""
    strings = {split: part.sort("seq_id") for split, part in of_language(datasets, model.k, model.depth).items()}
    if model.split != COPY or HELD_OUT_COPY not in strings:
        return {}
    trained, (kept, _) = context.model(model.run), model.kept(learned=False)
    ensemble = replace(trained, params={name: value[kept] for name, value in trained.params.items()})
    with torch.inference_mode():
        lifts = _lifts(ensemble, model, strings[HELD_OUT_COPY], kept)
        ablation = _ablation(ensemble, model, strings[HELD_OUT_COPY], kept, _interpretable(lifts))
        maps = _maps(ensemble, model, strings[PROBE], kept) if PROBE in strings else []
    _compare(found, model, ablation.filter(mode=UNIFORM_MODE))
    return {"class_lift": [lifts], "ablation": [ablation], "copy_maps": maps}


def _compare(found: Measurements, model: Model, ablation: pl.DataFrame) -> None:
    """Measure accuracy and, of models of four layers, whether some of a model's maps mislead (claim 21)."""
    of_model = ablation.group_by("replica").agg(pl.col("acc_before").first(), pl.col("misleading").sum())
    every = pl.DataFrame({"replica": range(model.replicas)}, schema={"replica": ablation["replica"].dtype})
    table = every.join(of_model, on="replica", how="left", maintain_order="left").cast(pl.Float64)
    measured = replace(model, copied=table["acc_before"].to_numpy())
    comparisons.add(found, COPIED[model.run], (measured, table["acc_before"].to_numpy()))
    if model.run in MISLEADING:
        comparisons.add(found, MISLEADING[model.run], (measured, table["misleading"].to_numpy()))


# What attention looks at


@dataclass(frozen=True)
class ClassMass:
    """Attention summed over queries of a class and keys of a class: classes of queries are all, then the tokens
    0..2k; classes of keys are the tokens, then the query's position, then all positions with the query's token."""

    mass: Float[Tensor, "R H Q K"]
    uniform: Float[Tensor, "Q K"]
    n_queries: Int[Tensor, Q]

    def add(self, other: ClassMass) -> ClassMass:
        """Return both batches together (every query counts the same)."""
        names = self.__dataclass_fields__
        return ClassMass(*(getattr(self, name) + getattr(other, name) for name in names))


def class_mass(pattern_RxBxHxNxN: Float[Tensor, "R B H N N"], tokens_BxN: Int[Tensor, "B N"], k: int) -> ClassMass:
    """Return the sums behind the lifts (DYCK-A6), in float64, of strings of one length with tokens 0..2k."""
    n = tokens_BxN.shape[1]
    token_BxNxC = tokens_BxN[..., None] == torch.arange(2 * k + 1)
    same_BxNxN = tokens_BxN[:, :, None] == tokens_BxN[:, None]
    own_BxNxN = torch.eye(n, dtype=torch.bool).expand_as(same_BxNxN)
    keys_BxNxNxK = torch.cat(
        [token_BxNxC[:, None].expand(-1, n, -1, -1), own_BxNxN[..., None], same_BxNxN[..., None]], -1
    ).double()
    queries_BxNxQ = torch.cat([torch.ones_like(token_BxNxC[..., :1]), token_BxNxC], -1).double()

    def total(pattern: Tensor) -> Tensor:
        seen = torch.einsum("rbhij,bijk->rbhik", pattern.double(), keys_BxNxNxK)
        return torch.einsum("rbhik,biq->rhqk", seen, queries_BxNxQ)

    uniform = MODES[UNIFORM_MODE](n).expand(1, len(tokens_BxN), 1, n, n)
    return ClassMass(total(pattern_RxBxHxNxN), total(uniform)[0, 0], queries_BxNxQ.sum((0, 1)).round().long())


def _lifts(ensemble: transformer.Ensemble, model: Model, frame: pl.DataFrame, kept: NDArray[np.int64]) -> pl.DataFrame:
    names = patterns(ensemble)

    def batch(tokens_BxN: NDArray[np.int8], ids: Tensor) -> list[ClassMass]:
        _, recorded = _forward(ensemble, ids, names)
        read = torch.from_numpy(tokens_BxN).long()
        return [class_mass(recorded[name], read, model.k) for name in names]

    parts = zip(*(batch(*each) for each in _read(model, frame)), strict=True)
    tokens = dyck.vocabulary(model.k)
    queries, keys = np.array([ALL_QUERIES, *tokens]), np.array([*tokens, CURRENT, SAME])
    rows = []
    for layer, total in enumerate((reduce(ClassMass.add, part) for part in parts), start=1):
        counts = total.n_queries[:, None]
        mass, uniform = (total.mass / counts).numpy(), (total.uniform / counts).numpy()
        # Classes that never meet have no lift: the first position looks at the start token alone.
        replica, head, query, key = np.nonzero(np.broadcast_to(np.nan_to_num(uniform) > 0, mass.shape))
        rows.append(
            pl.DataFrame(
                {
                    "run": model.run,
                    "replica": kept[replica],
                    "layer": layer,
                    "head": head,
                    "query_class": queries[query],
                    "key_class": keys[key],
                    "mass": mass[replica, head, query, key],
                    "mass_uniform": uniform[query, key],
                    "n_queries": total.n_queries.numpy()[query],
                }
            )
        )
    return pl.concat(rows).with_columns(lift=pl.col("mass") / pl.col("mass_uniform"))


def _interpretable(lifts: pl.DataFrame) -> pl.DataFrame:
    """Return whether the lift of some bracket, over all queries, is far from 1, by replica, layer and head."""
    low, high = LIFTS_READ
    brackets = lifts.filter(pl.col("query_class") == ALL_QUERIES, ~pl.col("key_class").is_in(["start", CURRENT, SAME]))
    read = ((pl.col("lift") <= low) | (pl.col("lift") >= high)).any()
    return brackets.group_by("replica", "layer", "head").agg(read.alias("interpretable"))


# What it is worth


def _ablation(
    ensemble: transformer.Ensemble,
    model: Model,
    frame: pl.DataFrame,
    kept: NDArray[np.int64],
    interpretable: pl.DataFrame,
) -> pl.DataFrame:
    before, positions = copy_accuracy(ensemble, model, frame, {})
    rows = []
    for layer, name in enumerate(patterns(ensemble)):
        for head in range(ensemble.spec.heads):
            for mode in MODES:
                after, _ = copy_accuracy(ensemble, model, frame, {name: replaced(mode, head)})
                metadata = {"run": model.run, "replica": kept, "layer": layer + 1, "head": head, "mode": mode}
                rows.append(pl.DataFrame(metadata | {"acc_before": before.numpy(), "acc_after": after.numpy()}))
    table = pl.concat(rows).with_columns(n_positions=positions)
    little = (pl.col("acc_after") - pl.col("acc_before")).abs() < MISLEADING_BELOW
    return table.join(interpretable, on=["replica", "layer", "head"], how="left", maintain_order="left").with_columns(
        misleading=pl.col("interpretable") & little
    )


def replaced(mode: str, head: int) -> transformer.Hook:
    """Return a hook that puts the map of ``mode`` (`MODES`) in place of that of one head."""

    def hook(pattern_RxBxHxNxN: Tensor) -> Tensor:
        changed = pattern_RxBxHxNxN.clone()
        changed[:, :, head] = MODES[mode](changed.shape[-1])
        return changed

    return hook


def copy_accuracy(
    ensemble: transformer.Ensemble, model: Model, frame: pl.DataFrame, hooks: Hooks
) -> tuple[Float[Tensor, R], int]:
    """Return the share of positions, the start token's among them, where the model's first choice is the
    token it has read there; and how many positions there are."""
    hits, positions = torch.zeros(len(ensemble.params["head.W"]), dtype=torch.int64), 0
    for tokens_BxN, ids in _read(model, frame):
        logits, _ = _forward(ensemble, ids, hooks=hooks)
        hits += (logits.argmax(-1) == torch.from_numpy(tokens_BxN)).sum((1, 2))
        positions += tokens_BxN.size
    return hits.double() / positions, positions


# The models


def _read(model: Model, frame: pl.DataFrame) -> Iterator[tuple[NDArray[np.int8], Tensor]]:
    """Yield strings of one length after another: tokens (B, N), the start token first, and what the model reads."""
    for _, part in frame.group_by("length", maintain_order=True):
        tokens = padded(part)
        yield dyck.with_start(tokens), inputs(tokens, model.entry, model.depth, start=True)


def _forward(
    ensemble: transformer.Ensemble, ids: Tensor, record: Collection[str] = (), hooks: Hooks = transformer.NO_HOOKS
) -> tuple[Tensor, dict[str, Tensor]]:
    return transformer.forward(ensemble.spec, ensemble.params, ensemble.table, ids, record=record, hooks=hooks)


def _maps(
    ensemble: transformer.Ensemble, model: Model, probe: pl.DataFrame, kept: NDArray[np.int64]
) -> list[pl.DataFrame]:
    """Return every map on D4, with the start token, which these models copy as well."""
    ((tokens_BxN, ids),) = _read(model, probe.head(1))
    _, recorded = _forward(ensemble, ids, patterns(ensemble))
    pattern_LxRxHxNxN = torch.stack([recorded[name][:, 0] for name in patterns(ensemble)]).double().numpy()
    query, key = np.tril_indices(tokens_BxN.shape[1])
    weight = pattern_LxRxHxNxN[..., query, key]
    layer, replica, head, entry = (index.ravel() for index in np.indices(weight.shape))
    text = np.array(dyck.vocabulary(model.k))[tokens_BxN[0]]
    columns = {
        "run": model.run,
        "replica": kept[replica],
        "layer": layer + 1,
        "head": head,
        "query": query[entry],
        "key": key[entry],
        "query_token": text[query][entry],
        "key_token": text[key][entry],
        "weight": weight.ravel(),
    }
    return [pl.DataFrame(columns)]
