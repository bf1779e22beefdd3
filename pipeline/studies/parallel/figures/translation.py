"""Translation in parallel against the dial of dependence and the passes of the decoder, and both halves together."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.parallel.names import ALPHAS, AR, PADIR
from schemas.parallel.translation import RAW

WORDWISE = "word by word"
COLOURS = {
    WORDWISE: charts.BLACK,
    "T = 1": charts.VERMILLION,
    "T = 2": charts.ORANGE,
    "T = 4": charts.BLUE,
    "T = 10": charts.GREEN,
}
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
ISING, MARGINALS, MEASURED = "Ising clique, J", "SYNMT, alpha", "PaDIR's loss, alpha"


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


def _drawn(data: pl.DataFrame, y: str, title: alt.TitleParams, words: str, *below: alt.Chart) -> Figure:
    means = data.group_by("what", "alpha", maintain_order=True).agg(
        mean=pl.col("value").mean(), low=pl.col("value").min(), high=pl.col("value").max(), models=pl.len()
    )
    known = [name for name in COLOURS if name in set(data["what"])]
    colour = alt.Color(
        "what:N",
        title=None,
        sort=known,
        scale=alt.Scale(domain=known, range=[COLOURS[name] for name in known]),
        legend=alt.Legend(orient="right", symbolOpacity=1),
    )
    shape = alt.Shape("what:N", title=None, sort=known, scale=alt.Scale(domain=known, range=list(SHAPES[: len(known)])))
    # An axis's format takes its digits from the distance of ticks, which 0.25 is not a multiple of.
    axis = alt.Axis(values=list(ALPHAS), labelExpr="format(datum.value, '~g')")
    x = alt.X("alpha:Q", title="alpha, dial of dependence", axis=axis)
    base = alt.Chart(means).encode(x=x, color=colour)
    top = max(float(means["high"].max() or 0) * 1.02, 1.0)  # type: ignore[arg-type]
    scale = alt.Scale(domain=[0, min(100.0, top) if y.endswith("%") else top], nice=False)
    layers = alt.layer(
        *below,
        base.mark_line(strokeWidth=1.5).encode(y=alt.Y("mean:Q", title=y, scale=scale)),
        base.mark_rule(strokeWidth=2, opacity=0.5).encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            y="mean:Q", shape=shape, tooltip=["what", "alpha", "mean", "low", "high", "models"]
        ),
    )
    said = "; ".join(
        f"{row['what']}, alpha = {row['alpha']:g}: {number(row['mean'], 1)} ({number(row['low'], 1)} to "
        f"{number(row['high'], 1)})"
        for row in means.iter_rows(named=True)
    )
    return layers.properties(width=420, height=280, title=title, description=f"{words}: {said}."), data


def _mean(data: pl.DataFrame, what: str, alpha: float) -> float | None:
    value = data.filter(what=what, alpha=alpha)["value"].mean()
    return None if value is None else float(value)  # type: ignore[arg-type]


def _models(data: pl.DataFrame) -> int:
    return int(data.group_by("what", "alpha").len()["len"].min() or 0)  # type: ignore[arg-type]


def validity(context: Results) -> Figure:
    """The share of valid translations against alpha, for each number of passes."""
    data = _by_alpha(context, "valid_rate", 100.0)
    if not data.height:
        return charts.empty("Valid translations", "no models at this scale")
    none, most, alone = _mean(data, "T = 4", 0.0), _mean(data, "T = 4", 1.0), _mean(data, WORDWISE, 1.0)
    title = alt.TitleParams(
        f"In four passes {number(none, 0)} % are valid without dependence, {number(most, 0)} % with most",
        subtitle=[
            f"Word by word {number(alone, 0)} % are valid at alpha = 1; valid: of positive probability there",
            f"Means and ranges of {_models(data)} models each, {_sentences(context)} test sentences",
        ],
    )
    return _drawn(data, "valid translations, %", title, "Share of valid translations in per cent")


def stutter(context: Results) -> Figure:
    """Repeated tokens against alpha, for each number of passes, with the best guess of each position."""
    data = _by_alpha(context, "stutter_per_100", 1.0)
    if not data.height:
        return charts.empty("Stutter", "no models at this scale")
    exact = context.table("synmt_tc").filter(T=1).sort("alpha")
    once, more, alone = (_mean(data, what, 1.0) for what in ("T = 1", "T = 4", WORDWISE))
    bayes = exact.filter(alpha=1.0)["bayes_stutter"].item()
    title = alt.TitleParams(
        f"At alpha = 1 one pass stutters {number(once, 1)} times in 100 tokens, four {number(more, 1)}, "
        f"word by word {number(alone, 1)}",
        subtitle=[
            f"Dashed: the likeliest token of each position by its exact marginal, {number(bayes, 1)} at alpha = 1",
            f"Means and ranges of {_models(data)} models each, {_sentences(context)} test sentences",
        ],
    )
    best = alt.Chart(exact.select("alpha", "bayes_stutter"))
    line = best.mark_line(strokeDash=[5, 3], color=charts.GREY, strokeWidth=2).encode(x="alpha:Q", y="bayes_stutter:Q")
    return _drawn(data, "repeated tokens in 100", title, "Stutter per 100 tokens", line)


def _sentences(context: Results) -> int:
    return int(context.table("synmt_metric")["n"].max())  # type: ignore[arg-type]


def together(context: Results) -> Figure:
    """What parallel decoding loses against the total correlation of the target: both halves of the thesis."""
    ising = context.table("par_tc").filter(pl.col("k") == pl.col("k").max())
    synmt = context.table("synmt_tc")
    exact = pl.concat(
        [
            ising.select(what=pl.lit(ISING), setting=pl.format("J = {}", "J"), tc="tc_nats", lost="tv_prod"),
            synmt.filter(T=1).select(
                what=pl.lit(MARGINALS), setting=pl.format("alpha = {}", "alpha"), tc="tc_nats", lost="tv_prod"
            ),
        ]
    )
    trained = synmt.filter(pl.col("lost").is_not_null(), T=1).select(
        what=pl.lit(MEASURED),
        setting=pl.format("alpha = {}", "alpha"),
        tc="tc_nats",
        lost="lost",
        low="lo",
        high="hi",
        models="n",
    )
    data = pl.concat([exact, trained], how="diagonal").sort("what", "tc")
    kinds = [ISING, MARGINALS, MEASURED]
    colours, shapes = [charts.BLUE, charts.VERMILLION, charts.BLACK], ["circle", "square", "triangle-up"]
    colour = alt.Color(
        "what:N",
        title=None,
        sort=kinds,
        scale=alt.Scale(domain=kinds, range=colours),
        legend=alt.Legend(orient="bottom", symbolOpacity=1),
    )
    shape = alt.Shape("what:N", title=None, sort=kinds, scale=alt.Scale(domain=kinds, range=shapes))
    x = alt.X("tc:Q", title="total correlation of the target, nats")
    y = alt.Y("lost:Q", title="lost by decoding in parallel, share", axis=alt.Axis(values=charts.UNIT))
    base = alt.Chart(data).encode(x=x, color=colour)
    layers = alt.layer(
        base.mark_line(strokeWidth=1.5).encode(y=y),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2, opacity=0.6)
        .encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=65, opacity=1).encode(
            y=y, shape=shape, tooltip=["what", "setting", "tc", "lost", "low", "high", "models"]
        ),
    )
    last = ising.sort("J").tail(1)
    most = synmt.filter(T=1).sort("alpha").tail(1)
    title = alt.TitleParams(
        f"At {number(last['tc_nats'].item(), 1)} nats an Ising clique loses {number(last['tv_prod'].item())} to a "
        f"product law; at {number(most['tc_nats'].item(), 1)} nats translation loses {number(most['tv_prod'].item())}",
        subtitle=[
            "Ising and SYNMT: distance of the target from the product of its marginals, exact",
            "PaDIR: valid share word by word minus that in one pass, 95 % interval over "
            f"{int(synmt['n'].max() or 0)} models",  # type: ignore[arg-type]
        ],
    )
    words = "Share lost by decoding in parallel against total correlation: " + "; ".join(
        f"{row['what']}, {row['setting']}: {number(row['tc'])} nats, {number(row['lost'])}"
        for row in data.iter_rows(named=True)
    )
    return layers.properties(width=440, height=300, title=title, description=f"{words}."), data
