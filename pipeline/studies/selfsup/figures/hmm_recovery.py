"""E8 as figures: errors against the number of samples, and tables that learn a predictor (F-H2)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import CASES, FALLS, LEARNED, METHODS
from pipeline.studies.selfsup.figures.common import count, lines_legend, log_axis, panel_title
from schemas.selfsup.hmm import ALS, JENNRICH, SAMPLE

COLOURS = {METHODS[JENNRICH]: charts.ORANGE, METHODS[ALS]: charts.BLUE}


def recovery(context: Results) -> Figure:
    """Error of O against the number of triples, case by case: medians, quartiles, and each model."""
    table = (
        context.table("hmm_recovery")
        .filter(source=SAMPLE)
        .with_columns(pl.col("method").replace_strict(METHODS), shown=pl.col("case").replace_strict(CASES))
    )
    data = table.group_by("shown", "method", "N", maintain_order=True).agg(
        pl.col("err_O").median().alias("median"),
        pl.col("err_O").quantile(0.25).alias("low"),
        pl.col("err_O").quantile(0.75).alias("high"),
        pl.len().alias("models"),
    )
    sizes = [float(n) for n in sorted(table["N"].unique().to_list())]
    low, high = 0.5 * data["low"].to_numpy().min(), 1.5 * data["high"].to_numpy().max()
    colour = alt.Color(
        "method:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=lines_legend(),
    )
    slopes = comparisons.read(context, FALLS.values())
    span = alt.Scale(type="log", domain=[sizes[0] / 1.6, sizes[-1] * 1.6], nice=False)
    x = alt.X("N:Q", title="triples N (log)", scale=span, axis=alt.Axis(values=sizes, format=".0e"))
    panels = []
    for case, shown in CASES.items():
        part = data.filter(shown=shown)
        base = alt.Chart(part)
        named = "Frobenius error of O (log)" if case == 1 else None
        y = alt.Y("median:Q", title=named, **log_axis(low, high))
        guide = pl.DataFrame({"N": sizes, "median": [0.5 * high / 2 * (n / sizes[0]) ** -0.5 for n in sizes]})
        said = [
            f"{METHODS[method]}: slope {number(slopes['value'][place])}"
            for place, (number_, method) in enumerate(FALLS)
            if number_ == case
        ]
        panels.append(
            alt.layer(
                alt.Chart(guide).mark_line(color=charts.GREY, strokeDash=[4, 3], clip=True).encode(x, y),
                base.mark_area(opacity=0.18).encode(
                    x, alt.Y("low:Q", title=named, **log_axis(low, high)), alt.Y2("high:Q"), colour
                ),
                base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=35)).encode(x, y, colour),
            ).properties(width=170, height=230, title=panel_title(shown.capitalize(), said))
        )
    polished = slopes.filter(pl.col("comparison").str.ends_with(ALS))
    root = bool(((polished["lo"] >= -0.6) & (polished["hi"] <= -0.4)).fill_null(False).all())
    title = alt.TitleParams(
        "The error of O falls as one over the square root of the triples" if root else "The error of O against triples",
        subtitle=[
            f"Medians, quartiles of {count(data['models'])} models (d = 6, k = 3), one sample each; dashed: slope −1/2",
            "Above each panel: mean of the models' slopes",
        ],
    )
    words = "Error of O against triples, by case and method: " + "; ".join(
        f"{row['measure']} {number(row['value'])} ({row['first']})" for row in slopes.iter_rows(named=True)
    )
    return alt.hconcat(*panels, spacing=14).properties(title=title, description=f"{words}."), data


def tables(context: Results) -> Figure:
    """Trained tables: how far they are from the shares of their sample, beside how far these are from the law."""
    table = context.table("hmm_learned").with_columns(shown=pl.col("case").replace_strict(CASES))
    names = {"start": "before training", "to_shares": "after training", "shares_to_law": "shares from the law"}
    data = table.unpivot(list(names), index=["instance_id", "shown"], variable_name="what", value_name="distance")
    data = data.with_columns(pl.col("what").replace_strict(names))
    found = comparisons.read(context, LEARNED.values())
    low = 0.5 * (data["distance"].to_numpy().min() if data.height else 0.01)
    scale = alt.Scale(domain=list(names.values()), range=[charts.GREY, charts.BLUE, charts.ORANGE])
    panels = [
        alt.layer(
            alt.Chart(data.filter(shown=shown))
            .mark_point(filled=True, size=40, opacity=0.65)
            .encode(
                alt.X(
                    "distance:Q",
                    title="Frobenius distance (log)" if shown == [*CASES.values()][-1] else None,
                    **log_axis(low, 2.0),
                ),
                alt.Y("what:N", title=None, sort=list(names.values())),
                alt.Color("what:N", legend=None, scale=scale),
                tooltip=["instance_id", "what", "distance"],
            )
        ).properties(width=390, height=66, title=panel_title(shown.capitalize()))
        for shown in CASES.values()
    ]
    ratios = [value for value in found["value"].to_list() if value is not None]
    title = alt.TitleParams(
        "A table trained by SGD learns the shares of its sample"
        if ratios and max(ratios) < 0.5
        else "Tables trained by SGD and the shares of their samples",
        subtitle=[f"{table['instance_id'].n_unique()} models in each case, {count(table['samples']):,} triples each"],
    )
    words = "Distances of trained tables from shares of samples; quotients: " + ", ".join(map("{:.2g}".format, ratios))
    return alt.vconcat(*panels, spacing=10).properties(title=title, description=f"{words}."), data
