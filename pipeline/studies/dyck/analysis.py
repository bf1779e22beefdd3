"""From trained models to result tables: DYCK-A1 to A5 (Wen et al. 2023, section 4; chapter section 3.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline import stats, tables
from pipeline.errors import SandglassError
from pipeline.languages import dyck
from pipeline.models import theory_transformer, transformer
from pipeline.streams import stream
from pipeline.studies.dyck import interventions, metrics
from schemas.dyck.tables import (
    ARMS,
    MAPPED,
    MINIMAL,
    MODELS,
    PROBE,
    PUBLISHED_TABLE_1,
    SCHEMAS,
    STACK_LIKE,
    STANDARD,
    TABLE_1,
    TABLE_1_PROBE,
)

LENGTH_GENERALISATION = "lengen"
IN_DISTRIBUTION = {"train_complete": "dev_complete", "train_prefix": "dev_prefix"}
EVALUATION = (*IN_DISTRIBUTION.values(), LENGTH_GENERALISATION)
PROBES = (PROBE, TABLE_1_PROBE)

Ensemble = transformer.Ensemble | theory_transformer.Ensemble
FORWARD: dict[type, Callable[..., Any]] = {
    module.Ensemble: module.forward for module in (transformer, theory_transformer)
}

MAX_NUMBERS = 2**24  # in one tensor of a batch, attention weights or activations: 64 MB in float32
WIDEST = 256  # activations per token, an upper bound for the models of the study


def analyse(context: Any) -> dict[str, pl.DataFrame]:
    """Every table of the study (`schemas.dyck.tables.SCHEMAS`).

    Runs and datasets that params.yaml does not list leave no rows; a run is measured on the evaluation sets
    and probes of its own language. Replicas that diverged, or whose accuracy on data like their training data
    is below ``analysis.min_accuracy``, are left out of the variation and counted.

    Raises SandglassError if a run was trained on a dataset that the study does not list.
    """
    datasets = {key: context.dataset(key) for key in context.entry.datasets}
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    models = {}
    with _one_thread():
        for run in context.entry.runs:
            models[run] = model = _measure(context, run, datasets)
            rows["runs"].append(_runs(context, model))
            rows["accuracy"] += model.accuracy
            rows["stack_score"] += model.stack
            rows["attention"] += _attention(context, model)
            rows["variation"] += [_variation(context, model, maps) for maps in model.maps]
            rows["variation_table1"] += _table1(context, model)
            rows["balance"] += model.balance
            rows["balance_detail"] += model.balance_detail
            rows["fig3"] += _fig3(model)
        rows["contrasts"] = _contrasts(context, models)
        rows |= interventions.analyse(context, datasets)
    stamp = {"scale": context.scale, "params_hash": context.params_hash}
    return {name: tables.conform(frames, SCHEMAS[name], **stamp) for name, frames in rows.items()}


@dataclass(frozen=True)
class _Maps:
    """Attention of one layer and head on the S sequences of a probe, which have one length."""

    probe: str
    start: bool
    layer: int
    head: int
    seq_ids: list[int]
    n_rows: int
    distances_SxRxR: NDArray[np.float64]  # between replicas
    pattern_SxRxNxN: Tensor | None  # kept of D4 only, for figures


@dataclass(frozen=True)
class _Model:
    """One run, measured."""

    run: str
    entry: dict[str, Any]
    split: str  # of its training data
    k: int
    depth: int
    min_accuracy: float
    diverged: dict[int, int]
    maps: list[_Maps]
    accuracy: list[pl.DataFrame]
    stack: list[pl.DataFrame]
    balance: list[pl.DataFrame]
    balance_detail: list[pl.DataFrame]

    @property
    def replicas(self) -> int:
        return int(self.entry["replicas"])

    def column(self, split: str, name: str) -> NDArray[np.float64] | None:
        """(R,) accuracy on an evaluation set, None if it was not measured there."""
        found = [frame for frame in self.accuracy if frame["eval_split"][0] == split]
        return found[0][name].to_numpy() if found else None

    def layer(self, probe: str, start: bool, layer: int) -> _Maps | None:
        """Maps of the first head on a probe; None if it was not recorded."""
        wanted = (probe, start, layer, 0)
        found = [maps for maps in self.maps if (maps.probe, maps.start, maps.layer, maps.head) == wanted]
        return found[0] if found else None

    def kept(self, accurate: bool) -> tuple[NDArray[np.int64], str]:
        """Replicas that did not diverge and, if only ``accurate`` ones count, are; and why the others are not."""
        ok = ~np.isin(np.arange(self.replicas), list(self.diverged))
        reasons = [f"{len(self.diverged)} diverged"] if self.diverged else []
        accuracy = self.column(IN_DISTRIBUTION[self.split], "acc_close")
        if accurate and accuracy is not None:
            low = ok & (accuracy < self.min_accuracy)
            reasons += [f"{low.sum()} with acc_close below {self.min_accuracy:g}"] if low.any() else []
            ok &= ~low
        return np.flatnonzero(ok), ", ".join(reasons)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums do not depend on the number of cores then, and engines run other jobs on those."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _measure(context: Any, run: str, datasets: dict[str, pl.DataFrame]) -> _Model:
    ensemble, header = context.model(run), context.run_header(run)
    entry = header["entry"]
    if entry["dataset"] not in datasets:
        raise SandglassError(f"run {run} was trained on {entry['dataset']}, which the study does not list")
    k, depth, split = entry["k"], entry["depth"], datasets[entry["dataset"]]["split"][0]
    own = (frame.filter(lang_k=k, lang_D=depth) for frame in datasets.values())
    splits = {frame["split"][0]: frame for frame in own if frame.height}
    accuracy, stack = [], []
    with torch.inference_mode():
        maps = [part for name in PROBES if name in splits for part in _maps(ensemble, entry, splits[name])]
        for name in EVALUATION:
            if name in splits:
                in_distribution = name == IN_DISTRIBUTION[split]
                found, scores = _evaluate(ensemble, entry, splits[name], in_distribution)
                accuracy.append(_accuracy(run, splits[name], in_distribution, found, entry["replicas"]))
                stack += [
                    _stack(run, entry, name, layer, score) for layer, score in enumerate(scores, start=1)
                ]
        balance, detail = _balance(ensemble, entry, run, k, depth)
    diverged = {int(replica): step for replica, step in header["diverged"].items()}
    bound = context.entry.analysis.min_accuracy
    return _Model(run, entry, split, k, depth, bound, diverged, maps, accuracy, stack, balance, detail)


# Inputs of models


def _inputs(tokens: NDArray[np.int8], entry: dict[str, Any], depth: int, start: bool) -> Tensor:
    """(1, B, T) what the model reads: tokens or symbols, with the start token in front where asked.

    Padding becomes the start token: it comes last, and causal attention never looks at it.
    """
    ids = tokens if entry["embedding"] == "token" else dyck.symbols(tokens, depth)
    ids = np.where(ids == dyck.PADDING, dyck.START, ids)
    return torch.from_numpy((dyck.with_start(ids) if start else ids).astype(np.int64))[None]


def _forward(ensemble: Ensemble, ids: Tensor, record: list[str]) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits, and what is recorded, of the model that it is."""
    forward = FORWARD[type(ensemble)]
    return forward(ensemble.spec, ensemble.params, ensemble.table, ids, record=record)


