"""What the reproduction found beside comparisons of models: sentences whose numbers are computed from its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth.measures.runs import Run
from pipeline.studies.depth.names import JUDGED

Sentences = Iterator[tuple[str, str]]  # topic and sentence
LEADING = ("hops",)  # topics with which the page begins: what the source does not say
EDGES = {"lowest": "the lowest", "highest": "the highest", "only": "the only one"}


def table(sentences: Sentences) -> list[pl.DataFrame]:
    """Return the table of ``sentences``, a row for each topic."""
    rows = [{"topic": topic, "leads": topic.startswith(LEADING), "finding": sentence} for topic, sentence in sentences]
    return [pl.DataFrame(rows)] if rows else []


def of_chains(accuracy: pl.DataFrame, summary: pl.DataFrame) -> Sentences:
    """Yield at how many layers chains of lookups are learned, and how many heads died on the way."""
    rows = accuracy.filter(split=JUDGED["nested"], among="outputs")
    if not rows.height:
        return
    solved = rows.filter(pl.col("n_solved") > 0).group_by("hops").agg(pl.col("layers").unique().sort()).sort("hops")
    none = sorted({*rows["hops"].to_list()} - {*solved["hops"].to_list()})
    steps, most = summary["steps"][0], max(rows["n"].to_list())
    depths = "; ".join(f"{_hops(hops)} at {', '.join(map(str, layers))} layers" for hops, layers in solved.iter_rows())
    lost = f"{' and '.join(map(_hops, none))} at no depth" if none else ""
    yield (
        "hops",
        (
            f"With {steps} steps and {most} model{'s' if most != 1 else ''} for each depth and number of "
            f"hops, chains are learned (by a model with an accuracy of {_number(rows['solved'][0])} or "
            f"more) for {'; '.join(part for part in (depths, lost) if part)}."
        ),
    )
    dead = summary.group_by("layers").agg(pl.col("heads_dead").sum() / pl.col("heads_total").sum()).sort("layers")
    shares = ", ".join(f"{layers} layers {share:.0%}" for layers, share in dead.iter_rows())
    yield "dead heads", f"Heads of nested lookups that read nothing when training ends: {shares}."


def of_rates(rates: pl.DataFrame) -> Sentences:
    """Yield which chosen learning rates are at an edge of their grids."""
    chosen = rates.filter("chosen")
    if chosen.height:
        edge = chosen.filter(pl.col("place") != "inside").sort("run", "hops")
        listed = [f"{r['run']} ({r['lr']:g}, {EDGES[r['place']]})" for r in edge.iter_rows(named=True)]
        yield (
            "rates",
            (
                f"The best rate lies inside its grid for {chosen.height - edge.height} of {chosen.height} "
                f"shapes" + (f"; at an edge: {', '.join(listed)}." if listed else ".")
            ),
        )


def start_scores(runs: list[Run]) -> Sentences:
    """Yield the scores with which the last query of one layer starts from a construction, and which keys learn.

    A ReLU passes a gradient where a score is above 0 alone.
    """
    for run in runs:
        kinds = run.entry["constructed"]
        if run.spec.layers != 1 or not kinds:
            continue
        W = tasks.start(kinds[0], **run.shape, width=run.spec.width)
        ids = run.corpora[0].ids_BxT
        x = np.eye(run.spec.inputs + run.spec.length, run.spec.width)
        H = x[ids] + x[run.spec.inputs : run.spec.inputs + ids.shape[1]]
        scores = H @ W @ H[:, -1, :, None]
        block = tasks.blocks(run.task, run.shape["k"], run.shape["l"])[: ids.shape[1]]
        own, other = scores[:, block == block[-1]], scores[:, block != block[-1]]
        outside = f", {_range(other)} outside it" if other.size else ""
        yield (
            f"start of one layer, {run.task}",
            (
                f"{run.name}: at the start the scores of the last query are {_range(own)} in its own "
                f"block{outside}; "
                f"a gradient passes at {(scores > 0).mean():.0%} of the keys, outside the block at "
                f"{(other > 0).mean() if other.size else 0:.0%}."
            ),
        )


def _range(values: Any) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _hops(hops: int) -> str:
    return f"{hops} hop{'' if hops == 1 else 's'}"


def _number(value: float) -> str:
    return f"{value:.3g}"
