"""E13 to E15: models of the flip-flop automaton, their attention, and how it drifts (sections 3.5.4.3, 3.5.6.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.measures import contrasts, maps, reading
from pipeline.studies.flipflop.measures.contrasts import Floats, Row, resampled, share, single
from pipeline.studies.flipflop.measures.reading import Config
from pipeline.studies.flipflop.names import (
    LINEAR,
    LINEAR_ARMS,
    LINEAR_SHARP,
    MANY,
    MANY_FIRST,
    MANY_SHARP,
    ONE,
    ONE_ARMS,
)

MAPPED = 40  # sequences whose attention is measured
PROBE = np.array([[2, 0, 1, 0, 0, 1, 2, 0]])  # FF-D10
SILENT, BEFORE = 800, 32  # no-ops of the drift probes, and between their writes
EVERY = 8  # positions between two rows of the table of drift
RECENT = 32
BAD = 0.01  # error on the training distribution above which a minimum is bad
FAR = 4  # times the training length, on which models are measured as well where their positions allow it
ON = {"0.5": "p05", "0.9": "p09"}  # the held-out set of a share of no-ops in training


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return errors and sharpness of all models, maps, distances of heads, norms, drift, and comparisons."""
    sharp: list[Row] = []
    shown: list[Row] = []
    heads: list[Row] = []
    apart: list[Row] = []
    norms: list[Row] = []
    drift: list[Row] = []
    switches: list[Row] = []
    with one_thread():
        configs = reading.configs(context)
        for config in configs.values():
            sharp += _measured(context, config)
            shown += _maps(config)
            norms += _norms(config)
            if config.entry["family"] == "many_heads":
                heads += _heads(context, config)
                apart += _distances(context, config)
            if config.entry["family"] == "linear":
                for rows, switch in _drifts(config):
                    drift += rows
                    switches.append(switch)
    measured = pl.DataFrame(sharp, infer_schema_length=None)
    summary = pl.DataFrame(switches, infer_schema_length=None)
    return {
        "configs": pl.DataFrame(
            [reading.described(each) for each in configs.values()], infer_schema_length=None
        ),
        "sim_eval": measured,
        "sim_maps": pl.DataFrame(shown),
        "heads": pl.DataFrame(heads),
        "head_distance": pl.DataFrame(apart),
        "weight_norms": pl.DataFrame(norms),
        "drift": pl.DataFrame(drift, infer_schema_length=None),
        "drift_summary": summary,
        "contrasts": contrasts.table(
            _contrasts(context, Known(configs, measured, pl.DataFrame(heads), pl.DataFrame(norms)), summary)
        ),
    }


