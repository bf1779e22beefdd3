"""Stack scores (DYCK-A4): when attention becomes stack-like, and what the length of training does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.studies.dyck.comparisons import ACCURACY, ON_SENTENCES
from pipeline.studies.dyck.figures.common import LEARNED, fill, where_measured, with_fill
from pipeline.studies.dyck.names import (
    BLOCKS,
    LINEAR,
    LONGER_CELLS,
    MINIMAL,
    MINIMAL_ANGLE,
    MINIMAL_SLOW,
    MINIMAL_SUM,
    OWN_KIND,
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
ONE_MODEL, EVEN, LIKE = "one model", "uniform attention", f"stack-like from {STACK_LIKE}"
CEILING = "most that equal keys allow"
# Above a minimal first layer keys of one type and depth are equal, so that they tie.
TIED = [STACK_LABELS[run] for run in (MINIMAL, MINIMAL_SLOW, MINIMAL_SUM, MINIMAL_ANGLE)]


def stack_score(context: Results) -> Figure:
    """How often, and how much, attention looks at the last unmatched open bracket (evidence for claim 4)."""
    models = STACK_LABELS | {run: "k={}, D={}, {} layers (M8)".format(*cell) for cell, run in TABLE_1.items()}
    table = context.table("stack_score").filter(pl.col("run").is_in(list(models)), head=0)
    table = table.filter(pl.col("layer") == pl.col("layer").max().over("run"))
    learned = context.table("runs").select("run", "replica", "learned")
    data = (
        with_fill(table.join(learned, on=["run", "replica"], how="left"))
        .select(
            pl.col("run").replace_strict(models, return_dtype=pl.String).alias("model"),
            "replica",
            "filled",
            "layer",
            "stack_argmax",
            "stack_argmax_tied",
            "stack_ceiling",
            "stack_mass",
            "stack_mass_uniform",
        )
        .sort("model", "replica")
    )
    shown = [label for label in models.values() if label in set(data["model"])]
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(
            domain=[ONE_MODEL, EVEN, LIKE, CEILING], range=[charts.BLUE, charts.VERMILLION, charts.GREY, charts.BLACK]
        ),
        legend=alt.Legend(orient="bottom"),
    )
    panels = []
    for column, x_title in (
        ("stack_argmax", "share of queries with most weight there"),
        ("stack_mass", "mean weight there"),
    ):
        ticks = alt.Axis(values=charts.UNIT)
        x = alt.X(f"{column}:Q", title=x_title, scale=alt.Scale(domain=[0, 1]), axis=ticks)
        names = alt.Axis(ticks=False, domain=False, grid=True, labelLimit=220, labels=column == "stack_argmax")
        base = alt.Chart(data).encode(y=alt.Y("model:N", sort=shown, title=None, axis=names))
        layers = [
            base.transform_calculate(what=f"'{ONE_MODEL}'")
            .mark_point(size=45, opacity=0.6)
            .encode(x=x, color=colour, fill=fill(colour))
        ]
        if column == "stack_argmax":
            like = alt.Chart(pl.DataFrame({"at": [STACK_LIKE], "what": [LIKE]}))
            layers.append(
                like.mark_rule(strokeDash=[5, 3], strokeWidth=1.5).encode(x=alt.X("at:Q", title=x_title), color=colour)
            )
            most = base.transform_filter(alt.FieldOneOfPredicate("model", TIED))
            ceiling = most.transform_calculate(what=f"'{CEILING}'").mark_tick(thickness=2.5, size=14)
            layers.append(ceiling.encode(x=alt.X("mean(stack_ceiling):Q", title=x_title), color=colour))
        else:
            even = base.transform_calculate(what=f"'{EVEN}'").mark_tick(thickness=2.5, size=14)
            layers.append(even.encode(x=alt.X("mean(stack_mass_uniform):Q", title=x_title), color=colour))
        panels.append(alt.layer(*layers).properties(width=210, height=alt.Step(22)))
    title = alt.TitleParams(
        "How much attention looks like the top of a stack",
        subtitle=[
            "Weight of the last layer on the last unmatched open bracket, held-out strings",
            f"One point per model; {LEARNED}",
        ],
    )
    columns = ("stack_argmax", "stack_argmax_tied", "stack_ceiling")
    means = data.group_by("model", maintain_order=True).agg(pl.col(columns).mean())
    rates = {label: shares for label, *shares in means.iter_rows()}
    tied = "; ".join(
        f"{label} {rates[label][1]:.2f}, at most {rates[label][2]:.2f} without ties" for label in TIED if label in rates
    )
    words = (
        "Stack score of the last layer, one point per model: share of queries whose largest weight lies on the "
        f"last unmatched open bracket, and mean weight on it. Mean shares: "
        f"{', '.join(f'{label} {rates[label][0]:.2f}' for label in shown) or 'none'}. Where keys of one type and depth "
        f"are equal, ties counted as hits: {tied or 'no such model'}."
    )
    return alt.hconcat(*panels, spacing=16).properties(title=title, description=words), data


# The factorial

LEVELS = BLOCKS | STRINGS
ARRANGED = [f"{data}, {block}" for block in BLOCKS.values() for data in STRINGS.values()]
STEPS = "steps of training (log scale)"


def stack_cells(context: Results) -> Figure:
    """Stack score of two-layer models on the sentences of D5 against the length of training, in every language, with
    either block, on either kind of data (evidence for claims 23 and 24)."""
    runs = [(STACK_CELLS | LONGER_CELLS)[cell] for cell in ON_SENTENCES]
    alike = comparisons.read(context, ON_SENTENCES.values()).with_columns(run=pl.Series(runs, dtype=pl.String))
    table = context.table("stack_cells").drop("mean", "lo", "hi", "interval")
    table = table.join(alike.select("run", "lo", "hi", "interval", mean="value"), on="run")
    table = table.sort("lang_k", "lang_D", "block", "data", "steps")
    data = table.select(
        pl.format("k={}, D={}", "lang_k", "lang_D").alias("language"),
        pl.format("{}, {}", pl.col("data").replace_strict(STRINGS), pl.col("block").replace_strict(BLOCKS)).alias(
            "cell"
        ),
        *("steps", "length", "mean", "lo", "hi", "interval", "n", "acc_close", "n_accurate", "n_stack_like"),
    )
    colour = alt.Color(
        "cell:N",
        title=None,
        scale=alt.Scale(domain=ARRANGED, range=[charts.BLUE, charts.SKY, charts.VERMILLION, charts.ORANGE]),
        legend=alt.Legend(orient="bottom", columns=2, labelLimit=300),
    )
    languages = data["language"].unique(maintain_order=True).to_list()
    panels = []
    for language in languages:
        rows = data.filter(language=language)
        steps = rows["steps"].unique().sort().to_list()
        x = alt.X(
            "steps:Q",
            title=STEPS,
            scale=alt.Scale(type="log", nice=False, padding=15),
            axis=alt.Axis(values=steps, grid=False),
        )
        titled = alt.Axis(values=charts.UNIT, titleLimit=400)
        y = alt.Y("mean:Q", title="mean stack score", scale=alt.Scale(domain=[0, 1]), axis=titled)
        base = alt.Chart(rows).encode(x=x, color=colour)
        like = alt.Chart(pl.DataFrame({"at": [STACK_LIKE]})).mark_rule(
            strokeDash=[5, 3], color=charts.GREY, strokeWidth=1.5
        )
        layers = [
            like.encode(y=alt.Y("at:Q", title="mean stack score")),
            base.mark_line(strokeWidth=2).encode(y=y),
            base.mark_point(filled=True, size=45, opacity=1).encode(
                y=y, tooltip=["cell:N", "steps:Q", "mean:Q", "n:Q", "interval:N"]
            ),
        ]
        if (known := rows.filter(pl.col("lo").is_not_null())).height:
            bars = alt.Chart(known).mark_rule(strokeWidth=1.5)
            layers.append(bars.encode(x=x, y=alt.Y("lo:Q", title="mean stack score"), y2="hi:Q", color=colour))
        panels.append(alt.layer(*layers).properties(width=230, height=190, title=language))
    if not panels:
        return charts.empty("When attention becomes stack-like", "no model to show")
    counted = sorted(set(data["n"]))
    title = alt.TitleParams(
        "When attention becomes stack-like",
        subtitle=[
            "Share of queries whose largest weight is on the last unmatched open bracket; last layer, sentences of D5",
            f"Means over {' or '.join(map(str, counted))} models that did not diverge, accurate or not; "
            f"bars: {table['confidence'][0]:.0%} interval over models ({table['interval'][0]})",
            f"Each point is a training of its own, its learning rate falling to 0; dashed: {STACK_LIKE}, stack-like",
        ],
    )
    summary = "; ".join(
        f"{row['language']}, {row['cell']}, {row['steps']} steps: {number(row['mean'])}, {row['n_stack_like']} of "
        f"{row['n_accurate']} accurate models stack-like"
        for row in data.iter_rows(named=True)
    )
    words = f"Mean stack score on D5 of the last layer of two-layer models against the length of training. {summary}."
    rows_ = [alt.hconcat(*panels[i : i + 2], spacing=30) for i in range(0, len(panels), 2)]
    figure = alt.vconcat(*rows_, spacing=20).resolve_scale(color="shared")
    return figure.properties(title=title, description=words), data


def stack_effects(context: Results) -> Figure:
    """Main effects of the factorial: difference of the mean stack score on the sentences of D5 between the two levels
    of each factor, all else being equal (evidence for claim 24)."""
    table = context.table("stack_effects").filter(~pl.col("scope").str.contains(OWN_KIND))
    data = table.with_columns(
        pl.format("{}: {} over {}", "factor", pl.col("high").replace(LEVELS), pl.col("low").replace(LEVELS)).alias(
            "effect"
        ),
        pl.col("scope").replace({"short": "short trainings", "long": "long trainings"}),
    ).select("effect", "scope", "value", "lo", "hi", "interval", "mean_low", "mean_high", "n_pairs", "n")
    effects = data["effect"].unique(maintain_order=True).to_list()
    scopes = data["scope"].unique(maintain_order=True).to_list()
    colours = [charts.BLACK, charts.SKY, charts.BLUE, charts.VERMILLION]
    colour = alt.Color(
        "scope:N",
        title=None,
        scale=alt.Scale(domain=scopes, range=colours[: len(scopes)]),
        legend=alt.Legend(orient="bottom", columns=2, labelLimit=300),
    )
    names = alt.Axis(ticks=False, domain=False, grid=True, labelLimit=400)
    base = alt.Chart(data).encode(
        y=alt.Y("effect:N", sort=effects, title=None, axis=names),
        yOffset=alt.YOffset("scope:N", sort=scopes),
        color=colour,
    )
    x_title = "difference of mean stack scores"
    layers = [
        alt.Chart(pl.DataFrame({"at": [0.0]})).mark_rule(color=charts.GREY).encode(x="at:Q"),
        *where_measured(data, base.mark_rule(strokeWidth=2).encode(x=alt.X("lo:Q", title=x_title), x2="hi:Q")),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            x=alt.X("value:Q", title=x_title), tooltip=["effect:N", "scope:N", "value:Q", "n:Q", "interval:N"]
        ),
    ]
    confidence = f", {table['confidence'][0]:.0%} interval over models (jackknife)" if table.height else ""
    title = alt.TitleParams(
        "What makes attention stack-like",
        subtitle=[
            f"Sentences of D5; mean over pairs of cells that differ in one factor alone{confidence}",
            f"Pairs of cells: {', '.join(map(str, sorted(set(data['n_pairs'])))) or 'none'}",
        ],
    )
    words = (
        "Main effects on the mean stack score. "
        + "; ".join(
            f"{row['effect']}, {row['scope']}: {number(row['value'])} [{number(row['lo'])}, {number(row['hi'])}]"
            for row in data.iter_rows(named=True)
        )
        + "."
    )
    chart = alt.layer(*layers).properties(width=330, height=alt.Step(16))
    return chart.properties(title=title, description=words), data


# The length of training

VARIATION = "attention variation on D4"
CLOSERS = "share of closers predicted"


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
    data = pl.concat(frames).join(steps, on="run").sort("quantity", "steps")
    panels = [_against_steps(data.filter(quantity=name), name) for name in (VARIATION, CLOSERS)]
    models = ", ".join(map(str, data.filter(quantity=VARIATION)["n"]))
    confidence = f"; bars: {data['confidence'][0]:.0%} interval over models" if data.height else ""
    title = alt.TitleParams(
        "Variation and accuracy against the length of training",
        subtitle=[
            f"M1, one training for each length, its learning rate falling to 0 at the end{confidence}",
            f"Models behind the points of variation, which have to be accurate: {models or 'none'}",
            "Dashed: published variation; the paper does not say how long its models were trained",
        ],
    )
    summary = "; ".join(
        f"{row['steps']} steps: variation {number(row['value'])}"
        for row in data.filter(quantity=VARIATION).iter_rows(named=True)
    )
    words = f"Variation of attention of M1 on D4, and its accuracy, against the length of training. {summary}."
    return alt.hconcat(*panels, spacing=40).properties(title=title, description=words), data


def _against_steps(data: pl.DataFrame, title: str) -> Any:
    x = alt.X(
        "steps:Q",
        title=STEPS,
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(values=data["steps"].to_list(), grid=False),
    )
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(data.filter(pl.col("value").is_not_null()))
    layers = [
        base.mark_line(color=charts.BLUE).encode(x=x, y=y),
        base.mark_point(filled=True, opacity=1, size=60, color=charts.BLUE).encode(
            x=x, y=y, tooltip=["steps:Q", "value:Q", "n:Q", "interval:N"]
        ),
    ]
    if (known := data.filter(pl.col("lo").is_not_null())).height:  # a layer without data has no extent
        bars = alt.Chart(known).mark_rule(color=charts.BLUE, strokeWidth=1.5)
        layers.append(bars.encode(x=x, y=alt.Y("lo:Q", title=title), y2="hi:Q"))
    if title == VARIATION and data.height:
        published = alt.Chart(pl.DataFrame({"published": [PUBLISHED_VARIATION[STANDARD]]}))
        layers.append(
            published.mark_rule(color=charts.VERMILLION, strokeDash=[5, 3], strokeWidth=1.5).encode(y="published:Q")
        )
    return alt.layer(*layers).properties(width=230, height=220)
