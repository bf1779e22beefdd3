"""EXP-4: attention maps, trained beside constructed (Chen and Zou 2024, Figure 3 and section 6.2; DEP-A1)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.attention_maps import QUERY, attention_map
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.depth.figures.common import shape_name
from pipeline.studies.depth.names import CONSTRUCTED, GENERALIZATION, PROBES, TRAINED, TWO_PAIRS

CELL = 24  # pixels of one weight
NOTES = (
    "One trained model beside the construction. Weights are relative to the largest of each map",
    "Of the last layer, its last query alone, which is all that is read",
)
START = "at the start"
LAYER = pl.col("layer")
LOOKS = {START: Look(charts.GREY, shape="diamond"), TRAINED: Look(charts.BLUE)}
COLUMNS = ("probe", "run", "source", "replica", "learned", "layer", "query", "key", "query_token", "key_token")


@plots.drawn("Attention on reasoning probes (Figure 3)")
def fig3(context: Results) -> Figure:
    """Figure 3: a two-layer model on reasoning probes."""
    return _maps(context, TWO_PAIRS, "reasoning probes (Figure 3)")


@plots.drawn("Attention on template probes (section 6.2)")
def fig3b(context: Results) -> Figure:
    """A two-layer model on template probes (section 6.2)."""
    return _maps(context, GENERALIZATION[2], "template probes (section 6.2)")


def _maps(context: Results, run: str, name: str) -> Figure:
    """Draw a row per probe: maps of both layers, of one trained model and of the construction."""
    probes = [probe for probe, of in PROBES.items() if of == run]
    table = plots.some(context.table("attention").filter(pl.col("probe").is_in(probes)))
    first = (pl.col("replica") == pl.col("replica").first().over("probe", "source")) | pl.col("replica").is_null()
    largest = pl.col("weight").max().over("probe", "source", "layer")
    data = table.filter(first).select(
        *COLUMNS, "weight", share=pl.when(largest > 0).then(pl.col("weight") / largest).otherwise(0.0)
    )
    data = data.sort("probe", "layer", "source", "query", "key")
    rows = [_row(data.filter(probe=probe), probe) for probe in probes if probe in data["probe"]]
    inside = _inside(data)
    weight = _range(inside["inside"], ".0f")
    return plots.figure(
        plots.grid(rows, 1),
        data,
        f"The last query puts {weight} % of its weight where the construction reads, on {name}",
        *NOTES,
        told=plots.tell(inside, "{probe}: {inside:.0f} % of the weight where the construction reads") + ".",
    )


def _row(data: pl.DataFrame, probe: str) -> plots.Panel:
    maps = [_map(part, probe, source) for layer in plots.split(data, "layer") for source, part in _by_source(layer[1])]
    return alt.hconcat(*maps, spacing=22, title=alt.TitleParams(probe, fontSize=14, offset=4))


def _by_source(data: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(source, part) for source in (TRAINED, CONSTRUCTED) if (part := data.filter(source=source)).height]


def _map(data: pl.DataFrame, probe: str, source: str) -> plots.Panel:
    """Draw a map, keys below each other, queries beside each other, as in the columns of the paper."""
    words = [f"layer {data['layer'][0]},", source if data["learned"].all() else f"{source}, unsolved"]
    queries = data["query"].unique().sort().to_list()
    drawn = attention_map(data, probe, CELL, columns=QUERY, queries=queries, shade="share", title="weight")
    return drawn.properties(title=alt.TitleParams(words, fontSize=charts.SIZE, fontWeight="normal", offset=4))


def _inside(data: pl.DataFrame) -> pl.DataFrame:
    """Return, of each probe, the per cent of the last query's trained weight that lie where the constructed does."""
    deepest, latest = (pl.col(name) == pl.col(name).max().over("probe") for name in ("layer", "query"))
    last = data.filter(deepest, latest)
    read = last.filter(pl.col("share") > 0, source=CONSTRUCTED).select("probe", "key", read=True)
    trained = last.filter(source=TRAINED).join(read, on=["probe", "key"], how="left")
    within = pl.col("weight").filter(pl.col("read").is_not_null()).sum() / pl.col("weight").sum()
    return trained.group_by("probe", maintain_order=True).agg(inside=100 * within)


@plots.drawn("Agreement of trained with constructed attention")
def agreement(context: Results) -> Figure:
    """Cosine of trained and constructed attention, layer by layer, before and after training."""
    shown = pl.col("experiment").is_in(["exp-1", "exp-5", "ablation"])
    table = plots.some(context.table("agreement").filter(shown & pl.col("cosine").is_not_null()))
    known = context.table("runs").select("run", "init", "optimizer", "readout").unique()
    ended = context.table("summary").select("run", "lr", "replica", "learned")
    table = table.join(known, on="run", how="left", maintain_order="left")
    table = table.join(ended, on=("run", "lr", "replica"), how="left", maintain_order="left")
    named = pl.struct("task", "heads", "init", "optimizer").map_elements(shape_name, return_dtype=pl.String)
    table = table.with_columns(named.alias("name"))
    more = [  # where runs of one name differ in it
        pl.when(pl.col(column).n_unique().over("name") > 1).then(pl.format(words, column)).otherwise(pl.lit(""))
        for column, words in (("k", ", k={}"), ("readout", ", classifier {}"))
    ]
    index = ["where", "run", "task", "init", "layers", "layer", "head", "replica", "learned"]
    where = pl.format("{}{}{}: layer {}", "name", *more, "layer").alias("where")
    long = table.with_columns(where).rename({"cosine_start": START, "cosine": TRAINED})
    long = long.unpivot([START, TRAINED], index=index, variable_name="when", value_name="cosine")
    data = long.sort("task", "layers", "run", "layer", "head", "replica", "when")
    by = Kinds("when", LOOKS)
    x = Axis("cosine", "cosine (one mark per head and model)", domain=[-0.02, 1.02], values=charts.UNIT)
    y = Axis("where", None, "N", order=data["where"].unique(maintain_order=True).to_list(), more={"grid": True})
    marks = plots.points(data, x, y, by, hollow="learned", tips=("replica", "head"), opacity=0.8)
    learned = data.filter("learned")
    medians = learned.group_by("where", "when", maintain_order=True).agg(pl.median("cosine"))
    ends = learned.filter(pl.col("init") != "random", when=TRAINED).group_by("where", "layer").agg(pl.median("cosine"))
    first, later = (_range(ends.filter(place)["cosine"], ".2f") for place in (LAYER == 1, LAYER > 1))
    return plots.figure(
        marks,
        data,
        f"First layers stay near the construction that they start from (cosine {first}), later ones end at {later}"
        if ends.height
        else "Trained attention beside its construction, where no model learned its task",
        "Mean cosine of attention matrices over test sequences; of the last layer, of its last query",
        "First layers start from their construction (R1), unless the run is one of random starts",
        "In the title: medians of models that learned, without random starts",
        f"{plots.count(data.group_by('where').agg(pl.col('replica').n_unique())['replica'], 'model')} of each run; "
        "hollow: models that did not learn their task",
        told=f"Medians of models that learned: {plots.tell(medians, '{where}, {when}: {cosine:.2f}')}.",
        width=290,
        height=alt.Step(22),
    )


def _range(values: pl.Series, form: str) -> str:
    """Return the least and the most of ``values`` in words: ``0.15 to 0.78``."""
    low, high = format(plots.least(values), form), format(plots.most(values), form)
    return low if low == high else f"{low} to {high}"
