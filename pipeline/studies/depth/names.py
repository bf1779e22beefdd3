"""Runs, datasets and labels that the code of this study names: what claims, figures and comparisons speak of."""

from __future__ import annotations

# Runs by task and number of layers.
MEMORIZATION = {1: "depth-sc-l1", 2: "depth-sc-l2"}
REASONING = {1: "depth-ic-qa-l1", 2: "depth-ic-qa-l2"}
GENERALIZATION = {1: "depth-tm-l1", 2: "depth-tm-l2"}
CONTEXTUAL = {layers: f"depth-ic-tm-l{layers}" for layers in (1, 2, 3, 4)}
CONTEXTUAL_PUBLISHED = {layers: f"depth-ic-tm-l{layers}-published" for layers in (2, 3, 4)}
TWO_LAYERS_HEADS = "depth-ic-tm-l2-heads"  # 2 l heads in the last layer, as in Theorem 6
SIZES = "depth-sc-sizes"  # more sequences than the width, in a corpus for each number
FROZEN = {MEMORIZATION[1]: "depth-sc-l1-frozen", SIZES: "depth-sc-sizes-frozen"}  # attention that stays as it starts
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
HEADS = {  # Figures 4 to 6: runs by task and heads of each layer
    "sc": {"1": MEMORIZATION[1], "2": "depth-sc-heads2", "4": "depth-sc-heads4", "8": "depth-sc-heads8"},
    "ic_qa": {
        "1, 1": REASONING[2],
        "2, 1": "depth-ic-qa-heads21",
        "1, 2": "depth-ic-qa-heads12",
        "2, 2": "depth-ic-qa-heads22",
        "4, 4": "depth-ic-qa-heads44",
    },
    "tm": {
        "1, 1": GENERALIZATION[2],
        "2, 1": "depth-tm-heads21",
        "1, 2": "depth-tm-heads12",
        "2, 2": "depth-tm-heads22",
        "4, 4": "depth-tm-heads44",
    },
}
ONE_HEAD = "1, 1"  # in each of two layers: what other settings of heads are compared with
EXAMPLES = {  # Figure 7: runs by the number k of examples and heads of each layer
    3: {"1, 1, 1": "depth-ic-tm-k3-heads111", "1, 1, 1, 1": "depth-ic-tm-k3-heads1111"},
    4: {
        "1, 1, 1": "depth-ic-tm-k4-heads111",
        "1, 1, 2": "depth-ic-tm-k4-heads112",
        "1, 1, 4": "depth-ic-tm-k4-heads114",
        "1, 1, 1, 1": "depth-ic-tm-k4-heads1111",
    },
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
OUTPUTS, CONTEXT = "outputs", "context"  # what the largest score is taken of, in the table accuracy
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
    *(run for runs in HEADS.values() for run in runs.values()),
    *(run for runs in EXAMPLES.values() for run in runs.values()),
)
DATASETS = tuple(SHOWN.values())
# Checks of these carry claims 7 and 8.
THEORY = ("depth-one-layer", "depth-impossibility", "depth-reasoning", "depth-generalization", "depth-contextual")