def _padded(frame: pl.DataFrame) -> NDArray[np.int8]:
    return dyck.padded(frame["length"].to_numpy(), frame["tokens"].explode().to_numpy())


def _batches(frame: pl.DataFrame, replicas: int) -> Iterator[pl.DataFrame]:
    """Sequences of similar length together, as many as fit in memory."""
    ordered = frame.sort("length", "seq_id")
    first = 0
    for last, length in enumerate(ordered["length"].to_list()):
        if last > first and (last + 1 - first) * replicas * length * max(length, WIDEST) > MAX_NUMBERS:
            yield ordered[first:last]
            first = last
    yield ordered[first:]


# Measurements of one run


def _evaluate(
    ensemble: Ensemble, entry: dict[str, Any], frame: pl.DataFrame, with_stack: bool
) -> tuple[metrics.Accuracy, list[metrics.StackScore]]:
    """A1 and, layer by layer, A4 on all sequences, start token included as in training."""
    names = [f"blocks.{layer}.attn.pattern" for layer in range(ensemble.spec.layers)] if with_stack else []

    def batch(sequences: pl.DataFrame) -> tuple[metrics.Accuracy, list[metrics.StackScore]]:
        tokens = _padded(sequences)
        ids = _inputs(tokens, entry, int(frame["lang_D"][0]), start=True)
        logits, recorded = _forward(ensemble, ids, names)
        top = torch.from_numpy(dyck.stack_top(tokens)).long()
        before = logits[:, :, :-1]  # position i has read what is before target i
        found = metrics.accuracy(before, torch.from_numpy(tokens).long(), top)
        return found, [metrics.stack_score(recorded[name], tokens) for name in names]

    accuracies, scores = zip(*map(batch, _batches(frame, entry["replicas"])), strict=True)
    layers = [reduce(metrics.StackScore.add, parts) for parts in zip(*scores, strict=True)]
    return reduce(metrics.Accuracy.add, accuracies), layers


