"""Sequences in letters: the example table (DEP-F1: Table 1, Figure 1), and probes read back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.languages import sequence_tasks as tasks
from schemas.depth.tables import JUDGED


def examples(datasets: dict[str, pl.DataFrame], count: int) -> Iterator[pl.DataFrame]:
    """The first ``count`` sequences of the first dataset of every task."""
    seen = set()
    for key, frame in datasets.items():
        task = frame["task"][0]
        if task in seen:
            continue
        seen.add(task)
        for i, row in enumerate(_pick(frame, task, count).iter_rows(named=True)):
            shown = letters(row["tokens"], row["d1"])
            answer, explanation = _explain(row)
            yield pl.DataFrame(
                {
                    "task": task,
                    "number": i,
                    "dataset": key,
                    "tokens": pl.Series([row["tokens"]], dtype=pl.List(pl.Int16)),
                    "text": shown,
                    "label": row["label"],
                    "answer": answer,
                    "explanation": explanation,
                }
            )


def _pick(frame: pl.DataFrame, task: str, count: int) -> pl.DataFrame:
    """Of the judged split, the last corpus (the most hops), and of templates the ones in which something repeats."""
    part = frame.filter(split=JUDGED[task]).filter(pl.col("corpus") == pl.col("corpus").max())
    if task == "tm":
        repeats = part.filter((pl.col("label") > 0) & (pl.col("label") < pl.col("label").max()))
        part = repeats.unique("label", keep="first", maintain_order=True)
    return part.head(count)


def letters(tokens: list[int], d1: int) -> str:
    """Questions as A, B, ... in the order in which they come, the response sign as =, answers as 1, 2, ...

    >>> letters([7, 7, 3, 9, 12, 7, 9], 9)
    'AAB=1A='
    """
    names = _names(tokens, d1)
    return "".join(names[t] for t in tokens)


def _names(tokens: list[int], d1: int) -> dict[int, str]:
    questions = [t for t in dict.fromkeys(tokens) if t < d1]
    answers = [t for t in dict.fromkeys(tokens) if t > d1]
    named = {t: chr(ord("A") + i) for i, t in enumerate(questions)}
    return named | {t: str(i + 1) for i, t in enumerate(answers)} | {d1: "="}


def encode(probe: str, shape: dict[str, Any]) -> NDArray[np.int64] | None:
    """(1, T) the tokens of ``probe``, or None if the task has too few, or no sequences of that form."""
    d1, d2 = shape["d1"], shape["d2"]
    ids = [ord(c) - ord("A") if c.isalpha() else d1 if c == "=" else d1 + int(c) for c in probe]
    known = all(0 <= t <= d1 + d2 for t in ids) and all(
        t < d1 for t, c in zip(ids, probe, strict=True) if c.isalpha()
    )
    fits = len(ids) == tasks.length(shape["task"], shape["k"], shape["l"])
    return np.array([ids]) if known and fits else None


def _explain(row: dict[str, Any]) -> tuple[str, str]:
    """The label in the letters of `letters`, and why it is the label."""
    tokens, d1, right = row["tokens"], row["d1"], row["right"]
    name = _names(tokens, d1)
    if row["task"] == "sc":
        return f"class {row['label']}", "every sequence has a label of its own"
    if row["task"] == "tm":
        template = tasks.name(tasks.templates(row["l"])[row["label"]])
        return template, f"tokens are equal where {template} has equal letters"
    answer = name[row["label"]]
    if row["task"] == "ic_qa":
        return answer, f"pair {right + 1} has the question {name[tokens[-2]]}"
    if row["task"] == "ic_tm":
        size, l = row["l"] + 2, row["l"]  # noqa: E741
        template = tasks.name(
            tasks.templates(l)[tasks.template_of(np.array([tokens[right * size :][:l]]))[0]]
        )
        return answer, f"example {right + 1} has the template {template} of the query"
    steps, pairs = [tokens[-2]], {tokens[i]: tokens[i + 2] for i in range(0, len(tokens) - 2, 3)}
    for _ in range(row["hops"]):
        steps.append(pairs[steps[-1]])
    return answer, " → ".join(name[t] for t in steps)
