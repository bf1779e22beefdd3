"""One run, measured: accuracy, attention maps, stack scores, balance (chapter section 3.4: DYCK-A1 to A5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.languages import dyck
from pipeline.models.transformer import decoder as transformer
from pipeline.models.transformer import theory as theory_transformer
from pipeline.studies.dyck.measures import metrics
from pipeline.studies.dyck.names import LONG_PROBE, MAPPED, PREFIX, PROBE, START_SIGN, TABLE_1_PROBE

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs

LENGTH_GENERALISATION = "lengen"
IN_DISTRIBUTION = {"train_complete": "dev_complete", "train_prefix": "dev_prefix"}
EVALUATION = (*IN_DISTRIBUTION.values(), LENGTH_GENERALISATION)
COPY, HELD_OUT_COPY = "copy", "dev_copy"
PROBES = (PROBE, TABLE_1_PROBE, LONG_PROBE)
Ensemble = transformer.Ensemble | theory_transformer.Ensemble
FORWARD: dict[type, Callable[..., Any]] = {module.Spec: module.forward for module in (transformer, theory_transformer)}
MAX_NUMBERS = 2**24  # in one tensor of a batch, attention weights or activations: 64 MB in float32
LEAST = 1e-9  # probability
WIDEST = 256  # activations per token, an upper bound for the models of the study


@dataclass(frozen=True)
class Maps:
    """Attention of one layer and head on the S sequences of a probe, which have one length."""

    probe: str
    start: bool
    causal: bool
    layer: int
    head: int
    seq_ids: list[int]
    text: str  # the first of the sequences
    n_rows: int
    distances_SxRxR: NDArray[np.float64]  # between replicas
    pattern_SxRxNxN: Tensor | None  # where figures show it


@dataclass(frozen=True)
class Model:
    """One run, measured."""

    run: str
    entry: dict[str, Any]
    split: str  # of its training data
    k: int
    depth: int
    min_accuracy: float
    diverged: dict[int, int]
    maps: list[Maps]
    accuracy: list[pl.DataFrame]
    stack: list[pl.DataFrame]
    balance: list[pl.DataFrame]
    balance_detail: list[pl.DataFrame]
    copied: NDArray[np.float64] | None = None  # accuracy of copying, where it was measured (`analysis.copying`)

    @property
    def replicas(self) -> int:
        return int(self.entry["replicas"])

    def column(self, split: str, name: str) -> NDArray[np.float64] | None:
        """Return the accuracy, (R,), on an evaluation set, or None if it was not measured there."""
        frames = [frame for frame in self.accuracy if frame["eval_split"][0] == split]
        return frames[0][name].to_numpy() if frames else None

    @property
    def data(self) -> str:
        """What it was trained on: ``complete`` or ``prefix``."""
        return self.split.removeprefix("train_")

    def layer(self, probe: str, start: bool, layer: int, causal: bool = True) -> Maps | None:
        """Return the maps of the first head of ``layer`` on a probe, or None if they were not recorded."""
        key = (probe, start, causal, layer, 0)
        matches = [maps for maps in self.maps if (maps.probe, maps.start, maps.causal, maps.layer, maps.head) == key]
        return matches[0] if matches else None

    def last_stack(self, name: str) -> NDArray[np.float64] | None:
        """Return a stack score of the first head of the last layer, (R,), or None if it was not measured."""
        frames = [frame for frame in self.stack if frame["layer"][0] == self.entry["layers"]]
        return frames[0].filter(head=0)[name].to_numpy() if frames else None

    def in_distribution(self, name: str) -> NDArray[np.float64] | None:
        """Return an accuracy, (R,), on strings like the training data, or None if there are none."""
        frames = [frame for frame in self.accuracy if frame["in_distribution"][0]]
        values = frames[0][name].cast(pl.Float64).to_numpy() if frames else None
        return None if values is None or np.isnan(values).all() else values

    @property
    def learned(self) -> NDArray[np.bool_] | None:
        """Return which replicas learned their task in distribution, or None where that cannot be told.

        The rule of the study: an accuracy of at least ``min_accuracy`` on held-out strings like the training data, in
        predicting closing brackets or, of models that copy, in copying.
        """
        accuracy = self.in_distribution("acc_close") if self.copied is None else self.copied
        if accuracy is None:
            return None
        went_on = ~np.isin(np.arange(self.replicas), list(self.diverged))
        return went_on & (accuracy >= self.min_accuracy)

    def kept(self, learned: bool) -> tuple[NDArray[np.int64], str]:
        """Return the replicas that did not diverge and, if only these count, learned their task; and why others are not
        kept."""
        ok = ~np.isin(np.arange(self.replicas), list(self.diverged))
        reasons = [f"{len(self.diverged)} diverged"] if self.diverged else []
        if learned and self.learned is not None:
            low = ok & ~self.learned
            task = "acc_close" if self.copied is None else "accuracy of copying"
            reasons += [f"{low.sum()} with {task} below {self.min_accuracy:g}"] if low.any() else []
            ok &= ~low
        return np.flatnonzero(ok), ", ".join(reasons)


def measure(context: Inputs, run: str, datasets: dict[str, pl.DataFrame]) -> Model:
    """Return everything the tables need of ``run``, on the evaluation sets and probes of its own language; of a run
    that copies only what it is, because all of this is about next tokens (`analysis.copying` measures it).

    Raises SandglassError if it was trained on a dataset that the experiment does not name.
    """
    ensemble, header = context.model(run), context.run_header(run)
    entry = header["entry"]
    trained_on = datasets[entry["dataset"]] if entry["dataset"] in datasets else context.dataset(entry["dataset"])
    k, depth, split = entry["k"], entry["depth"], trained_on["split"][0]
    splits = of_language(datasets, k, depth)
    diverged = {int(replica): step for replica, step in header["diverged"].items()}
    metadata = (run, entry, split, k, depth, context.settings.min_accuracy, diverged)
    if split == COPY:
        return Model(*metadata, maps=[], accuracy=[], stack=[], balance=[], balance_detail=[])
    accuracy, stack = [], []
    with torch.inference_mode():
        maps = [part for name in PROBES if name in splits for part in _maps(ensemble, entry, run, splits[name])]
        for name in EVALUATION:
            if name in splits:
                in_distribution = name == IN_DISTRIBUTION[split] and _alike(splits[name], trained_on)
                unseen = _unseen(splits[name], trained_on, entry)
                evaluations = {
                    new: _evaluate(ensemble, entry, rows, in_distribution)
                    for new, rows in ((new, splits[name].filter(unseen == new)) for new in (False, True))
                    if rows.height
                }
                accuracy.append(_accuracy(run, splits[name], unseen, in_distribution, evaluations, entry["replicas"]))
                layers = zip(*(scores for _, scores in evaluations.values()), strict=True)
                stack += [
                    _stack(run, entry, name, layer, dict(zip(evaluations, scores, strict=True)))
                    for layer, scores in enumerate(layers, start=1)
                ]
        balance, detail = _balance(ensemble, entry, run, k, depth)
    return Model(*metadata, maps, accuracy, stack, balance, detail)


def of_language(datasets: dict[str, pl.DataFrame], k: int, depth: int) -> dict[str, pl.DataFrame]:
    """Return the strings of one language by the split of their dataset; of training data, those of the last one."""
    own = (frame.filter(lang_k=k, lang_D=depth) for frame in datasets.values())
    return {frame["split"][0]: frame for frame in own if frame.height}


def _alike(frame: pl.DataFrame, trained_on: pl.DataFrame) -> bool:
    """Return whether prefixes are as long as those that were trained on; complete strings always are."""
    lengths = [each["length"].max() for each in (frame, trained_on)]
    return not frame["split"][0].endswith(PREFIX) or lengths[0] == lengths[1]


def _unseen(frame: pl.DataFrame, trained_on: pl.DataFrame, entry: dict[str, Any]) -> pl.Series:
    """Return which strings stand in none of the corpora that some replica of the run was trained on."""
    own = trained_on.filter(lang_k=entry["k"], lang_D=entry["depth"])
    corpora = own["corpus_seed"].unique().sort()
    corpora = corpora[: entry["replicas"] if entry["corpus"] == "per_replica" else 1]
    text = pl.col("tokens").cast(pl.List(pl.String)).list.join(" ")
    seen = own.filter(pl.col("corpus_seed").is_in(corpora.to_list())).select(text.unique()).to_series()
    return frame.select(~text.is_in(seen.to_list())).to_series()


def inputs(tokens: NDArray[np.int8], entry: dict[str, Any], depth: int, start: bool) -> Tensor:
    """Return what the model reads, (1, B, T): tokens or symbols, with the start token in front where asked.

    Padding becomes the start token: it comes last, and causal attention never looks at it.
    """
    ids = tokens if entry["embedding"] == "token" else dyck.symbols(tokens, depth)
    ids = np.where(ids == dyck.PADDING, dyck.START, ids)
    return torch.from_numpy((dyck.with_start(ids) if start else ids).astype(np.int64))[None]


def patterns(model: Any) -> list[str]:
    """Return the names of the attention maps of ``model``, layer by layer."""
    return [f"blocks.{layer}.attn.pattern" for layer in range(model.spec.layers)]


def _forward(ensemble: Ensemble, ids: Tensor, record: list[str]) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the logits and the activations named in ``record``, by the forward pass of the ensemble's own type."""
    forward = FORWARD[type(ensemble.spec)]
    return forward(ensemble.spec, ensemble.params, ensemble.table, ids, record=record)


