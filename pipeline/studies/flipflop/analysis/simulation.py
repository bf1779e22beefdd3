"""E13 to E15: models of the flip-flop automaton, their attention, and how it drifts (sections 3.5.4.3, 3.5.6.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.measures import maps, reading
from pipeline.studies.flipflop.measures.reading import Config, Floats, Row
from pipeline.studies.flipflop.names import LINEAR, LINEAR_SHARP, MANY_SHARP, ONE

MAPPED = 40  # sequences whose attention is measured
PROBE = np.array([[2, 0, 1, 0, 0, 1, 2, 0]])  # FF-D10
SILENT, BEFORE = 800, 32  # no-ops of the drift probes, and between their writes
EVERY = 8  # positions between two rows of the table of drift
RECENT = 32
FAR = 4  # times the training length, on which models are measured as well where their positions allow it
NO_HEADS = {
    "run": pl.String,
    "replica": pl.Int64,
    "layer": pl.Int64,
    "max_weight": pl.Float64,
    "ideal": pl.Boolean,
}  # where no models of several layers were trained
ON = {0.5: "p05", 0.9: "p09"}  # the held-out set of a share of no-ops in training


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
    measured = with_learned(pl.DataFrame(sharp, infer_schema_length=None), configs, context.settings)
    summary = pl.DataFrame(switches, infer_schema_length=None)
    in_layers = pl.DataFrame(heads, schema=None if heads else NO_HEADS)
    return {
        "configs": pl.DataFrame([reading.described(each) for each in configs.values()], infer_schema_length=None),
        "sim_eval": measured,
        "sim_maps": pl.DataFrame(shown),
        "heads": in_layers if heads else None,
        "head_distance": pl.DataFrame(apart) if apart else None,
        "weight_norms": pl.DataFrame(norms),
        "drift": pl.DataFrame(drift, infer_schema_length=None),
        "drift_summary": summary,
        "comparisons": _compared(context, Known(configs, measured, in_layers, pl.DataFrame(norms), summary)),
    }


def with_learned(measured: pl.DataFrame, configs: dict[str, Config], settings: Any) -> pl.DataFrame:
    """Return errors with ``learned``: whether the model learned what it was trained on, by that set and length."""
    own = [
        rows.select("run", "replica", learned=pl.Series(reading.learned(rows["error"].to_numpy(), settings)))
        for run, config in configs.items()
        for rows in [measured.filter(run=run, set=ON[config.entry["train"][0]], length=config.entry["length"])]
    ]
    return measured.join(pl.concat(own), on=["run", "replica"], maintain_order="left")


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
                "run": config.name,
                "family": config.entry["family"],
                "replica": r,
                "set": name,
                "length": length,
                "n": symbols.size,
                "error": float(error[i]),
            } | {key: None if np.isnan(values[i]) else float(values[i]) for key, values in scores.items()}


def _maps(config: Config) -> Iterator[Row]:
    """Yield the attention of the first model of a run on the short probe."""
    layers = config.entry["layers"]
    _, recorded = config.forward(PROBE, maps.names(layers, maps.PATTERN, maps.NORMS))
    patterns = maps.stacked(recorded, maps.PATTERN, layers)[0, :, 0]
    last = language.last_symbol(PROBE)[0]
    for (layer, head, query, key), weight in np.ndenumerate(patterns):
        if key <= query:
            yield {
                "run": config.name,
                "layer": layer + 1,
                "head": head + 1,
                "query": query,
                "key": key,
                "weight": float(weight),
                "last_write": bool(last[query] == key),
            }


def _heads(context: Inputs, config: Config) -> Iterator[Row]:
    """Yield where each head looks on inputs as in training, and whether it is ideal on the short probe."""
    layers, trained = config.entry["layers"], config.entry["length"]
    frame = context.dataset(config.entry["dataset"]).filter(set=ON[config.entry["train"][0]], length=trained)
    symbols = reading.matrix(frame["tokens"])[:MAPPED]
    patterns = {}
    for name, inputs in (("set", symbols), ("probe", PROBE)):
        _, recorded = config.forward(inputs, maps.names(layers, maps.PATTERN))
        patterns[name] = maps.stacked(recorded, maps.PATTERN, layers)  # (R, L, N, H, T, T)
    on = {name: maps.on_last_write(patterns[name], inputs) for name, inputs in (("set", symbols), ("probe", PROBE))}
    largest = patterns["set"].max(-1).mean((2, 4))
    for (i, layer, head), share_on_write in np.ndenumerate(on["set"]):
        yield {
            "run": config.name,
            "replica": config.replicas[i],
            "layer": layer + 1,
            "head": head + 1,
            "max_weight": float(largest[i, layer, head]),
            "argmax_last_noop": float(share_on_write),
            "ideal": bool(on["probe"][i, layer, head] == 1),
        }


def _steps(config: Config) -> Iterator[tuple[int, Config]]:
    """Yield the kept steps of a run, and its models as they were then."""
    for step in config.entry["snapshots"]:
        prefix = f"step{step}."
        params = {
            name.removeprefix(prefix): value
            for name, value in config.ensemble.params.items()
            if name.startswith(prefix)
        }
        ensemble = type(config.ensemble)(config.ensemble.spec, params, config.ensemble.table, config.ensemble.header)
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
                    "run": config.name,
                    "replica": config.replicas[i],
                    "step": step,
                    "layer": layer + 1,
                    "head_a": a + 1,
                    "head_b": b + 1,
                    "distance": float(distance),
                }


def _norms(config: Config) -> Iterator[Row]:
    """Yield the norms of all matrices of the layers, at the end of training and at the steps that are kept."""
    end = config.entry["steps"]
    for step, then in ((end, config), *((step, then) for step, then in _steps(config) if step != end)):
        for name, values in sorted(then.ensemble.params.items()):  # in a file they have another order in every process
            if values.ndim == 3 and not name.startswith(("step", "embed", "head")):
                for r in config.replicas:
                    matrix = values[r].double().numpy()
                    yield {
                        "run": config.name,
                        "replica": r,
                        "step": step,
                        "matrix": name,
                        "frobenius": float(np.linalg.norm(matrix)),
                        "spectral": float(np.linalg.norm(matrix, 2)),
                    }


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
                        "run": config.name,
                        "replica": r,
                        "probe": name,
                        "position": t + 1,
                        "argmax_key": int(largest[t]) + 1,
                        "on_last_write": float(pattern[t, last[t]]),
                        "on_itself": float(pattern[t, t]),
                        "on_recent": min(1.0, float(pattern[t, max(0, t - RECENT) : t + 1].sum())),
                        "correct": bool(answers[t] == truth[t]),
                    }
                )
        symbols = probes["two_writes"][0]
        pattern = outputs["two_writes"][1][i]
        of = maps.coefficients(config.ensemble.params, r, config.entry["length"])
        expected, seen = maps.predicted_switch(of, symbols), maps.observed_switch(pattern, symbols)
        both = [outputs[name][0][i][-1] == language.states(probes[name])[0][-1] for name in ("two_writes", "swapped")]
        yield (
            rows,
            {
                "run": config.name,
                "replica": r,
                "a": of.a,
                "b": of.b,
                **{f"A{k}": float(of.A[k]) for k in range(3)},
                **{f"g{k}": float(of.g[k]) for k in range(3)},
                "switch_predicted": expected,
                "switch_observed": seen,
                "agree": expected == seen,
                "on_write_at_end": bool(pattern[-1].argmax() == np.flatnonzero(symbols)[-1]),
                "recent_mass_at_end": min(1.0, float(pattern[-1, -RECENT:].sum())),
                "right_at_end": bool(all(both)),
            },
        )


@dataclass(frozen=True)
class Known:
    """What was measured, by run; empty where a run has no models."""

    configs: dict[str, Config]
    measured: pl.DataFrame
    heads: pl.DataFrame
    norms: pl.DataFrame
    drift: pl.DataFrame

    def of(self, run: str, name: str, column: str = "error", times: int = 1) -> Floats:
        """Return a column of the models of a run on a set, at its training length or a multiple of it."""
        if run not in self.configs:
            return np.empty(0)
        rows = self.measured.filter(run=run, set=name, length=times * self.configs[run].entry["length"])
        return rows.sort("replica")[column].cast(pl.Float64).to_numpy()

    def as_trained(self, run: str, column: str = "error") -> Floats:
        """Return a column of the models of a run on inputs like those of training."""
        return self.of(run, ON[self.configs[run].entry["train"][0]], column) if run in self.configs else np.empty(0)

    def learned(self, run: str) -> reading.Bools:
        """Return which models of a run learned what they were trained on."""
        return self.as_trained(run, "learned") == 1

    def later(self, run: str) -> Floats:
        """Return the mean largest weight over the heads of all layers but the first, by model."""
        return _by_model(self.heads.filter(pl.col("layer") > 1, run=run), pl.col("max_weight").mean())

    def ideal(self, run: str) -> Floats:
        """Return how many heads of the first layer look at the last write from all no-ops of the probe, by model."""
        return _by_model(self.heads.filter(run=run, layer=1), pl.col("ideal").sum())

    def size(self, run: str) -> Floats:
        """Return the mean over matrices of log10 of their Frobenius norms at the end, by model."""
        if run not in self.configs:
            return np.empty(0)
        rows = self.norms.filter(run=run, step=self.configs[run].entry["steps"])
        return _by_model(rows, pl.col("frobenius").log10().mean())

    def paired(self, first: str, second: str, values: Callable[[str], Floats]) -> tuple[Floats, Floats, int]:
        """Return values of the models of two runs that share seeds, where both learned, and how many pairs did not."""
        if first not in self.configs or second not in self.configs:
            return np.empty(0), np.empty(0), 0
        own, other = self.configs[first].replicas, self.configs[second].replicas
        _, here, there = np.intersect1d(own, other, return_indices=True)
        both = self.learned(first)[here] & self.learned(second)[there]
        return values(first)[here][both], values(second)[there][both], int((~both).sum())


def _by_model(rows: pl.DataFrame, value: pl.Expr) -> Floats:
    return rows.group_by("replica").agg(value.alias("value")).sort("replica")["value"].cast(pl.Float64).to_numpy()


def _compared(context: Inputs, known: Known) -> pl.DataFrame:
    found, of, confidence = Measurements(context, reading.UNTRAINED), known.of, context.settings.confidence

    def pair(comparison: Comparison, values: Callable[[str], Floats]) -> None:
        first, second = (arm.runs[0] for arm in comparison.arms)
        *samples, lost = known.paired(first, second, values)
        found.add(comparison, *samples, excluded=lost)

    for comparison in comparisons.WEIGHTS.values():
        pair(comparison, lambda run: known.as_trained(run, "max_weight"))
    for comparison in comparisons.RARE_ERROR.values():
        pair(comparison, lambda run: of(run, "p098"))
    for comparison in comparisons.MINIMA.values():
        found.add(comparison, *(known.as_trained(arm.runs[0]) for arm in comparison.arms))
    errors = np.maximum(of(LINEAR_SHARP, "p098"), of(LINEAR_SHARP, "p098", times=FAR))
    good = known.learned(LINEAR_SHARP)
    found.add(comparisons.PERSISTS, errors[good], excluded=int((~good).sum()))
    good = known.learned(ONE)
    shares = (of(ONE, "p05", column)[good] for column in ("value_right_type", "argmax_right_type"))
    found.add(comparisons.VALUED, *shares, excluded=int((~good).sum()))
    good = known.learned(LINEAR)
    stays = known.drift.filter(run=LINEAR).sort("replica")["on_write_at_end"].to_numpy()
    found.put(comparisons.LEAVES, intervals.share(~stays[good], confidence), int((~good).sum()))
    seeds = known.drift.group_by("replica").agg(pl.col("agree").all())
    found.put(comparisons.FORETOLD, intervals.share(seeds["agree"].to_numpy(), confidence))
    pair(comparisons.SPARSER, lambda run: known.as_trained(run, "max_weight"))
    pair(comparisons.LATER, known.later)
    good = known.learned(MANY_SHARP)
    found.add(comparisons.IDEAL, known.ideal(MANY_SHARP)[good], excluded=int((~good).sum()))
    for comparison in comparisons.NORMS.values():
        pair(comparison, known.size)
    return found.table()
