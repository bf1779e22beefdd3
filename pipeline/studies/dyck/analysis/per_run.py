"""Tables with rows of one run each: the models, their maps, how much these vary, Table 1, Figure 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import stats
from pipeline.kit.streams import stream
from pipeline.studies.dyck.analysis.measure import COPY, LENGTH_GENERALISATION, Maps, Model
from schemas.dyck.tables import ARM_OF, PUBLISHED_TABLE_1, TABLE_1, TABLE_1_COMPLETE, TABLE_1_PROBE


def runs(context: Any, model: Model) -> pl.DataFrame:
    """The models of a run: what they are and how their training ended."""
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
    """The chapter's name of the architecture."""
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


def attention(context: Any, model: Model) -> Iterator[pl.DataFrame]:
    """The maps that figures show: on the first sequence of a probe, of the first replicas that count."""
    kept, _ = model.kept(accurate=True)
    shown = kept[: context.entry.analysis.stored_maps]
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


def variation(context: Any, model: Model, maps: Maps) -> pl.DataFrame:
    """DYCK-A2 with bootstrap intervals, a row per sequence of the probe."""
    kept, reason = model.kept(accurate=True)
    mean_S, draws_SxB = pair_means(context, model, maps)
    intervals = [stats.percentiles(draws, context.entry.analysis.confidence) for draws in draws_SxB]
    return pl.DataFrame(
        {
            "run": model.run,
            "probe_split": maps.probe,
            "seq_id": maps.seq_ids,
            "layer": maps.layer,
            "head": maps.head,
            "last_layer": maps.layer == model.entry["layers"],
            "start_included": maps.start,
            "causal": True,
            "n_models": len(kept),
            "n_rows": maps.n_rows,
            "variation_mean": mean_S,
            "ci_lo": [lo for lo, _ in intervals],
            "ci_hi": [hi for _, hi in intervals],
            "confidence": context.entry.analysis.confidence,
            "random_baseline": stats.causal_distance(maps.n_rows),
            "n_excluded": model.replicas - len(kept),
            "excluded_reason": reason,
        }
    )


def pair_means(context: Any, model: Model, maps: Maps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean distance between the replicas that count, (S,), and its bootstrap draws, (S, resamples).

    All maps of a run see the same resamples of its replicas, so differences and ratios of layers and means
    over sentences can be taken draw by draw.
    """
    kept, _ = model.kept(accurate=True)
    rng = bootstrap_stream(context, "variation", model.run)
    counts = stats.resample_counts(rng, len(kept), context.entry.analysis.resamples)
    distances = maps.distances_SxRxR[:, kept[:, None], kept]
    means = stats.pair_mean_draws(distances, np.ones((1, len(kept)), int))
    draws = stats.pair_mean_draws(distances, counts)
    return means[:, 0], draws if len(kept) > 1 else np.full_like(draws, np.nan)


def table1(context: Any, model: Model) -> Iterator[pl.DataFrame]:
    """The layers of one row of Table 1, of either arm."""
    if model.run not in {*TABLE_1.values(), *TABLE_1_COMPLETE.values()}:
        return
    analysis = context.entry.analysis
    kept, reason = model.kept(accurate=True)
    published = PUBLISHED_TABLE_1.get((model.k, model.depth, model.entry["layers"]), [])
    for layer in range(1, model.entry["layers"] + 1):
        maps = model.layer(TABLE_1_PROBE, True, layer)
        if maps is None:
            continue
        mean_S, draws_SxB = pair_means(context, model, maps)
        lo, hi = stats.percentiles(draws_SxB.mean(0), analysis.confidence)
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
                "confidence": analysis.confidence,
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


def fig3(model: Model) -> list[pl.DataFrame]:
    """The points of an arm of Figure 3 or 10; none for other runs."""
    lengen = {name: model.column(LENGTH_GENERALISATION, name) for name in ("acc_close", "acc_thr80")}
    if model.run not in ARM_OF or not model.balance or lengen["acc_close"] is None:
        return []
    data, arm = ARM_OF[model.run]
    about = {
        "arm": arm,
        "data": data,
        "diverged": [replica in model.diverged for replica in range(model.replicas)],
    }
    return [pl.DataFrame({**model.balance[0].to_dict(), **lengen, **about})]


def bootstrap_stream(context: Any, *names: str | int) -> np.random.Generator:
    """The random stream of the intervals called ``names``."""
    return stream(context.seed, context.study, "analysis", "bootstrap", *names)
