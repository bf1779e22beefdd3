"""Stack scores (DYCK-A4): when attention becomes stack-like, and what the length of training does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.studies.dyck.comparisons import ACCURACY, ON_SENTENCES
from pipeline.studies.dyck.figures.common import ENDS, HOLLOW, NO_MODEL, between
from pipeline.studies.dyck.names import (
    ALL_CELLS,
    BLOCKS,
    COMPLETE,
    LINEAR,
    LONGER_CELLS,
    MINIMAL,
    MINIMAL_ANGLE,
    MINIMAL_SLOW,
    MINIMAL_SUM,
    OWN_KIND,
    PREFIX,
    PROBE,
    PUBLISHED_VARIATION,
    STACK_CELLS,
    STACK_LIKE,
    STANDARD,
    STRINGS,
    TABLE_1,
    TRAINING_LENGTHS,
    WIDE,
)

if TYPE_CHECKING:
    from pipeline.kit.results import Results

STACK_LABELS = {
    STANDARD: "standard (M1)",
    LINEAR: "position code (M2)",
    WIDE: "width 200 (M3)",
    MINIMAL: "embedding (15) (M4)",
    MINIMAL_SLOW: "(15), rate 0.003 (M4)",
    MINIMAL_SUM: "embedding (16) (M5)",
    MINIMAL_ANGLE: "embedding (17) (M6)",
}
# Above a minimal first layer keys of one type and depth are equal, so that they tie.
TIED = [STACK_LABELS[run] for run in (MINIMAL, MINIMAL_SLOW, MINIMAL_SUM, MINIMAL_ANGLE)]


@plots.drawn("How much attention looks like the top of a stack")
def stack_score(context: Results) -> Figure:
    """How often, and how much, attention looks at the last unmatched open bracket (evidence for claim 4)."""
    models = STACK_LABELS | {run: "k={}, D={}, {} layers (M8)".format(*cell) for cell, run in TABLE_1.items()}
    table = context.table("stack_score").filter(pl.col("run").is_in(list(models)), head=0)
    table = table.filter(pl.col("layer") == pl.col("layer").max().over("run"))
    learned = context.table("runs").select("run", "replica", "learned")
    data = (
        plots.some(table, NO_MODEL)
        .join(learned, on=["run", "replica"], how="left")
        .select(
            pl.col("run").replace_strict(models, return_dtype=pl.String).alias("model"),
            "replica",
            "learned",
            "layer",
            "stack_argmax",
            "stack_argmax_tied",
            "stack_ceiling",
            "stack_mass",
            "stack_mass_uniform",
        )
        .sort("model", "replica")
    )
    order = [label for label in models.values() if label in set(data["model"])]
    means = data.group_by("model").agg(pl.selectors.starts_with("stack").mean(), n=pl.len())
    means = means.sort(pl.col("model").cast(pl.Enum(order)))
    y = Axis("model", None, "N", order=order)
    most = plots.share("stack_argmax", "share of queries with most weight there")
    mass = plots.share("stack_mass", "mean weight there")
    tied = means.filter(pl.col("model").is_in(TIED))
    panels: list[plots.Panel] = []
    for axis, ticks, bar in ((most, tied, "stack_ceiling"), (mass, means, "stack_mass_uniform")):
        names = y.but(more={"labels": not panels, "grid": True})
        marks = plots.points(data, axis, names, hollow="learned", tips=["replica"], size=40, opacity=0.7)
        across = alt.Chart(ticks).mark_tick(thickness=2.5, size=14, color=charts.VERMILLION)
        rule = plots.rule(axis, STACK_LIKE, upright=True) if axis is most else []
        layers = [*rule, *marks, across.encode(x=axis.at(alt.X, bar), y=names.at(alt.Y))]
        panels.append(plots.panel(layers, None, 215, alt.Step(22)))
    known = data.filter(pl.col("learned").fill_null(True))
    high = known.filter(pl.col("stack_argmax") >= STACK_LIKE)
    rates = tied.select("model", "stack_argmax_tied", "stack_ceiling")
    return plots.figure(
        plots.grid(panels, spacing=16),
        data,
        f"{high.height} of {plots.count([known.height], 'model')} that learned look at the top of the stack in at "
        f"least {100 * STACK_LIKE:.0f} % of queries; mean shares of models: {between(means['stack_argmax'])}",
        "Weight of the last layer on the last unmatched open bracket, held-out strings. A point is one model, "
        f"{plots.count(means['n'], 'model')} a row; {HOLLOW}",
        f"Dotted: stack-like from {STACK_LIKE}. Bars: left, the most that equal keys allow; right, uniform attention",
        told=f"Mean shares: {plots.tell(means, '{model} {stack_argmax:.2f}', ', ')}. Where keys of one type and depth "
        "are equal, ties counted as hits: "
        + (plots.tell(rates, "{model} {stack_argmax_tied:.2f}, at most {stack_ceiling:.2f} without ties") or "none")
        + ".",
    )


# The factorial

LEVELS = {level: name.removeprefix("block of ") for level, name in (BLOCKS | STRINGS).items()}
LOOKS = {
    f"{STRINGS[data]}, {BLOCKS[block]}": Look(colour, dash, shape)
    for block, dash, shape in (("gpt", plots.SOLID, "circle"), ("resln", plots.DASHED, "triangle-up"))
    for data, colour in ((COMPLETE, charts.BLUE), (PREFIX, charts.VERMILLION))
}
CELLS = Kinds("cell", LOOKS, columns=2)
STEPS = "steps of training (log scale)"
APART = 0.07  # part of a number of steps by which the points of two cells stand apart


@plots.drawn("When attention becomes stack-like")
def stack_cells(context: Results) -> Figure:
    """Stack score of two-layer models on the sentences of D5 against the length of training, in every language, with
    either block, on either kind of data (evidence for claims 23 and 24)."""
    runs = [(STACK_CELLS | LONGER_CELLS)[cell] for cell in ON_SENTENCES]
    alike = comparisons.read(context, ON_SENTENCES.values()).with_columns(run=pl.Series(runs, dtype=pl.String))
    table = context.table("stack_cells").drop("mean", "lo", "hi", "interval")
    table = table.join(alike.select("run", "lo", "hi", "interval", mean="value"), on="run")
    table = plots.some(table.sort("lang_k", "lang_D", "block", "data", "steps"), NO_MODEL)
    data = table.select(
        pl.format("k={}, D={}", "lang_k", "lang_D").alias("language"),
        pl.format("{}, {}", pl.col("data").replace_strict(STRINGS), pl.col("block").replace_strict(BLOCKS)).alias(
            "cell"
        ),
        *("steps", "length", "mean", "lo", "hi", "interval", "n", "acc_close", "n_accurate", "n_stack_like"),
    )
    place = pl.col("cell").replace_strict({name: i for i, name in enumerate(LOOKS)}, return_dtype=pl.Float64)
    data = data.with_columns(at=pl.col("steps") * (1 + APART) ** (place - (len(LOOKS) - 1) / 2))
    y = plots.share("mean", "mean stack score")
    panels = []
    for language, rows in plots.split(data, "language"):
        x = plots.listed("steps", STEPS, rows, log=True).but(field="at")
        marks = plots.lines(rows, x, y, CELLS.joined(), bars=ENDS, strokeWidth=1.5)
        dots = plots.points(rows, x, y, CELLS, tips=["steps", "n_accurate"], size=40)
        like = plots.rule(y, STACK_LIKE, "stack-like")
        panels.append(plots.panel([*like, *marks, *dots], language, 240, 190))
    best = plots.some(data.drop_nulls("mean"), NO_MODEL).sort("mean", descending=True).row(0, named=True)
    return plots.figure(
        plots.grid(panels),
        data,
        f"Mean stack scores of two-layer models: at most {best['mean']:.2f}, after {best['steps']:,} steps on "
        f"{best['cell']}, {best['language']}",
        "Share of queries whose largest weight is on the last unmatched open bracket; last layer, sentences of D5. "
        f"Means over {plots.count(data['n'], 'model')} that did not diverge, accurate or not; "
        + plots.spread(table, "bars"),
        "Each point is a training of its own, its learning rate falling to 0; at equal steps points stand side by "
        f"side. Dashed lines: block of Table 1; dotted: {STACK_LIKE}",
        told=plots.tell(
            data,
            "{language}, {cell}, {steps} steps: {mean:.2f}, {n_stack_like} of {n_accurate} accurate models stack-like",
        )
        + ".",
    )


@plots.drawn("What makes attention stack-like")
def stack_effects(context: Results) -> Figure:
    """Main effects of the factorial: difference of the mean stack score on the sentences of D5 between the two levels
    of each factor, all else being equal (evidence for claim 24)."""
    table = context.table("stack_effects").filter(~pl.col("scope").str.contains(OWN_KIND))
    data = plots.some(table, NO_MODEL).with_columns(
        pl.format("{}: {} over {}", "factor", pl.col("high").replace(LEVELS), pl.col("low").replace(LEVELS)).alias(
            "effect"
        ),
        pl.col("scope").replace({"short": "short trainings", "long": "long trainings"}),
    )
    data = data.select("effect", "scope", "value", "lo", "hi", "interval", "mean_low", "mean_high", "n_pairs", "n")
    scopes = data["scope"].unique(maintain_order=True).to_list()
    colours = [charts.BLACK, charts.SKY, charts.BLUE, charts.VERMILLION]
    by = plots.kinds(dict(zip(scopes, colours, strict=False)), "scope", shapes=True, columns=4)
    x = Axis("value", "difference of mean stack scores", zero=True)
    y = Axis("effect", None, "N", order=data["effect"].unique(maintain_order=True).to_list(), more={"grid": True})
    largest = data.filter(scope=ALL_CELLS).sort(pl.col("value").abs(), descending=True).head(2)
    return plots.figure(
        [
            *plots.rule(x, 0, upright=True, dash=plots.SOLID),
            *plots.points(data, x, y, by, ends=ENDS, apart="scope", tips=["n_pairs"], size=45),
        ],
        data,
        "What changes stack scores most, over all cells: " + plots.tell(largest, "{effect} {value:+.2f}", ", "),
        "Difference of the mean stack score on sentences of D5, over "
        f"{plots.count(data['n_pairs'], 'pair')} of cells that differ in one factor alone, of "
        f"{plots.count(data['n'], 'model')}; {plots.spread(table, 'bars')}",
        told=plots.tell(data, "{effect}, {scope}: {value:.2f} [{lo:.2f}, {hi:.2f}]") + ".",
        width=340,
        height=alt.Step(13),
    )


# The length of training

VARIATION = "attention variation on D4"
CLOSERS = "share of closers predicted"


@plots.drawn("Variation and accuracy against the length of training")
def training_length(context: Results) -> Figure:
    """Variation and accuracy of M1 after trainings of different length (ours: the text gives no number
    of steps)."""
    runs = context.table("runs").filter(pl.col("run").is_in(list(TRAINING_LENGTHS)))
    steps = runs.group_by("run").agg(pl.col("steps").first())
    variation = context.table("variation").filter(
        pl.col("run").is_in(list(TRAINING_LENGTHS)),
        "last_layer",
        "causal",
        ~pl.col("start_included"),
        probe_split=PROBE,
        head=0,
    )
    accuracy = comparisons.read(context, [ACCURACY[run] for run in TRAINING_LENGTHS])
    accuracy = accuracy.with_columns(run=pl.Series(TRAINING_LENGTHS)).drop_nulls("value")
    same = ("run", "value", "lo", "hi", "interval", "n", "confidence")
    parts = [variation.rename({"variation_mean": "value", "ci_lo": "lo", "ci_hi": "hi", "n_models": "n"}), accuracy]
    frames = [
        part.select(pl.lit(name).alias("quantity"), *same).cast({"n": pl.Int32})
        for name, part in zip((VARIATION, CLOSERS), parts, strict=True)
    ]
    data = plots.some(pl.concat(frames).join(steps, on="run").sort("quantity", "steps"), NO_MODEL)
    panels = []
    for name, at in ((VARIATION, PUBLISHED_VARIATION[STANDARD]), (CLOSERS, None)):
        rows = data.filter(pl.col("value").is_not_null(), quantity=name)
        if rows.height:
            x = plots.listed("steps", STEPS, rows, log=True)
            y = Axis("value", name, zero=name == VARIATION)
            published = [] if at is None else plots.rule(y, at, colour=charts.VERMILLION)
            panels.append(plots.panel([*plots.lines(rows, x, y, bars=ENDS, dots=True), *published], name, 230, 220))
    models = plots.count(data.filter(quantity=VARIATION)["n"], "model")
    lengths = plots.tell(steps.sort("steps"), "{steps:,}", ", ")
    words = [f"{name} {plots.tell(rows, '{value:.3g}', ', ')}" for name, rows in plots.split(data, "quantity")]
    return plots.figure(
        plots.grid(panels, spacing=40),
        data,
        f"After {lengths} steps of training: {'; '.join(words)}",
        "M1, one training for each length, its learning rate falling to 0 at the end; "
        f"{plots.spread(data, 'bars')}. Variation: of {models} that are accurate; nothing where none is",
        "Dotted: published variation; the paper does not say how long its models were trained",
        told=plots.tell(data, "{steps} steps: {quantity} {value:.2f}") + ".",
    )
