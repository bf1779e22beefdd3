"""From trained models to result tables: DYCK-A1, A2, A3, A5 (Wen et al. 2023, section 4; chapter section 3.4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline import stats
from pipeline.errors import SandglassError
from pipeline.languages import dyck
from pipeline.models import transformer
from pipeline.streams import stream
from pipeline.studies.dyck import metrics
from schemas.dyck.tables import ARMS, MINIMAL, MODELS, PROBE, SCHEMAS, STANDARD

LENGTH_GENERALISATION = "lengen"
IN_DISTRIBUTION = {"train_complete": "dev_complete", "train_prefix": "dev_prefix"}
EVALUATION = (*IN_DISTRIBUTION.values(), LENGTH_GENERALISATION)
PROBES = (PROBE, "probe19")

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
    with _one_thread():
        models = [_measure(context, run, datasets) for run in context.entry.runs]
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for model in models:
        rows["runs"].append(_runs(context, model))
        rows["accuracy"] += model.accuracy
        rows["attention"] += _attention(model)
        rows["variation"] += _variation(context, model)
        rows["balance"] += model.balance
        rows["balance_detail"] += model.balance_detail
        rows["fig3"] += _fig3(model)
    tables = {name: _conform(name, frames, context) for name, frames in rows.items()}
    contrasts = _contrasts(context, {model.run: model for model in models}, tables["variation"])
    return tables | {"contrasts": _conform("contrasts", contrasts, context)}


@dataclass(frozen=True)
class _Model:
    """One run, measured."""

    run: str
    entry: dict[str, Any]
    split: str  # of its training data
    k: int
    depth: int
    diverged: dict[int, int]
    patterns: list[tuple[dict[str, Any], Tensor]]  # where it was recorded, and (R, H, N, N)
    accuracy: list[pl.DataFrame]
    balance: list[pl.DataFrame]
    balance_detail: list[pl.DataFrame]

    @property
    def replicas(self) -> int:
        return int(self.entry["replicas"])

    def column(self, split: str, name: str) -> NDArray[np.float64] | None:
        """(R,) accuracy on an evaluation set, None if it was not measured there."""
        found = [frame for frame in self.accuracy if frame["eval_split"][0] == split]
        return found[0][name].to_numpy() if found else None

    def last_layer(self, probe: str, start: bool) -> Tensor | None:
        """(R, N, N): last layer, first head, first sequence of a probe; None if it was not recorded."""
        wanted = {"probe_split": probe, "seq_id": 0, "layer": self.entry["layers"], "start_included": start}
        found = [pattern for where, pattern in self.patterns if wanted.items() <= where.items()]
        return found[0][:, 0] if found else None

    def kept(self, min_accuracy: float | None) -> tuple[NDArray[np.int64], str]:
        """Replicas that count, and why the others do not; without a bound only diverged ones are left out."""
        ok = ~np.isin(np.arange(self.replicas), list(self.diverged))
        reasons = [f"{len(self.diverged)} diverged"] if self.diverged else []
        accuracy = self.column(IN_DISTRIBUTION[self.split], "acc_close")
        if min_accuracy is not None and accuracy is not None:
            low = ok & (accuracy < min_accuracy)
            reasons += [f"{low.sum()} with acc_close below {min_accuracy:g}"] if low.any() else []
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
    split, k, depth = datasets[entry["dataset"]].select("split", "lang_k", "lang_D").row(0)
    splits = {
        frame["split"][0]: frame
        for frame in datasets.values()
        if frame.select("lang_k", "lang_D").row(0) == (k, depth)
    }
    with torch.inference_mode():
        patterns = [
            item for name in PROBES if name in splits for item in _patterns(ensemble, entry, splits[name])
        ]
        accuracy = [
            _accuracy(ensemble, entry, run, split, splits[name]) for name in EVALUATION if name in splits
        ]
        balance, detail = _balance(ensemble, entry, run, k, depth)
    diverged = {int(replica): step for replica, step in header["diverged"].items()}
    return _Model(run, entry, split, k, depth, diverged, patterns, accuracy, balance, detail)


# Inputs of models


def _inputs(tokens: NDArray[np.int8], entry: dict[str, Any], depth: int, start: bool) -> Tensor:
    """(1, B, T) what the model reads: tokens or symbols, with the start token in front where asked.

    Padding becomes the start token: it comes last, and causal attention never looks at it.
    """
    ids = tokens if entry["embedding"] == "token" else dyck.symbols(tokens, depth)
    ids = np.where(ids == dyck.PADDING, dyck.START, ids)
    return torch.from_numpy((dyck.with_start(ids) if start else ids).astype(np.int64))[None]


def _padded(frame: pl.DataFrame) -> NDArray[np.int8]:
    lengths = frame["length"].to_numpy()
    tokens = np.full((frame.height, int(lengths.max())), dyck.PADDING, np.int8)
    tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = frame["tokens"].explode().to_numpy()
    return tokens


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


def _accuracy(
    ensemble: transformer.Ensemble, entry: dict[str, Any], run: str, train_split: str, frame: pl.DataFrame
) -> pl.DataFrame:
    depth, split = int(frame["lang_D"][0]), frame["split"][0]

    def batch(sequences: pl.DataFrame) -> metrics.Accuracy:
        tokens = _padded(sequences)
        ids = _inputs(tokens, entry, depth, start=True)
        ids = ids[..., :-1]  # position i has read what is before target i
        logits, _ = transformer.forward(ensemble.spec, ensemble.params, ensemble.table, ids)
        top = torch.from_numpy(dyck.stack_top(tokens)).long()
        return metrics.accuracy(logits, torch.from_numpy(tokens).long(), top)

    found = reduce(metrics.Accuracy.add, map(batch, _batches(frame, entry["replicas"])))
    return pl.DataFrame(
        {
            "run": run,
            "replica": range(entry["replicas"]),
            "eval_split": split,
            "in_distribution": split == IN_DISTRIBUTION[train_split],
            **{name: getattr(found, name).numpy() for name in ("acc_close", "acc_all", "acc_thr80")},
            "n_sequences": frame.height,
            "shortest": frame["length"].min(),
            "longest": frame["length"].max(),
            "n_close": found.n_close,
            "n_open_stack": found.n_open_stack,
        }
    )


def _patterns(
    ensemble: transformer.Ensemble, entry: dict[str, Any], frame: pl.DataFrame
) -> Iterator[tuple[dict[str, Any], Tensor]]:
    """Attention of every layer on every sequence of a probe, without and with the start token (A2)."""
    names = [f"blocks.{layer}.attn.pattern" for layer in range(ensemble.spec.layers)]
    for sequence in frame.sort("seq_id").iter_slices(1):
        for start in (False, True):
            ids = _inputs(_padded(sequence), entry, int(sequence["lang_D"][0]), start)
            _, recorded = transformer.forward(
                ensemble.spec, ensemble.params, ensemble.table, ids, record=names
            )
            for layer, name in enumerate(names, start=1):
                where = {"probe_split": sequence["split"][0], "seq_id": sequence["seq_id"][0], "layer": layer}
                yield where | {"start_included": start, "causal": True}, recorded[name][:, 0]


def _balance(
    ensemble: transformer.Ensemble, entry: dict[str, Any], run: str, k: int, depth: int
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
    return "gpt200" if entry["width"] == 200 else "gpt"


def _attention(model: _Model) -> Iterator[pl.DataFrame]:
    for where, pattern_RxHxNxN in model.patterns:
        query, key = np.tril_indices(pattern_RxHxNxN.shape[-1])
        replica, head = (np.repeat(index, len(query)) for index in np.indices(pattern_RxHxNxN.shape[:2]))
        entries = {"query": np.resize(query, len(replica)), "key": np.resize(key, len(replica))}
        weight = pattern_RxHxNxN.double().numpy()[:, :, query, key].ravel()
        yield pl.DataFrame(
            {"run": model.run, "replica": replica, "head": head, **entries, "weight": weight, **where}
        )


def _variation(context: Any, model: _Model) -> Iterator[pl.DataFrame]:
    analysis = context.entry.analysis
    kept, reason = model.kept(analysis.min_accuracy)
    for where, pattern_RxHxNxN in model.patterns:
        n = pattern_RxHxNxN.shape[-1]
        for head in range(pattern_RxHxNxN.shape[1]):
            distances = _distances(pattern_RxHxNxN[:, head], kept)
            rng = _stream(
                context, "variation", model.run, *(str(where[name]) for name in sorted(where)), head
            )
            interval = stats.bootstrap_pairs(distances, rng, analysis.resamples, analysis.confidence)
            yield pl.DataFrame(
                {
                    "run": model.run,
                    **where,
                    "head": head,
                    "last_layer": where["layer"] == model.entry["layers"],
                    "n_models": len(kept),
                    "n_rows": n,
                    "variation_mean": interval.value,
                    "ci_lo": interval.lo,
                    "ci_hi": interval.hi,
                    "confidence": analysis.confidence,
                    "random_baseline": stats.causal_distance(n),
                    "n_excluded": model.replicas - len(kept),
                    "excluded_reason": reason,
                }
            )


def _distances(pattern_RxNxN: Tensor, replicas: NDArray[np.int64]) -> NDArray[np.float64]:
    """Between the maps of these replicas; (0, 0) if there are none."""
    if not len(replicas):
        return np.zeros((0, 0))
    return metrics.variation_distances(pattern_RxNxN[replicas]).numpy()


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


# Comparisons between runs


def _contrasts(context: Any, models: dict[str, _Model], variation: pl.DataFrame) -> list[pl.DataFrame]:
    rows = _over_random(variation)
    if STANDARD in models and MINIMAL in models:
        rows += _variation_ratios(context, models[MINIMAL], models[STANDARD])
    arms = {arm: models[run] for arm, run in ARMS.items() if run in models and models[run].balance}
    for model in arms.values():
        rows += _alone(context, model)
    if len(arms) == len(ARMS):
        rows += _compared(context, arms["contrastive"], arms["standard"])
    return [pl.DataFrame(rows, infer_schema_length=None)] if rows else []


def _over_random(variation: pl.DataFrame) -> list[dict[str, Any]]:
    """Variation on D4 as a multiple of the closed form for random causal maps (claim 6)."""
    wanted = pl.col("run").is_in(list(MODELS)) & pl.col("last_layer") & (pl.col("probe_split") == PROBE)
    columns = {"value": "variation_mean", "lo": "ci_lo", "hi": "ci_hi"}
    ratios = [(pl.col(column) / pl.col("random_baseline")).alias(name) for name, column in columns.items()]
    return [
        {
            "contrast": "variation_over_random",
            "statistic": "ratio to closed form",
            "first": row["run"],
            "second": None,
            "metric": _convention(row["start_included"]),
            **{name: row[name] for name in (*columns, "confidence")},
            "n": row["n_models"],
            "n_excluded": row["n_excluded"],
            "excluded_reason": row["excluded_reason"],
            "paired": False,
        }
        for row in variation.filter(wanted, head=0, seq_id=0).with_columns(ratios).iter_rows(named=True)
    ]


def _variation_ratios(context: Any, first: _Model, second: _Model) -> list[dict[str, Any]]:
    """Variation on D4 of ``first`` over that of ``second``, replicas resampled independently (claim 7)."""
    analysis = context.entry.analysis
    kept = {model.run: model.kept(analysis.min_accuracy) for model in (first, second)}
    rows = []
    for start in (False, True):
        means, draws = [], []
        for model in (first, second):
            pattern_RxNxN = model.last_layer(PROBE, start)
            if pattern_RxNxN is None:
                return []
            distances = _distances(pattern_RxNxN, kept[model.run][0])
            rng = _stream(context, "variation_ratio", model.run, int(start))
            means.append(stats.pair_mean(distances))
            counts = stats.resample_counts(rng, len(distances), analysis.resamples)
            draws.append(stats.pair_mean_draws(distances, counts))
        with np.errstate(divide="ignore", invalid="ignore"):  # maps that all agree
            value, ratio = np.divide(means[0], means[1]), np.divide(draws[0], draws[1])
        interval = stats.Interval(float(value), *stats.percentiles(ratio, analysis.confidence))
        excluded = sum(model.replicas - len(kept[model.run][0]) for model in (first, second))
        rows.append(
            {
                "contrast": "variation_ratio",
                "statistic": "ratio of means over pairs",
                "first": first.run,
                "second": second.run,
                "metric": _convention(start),
                **interval._asdict(),
                "confidence": analysis.confidence,
                "n": len(kept[first.run][0]),
                "n_excluded": excluded,
                "excluded_reason": _reasons({run: reason for run, (_, reason) in kept.items()}),
                "paired": False,
            }
        )
    return rows


def _convention(start: bool) -> str:
    return f"variation, start token {'included' if start else 'omitted'}"


def _alone(context: Any, model: _Model) -> list[dict[str, Any]]:
    """One arm of Figure 3."""
    data = _columns(model)
    rows = [_row(context, "beta", "median", stats.median, [model], "beta", [data["beta"]])]
    for name in _accuracies(data):
        rows.append(_row(context, "accuracy", "mean", stats.mean, [model], name, [data[name]]))
        pair = [data["beta"], data[name]]
        rows.append(_row(context, "rank", "spearman", stats.spearman, [model], f"beta, {name}", pair))
    return rows


def _compared(context: Any, first: _Model, second: _Model) -> list[dict[str, Any]]:
    """Both arms of Figure 3 (claims 8-10). Runs of one stream start alike, so their replicas are paired."""
    models = [first, second]
    paired = first.entry["stream"] == second.entry["stream"] and first.replicas == second.replicas
    arms = [_columns(model, models if paired else None) for model in models]
    rows = []

    def compare(contrast: str, statistic: str, how: stats.Statistic, name: str) -> None:
        values = [arm[name] for arm in arms]
        rows.append(_row(context, contrast, statistic, how, models, name, values, paired))

    compare("beta", "difference of medians", stats.median_difference, "beta")
    compare("beta", "ratio of medians", stats.median_ratio, "beta")
    for name in _accuracies(*arms):
        compare("accuracy", "difference of means", stats.mean_difference, name)
        pooled = [np.concatenate([arm[column] for arm in arms]) for column in ("beta", name)]
        row = _row(
            context, "rank", "spearman of both arms pooled", stats.spearman, models, f"beta, {name}", pooled
        )
        rows.append(row | {"paired": False})
    return rows


def _columns(model: _Model, together: list[_Model] | None = None) -> dict[str, NDArray[np.float64]]:
    """Beta and the accuracies at length, of the replicas that did not diverge (in any of ``together``)."""
    keep = reduce(np.intersect1d, (other.kept(None)[0] for other in together or [model]))
    found = {"beta": model.balance[0]["beta"].to_numpy()}
    for name in ("acc_close", "acc_thr80"):
        values = model.column(LENGTH_GENERALISATION, name)
        if values is not None:
            found[name] = values
    return {name: values[keep] for name, values in found.items()}


def _accuracies(*data: dict[str, NDArray[np.float64]]) -> list[str]:
    """Which accuracies all of ``data`` have."""
    return [name for name in ("acc_close", "acc_thr80") if all(name in columns for columns in data)]


def _row(
    context: Any,
    contrast: str,
    statistic: str,
    how: stats.Statistic,
    models: list[_Model],
    metric: str,
    values: list[NDArray[np.float64]],
    paired: bool = True,
) -> dict[str, Any]:
    """One contrast; Figure 3 leaves out diverged replicas only."""
    runs = [model.run for model in models]
    kept = {model.run: model.kept(None) for model in models}
    rng = _stream(context, contrast, statistic, *runs, metric)
    analysis = context.entry.analysis
    interval = stats.bootstrap(
        how, *values, rng=rng, resamples=analysis.resamples, confidence=analysis.confidence, paired=paired
    )
    return {
        "contrast": contrast,
        "statistic": statistic,
        "first": runs[0],
        "second": runs[1] if len(runs) > 1 else None,
        "metric": metric,
        **interval._asdict(),
        "confidence": analysis.confidence,
        "n": len(values[0]),
        "n_excluded": sum(model.replicas - len(kept[model.run][0]) for model in models),
        "excluded_reason": _reasons({run: reason for run, (_, reason) in kept.items()}),
        "paired": paired and len(runs) > 1,
    }


def _reasons(reasons: dict[str, str]) -> str:
    return "; ".join(f"{run}: {reason}" for run, reason in reasons.items() if reason)


# Frames


def _stream(context: Any, *names: str | int) -> np.random.Generator:
    return stream(context.seed, context.study, "analysis", "bootstrap", *names)


def _conform(name: str, frames: list[pl.DataFrame], context: Any) -> pl.DataFrame:
    """One frame with the columns and types of its schema, stamped; no rows if there is nothing to tell."""
    stamp = {"scale": context.scale, "params_hash": context.params_hash}
    dtypes = {column: field.dtype.type for column, field in SCHEMAS[name].to_schema().columns.items()}
    own = [column for column in dtypes if column not in stamp]
    typed = [frame.select(pl.col(column).cast(dtypes[column]) for column in own) for frame in frames]
    frame = pl.concat([pl.DataFrame(schema={column: dtypes[column] for column in own}), *typed])
    return frame.with_columns(pl.selectors.float().fill_nan(None)).with_columns(
        pl.lit(value).alias(key) for key, value in stamp.items()
    )
