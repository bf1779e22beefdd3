"""The datasets of the depth study: DEP-D1 to D5 (Chen and Zou 2024, sections 4, 7 and 9.1)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks
from pipeline.store import tables
from schemas.depth.datasets import Sequences

SCHEMA = Sequences
SMALL = ("unseen_repetition", "unseen_token")  # enumerated where that takes no more sequences than a sample
SHARE = 2**16  # sequences drawn from one stream: a longer dataset begins with the shorter one


def generate(entry: Any, dataset_id: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the dataset of ``entry`` (a member of `params.Dataset`) and the metadata of its file.

    Training sequences are as many as a run reads (steps times batch): every one is seen once, so all are fresh; those
    of ``sc`` are to be memorized. Every split and corpus has random streams of its own. The
    metadata are ``vocabulary`` and ``generator``.
    """

    def rng(*names: str | int) -> np.random.Generator:
        return stream(seed, "depth", dataset_id, *names)

    frames = [_frame(entry, split, corpus, sample) for split, corpus, sample in _SAMPLES[entry.task](entry, rng)]
    vocabulary = json.dumps(tasks.vocabulary(entry.d1, getattr(entry, "d2", 0)))
    numbered = pl.concat(frames).with_columns(
        pl.int_range(pl.len(), dtype=pl.Int32).over("split", "corpus").alias("seq_id")
    )
    return numbered, {"vocabulary": vocabulary, "generator": f"sequence_tasks {entry.task}"}


Samples = Iterator[tuple[str, int, tasks.Sample]]


def _classification(entry: Any, rng: Any) -> Samples:
    for corpus, size in enumerate(entry.sizes):
        yield "train", corpus, tasks.classification(rng("size", size), size, entry.d1, entry.l)


def _question_answering(entry: Any, rng: Any) -> Samples:
    for split, n in _sizes(entry):
        for generator, part in _parts(rng, n, split):
            yield split, 0, tasks.question_answering(generator, part, entry.k, entry.d1, entry.d2)


def _template_matching(entry: Any, rng: Any) -> Samples:
    """Yield the splits of template matching, where one in five substitutions is kept from training.

    Where there are few sequences (`SMALL`), all of them are evaluated instead of a sample.

    For the template AAA a substitution is one token, not a combination of tokens which were seen together
    with others, so AAA has a split of its own.
    """
    known, several = entry.d1 - entry.unseen, (1, len(tasks.templates(entry.l)))
    kinds = {
        "train": (entry.train, (0, known), False, None),
        "unseen_combination": (entry.held, (0, known), True, several),
        "unseen_repetition": (entry.held, (0, known), True, (0, 1)),
        "unseen_token": (entry.held, (known, entry.d1), None, None),
    }
    for split, (n, tokens, held_out, classes) in kinds.items():
        every = _every(entry.l, tokens, entry.d1, held_out, classes) if split in SMALL else None
        if every is not None and 0 < len(every.label_N) <= n:
            yield split, 0, every
            continue
        for generator, part in _parts(rng, n, split):
            yield (split, 0, tasks.template_matching(generator, part, entry.l, tokens, entry.d1, held_out, classes))


def _every(
    l: int, tokens: tuple[int, int], d1: int, held_out: bool | None, classes: tuple[int, int] | None
) -> tasks.Sample:
    """Return every sequence of a split once, or as often as its template needs to be as frequent as the others."""
    templates = tasks.templates(l)
    sequences = {}
    for label in range(*(classes or (0, len(templates)))):
        template = templates[label]
        filled = itertools.permutations(range(*tokens), int(template.max()) + 1)
        rows = np.array(list(filled), int)[:, template]
        sequences[label] = rows if held_out is None else rows[tasks.is_held_out(rows) == held_out]
    most = max(map(len, sequences.values()))
    rows = np.concatenate([np.resize(part, (most, l)) for part in sequences.values()])
    label_N = np.repeat(list(sequences), most)
    ids = np.concatenate([rows, np.full((len(rows), 1), d1)], 1)
    return tasks.Sample(ids, label_N, np.zeros((len(rows), 0), int), label_N)


def _contextual(entry: Any, rng: Any) -> Samples:
    for split, n in _sizes(entry):
        for generator, part in _parts(rng, n, split):
            yield split, 0, tasks.contextual(generator, part, entry.k, entry.l, entry.d1, entry.d2)


def _nested(entry: Any, rng: Any) -> Samples:
    for corpus, hops in enumerate(entry.hops):
        for split, n in _sizes(entry):
            for generator, part in _parts(rng, n, split, "hops", hops):
                sample = tasks.nested(generator, part, hops, entry.links, entry.chains, entry.d1)
                yield split, corpus, sample


_SAMPLES = {
    "sc": _classification,
    "ic_qa": _question_answering,
    "tm": _template_matching,
    "ic_tm": _contextual,
    "nested": _nested,
}


def _sizes(entry: Any) -> tuple[tuple[str, int], ...]:
    return ("train", entry.train), ("fresh", entry.held)


def _parts(rng: Any, n: int, *names: str | int) -> Iterator[tuple[np.random.Generator, int]]:
    for start in range(0, n, SHARE):
        yield rng(*names, "part", start // SHARE), min(SHARE, n - start)


def _frame(entry: Any, split: str, corpus: int, sample: tasks.Sample) -> pl.DataFrame:
    n = len(sample.label_N)
    constants = {
        "task": entry.task,
        "split": split,
        "corpus": corpus,
        "k": entry.links * entry.chains if entry.task == "nested" else getattr(entry, "k", 0),
        "l": getattr(entry, "l", 0),
        "d1": entry.d1,
        "d2": getattr(entry, "d2", 0),
        "hops": entry.hops[corpus] if entry.task == "nested" else 0,
    }
    columns = {
        "tokens": _lists(sample.ids_NxT),
        "label": sample.label_N,
        "candidates": _lists(sample.candidates_NxK),
        "right": sample.right_N,
        "seq_id": np.zeros(n, np.int32),  # numbered once all parts are together
    }
    frame = pl.DataFrame(columns).with_columns(pl.lit(value).alias(name) for name, value in constants.items())
    dtypes = {name: column.dtype.type for name, column in SCHEMA.to_schema().columns.items()}
    lists = ("tokens", "candidates")
    return frame.select(pl.col(name) if name in lists else pl.col(name).cast(dtype) for name, dtype in dtypes.items())


def _lists(values_NxK: NDArray[np.int64]) -> pl.Series:
    n, k = values_NxK.shape
    return tables.lists(values_NxK.astype(np.int16).ravel(), np.full(n, k))
