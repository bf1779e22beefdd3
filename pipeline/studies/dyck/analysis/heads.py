"""What a head is worth, in two senses of the word (Wen et al. 2023, appendix B.2; DYCK-E11).

The paper reconciles two findings about language models: heads whose removal hurts, all else left as it is, tend not to
be interpretable (Kovaleva et al. 2019); heads that survive pruning with further training tend to be (Voita et al.
2019). It makes no experiment of its own; here both are measured on the same heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.kit import intervals
from pipeline.kit.comparisons import Measurements
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import dyck
from pipeline.models.transformer import decoder as transformer
from pipeline.studies.dyck.comparisons import HEAD_RANK
from pipeline.studies.dyck.measures import comparisons, metrics, rows
from pipeline.studies.dyck.measures.model import IN_DISTRIBUTION, Model, inputs, measure, of_language, padded, patterns
from pipeline.studies.dyck.names import HEADS

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy.typing import NDArray

    from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-E11."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    found = Measurements(context)
    parts: list[rows.Rows] = []
    with one_thread():
        for run in context.runs():
            model = measure(context, run, datasets)
            parts += [rows.of_run(context, model), _of_run(context, model, datasets, found)]
        return rows.tables_of(context, parts, found)


def _of_run(context: Inputs, model: Model, datasets: dict[str, pl.DataFrame], found: Measurements) -> rows.Rows:
    """Return rows of ``head_importance`` of the run `HEADS`, and measure its comparisons; nothing of others, nor
    without its held-out data."""
    held_out = of_language(datasets, model.k, model.depth).get(IN_DISTRIBUTION[model.split])
    if model.run != HEADS or held_out is None:
        return {}
    knobs, entry, (kept, _) = context.entry, model.entry, model.kept(learned=False)
    heads = without_each_head(context.model(model.run), kept)
    rng = stream(context.seed, context.study, "analysis", "finetune", model.run)
    data = context.dataset(knobs.finetune_dataset).filter(lang_k=model.k, lang_D=model.depth)
    further = finetuned(heads, entry, data, knobs.finetune_steps, knobs.finetune_rate * entry["lr"], rng)
    # (replicas, heads and at last none of them)
    fixed, adapted = (_accuracy(each, entry, held_out).view(len(kept), -1).numpy() for each in (heads, further))
    index, layer, head = (each.ravel() for each in np.indices((len(kept), heads.spec.layers, heads.spec.heads)))
    table = pl.DataFrame(
        {
            "run": model.run,
            "replica": kept[index],
            "layer": layer + 1,
            "head": head,
            "acc_before": fixed[index, -1],
            "acc_fixed": fixed[:, :-1].ravel(),
            "acc_adapted": adapted[:, :-1].ravel(),
            "acc_control": adapted[index, -1],
            "finetune_steps": knobs.finetune_steps,
        }
    ).with_columns(
        importance_fixed=pl.col("acc_before") - pl.col("acc_fixed"),
        importance_adapt=pl.col("acc_control") - pl.col("acc_adapted"),
    )
    keys = ["replica", "layer", "head"]
    scores = pl.concat(frame.select(*keys, "stack_argmax") for frame in model.stack)
    table = table.join(scores, on=keys, how="left", maintain_order="left")
    if model.learned is not None:
        table = table.with_columns(learned=pl.Series(model.learned)[table["replica"]])
    for name, comparison in HEAD_RANK.items():
        comparisons.add(found, comparison, (model, _ranks(model, table, name)))
    return {"head_importance": [table]}


@dataclass(frozen=True)
class Heads:
    """R models some of whose heads are zeroed: ``present`` (R, L, H) is 0 for these, 1 for others."""

    spec: transformer.Spec
    params: dict[str, Tensor]
    table: Tensor
    present: Float[Tensor, "R L H"]

    def logits(self, ids: Int[Tensor, "1 B T"]) -> Float[Tensor, "R B T O"]:
        """Return what the models predict, the mixed values of zeroed heads being 0."""
        hooks = {name: self._hook(layer) for layer, name in enumerate(patterns(self))}
        return transformer.forward(self.spec, self.params, self.table, ids, hooks=hooks)[0]

    def _hook(self, layer: int) -> transformer.Hook:
        present = self.present[:, layer][:, None, :, None, None]
        return lambda pattern_RxBxHxTxT: pattern_RxBxHxTxT * present


def without_each_head(ensemble: transformer.Ensemble, kept: NDArray[np.int64]) -> Heads:
    """Return, for each replica in ``kept``, one model after another: for each layer and head, the replica
    with this head zeroed; and the replica as it is."""
    layers, heads = ensemble.spec.layers, ensemble.spec.heads
    count = layers * heads
    params = {name: value[kept].repeat_interleave(count + 1, 0) for name, value in ensemble.params.items()}
    present = torch.cat([1 - torch.eye(count), torch.ones(1, count)]).view(-1, layers, heads)
    return Heads(ensemble.spec, params, ensemble.table, present.repeat(len(kept), 1, 1))


def finetuned(
    heads: Heads, entry: dict[str, Any], frame: pl.DataFrame, steps: int, rate: float, rng: np.random.Generator
) -> Heads:
    """Return ``heads`` after ``steps`` more of the training that ``entry`` (of a run on tokens) describes:
    its loss, data and batch size, with a learning rate that falls from ``rate`` to 0; all models see the same
    batches."""
    frame = frame.filter(corpus_seed=0).sort("seq_id")
    tokens_NxT = padded(frame)
    weights = {name: value.clone().requires_grad_() for name, value in heads.params.items()}
    optimiser = torch.optim.Adam(weights.values(), rate, tuple(entry["betas"]), entry["eps"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    trained = replace(heads, params=weights)
    for _ in range(steps):
        tokens = tokens_NxT[rng.choice(len(tokens_NxT), min(entry["batch"], len(tokens_NxT)), replace=False)]
        loss_mask = dyck.is_close(tokens) if entry["loss_positions"] == "closing" else tokens > 0
        logits = trained.logits(inputs(tokens, entry, entry["depth"], start=True))[:, :, :-1]
        chosen = logits[:, torch.from_numpy(loss_mask)]  # (R, positions, O)
        targets = torch.from_numpy(tokens[loss_mask] - 1).long().expand(len(chosen), -1)
        loss = F.cross_entropy(chosen.flatten(0, 1), targets.flatten(), reduction="none")
        optimiser.zero_grad()
        loss.view(len(chosen), -1).mean(1).sum().backward()  # a mean for each model: none sees another
        optimiser.step()
        schedule.step()
    return replace(heads, params={name: value.detach() for name, value in weights.items()})


def _accuracy(heads: Heads, entry: dict[str, Any], frame: pl.DataFrame) -> Tensor:
    """Return acc_close, (R,), on all of ``frame``."""

    def batch(part: pl.DataFrame) -> metrics.Accuracy:
        tokens = padded(part)
        logits = heads.logits(inputs(tokens, entry, entry["depth"], start=True))[:, :, :-1]
        top = torch.from_numpy(dyck.stack_top(tokens)).long()
        return metrics.accuracy(logits, torch.from_numpy(tokens).long(), top)

    parts = (part for _, part in frame.sort("length", "seq_id").group_by("length", maintain_order=True))
    with torch.inference_mode():
        return reduce(metrics.Accuracy.add, map(batch, parts)).acc_close


def _ranks(model: Model, table: pl.DataFrame, importance: str) -> NDArray[np.float64]:
    """Return whether an importance goes with the stack score, (R,): Spearman's correlation over the heads of each
    model, which are not independent of each other."""
    ranks = np.full(model.replicas, np.nan)
    for (replica,), heads in table.group_by("replica"):
        ranks[replica] = intervals.spearman(*(heads[name].to_numpy() for name in (importance, "stack_argmax")))
    return ranks
