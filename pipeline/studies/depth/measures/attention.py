"""What attention does: heads that died, and agreement with the constructions (DEP-A1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth.measures import runs

Floats = NDArray[np.float64]


def models(context: Inputs, run: runs.Run) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return columns of the summary on dead heads, by model, and rows of the agreement table, by head."""
    ensemble, silent, rows = context.model(run.name), [], []
    with torch.inference_mode():
        for model in run.models:
            weights = {name: value[model : model + 1] for name, value in ensemble.params.items()}
            corpus = run.corpus(model)
            maps = runs.patterns(run, weights, ensemble.table, corpus.ids_BxT)
            silent.append(_silence(maps))
            if run.chosen[model] and model not in run.diverged and run.task != "sc":
                start = runs.patterns(run, runs.initial(context, run, model), ensemble.table, corpus.ids_BxT)
                metadata = run.row_keys(corpus) | {"lr": run.lr[model], "replica": run.replica[model]}
                rows += [metadata | row for row in _agreement(run, corpus, maps, start)]
    return silent, rows


def _silence(maps: list[Floats]) -> dict[str, Any]:
    alive = [read(pattern, layer, len(maps)) > 0 for layer, pattern in enumerate(maps)]
    return {
        "heads_total": sum(part.shape[1] for part in alive),
        "heads_dead": sum(int((~part.any((0, 2, 3))).sum()) for part in alive),
        "zero_share": float(1 - alive[-1].mean()),
    }


def read(pattern_BxHxTxT: Floats, layer: int, layers: int) -> Floats:
    """Return the part of a map that reaches the output: of the last layer (counted from 0) only the last query."""
    return pattern_BxHxTxT[..., -1:] if layer == layers - 1 else pattern_BxHxTxT


def _agreement(run: runs.Run, corpus: runs.Corpus, maps: list[Floats], start: list[Floats]) -> Iterator[dict[str, Any]]:
    built = constructed(run.task, run.shape["k"], run.shape["l"], run.spec.layers, corpus.ids_BxT)
    block_T = tasks.blocks(run.task, run.shape["k"], run.shape["l"])
    context_T = block_T < block_T[-1]
    for layer, pattern in enumerate(maps):
        last = layer == run.spec.layers - 1
        target = built[layer]
        for head in range(pattern.shape[1]):
            row: dict[str, Any] = {"layer": layer + 1, "head": head, "last_layer": last, "n_sequences": len(pattern)}
            for name, source in (("cosine", pattern), ("cosine_start", start[layer])):
                ours = read(source, layer, run.spec.layers)[:, head]
                row[name] = None if target is None else _cosine(ours, read(target, layer, run.spec.layers))
            row |= {"right_example": None, "right_example_all": None}
            if last and run.task != "tm":
                weight_BxT = pattern[:, head, :, -1]
                for name, keys in (("right_example", context_T), ("right_example_all", np.full_like(context_T, True))):
                    seen = np.where(keys, weight_BxT, -1.0)
                    hit = (block_T[seen.argmax(1)] == corpus.right_B) & (seen.max(1) > 0)
                    row[name] = float(hit.mean())
            yield row


def _cosine(ours_BxTxQ: Floats, target_BxTxQ: Floats) -> float | None:
    """Return the mean over sequences of the cosine of two maps, 0 where ours is 0; None if the target is 0 in all."""
    product = (ours_BxTxQ * target_BxTxQ).sum((1, 2))
    scale = np.sqrt((ours_BxTxQ**2).sum((1, 2)) * (target_BxTxQ**2).sum((1, 2)))
    if not target_BxTxQ.any():
        return None
    return float(np.divide(product, scale, out=np.zeros_like(product), where=scale > 0).mean())


def constructed(task: str, k: int, l: int, layers: int, ids_BxT: NDArray[np.int64]) -> list[Floats | None]:
    """Return attention (B, T, T) of the construction of the task in every layer; None where there is none.

    Indices are (key, query). Maps of the last layer are right at the last query only.

    Reasoning (Theorem 3): layer 1 copies within each pair; in layer 2 the query reads what holds its question.
    Generalization (Theorem 5, corrected): layer 1 reads equal tokens; layer 2 weighs positions by M w, where w are
    the powers of 3 and M_ij = 1[same token] + 1[i = j].
    Contextual generalization (Theorem 6): layer 1 reads equal tokens of the block, layer 2 is `_exchange`; layer 3 has
    2 l heads that look for differences, which no single head can be compared with.
    """
    B, T = ids_BxT.shape
    block = tasks.blocks(task, k, l)[:T]
    same_block = block[:, None] == block
    question = ids_BxT != ids_BxT[:, -1:]
    equal = (ids_BxT[:, :, None] == ids_BxT[:, None]) & question[:, :, None] & same_block
    maps: list[Floats | None] = [None] * layers
    if task == "ic_qa":
        maps[0] = np.broadcast_to(tasks.copying(task, k, l)[:T, :T], (B, T, T))
        if layers == 2:
            matches = ids_BxT[:, 3 * block] == ids_BxT[:, -2:-1]
            maps[1] = np.repeat(matches[:, :, None], T, 2) * 1.0
    if task in ("tm", "ic_tm"):
        maps[0] = _no_answers(equal, task, l, block) * 1.0
    if task == "tm" and layers == 2:
        weights = np.append(3.0 ** np.arange(l - 1, -1, -1), 0.0)
        maps[1] = np.repeat((equal @ weights + weights)[:, :, None], T, 2)
    if task == "ic_tm" and layers >= 3:
        maps[1] = np.broadcast_to(_exchange(k, l), (B, T, T))
    return maps


def _no_answers(equal_BxTxT: NDArray[np.bool_], task: str, l: int, block_T: NDArray[np.int64]) -> Any:
    """Return the map without the answers, which are equal to themselves but are no question tokens."""
    within = np.arange(len(block_T)) - np.searchsorted(block_T, block_T)
    return equal_BxTxT & (within < l if task == "ic_tm" else np.full(len(block_T), True))


def _exchange(k: int, l: int) -> Floats:
    """Return the attention (T, T) of layer 2 of Theorem 6.

    Every answer goes to the other columns of its example and to the last column, column r of the query to
    column r of every example.
    """
    n, size = tasks.length("ic_tm", k, l), l + 2
    weights = np.zeros((n, n))
    for example in range(k):
        columns, answer = example * size + np.arange(l + 1), example * size + l + 1
        weights[answer, columns] = 1
        weights[k * size + np.arange(l + 1), columns] = 1
        weights[answer, n - 1] = 1
    return weights
