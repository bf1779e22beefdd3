"""One run as it was trained: its corpora, the learning rate that is chosen, its curves, and attention of its models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks
from pipeline.models.attention_only import network as attention_only
from pipeline.studies.depth.names import JUDGED
from schemas.depth.tables import SPLITS


@dataclass(frozen=True)
class Corpus:
    """What some models of a run are trained on, and the sequences on which they are looked at."""

    hops: int
    sequences: int
    ids_BxT: NDArray[np.int64]
    right_B: NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """One run: its entry in params/depth/, its task, and its models in the order of the checkpoint."""

    name: str
    entry: dict[str, Any]
    spec: attention_only.Spec
    shape: dict[str, Any]  # task, k, l, d1, d2
    offered: int  # answers of a context
    classes: dict[str, int]  # labels that occur in a split
    distinct: dict[tuple[str, int], int]  # different sequences of each split and corpus
    corpora: list[Corpus]
    lr: list[float]
    replica: list[int]
    diverged: dict[int, int]
    curves: pl.DataFrame
    chosen: NDArray[np.bool_]
    rates: pl.DataFrame

    @property
    def task(self) -> str:
        return str(self.shape["task"])

    @property
    def models(self) -> range:
        return range(len(self.lr))

    def corpus(self, model: int) -> Corpus:
        """Return what the model was trained on."""
        return self.corpora[self.replica[model] % len(self.corpora)]

    def models_of(self, corpus: Corpus) -> tuple[list[int], list[int]]:
        """Return the models at the chosen rate that train on a corpus, and those among them that did not diverge."""
        models = [m for m in self.models if self.chosen[m] and self.corpus(m) is corpus]
        return models, [m for m in models if m not in self.diverged]

    def chance(self, split: str, corpus: Corpus) -> float:
        """Return the accuracy of a guess, before a model picks among the answers of the context.

        The guess is one of the classes that the split has, or of all tokens that answer. A split of one class
        (AAA) says nothing of a guess: there it is one of all classes.
        """
        if self.task == "tm":
            return 1 / (self.classes[split] if self.classes[split] > 1 else self.spec.outputs)
        return 1 / {"sc": corpus.sequences, "nested": self.shape["d1"]}.get(self.task, self.shape["d2"])

    def row_keys(self, corpus: Corpus) -> dict[str, Any]:
        """Return the columns that say what a row is about."""
        return {
            "run": self.name,
            "experiment": self.entry["experiment"],
            "task": self.task,
            "layers": self.spec.layers,
            "heads": ", ".join(map(str, self.spec.heads)),
            "k": self.shape["k"],
            "l": self.shape["l"],
            "hops": corpus.hops,
            "sequences": corpus.sequences,
        }

    def has(self, split: str) -> bool:
        """Return whether the run was measured on this split."""
        return f"accuracy{_ending(split)}" in self.curves.columns

    def last(self, metric: str, split: str) -> NDArray[np.float64]:
        """Return a metric of each model at the last point of the curves, (models,).

        It is NaN where it was not measured or is not finite.
        """
        column = f"{metric}{_ending(split)}"
        if column not in self.curves.columns:
            return np.full(len(self.lr), np.nan)
        ends = self.curves.sort("step").group_by("replica", maintain_order=True).agg(pl.col(column).last())
        return ends.sort("replica")[column].cast(pl.Float64).fill_null(np.nan).to_numpy()


def _ending(split: str) -> str:
    """Return how the names of a split's metrics end in the curves of a run."""
    return "" if split == "train" else f"_{split}"


def read(context: Inputs, names: Iterable[str]) -> dict[str, Run]:
    """Return the runs ``names``, in each of which the learning rate of every corpus is chosen.

    Raises SandglassError if a checkpoint or a dataset is missing or damaged.
    """
    return {name: _read(context, name) for name in names}


def _read(context: Inputs, name: str) -> Run:
    header = context.run_header(name)
    entry, frame = header["entry"], context.dataset(header["entry"]["dataset"])
    shape = {column: frame[column][0] for column in ("task", "k", "l", "d1", "d2")}
    corpora = [
        _corpus(part, shape["task"], context.settings.probes)
        for part in frame.partition_by("corpus", maintain_order=True)
    ]
    classes = dict(frame.group_by("split").agg(pl.col("label").n_unique()).iter_rows())
    distinct = {
        (split, number): len(np.unique(_ids(part), axis=0))
        for (split, number), part in frame.group_by("split", "corpus")
    }
    lr, replica = header["lr"], header["streams"]
    diverged = {int(model): step for model, step in header["diverged"].items()}
    run = Run(
        name,
        entry,
        attention_only.Spec(**header["spec"]),
        shape,
        len(frame["candidates"][0]),
        classes,
        distinct,
        corpora,
        lr,
        replica,
        diverged,
        context.curves(name),
        np.zeros(len(lr), bool),
        pl.DataFrame(),
    )
    chosen, rates = _choose(run)
    return Run(**(vars(run) | {"chosen": chosen, "rates": rates}))