def padded(frame: pl.DataFrame) -> NDArray[np.int8]:
    """Return the tokens of the sequences of a dataset, (B, N), padded with -1."""
    return dyck.padded(frame["length"].to_numpy(), frame["tokens"].explode().to_numpy())


def _batches(frame: pl.DataFrame, replicas: int) -> Iterator[pl.DataFrame]:
    """Yield batches of sequences of similar length, each as large as fits in memory."""
    ordered = frame.sort("length", "seq_id")
    first = 0
    for last, length in enumerate(ordered["length"].to_list()):
        if last > first and (last + 1 - first) * replicas * length * max(length, WIDEST) > MAX_NUMBERS:
            yield ordered[first:last]
            first = last
    yield ordered[first:]


def _evaluate(
    ensemble: Ensemble, entry: dict[str, Any], frame: pl.DataFrame, with_stack: bool
) -> tuple[metrics.Accuracy, list[metrics.StackScore]]:
    """Return accuracy (A1) and, layer by layer, stack scores (A4) on all sequences, start token included as
    in training."""
    names = patterns(ensemble) if with_stack else []

    def batch(sequences: pl.DataFrame) -> tuple[metrics.Accuracy, list[metrics.StackScore]]:
        tokens = padded(sequences)
        ids = inputs(tokens, entry, int(frame["lang_D"][0]), start=True)
        logits, recorded = _forward(ensemble, ids, names)
        top = torch.from_numpy(dyck.stack_top(tokens)).long()
        if entry["objective"] == "squared_error":  # outputs estimate probabilities
            logits = logits.clamp(min=LEAST).log()
        before = logits[:, :, :-1]  # position i has read what is before target i
        accuracy = metrics.accuracy(before, torch.from_numpy(tokens).long(), top)
        return accuracy, [metrics.stack_score(recorded[name], tokens) for name in names]

    accuracies, scores = zip(*map(batch, _batches(frame, entry["replicas"])), strict=True)
    layers = [reduce(metrics.StackScore.add, parts) for parts in zip(*scores, strict=True)]
    return reduce(metrics.Accuracy.add, accuracies), layers


