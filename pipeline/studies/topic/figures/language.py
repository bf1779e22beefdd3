"""Figures 2.3 and 2.9, and Table 2.3 drawn, of stand-ins for natural language."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import cosines, means, rounded
from pipeline.studies.topic.names import ENCODER, LAYERS, LAYERS_FAST, OVERLAPPING, READER_EMBEDDED

MODELS = {
    "NLM-0": "NLM-0: encoder, untrained",
    "NLM-1": "NLM-1: one layer, one-hot",
    "NLM-2": "NLM-2: one layer, embedded",
    "NLM-3": "NLM-3: encoder, trained",
}
MEASURES = {
    "cosine, layer output": "cosine, layer output",
    "cosine, word table": "cosine, word table",
    "attention, debiased": "attention, debiased",
}
EVERY = 4  # steps between two points of a line
TURNS = [1e-5, 1e-3, 0.1]  # ticks
CONTROLS = {LAYERS: "small rate", LAYERS_FAST: "ten times the rate: negative control"}
WEIGHTS = {"norm_v": "values", "norm_k": "keys", "norm_q": "queries"}


@plots.drawn("Words of a topic and of different topics: stand-ins")
def kinships(context: Results) -> Figure:
    """Table 2.3 of stand-ins: means over same-topic and different-topic pairs of words, by ambiguity threshold; topics
    are the true ones, each word belongs to one. Claim 29 judges embeddings, and claim 30 attention, that of small
    encoders (NLM-3) among it."""
    table = context.table("kinship").filter(corpus=OVERLAPPING, phi="true", assign="one")
    return means(plots.some(table), MODELS, MEASURES)


@plots.drawn("Cosines of embeddings: three words of each of three topics, stand-ins")
def nine_words(context: Results) -> Figure:
    """Figure 2.3 of stand-ins: cosines between embeddings of three words of each of three topics, first seed, and their
    means within topics and between them."""
    panels = [
        ("NLM-0: encoder, untrained", ENCODER, "NLM-0", "layer output"),
        ("NLM-2: one layer", READER_EMBEDDED, "NLM-2", "word table"),
        ("NLM-3: small encoder", ENCODER, "NLM-3", "layer output"),
    ]
    return cosines(plots.some(context.table("word_map").filter(corpus=OVERLAPPING)), panels)


@plots.drawn("Two stages in four layers: stand-in")
def layers(context: Results) -> Figure:
    """Figure 2.9 of a stand-in: norms of queries, keys and values of each of four layers, and how far values turn in
    ten steps; below, the norms of the negative control. All models are drawn, whether or not they learned."""
    norms, turns = (context.table(name) for name in ("layer_norms", "turns"))
    long = rounded(plots.some(norms).filter(pl.col("step") % EVERY == 0), 4).unpivot(
        list(WEIGHTS), index=["run", "replica", "layer", "step"], variable_name="weights", value_name="norm"
    )
    long = long.with_columns(pl.col("weights").replace_strict(WEIGHTS, return_dtype=pl.String))
    above = _course(long, "norm", ["run", "layer", "step", "weights"])
    below = _course(rounded(turns.filter(run=LAYERS), 4), "distance", ["run", "layer", "step"])  # where it is judged
    by, x = plots.kinds(WEIGHTS.values(), "weights"), plots.steps(count=3)
    panels: list[plots.Panel] = []
    for run, head in CONTROLS.items():
        for layer, rows in plots.split(above.filter(run=run), "layer"):
            top = plots.most(above.filter(run=run)["most"])
            y = Axis("median", "norm" if layer == "1" else None, domain=[0, top])
            marks = plots.lines(rows, x, y, by, band=("least", "most"))
            panels.append(plots.panel(marks, f"layer {layer}", 112, 150, head))
        for layer, rows in plots.split(below.filter(run=run), "layer"):
            y = Axis("median", "turn (log scale)" if layer == "1" else None, log=True, domain=[1e-5, 1], values=TURNS)
            marks = plots.lines(rows, x, y, charts.BLACK, bars=("least", "most"), dots=True)
            panels.append(plots.panel(marks, f"layer {layer}", 112, 90, "turn of values"))
    data = pl.concat([above, below.with_columns(weights=pl.lit("turn"))], how="diagonal")
    last = above.filter(pl.col("step") == pl.col("step").max().over("run"))
    grown = last.pivot("weights", index=["run", "layer"], values="median", maintain_order=True)
    ahead = grown.filter(pl.col("values") > pl.max_horizontal("keys", "queries"))
    heads = pl.col("run").replace_strict(CONTROLS, return_dtype=pl.String)
    return plots.figure(
        plots.grid(panels, above["layer"].n_unique(), spacing=12),
        data,
        f"Values end with the largest norm in {ahead.filter(run=LAYERS).height} of {grown.filter(run=LAYERS).height} "
        "layers",
        f"Medians over {plots.count(above['n'], 'model')}; bands (norms) and bars (turns) from the least to the most",
        told="Norms at the end: "
        + plots.tell(last.with_columns(heads), "{run}, layer {layer}, {weights}: {median:.2g}")
        + ".",
    )


def _course(frame: pl.DataFrame, value: str, keys: list[str]) -> pl.DataFrame:
    column = pl.col(value)
    return frame.group_by(keys, maintain_order=True).agg(
        column.median().alias("median"), column.min().alias("least"), column.max().alias("most"), n=pl.len()
    )
