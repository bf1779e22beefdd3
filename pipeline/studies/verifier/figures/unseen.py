"""Figures ``unseen``, ``truncated``, ``finding`` and ``objections``: mistakes on unseen prompts (Li 2025, Tables 3.3,
3.5 and 3.16, and beyond)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons, intervals, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import FINDING, HIGH, LOW, REFILLING, WITHIN
from pipeline.studies.verifier.names import GROUND_TRUTH, NONE, RANDOM, TRAINED

LIKELIEST = "the likeliest signs alone, no verifier"
DECODERS = {
    (NONE, ""): "no backtracks",
    (RANDOM, "sample"): "random verifier, sampled refill",
    (RANDOM, "argmax"): "random verifier, greedy refill",
    (TRAINED, "sample"): "trained verifier, sampled refill",
    (TRAINED, "argmax"): "trained verifier, greedy refill (Algorithm 1)",
    (WITHIN, "argmax"): "the same, asked where it learned",
    (GROUND_TRUTH, "sample"): "ground truth, sampled refill",
    (GROUND_TRUTH, "argmax"): "ground truth, greedy refill",
}


FEW = 20  # strings of a length, fewer of which show nothing
RIGHT_BELOW: dict[str, Any] = {"align": "left", "dx": 8, "dy": 9}  # of a mark stands its name
LEFT: dict[str, Any] = {"align": "right", "dx": -8}
REFILLS = {"": "nothing erased", "sample": "sampled refill", "argmax": "greedy refill"}


@plots.drawn("Mistakes on unseen prompts")
def unseen(context: Results) -> Figure:
    """Mistakes per 100 prompts of every decoder and model."""
    table = plots.some(context.table("unseen")).with_columns(
        decoder=pl.struct("verifier", "refill").map_elements(
            lambda row: DECODERS[row["verifier"], row["refill"]], return_dtype=pl.String
        ),
        how=pl.col("refill").replace_strict(REFILLS, return_dtype=pl.String),
        percent=100 * pl.col("errors") / pl.col("n"),
    )
    likeliest = table.filter(top_p=0.0).with_columns(decoder=pl.lit(LIKELIEST))
    levels = [table.filter(top_p=float(p)) for p in (LOW, HIGH)]
    data = pl.concat(
        pl.concat([rows, likeliest]).with_columns(panel=pl.lit(f"top_p {p}"))
        for p, rows in zip((LOW, HIGH), levels, strict=True)
    )
    by = plots.kinds(
        dict(zip(REFILLS.values(), (charts.BLACK, charts.ORANGE, charts.BLUE), strict=True)), "how", shapes=True
    ).among(data["how"])
    panels: list[plots.Panel] = []
    for name, rows in plots.split(data, "panel"):
        x = Axis("percent", "wrong, per 100 prompts", domain=[0, 1.05 * plots.most(data["percent"])])
        y = Axis("decoder", None, "N", order=[LIKELIEST, *DECODERS.values()], more={"labels": not panels})
        panels.append(plots.panel(plots.seeds(rows, x, y, by, tips=["replica"], opacity=0.7), name, 175, 200))
    means = data.group_by("panel", "decoder", maintain_order=True).agg(pl.mean("percent"))
    ours = means.filter(decoder=DECODERS[TRAINED, "argmax"])["percent"]
    return plots.figure(
        plots.grid(panels, spacing=16),
        data,
        f"Of 100 prompts Algorithm 1 completes {' and '.join(number(each, 1) for each in ours)} wrongly at top_p {LOW} "
        f"and {HIGH}, the likeliest signs alone {number(_mean(likeliest['percent']), 1)}",
        f"A mark for each of {plots.count([data['replica'].n_unique()], 'model')}, mean of its runs; ticks: means",
        told=f"Wrong per 100: {plots.tell(means, '{panel}, {decoder}: {percent:.1f}')}.",
    )


@plots.drawn("Right completions against mistakes")
def truncated(context: Results) -> Figure:
    """Distinct right completions of ten, and mistakes, of sampling alone at every top_p and of Algorithm 1."""
    errors = plots.some(context.table("unseen")).filter(pl.col("refill") != "sample", pl.col("verifier") != RANDOM)
    diverse = context.table("diversity").group_by("replica", "top_p", "verifier").agg(pl.mean("right"))
    both = errors.join(diverse, on=["replica", "top_p", "verifier"], maintain_order="left")
    names = {
        NONE: "no verifier",
        TRAINED: "Algorithm 1",
        WITHIN: "Algorithm 1, asked where it learned",
        GROUND_TRUTH: "Algorithm 1 with the ground truth",
    }
    means = both.group_by("verifier", "top_p", maintain_order=True).agg(
        pl.mean("right"), percent=(100 * pl.col("errors") / pl.col("n")).mean()
    )
    data = means.sort("verifier", "top_p").with_columns(
        decoder=pl.col("verifier").replace_strict(names, return_dtype=pl.String), word=pl.format("top_p {}", "top_p")
    )
    colours = (charts.BLACK, charts.VERMILLION, charts.PURPLE, charts.BLUE)
    looks = dict(zip(names.values(), colours, strict=True))
    x = Axis("right", "distinct right completions of ten", domain=[0.8, 1.12 * plots.most(data["right"])])
    y = Axis("percent", "wrong, per 100 prompts", domain=[0, 1.12 * plots.most(data["percent"])])
    by = plots.kinds(looks, "decoder", dashes=False, shapes=True).among(data["decoder"])
    plain, verified = data.filter(verifier=NONE), data.filter(pl.col("verifier") != NONE)
    words = [
        alt.Chart(rows)
        .mark_text(**place, fontSize=plots.SMALL)
        .encode(x=x.at(alt.X), y=y.at(alt.Y), text="word:N", color=by.points()["color"])
        for rows, place in ((plain, RIGHT_BELOW), (verified, LEFT))
    ]
    line = alt.Chart(plain).mark_line(color=charts.BLACK)
    ours = data.filter(verifier=TRAINED, top_p=float(LOW)).row(0, named=True)
    near = plain.sort((pl.col("right") - ours["right"]).abs()).row(0, named=True)
    told = "{right:.2f} distinct right completions of ten and {percent:.1f} in 100 wrong"
    return plots.figure(
        [
            line.encode(x=x.at(alt.X), y=y.at(alt.Y), order="top_p:Q"),
            *plots.points(data, x, y, by, tips=["top_p"], size=70),
            *words,
        ],
        data,
        f"Algorithm 1 at top_p {LOW} gives {told.format(**ours)}, sampling alone at top_p {near['top_p']:g} "
        f"{near['right']:.2f} and {near['percent']:.1f}",
        f"Means over {plots.count([both['replica'].n_unique()], 'model')}; top_p 0: the likeliest signs alone",
        told=plots.tell(data, "{decoder}, top_p {top_p}: {right:.2f} right, {percent:.1f} in 100 wrong") + ".",
        width=430,
        height=290,
    )


@plots.drawn("To what the trained verifier objects")
def objections(context: Results) -> Figure:
    """Share of strings that the trained verifier sends back by their length, and how many mistakes it learned from."""
    table = context.table("objections")
    names = {False: "right so far", True: "the last sign is the first mistake"}
    by_place = (
        table.group_by("place", "wrong", maintain_order=True)
        .agg(pl.sum("n", "objected"), pl.mean("samples"), pl.col("learned").mean())
        .filter(pl.col("n") >= FEW)
        .with_columns(
            share=pl.col("objected") / pl.col("n"), last=pl.col("wrong").replace_strict(names, return_dtype=pl.String)
        )
        .sort("last", "place")
    )
    data = plots.some(by_place, f"no length has {FEW} strings")
    by = plots.kinds(dict(zip(names.values(), (charts.BLUE, charts.VERMILLION), strict=True)), "last", shapes=True)
    x = Axis("place", "signs of the string", zero=False)
    counts = data.unique("place", keep="first", maintain_order=True).sort("place")
    samples = Axis("samples", "mistakes of this length to learn from")
    panels = [
        plots.panel(
            plots.lines(data, x, plots.share("share", "sent back"), by.among(data["last"]), dots=True), None, 300
        ),
        plots.panel(plots.lines(counts, x, samples, charts.BLACK, dots=True), None, 190),
    ]
    right = table.filter(wrong=False).group_by("learned").agg(share=pl.sum("objected") / pl.sum("n"))
    shares = {row["learned"]: row["share"] for row in right.iter_rows(named=True)}
    elsewhere = f", {100 * shares[False]:.0f} of lengths from which it hardly learned" if False in shares else ""
    return plots.figure(
        plots.grid(panels, shared=False),
        data,
        f"Of 100 right strings the trained verifier sends back {100 * shares.get(True, float('nan')):.0f} of lengths "
        f"from which it learned{elsewhere}",
        f"What {plots.count([table['replica'].n_unique()], 'model')} wrote without a verifier at top_p {LOW}, all "
        f"prefixes together; lengths with {FEW} or more. Right: mean number over models",
        told=plots.tell(data, "{last}, {place} signs: {share:.2f}") + ".",
    )


def _mean(values: pl.Series) -> float:
    return float(values.to_numpy().mean())


@plots.drawn("What finding mistakes and what refilling takes away")
def finding(context: Results) -> Figure:
    """What finding mistakes and what refilling greedily take away, each with the other part held fixed."""
    asked = {
        f"finding, {'greedy' if refill == 'argmax' else 'sampled'} refill": {p: FINDING[p, refill] for p in (LOW, HIGH)}
        for refill in ("argmax", "sample")
    } | {
        f"refilling greedily, {verifier}{' verifier' if verifier != GROUND_TRUTH else ''}": {
            p: REFILLING[p, verifier] for p in (LOW, HIGH)
        }
        for verifier in (TRAINED, GROUND_TRUTH, RANDOM)
    }
    frames = [
        comparisons.read(context, [comparison]).select(
            effect=pl.lit(name),
            top_p=pl.lit(f"top_p {p}"),
            value=100 * pl.col("value"),
            lo=100 * pl.col("lo"),
            hi=100 * pl.col("hi"),
            n=pl.col("n"),
        )
        for name, by_level in asked.items()
        for p, comparison in by_level.items()
    ]
    data = pl.concat(frames)
    known = plots.some(data.drop_nulls("value"))
    levels = {f"top_p {LOW}": charts.BLUE, f"top_p {HIGH}": charts.VERMILLION}
    x = Axis("value", "fewer mistakes per 100 prompts", zero=True)
    y = Axis("effect", None, "N", order=list(asked), more={"grid": True, "tickBand": "extent"})
    marks = plots.points(known, x, y, plots.kinds(levels, "top_p", shapes=True), ends=("lo", "hi"), apart="top_p")
    parts = [
        number(data.filter(pl.col("top_p") == f"top_p {HIGH}", pl.col("effect") == name)["value"].item(), 1)
        for name in ("finding, greedy refill", "refilling greedily, trained verifier")
    ]
    return plots.figure(
        [*plots.rule(x, 0, upright=True), *marks],
        data,
        f"At top_p {HIGH} finding mistakes takes away {parts[0]} per 100 prompts, refilling greedily {parts[1]}",
        f"Differences within each of {plots.count([max(data['n'])], 'model')}: means, bars: "
        f"{intervals.STUDENT}’s 95 % intervals. Dotted: no difference",
        told=plots.tell(data, "{effect}, {top_p}: {value:.1f}") + ".",
        width=330,
        height=270,
    )
