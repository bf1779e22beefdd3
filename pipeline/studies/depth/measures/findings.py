"""What the reproduction found, in sentences whose numbers, directions and orders are computed from its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth.measures.runs import Run
from pipeline.studies.depth.names import (
    CONTEXTUAL,
    CONTEXTUAL_PUBLISHED,
    FROZEN,
    GENERALIZATION,
    JUDGED,
    LIKENESS,
    ONE_LAYER,
    REASONING,
    SOFTMAX,
    TWO_LAYERS_HEADS,
)

Row = dict[str, Any]
Sentences = Iterator[tuple[str, str]]  # topic and sentence
# Topics with which the page begins: what the source does not say.
LEADING = ("frozen attention", "unseen tokens", "likeness", "published start", "two layers", "heads", "hops")
EDGES = {"lowest": "the lowest", "highest": "the highest", "only": "the only one"}


def table(sentences: Sentences) -> list[pl.DataFrame]:
    """Return the table of ``sentences``, a row for each topic."""
    rows = [
        {"topic": topic, "leads": topic.startswith(LEADING), "finding": sentence}
        for topic, sentence in sentences
    ]
    return [pl.DataFrame(rows)] if rows else []


def of_layers(
    accuracy: pl.DataFrame, runs: pl.DataFrame, contrasts: pl.DataFrame, rates: pl.DataFrame
) -> Sentences:
    """Yield what EXP-1 and its controls found."""
    for trained, frozen in FROZEN.items():
        for ours in _rows(accuracy, frozen, "train"):
            n, width = ours["sequences"], runs.filter(run=frozen)["width"][0]
            full = _row(accuracy.filter(sequences=n), trained, "train")
            if full is not None:
                speed = contrasts.filter(contrast=f"attention that learns, N={n}")
                ratio = speed["value"][0] if speed.height else None
                yield (
                    f"frozen attention, N={n}",
                    (
                        f"With attention frozen at its start, a classifier alone labels {ours['value']:.0%} of "
                        f"{n} sequences (width {width}: {_size(n, width)}); where attention learns as well it is "
                        f"{full['value']:.0%}"
                        + (
                            f", in {_number(ratio)} times the steps to 95%."
                            if ratio and _known(ratio)
                            else "."
                        )
                    ),
                )
    if (unseen := _row(accuracy, GENERALIZATION[2], "unseen_token")) is not None:
        known = _row(accuracy, GENERALIZATION[2], JUDGED["tm"])
        assert known is not None
        yield (
            "unseen tokens",
            (
                f"Two layers with a median accuracy of {_number(known['value'])} on unseen combinations "
                f"({known['distinct']} different ones) have {_number(unseen['value'])} on the "
                f"{unseen['distinct']} sequences of tokens that training never showed; the construction "
                "classifies all of them."
            ),
        )
    for task, run in {"reasoning": REASONING[2], "generalization": GENERALIZATION[2]}.items():
        if (row := _row(accuracy, run, JUDGED["ic_qa" if task == "reasoning" else "tm"])) is not None:
            yield (
                f"starts, {task}",
                (
                    f"Two layers solve {task} ({_number(row['solved'])} or more) from {_share(row)}; the "
                    f"median is "
                    f"{_number(row['value'])}, the least {_number(row['least'])}."
                ),
            )
    yield from _likeness(contrasts)
    for task, run in SOFTMAX.items():
        row = _row(accuracy, run, JUDGED[task])
        if row is not None:
            name = {"ic_qa": "reasoning", "tm": "generalization"}[task]
            yield (
                f"softmax, {name}",
                (
                    f"Two layers with softmax attention, one head each, reach {_number(row['value'])} on "
                    f"{name}: solved from "
                    f"{_share(row)}."
                ),
            )
    uniform = _row(accuracy, ONE_LAYER["tm"], JUDGED["tm"])
    if uniform is not None:
        yield (
            "one layer on templates",
            (
                f"One layer from the uniform start reaches {_number(uniform['value'])} on unseen combinations, "
                f"{_side(uniform['value'], uniform['chance'])} chance ({_number(uniform['chance'])})."
            ),
        )
    yield from of_rates(rates)


def of_context(ended: dict[str, Row], contrasts: pl.DataFrame) -> Sentences:
    """Yield what was found on contextual generalization, from how the models of each run ended."""
    here = [ended[run] for run in (CONTEXTUAL_PUBLISHED[3], CONTEXTUAL[3]) if run in ended]
    if len(here) > 1:
        ends = "; ".join(
            f"from a classifier in [0, {row['readout']:g}) they solve it in {_share(row)} at the best rate, "
            f"{row['lr']:g} (median {_number(row['value'])}), and the best model of all rates reaches "
            f"{_number(row['best'])} (rate {row['best_lr']:g})"
            for row in here
        )
        yield "published start", f"Three layers on contextual generalization (published start first): {ends}."
    for words, run in {"one head": CONTEXTUAL[2], "2 l heads": TWO_LAYERS_HEADS}.items():
        if run in ended:
            row = ended[run]
            yield (
                f"two layers, {words}",
                (
                    f"Two layers with {words} in the last solve contextual generalization in {_share(row)}: "
                    f"{_number(row['context'])} among the answers of the context, where chance is "
                    f"{_number(row['chance'])}."
                ),
            )
    speed = contrasts.filter(contrast="four layers against three")
    if speed.height and _known(speed["value"][0]):
        row = speed.row(0, named=True)
        yield (
            "four layers",
            (
                f"Four layers take {_number(row['value'])} times the steps of three to 95% "
                f"({_number(row['lo'])} to {_number(row['hi'])}, bootstrap over {row['n']} models; "
                f"{row['n_censored']} of them never got there)."
            ),
        )


def of_heads(rates: pl.DataFrame, contrasts: pl.DataFrame) -> Sentences:
    """Yield how the number of heads and the learning rate go together on memorization."""
    correlations = contrasts.filter(contrast="heads of one layer")
    chosen = rates.filter(pl.col("chosen"), task="sc", layers=1)
    if correlations.height and _known(correlations["value"][0]):
        row = correlations.row(0, named=True)
        best_rates = ", ".join(f"{r['heads']}: {r['lr']:g}" for r in chosen.sort("lr").iter_rows(named=True))
        direction = (
            "fewer"
            if row["hi"] < 0
            else "more"
            if row["lo"] > 0
            else "neither clearly fewer nor clearly more"
        )
        yield (
            "heads",
            (
                f"At the best rate of each number of heads (heads: rate; {best_rates}), more heads take "
                f"{direction} steps to 95%: "
                f"rank correlation {_number(row['value'])} ({_number(row['lo'])} to {_number(row['hi'])})."
            ),
        )


def of_chains(accuracy: pl.DataFrame, summary: pl.DataFrame) -> Sentences:
    """Yield at how many layers chains of lookups are learned, and how many heads died on the way."""
    rows = accuracy.filter(split=JUDGED["nested"], among="outputs")
    if not rows.height:
        return
    solved = (
        rows.filter(pl.col("n_solved") > 0)
        .group_by("hops")
        .agg(pl.col("layers").unique().sort())
        .sort("hops")
    )
    none = sorted({*rows["hops"].to_list()} - {*solved["hops"].to_list()})
    steps, most = summary["steps"][0], max(rows["n"].to_list())
    depths = "; ".join(
        f"{_hops(hops)} at {', '.join(map(str, layers))} layers" for hops, layers in solved.iter_rows()
    )
    lost = f"{' and '.join(map(_hops, none))} at no depth" if none else ""
    yield (
        "hops",
        (
            f"With {steps} steps and {most} model{'s' if most != 1 else ''} for each depth and number of "
            f"hops, chains are learned (by a model with an accuracy of {_number(rows['solved'][0])} or "
            f"more) for {'; '.join(part for part in (depths, lost) if part)}."
        ),
    )
    dead = (
        summary.group_by("layers")
        .agg(pl.col("heads_dead").sum() / pl.col("heads_total").sum())
        .sort("layers")
    )
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


def _likeness(contrasts: pl.DataFrame) -> Sentences:
    rows = {
        row["contrast"]: row
        for row in contrasts.iter_rows(named=True)
        if row["contrast"] in LIKENESS.values()
    }
    changes = [rows.get(LIKENESS[layer]) for layer in (1, 2)]
    if all(row is not None and _known(row["value"]) for row in changes):
        first, second = changes
        assert first is not None and second is not None
        yield (
            "likeness to the construction",
            (
                f"In the {second['n']} models of two layers that solve generalization, the cosine of "
                f"trained and constructed "
                f"attention {_direction(second['value'])} in layer 2 (by {_number(abs(second['value']))}, from "
                f"{_number(second['start'])}) and {_direction(first['value'])} in layer 1 (by "
                f"{_number(abs(first['value']))}, "
                f"from {_number(first['start'])}, where it is inherited from the start)."
            ),
        )


def _known(value: float | None) -> bool:
    return value is not None and bool(np.isfinite(value))


def _rows(accuracy: pl.DataFrame, run: str, split: str) -> list[Row]:
    rows = accuracy.filter(run=run, split=split, among="outputs").filter(pl.col("value").is_not_null())
    return list(rows.iter_rows(named=True))


def _row(accuracy: pl.DataFrame, run: str, split: str) -> Row | None:
    return next(iter(_rows(accuracy, run, split)), None)


def _share(row: Row) -> str:
    return (
        f"{row['n_solved']} of {row['n'] + row['n_diverged']} starts (exact interval of the share "
        f"{_number(row['share_lo'])} to {_number(row['share_hi'])})"
    )


def _size(n: int, width: int) -> str:
    return f"N {'above' if n > width else 'below'} the width"


def _side(value: float, bar: float) -> str:
    return "below" if value < bar else "above" if value > bar else "at"


def _direction(change: float) -> str:
    return "falls" if change < 0 else "rises" if change > 0 else "stays"


def _range(values: Any) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _hops(hops: int) -> str:
    return f"{hops} hop{'' if hops == 1 else 's'}"


def _number(value: float) -> str:
    return f"{value:.3g}"
