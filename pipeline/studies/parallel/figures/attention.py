"""Attention of neighbouring tokens that stutter, and of others (Tables 4.4 and 4.5, on the stand-in)."""

from __future__ import annotations

import textwrap

import altair as alt
import numpy as np
import polars as pl
from scipy import stats

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.parallel.names import PADIR
from pipeline.studies.parallel.translation_comparisons import CROSS, DIALS, SELF
from schemas.parallel.translation import OTHER, STUTTER, WITHIN

NAMES = {STUTTER: "equal tokens", WITHIN: "both tokens of a word", OTHER: "all other neighbours"}
COLOURS = {STUTTER: charts.VERMILLION, WITHIN: charts.SKY, OTHER: charts.BLUE}
METRICS = {SELF: "self-attention between both, mean", CROSS: "distance of cross-attention, mean"}
POINTS = 60  # at which a density is drawn
FEWEST = 10  # pairs from which there is one


@plots.drawn("Attention of neighbouring tokens")
def violins(context: Results) -> Figure:
    """Densities of both measures by class of neighbours, for each alpha with dependence, first pass, first model."""
    pairs = context.table("synmt_attn_pair").filter(T=1)
    runs = [(alpha, PADIR[alpha]) for alpha in DIALS if PADIR[alpha] in set(pairs["run"])]
    frames = []
    for alpha, run in runs:
        for metric, words in METRICS.items():
            for cls, name in NAMES.items():
                values = pairs.filter(run=run, cls=cls)[metric].cast(pl.Float64).to_numpy()
                if len(values) < FEWEST or np.ptp(values) == 0:
                    continue
                grid = np.linspace(values.min(), values.max(), POINTS)
                height = stats.gaussian_kde(values)(grid)
                half = 0.4 * height / height.max()
                place = list(NAMES).index(cls)
                frames.append(
                    pl.DataFrame(
                        {
                            "panel": f"alpha = {alpha:g}",
                            "metric": words,
                            "cls": name,
                            "value": grid,
                            "left": place - half,
                            "right": place + half,
                            "median": float(np.median(values)),
                            "n": len(values),
                        }
                    )
                )
    if not frames:
        raise plots.NothingError("hardly any stutter, or no models, at this scale")
    data = pl.concat(frames)
    colour = plots.kinds({name: COLOURS[cls] for cls, name in NAMES.items()}, "cls").colour()
    panels: list[plots.Panel] = []
    for words in METRICS.values():
        of = data.filter(metric=words)
        for place, (name, own) in enumerate(plots.split(of, "panel")):
            lines = textwrap.wrap(words, 24)  # longer than the axis, they would move the title of the panel
            y = alt.Y("value:Q", title=None if place else lines, scale=alt.Scale(domain=[0, plots.most(of["value"])]))
            x = alt.X("left:Q", title=None, axis=None, scale=alt.Scale(domain=[-0.5, 2.5]))
            shape = (
                alt.Chart(own)
                .mark_area(orient="horizontal", opacity=0.7)
                .encode(y=y, x=x, x2="right:Q", color=colour, detail="cls:N", tooltip=["cls", "n", "median"])
            )
            middle = own.group_by("cls", maintain_order=True).agg(
                pl.col("median").first(), at=((pl.col("left") + pl.col("right")) / 2).mean(), n=pl.col("n").first()
            )
            ticks = (
                alt.Chart(middle)
                .mark_tick(color=charts.BLACK, thickness=2, size=26, orient="horizontal")
                .encode(x="at:Q", y="median:Q")
            )
            panels.append(plots.panel([shape, ticks], name, 165, 170))
    summary = context.table("synmt_attn_summary").filter(T=1, cls=STUTTER)
    effects: dict[str, list[float | None]] = {
        metric: [_mean(summary.filter(run=run, metric=metric)["cohen_d_vs_other"]) for _, run in runs]
        for metric in METRICS
    }
    listed = {
        metric: ", ".join(f"{number(value)} at {alpha:g}" for (alpha, _), value in zip(runs, values, strict=True))
        for metric, values in effects.items()
    }
    once = data.unique(["panel", "metric", "cls"], keep="first", maintain_order=True)
    return plots.figure(
        plots.grid(panels, data["panel"].n_unique(), spacing=40),
        data,
        f"Stutter against others, by alpha: d of self-attention {listed[SELF]}; of cross-attention {listed[CROSS]}",
        f"Cohen’s d, means of {plots.count([summary.filter(metric=SELF)['replica'].n_unique()], 'model')}. "
        "Densities of the first model, one pass, last layer; ticks: medians. Self-attention over heads and both ways, "
        "total variation over heads",
        told=f"Medians: {plots.tell(once, '{panel}, {metric}, {cls}: {median:.3f} of {n} pairs')}.",
    )


def _mean(values: pl.Series) -> float | None:
    known = values.drop_nulls().to_numpy()
    return float(known.mean()) if len(known) else None
