"""Figure 2.1: Gram matrices of embeddings, and those from initial embeddings of unit size before and after training."""

from __future__ import annotations

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import Panel, maps
from pipeline.studies.topic.names import ALL, ALL_SGD_CE, ALL_SGD_SQ, ONLY_CE, ONLY_SGD_CE, ONLY_SGD_SQ, ONLY_SQ, UNIT

WORDS = 10
AXES = ("word", "word")


@plots.drawn("Inner products of trained embeddings")
def gram(context: Results) -> Figure:
    """Figure 2.1: inner products of embeddings after training, for both losses, optimisers and ways to train."""
    panels = [
        Panel("embeddings alone, cross-entropy, SGD", ONLY_SGD_CE, "ce", "Gram"),
        Panel("everything, cross-entropy, SGD", ALL_SGD_CE, "ce", "Gram"),
        Panel("embeddings alone, cross-entropy, Adam", ONLY_CE, "ce", "Gram"),
        Panel("everything, cross-entropy, Adam", ALL, "ce", "Gram"),
        Panel("embeddings alone, squared, SGD", ONLY_SGD_SQ, "sq", "Gram"),
        Panel("everything, squared, SGD", ALL_SGD_SQ, "sq", "Gram"),
        Panel("embeddings alone, squared, Adam", ONLY_SQ, "sq", "Gram"),
        Panel("everything, squared, Adam", ALL, "sq", "Gram"),
    ]
    return maps(context.table("matrices"), panels, "Inner products of embeddings", WORDS, AXES)


@plots.drawn("Inner products before and after training")
def gram_start(context: Results) -> Figure:
    """Embeddings that start at unit size: their Gram matrix is diagonal before training, and stays so."""
    panels = [
        Panel("unit size, before training", UNIT, "ce", "Gram_init"),
        Panel("unit size, after training", UNIT, "ce", "Gram"),
        Panel("size 0.02, before training", ALL, "ce", "Gram_init"),
        Panel("size 0.02, after training", ALL, "ce", "Gram"),
    ]
    return maps(context.table("matrices"), panels, "Inner products, cross-entropy, Adam", WORDS, AXES)
