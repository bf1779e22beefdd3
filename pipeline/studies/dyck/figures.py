"""Figures of the Dyck study: attention variation (section 4.1) and Figure 3 (Wen et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import polars as pl

from pipeline import charts
from schemas.dyck.tables import ARMS, LINEAR, MINIMAL, PROBE, PUBLISHED_VARIATION, STANDARD

Figure = tuple[alt.TopLevelMixin, pl.DataFrame]

MODEL_LABELS = {
    STANDARD: "standard (M1)",
    LINEAR: "linear position code (M2)",
    MINIMAL: "minimal first layer (M4)",
}
RANDOM = "random causal maps"
OURS, CLOSED_FORM, PUBLISHED = "this reproduction", "closed form", "published"
ABOVE = -18  # pixels: published values stand above the bar they belong to
PUBLISHED_RANDOM = "published-16"  # theory check that holds the published variation of random maps

ARM_COLOURS = {"standard": charts.VERMILLION, "contrastive": charts.BLUE}
ACCURACIES = {"acc_close": "share of closers predicted", "acc_thr80": "share of positions sure of the closer"}


def variation(context: Any) -> Figure:
    """DYCK-E3: variation of last-layer attention on D4, both start conventions, beside the published values.

    The paper does not say whether its maps include the start token: the published values stand in both panels.
    """
    table = context.table("variation").filter(
        pl.col("last_layer"),
        pl.col("run").is_in(list(MODEL_LABELS)),
        probe_split=PROBE,
        seq_id=0,
        head=0,
        causal=True,
    )
    theory = {row["check"]: row["bound"] for row in context.theory().iter_rows(named=True)}
    data = _variation_data(table, theory.get(PUBLISHED_RANDOM))
    order = [*MODEL_LABELS.values(), RANDOM]
    x = alt.X("value:Q", title="attention variation, mean ‖A − B‖² over pairs of models")
    y = alt.Y("model:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=200))
    colour = alt.Color(
        "source:N",
        title=None,
        scale=alt.Scale(domain=[OURS, CLOSED_FORM], range=[charts.SKY, charts.GREY]),
        legend=alt.Legend(orient="bottom"),
    )
    diamond = alt.Shape(
        "source:N",
        title=None,
        scale=alt.Scale(domain=[PUBLISHED], range=["diamond"]),
        legend=alt.Legend(orient="bottom", symbolFillColor=charts.VERMILLION, symbolStrokeWidth=0),
    )
    base = alt.Chart(data).encode(y=y)
    bars = base.transform_filter(alt.datum.source != PUBLISHED)
    ours = base.transform_filter(alt.datum.source == OURS)
    published = base.transform_filter(alt.datum.source == PUBLISHED).encode(x=x)
    number = alt.Text("value:Q", format=".2f")
    layers = alt.layer(
        bars.mark_bar(height=20).encode(x=x, color=colour),
        ours.mark_rule(strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q"),
        *(ours.mark_tick(size=9, thickness=1.5, color="black").encode(x=f"{end}:Q") for end in ("lo", "hi")),
        bars.mark_text(align="left", dx=6).encode(x="label_at:Q", text=number),
        published.mark_point(filled=True, opacity=1, size=80, yOffset=ABOVE, color=charts.VERMILLION).encode(
            shape=diamond
        ),
        published.mark_text(align="left", dx=8, yOffset=ABOVE, color=charts.VERMILLION).encode(text=number),
    )
    header = alt.Header(labelFontWeight="bold", labelAnchor="start")
    panels = layers.properties(width=400, height=alt.Step(50)).facet(
        alt.Facet("panel:N", title=None, sort="descending", header=header), columns=1
    )
    return panels.properties(title=_variation_title(table), description=_variation_words(data)), data


def _variation_data(table: pl.DataFrame, published_random: float | None) -> pl.DataFrame:
    """One row per panel, model and source (ours, closed form, published)."""
    rows: list[dict[str, Any]] = []
    for row in table.sort("run", "start_included").iter_rows(named=True):
        about = {"panel": _panel(row), "model": MODEL_LABELS[row["run"]]}
        numbers = {
            "value": row["variation_mean"],
            "lo": row["ci_lo"],
            "hi": row["ci_hi"],
            "n": row["n_models"],
        }
        rows.append(about | numbers | {"source": OURS})
        rows.append(about | {"value": PUBLISHED_VARIATION[row["run"]], "source": PUBLISHED})
    for panel, baseline in {
        _panel(row): row["random_baseline"] for row in table.iter_rows(named=True)
    }.items():
        rows.append({"panel": panel, "model": RANDOM, "value": baseline, "source": CLOSED_FORM})
        if published_random is not None:
            rows.append({"panel": panel, "model": RANDOM, "value": published_random, "source": PUBLISHED})
    schema = {"panel": pl.String, "model": pl.String, "source": pl.String} | dict.fromkeys(
        ("value", "lo", "hi"), pl.Float64
    )
    frame = pl.DataFrame(rows, schema=schema | {"n": pl.Int32})
    return frame.with_columns(label_at=pl.coalesce("hi", "value")).sort("panel", "model", "source")


def _variation_words(data: pl.DataFrame) -> str:
    """The figure in words, for those who cannot see it."""
    told = [
        f"{panel[0]}: "
        + ", ".join(f"{row['model']} {_number(row['value'])}" for row in rows.iter_rows(named=True))
        for panel, rows in data.filter(pl.col("source") != PUBLISHED).group_by("panel", maintain_order=True)
    ]
    return (
        "Attention variation, the mean squared distance between the last-layer maps of two models trained "
        f"from different initialisations. {'; '.join(told)}."
    )


def _panel(row: dict[str, Any]) -> str:
    n = row["n_rows"]
    return f"start token {'included' if row['start_included'] else 'omitted'} ({n} × {n})"


def _variation_title(table: pl.DataFrame) -> alt.TitleParams:
    subtitle = ["Last layer, probe [[[[]]]](((())))"]
    if table.height:
        subtitle[0] += f"; whiskers: {table['confidence'][0]:.0%} bootstrap interval over models"
    models = {row["run"]: row for row in table.iter_rows(named=True)}
    for run, label in MODEL_LABELS.items():
        if run in models:
            row = models[run]
            without = f", without {row['excluded_reason']}" if row["n_excluded"] else ""
            subtitle.append(f"{label}: {row['n_models']} models{without}")
    return alt.TitleParams("How much attention maps vary between initialisations", subtitle=subtitle)


def fig3(context: Any) -> Figure:
    """Figure 3: balance violation against accuracy at length, one point per model, both arms."""
    data = context.table("fig3").filter(~pl.col("diverged")).sort("arm", "replica")
    contrasts = context.table("contrasts").filter(contrast="rank")
    lengths = context.table("accuracy").filter(pl.col("run").is_in(list(ARMS.values())), eval_split="lengen")
    panels = [_fig3_panel(data, contrasts, name) for name in ACCURACIES]
    span = f" at lengths {lengths['shortest'].min()} to {lengths['longest'].max()}" if lengths.height else ""
    confidence = f", {contrasts['confidence'][0]:.0%} bootstrap interval" if contrasts.height else ""
    title = alt.TitleParams(
        f"Balance violation against accuracy{span}",
        subtitle=f"One point per model, lines by least squares; ρ: Spearman's rank correlation{confidence}",
    )
    words = (
        "Length generalisation against balance violation, one point per model, for standard and contrastive "
        f"training. {'. '.join(f'{name}: ' + '; '.join(_rank_lines(contrasts, name)) for name in ACCURACIES)}."
    )
    return alt.hconcat(*panels, spacing=30).properties(title=title, description=words), data


def _fig3_panel(data: pl.DataFrame, contrasts: pl.DataFrame, accuracy: str) -> Any:
    arms = list(ARMS)
    colour = alt.Color(
        "arm:N",
        title="training",
        scale=alt.Scale(domain=arms, range=[ARM_COLOURS[arm] for arm in arms]),
        legend=alt.Legend(orient="bottom"),
    )
    shape = alt.Shape(
        "arm:N", title="training", scale=alt.Scale(domain=arms, range=["circle", "triangle-up"])
    )
    x = alt.X("beta:Q", title="balance violation β (mean ‖S‖ / P)", scale=alt.Scale(zero=True))
    y = alt.Y(f"{accuracy}:Q", title=ACCURACIES[accuracy], scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(data)
    points = base.mark_point(filled=True, size=55, opacity=0.8).encode(x=x, y=y, color=colour, shape=shape)
    lines = (
        base.transform_regression("beta", accuracy, groupby=["arm"])
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour)
    )
    title = alt.TitleParams(
        accuracy, subtitle=_rank_lines(contrasts, accuracy), fontSize=charts.SIZE, offset=8
    )
    return alt.layer(points, lines).properties(width=235, height=235, title=title)


def _rank_lines(contrasts: pl.DataFrame, accuracy: str) -> list[str]:
    """Spearman's correlation and its interval, per arm and pooled."""
    rows = contrasts.filter(metric=f"beta, {accuracy}")
    lines = []
    for label, where in (
        *((arm, {"statistic": "spearman", "first": run}) for arm, run in ARMS.items()),
        ("both", {"statistic": "spearman of both arms pooled"}),
    ):
        for row in rows.filter(**where).iter_rows(named=True):
            lines.append(f"{label}: ρ = {_number(row['value'])} [{_number(row['lo'])}, {_number(row['hi'])}]")
    return lines or ["no correlation measured"]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


FIGURES: dict[str, Callable[[Any], Figure]] = {"variation": variation, "fig3": fig3}
