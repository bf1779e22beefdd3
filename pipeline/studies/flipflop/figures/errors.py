"""Errors of all models: curves, violins, scatter, seeds, distances (Figures 3.24, 3.25, 3.27, 3.28, 3.30 to 3.32)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import (
    HOLLOW,
    SETS,
    by_family,
    by_learned,
    drawn,
    family,
    log_axis,
    with_learned,
)
from pipeline.studies.flipflop.names import BASE, FAMILIES, GENERATIVE, LSTM

OUT = ["sparse", "dense"]
FEW = 50  # reads of a bin, of fewer of which a share says little
ERROR = "error (share of reads)"


@plots.drawn("Errors during training")
def curves(context: Results) -> Figure:
    """Error while training goes on, of LSTMs and of the canonical Transformer: faint, at each checkpoint; strong, the
    least so far. A line for each model, dashed where it did not learn the training language; no error is drawn at half
    an error among all reads of the set. Errors are those on the first strings of each set."""
    return _curves(context, [BASE, LSTM])


@plots.drawn("Errors during training, all next tokens")
def generative_curves(context: Results) -> Figure:
    """Error while models of all next tokens train: faint, at each checkpoint; strong, the least so far;
    dashed, of models that did not learn the training language. Errors are those on the first strings of each set."""
    return _curves(context, [GENERATIVE])


@plots.drawn("Errors during training by size")
def sizes(context: Results) -> Figure:
    """Error while training goes on, of Transformers of several sizes: faint, at each checkpoint; strong, the least
    so far, coloured by size; dashed, of models that did not learn the training language. Errors are those on the
    first strings of each set."""
    table = context.table("configs").filter(pl.col("family").is_in(["baseline", "scale_size"]))
    if table.height < 2:
        raise plots.NothingError("no other size was trained at this scale")
    return _curves(context, table["run"].to_list(), by_run=True)


def _curves(context: Results, runs: list[str], by_run: bool = False) -> Figure:
    table = context.table("curves").filter(pl.col("run").is_in(runs), pl.col("set").is_in(OUT)).drop_nulls("error")
    table = with_learned(context, plots.some(table))
    final = context.table("final").filter(pl.col("length") == pl.col("length").min())
    reads = final.group_by("set", maintain_order=True).agg(pl.col("n_reads").min())
    table = table.join(reads, on="set", maintain_order="left")
    data = drawn(table).with_columns(
        best=drawn(table, "best_so_far")["shown"], model=pl.format("{}-{}", "run", "replica")
    )
    if by_run:
        data = data.with_columns(label=pl.col("run").str.strip_prefix("flipflop-"))
    names = data["label"].unique(maintain_order=True)
    by = plots.kinds(names, dashes=False) if by_run else by_family(data["family"])
    x, y = plots.steps(), log_axis("shown", ERROR, plots.least(data["shown"]))
    panels = [
        plots.panel(
            [
                *by_learned(rows, x, y, by, "model", strokeWidth=1, opacity=0.35),
                *by_learned(rows, x, y.but(field="best"), by, "model"),
            ],
            SETS[name],
            260,
        )
        for name in OUT
        if (rows := data.filter(set=name)).height
    ]
    last = data.filter(pl.col("step") == pl.col("step").max().over("run"))
    ends = last.group_by("label", "panel", maintain_order=True).agg(
        least=pl.col("error").min(), most=pl.col("error").max(), clean=(pl.col("error") == 0).sum(), n=pl.len()
    )
    words = plots.tell(ends, "{label}, {panel}: {least:.2g} to {most:.2g}")
    return plots.figure(
        plots.grid(panels),
        data,
        "At the last checkpoint without an error: " + plots.tell(ends, "{clean} of {n} {label}, {panel}"),
        f"A line is one model, {plots.count(ends['n'], 'model')} of each kind; faint: at each checkpoint; strong: the "
        "least so far; dashed: did not learn the training language. No error is drawn at half an error",
        told=f"Errors at the last checkpoint, on the first strings of each set: {words}.",
    )


@plots.drawn("Errors of all models")
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
        *(pl.max_horizontal(f"{name}_error", f"{name}_floor").alias(name) for name in OUT), label=family()
    )
    least = float(data.select(pl.min_horizontal(*OUT).min()).item())
    x, y = (log_axis(name, f"error on the {name} set", least) for name in OUT[::-1])
    floors = [
        layer
        for axis, upright in ((x, True), (y, False))
        for floor in data[f"{axis.field}_floor"].unique().sort().to_list()[:1]
        for layer in plots.rule(axis, floor, "no error", upright=upright, dash=[3, 3], end=not upright)
    ]
    tips = ["run", "replica", "dense_error", "sparse_error"]
    clean = data.filter(dense_error=0, sparse_error=0)
    counts = plots.tell(clean.group_by("label", maintain_order=True).len(), "{label} {len}", ", ")
    return plots.figure(
        [*floors, *plots.points(data, x, y, by_family(data["family"]), hollow="learned", tips=tips, opacity=0.75)],
        data,
        f"{clean.height} of {data.height} models make no error on either set",
        f"A point is one model; {HOLLOW}. Dotted, at half an error among the reads: no error",
        told=f"Without an error on either set: {counts or 'none'}.",
        width=440,
        height=330,
    )


@plots.drawn("Errors by configuration")
def violins(context: Results) -> Figure:
    """Errors of the models of each configuration: a point for each model, hollow where it did not learn the training
    language; of those that did, a bar from the least to the largest, and a tick at the median. To the right of each,
    how many of all its models make no error, which are drawn at half an error among the reads of the set. The data of
    the figure have the exact binomial interval of each error."""
    table = context.table("final").filter(pl.col("set").is_in(OUT))
    table = table.filter(pl.col("length") == pl.col("length").min())
    data = drawn(plots.some(table))
    variant = pl.format("{}, {}", "label", pl.col("run").str.strip_prefix("flipflop-"))
    alone = pl.col("run").n_unique().over("family") == 1
    data = data.with_columns(name=pl.when(alone).then("label").otherwise(variant))
    order = [
        name for each in FAMILIES for name in data.filter(family=each)["name"].unique(maintain_order=True).to_list()
    ]
    shown = pl.col("shown").filter("learned")
    summary = data.group_by("name", "family", "label", "set", maintain_order=True).agg(
        shown.min().alias("least"),
        shown.median().alias("median"),
        shown.max().alias("most"),
        pl.col("error").filter("learned").median().alias("middle"),
        pl.col("learned").sum(),
        pl.format("{} of {}", (pl.col("n_err") == 0).sum(), pl.len()).alias("without"),
        n=pl.len(),
    )
    x = log_axis("shown", ERROR, plots.least(data["shown"])).but(more={"labelOverlap": True})
    by, panels = by_family(data["family"]), []
    for place, name in enumerate(OUT):
        y = Axis("name", None, "N", order=order, more={"labels": not place})
        some = alt.Chart(summary.filter(pl.col("learned") > 0, set=name)).encode(y=y.at(alt.Y))
        bars = some.mark_rule(strokeWidth=6, opacity=0.3).encode(x=x.at(alt.X, "least"), x2="most:Q")
        ticks = some.mark_tick(thickness=2, size=14, color=charts.BLACK).encode(x=x.at(alt.X, "median"))
        tips = ["run", "replica", "learned", "error", "lo", "hi", "interval", "n_err", "n_reads"]
        marks = plots.points(data.filter(set=name), x, y, by, hollow="learned", tips=tips, size=30, opacity=0.9)
        at = alt.Chart(summary.filter(set=name)).encode(y=y.at(alt.Y), text="without:N")
        text = at.mark_text(align="left", fontSize=11, x=232)
        colour = by.points()["color"]
        layers = [bars.encode(color=colour), *marks, ticks, text]
        panels.append(plots.panel(layers, f"{SETS[name]}; without error", 225, 19 * len(order)))
    found = pl.format("{}, {}: {} learned; {} without error", "name", "set", "learned", "without")
    middle = pl.format("{}, median {}", found, pl.col("middle").round_sig_figs(2))
    words = summary.select(told=pl.when(pl.col("learned") > 0).then(middle).otherwise(found))
    clean = data.group_by("name", "replica", "family", maintain_order=True).agg(
        (pl.col("n_err") == 0).all().alias("no")
    )
    lstm = clean.filter(family="lstm")
    rest = clean.filter(pl.col("family") != "lstm")
    return plots.figure(
        plots.grid(panels, spacing=55),
        data,
        f"No error on either set: {lstm['no'].sum()} of {lstm.height} LSTMs, {rest['no'].sum()} of {rest.height} other "
        "models",
        f"A point is one model, {plots.count(summary['n'], 'model')} a row; {HOLLOW}. Of those that did, bars "
        "from least to most and a tick at the median. No error is drawn at half an error among the reads",
        told=f"Errors by configuration: {'; '.join(words['told'])}.",
    )


@plots.drawn("Two seeds")
def factorial(context: Results) -> Figure:
    """Errors on the dense set of canonical models by order of data and initial weights; cells without a colour: the
    model did not learn the training language."""
    table = plots.some(context.table("seed_factorial").filter(set="dense"))
    data = table.with_columns(percent=100 * pl.col("error")).with_columns(
        shade=pl.when("learned").then("percent"), text=pl.col("percent").round(2).cast(pl.String)
    )
    x, y = Axis("model_seed", "initial weights", "O"), Axis("data_seed", "order of data", "O")
    top = plots.most(data["shade"])
    most = top if top > 0 else 1.0
    k = data["data_seed"].n_unique()
    learned = pl.when("learned").then(pl.lit("")).otherwise(pl.lit(", not learned"))
    words = plots.tell(data.with_columns(more=learned), "data {data_seed}, weights {model_seed}: {percent:.2g}{more}")
    marks = plots.cells(data, x, y, "shade", "error (%)", domain=[0, most], text="text", tips=["percent"])
    return plots.figure(
        marks,
        data.drop("shade", "text"),
        "Equal but for two seeds, models err on {:.2g} to {:.2g} % of dense reads".format(
            plots.least(data["percent"]), plots.most(data["percent"])
        ),
        f"{k} orders of data, {k} initial weights, one model each; without a colour: did not learn",
        told=f"Errors on the dense set in per cent. {words}.",
        width=64 * k,
        height=42 * k,
    )


@plots.drawn("Errors by distance")
def distances(context: Results) -> Figure:
    """Error by the distance in pairs between a read and the last pair that shows its bit, in bins that double: means
    over canonical models that learned the training language, with Student's intervals over models. Bins of few reads,
    which the table has, are left out."""
    table = context.table("by_distance").filter(pl.col("set").is_in(OUT), kind="info", run=BASE)
    table = plots.some(table.filter(pl.col("n_reads") >= FEW), "no canonical model learned at this scale")
    data = table.with_columns(panel=pl.col("set").replace_strict(SETS, return_dtype=pl.String))
    ticks = [2**n for n in range(10) if 2**n <= plots.most(data["bin_lo"])]
    x = Axis("bin_lo", "pairs back to what shows the bit (least of the bin)", log=True, values=ticks, pad=12)
    y, by = Axis("error", ERROR, zero=True), plots.kinds(data["panel"].unique(maintain_order=True), "panel")
    tips = ["bin_hi", "n_err", "n_reads"]
    worst = data.sort("error", descending=True, maintain_order=True).row(0, named=True)
    return plots.figure(
        plots.lines(data, x, y, by, bars=("lo", "hi"), dots=True, tips=tips),
        data,
        f"Most errors, {worst['error']:.2g}, {worst['bin_lo']} to {worst['bin_hi']} pairs after the bit was shown "
        f"({worst['panel']} set)",
        f"Points: means of {plots.count(data['n'], 'model')} that learned; {plots.spread(data, 'bars')}; bins of fewer "
        f"than {FEW} reads are left out",
        told=f"Errors by distance in pairs: {plots.tell(data, '{panel}, {bin_lo} to {bin_hi}: {error:.2g}')}.",
        width=440,
        height=220,
    )
