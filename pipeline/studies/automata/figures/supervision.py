"""States seen through a map, and hidden labels (Figures 3.7, 3.18, 3.19)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, LOOKS, accuracy, looks, named, summary
from pipeline.studies.automata.names import shown

# What stands beside the models, and the path of its mark.
BESIDE = {
    "constant": ("one label for each position", "M0,-1.4V1.4"),
    "majority": ("one label for all", "M0,-0.7V0.7"),
    "printed": ("published maximum", "diamond"),
}


def indirect(context: Results) -> Figure:
    """Accuracy where states are seen through a map: best model of each arm, the published maximum, and the best
    answers that do not read the input, one label for each position and one for all."""
    table = context.table("indirect")
    if not table.height:
        return empty("Indirect supervision", "nothing was trained")
    data = named(table).with_columns((pl.col("published") / 100).alias("printed"))
    order = data["panel"].unique(maintain_order=True).to_list()
    domain = [label for label in LOOKS if label in data["label"].to_list()]
    colour = alt.Color(
        "label:N",
        title=None,
        scale=alt.Scale(domain=domain, range=[LOOKS[x][0] for x in domain]),
        legend=alt.Legend(orient="top"),
    )
    y = alt.Y("panel:N", title=None, sort=order)
    base = alt.Chart(data).encode(y=y)
    unit = alt.Scale(domain=[0, 1])
    points = base.mark_point(filled=True, size=70).encode(
        x=alt.X("acc_max:Q", title=ACCURACY, scale=unit),
        color=colour,
        yOffset="label:N",
        tooltip=[
            "panel:N",
            "label:N",
            alt.Tooltip("acc_max:Q", format=".3f"),
            alt.Tooltip("acc_median:Q", format=".3f"),
            "n:Q",
        ],
    )
    beside = data.filter(arm="gpt").unpivot(list(BESIDE), index="panel", variable_name="mark", value_name="level")
    beside = beside.with_columns(pl.col("mark").replace_strict({key: name for key, (name, _) in BESIDE.items()}))
    shapes = alt.Scale(domain=[name for name, _ in BESIDE.values()], range=[path for _, path in BESIDE.values()])
    levels = (
        alt.Chart(beside.drop_nulls("level"))
        .mark_point(color=charts.INK, size=90, strokeWidth=1.6)
        .encode(
            y=y,
            x=alt.X("level:Q", title=ACCURACY, scale=unit),
            shape=alt.Shape(
                "mark:N", title=None, scale=shapes, legend=alt.Legend(orient="bottom", columns=3, labelLimit=240)
            ),
            tooltip=["panel:N", "mark:N", alt.Tooltip("level:Q", format=".3f")],
        )
    )
    words = "; ".join(f"{row['panel']}, {row['label']}: {row['acc_max']:.3f}" for row in data.iter_rows(named=True))
    chart = alt.layer(levels, points).properties(width=420, height=34 * len(order))
    return chart.properties(title="Indirect supervision", description=f"Best models. {words}."), data


def incomplete(context: Results) -> Figure:
    """Accuracy by the probability with which a label is shown in training: means over all models, bands from the
    least to the most accurate."""
    table = context.table("incomplete")
    if not table.height:
        return empty("Incomplete supervision", "nothing was trained")
    data = summary(table, "revealed")
    colour, dash = looks(data["label"].unique().to_list())
    panels = []
    for (task,), rows in data.group_by("task", maintain_order=True):
        base = alt.Chart(rows).encode(
            x=alt.X(
                "revealed:Q",
                title="probability of a label",
                scale=alt.Scale(type="log", nice=False, padding=12),
                axis=alt.Axis(values=sorted(set(rows["revealed"].to_list())), format="~g"),
            )
        )
        scale = accuracy(rows, "least")
        y = alt.Y("accuracy:Q", title=ACCURACY, scale=scale)
        band = base.mark_area(opacity=0.2).encode(
            y=alt.Y("least:Q", title=ACCURACY, scale=scale), y2="most:Q", color=colour
        )
        line = base.mark_line(point=True).encode(y=y, color=colour, strokeDash=dash)
        panels.append(alt.layer(band, line).properties(width=250, height=180, title=shown(str(task))))
    words = "; ".join(
        f"{row['panel']}, {row['label']}, {row['revealed']:g}: {row['accuracy']:.3f}"
        for row in data.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=30).resolve_scale(color="shared", strokeDash="shared")
    return chart.properties(title="Incomplete supervision", description=f"Mean accuracy. {words}."), data
