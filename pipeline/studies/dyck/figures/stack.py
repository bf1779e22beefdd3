"""Stack scores (DYCK-A4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.studies.dyck.names import (
    LINEAR,
    MINIMAL,
    MINIMAL_ANGLE,
    MINIMAL_SLOW,
    MINIMAL_SUM,
    STACK_LIKE,
    STANDARD,
    TABLE_1,
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
    data = table.select(
        pl.col("run").replace_strict(models, return_dtype=pl.String).alias("model"),
        "replica",
        "layer",
        "stack_argmax",
        "stack_argmax_tied",
        "stack_ceiling",
        "stack_mass",
        "stack_mass_uniform",
    ).sort("model", "replica")
    shown = [label for label in models.values() if label in set(data["model"])]
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(
            domain=[ONE_MODEL, EVEN, LIKE, CEILING],
            range=[charts.BLUE, charts.VERMILLION, charts.GREY, charts.BLACK],
        ),
        legend=alt.Legend(orient="bottom"),
    )
    panels = []
    for column, told in (
        ("stack_argmax", "share of queries with most weight there"),
        ("stack_mass", "mean weight there"),
    ):
        ticks = alt.Axis(values=charts.UNIT)
        x = alt.X(f"{column}:Q", title=told, scale=alt.Scale(domain=[0, 1]), axis=ticks)
        names = alt.Axis(
            ticks=False, domain=False, grid=True, labelLimit=220, labels=column == "stack_argmax"
        )
        base = alt.Chart(data).encode(y=alt.Y("model:N", sort=shown, title=None, axis=names))
        layers = [
            base.transform_calculate(what=f"'{ONE_MODEL}'")
            .mark_point(filled=True, size=45, opacity=0.6)
            .encode(x=x, color=colour)
        ]
        if column == "stack_argmax":
            like = alt.Chart(pl.DataFrame({"at": [STACK_LIKE], "what": [LIKE]}))
            layers.append(
                like.mark_rule(strokeDash=[5, 3], strokeWidth=1.5).encode(
                    x=alt.X("at:Q", title=told), color=colour
                )
            )
            most = base.transform_filter(alt.FieldOneOfPredicate("model", TIED))
            ceiling = most.transform_calculate(what=f"'{CEILING}'").mark_tick(thickness=2.5, size=14)
            layers.append(ceiling.encode(x=alt.X("mean(stack_ceiling):Q", title=told), color=colour))
        else:
            even = base.transform_calculate(what=f"'{EVEN}'").mark_tick(thickness=2.5, size=14)
            layers.append(even.encode(x=alt.X("mean(stack_mass_uniform):Q", title=told), color=colour))
        panels.append(alt.layer(*layers).properties(width=210, height=alt.Step(22)))
    title = alt.TitleParams(
        "How much attention looks like the top of a stack",
        subtitle="Weight of the last layer on the last unmatched open bracket, held-out strings",
    )
    columns = ("stack_argmax", "stack_argmax_tied", "stack_ceiling")
    means = data.group_by("model", maintain_order=True).agg(pl.col(columns).mean())
    found = {label: shares for label, *shares in means.iter_rows()}
    tied = "; ".join(
        f"{label} {found[label][1]:.2f}, at most {found[label][2]:.2f} without ties"
        for label in TIED
        if label in found
    )
    words = (
        "Stack score of the last layer, one point per model: share of queries whose largest weight lies on the "
        f"last unmatched open bracket, and mean weight on it. Mean shares: "
        f"{', '.join(f'{label} {found[label][0]:.2f}' for label in shown) or 'none'}. Where keys of one type and depth "
        f"are equal, ties counted as hits: {tied or 'no such model'}."
    )
    return alt.hconcat(*panels, spacing=16).properties(title=title, description=words), data