def _accuracy(
    run: str,
    frame: pl.DataFrame,
    new: pl.Series,
    in_distribution: bool,
    evaluations: dict[bool, tuple[metrics.Accuracy, list[metrics.StackScore]]],
    replicas: int,
) -> pl.DataFrame:
    """Return accuracies on all strings of ``frame``, and on the ``new`` ones, that no replica was trained on
    (``evaluations[True]``)."""
    whole = reduce(metrics.Accuracy.add, (part for part, _ in evaluations.values()))
    unseen = evaluations[True][0] if True in evaluations else None
    return pl.DataFrame(
        {
            "run": run,
            "replica": range(replicas),
            "eval_split": frame["split"][0],
            "in_distribution": in_distribution,
            **{name: getattr(whole, name).numpy() for name in ("acc_close", "acc_all", "acc_thr80")},
            "acc_close_unseen": unseen.acc_close.numpy() if unseen and unseen.n_close else None,
            "n_sequences": frame.height,
            "unseen_share": new.sum() / len(new),
            "shortest": frame["length"].min(),
            "longest": frame["length"].max(),
            "n_close": whole.n_close,
            "n_close_unseen": unseen.n_close if unseen else 0,
            "n_open_stack": whole.n_open_stack,
        }
    )


def _stack(
    run: str, entry: dict[str, Any], split: str, layer: int, scores: dict[bool, metrics.StackScore]
) -> pl.DataFrame:
    """Return the stack scores of a layer on all strings, and on those that no replica was trained on."""
    score = reduce(metrics.StackScore.add, scores.values())
    replica, head = (index.ravel() for index in np.indices(score.hits.shape))
    names = ["stack_argmax", "stack_argmax_tied", "stack_argmax_closers", "stack_mass", "same_depth_mass", "kl_uniform"]
    shares = {name: getattr(score, name).numpy().ravel() for name in names}
    shares["stack_argmax_unseen"] = scores[True].stack_argmax.numpy().ravel() if True in scores else None
    if entry["block"] != "stripped":
        shares["same_depth_mass"] = None  # other models do not read depths
    metadata = {"run": run, "replica": replica, "layer": layer, "head": head, "eval_split": split}
    same = {name: getattr(score, name) for name in ("stack_ceiling", "stack_mass_uniform", "n_queries", "n_closers")}
    return pl.DataFrame(metadata | shares | same)


