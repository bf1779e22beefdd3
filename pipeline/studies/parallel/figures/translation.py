"""Translation in parallel against the dial of dependence and the passes of the decoder, and both halves together."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.parallel.names import ALPHAS, AR, DIAL, PADIR
from schemas.parallel.translation import RAW

WORDWISE = "word by word"
LOOKS = {
    WORDWISE: Look(charts.BLACK),
    "T = 1": Look(charts.VERMILLION, shape="square"),
    "T = 2": Look(charts.ORANGE, shape="triangle-up"),
    "T = 4": Look(charts.BLUE, shape="diamond"),
    "T = 10": Look(charts.GREEN, plots.DASHED, "cross"),
}
X = Axis("alpha", "alpha, dial of dependence", values=list(ALPHAS))
ISING, MARGINALS = "Ising clique, sampling", "SYNMT, sampling"
MEASURED, BEST = "SYNMT, PaDIR", "SYNMT, likeliest tokens"


def _by_alpha(context: Results, column: str, factor: float) -> pl.DataFrame:
    """Return a row for each model of the dial: alpha, the way to decode, and ``value``."""
    alphas = {run: alpha for runs in (AR, PADIR) for alpha, run in runs.items()}
    rows = context.table("synmt_metric").filter(pl.col("run").is_in(list(alphas)), B_l=1, post=RAW)
    return rows.select(
        "run",
        "replica",
        alpha=pl.col("run").replace_strict(alphas, return_dtype=pl.Float64),
        what=pl.when(pl.col("T") == 0).then(pl.lit(WORDWISE)).otherwise(pl.format("T = {}", "T")),
        value=factor * pl.col(column),
    ).sort("what", "alpha", "replica")


def _drawn(context: Results, data: pl.DataFrame, y: Axis, title: str, note: str, *below: plots.Layers) -> Figure:
    means = data.group_by("what", "alpha", maintain_order=True).agg(
        value=pl.col("value").mean(), low=pl.col("value").min(), high=pl.col("value").max(), models=pl.len()
    )
    means = means.sort(
        pl.col("what").cast(pl.Enum(list(LOOKS)))
    )  # more passes over fewer, where they lie on each other
    by = Kinds("what", LOOKS, columns=5).among(means["what"]).joined()
    layers = [layer for layers in below for layer in layers]
    layers += plots.lines(means, X, y, by, strokeWidth=1.5)
    layers += plots.points(means, X, y, by, ends=("low", "high"), tips=["models"], size=60)
    sentences = int(plots.most(context.table("synmt_metric")["n"]))
    return plots.figure(
        layers,
        data,
        title,
        f"{note}. T: passes; means of {plots.count(means['models'], 'model')}, bars from the least to the largest, "
        f"{sentences} test sentences",
        told=plots.tell(means, "{what}, alpha = {alpha:g}: {value:.1f} ({low:.1f} to {high:.1f})") + ".",
        width=420,
        height=280,
    )


def _percents(shares: Iterable[tuple[float, float]]) -> str:
    """Return shares in percent, each with its alpha: ``98 % at alpha = 0, 3 % at 1``."""
    return ", ".join(
        f"{number(100 * share, 0)} % at {'' if i else 'alpha = '}{alpha:g}" for i, (alpha, share) in enumerate(shares)
    )


def _mean(data: pl.DataFrame, what: str, alpha: float) -> float | None:
    value = data.filter(what=what, alpha=alpha)["value"].mean()
    return None if value is None else float(value)  # type: ignore[arg-type]


@plots.drawn("Valid translations")
def validity(context: Results) -> Figure:
    """Valid translations against alpha, for each number of passes, with the best guess of each position."""
    data = plots.some(_by_alpha(context, "valid_rate", 100.0))
    exact = context.table("synmt_tc").filter(T=1).sort("alpha").with_columns(best=100 * pl.col("bayes_valid"))
    half, full = (exact.filter(alpha=alpha)["best"].item() for alpha in (DIAL, 1.0))
    four = [(alpha, share / 100) for alpha in ALPHAS if (share := _mean(data, "T = 4", alpha)) is not None]
    alone = _mean(data, WORDWISE, 1.0)
    y = Axis("value", "valid translations, %", domain=[0, 100])
    return _drawn(
        context,
        data,
        y,
        f"Valid in four passes: {_percents(four)}",
        f"Word by word {number(alone, 0)} % are valid at alpha = 1; valid: of positive probability there. Dashed: the "
        f"likeliest token of each position by its exact marginal, {number(half, 0)} % at alpha = {DIAL:g}, "
        f"{number(full, 0)} % at 1",
        plots.lines(exact, X, y.but(field="best"), charts.GREY, strokeDash=[5, 3]),
    )


@plots.drawn("Stutter")
def stutter(context: Results) -> Figure:
    """Repeated tokens against alpha, for each number of passes, with the best guess of each position."""
    data = plots.some(_by_alpha(context, "stutter_per_100", 1.0))
    exact = context.table("synmt_tc").filter(T=1).sort("alpha")
    once, more, alone = (_mean(data, what, 1.0) for what in ("T = 1", "T = 4", WORDWISE))
    half, full = (exact.filter(alpha=alpha)["bayes_stutter"].item() for alpha in (DIAL, 1.0))
    y = Axis("value", "repeated tokens in 100", domain=[0, max(1.0, 1.02 * plots.most(data["value"]))])
    return _drawn(
        context,
        data,
        y,
        f"At alpha = 1 one pass stutters {number(once, 1)} times in 100 tokens, four {number(more, 1)}, "
        f"word by word {number(alone, 1)}",
        f"Dashed: the likeliest token of each position by its exact marginal, {number(half, 1)} at alpha = {DIAL:g}, "
        f"{number(full, 1)} at 1",
        plots.lines(exact, X, y.but(field="bayes_stutter"), charts.GREY, strokeDash=[5, 3]),
    )


@plots.drawn("What parallel decoding loses against the total correlation")
def together(context: Results) -> Figure:
    """What parallel decoding loses against the total correlation of the target: both halves of the thesis."""
    ising = context.table("par_tc").filter(pl.col("k") == pl.col("k").max())
    synmt = plots.some(context.table("synmt_tc").filter(T=1))
    setting = pl.format("alpha = {}", "alpha")
    data = pl.concat(
        [
            ising.select(what=pl.lit(ISING), setting=pl.format("J = {}", "J"), tc="tc_nats", lost="tv_prod"),
            synmt.select(what=pl.lit(MARGINALS), setting=setting, tc="tc_nats", lost="tv_prod"),
            synmt.filter(pl.col("lost").is_not_null()).select(
                what=pl.lit(MEASURED), setting=setting, tc="tc_nats", lost="lost", low="lo", high="hi", models="n"
            ),
            synmt.select(what=pl.lit(BEST), setting=setting, tc="tc_nats", lost=1 - pl.col("bayes_valid")),
        ],
        how="diagonal",
    ).sort("what", "tc")
    colours = (charts.BLUE, charts.VERMILLION, charts.BLACK, charts.GREEN)
    looks = zip((ISING, MARGINALS, MEASURED, BEST), colours, plots.SHAPES, strict=False)
    by = Kinds("what", {name: Look(colour, shape=shape) for name, colour, shape in looks}, columns=2).joined()
    x, y = (
        Axis("tc", "total correlation of the target, nats"),
        plots.share("lost", "lost by decoding in parallel, share"),
    )
    lost = synmt.filter(pl.col("alpha") > 0, pl.col("lost").is_not_null()).sort("alpha").select("alpha", "lost")
    best = synmt.filter(pl.col("alpha") >= DIAL).sort("alpha").select("alpha", 1 - pl.col("bayes_valid"))
    return plots.figure(
        [
            *plots.lines(data, x, y, by, strokeWidth=1.5),
            *plots.points(data, x, y, by, ends=("low", "high"), tips=["setting", "models"], size=65),
        ],
        data,
        f"Lost in one pass: by PaDIR {_percents(lost.iter_rows()) or 'not measured'}; by the likeliest tokens "
        f"{_percents(best.iter_rows())}",
        "Sampling: distance of the target from the product of its marginals, exact. PaDIR takes likeliest tokens: "
        "valid share word by word minus that in one pass, bars: 95 % intervals over "
        f"{plots.count(data['models'], 'model')}. Likeliest tokens: invalid share where each position "
        "takes that of its exact marginal",
        told=plots.tell(data, "{what}, {setting}: {tc:.2f} nats, {lost:.2f}") + ".",
        width=440,
        height=300,
    )