def _accuracy(
    run: str, frame: pl.DataFrame, in_distribution: bool, found: metrics.Accuracy, replicas: int
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "run": run,
            "replica": range(replicas),
            "eval_split": frame["split"][0],
            "in_distribution": in_distribution,
            **{name: getattr(found, name).numpy() for name in ("acc_close", "acc_all", "acc_thr80")},
            "n_sequences": frame.height,
            "shortest": frame["length"].min(),
            "longest": frame["length"].max(),
            "n_close": found.n_close,
            "n_open_stack": found.n_open_stack,
        }
    )


def _stack(
    run: str, entry: dict[str, Any], split: str, layer: int, score: metrics.StackScore
) -> pl.DataFrame:
    replica, head = (index.ravel() for index in np.indices(score.hits.shape))
    names = ["stack_argmax", "stack_argmax_closers", "stack_mass", "same_depth_mass"]
    shares = {name: getattr(score, name).numpy().ravel() for name in names}
    if entry["block"] != "stripped":
        shares["same_depth_mass"] = None  # other models do not read depths
    about = {"run": run, "replica": replica, "layer": layer, "head": head, "eval_split": split}
    same = {name: getattr(score, name) for name in ("stack_mass_uniform", "n_queries", "n_closers")}
    return pl.DataFrame(about | shares | same)


def _maps(ensemble: Ensemble, entry: dict[str, Any], frame: pl.DataFrame) -> Iterator[_Maps]:
    """Attention of every layer on all sequences of a probe, without and with the start token (A2)."""
    frame = frame.sort("seq_id")
    probe, seq_ids = frame["split"][0], frame["seq_id"].to_list()
    names = [f"blocks.{layer}.attn.pattern" for layer in range(ensemble.spec.layers)]
    for start in (False, True):
        ids = _inputs(_padded(frame), entry, int(frame["lang_D"][0]), start)
        _, recorded = _forward(ensemble, ids, names)
        for layer, name in enumerate(names, start=1):
            for head in range(ensemble.spec.heads):
                pattern_SxRxNxN = recorded[name][:, :, head].transpose(0, 1)
                distances = metrics.variation_distances(pattern_SxRxNxN).numpy()
                kept = pattern_SxRxNxN if probe == PROBE else None
                yield _Maps(probe, start, layer, head, seq_ids, ids.shape[-1], distances, kept)


def _balance(
    ensemble: Ensemble, entry: dict[str, Any], run: str, k: int, depth: int
) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
    """A5, for models of one layer and one head on fixed symbols; no rows for others."""
    spec = ensemble.spec
    minimal = (spec.block, spec.layers, spec.heads) == ("stripped", 1, 1) and entry["embedding"] != "token"
    if not minimal or min(k, depth) < 2:
        return [], []
    W_Q, W_K, W_V = ensemble.params["blocks.0.attn.W_QKV"].chunk(3, -1)
    b_Q, b_K, b_V = ensemble.params["blocks.0.attn.b_QKV"].chunk(3, -1)
    found = metrics.balance(ensemble.table, W_Q, b_Q, W_K, b_K, W_V, b_V, k, depth)
    summary = {name: getattr(found, name).numpy() for name in ("beta", "beta_max", "qk_residual")}
    replica, d, j, dprime, i = (index.ravel() for index in np.indices(found.s_norm.shape))
    detail = {"run": run, "replica": replica, "d": d + 2, "dprime": dprime + 1, "i": i + 1, "j": j + 1}
    norms = {"s_norm": found.s_norm.numpy().ravel(), "p_dj": found.p.numpy()[replica, d, j]}
    replicas = {"run": run, "replica": range(entry["replicas"])}
    return [pl.DataFrame(replicas | summary)], [pl.DataFrame(detail | norms)]


# Tables of one run


