"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

SEQUENCES = "selfsup-sequences"
ONE_LAYER, TWO_LAYERS = "selfsup-layers1", "selfsup-layers2"
CONSTRUCTION = "selfsup-construction"
ACCURACY = "selfsup-accuracy"
LABELS = {ONE_LAYER: "1 layer", TWO_LAYERS: "2 layers"}

# Parameters that lack one of these are refused at the start.
RUNS = tuple(LABELS)
DATASETS = (SEQUENCES,)
THEORY = (CONSTRUCTION,)
