"""Runs, datasets, checks and labels that the code of this study names: what claims, figures and contrasts speak of."""

from __future__ import annotations

# Runs by task and number of layers.
MEMORIZATION = {1: "depth-sc-l1", 2: "depth-sc-l2"}
REASONING = {1: "depth-ic-qa-l1", 2: "depth-ic-qa-l2"}
GENERALIZATION = {1: "depth-tm-l1", 2: "depth-tm-l2"}
CONTEXTUAL = {layers: f"depth-ic-tm-l{layers}" for layers in (1, 2, 3, 4)}
CONTEXTUAL_PUBLISHED = {layers: f"depth-ic-tm-l{layers}-published" for layers in (2, 3, 4)}
TWO_LAYERS_HEADS = "depth-ic-tm-l2-heads"  # 2 l heads in the last layer, as in Theorem 6
SIZES = "depth-sc-sizes"  # more sequences than the width, in a corpus for each number
FROZEN = {
    MEMORIZATION[1]: "depth-sc-l1-frozen",
    SIZES: "depth-sc-sizes-frozen",
}  # attention that stays as it starts
SOFTMAX = {"ic_qa": "depth-ic-qa-l2-softmax", "tm": "depth-tm-l2-softmax"}
CONTEXTUAL_ADAM = {layers: f"depth-ic-tm-l{layers}-adam" for layers in (2, 3)}
ONE_LAYER = {  # from the start from which one layer memorizes
    "ic_qa": "depth-ic-qa-l1-uniform",
    "tm": "depth-tm-l1-uniform",
    "ic_tm": "depth-ic-tm-l1-uniform",
}
TWO_PAIRS = "depth-ic-qa-l2-k2"  # as many pairs as the probes of Figure 3 have
PROBES = {  # Figure 3 and section 6.2, and one of three layers: the run that is asked, and the sequence
    "A=1B=2A=": TWO_PAIRS,
    "A=1B=2B=": TWO_PAIRS,
    "AAB=": GENERALIZATION[2],
    "ABB=": GENERALIZATION[2],
    "AAB=1ABA=2CCD=": CONTEXTUAL[3],
}
# What Figure 7 compares: a name, the run whose steps are divided, and the run by whose steps.
RATIOS = {
    "four layers against three": (CONTEXTUAL[4], CONTEXTUAL[3]),
    "four layers against three, published start": (CONTEXTUAL_PUBLISHED[4], CONTEXTUAL_PUBLISHED[3]),
    "three layers with Adam against SGD": (CONTEXTUAL_ADAM[3], CONTEXTUAL[3]),
    "heads 1, 1, 2 against 1, 1, 1 at k = 4": ("depth-ic-tm-k4-heads112", "depth-ic-tm-k4-heads111"),
    "heads 1, 1, 4 against 1, 1, 1 at k = 4": ("depth-ic-tm-k4-heads114", "depth-ic-tm-k4-heads111"),
    "four layers against three at k = 4": ("depth-ic-tm-k4-heads1111", "depth-ic-tm-k4-heads111"),
    "four layers against three at k = 3": ("depth-ic-tm-k3-heads1111", "depth-ic-tm-k3-heads111"),
}
SHOWN = {  # the dataset from which a task is shown
    "sc": "depth-sc",
    "ic_qa": "depth-ic-qa",
    "tm": "depth-tm",
    "ic_tm": "depth-ic-tm",
    "nested": "depth-nested",
}

# The split by which a task is judged (claims 1 to 4): what was to be memorized, else what training never showed.
JUDGED = {"sc": "train", "ic_qa": "fresh", "tm": "unseen_combination", "ic_tm": "fresh", "nested": "fresh"}
IN_CONTEXT = "ic_tm"  # solved from a lower accuracy than the others (claim 4)
LIKENESS = {layer: f"likeness of layer {layer} to the construction, tm" for layer in (1, 2)}
TRAINED, CONSTRUCTED = "trained", "constructed"  # sources of attention maps

# A parameter file must have all of these.
RUNS = (
    *(run for depths in (MEMORIZATION, REASONING, GENERALIZATION, CONTEXTUAL) for run in depths.values()),
    *CONTEXTUAL_ADAM.values(),
    *CONTEXTUAL_PUBLISHED.values(),
    TWO_LAYERS_HEADS,
    SIZES,
    *FROZEN.values(),
    *SOFTMAX.values(),
    *ONE_LAYER.values(),
    TWO_PAIRS,
    *(run for pair in RATIOS.values() for run in pair),
)
DATASETS = tuple(SHOWN.values())
# Claims 7 and 8 read the checks of these, by their names.
THEORY = (
    "depth-one-layer",
    "depth-impossibility",
    "depth-reasoning",
    "depth-generalization",
    "depth-contextual",
)
