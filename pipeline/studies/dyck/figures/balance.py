"""Balance violation against length generalisation (Wen et al. 2023, Figures 3 and 10)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.dyck.figures.common import Figure, number
from schemas.dyck.tables import ARMS, COMPLETE, PREFIX

ARM_COLOURS = {"standard": charts.VERMILLION, "contrastive": charts.BLUE}
ACCURACIES = {"acc_close": "share of closers predicted", "acc_thr80": "share of positions sure of the closer"}


def fig3(context: Any) -> Figure:
    """Figure 3: balance violation against accuracy at length, one point per model, both arms."""
    return _scatter(context, COMPLETE, "trained on complete strings")


def fig10(context: Any) -> Figure:
    """Figure 10: the same for models trained on prefixes."""
    return _scatter(context, PREFIX, "trained on prefixes")


def _scatter(context: Any, trained: str, told: str) -> Figure:
    runs = ARMS[trained]
    data = context.table("fig3").filter(~pl.col("diverged"), data=trained).sort("arm", "replica")
    contrasts = context.table("contrasts").filter(pl.col("first").is_in(list(runs.values())), contrast="rank")
    lengths = context.table("accuracy").filter(pl.col("run").is_in(list(runs.values())), eval_split="lengen")
    panels = [_panel(data, contrasts, name, runs) for name in ACCURACIES]
    span = f" at lengths {lengths['shortest'].min()} to {lengths['longest'].max()}" if lengths.height else ""
    confidence = f", {contrasts['confidence'][0]:.0%} bootstrap interval" if contrasts.height else ""
    title = alt.TitleParams(
        f"Balance violation against accuracy{span}",
        subtitle=[
            f"One point per model, {told}; lines by least squares",
            f"ρ: Spearman's rank correlation{confidence}",
        ],
    )
    words = (
        f"Length generalisation against balance violation, one point per model, {told}, for standard and contrastive "
        f"training. {'. '.join(f'{name}: ' + '; '.join(_rank_lines(contrasts, name, runs)) for name in ACCURACIES)}."
    )
    return alt.hconcat(*panels, spacing=30).properties(title=title, description=words), data


def _panel(data: pl.DataFrame, contrasts: pl.DataFrame, accuracy: str, runs: dict[str, str]) -> Any:
    arms = list(runs)
    colour = alt.Color(
        "arm:N",
        title="training",
        scale=alt.Scale(domain=arms, range=[ARM_COLOURS[arm] for arm in arms]),
        legend=alt.Legend(orient="bottom"),
    )
    shape = alt.Shape(
        "arm:N", title="training", scale=alt.Scale(domain=arms, range=["circle", "triangle-up"])
    )
    x = alt.X(
        "beta:Q",
        title="balance violation β, mean |S| / P",
        scale=alt.Scale(zero=True),
        axis=alt.Axis(tickCount=4),
    )
    y = alt.Y(f"{accuracy}:Q", title=ACCURACIES[accuracy], scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(data)
    points = base.mark_point(filled=True, size=55, opacity=0.8).encode(x=x, y=y, color=colour, shape=shape)
    lines = (
        base.transform_regression("beta", accuracy, groupby=["arm"])
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour)
    )
    title = alt.TitleParams(
        accuracy, subtitle=_rank_lines(contrasts, accuracy, runs), fontSize=charts.SIZE, offset=8
    )
    return alt.layer(points, lines).properties(width=235, height=235, title=title)


def _rank_lines(contrasts: pl.DataFrame, accuracy: str, runs: dict[str, str]) -> list[str]:
    """Spearman's correlation and its interval, per arm and pooled."""
    rows = contrasts.filter(metric=f"beta, {accuracy}")
    lines = []
    for label, where in (
        *((arm, {"statistic": "spearman", "first": run}) for arm, run in runs.items()),
        ("both", {"statistic": "spearman of both arms pooled"}),
    ):
        for row in rows.filter(**where).iter_rows(named=True):
            lines.append(f"{label}: ρ = {number(row['value'])} [{number(row['lo'])}, {number(row['hi'])}]")
    return lines or ["no correlation measured"]