def _measured(context: Inputs, config: Config) -> Iterator[Row]:
    """Yield errors on all sets and sharpness at the training length and, where positions go on beyond it, errors at
    four times that length."""
    trained, learned = config.entry["length"], config.entry["position"] == "learned"
    frame, layers = context.dataset(config.entry["dataset"]), config.entry["layers"]
    for (name, length), part in frame.group_by("set", "length", maintain_order=True):
        own = length == trained
        if not own and (learned or length != FAR * trained):
            continue
        symbols = reading.matrix(part["tokens"])
        answers = np.concatenate(
            [
                config.forward(chunk)[0].argmax(-1).numpy()
                for chunk in np.array_split(symbols, 1 + symbols.size // 16384)
            ],
            1,
        )
        error = (answers != language.states(symbols)).mean((1, 2))
        scores = {}
        if own:
            some = symbols[:MAPPED]
            _, recorded = config.forward(some, maps.names(layers, maps.PATTERN, maps.NORMS))
            pattern, lengths = (maps.stacked(recorded, what, layers) for what in (maps.PATTERN, maps.NORMS))
            scores = maps.sharpness(pattern, lengths, some, answers[:, :MAPPED])
        for i, r in enumerate(config.replicas):
            yield {
                "run": config.name, "family": config.entry["family"], "replica": r, "set": name, "length": length,
                "n": symbols.size, "error": float(error[i]),
            } | {key: None if np.isnan(values[i]) else float(values[i]) for key, values in scores.items()}  # fmt: skip


def _maps(config: Config) -> Iterator[Row]:
    """Yield the attention of the first model of a run on the short probe."""
    layers = config.entry["layers"]
    _, recorded = config.forward(PROBE, maps.names(layers, maps.PATTERN, maps.NORMS))
    patterns = maps.stacked(recorded, maps.PATTERN, layers)[0, :, 0]
    last = language.last_symbol(PROBE)[0]
    for (layer, head, query, key), weight in np.ndenumerate(patterns):
        if key <= query:
            yield {
                "run": config.name, "layer": layer + 1, "head": head + 1, "query": query, "key": key,
                "weight": float(weight), "last_write": bool(last[query] == key),
            }  # fmt: skip


def _heads(context: Inputs, config: Config) -> Iterator[Row]:
    """Yield where each head looks on inputs as in training, and whether it is ideal on the short probe."""
    layers, trained = config.entry["layers"], config.entry["length"]
    frame = context.dataset(config.entry["dataset"]).filter(
        set=ON[f"{config.entry['train'][0]:g}"], length=trained
    )
    symbols = reading.matrix(frame["tokens"])[:MAPPED]
    patterns = {}
    for name, inputs in (("set", symbols), ("probe", PROBE)):
        _, recorded = config.forward(inputs, maps.names(layers, maps.PATTERN))
        patterns[name] = maps.stacked(recorded, maps.PATTERN, layers)  # (R, L, N, H, T, T)
    on = {
        name: maps.on_last_write(patterns[name], inputs)
        for name, inputs in (("set", symbols), ("probe", PROBE))
    }
    largest = patterns["set"].max(-1).mean((2, 4))
    for (i, layer, head), share_on_write in np.ndenumerate(on["set"]):
        yield {
            "run": config.name, "replica": config.replicas[i], "layer": layer + 1, "head": head + 1,
            "max_weight": float(largest[i, layer, head]), "argmax_last_noop": float(share_on_write),
            "ideal": bool(on["probe"][i, layer, head] == 1),
        }  # fmt: skip


def _steps(config: Config) -> Iterator[tuple[int, Config]]:
    """Yield the kept steps of a run, and its models as they were then."""
    for step in config.entry["snapshots"]:
        prefix = f"step{step}."
        params = {
            name.removeprefix(prefix): value
            for name, value in config.ensemble.params.items()
            if name.startswith(prefix)
        }
        ensemble = type(config.ensemble)(
            config.ensemble.spec, params, config.ensemble.table, config.ensemble.header
        )
        yield step, Config(config.name, config.entry, ensemble, config.replicas)


def _distances(context: Inputs, config: Config) -> Iterator[Row]:
    """Yield how far apart the attention of two heads of a layer is: mean Frobenius norm over sequences / sqrt(T)."""
    frame = context.dataset(config.entry["dataset"]).filter(set="p05", length=config.entry["length"])
    symbols, layers = reading.matrix(frame["tokens"])[:16], config.entry["layers"]
    for step, then in _steps(config):
        _, recorded = then.forward(symbols, maps.names(layers, maps.PATTERN, maps.NORMS))
        patterns = maps.stacked(recorded, maps.PATTERN, layers)
        for a, b in combinations(range(config.entry["heads"]), 2):
            apart = np.linalg.norm(patterns[:, :, :, a] - patterns[:, :, :, b], axis=(-2, -1)).mean(-1)
            for (i, layer), distance in np.ndenumerate(apart / np.sqrt(symbols.shape[1])):
                yield {
                    "run": config.name, "replica": config.replicas[i], "step": step, "layer": layer + 1,
                    "head_a": a + 1, "head_b": b + 1, "distance": float(distance),
                }  # fmt: skip


def _norms(config: Config) -> Iterator[Row]:
    """Yield the norms of all matrices of the layers, at the end of training and at the steps that are kept."""
    end = config.entry["steps"]
    for step, then in ((end, config), *((step, then) for step, then in _steps(config) if step != end)):
        for name, values in sorted(
            then.ensemble.params.items()
        ):  # in a file they have another order in every process
            if values.ndim == 3 and not name.startswith(("step", "embed", "head")):
                for r in config.replicas:
                    matrix = values[r].double().numpy()
                    yield {
                        "run": config.name, "replica": r, "step": step, "matrix": name,
                        "frobenius": float(np.linalg.norm(matrix)), "spectral": float(np.linalg.norm(matrix, 2)),
                    }  # fmt: skip


def _drifts(config: Config) -> Iterator[tuple[list[Row], Row]]:
    """Yield, for each model, rows of attention on both probes of figure 3.33 and what their switch says."""
    probes = {
        "one_write": np.array([[2, *[0] * SILENT]]),
        "two_writes": np.array([[1, *[0] * BEFORE, 2, *[0] * SILENT]]),
        "swapped": np.array([[2, *[0] * BEFORE, 1, *[0] * SILENT]]),
    }
    outputs = {}
    for name, symbols in probes.items():
        logits, recorded = config.forward(symbols, maps.names(1, maps.PATTERN, maps.NORMS))
        outputs[name] = logits.argmax(-1).numpy()[:, 0], maps.stacked(recorded, maps.PATTERN, 1)[:, 0, 0, 0]
    for i, r in enumerate(config.replicas):
        rows = []
        for name in ("one_write", "two_writes"):
            symbols = probes[name]
            last, truth = language.last_symbol(symbols)[0], language.states(symbols)[0]
            answers, pattern = (part[i] for part in outputs[name])
            largest = pattern.argmax(-1)
            for t in range(0, symbols.shape[1], EVERY):
                rows.append(
                    {
                        "run": config.name, "replica": r, "probe": name, "position": t + 1,
                        "argmax_key": int(largest[t]) + 1, "on_last_write": float(pattern[t, last[t]]),
                        "on_itself": float(pattern[t, t]),
                        "on_recent": min(1.0, float(pattern[t, max(0, t - RECENT) : t + 1].sum())),
                        "correct": bool(answers[t] == truth[t]),
                    }
                )  # fmt: skip
        symbols = probes["two_writes"][0]
        pattern = outputs["two_writes"][1][i]
        of = maps.coefficients(config.ensemble.params, r, config.entry["length"])
        expected, seen = maps.predicted_switch(of, symbols), maps.observed_switch(pattern, symbols)
        both = [
            outputs[name][0][i][-1] == language.states(probes[name])[0][-1]
            for name in ("two_writes", "swapped")
        ]
        yield rows, {
            "run": config.name, "replica": r, "a": of.a, "b": of.b, **{f"A{k}": float(of.A[k]) for k in range(3)},
            **{f"g{k}": float(of.g[k]) for k in range(3)}, "switch_predicted": expected, "switch_observed": seen,
            "agree": expected == seen, "on_write_at_end": bool(pattern[-1].argmax() == np.flatnonzero(symbols)[-1]),
            "recent_mass_at_end": min(1.0, float(pattern[-1, -RECENT:].sum())), "right_at_end": bool(all(both)),
        }  # fmt: skip


@dataclass(frozen=True)
class Known:
    """What was measured, by run; empty where a run has no models."""

    configs: dict[str, Config]
    measured: pl.DataFrame
    heads: pl.DataFrame
    norms: pl.DataFrame

    def of(self, run: str, name: str, column: str = "error", times: int = 1) -> Floats:
        """Return a column of the models of a run on a set, at its training length or a multiple of it."""
        if run not in self.configs:
            return np.empty(0)
        rows = self.measured.filter(run=run, set=name, length=times * self.configs[run].entry["length"])
        return rows.sort("replica")[column].cast(pl.Float64).to_numpy()

    def bad(self, run: str, name: str) -> NDArray[np.bool_]:
        """Return which models of a run are in a bad minimum: with errors on inputs as in training."""
        return self.of(run, name) > BAD

    def later(self, run: str) -> Floats:
        """Return the mean largest weight over the heads of all layers but the first, by model."""
        rows = self.heads.filter(pl.col("layer") > 1, run=run) if self.heads.height else self.heads
        return _by_model(rows, "max_weight") if rows.height else np.empty(0)

    def ideal(self, run: str) -> Floats:
        """Return how many heads of the first layer look at the last write from all no-ops of the probe, by model."""
        rows = self.heads.filter(run=run, layer=1) if self.heads.height else self.heads
        return (
            rows.group_by("replica").agg(pl.col("ideal").sum()).sort("replica")["ideal"].to_numpy()
            if rows.height
            else np.empty(0)
        )

    def size(self, run: str) -> Floats:
        """Return the mean over matrices of log10 of their Frobenius norms at the end, by model."""
        if run not in self.configs:
            return np.empty(0)
        rows = self.norms.filter(run=run, step=self.configs[run].entry["steps"])
        return _by_model(rows.with_columns(pl.col("frobenius").log10()), "frobenius")


def _by_model(rows: pl.DataFrame, column: str) -> Floats:
    return rows.group_by("replica").agg(pl.col(column).mean()).sort("replica")[column].to_numpy()


def _contrasts(context: Inputs, known: Known, summary: pl.DataFrame) -> Iterator[Row]:
    of = known.of
    for label, arms in (("linear", LINEAR_ARMS), ("one head", ONE_ARMS)):
        plain, penalised = arms["0.5"]
        for kind, sharp in penalised.items():
            pair = of(sharp, "p05", "max_weight"), of(plain, "p05", "max_weight")
            name = f"{label}, {kind}, max weight"
            yield from resampled(context, name, stats.mean_difference, *pair, paired=True)
            pair = of(plain, "p098"), of(sharp, "p098")
            name = f"{label}, {kind}, error plain - penalised"
            yield from resampled(context, name, stats.mean_difference, *pair, paired=True)
            yield from _bad_minima(context, f"{label}, {kind}", known, sharp, arms["0.9"][1][kind])
    errs = of(LINEAR_SHARP, "p098") > 0, of(LINEAR_SHARP, "p098", times=FAR) > 0
    yield from share(context, "linear, penalised that err", errs[0] | errs[1])
    unpenalised = np.concatenate([known.bad(LINEAR_ARMS[p][0], ON[p]) for p in LINEAR_ARMS])
    yield from share(context, "bad minima without penalty", unpenalised)
    weighted = of(ONE, "p05", "value_right_type") - of(ONE, "p05", "argmax_right_type")
    yield from resampled(context, "one head, value - raw", stats.mean, weighted)
    yield from _many(context, known)
    drifted = summary.filter(run=LINEAR)
    if drifted.height:
        yield from single("drift, models that stay", float(drifted["on_write_at_end"].sum()), drifted.height)
        yield from single("drift, disagreements", float((~summary["agree"]).sum()), summary.height)
        yield from resampled(context, "drift, a", stats.median, drifted["a"].to_numpy())


def _bad_minima(context: Inputs, label: str, known: Known, half: str, rare: str) -> Iterator[Row]:
    """Yield the shares of penalised models in a bad minimum, by the share of no-ops in training, and Fisher's p value.

    Where no model is in one there is no difference to judge, and no row of it.
    """
    bad = known.bad(half, ON["0.5"]), known.bad(rare, ON["0.9"])
    for p, values in zip(ON, bad, strict=True):
        yield from share(context, f"{label}, bad minima p={p}", values)
    if len(bad[0]) and len(bad[1]) and (bad[0].any() or bad[1].any()):
        table = [[int(values.sum()), int((~values).sum())] for values in bad]
        p_value = float(scipy_stats.fisher_exact(table, alternative="greater").pvalue)
        yield from single(f"{label}, bad minima, Fisher", p_value, min(map(len, bad)))
        pair = [values.astype(float) for values in bad]
        yield from resampled(context, f"{label}, bad minima p=0.5 - p=0.9", stats.mean_difference, *pair)


def _many(context: Inputs, known: Known) -> Iterator[Row]:
    """Yield what a penalty on all layers, or on the first alone, does to models of several layers and heads (E15)."""
    for label, run in (("many", MANY_SHARP), ("first layer", MANY_FIRST)):
        pairs = {
            "max weight": (known.of(run, "p05", "max_weight"), known.of(MANY, "p05", "max_weight")),
            "later layers": (known.later(run), known.later(MANY)),
            "norms": (known.size(run), known.size(MANY)),
        }
        for what, pair in pairs.items():
            yield from resampled(context, f"{label}, {what}", stats.mean_difference, *pair, paired=True)
    for label, run in (("many", MANY_SHARP), ("first layer", MANY_FIRST), ("plain", MANY)):
        yield from share(context, f"{label}, one ideal head", known.ideal(run) == 1)
