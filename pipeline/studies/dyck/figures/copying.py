"""Attention of models that copy (Wen et al. 2023, Figures 4 to 6). What is shown is chosen by rule, never by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.studies.dyck.figures.common import NO_MODEL, PROBE_TEXT, map_panel
from pipeline.studies.dyck.names import (
    ALL_QUERIES,
    BRACKETS,
    COPY_DEEP,
    COPY_HEADS,
    COPY_NO_SKIP,
    COPY_SHALLOW,
    COPY_STRIPPED,
    CURRENT,
    LIFTS_READ,
    MISLEADING_BELOW,
    START_SIGN,
    UNIFORM_MODE,
)

if TYPE_CHECKING:
    from pipeline.kit.results import Results

CELL, LARGE_CELL = 11, 15  # pixels of one attention weight
OPENING, CLOSING = "opening brackets", "closing brackets"
ONE_LAYER = {COPY_SHALLOW: "residual stream", COPY_NO_SKIP: "none around the MLP", COPY_STRIPPED: "none at all"}
HEAD = ["run", "replica", "layer", "head"]
Chosen = tuple[str, dict[str, Any]]  # what a panel is called, and which head it shows


@plots.drawn("Attention of a four-layer model that copies")
def fig4(context: Results) -> Figure:
    """Figure 4: layers 2 to 4 of the four-layer model with the most maps that can be read and mislead."""
    maps = _uniform(context).filter(run=COPY_DEEP)
    change = (pl.col("acc_after") - pl.col("acc_before")).abs().max()
    ranked = (
        maps.group_by("replica")
        .agg(pl.col("misleading").sum().alias("misleading"), change.alias("change"))
        .sort(pl.col("misleading"), -pl.col("change"), -pl.col("replica"), descending=True)
    )
    low, high = LIFTS_READ
    rule = (
        f"The model with the most maps that have a lift of {low} or less, or {high:g} or more, and whose ablation "
        f"costs less than {100 * MISLEADING_BELOW:g} point; if several, the one where no ablation costs much."
    )
    chosen: list[Chosen] = []
    if ranked.height:
        head = {"run": COPY_DEEP, "replica": ranked["replica"][0], "head": 0}
        chosen = [(f"layer {layer}", head | {"layer": layer}) for layer in (2, 3, 4)]
    return _figure(context, "A four-layer model that copies", rule, chosen, CELL)


@plots.drawn("Attention of one-layer models that copy")
def fig5(context: Results) -> Figure:
    """Figure 5: the one layer of models that copy, with and without ways around attention."""
    lifts = _lifts(context).filter(pl.col("key_class").is_in(BRACKETS))
    spread = lifts.group_by(HEAD).agg((pl.col("lift").max() - pl.col("lift").min()).alias("spread"))
    chosen = []
    for run, name in ONE_LAYER.items():
        ranked = spread.filter(run=run).sort("spread", "replica", descending=[True, False])
        chosen += [(name, row) for row in ranked.select(HEAD).head(1).iter_rows(named=True)]
    rule = "Of each kind of residual link the model whose lifts differ most."
    return _figure(context, "One-layer models that copy", rule, chosen, CELL)


@plots.drawn("Two heads of a model that copies")
def fig6(context: Results) -> Figure:
    """Figure 6: of one model with four layers of four heads, the head with most attention on one kind of bracket
    and the head with most on the current position; their shares stand above the maps."""
    own = _lifts(context).filter(run=COPY_HEADS, key_class=CURRENT).select(*HEAD, "mass", what=pl.lit(f"the {CURRENT}"))
    kinds = _kinds(context).filter(run=COPY_HEADS)
    tops = [shares.sort(-pl.col("mass"), *HEAD, "what").group_by("replica").first() for shares in (kinds, own)]
    both = pl.concat(part.select("replica", "mass") for part in tops).group_by("replica").agg(pl.col("mass").sum())
    chosen: list[Chosen] = []
    for replica in both.sort(-pl.col("mass"), "replica")["replica"].head(1):
        for row in (part.filter(replica=replica).row(0, named=True) for part in tops):
            name = f"layer {row['layer']}, head {row['head']}: {row['mass']:.0%} on {row['what']}"
            chosen.append((name, {key: row[key] for key in HEAD}))
    rule = (
        "The head with the largest share of attention on opening or on closing brackets, and the one with the largest "
        "on the current position, of the model where the two shares add up to most."
    )
    return _figure(context, "Two heads of a model that copies (four layers of four)", rule, chosen, LARGE_CELL)


def _figure(context: Results, what: str, rule: str, chosen: list[Chosen], cell: int) -> Figure:
    """Draw the maps of the ``chosen`` heads side by side, each with its lifts and what ablation does."""
    table = context.table("copy_maps")
    panels, frames, words, found = [], [], [], []
    for letter, (name, head) in zip("abcd", chosen, strict=False):
        weights = table.filter(**head).sort("query", "key")
        if not weights.height:
            continue
        frame = _map_data(weights, f"({letter}) {name}")
        text = "".join(frame.filter(pl.col("query") == pl.col("key"))["query_token"])
        ablated = _uniform(context).filter(**head)
        lines = _lines_above(context, head, ablated)
        panels.append(map_panel(frame, lines, cell, text))
        frames.append(frame)
        found.append(ablated)
        words.append(f"{frame['panel'][0]}: {', '.join(lines)}")
    if not frames:
        raise plots.NothingError(NO_MODEL)
    heads = pl.concat(found)
    read, misread = heads["interpretable"].sum(), heads["misleading"].sum()
    return plots.figure(
        plots.grid(panels, len(panels), spacing=16),
        pl.concat(frames),
        f"{what}: {read} of {plots.count([heads.height], 'map')} can be read, {misread} of them misleading",
        f"{rule} Each map is one head, on {PROBE_TEXT}, where {START_SIGN} is the start token",
        "Lift: attention on a bracket over that of uniform attention, all queries of held-out strings. Ablated: "
        "accuracy with uniform attention in place of this map, nothing trained again",
        told=f"Weight of every query (row) on every key (column). {'. '.join(words)}.",
    )


def _map_data(weights: pl.DataFrame, panel: str) -> pl.DataFrame:
    """Return the rows that one map draws; no boxes, because copying needs no bracket but the current one."""
    sign = {"start": START_SIGN}
    return weights.select(
        pl.lit(panel).alias("panel"),
        *HEAD,
        pl.col("query", "key").cast(pl.Int32),
        pl.col("query_token", "key_token").replace(sign),
        "weight",
        pl.lit(False).alias("box"),
    )


def _lines_above(context: Results, head: dict[str, Any], ablated: pl.DataFrame) -> list[str]:
    """Return what stands above a map: its extreme lifts, what ablation does to accuracy, and what follows."""
    lifts = _lifts(context).filter(pl.col("key_class").is_in(BRACKETS), **head).sort("lift", "key_class")
    row = ablated.row(0, named=True)
    verdict = (
        "can be read, and misleads"
        if row["misleading"]
        else "can be read"
        if row["interpretable"]
        else "cannot be read"
    )
    return [
        f"lift {plots.tell(lifts[[0, -1]], '{lift:.2f} on {key_class}', ' to ')}",
        plots.tell(ablated, "accuracy {acc_before:.3f}, ablated {acc_after:.3f}"),
        verdict,
    ]


def _lifts(context: Results) -> pl.DataFrame:
    return context.table("class_lift").filter(query_class=ALL_QUERIES)


def _uniform(context: Results) -> pl.DataFrame:
    return context.table("ablation").filter(mode=UNIFORM_MODE)


def _kinds(context: Results) -> pl.DataFrame:
    """Return the mean attention of every head on opening and on closing brackets, over all queries."""
    kind = {bracket: (CLOSING if i % 2 else OPENING) for i, bracket in enumerate(BRACKETS)}
    brackets = _lifts(context).filter(pl.col("key_class").is_in(BRACKETS))
    named = brackets.with_columns(pl.col("key_class").replace_strict(kind).alias("what"))
    return named.group_by(*HEAD, "what").agg(pl.col("mass").sum())
