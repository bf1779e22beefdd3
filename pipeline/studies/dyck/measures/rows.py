"""Tables with rows of one run each, which every experiment makes of its own runs; and how rows become tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.shares import share_interval
from pipeline.studies.dyck.measures.intervals import bootstrapped, contrast, pair_means
from pipeline.studies.dyck.measures.model import COPY, IN_DISTRIBUTION, Maps, Model
from pipeline.studies.dyck.names import PUBLISHED_TABLE_1, STACK_LIKE, TABLE_1_PROBE

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs

Rows = Mapping[str, Iterable[pl.DataFrame]]  # table -> parts of it


def of_run(context: Inputs, model: Model) -> dict[str, list[pl.DataFrame]]:
    """Return what every experiment's tables say of one of its own runs.

    Replicas that diverged, or whose accuracy on data like their training data is below ``min_accuracy``, are left out
    of the variation and counted.
    """
    return {
        "runs": [_runs(context, model)],
        "accuracy": model.accuracy,
        "stack_score": model.stack,
        "attention": list(_attention(context, model)),
        "variation": [_variation(context, model, maps) for maps in model.maps],
        "balance": model.balance,
        "balance_detail": model.balance_detail,
        "contrasts": [*_in_distribution(context, model), *_stack_like(context, model)],
    }


def tables_of(context: Inputs, parts: Iterable[Rows]) -> dict[str, list[pl.DataFrame]]:
    """Return the rows in ``parts`` by the table that the experiment names for them."""
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in context.entry.tables}
    for part in parts:
        for name in rows.keys() & part.keys():
            rows[name].extend(part[name])
    return rows


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
    kept, _ = model.kept(accurate=True)
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
    """Return DYCK-A2 with bootstrap intervals, a row per sequence of the probe."""
    kept, reason = model.kept(accurate=True)
    mean_S, draws_SxB = pair_means(context, model, maps)
    intervals = [stats.percentiles(draws, context.settings.confidence) for draws in draws_SxB]
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
            "variation_mean": mean_S,
            "ci_lo": [lo for lo, _ in intervals],
            "ci_hi": [hi for _, hi in intervals],
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


def _in_distribution(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield accuracy on data like the training data, on all strings and on unseen ones, of all replicas that did not
    diverge (claims 3 and 12)."""
    for name in ("acc_close", "acc_close_unseen"):
        values = model.column(IN_DISTRIBUTION.get(model.split, ""), name)
        if values is not None and not np.isnan(values).all():
            kept, _ = model.kept(accurate=False)
            quantity = ("in_distribution", "median", name)
            yield bootstrapped(context, quantity, stats.median, [model], [values[kept]])


def _stack_like(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield the stack score of the last layer, over replicas, and the share of those that are stack-like (claim 4)."""
    scores = model.last_stack("stack_argmax")
    if scores is None:
        return
    values = scores[model.kept(accurate=True)[0]]
    quantity = ("stack", "mean", "stack_argmax")
    yield bootstrapped(context, quantity, stats.mean, [model], [values], accurate=True)
    share = share_interval(values >= STACK_LIKE, context.settings.confidence)
    yield contrast(context, ("stack", "stack-like share", "stack_argmax"), share, [model])


def of_table1(context: Inputs, model: Model) -> Iterator[pl.DataFrame]:
    """Yield the layers of one row of Table 1, of either arm."""
    kept, reason = model.kept(accurate=True)
    published = PUBLISHED_TABLE_1.get((model.k, model.depth, model.entry["layers"]), [])
    for layer in range(1, model.entry["layers"] + 1):
        maps = model.layer(TABLE_1_PROBE, True, layer)
        if maps is None:
            continue
        mean_S, draws_SxB = pair_means(context, model, maps)
        lo, hi = stats.percentiles(draws_SxB.mean(0), context.settings.confidence)
        printed = published[layer - 1] if layer <= len(published) else (None, None)
        yield pl.DataFrame(
            {
                "run": model.run,
                "lang_k": model.k,
                "lang_D": model.depth,
                "data": model.data,
                "n_layers": model.entry["layers"],
                "layer": layer,
                "mean": mean_S.mean(),
                "sd_over_sentences": mean_S.std(ddof=1) if len(mean_S) > 1 else None,
                "ci_lo": lo,
                "ci_hi": hi,
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
