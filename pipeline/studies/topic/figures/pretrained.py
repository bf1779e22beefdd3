"""Figure 2.3, and Table 2.3 drawn, of encoders that were trained elsewhere."""

from __future__ import annotations

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import cosines, means

NONE = "not tested: needs the extra of requirements-pretrained.txt, and an encoder named in `measured`"


@plots.drawn("Cosines of embeddings of the published words: another encoder")
def pretrained_words(context: Results) -> Figure:
    """Figure 2.3: cosines between embeddings of the published words, in encoders that the source did not measure."""
    table = plots.some(context.table("word_map"), NONE)
    labels = {name: own.label for name, own in context.entry.encoders.items()}
    panels = [
        (f"{labels[run]}: {embedding}", run, "pretrained", embedding)
        for run in table["run"].unique(maintain_order=True)
        for embedding in ("word table", "layer output")
    ]
    return cosines(table, panels)


@plots.drawn("Words of a topic and of different topics: another encoder")
def pretrained_kinships(context: Results) -> Figure:
    """Table 2.3 of encoders that the source did not measure, on the Python language reference: means over same-topic
    and different-topic pairs of words, by ambiguity threshold; each word belongs to one topic."""
    table = plots.some(context.table("kinship").filter(phi="lda", assign="one"), NONE)
    models = {"pretrained": "trained elsewhere", "pretrained, before training": "random weights"}
    measures = {name: name for name in ("cosine, layer output", "cosine, word table", "attention, debiased")}
    return means(table, models, measures)
