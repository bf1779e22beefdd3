"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

STRINGS, LONG, INPUTS = "flipflop-strings", "flipflop-long", "flipflop-inputs"
BASE, FACTORIAL, GENERATIVE = "flipflop-base", "flipflop-factorial", "flipflop-generative"
LSTM, LSTM_LONG = "flipflop-lstm", "flipflop-lstm-long"
MIDDLE, MIDDLE_MIXTURE = "flipflop-middle", "flipflop-middle-mixture"
MIDDLE_SINE, MIDDLE_EMBED_HALF, MIDDLE_SHARP = "flipflop-middle-sin", "flipflop-middle-emb05", "flipflop-middle-entropy"
MIXTURE, FRESH, EPOCHS = "flipflop-mixture", "flipflop-fresh", "flipflop-epochs"
FRESH_10, EPOCHS_10 = "flipflop-fresh10", "flipflop-epochs10"  # ten times as much
SINE, ALIBI, NO_POSITIONS = "flipflop-sin", "flipflop-alibi", "flipflop-none"
PLAIN = ("learned", "sin", "none")  # positions that are in the inputs, so that scores are products of two of these
EMBED_HALF = "flipflop-emb05"
SHARP = {"entropy": "flipflop-entropy", "l-infinity": "flipflop-linf", "l2": "flipflop-l2norm"}
# A penalty that rises while models train, and one that is there from the start, which leads into bad minima.
LINEAR, LINEAR_SHARP = "flipflop-linear-plain", "flipflop-linear-entropy-rising"
ONE, ONE_SHARP = "flipflop-one-plain", "flipflop-one-entropy-rising"
_KINDS = {"entropy": "entropy", "l-infinity": "linf", "l2": "l2"}
LINEAR_RISING = {kind: f"flipflop-linear-{short}-rising" for kind, short in _KINDS.items()}
ONE_RISING = {kind: f"flipflop-one-{short}-rising" for kind, short in _KINDS.items()}
# Where half of the symbols are no-ops, and where nine tenths are: without penalty, and with each from the start.
LINEAR_ARMS = {
    "0.5": (LINEAR, {kind: f"flipflop-linear-{short}" for kind, short in _KINDS.items()}),
    "0.9": ("flipflop-linear-plain9", {kind: f"flipflop-linear-{short}9" for kind, short in _KINDS.items()}),
}
ONE_ARMS = {
    "0.5": (ONE, {kind: f"flipflop-one-{short}" for kind, short in _KINDS.items()}),
    "0.9": ("flipflop-one-plain9", {kind: f"flipflop-one-{short}9" for kind, short in _KINDS.items()}),
}
SWITCH, SWITCH_CONTEXT = "flipflop-switch", "flipflop-switch-context"
STANDINS = {
    "flipflop-standin-32": "1 layer, width 32",
    "flipflop-standin-64": "2 layers, width 64",
    "flipflop-standin-128": "4 layers, width 128",
}
PRETRAINED = "pretrained"  # no run: models that somebody has in a folder
MANY, MANY_SHARP, MANY_FIRST = "flipflop-many-plain", "flipflop-many-entropy", "flipflop-many-first"
# One factor at a time: what it is called, and the runs that differ from the baseline in it alone.
SIZES = {
    "layers": ("depth", ("flipflop-l1", "flipflop-l2", "flipflop-l4", "flipflop-l8")),
    "width": ("width", ("flipflop-d16", "flipflop-d64", "flipflop-d128", "flipflop-d256", "flipflop-d1024")),
    "heads": ("the number of heads", ("flipflop-h2", "flipflop-h4", "flipflop-h8", "flipflop-h16")),
}
OPTIMISERS = (
    "flipflop-rate",
    "flipflop-rate-low",
    "flipflop-rate-high",
    "flipflop-beta1",
    "flipflop-beta1-095",
    "flipflop-beta2",
    "flipflop-beta2-099",
    "flipflop-batch8",
    "flipflop-batch32",
    "flipflop-batch64",
)

# How figures and tables call families of configurations.
FAMILIES = {
    "baseline": "baseline",
    "middle": "middle-sized",
    "lstm": "LSTM",
    "data": "rare sequences in training",
    "scale_data": "more fresh data",
    "scale_epochs": "more epochs",
    "scale_size": "size",
    "wd": "weight decay",
    "dropout_attn": "attention dropout",
    "dropout_ff": "MLP dropout",
    "dropout_emb": "embedding dropout",
    "position": "positions",
    "activation": "activation",
    "sharpen": "sharpened attention",
    "optimiser": "optimiser",
    "combo": "combination",
    "generative": "generative loss",
    "seeds": "seeds",
    "symbols": "four symbols",
}

# Parameters that lack one of these are refused at the start.
RUNS = (
    BASE,
    LSTM,
    LSTM_LONG,
    FACTORIAL,
    GENERATIVE,
    MIXTURE,
    FRESH,
    EPOCHS,
    FRESH_10,
    EPOCHS_10,
    SINE,
    ALIBI,
    NO_POSITIONS,
    EMBED_HALF,
    *SHARP.values(),
    MIDDLE,
    MIDDLE_MIXTURE,
    MIDDLE_SINE,
    MIDDLE_EMBED_HALF,
    MIDDLE_SHARP,
    MANY,
    MANY_SHARP,
    MANY_FIRST,
    *LINEAR_RISING.values(),
    *ONE_RISING.values(),
    *STANDINS,
    *OPTIMISERS,
    *(run for _, runs in SIZES.values() for run in runs),
    *(run for arms in (LINEAR_ARMS, ONE_ARMS) for plain, sharp in arms.values() for run in (plain, *sharp.values())),
)
DATASETS = (STRINGS, LONG, INPUTS, SWITCH, SWITCH_CONTEXT)
THEORY = (
    "flipflop-machines",
    "flipflop-lstm",
    "flipflop-parser",
    "flipflop-gadgets",
    "flipflop-attention",
    "flipflop-prediction",
    "flipflop-addition",
)
