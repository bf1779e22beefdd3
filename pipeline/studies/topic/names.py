"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

SEQUENCES = "topic-sequences"
ONE_LAYER, TWO_LAYERS = "topic-layers1", "topic-layers2"
CONSTRUCTION = "topic-construction"
LABELS = {ONE_LAYER: "1 layer", TWO_LAYERS: "2 layers"}

# Parameters that lack one of these are refused at the start.
RUNS = tuple(LABELS)
DATASETS = (SEQUENCES,)
THEORY = (CONSTRUCTION,)
