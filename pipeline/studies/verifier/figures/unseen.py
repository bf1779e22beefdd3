"""Figures ``unseen`` and ``finding``: mistakes on unseen prompts (Li 2025, Tables 3.3 and 3.16, and beyond)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, intervals, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import ERRORS_LEFT, FINDING, HIGH, LOW, REFILLING
from pipeline.studies.verifier.names import GROUND_TRUTH, NONE, RANDOM, TRAINED

DECODERS = {
    (NONE, ""): "no backtracks",
    (RANDOM, "sample"): "random verifier, sampled refill",
    (RANDOM, "argmax"): "random verifier, greedy refill",
    (TRAINED, "sample"): "trained verifier, sampled refill",
    (TRAINED, "argmax"): "trained verifier, greedy refill (Algorithm 1)",
    (GROUND_TRUTH, "sample"): "ground truth, sampled refill",
    (GROUND_TRUTH, "argmax"): "ground truth, greedy refill",
}


REFILLS = {"": "nothing erased", "sample": "sampled refill", "argmax": "greedy refill"}


@plots.drawn("Mistakes on unseen prompts")
def unseen(context: Results) -> Figure:
    """Mistakes per 100 prompts of every decoder and model."""
    data = plots.some(context.table("unseen")).with_columns(
        decoder=pl.struct("verifier", "refill").map_elements(
            lambda row: DECODERS[row["verifier"], row["refill"]], return_dtype=pl.String
        ),
        how=pl.col("refill").replace_strict(REFILLS, return_dtype=pl.String),
        percent=100 * pl.col("errors") / pl.col("n"),
        panel=pl.format("top_p {}", "top_p"),
    )
    by = plots.kinds(
        dict(zip(REFILLS.values(), (charts.BLACK, charts.ORANGE, charts.BLUE), strict=True)), "how", shapes=True
    ).among(data["how"])
    panels: list[plots.Panel] = []
    for name, rows in plots.split(data, "panel"):
        x = Axis("percent", "wrong, per 100 prompts", domain=[0, 1.05 * plots.most(data["percent"])])
        y = Axis("decoder", None, "N", order=list(DECODERS.values()), more={"labels": not panels})
        panels.append(plots.panel(plots.seeds(rows, x, y, by, tips=["replica"], opacity=0.7), name, 175, 200))
    left = [comparisons.read(context, [ERRORS_LEFT[p]]).row(0, named=True) for p in (LOW, HIGH)]
    words = " and ".join(number(None if row["value"] is None else 100 * (1 - row["value"]), 0) for row in left)
    means = data.group_by("panel", "decoder", maintain_order=True).agg(pl.mean("percent"))
    return plots.figure(
        plots.grid(panels, spacing=16),
        data,
        f"Algorithm 1 takes away {words} % of mistakes at top_p {LOW} and {HIGH}",
        f"A mark for each of {plots.count([left[0]['n']], 'model')}, mean of its runs; ticks: their means",
        told=f"Wrong per 100: {plots.tell(means, '{panel}, {decoder}: {percent:.1f}')}.",
    )


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
