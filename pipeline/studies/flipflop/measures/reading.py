"""What trained models answer where they read: errors on held-out sets, for every model of a run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import ArrayLike, NDArray

from pipeline.kit import intervals
from pipeline.kit.inputs import Inputs
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.comparisons import OUT
from pipeline.studies.flipflop.names import BASE
from schemas.flipflop.datasets import matrix

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Row = dict[str, Any]
CHUNK = 16384  # tokens that go through a model at once
UNTRAINED = "error on the training language above the bar"


def learned(error: ArrayLike, settings: Any) -> Bools:
    """Return which models learned what they were trained on, by their errors (R,) on held-out inputs like those."""
    return np.asarray(error, float) <= settings.learned


def decades(errors: ArrayLike, count: int) -> Floats:
    """Return log10 of shares of errors among ``count`` answers, half an error more: finite also for none."""
    return np.log10(np.asarray(errors, float) + 0.5 / count)


@dataclass(frozen=True)
class Config:
    """A run with its trained models: those that did not diverge, by number."""

    name: str
    entry: dict[str, Any]
    ensemble: Any
    replicas: list[int]

    @classmethod
    def read(cls, context: Inputs, name: str) -> Config:
        """Return the run ``name`` of the experiment."""
        header, ensemble = context.run_header(name), context.model(name)
        gone = {int(r) for r in header["diverged"]}
        count = next(iter(ensemble.params.values())).shape[0]
        return cls(name, header["entry"], ensemble, [r for r in range(count) if r not in gone])

    @cached_property
    def _module(self) -> Any:
        return importlib.import_module("pipeline.models." + self.entry["model"].replace("/", "."))

    def forward(self, tokens: NDArray[np.integer], record: tuple[str, ...] = ()) -> tuple[torch.Tensor, Any]:
        """Return logits (R, N, T, V) of the models on inputs (N, T), and what was recorded."""
        params = {
            name: value[self.replicas] for name, value in self.ensemble.params.items() if not name.startswith("step")
        }
        ids = torch.from_numpy(tokens.astype(np.int64))[None]
        more = {"record": record} if record else {}
        with torch.inference_mode():
            outputs: tuple[torch.Tensor, Any] = self._module.forward(
                self.ensemble.spec, params, self.ensemble.table, ids, **more
            )
        return outputs

    @property
    def seeds(self) -> Iterator[tuple[int, int, int]]:
        """Yield number, data seed and model seed of each model."""
        k = self.entry["data_seeds"]
        for r in self.replicas:
            yield r, r // k if k else r, r % k if k else r

    def answers(self, tokens: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (R, reads) what models answer at each read of strings (N, T): of all tokens, of data symbols alone."""
        every, data = [], []
        for part in np.array_split(tokens, -(-tokens.size // CHUNK)):
            reads = language.reads(part)
            logits = self.forward(part[:, :-1])[0][:, reads.row, 2 * reads.pair]
            every.append(logits.argmax(-1).numpy() - language.DATA)
            data.append(logits[..., language.DATA :].argmax(-1).numpy())
        return np.concatenate(every, 1), np.concatenate(data, 1)


def held(context: Inputs, config: Config, dataset: str = "") -> dict[str, NDArray[np.uint8]]:
    """Return the held-out sets of a run by name (or those of another dataset), at their length."""
    frame = context.dataset(dataset or config.entry["dataset"])
    names = frame["set"].unique(maintain_order=True).to_list()
    return {name: matrix(frame.filter(set=name)["tokens"]) for name in names}


def own_error(context: Inputs, config: Config, wrong: Callable[[NDArray[np.uint8]], Bools]) -> Floats:
    """Return the error (R,) of each model on held-out strings like those that it was trained on: the mean over its
    languages. ``wrong`` says of strings where the models answer wrongly, (R, reads)."""
    frame = context.dataset(config.entry["dataset"])
    sets = [frame.filter(p_ignore=p) for p in config.entry["train"]]
    errors: Floats = np.mean([wrong(matrix(each["tokens"])).mean(1) for each in sets if each.height], 0)
    return errors


def configs(context: Inputs) -> dict[str, Config]:
    """Return all runs of the experiment that have models."""
    return {name: Config.read(context, name) for name in context.runs()}


def described(config: Config) -> dict[str, Any]:
    """Return the row of the table ``configs``."""
    entry, header = config.entry, config.ensemble
    sharpen = entry["sharpen"] or {"kind": None, "weight": None, "schedule": None, "start": None, "layers": None}
    weights = {name: value for name, value in header.params.items() if not name.startswith("step")}
    same = (
        "family",
        "model",
        "task",
        "layers",
        "heads",
        "width",
        "length",
        "position",
        "activation",
        "loss",
        "batch",
        "steps",
        "epochs",
        "weight_decay",
    )
    return {name: entry[name] for name in same} | {
        "run": config.name,
        "train": ", ".join(f"{p:g}" for p in entry["train"]),
        "lr": entry["lr"][0],
        "beta1": entry["betas"][0],
        "beta2": entry["betas"][1],
        **{f"dropout_{place}": rate for place, rate in entry["dropout"].items()},
        **{f"sharpen_{name}": value for name, value in sharpen.items()},
        "parameters": sum(value[0].numel() for value in weights.values()),
        "models": len(config.replicas),
        "diverged": next(iter(weights.values())).shape[0] - len(config.replicas),
    }


def distances(run: str, name: str, wrong: Bools, reads: language.Reads, confidence: float) -> Iterator[dict[str, Any]]:
    """Yield rows of ``by_distance``: mean errors of the models of a run that learned, in bins that double."""
    for kind, at in (("write", reads.dist_write), ("info", reads.dist_info)):
        bins = np.floor(np.log2(at)).astype(int)
        for b in np.unique(bins):
            here = bins == b
            found = intervals.mean(wrong[:, here].mean(1), confidence).within(0, 1)
            lo, hi = (None if np.isnan(end) else end for end in (found.lo, found.hi))
            yield {
                "run": run,
                "set": name,
                "kind": kind,
                "bin_lo": 2**b,
                "bin_hi": 2 ** (b + 1) - 1,
                "n_reads": int(here.sum()),
                "n_err": int(wrong[:, here].sum()),
                "error": found.value,
                "lo": lo,
                "hi": hi,
                "interval": found.kind,
                "n": found.n,
            }


def final(context: Inputs, config: Config, dataset: str = "") -> tuple[list[Row], list[Row]]:
    """Return rows of ``final`` and of ``by_distance`` of one run; a model counts as learned by held-out strings like
    those that it was trained on."""
    rows: list[Row] = []
    binned: list[Row] = []
    sets = held(context, config, dataset)
    known = {name: _wrong(config, tokens) for name, tokens in sets.items()}
    seen = {tokens.tobytes(): wrong for tokens, (wrong, _) in zip(sets.values(), known.values(), strict=True)}

    def wrong_on(tokens: NDArray[np.uint8]) -> Bools:
        return seen[tokens.tobytes()] if tokens.tobytes() in seen else _wrong(config, tokens)[0]

    good = learned(own_error(context, config, wrong_on), context.settings)
    for name, tokens in sets.items():
        reads, (wrong, disagree) = language.reads(tokens), known[name]
        if good.any():
            binned += distances(config.name, name, wrong[good], reads, context.settings.confidence)
        for i, (replica, data_seed, model_seed) in enumerate(config.seeds):
            n_err, n_reads = int(wrong[i].sum()), len(reads.row)
            lo, hi = intervals.binomial(n_err, n_reads, context.settings.confidence)
            rows.append(
                {
                    "run": config.name,
                    "family": config.entry["family"],
                    "replica": replica,
                    "data_seed": data_seed,
                    "model_seed": model_seed,
                    "learned": bool(good[i]),
                    "length": tokens.shape[1],
                    "set": name,
                    "n_reads": n_reads,
                    "n_err": n_err,
                    "error": float(wrong[i].mean()),
                    "lo": lo,
                    "hi": hi,
                    "interval": intervals.EXACT,
                    "n_seq_wrong": len(np.unique(reads.row[wrong[i]])),
                    "disagree": float(disagree[i].mean()),
                }
            )
    return rows, binned


def _wrong(config: Config, tokens: NDArray[np.integer]) -> tuple[Bools, Bools]:
    """Return (R, reads) where models answer wrongly, and where of data symbols alone they would answer another one."""
    every, data = config.answers(tokens)
    return every != language.reads(tokens).target, every != data


def curves(context: Inputs, config: Config) -> pl.DataFrame:
    """Return the error on the online part of each set by step, with the best so far."""
    frame = context.curves(config.name)
    sets = [name for name in frame.columns if name.startswith("error_")]
    long = frame.select("run", "replica", "step", "loss", "cross_entropy", *sets).unpivot(
        sets, index=["run", "replica", "step", "loss", "cross_entropy"], variable_name="set", value_name="error"
    )
    return (
        long.with_columns(pl.col("set").str.strip_prefix("error_"), family=pl.lit(config.entry["family"]))
        .sort("replica", "set", "step")
        .with_columns(best_so_far=pl.col("error").cum_min().over("replica", "set"))
    )


def scatter(final: pl.DataFrame) -> pl.DataFrame:
    """Return for each model its errors on the dense and on the sparse set beside half an error among the reads of each,
    where a model without an error is drawn."""
    floored = final.filter(pl.col("set").is_in(OUT)).with_columns(floor=0.5 / pl.col("n_reads"))
    wide = floored.pivot("set", index=["run", "family", "replica"], values=["error", "floor"])
    return wide.rename(
        {f"error_{name}": f"{name}_error" for name in OUT} | {f"floor_{name}": f"{name}_floor" for name in OUT}
    )


def violins(final: pl.DataFrame) -> pl.DataFrame:
    """Return the five-number summary of errors over the models of each run and set that learned, and the quotient of
    their median and that of the baseline; null where that is 0, or there is none."""
    e = pl.col("error").filter("learned")
    found = final.group_by("run", "family", "length", "set", maintain_order=True).agg(
        pl.len().alias("n_runs"),
        pl.col("learned").sum().alias("n_learned"),
        e.min().alias("least"),
        e.quantile(0.25, "linear").alias("q25"),
        e.median().alias("median"),
        e.quantile(0.75, "linear").alias("q75"),
        e.max().alias("most"),
        (pl.col("n_err") == 0).sum().alias("n_zero"),
        pl.col("n_reads").first(),
    )
    base = found.filter(pl.col("median") > 0, run=BASE).select("length", "set", base="median")
    return found.join(base, on=["length", "set"], how="left", maintain_order="left").select(
        *found.columns, ratio_to_baseline=pl.col("median") / pl.col("base")
    )
