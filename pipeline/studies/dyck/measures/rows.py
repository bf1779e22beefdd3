"""Tables with rows of one run each, which every experiment makes of its own runs; and how rows become tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit import intervals, stats
from pipeline.studies.dyck.measures.comparisons import variation
from pipeline.studies.dyck.measures.model import COPY, Maps, Model
from pipeline.studies.dyck.names import PUBLISHED_TABLE_1, TABLE_1_PROBE

if TYPE_CHECKING:
    from pipeline.kit.comparisons import Measurements
    from pipeline.kit.inputs import Inputs

Rows = Mapping[str, Iterable[pl.DataFrame]]  # table -> parts of it


def of_run(context: Inputs, model: Model) -> dict[str, list[pl.DataFrame]]:
    """Return what every experiment's tables say of one of its own runs.

    Replicas that diverged or did not learn their task are left out of the variation and counted.
    """
    return {
        "runs": [_runs(context, model)],
        "accuracy": model.accuracy,
        "stack_score": model.stack,
        "attention": list(_attention(context, model)),
        "variation": [_variation(context, model, maps) for maps in model.maps],
        "balance": model.balance,
        "balance_detail": model.balance_detail,
    }


def tables_of(
    context: Inputs, parts: Iterable[Rows], found: Measurements | None = None
) -> dict[str, list[pl.DataFrame]]:
    """Return the rows in ``parts`` by the table that the experiment names for them, with what was ``found`` of its
    comparisons."""
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in context.entry.tables}
    for part in parts:
        for name in rows.keys() & part.keys():
            rows[name].extend(part[name])
    return rows if found is None else rows | {"comparisons": [found.table()]}


def _runs(context: Inputs, model: Model) -> pl.DataFrame:
    """Return the models of a run: what they are and how their training ended."""
    entry, replicas = model.entry, range(model.replicas)
    last = context.curves(model.run).sort("step").group_by("replica").agg(pl.col("loss").last())
    final_loss = dict(last.iter_rows())
    same = ("width", "lr", "batch", "steps", "loss_positions", "stream")
    return pl.DataFrame(
        {
            "run": model.run,
            "replica": replicas,
            "arch": _architecture(entry, model.split),
            "n_layers": entry["layers"],
            "n_heads": entry["heads"],
            **{name: entry[name] for name in same},
            "contrastive_lambda": entry["contrastive"],
            "t_max": entry["t_max"] if entry["position"] == "linear" else None,
            "train_dataset": entry["dataset"],
            "train_split": model.split,
            "lang_k": model.k,
            "lang_D": model.depth,
            "corpus": [replica if entry["corpus"] == "per_replica" else 0 for replica in replicas],
            "final_loss": [final_loss.get(replica) for replica in replicas],
            "diverged_at": [model.diverged.get(replica) for replica in replicas],
            "learned": model.learned,
        }
    )


def _architecture(entry: dict[str, Any], split: str) -> str:
    """Return the chapter's name of the architecture."""
    if split == COPY:
        return "copy"
    if entry["block"] == "stripped":
        return {"pair": "mfl15", "sum": "mfl16", "angle": "mfl17"}[entry["embedding"]]
    if entry["position"] == "linear":
        return "gpt_pos"
    if entry["attention"] == "uniform":
        return "uniform"
    if entry["block"] in ("resln", "eq6"):
        return str(entry["block"])
    return "gpt200" if entry["width"] == 200 else "gpt"


def _attention(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield the maps that figures show: on the first sequence of a probe, of the first replicas that count."""
    kept, _ = model.kept(learned=True)
    shown = kept[: context.settings.stored_maps]
    for maps in model.maps:
        if maps.pattern_SxRxNxN is None:
            continue
        query, key = np.tril_indices(maps.n_rows)
        weight = maps.pattern_SxRxNxN[0, shown].double().numpy()[..., query, key]
        replica = np.repeat(np.arange(len(shown)), len(query))
        entries = {"query": np.resize(query, len(replica)), "key": np.resize(key, len(replica))}
        yield pl.DataFrame(
            {
                "run": model.run,
                "replica": shown[replica],
                "probe_split": maps.probe,
                "seq_id": maps.seq_ids[0],
                "layer": maps.layer,
                "head": maps.head,
                "start_included": maps.start,
                "causal": True,
                "text": maps.text,
                **entries,
                "weight": weight.ravel(),
            }
        )


def _variation(context: Inputs, model: Model, maps: Maps) -> pl.DataFrame:
    """Return DYCK-A2, a row per sequence of the probe."""
    kept, reason = model.kept(learned=True)
    means = [
        intervals.pair_mean(distances_RxR[np.ix_(kept, kept)], context.settings.confidence)
        for distances_RxR in maps.distances_SxRxR
    ]
    return pl.DataFrame(
        {
            "run": model.run,
            "probe_split": maps.probe,
            "seq_id": maps.seq_ids,
            "layer": maps.layer,
            "head": maps.head,
            "last_layer": maps.layer == model.entry["layers"],
            "start_included": maps.start,
            "causal": maps.causal,
            "n_models": len(kept),
            "n_rows": maps.n_rows,
            "variation_mean": [mean.value for mean in means],
            "ci_lo": [mean.lo for mean in means],
            "ci_hi": [mean.hi for mean in means],
            "interval": [mean.kind for mean in means],
            "confidence": context.settings.confidence,
            "random_baseline": _random(maps),
            "n_excluded": model.replicas - len(kept),
            "excluded_reason": reason,
        }
    )


def _random(maps: Maps) -> float:
    """Return how much random maps of this size vary: rows uniform on the simplex of the keys that a query sees."""
    n = maps.n_rows
    return stats.causal_distance(n) if maps.causal else n * float(stats.simplex_distance(n))


def of_table1(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield the layers of one row of Table 1, of either arm."""
    kept, reason = model.kept(learned=True)
    published = PUBLISHED_TABLE_1.get((model.k, model.depth, model.entry["layers"]), [])
    for layer in range(1, model.entry["layers"] + 1):
        maps = model.layer(TABLE_1_PROBE, True, layer)
        if maps is None:
            continue
        mean = variation(maps, kept, context.settings.confidence)
        mean_S = np.array([intervals.mean_over_pairs(each, kept) for each in maps.distances_SxRxR])
        printed = published[layer - 1] if layer <= len(published) else (None, None)
        yield pl.DataFrame(
            {
                "run": model.run,
                "lang_k": model.k,
                "lang_D": model.depth,
                "data": model.data,
                "n_layers": model.entry["layers"],
                "layer": layer,
                "mean": mean.value,
                "sd_over_sentences": mean_S.std(ddof=1) if len(mean_S) > 1 else None,
                "ci_lo": mean.lo,
                "ci_hi": mean.hi,
                "interval": mean.kind,
                "confidence": context.settings.confidence,
                "n_sentences": len(mean_S),
                "n_rows": maps.n_rows,
                "n_models": len(kept),
                "n_excluded": model.replicas - len(kept),
                "excluded_reason": reason,
                "random_baseline": stats.causal_distance(maps.n_rows),
                "published_mean": printed[0],
                "published_sd": printed[1],
            }
        )
