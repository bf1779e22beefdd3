"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

SEQUENCES = "distillation-sequences"
ONE_LAYER, TWO_LAYERS = "distillation-layers1", "distillation-layers2"
CONSTRUCTION = "distillation-construction"
# Theory checks of sparse parity.
SPARSE_PARITY = (
    "distillation-majority", "distillation-stages", "distillation-complexity", "distillation-definitions",
)  # fmt: skip
LABELS = {ONE_LAYER: "1 layer", TWO_LAYERS: "2 layers"}

# Parameters that lack one of these are refused at the start.
RUNS = tuple(LABELS)
DATASETS = (SEQUENCES,)
THEORY = (CONSTRUCTION, *SPARSE_PARITY)
