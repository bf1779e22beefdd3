"""The grammars, a tree, what the best predictors reach, and attention with weights written down."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.distillation.names import GRAMMARS

COLOURS = [charts.BLUE, charts.VERMILLION, charts.GREEN, charts.PURPLE, charts.ORANGE, charts.GREY]
LINE = alt.Legend(orient="top", columns=3, symbolType="stroke", symbolStrokeWidth=2)
CFG3B, FULL, MAIN = "cfg3b", 22, 0.3


def _coloured(title: str | None = None, legend: Any = LINE) -> alt.Color:
    scale = alt.Scale(domain=list(GRAMMARS.values()), range=COLOURS)
    return alt.Color("label:N", title=title, scale=scale, legend=legend)


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
    counts = data.group_by("label", maintain_order=True).agg(pl.len()).iter_rows()
    sizes = ", ".join(f"{label}: {n} symbols" for label, n in counts)
    return panels.properties(title="Six grammars", description=f"Listing of rules. {sizes}."), data


def lengths(context: Results) -> Figure:
    """Distribution functions of the length of a string, exact (lines), and the published percentiles (dots). Those of
    cfg3b lie on its line, and not on that of the grammar in the published code (section 4.2.8.3)."""
    law = _labelled(context.table("pcfg_length_law")).sort("grammar", "length")
    law = law.filter(pl.col("cumulative").is_between(0.0005, 0.9995))
    shares = {"q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
    stats = _labelled(context.table("pcfg_length_stats").drop_nulls("published")).with_columns(
        cumulative=pl.col("quantity").replace_strict(shares, return_dtype=pl.Float64)
    )
    data = pl.concat(
        [
            law.select("label", "length", "cumulative", pl.lit("exact").alias("kind")),
            stats.select(
                "label",
                pl.col("published").cast(pl.Int16).alias("length"),
                "cumulative",
                pl.lit("published").alias("kind"),
            ),
        ]
    )
    x = alt.X("length:Q", title="tokens of a string", scale=alt.Scale(domain=[80, 460], clamp=True, nice=False))
    y = alt.Y("cumulative:Q", title="share of strings up to this length", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(data)
    lines = (
        base.transform_filter(alt.datum.kind == "exact").mark_line(strokeWidth=1.8).encode(x=x, y=y, color=_coloured())
    )
    dots = (
        base.transform_filter(alt.datum.kind == "published")
        .mark_point(filled=True, size=60, opacity=1)
        .encode(x=x, y=y, color=_coloured(), tooltip=["label:N", "length:Q", "cumulative:Q"])
    )
    off = stats.select((pl.col("exact") - pl.col("published")).abs().max()).item()
    chart = (lines + dots).properties(
        width=520,
        height=300,
        title="Lengths of strings",
        description=f"Published percentiles are at most {off:.0f} tokens from the exact ones.",
    )
    return chart, data


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
    title = alt.TitleParams("A string and its derivation", subtitle="cfg3b below 15; bars: ends of spans")
    chart = alt.layer(edges, ends, dots, names, backs, words).properties(
        width=640, height=260, title=title, description=f"The string {string}."
    )
    return chart, data


def ceilings(context: Results) -> Figure:
    """What the best possible predictor reaches on each full grammar, on masked tokens and on the last tokens of spans
    of three levels (circles), beside accuracies of trained models in the source (diamonds). A model to the right of its
    circle cannot have been trained on that grammar."""
    scores = _labelled(context.table("oracle").filter(root=FULL, quantity="acc"))
    masked = scores.filter(mask_rate=MAIN, task="masked").with_columns(panel=pl.lit("masked tokens"))
    after = scores.filter(task="next").with_columns(panel=pl.format("next token, ends of level {}", "level"))
    data = pl.concat([masked, after]).select("panel", "label", "value", "se", "published", "where", "n")
    order = [*masked["panel"].unique(), *after.sort("level")["panel"].unique(maintain_order=True)]
    y = alt.Y("label:N", title=None, sort=list(GRAMMARS.values()))
    scale = alt.Scale(domain=[0.6, 1], nice=False, clamp=True)
    axis = alt.Axis(values=[0.6, 0.7, 0.8, 0.9, 1], format=".1f")

    def panel(name: str) -> alt.LayerChart | alt.FacetChart:
        base = alt.Chart(data.filter(panel=name))
        best = base.mark_point(color=charts.BLUE, size=80, filled=True, opacity=1).encode(
            y=y,
            x=alt.X("value:Q", title="accuracy", scale=scale, axis=axis),
            tooltip=["label:N", "value:Q", "se:Q", "n:Q"],
        )
        errors = (
            base.transform_calculate(lo="datum.value-2*datum.se", hi="datum.value+2*datum.se")
            .mark_rule(color=charts.INK)
            .encode(y=y, x=alt.X("lo:Q", scale=scale), x2="hi:Q")
        )
        published = (
            base.transform_filter("isValid(datum.published)")
            .mark_point(shape="diamond", size=90, filled=True, opacity=1, color=charts.VERMILLION)
            .encode(y=y, x=alt.X("published:Q", scale=scale), tooltip=["where:N", "published:Q"])
        )
        return alt.layer(errors, best, published).properties(
            width=210, height=alt.Step(24), title=alt.TitleParams(name, fontSize=13)
        )

    panels = alt.concat(*(panel(name) for name in order), columns=2)
    above = data.filter(pl.col("published") > pl.col("value") + 2 * pl.col("se"))
    excesses = "; ".join(
        f"{row['label']}: best {row['value']:.3f}, published {row['published']:.2f}"
        for row in above.iter_rows(named=True)
    )
    subtitle = "Circles: best possible, two standard errors. Diamonds: published models"
    title = alt.TitleParams("How well anything can predict", subtitle=subtitle)
    return panels.properties(title=title, description=f"Published above the best possible: {excesses or 'none'}."), data


def windows(context: Results) -> Figure:
    """Medians of L_robust and L_close of the best predictor over the width of the window, on three truncated grammars:
    what a model has that has learned all there is (equations 4.94 and 4.95). It trusts every token that it sees."""
    distances = context.table("oracle").filter(
        pl.col("quantity").is_in(["robust", "close"]), pl.col("task") == "hidden"
    )
    what = {"robust": "without the window: L_robust", "close": "nothing but the window: L_close"}
    data = distances.select(
        pl.col("quantity").replace_strict(what, return_dtype=pl.String).alias("panel"),
        pl.format("root {}", "root").alias("grammar"),
        "ngram",
        "value",
        "n",
    ).sort("panel", "grammar", "ngram")
    x = alt.X(
        "ngram:Q", title="tokens of the window, n", axis=alt.Axis(values=data["ngram"].unique().to_list(), format="d")
    )
    y = alt.Y("value:Q", title="total variation, median", scale=alt.Scale(domain=[0, 0.6]))
    scale = alt.Scale(range=[charts.BLUE, charts.VERMILLION, charts.GREEN])
    colour = alt.Color("grammar:N", title=None, legend=LINE, scale=scale)
    dashes = alt.Scale(range=[[1, 0], [6, 3], [2, 2]])  # lines of several roots lie on each other
    base = alt.Chart(data).encode(
        x=x, y=y, color=colour, strokeDash=alt.StrokeDash("grammar:N", title=None, scale=dashes)
    )
    layers = base.mark_line(strokeWidth=2) + base.mark_point(filled=True, size=45, opacity=1)
    panels = layers.properties(width=250, height=210).facet(
        facet=alt.Facet("panel:N", title=None, sort=list(what.values())), columns=2
    )
    medians = "; ".join(
        f"{row['panel']}, {row['grammar']}: {row['value']:.3f}" for row in data.filter(ngram=3).iter_rows(named=True)
    )
    return panels.properties(title="Where n-gram measures end", description=f"At n = 3: {medians}."), data


def constructions(context: Results) -> Figure:
    """Probability that the Transformer of Proposition 9 computes the parity, exact over all strings, over the score c
    of the support; dashed lines are where at most 1/(4k) of the attention leaves it, from where on there is no
    error."""
    data = context.table("constructions").filter(prop=9).sort("d", "c")
    data = data.with_columns(size=pl.format("d = {}, k = {}", "d", "k"))
    order = data["size"].unique(maintain_order=True).to_list()
    colour = alt.Color("size:N", title=None, legend=LINE, scale=alt.Scale(domain=order, range=COLOURS[: len(order)]))
    x = alt.X("c:Q", title="score of the support, c")
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0.4, 1], clamp=True, nice=False))
    lines = alt.Chart(data).mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=30)).encode(x=x, y=y, color=colour)
    limits = data.group_by("size", maintain_order=True).agg(pl.col("threshold_c").first().alias("c"))
    rules = alt.Chart(limits).mark_rule(strokeDash=[4, 3]).encode(x=x, color=colour)
    thresholds = ", ".join(f"{c:.2f} for {size}" for size, c in limits.iter_rows())
    chart = (rules + lines).properties(
        width=480, height=240, title="How sharp attention has to be", description=f"Exact from c = {thresholds} on."
    )
    return chart, data