def _corpus(part: pl.DataFrame, task: str, probes: int) -> Corpus:
    train, judged = part.filter(split="train"), part.filter(split=JUDGED[task]).head(probes)
    return Corpus(int(part["hops"][0]), train.height, _ids(judged), judged["right"].to_numpy().astype(int))


def _ids(part: pl.DataFrame) -> NDArray[np.int64]:
    flat = part["tokens"].to_arrow().flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(part.height, -1).astype(np.int64)


def _choose(run: Run) -> tuple[NDArray[np.bool_], pl.DataFrame]:
    """Return which models have the chosen rate, and the table that chose it.

    The chosen rate has the lowest median training loss at the end, and is the lower rate where two are equal.
    A loss that is not finite counts as infinite.
    """
    chosen, rows = np.zeros(len(run.lr), bool), []
    last = run.last("loss", "train")
    loss = np.where(np.isin(run.models, list(run.diverged)) | np.isnan(last), np.inf, last)
    accuracy = run.last("accuracy", JUDGED[run.task])
    for corpus in run.corpora:
        of = {
            lr: np.array([m for m in run.models if run.lr[m] == lr and run.corpus(m) is corpus])
            for lr in sorted(set(run.lr))
        }
        medians = {lr: float(np.median(loss[models])) for lr, models in of.items()}
        best = min(medians, key=lambda lr: medians[lr])
        rates = list(medians)
        place = (
            "only"
            if len(rates) == 1
            else "lowest"
            if best == rates[0]
            else "highest"
            if best == rates[-1]
            else "inside"
        )
        chosen[of[best]] = True
        for lr, models in of.items():
            finite = accuracy[models][~np.isnan(accuracy[models])]
            rows.append(
                run.row_keys(corpus)
                | {
                    "lr": lr,
                    "n": len(models),
                    "n_diverged": int(np.isinf(loss[models]).sum()),
                    "training_loss": medians[lr] if np.isfinite(medians[lr]) else None,
                    "accuracy": float(np.median(finite)) if len(finite) else None,
                    "chosen": lr == best,
                    "place": place if lr == best else "",
                }
            )
    return chosen, pl.DataFrame(rows, infer_schema_length=None)


def curves(run: Run) -> Iterator[pl.DataFrame]:
    """Yield every model's curves, a frame per split."""
    metadata = pl.DataFrame(
        [
            run.row_keys(run.corpus(model))
            | {"model": model, "lr": run.lr[model], "seed": run.replica[model], "chosen": bool(chosen)}
            for model, chosen in enumerate(run.chosen)
        ]
    ).with_columns(pl.col("model").cast(pl.Int32))
    for split in SPLITS:
        if not run.has(split):
            continue
        ending = _ending(split)
        present = f"context{ending}" in run.curves.columns
        part = run.curves.select(
            pl.col("replica").alias("model"),
            "step",
            *(pl.col(f"{metric}{ending}").alias(metric) for metric in ("loss", "accuracy")),
            (pl.col(f"context{ending}") if present else pl.lit(None, pl.Float64)).alias("context"),
        )
        yield part.join(metadata, on="model").with_columns(
            pl.lit(split).alias("split"), pl.col("seed").alias("replica")
        )


def initial(context: Inputs, run: Run, model: int) -> dict[str, torch.Tensor]:
    """Return the weights that ``model`` started from, with a replica axis of 1 (DEP-R1, R2)."""
    rng = stream(context.seed, run.entry["study"], run.entry["stream"], "replica", run.replica[model], "init")
    weights = attention_only.initial(run.spec, rng)
    for layer, kind in enumerate(run.entry["constructed"] or []):
        W = tasks.start(kind, **run.shape, width=run.spec.width)
        weights[f"blocks.{layer}.W"] = np.repeat(W[None], run.spec.heads[layer], 0)
    return {name: torch.from_numpy(value).float()[None] for name, value in weights.items()}


def patterns(
    run: Run, weights: dict[str, torch.Tensor], table: torch.Tensor, ids_BxT: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Return attention of every layer, (B, H, T, T) with indices (key, query), of one model, replica axis of 1."""
    names = [f"blocks.{layer}.attn.pattern" for layer in range(run.spec.layers)]
    _, recorded = attention_only.forward(run.spec, weights, table, torch.from_numpy(ids_BxT)[None], record=names)
    return [recorded[name][0].double().numpy() for name in names]