def _maps(ensemble: Ensemble, entry: dict[str, Any], run: str, frame: pl.DataFrame) -> Iterator[Maps]:
    """Yield attention of every layer on all sequences of a probe, without and with the start token (A2); of models with
    a minimal first layer also without the causal mask, as the authors' release exports their maps."""
    frame = frame.sort("seq_id")
    probe, seq_ids, k = frame["split"][0], frame["seq_id"].to_list(), int(frame["lang_k"][0])
    # A sign each; there may be more types than kinds of bracket.
    signs = [sign if len(sign) == 1 else "?" for sign in dyck.vocabulary(k)]
    first = "".join(signs[token] for token in frame["tokens"][0])
    names = patterns(ensemble)
    for start in (False, True):
        ids = inputs(padded(frame), entry, int(frame["lang_D"][0]), start)
        _, recorded = _forward(ensemble, ids, names)
        for layer, name in enumerate(names, start=1):
            for head in range(ensemble.spec.heads):
                pattern_SxRxNxN = recorded[name][:, :, head].transpose(0, 1)
                distances = metrics.variation_distances(pattern_SxRxNxN).numpy()
                kept = pattern_SxRxNxN if probe in MAPPED.get(run, ()) else None
                text = f"{START_SIGN if start else ''}{first}"
                yield Maps(probe, start, True, layer, head, seq_ids, text, ids.shape[-1], distances, kept)
        if ensemble.spec.block == "stripped" and ensemble.spec.layers == ensemble.spec.heads == 1:
            pattern_SxRxNxN = _without_mask(ensemble, ids[0]).transpose(0, 1)
            distances = metrics.variation_distances(pattern_SxRxNxN).numpy()
            yield Maps(probe, start, False, 1, 0, seq_ids, "", ids.shape[-1], distances, None)


def _without_mask(ensemble: Ensemble, ids_SxN: Tensor) -> Tensor:
    """Return what the attention of a model of one layer and head would be if every query saw all keys, (R, S, N, N)."""
    x_SxNxM = ensemble.table[ids_SxN]
    weights, biases = (ensemble.params[f"blocks.0.attn.{name}_QKV"].chunk(3, -1) for name in ("W", "b"))
    q, k = (
        torch.einsum("snm,rma->rsna", x_SxNxM, W) + b[:, None, None]
        for W, b in zip(weights[:2], biases[:2], strict=True)
    )
    return (q @ k.transpose(-1, -2) / ensemble.spec.width**0.5).softmax(-1)


def _balance(
    ensemble: Ensemble, entry: dict[str, Any], run: str, k: int, depth: int
) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
    """Return the balance violation (A5), in sum and in detail, of models of one layer and one head on fixed
    symbols; no rows for others."""
    spec = ensemble.spec
    minimal = (spec.block, spec.layers, spec.heads) == ("stripped", 1, 1) and entry["embedding"] != "token"
    if not minimal or min(k, depth) < 2:
        return [], []
    W_Q, W_K, W_V = ensemble.params["blocks.0.attn.W_QKV"].chunk(3, -1)
    b_Q, b_K, b_V = ensemble.params["blocks.0.attn.b_QKV"].chunk(3, -1)
    balance = metrics.balance(ensemble.table, W_Q, b_Q, W_K, b_K, W_V, b_V, k, depth)
    summary = {name: getattr(balance, name).numpy() for name in ("beta", "beta_max", "qk_residual")}
    replica, d, j, dprime, i = (index.ravel() for index in np.indices(balance.s_norm.shape))
    detail = {"run": run, "replica": replica, "d": d + 2, "dprime": dprime + 1, "i": i + 1, "j": j + 1}
    norms = {"s_norm": balance.s_norm.numpy().ravel(), "p_dj": balance.p.numpy()[replica, d, j]}
    replicas = {"run": run, "replica": range(entry["replicas"])}
    return [pl.DataFrame(replicas | summary)], [pl.DataFrame(detail | norms)]
