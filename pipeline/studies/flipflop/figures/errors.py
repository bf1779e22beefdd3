"""Errors of all models: curves, violins, scatter, seeds, distances (Figures 3.24, 3.25, 3.27, 3.28, 3.30 to 3.32)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import (
    SETS,
    coloured,
    dashed,
    drawn,
    log_axis,
    points,
    shaped,
    with_learned,
)
from pipeline.studies.flipflop.names import BASE, FAMILIES, GENERATIVE, LSTM

OUT = ["sparse", "dense"]
FEW = 50  # reads of a bin, of fewer of which a share says little
ERROR = "error (share of reads)"


def curves(context: Results) -> Figure:
    """Error while training goes on, of LSTMs and of the canonical Transformer: faint, at each checkpoint; strong, the
    least so far. A line for each model, dashed where it did not learn the training language; no error is drawn at half
    an error among all reads of the set. Errors are those on the first strings of each set."""
    return _curves(context, [BASE, LSTM], "Errors during training")


def generative_curves(context: Results) -> Figure:
    """Error while models of all next tokens train: faint, at each checkpoint; strong, the least so far;
    dashed, of models that did not learn the training language. Errors are those on the first strings of each set."""
    return _curves(context, [GENERATIVE], "Errors during training, all next tokens")


def sizes(context: Results) -> Figure:
    """Error while training goes on, of Transformers of several sizes: faint, at each checkpoint; strong, the least
    so far, coloured by size; dashed, of models that did not learn the training language. Errors are those on the
    first strings of each set."""
    title = "Errors during training by size"
    table = context.table("configs").filter(pl.col("family").is_in(["baseline", "scale_size"]))
    if table.height < 2:
        return empty(title, "no other size was trained at this scale")
    return _curves(context, table["run"].to_list(), title, by_run=True)


def _curves(context: Results, runs: list[str], title: str, by_run: bool = False) -> Figure:
    table = context.table("curves").filter(pl.col("run").is_in(runs), pl.col("set").is_in(OUT)).drop_nulls("error")
    if not table.height:
        return empty(title, "nothing was trained at this scale")
    table = with_learned(context, table)
    final = context.table("final").filter(pl.col("length") == pl.col("length").min())
    reads = final.group_by("set").agg(pl.col("n_reads").min())
    data = drawn(table.join(reads, on="set"))
    best = drawn(table.join(reads, on="set"), "best_so_far")
    if by_run:
        named = pl.col("run").str.strip_prefix("flipflop-")
        data, best = data.with_columns(label=named), best.with_columns(label=named)
    data = data.with_columns(best=best["shown"], model=pl.format("{}-{}", "run", "replica"))
    labels = data["label"].unique(maintain_order=True).to_list()
    legend = alt.Legend(orient="top", symbolOpacity=1, symbolStrokeWidth=2)
    colour = (
        alt.Color("label:N", title=None, scale=alt.Scale(domain=labels, range=charts.PALETTE), legend=legend)
        if by_run
        else coloured(data["family"].unique().to_list(), symbolStrokeWidth=2)
    )
    least = float(data["shown"].min())  # type: ignore[arg-type]
    panels = []
    for name in OUT:
        base = alt.Chart(data.filter(set=name)).encode(
            x=alt.X("step:Q", title="steps of training", axis=alt.Axis(tickCount=5)),
            detail="model:N",
            color=colour,
            strokeDash=dashed(),
        )
        faint = base.mark_line(strokeWidth=1, opacity=0.35).encode(y=alt.Y("shown:Q", **log_axis(ERROR, least)))
        strong = base.mark_line(strokeWidth=2).encode(
            y=alt.Y("best:Q", **log_axis(ERROR, least)),
            tooltip=["label:N", "replica:Q", "step:Q", alt.Tooltip("error:Q", format=".2g")],
        )
        panels.append(alt.layer(faint, strong, width=260, height=200, title=alt.TitleParams(SETS[name], fontSize=13)))
    last = data.filter(pl.col("step") == pl.col("step").max().over("run")).group_by(
        "label", "panel", maintain_order=True
    )
    words = "; ".join(
        f"{row['label']}, {row['panel']}: {row['least']:.2g} to {row['most']:.2g}"
        for row in last.agg(pl.col("error").min().alias("least"), pl.col("error").max().alias("most")).iter_rows(
            named=True
        )
    )
    chart = alt.hconcat(*panels).resolve_scale(color="shared")
    words = f"{title}. Errors at the last checkpoint, on the first strings of each set: {words}."
    return chart.properties(title=title, description=words), data


def scatter(context: Results) -> Figure:
    """Errors of every trained model on the dense and on the sparse set, marked by what its configuration varies;
    hollow where it did not learn the training language. A model without an error on a set is drawn at half an error
    among its reads, where dashes are; one that was trained for two configurations is drawn once."""
    # The factorial trains the baseline's models of equal seeds once more.
    ours = context.table("final").filter(run=BASE)["replica"].max()
    again = context.table("final").filter(
        pl.col("data_seed") == pl.col("model_seed"), pl.col("data_seed") <= ours, family="seeds"
    )
    table = context.table("scatter").join(again, on=["run", "replica"], how="anti", maintain_order="left")
    data = with_learned(context, table).with_columns(
        *(pl.max_horizontal(f"{name}_error", f"{name}_floor").alias(name) for name in OUT),
        label=pl.col("family").replace_strict(FAMILIES, default=pl.col("family"), return_dtype=pl.String),
    )
    base = alt.Chart(data)
    least = float(data.select(pl.min_horizontal(*OUT).min()).item())
    x = alt.X("dense:Q", **log_axis("error on the dense set", least))
    y = alt.Y("sparse:Q", **log_axis("error on the sparse set", least))
    floors = [
        alt.Chart(data.select(dense=f"{OUT[1]}_floor").unique())
        .mark_rule(strokeDash=[3, 3], color=charts.GREY)
        .encode(x=x),
        alt.Chart(data.select(sparse=f"{OUT[0]}_floor").unique())
        .mark_rule(strokeDash=[3, 3], color=charts.GREY)
        .encode(y=y),
    ]
    marked = base.encode(
        x=x,
        y=y,
        color=coloured(data["family"].unique().to_list()),
        shape=shaped(data["family"].unique().to_list()),
        tooltip=[
            "run:N",
            "replica:Q",
            "learned:N",
            alt.Tooltip("dense_error:Q", format=".2g"),
            alt.Tooltip("sparse_error:Q", format=".2g"),
        ],
    )
    clean = data.filter(dense_error=0, sparse_error=0)
    counts = ", ".join(f"{name} {n}" for name, n in clean.group_by("label", maintain_order=True).len().iter_rows())
    words = f"Errors of {data.height} models. Without an error on either set: {counts or 'none'}"
    title = alt.TitleParams("Errors of all models", subtitle=f"{data.height} models")
    chart = alt.layer(*floors, points(marked, size=55, opacity=0.75))
    return chart.properties(width=440, height=330, title=title, description=f"{words}."), data


def violins(context: Results) -> Figure:
    """Errors of the models of each configuration: a point for each model, hollow where it did not learn the training
    language; of those that did, a bar from the least to the largest, and a tick at the median. To the right of each,
    how many of all its models make no error, which are drawn at half an error among the reads of the set. The data of
    the figure have the exact binomial interval of each error."""
    table = context.table("final").filter(pl.col("set").is_in(OUT))
    table = table.filter(pl.col("length") == pl.col("length").min())
    data = drawn(table).with_columns(name=pl.col("run").str.strip_prefix("flipflop-"))
    order = [
        name for family in FAMILIES for name in data.filter(family=family)["name"].unique(maintain_order=True).to_list()
    ]
    summary = data.group_by("name", "family", "label", "set", maintain_order=True).agg(
        *(
            getattr(pl.col("shown").filter("learned"), what)().alias(name)
            for name, what in (("least", "min"), ("median", "median"), ("most", "max"))
        ),
        pl.col("error").filter("learned").median().alias("middle"),
        pl.col("learned").sum(),
        pl.format("{} of {}", (pl.col("n_err") == 0).sum(), pl.len()).alias("without"),
    )
    least = float(data["shown"].min())  # type: ignore[arg-type]
    panels = []
    for place, name in enumerate(OUT):
        y = alt.Y("name:N", title=None, sort=order, axis=alt.Axis(labels=not place, ticks=not place))
        colour = coloured(data["family"].unique().to_list())
        at = alt.Chart(summary.filter(set=name)).encode(y=y)
        some = alt.Chart(summary.filter(pl.col("learned") > 0, set=name)).encode(y=y)
        bars = some.mark_rule(strokeWidth=6, opacity=0.3).encode(
            x=alt.X("least:Q", **log_axis(ERROR, least)), x2="most:Q", color=colour
        )
        ticks = some.mark_tick(thickness=2, size=14, color=charts.BLACK).encode(
            x=alt.X("median:Q", **log_axis(ERROR, least))
        )
        marked = alt.Chart(data.filter(set=name)).encode(
            y=y,
            x=alt.X("shown:Q", **log_axis(ERROR, least)),
            color=colour,
            shape=shaped(data["family"].unique().to_list()),
            tooltip=[
                "run:N",
                "replica:Q",
                "learned:N",
                *(alt.Tooltip(f"{each}:Q", format=".2g") for each in ("error", "lo", "hi")),
                "interval:N",
                "n_err:Q",
                "n_reads:Q",
            ],
        )
        text = at.mark_text(align="left", fontSize=11, x=232).encode(text="without:N")
        panel = alt.layer(bars, points(marked, size=30, opacity=0.9), ticks, text).properties(
            width=225, height=19 * len(order), title=alt.TitleParams(f"{SETS[name]}; without error", fontSize=13)
        )
        panels.append(panel)
    words = "; ".join(
        f"{row['name']}, {row['set']}: {row['learned']} learned"
        + (f", of these the median is {row['middle']:.2g}" if row["learned"] else "")
        + f"; {row['without']} without error"
        for row in summary.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=55).resolve_scale(color="shared")
    return chart.properties(title="Errors by configuration", description=f"Errors by configuration: {words}."), data


def factorial(context: Results) -> Figure:
    """Errors on the dense set of canonical models by order of data and initial weights; frames without a colour: the
    model did not learn the training language."""
    table = context.table("seed_factorial").filter(set="dense")
    if not table.height:
        return empty("Two seeds", "nothing was trained at this scale")
    data = table.with_columns(percent=100 * pl.col("error"))
    base = alt.Chart(data).encode(
        x=alt.X("model_seed:O", title="initial weights", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("data_seed:O", title="order of data"),
    )
    most = float(data.filter("learned")["percent"].max() or 0)  # type: ignore[arg-type]
    frames = base.transform_filter("!datum.learned").mark_rect(filled=False, stroke=charts.GREY)
    shade = alt.Scale(domain=[0, most or 1], range=["#EEF4FA", "#06264D"])
    cells = (
        base.transform_filter("datum.learned")
        .mark_rect()
        .encode(color=alt.Color("percent:Q", title="error (%)", scale=shade, legend=alt.Legend(gradientLength=120)))
    )
    light = alt.condition(f"datum.learned && datum.percent > {most / 2}", alt.value("white"), alt.value(charts.INK))
    text = base.mark_text(fontSize=12).encode(text=alt.Text("percent:Q", format=".2f"), color=light)
    k = data["data_seed"].n_unique()
    words = "; ".join(
        f"data {row['data_seed']}, weights {row['model_seed']}: {row['percent']:.2g}"
        + ("" if row["learned"] else ", not learned")
        for row in data.iter_rows(named=True)
    )
    size = alt.TitleParams("Order of data and initial weights", subtitle=f"{k} of each")
    return alt.layer(cells, frames, text).properties(
        width=64 * k, height=42 * k, title=size, description=f"Errors on the dense set in per cent. {words}."
    ), data


def distances(context: Results) -> Figure:
    """Error by the distance in pairs between a read and the last pair that shows its bit, in bins that double: means
    over canonical models that learned the training language, with Student's intervals over models. Bins of few reads,
    which the table has, are left out."""
    table = context.table("by_distance").filter(pl.col("set").is_in(OUT), kind="info", run=BASE)
    table = table.filter(pl.col("n_reads") >= FEW)
    if not table.height:
        return empty("Errors by distance", "no canonical model learned at this scale")
    data = table.with_columns(panel=pl.col("set").replace_strict(SETS, return_dtype=pl.String))
    base = alt.Chart(data).encode(
        x=alt.X(
            "bin_lo:Q",
            title="pairs back to what shows the bit (least of the bin)",
            scale=alt.Scale(type="log", base=2),
            axis=alt.Axis(values=[2**n for n in range(10)]),
        ),
        color=alt.Color("panel:N", title=None, scale=alt.Scale(range=charts.PALETTE), legend=alt.Legend(orient="top")),
    )
    bars = base.mark_rule().encode(y=alt.Y("lo:Q", title=ERROR), y2="hi:Q")
    points = base.mark_line(point=True).encode(
        y="error:Q", tooltip=["panel:N", "bin_lo:Q", "bin_hi:Q", "n_err:Q", "n_reads:Q", "n:Q", "interval:N"]
    )
    words = "; ".join(
        f"{row['panel']}, {row['bin_lo']} to {row['bin_hi']}: {row['error']:.2g}" for row in data.iter_rows(named=True)
    )
    return alt.layer(bars, points).properties(
        width=440, height=220, title="Errors by distance", description=f"Errors by distance in pairs: {words}."
    ), data
