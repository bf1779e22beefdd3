"""The grammars, a tree, what the best predictors reach, and attention with weights written down."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.names import GRAMMARS

COLOURS = [charts.BLUE, charts.VERMILLION, charts.GREEN, charts.PURPLE, charts.ORANGE, charts.GREY]
CFG3B, FULL, MAIN = "cfg3b", 22, 0.3
STILL = 0.005  # total variation below which a prediction does not move
MOVES = "The best prediction moves whatever is hidden around it"
BY_GRAMMAR = plots.kinds(dict(zip(GRAMMARS.values(), COLOURS, strict=True)), dashes=False)


def _labelled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(label=pl.col("grammar").replace_strict(GRAMMARS, return_dtype=pl.String))


def grammars(context: Results) -> Figure:
    """The rules of the grammars, as the pipeline uses them: each symbol with its right-hand sides, all equally
    likely. The grammar of the published code lacks a rule of symbol 9 (Figure 4.23)."""
    rules = context.table("grammar_rules")
    sides = pl.col("rhs").cast(pl.List(pl.String)).list.join(" ")
    data = rules.group_by("grammar", "lhs", maintain_order=True).agg(sides.alias("sides"), pl.col("prob").first())
    text = pl.format("{} → {}", pl.col("lhs"), pl.col("sides").list.join(" | "))
    data = _labelled(data.with_columns(rule=text, line=22 - pl.col("lhs"))).drop("sides")
    own = data.filter(grammar=CFG3B)["rule"].to_list()
    other = (pl.col("grammar") == "cfg3b_pdcode") & ~pl.col("rule").is_in(own)
    data = data.with_columns(colour=pl.when(other).then(pl.lit(charts.VERMILLION)).otherwise(pl.lit(charts.INK)))
    lines = (
        alt.Chart(data)
        .mark_text(align="left", fontSize=12)
        .encode(x=alt.value(0), y=alt.Y("line:O", axis=None), text="rule:N", color=alt.Color("colour:N", scale=None))
    )
    order, header = list(GRAMMARS.values()), alt.Header(labelAnchor="start", labelFontWeight="bold")
    panels = lines.properties(width=300, height=16 * 17).facet(
        facet=alt.Facet("label:N", title=None, sort=order, header=header), columns=2
    )
    sizes = plots.tell(data.group_by("label", maintain_order=True).len(), "{label}: {len} symbols", ", ")
    known = data.filter(grammar="cfg3b_pdcode").height
    changed = data.filter(other).height if known else 0
    return plots.figure(
        panels,
        data,
        f"Six grammars; the published code changes {plots.count([changed], 'symbol')} of cfg3b",
        "All right-hand sides of a symbol are equally likely. Red: what the published code has otherwise",
        told=f"Listing of rules. {sizes}.",
    )


def lengths(context: Results) -> Figure:
    """Distribution functions of the length of a string, exact (lines), and the published percentiles (dots). Those of
    cfg3b lie on its line, and not on that of the grammar in the published code (section 4.2.8.3)."""
    law = _labelled(context.table("pcfg_length_law")).sort("grammar", "length")
    law = law.filter(pl.col("cumulative").is_between(0.0005, 0.9995))
    shares = {"q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
    stats = _labelled(context.table("pcfg_length_stats").drop_nulls("published")).with_columns(
        cumulative=pl.col("quantity").replace_strict(shares, return_dtype=pl.Float64)
    )
    exact = law.select("label", "length", "cumulative", kind=pl.lit("exact"))
    published = stats.select(
        "label", pl.col("published").cast(pl.Int16).alias("length"), "cumulative", kind=pl.lit("published")
    )
    x = Axis("length", "tokens of a string", domain=[80, 460])
    y = plots.share("cumulative", "share of strings up to this length")
    off = stats.select((pl.col("exact") - pl.col("published")).abs().max()).item()
    return plots.figure(
        [*plots.lines(exact, x, y, BY_GRAMMAR), *plots.points(published, x, y, BY_GRAMMAR.along())],
        pl.concat([exact, published]),
        f"Published percentiles of lengths are at most {off:.0f} tokens from the exact ones",
        "Lines: exact distribution functions; dots: published percentiles (25, 50, 75, 95 %)",
        width=520,
        height=300,
    )


def parse_tree(context: Results) -> Figure:
    """A string of cfg3b below the symbol 15 and its derivation, drawn at random: tokens at the bottom, level 1; filled
    circles are symbols, each over the middle of its span, and bars are where a span ends (as in Figure 4.6)."""
    nodes = context.table("parse_tree").with_columns(x=(pl.col("first") + pl.col("last")) / 2 + 1)
    above = nodes.select(pl.col("node").alias("parent"), pl.col("x").alias("x2"), pl.col("level").alias("level2"))
    data = nodes.join(above, on="parent", how="left", maintain_order="left").with_columns(
        name=pl.col("symbol").cast(pl.String), boundary=pl.col("last") + 1.0
    )
    tokens, top = int(data["last"].max()) + 1, int(data["level"].max())  # type: ignore[arg-type]
    x_scale = alt.Scale(domain=[0, tokens + 1], nice=False)
    y_scale = alt.Scale(domain=[0.5, top + 0.5], nice=False)

    def at(x: str, y: str) -> dict[str, Any]:
        axis = alt.Axis(values=list(range(1, top + 1)), format="d", grid=False)
        return {
            "x": alt.X(f"{x}:Q", axis=None, scale=x_scale),
            "y": alt.Y(f"{y}:Q", title="level, from the leaves", scale=y_scale, axis=axis),
        }

    edges = (
        alt.Chart(data.drop_nulls("parent"))
        .mark_rule(color=charts.GREY, strokeWidth=1)
        .encode(**at("x", "level"), x2="x2:Q", y2="level2:Q")
    )
    inner, leaves = data.filter(pl.col("level") > 1), data.filter(pl.col("level") == 1)
    ends = (
        alt.Chart(inner)
        .mark_tick(opacity=1, orient="vertical", height=16, thickness=2.5, color=charts.VERMILLION)
        .encode(**at("boundary", "level"))
    )
    dots = (
        alt.Chart(inner)
        .mark_point(shape="circle", size=420, filled=True, opacity=1, fill=charts.BLUE)
        .encode(**at("x", "level"), tooltip=["symbol:Q", "level:Q", "first:Q", "last:Q"])
    )
    names = alt.Chart(inner).mark_text(fontSize=11, color="white").encode(**at("x", "level"), text="name:N")
    words = alt.Chart(leaves).mark_text(fontSize=14, color=charts.INK).encode(**at("x", "level"), text="name:N")
    backs = (
        alt.Chart(leaves)
        .mark_point(shape="circle", size=260, filled=True, opacity=1, fill="white")
        .encode(**at("x", "level"))
    )
    string = " ".join(leaves.sort("first")["name"].to_list())
    return plots.figure(
        [edges, ends, dots, names, backs, words],
        data,
        f"A string of {tokens} tokens and its derivation",
        "cfg3b below 15; bars: ends of spans",
        told=f"The string {string}.",
        width=640,
        height=260,
    )


def ceilings(context: Results) -> Figure:
    """What the best possible predictor reaches on each full grammar, on masked tokens and on the last tokens of spans
    of three levels (circles), beside accuracies of trained models in the source (diamonds). A model to the right of its
    circle cannot have been trained on that grammar."""
    scores = _labelled(context.table("oracle").filter(root=FULL, quantity="acc"))
    masked = scores.filter(mask_rate=MAIN, task="masked").with_columns(panel=pl.lit("masked tokens"))
    after = scores.filter(task="next").with_columns(panel=pl.format("next token, ends of level {}", "level"))
    data = pl.concat([masked, after.sort("level", maintain_order=True)]).select(
        "panel", "label", "value", "se", "published", "where", "n"
    )
    data = data.with_columns(lo=pl.col("value") - 2 * pl.col("se"), hi=pl.col("value") + 2 * pl.col("se"))
    data = data.with_columns(above=pl.col("published") > pl.col("hi"))
    x = Axis("value", "accuracy (axis from 0.6)", domain=[0.6, 1], values=[0.6, 0.7, 0.8, 0.9, 1])
    y = Axis("label", None, "N", order=list(GRAMMARS.values()))
    panels = []
    for name, rows in plots.split(data, "panel"):
        printed = rows.drop_nulls("published")
        diamonds = plots.points(printed, x.but(field="published"), y, charts.VERMILLION, shape="diamond", size=90)
        over = alt.Chart(rows.filter("above")).mark_text(dx=8, align="left", fontSize=plots.SMALL, text="above!")
        marks = [*plots.points(rows, x, y, ends=("lo", "hi"), size=80), *diamonds]
        marks.append(over.encode(x=x.at(alt.X, "published"), y=y.at(alt.Y)))
        panels.append(plots.panel(marks, name, 210, alt.Step(24)))
    excesses = plots.tell(data.filter("above"), "{label}, {panel}: best {value:.3f}, published {published:.2f}")
    return plots.figure(
        plots.grid(panels),
        data,
        f"Above what anything can reach: {data['above'].sum()} of {data['published'].count()} published accuracies",
        f"Circles: the best possible predictor on {plots.count(data['n'], 'token')}; bars: two standard errors. "
        "Diamonds: published models",
        told=f"Published above the best possible: {excesses or 'none'}.",
    )


def windows(context: Results) -> Figure:
    """Medians of L_robust and L_close of the best predictor over the width of the window, on three truncated grammars:
    what a model has that has learned all there is (equations 4.94 and 4.95). It trusts every token that it sees."""
    what = {"robust": "without the window: L_robust", "close": "nothing but the window: L_close"}
    data = (
        context.table("oracle")
        .filter(pl.col("quantity").is_in(["robust", "close"]), task="hidden")
        .select(
            pl.col("quantity").replace_strict(what, return_dtype=pl.String).alias("panel"),
            pl.format("root {}", "root").alias("grammar"),
            *("ngram", "value", "n"),
        )
        .sort("panel", "grammar", "ngram")
    )
    x = plots.listed("ngram", "tokens of the window, n", data)
    y = Axis("value", "total variation, median", domain=[0, 0.6], values=[0, 0.2, 0.4, 0.6])
    by = plots.kinds(data["grammar"].unique(maintain_order=True), "grammar")
    panels = [
        plots.panel(plots.lines(data.filter(panel=name), x, y, by, dots=True), name, 250, 210) for name in what.values()
    ]
    three = data.filter(ngram=3)
    moved = plots.least(data.filter(pl.col("value") >= STILL, panel=what["robust"])["ngram"])
    still = plots.most(data.filter(~(pl.col("ngram") >= moved))["ngram"])
    return plots.figure(
        plots.grid(panels),
        data,
        f"The best prediction does not move where {still:.0f} tokens around it are hidden" if still == still else MOVES,
        f"Medians over {plots.count(data['n'], 'token')} of the best predictor; grammars cut at a root",
        told=f"At n = 3: {plots.tell(three, '{panel}, {grammar}: {value:.3f}')}.",
    )


def constructions(context: Results) -> Figure:
    """Probability that the Transformer of Proposition 9 computes the parity, exact over all strings, over the score c
    of the support; dashed lines are where at most 1/(4k) of the attention leaves it, from where on there is no
    error."""
    data = context.table("constructions").filter(prop=9).sort("d", "c")
    data = data.with_columns(size=pl.format("d = {}, k = {}", "d", "k"))
    by = plots.kinds(data["size"].unique(maintain_order=True), "size", dashes=False)
    x, y = Axis("c", "score of the support, c"), plots.share("accuracy", low=0.5)
    limits = data.group_by("size", maintain_order=True).agg(pl.col("threshold_c").first().alias("c"))
    rules = [
        layer
        for size, c in limits.iter_rows()
        for layer in plots.rule(x, c, upright=True, dash=plots.DASHED, colour=by.looks[size].colour)
    ]
    return plots.figure(
        [*rules, *plots.lines(data, x, y, by, dots=True)],
        data,
        "Attention needs scores from {:.1f} to {:.1f} for exact parities".format(
            plots.least(limits["c"]), plots.most(limits["c"])
        ),
        "Over all strings. Dashed: at most 1/(4k) of the attention leaves the support, from where on there is no error",
        told=f"Exact from c = {plots.tell(limits, '{c:.2f} for {size}', ', ')} on.",
        width=480,
    )
