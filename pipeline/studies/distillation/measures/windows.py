"""How far a model's predictions lean on short windows: A-ROB and A-CLOSE (Liu 2024, sections 4.2.3.1.2 and 4.2.9).

Of masked models, equations 4.94 and 4.95: with the n-gram around a token masked as well, and with nothing but it to
see. Of models of the next token, equations 4.100 and 4.101: with the skip n-gram before a token hidden, and with no
keys but the n-gram; hidden tokens keep their positions and are attended to by none. Distances are total variations,
half of the L1 norm that the published code stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import pcfg
from pipeline.studies.distillation.measures import lessons
from pipeline.studies.distillation.measures.kept import Kept

MEASURES = ("robust", "close")
NARROW = 3  # tokens of the window whose importance the source plots
AT_ONCE = 2**21  # numbers of hidden values that are held at once

Bools = NDArray[np.bool_]
Ids = NDArray[np.integer[Any]]  # ids of words


def places(longest: int) -> list[int]:
    """Return the tokens (from 0) that are asked for: 30, 60, …, of short sentences those at a quarter, a half and three
    quarters (chapter section 3.9 and pitfall 18).

    >>> places(18)
    [4, 9, 13]
    """
    if longest > 120:
        return list(range(30, min(longest, 421), 30))
    return [quarter * longest // 4 for quarter in (1, 2, 3)]


def sentences(context: Inputs, dataset: pl.DataFrame, n: int) -> tuple[Ids, NDArray[np.int64]]:
    """Return ``n`` sentences of a dataset's grammar behind BOS, (n, 1 + longest), and their lengths: where no more
    derivations exist, and all are as likely, these; of a text, the first ``n`` held-out blocks."""
    task_fields = lessons.task_fields(dataset)
    if task_fields["grammar"] is None:
        blocks = np.array(dataset.filter(part="held")["tokens"].head(n).to_list())
        return blocks, np.full(len(blocks), blocks.shape[1] - 1)
    if (everything := _every(task_fields["grammar"], task_fields["root"], n)) is not None:
        return everything
    rng = stream(context.seed, context.study, "windows", task_fields["grammar"], task_fields["root"])
    tokens, lengths = pcfg.strings(rng, task_fields["grammar"], n, task_fields["root"])
    return pcfg.padded(tokens, lengths, width=pcfg.extent(task_fields["grammar"], task_fields["root"])[1]), lengths


def _every(grammar: str, root: int, most: int) -> tuple[Ids, NDArray[np.int64]] | None:
    """Return all derivations of a symbol as `sentences` does, if these are at most so many and equally likely."""
    if pcfg.number_of_derivations(grammar, root) > most:
        return None
    strings, chances = pcfg.derivations(grammar, root)
    if np.ptp(chances) > 1e-12:
        return None
    lengths = np.array([len(string) for string in strings])
    flat = np.concatenate([np.array(string, np.uint8) for string in strings]) - np.uint8(1)
    return pcfg.padded(flat, lengths, width=pcfg.extent(grammar, root)[1]), lengths


def summary(
    context: Inputs, run: str, dataset: pl.DataFrame, n: int, widths: Sequence[int], steps: Sequence[int] | None = None
) -> pl.DataFrame:
    """Return quantiles of both distances over sentences and places, for each model of a run after each kept step
    (`schemas.distillation.tables.NgramSummary`); all kept steps but the untrained one if none are given."""
    kept = Kept(context, run)
    words, lengths = sentences(context, dataset, n)
    task = lessons.task_fields(dataset)["task"]
    names = context_names(context, run)
    rows: list[dict[str, Any]] = []
    for step in [step for step in kept.steps if step > 0] if steps is None else steps:
        weights = kept.weights(step)
        variations = distances(kept, weights, task, words, lengths, widths)
        for measure, values in zip(MEASURES, variations, strict=True):
            for width, of_models in zip(widths, values, strict=True):
                for (arm, model), own in zip(names, of_models, strict=True):
                    q25, q50, q75, q90 = np.quantile(own, [0.25, 0.5, 0.75, 0.9]).tolist()
                    rows.append(
                        {
                            "run": run,
                            "arm": arm,
                            "model": model,
                            "step": step,
                            "measure": measure,
                            "ngram": width,
                            "mean": float(own.mean()),
                            "q25": q25,
                            "q50": q50,
                            "q75": q75,
                            "q90": q90,
                            "n": len(own),
                        }
                    )
    return pl.DataFrame(rows)


def at_inflection(stages: pl.DataFrame, summary: pl.DataFrame) -> NDArray[np.float64]:
    """Return for each teacher the median L_robust(3) at its inflection (`phases.phases`) over the largest."""
    shares = []
    for model, c1 in stages.select("model", "c1").iter_rows():
        own = summary.filter(model=model, measure="robust", ngram=NARROW)
        shares.append(own.filter(step=c1)["q50"].item() / own["q50"].max())
    return np.array(shares, float)


def context_names(context: Inputs, run: str) -> list[tuple[str, int]]:
    """Return arm and number of each model of a run, replica by replica, as its curves name them."""
    entry = context.run_header(run)["entry"]
    named = [column.partition("_") for column in context.curves(run).columns]
    students = [name for what, _, name in named if what == "accuracy" and name]
    return [
        (name.split(".")[0], replica * entry["side"] + int(name.split(".")[1]))
        for replica in range(entry["replicas"])
        for name in students
    ]


def distances(
    kept: Kept,
    weights: dict[str, torch.Tensor],
    task: str,
    words: Ids,
    lengths: NDArray[np.int64],
    widths: Sequence[int],
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Return L_robust and L_close, for each width (models, n), of all sentences and places."""
    robust: list[list[NDArray[np.float64]]] = [[] for _ in widths]
    close: list[list[NDArray[np.float64]]] = [[] for _ in widths]
    for place in places(words.shape[1] - 1):
        some = place < lengths
        if task == "next":
            some &= place > 0
        own, at = words[some], np.full(int(some.sum()), place)
        whole, parts = (_hidden if task == "next" else _masked)(own, lengths[some], at, widths)
        hidden = np.stack([whole, *(each for pair in parts for each in pair)])
        plain, *others = np.moveaxis(_predicted(kept, weights, task, own, place, hidden), 1, 0)
        for i in range(len(widths)):
            robust[i].append(pcfg.total_variation(plain, others[2 * i]))
            close[i].append(pcfg.total_variation(plain, others[2 * i + 1]))
    return [np.concatenate(each, 1) for each in robust], [np.concatenate(each, 1) for each in close]


