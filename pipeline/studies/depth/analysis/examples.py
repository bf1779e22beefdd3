"""DEP-F1: sequences of every task in letters (Table 1, Figure 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth.names import JUDGED, SHOWN


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the first sequences of one dataset of every task, with their labels and why these are the labels."""
    examples = [_shown(key, context.dataset(key), task, context.entry.shown) for task, key in SHOWN.items()]
    return {"examples": examples}


def _shown(key: str, frame: pl.DataFrame, task: str, count: int) -> pl.DataFrame:
    rows = []
    for number, row in enumerate(_pick(frame, task, count).iter_rows(named=True)):
        answer, explanation = _explain(row)
        rows.append(
            {
                "task": task,
                "number": number,
                "dataset": key,
                "tokens": row["tokens"],
                "text": letters(row["tokens"], row["d1"]),
                "label": row["label"],
                "answer": answer,
                "explanation": explanation,
            }
        )
    return pl.DataFrame(rows, schema_overrides={"tokens": pl.List(pl.Int16)})


def _pick(frame: pl.DataFrame, task: str, count: int) -> pl.DataFrame:
    """Return the first ``count`` sequences of the judged split and of the last corpus (the most hops).

    For template matching they are of different templates, in which something repeats, but not everything.
    """
    part = frame.filter(split=JUDGED[task]).filter(pl.col("corpus") == pl.col("corpus").max())
    if task == "tm":
        repeats = part.filter((pl.col("label") > 0) & (pl.col("label") < pl.col("label").max()))
        part = repeats.unique("label", keep="first", maintain_order=True)
    return part.head(count)


def letters(tokens: list[int], d1: int) -> str:
    """Return a sequence in letters.

    Questions are A, B, ... in the order in which they come, the response sign is =, answers are 1, 2, ...

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


def _explain(row: dict[str, Any]) -> tuple[str, str]:
    """Return the label in the letters of `letters`, and why it is the label."""
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
        size, l = row["l"] + 2, row["l"]
        template = tasks.name(tasks.templates(l)[tasks.template_of(np.array([tokens[right * size :][:l]]))[0]])
        return answer, f"example {right + 1} has the template {template} of the query"
    steps, pairs = [tokens[-2]], {tokens[i]: tokens[i + 2] for i in range(0, len(tokens) - 2, 3)}
    for _ in range(row["hops"]):
        steps.append(pairs[steps[-1]])
    return answer, " → ".join(name[t] for t in steps)