def _runs(context: Any, model: _Model) -> pl.DataFrame:
    entry, replicas = model.entry, range(model.replicas)
    last = context.curves(model.run).sort("step").group_by("replica").agg(pl.col("loss").last())
    final_loss = dict(last.iter_rows())
    same = ("width", "lr", "batch", "steps", "loss_positions", "stream")
    return pl.DataFrame(
        {
            "run": model.run,
            "replica": replicas,
            "arch": _architecture(entry),
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


def _architecture(entry: dict[str, Any]) -> str:
    """The chapter's name of the architecture."""
    if entry["block"] == "stripped":
        return {"pair": "mfl15", "sum": "mfl16", "angle": "mfl17"}[entry["embedding"]]
    if entry["position"] == "linear":
        return "gpt_pos"
    if entry["attention"] == "uniform":
        return "uniform"
    if entry["block"] in ("resln", "eq6"):
        return str(entry["block"])
    return "gpt200" if entry["width"] == 200 else "gpt"


def _attention(context: Any, model: _Model) -> Iterator[pl.DataFrame]:
    """The maps that figures show: on D4, of the first replicas that count."""
    kept, _ = model.kept(accurate=True)
    shown = kept[: context.entry.analysis.stored_maps]
    for maps in model.maps if model.run in MAPPED else ():
        if maps.pattern_SxRxNxN is None:
            continue
        query, key = np.tril_indices(maps.n_rows)
        weight = maps.pattern_SxRxNxN[:, shown].double().numpy()[..., query, key]
        sequence, replica = (np.repeat(index, len(query)) for index in np.indices(weight.shape[:2]))
        entries = {"query": np.resize(query, len(replica)), "key": np.resize(key, len(replica))}
        yield pl.DataFrame(
            {
                "run": model.run,
                "replica": shown[replica],
                "probe_split": maps.probe,
                "seq_id": np.array(maps.seq_ids)[sequence],
                "layer": maps.layer,
                "head": maps.head,
                "start_included": maps.start,
                "causal": True,
                **entries,
                "weight": weight.ravel(),
            }
        )


def _variation(context: Any, model: _Model, maps: _Maps) -> pl.DataFrame:
    kept, reason = model.kept(accurate=True)
    mean_S, draws_SxB = _pair_means(context, model, maps)
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


def _pair_means(context: Any, model: _Model, maps: _Maps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean distance between the replicas that count, (S,), and its bootstrap draws, (S, resamples).

    All maps of a run see the same resamples of its replicas, so differences and ratios of layers and means
    over sentences can be taken draw by draw.
    """
    kept, _ = model.kept(accurate=True)
    rng = _stream(context, "variation", model.run)
    counts = stats.resample_counts(rng, len(kept), context.entry.analysis.resamples)
    distances = maps.distances_SxRxR[:, kept[:, None], kept]
    means = stats.pair_mean_draws(distances, np.ones((1, len(kept)), int))
    draws = stats.pair_mean_draws(distances, counts)
    return means[:, 0], draws if len(kept) > 1 else np.full_like(draws, np.nan)


def _table1(context: Any, model: _Model) -> Iterator[pl.DataFrame]:
    """The layers of one row of Table 1."""
    if model.run not in TABLE_1.values():
        return
    analysis = context.entry.analysis
    kept, reason = model.kept(accurate=True)
    published = PUBLISHED_TABLE_1.get((model.k, model.depth, model.entry["layers"]), [])
    for layer in range(1, model.entry["layers"] + 1):
        maps = model.layer(TABLE_1_PROBE, True, layer)
        if maps is None:
            continue
        mean_S, draws_SxB = _pair_means(context, model, maps)
        lo, hi = stats.percentiles(draws_SxB.mean(0), analysis.confidence)
        printed = published[layer - 1] if layer <= len(published) else (None, None)
        yield pl.DataFrame(
            {
                "run": model.run,
                "lang_k": model.k,
                "lang_D": model.depth,
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


def _fig3(model: _Model) -> list[pl.DataFrame]:
    arms = [arm for arm, run in ARMS.items() if run == model.run]
    lengen = {name: model.column(LENGTH_GENERALISATION, name) for name in ("acc_close", "acc_thr80")}
    if not arms or not model.balance or lengen["acc_close"] is None:
        return []
    about = {
        "arm": arms[0],
        "data": model.split.removeprefix("train_"),
        "diverged": [replica in model.diverged for replica in range(model.replicas)],
    }
    return [pl.DataFrame({**model.balance[0].to_dict(), **lengen, **about})]


# Comparisons that claims are about


def _contrasts(context: Any, models: dict[str, _Model]) -> list[pl.DataFrame]:
    rows = []
    for model in models.values():
        rows += _in_distribution(context, model)
        rows += _stack_like(context, model)
        rows += _layer_ratio(context, model)
        if model.run in MODELS:
            rows += _over_random(context, model)
    if STANDARD in models and MINIMAL in models:
        rows += _variation_ratios(context, models[MINIMAL], models[STANDARD])
    arms = {arm: models[run] for arm, run in ARMS.items() if run in models and models[run].balance}
    for model in arms.values():
        rows += _alone(context, model)
    if len(arms) == len(ARMS):
        rows += _compared(context, arms["contrastive"], arms["standard"])
    return [pl.DataFrame(rows, infer_schema_length=None)] if rows else []


def _in_distribution(context: Any, model: _Model) -> list[dict[str, Any]]:
    """Accuracy on data like the training data, of all replicas that did not diverge (claims 3 and 12)."""
    values = model.column(IN_DISTRIBUTION[model.split], "acc_close")
    if values is None:
        return []
    kept, _ = model.kept(accurate=False)
    about = ("in_distribution", "median", "acc_close")
    return [_bootstrap(context, about, stats.median, [model], [values[kept]])]


def _stack_like(context: Any, model: _Model) -> list[dict[str, Any]]:
    """Stack score of the last layer, over replicas (claim 4)."""
    scores = [frame for frame in model.stack if frame["layer"][0] == model.entry["layers"]]
    if not scores:
        return []
    kept, _ = model.kept(accurate=True)
    values = scores[0].filter(head=0)["stack_argmax"].to_numpy()[kept]
    share = (values >= STACK_LIKE).astype(float)
    return [
        _bootstrap(context, ("stack", "mean", "stack_argmax"), stats.mean, [model], [values], accurate=True),
        _bootstrap(
            context,
            ("stack", "stack-like share", "stack_argmax"),
            stats.mean,
            [model],
            [share],
            accurate=True,
        ),
    ]


def _layer_ratio(context: Any, model: _Model) -> list[dict[str, Any]]:
    """Table 1: variation of the last layer over that of the layer below, in models of three (claims 13, 14)."""
    layers = [model.layer(TABLE_1_PROBE, True, layer) for layer in (3, 2)]
    if model.run not in TABLE_1.values() or None in layers:
        return []
    means, draws = zip(*(_pair_means(context, model, maps) for maps in layers if maps), strict=True)
    interval = _ratio(
        [mean_S.mean() for mean_S in means], [draws_SxB.mean(0) for draws_SxB in draws], context
    )
    about = ("layer_ratio", "ratio of means over sentences", "layer 3 over layer 2")
    return [_contrast(context, about, interval, [model])]


def _over_random(context: Any, model: _Model) -> list[dict[str, Any]]:
    """Variation on D4 as a multiple of the closed form for random causal maps (claim 6)."""
    rows = []
    for start in (False, True):
        maps = model.layer(PROBE, start, model.entry["layers"])
        if maps is not None:
            mean_S, draws_SxB = _pair_means(context, model, maps)
            baseline = stats.causal_distance(maps.n_rows)
            lo, hi = stats.percentiles(draws_SxB[0], context.entry.analysis.confidence)
            interval = stats.Interval(mean_S[0] / baseline, lo / baseline, hi / baseline)
            about = ("variation_over_random", "ratio to closed form", _convention(start))
            rows.append(_contrast(context, about, interval, [model]))
    return rows


def _variation_ratios(context: Any, first: _Model, second: _Model) -> list[dict[str, Any]]:
    """Variation on D4 of ``first`` over that of ``second``, replicas resampled independently (claim 7)."""
    rows = []
    for start in (False, True):
        found = []
        for model in (first, second):
            maps = model.layer(PROBE, start, model.entry["layers"])
            if maps is None:
                return []
            found.append(_pair_means(context, model, maps))
        interval = _ratio([mean[0] for mean, _ in found], [draws[0] for _, draws in found], context)
        about = ("variation_ratio", "ratio of means over pairs", _convention(start))
        rows.append(_contrast(context, about, interval, [first, second]))
    return rows


def _ratio(
    values: Sequence[np.float64], draws: Sequence[NDArray[np.float64]], context: Any
) -> stats.Interval:
    """The first value over the second, with an interval from the ratio of their draws."""
    with np.errstate(divide="ignore", invalid="ignore"):  # maps that all agree
        value, ratio = np.divide(values[0], values[1]), np.divide(draws[0], draws[1])
    return stats.Interval(float(value), *stats.percentiles(ratio, context.entry.analysis.confidence))


def _convention(start: bool) -> str:
    return f"variation, start token {'included' if start else 'omitted'}"


def _alone(context: Any, model: _Model) -> list[dict[str, Any]]:
    """One arm of Figure 3."""
    data = _columns(model)
    rows = [_bootstrap(context, ("beta", "median", "beta"), stats.median, [model], [data["beta"]])]
    for name in _accuracies(data):
        rows.append(_bootstrap(context, ("accuracy", "mean", name), stats.mean, [model], [data[name]]))
        about, pair = ("rank", "spearman", f"beta, {name}"), [data["beta"], data[name]]
        rows.append(_bootstrap(context, about, stats.spearman, [model], pair))
    return rows


def _compared(context: Any, first: _Model, second: _Model) -> list[dict[str, Any]]:
    """Both arms of Figure 3 (claims 8-10). Runs of one stream start alike, so their replicas are paired."""
    models = [first, second]
    paired = first.entry["stream"] == second.entry["stream"] and first.replicas == second.replicas
    arms = [_columns(model, models if paired else None) for model in models]
    rows = []

    def compare(contrast: str, statistic: str, how: stats.Statistic, name: str) -> None:
        values = [arm[name] for arm in arms]
        rows.append(_bootstrap(context, (contrast, statistic, name), how, models, values, paired=paired))

    compare("beta", "difference of medians", stats.median_difference, "beta")
    compare("beta", "ratio of medians", stats.median_ratio, "beta")
    for name in _accuracies(*arms):
        compare("accuracy", "difference of means", stats.mean_difference, name)
        pooled = [np.concatenate([arm[column] for arm in arms]) for column in ("beta", name)]
        about = ("rank", "spearman of both arms pooled", f"beta, {name}")
        rows.append(_bootstrap(context, about, stats.spearman, models, pooled) | {"paired": False})
    return rows


def _columns(model: _Model, together: list[_Model] | None = None) -> dict[str, NDArray[np.float64]]:
    """Beta and the accuracies at length, of the replicas that did not diverge (in any of ``together``)."""
    keep = reduce(np.intersect1d, (other.kept(accurate=False)[0] for other in together or [model]))
    found = {"beta": model.balance[0]["beta"].to_numpy()}
    for name in ("acc_close", "acc_thr80"):
        values = model.column(LENGTH_GENERALISATION, name)
        if values is not None:
            found[name] = values
    return {name: values[keep] for name, values in found.items()}


def _accuracies(*data: dict[str, NDArray[np.float64]]) -> list[str]:
    """Which accuracies all of ``data`` have."""
    return [name for name in ("acc_close", "acc_thr80") if all(name in columns for columns in data)]


def _bootstrap(
    context: Any,
    about: tuple[str, str, str],
    how: stats.Statistic,
    models: list[_Model],
    values: list[NDArray[np.float64]],
    accurate: bool = False,
    paired: bool = True,
) -> dict[str, Any]:
    """A contrast by resampling the replicas behind ``values``."""
    analysis = context.entry.analysis
    rng = _stream(context, *about[:2], *(model.run for model in models), about[2])
    interval = stats.bootstrap(
        how, *values, rng=rng, resamples=analysis.resamples, confidence=analysis.confidence, paired=paired
    )
    row = _contrast(context, about, interval, models, accurate)
    return row | {"n": len(values[0]), "paired": paired and len(models) > 1}


def _contrast(
    context: Any,
    about: tuple[str, str, str],
    interval: stats.Interval,
    models: list[_Model],
    accurate: bool = True,
) -> dict[str, Any]:
    """One row of contrasts; ``about``: contrast, statistic, metric. Replicas that are not ``accurate`` count as
    left out where that is asked, else only diverged ones."""
    kept = [model.kept(accurate) for model in models]
    reasons = [f"{model.run}: {reason}" for model, (_, reason) in zip(models, kept, strict=True) if reason]
    return {
        "contrast": about[0],
        "statistic": about[1],
        "first": models[0].run,
        "second": models[1].run if len(models) > 1 else None,
        "metric": about[2],
        **interval._asdict(),
        "confidence": context.entry.analysis.confidence,
        "n": len(kept[0][0]),
        "n_excluded": sum(model.replicas - len(some) for model, (some, _) in zip(models, kept, strict=True)),
        "excluded_reason": "; ".join(reasons),
        "paired": False,
    }


def _stream(context: Any, *names: str | int) -> np.random.Generator:
    return stream(context.seed, context.study, "analysis", "bootstrap", *names)