def _masked(
    words: Ids, lengths: NDArray[np.int64], at: NDArray[np.int64], widths: Sequence[int]
) -> tuple[Bools, Iterator[tuple[Bools, Bools]]]:
    """Return which tokens (n, 1 + T) are masked: the one that is asked for; and for each width its window, and all but
    its window."""
    T = words.shape[1] - 1
    alone = np.arange(T) == at[:, None]
    near = (pcfg.window(at, n, lengths, T) for n in widths)
    return _behind(alone), ((_behind(window), _behind(~window | alone)) for window in near)


def _hidden(
    words: Ids, lengths: NDArray[np.int64], at: NDArray[np.int64], widths: Sequence[int]
) -> tuple[Bools, Iterator[tuple[Bools, Bools]]]:
    """Return which tokens (n, 1 + T) are hidden: none; and for each width i - n + 1 to i - 2, and all but i - n + 1 to
    i - 1."""
    T = words.shape[1] - 1
    place, i = np.arange(T), at[:, None]
    pairs = (((place > i - n) & (place < i - 1), ~((place > i - n) & (place < i))) for n in widths)
    nothing = np.zeros((len(at), T), bool)
    return _behind(nothing), ((_behind(skipped), _behind(others, True)) for skipped, others in pairs)


def _behind(tokens: Bools, bos: bool = False) -> Bools:
    return np.concatenate([np.full((len(tokens), 1), bos), tokens], 1)


def _predicted(
    kept: Kept, weights: dict[str, torch.Tensor], task: str, words: Ids, at: int, hidden: Bools
) -> NDArray[np.float64]:
    """Return the distributions (models, W, n, ids) of the token ``at`` of sentences ``words`` (n, 1 + T), of which
    ``hidden`` (W, n, 1 + T) are masked or hidden in W ways.

    What is hidden leaves many sentences alike; those of which all agrees that is read are computed once.
    """
    W, n, _ = hidden.shape
    # Behind BOS; the token before it predicts the next one, and nothing behind that is read.
    column = at + 1 if task == "masked" else at
    last = words.shape[1] if task == "masked" else column + 1
    words, hidden = words[:, :last], hidden[..., :last]
    present = words != pcfg.PAD
    if task == "masked":
        ids, seen = np.where(hidden & present, pcfg.MASK, words), np.broadcast_to(present, hidden.shape)
    else:
        seen = present & ~hidden
        ids = np.where(seen | (np.arange(last) == column), words, pcfg.MASK)
    ids, seen = ids.reshape(W * n, last), seen.reshape(W * n, last)
    _, first, same = np.unique(2 * ids.astype(np.int32) + seen, axis=0, return_index=True, return_inverse=True)
    ids, seen = ids[first], seen[first]
    chosen = np.broadcast_to(np.arange(last) == column, ids.shape)
    logits = kept.module.answers(kept.spec, weights, ids, chosen, seen, AT_ONCE)
    distributions: NDArray[np.float64] = logits.double().softmax(-1).numpy()
    return distributions[:, same.ravel()].reshape(len(distributions), W, n, -1)
