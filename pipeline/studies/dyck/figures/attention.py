"""Maps of models trained on complete strings, and their variation (Wen et al. 2023, section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.studies.dyck.figures.common import ENDS, NO_MODEL, PROBE_TEXT, VARIATION, between, maps, numbers
from pipeline.studies.dyck.names import (
    LINEAR,
    MINIMAL,
    MINIMAL_ANGLE,
    MINIMAL_SLOW,
    MINIMAL_SUM,
    PROBE,
    PUBLISHED_VARIATION,
    STANDARD,
    WIDE,
)

if TYPE_CHECKING:
    from pipeline.kit.results import Results

# Panels: run, which of its stored replicas, what it is.
FIGURE_1 = [
    (WIDE, 0, "width 200 (M3)"),
    (STANDARD, 0, "width 50 (M1)"),
    (STANDARD, 1, "width 50 (M1), another initialisation"),
    (LINEAR, 1, "as (c), with position code (M2)"),
]
FIGURE_2 = [
    (MINIMAL, 0, "embedding (15), learning rate 0.01 (M4)"),
    (MINIMAL_SLOW, 0, "embedding (15), learning rate 0.003 (M4)"),
    (MINIMAL_ANGLE, 0, "embedding (17) (M6)"),
    (MINIMAL_SUM, 0, "embedding (16) (M5)"),
]
MODEL_LABELS = {STANDARD: "standard (M1)", LINEAR: "linear position code (M2)", MINIMAL: "minimal first layer (M4)"}
RANDOM = "random causal maps"
OURS, CLOSED_FORM, PUBLISHED = "this reproduction", "closed form", "published"
# Groups of theory checks: what was published of random maps of the probe's size, and their closed form.
PUBLISHED_RANDOM, MEAN_RANDOM = "published, N = 16", "mean, N = 16"
SOLVERS = "exact solvers"
EXACT, TRAINED = "exact by construction", "trained"
SOURCES = Kinds(
    "source",
    {
        OURS: Look(charts.BLUE),
        CLOSED_FORM: Look(charts.GREY, shape="square"),
        PUBLISHED: Look(charts.VERMILLION, shape="diamond"),
    },
)
KINDS = Kinds(
    "kind",
    {
        EXACT: Look(charts.GREEN, shape="triangle-up"),
        TRAINED: Look(charts.BLUE),
        RANDOM: Look(charts.GREY, shape="square"),
    },
)
DISTANCE = Axis("value", f"{VARIATION}, mean ‖A − B‖² over pairs of models", zero=True, pad=12)
DEVIATIONS = 1.96  # standard deviations on either side that 95 % of averages lie within


@plots.drawn("Attention of standard models")
def fig1(context: Results) -> Figure:
    """Figure 1: last-layer maps of four standard models on D4, boxes at the last unmatched open bracket."""
    (first, _, _), (second, _, _) = FIGURE_1[2:]
    starts = [
        context.table("runs").filter(run=run).sort("replica").select("replica", "stream").rows()
        for run in (first, second)
    ]
    alike = starts[0] and starts[0] == starts[1]
    note = "(c) and (d) start from the same weights and see the same batches." if alike else ""
    return maps(context, FIGURE_1, "Standard models, second layer", note=note)


@plots.drawn("Attention of models with a minimal first layer")
def fig2(context: Results) -> Figure:
    """Figure 2: maps of models with a minimal first layer on D4."""
    return maps(context, FIGURE_2, "Models with a minimal first layer")


@plots.drawn("How much attention varies between initialisations")
def variation(context: Results) -> Figure:
    """Variation of last-layer attention on D4, both start conventions, beside the published values.

    The paper does not say whether its maps include the start token: the published values stand in both panels.
    """
    table = context.table("variation").filter(
        pl.col("last_layer"), pl.col("run").is_in(list(MODEL_LABELS)), probe_split=PROBE, seq_id=0, head=0, causal=True
    )
    table = plots.some(table.drop_nulls("variation_mean"), NO_MODEL)
    random = context.theory().filter(group=PUBLISHED_RANDOM)["bound"].to_list()
    data = _variation_data(table, random[0] if random else None)
    y = Axis("model", None, "N", order=[*MODEL_LABELS.values(), RANDOM])
    x = DISTANCE.but(domain=[0, plots.most(data["label_at"])])
    panels = []
    for name, rows in plots.split(data, "panel"):
        marks = plots.points(rows, x, y, SOURCES, ends=ENDS, apart="source", size=65)
        beside = numbers(rows, x, y, yOffset=marks[-1].encoding.yOffset)
        panels.append(plots.panel([*marks, *beside], name, 400, 240))
    omitted = data.filter(panel=data["panel"][0]).filter(pl.col("source") != PUBLISHED)
    models = table.filter(~pl.col("start_included")).with_columns(
        model=pl.col("run").replace_strict(MODEL_LABELS),
        without=pl.when(pl.col("n_excluded") > 0)
        .then(pl.format(", without {}", "excluded_reason"))
        .otherwise(pl.lit("")),
    )
    return plots.figure(
        plots.grid(panels, 1),
        data,
        "Attention varies between initialisations: " + plots.tell(omitted, "{model} {value:.2f}", ", "),
        f"Last layer on {PROBE_TEXT}; the title’s are without start token. Models: "
        + plots.tell(models, "{model} {n_models}{without}", ", "),
        plots.spread(table.rename({"ci_lo": "lo"}), "Bars"),
        told="The mean squared distance between maps of two models from different initialisations. "
        + plots.tell(data, "{panel}, {source}, {model}: {value:.2f}")
        + ".",
    )


def _variation_data(table: pl.DataFrame, published_random: float | None) -> pl.DataFrame:
    """Return one row per panel, model and source (ours, closed form, published); the panel without start first."""
    rows: list[dict[str, Any]] = []
    for row in table.sort("run", "start_included").iter_rows(named=True):
        labels = {"panel": _panel(row), "model": MODEL_LABELS[row["run"]]}
        measured = {
            "value": row["variation_mean"],
            "lo": row["ci_lo"],
            "hi": row["ci_hi"],
            "n": row["n_models"],
            "interval": row["interval"],
        }
        rows.append(labels | measured | {"source": OURS})
        rows.append(labels | {"value": PUBLISHED_VARIATION[row["run"]], "source": PUBLISHED})
    for panel, baseline in {_panel(row): row["random_baseline"] for row in table.iter_rows(named=True)}.items():
        rows.append({"panel": panel, "model": RANDOM, "value": baseline, "source": CLOSED_FORM})
        if published_random is not None:
            rows.append({"panel": panel, "model": RANDOM, "value": published_random, "source": PUBLISHED})
    schema: dict[str, Any] = dict.fromkeys(("panel", "model", "source", "interval"), pl.String)
    schema |= dict.fromkeys(("value", "lo", "hi"), pl.Float64)
    frame = pl.DataFrame(rows, schema=schema | {"n": pl.Int32})
    order = pl.col("model").replace_strict({name: i for i, name in enumerate([*MODEL_LABELS.values(), RANDOM])})
    return frame.with_columns(label_at=pl.coalesce("hi", "value")).sort(
        "panel", order, "source", descending=[True, False, True]
    )


def _panel(row: dict[str, Any]) -> str:
    n = row["n_rows"]
    return f"start token {'included' if row['start_included'] else 'omitted'} ({n} × {n})"


@plots.drawn("How much attention varies among models that are never wrong")
def exact_solvers(context: Results) -> Figure:
    """Attention of solvers that are exact by construction (ours), beside trained models and random maps."""
    exact = context.theory().filter(group=SOLVERS).sort("x")
    exact = exact.select(what=pl.format("exact, σ = {}", _short(pl.col("x"))), value="measured", kind=pl.lit(EXACT))
    table = context.table("variation").filter(
        pl.col("last_layer"), pl.col("run").is_in(list(MODEL_LABELS)), probe_split=PROBE, seq_id=0, head=0, causal=True
    )
    table = table.filter(~pl.col("start_included")).drop_nulls("variation_mean").rename({"ci_lo": "lo", "ci_hi": "hi"})
    label = pl.col("run").replace_strict(MODEL_LABELS, return_dtype=pl.Enum(list(MODEL_LABELS.values())))
    trained = table.select(label.alias("what"), "lo", "hi", value="variation_mean", kind=pl.lit(TRAINED)).sort("what")
    random = context.theory().filter(group=MEAN_RANDOM)
    random = random.select(what=pl.lit(RANDOM), value="measured", kind=pl.lit(RANDOM))
    parts = [exact, trained.cast({"what": pl.String}), random]
    data = plots.some(pl.concat(parts, how="diagonal"), NO_MODEL).with_columns(label_at=pl.coalesce("hi", "value"))
    data = data.select("what", "kind", "value", "lo", "hi", "label_at")
    y = Axis("what", None, "N", order=data["what"].to_list())
    marks = plots.points(data, DISTANCE, y, KINDS.among(data["kind"]), ends=ENDS, size=75)
    ends = ", ".join(f"{kind} {between(rows['value'])}" for kind, rows in plots.split(data, "kind"))
    return plots.figure(
        [*marks, *numbers(data, DISTANCE, y)],
        data,
        f"{VARIATION.capitalize()}: {ends}",
        "Exact solvers of Theorem 1 predict without an error; their logits have the spread σ, balanced and else "
        f"random. On {PROBE_TEXT}; trained models without start token, solvers without its row and column",
        f"Trained: {plots.count(table['n_models'], 'model')} each; {plots.spread(table, 'bars')}"
        if table.height
        else "",
        told=f"Attention variation: {plots.tell(data, '{what} {value:.2f}', ', ')}.",
        width=400,
        height=alt.Step(28),
    )


def _short(number: pl.Expr) -> pl.Expr:
    return number.cast(pl.String).str.strip_suffix(".0")


@plots.drawn("How much random attention maps vary")
def random_law(context: Results) -> Figure:
    """Mean and 95 % interval of the variation of random causal maps, against the number of maps behind the average,
    beside the published values (evidence for claim 2)."""
    theory = context.theory()
    of_group = {row["group"]: row for row in theory.iter_rows(named=True)}
    # The bound of these rows is the standard deviation of an average.
    rows = plots.some(theory.filter(pl.format("mean, {}", "group").is_in(list(of_group))), "no theory check")
    groups = rows["group"].unique()
    means = {group: of_group[f"mean, {group}"]["measured"] for group in groups}
    printed = {group: of_group[f"published, {group}"]["bound"] for group in groups}
    data = rows.select(
        pl.col("group").alias("panel"),
        pl.col("x").cast(pl.Int32).alias("maps"),
        pl.col("group").replace_strict(means, return_dtype=pl.Float64).alias("mean"),
        pl.col("bound").alias("deviation"),
    ).sort("panel", "maps")
    half = DEVIATIONS * pl.col("deviation")
    data = data.with_columns((pl.col("mean") - half).alias("lo"), (pl.col("mean") + half).alias("hi"))
    y, panels = Axis("mean", VARIATION, zero=False), []
    for name, part in plots.split(data, "panel"):
        x = plots.listed("maps", "maps behind the average", part, log=True, pad=0)
        published = plots.rule(
            y,
            printed[name],
            "published",
            colour=charts.VERMILLION,
            dash=plots.DASHED,
            end=True,
            below=printed[name] < means[name],
        )
        panels.append(plots.panel([*plots.lines(part, x, y, charts.GREY, band=ENDS), *published], name, 240, 190))
    told = data.with_columns(published=pl.col("panel").replace_strict(printed, return_dtype=pl.Float64))
    most = told.filter(pl.col("maps") == pl.col("maps").max().over("panel"))
    return plots.figure(
        plots.grid(panels, spacing=40),
        data,
        "Of averages over random maps 95 % lie from "
        + plots.tell(most, "{lo:.2f} to {hi:.2f} for {panel} and {maps} maps (published {published:.2f})", ", from "),
        "Rows are uniform on the simplex of the keys that a query sees. Line: mean in closed form; band: 95 % of "
        f"averages over {plots.count(data['maps'], 'draw')}; the paper does not say over how many its own are",
        told=plots.tell(told, "{panel}, {maps} maps: {lo:.2f} to {hi:.2f} (published {published:.2f})") + ".",
    )
