"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

STRINGS, LONG, INPUTS = "flipflop-strings", "flipflop-long", "flipflop-inputs"
BASE, LSTM, FACTORIAL, GENERATIVE = (
    "flipflop-base",
    "flipflop-lstm",
    "flipflop-factorial",
    "flipflop-generative",
)
MIXTURE, FRESH, EPOCHS = "flipflop-mixture", "flipflop-fresh", "flipflop-epochs"
SINE, EMBED, EMBED_HALF = "flipflop-sin", "flipflop-emb01", "flipflop-emb05"
SHARP = {"entropy": "flipflop-entropy", "l-infinity": "flipflop-linf", "l2": "flipflop-l2norm"}
LINEAR, LINEAR_SHARP = "flipflop-linear-plain", "flipflop-linear-entropy"
LINEAR_RARE, LINEAR_RARE_SHARP = "flipflop-linear-plain9", "flipflop-linear-entropy9"
ONE, ONE_SHARP = "flipflop-one-plain", "flipflop-one-entropy"
SWITCH, SWITCH_CONTEXT = "flipflop-switch", "flipflop-switch-context"
STANDINS = {
    "flipflop-standin-32": "1 layer, width 32", "flipflop-standin-64": "2 layers, width 64",
    "flipflop-standin-128": "4 layers, width 128",
}  # fmt: skip
MANY, MANY_SHARP, MANY_FIRST = "flipflop-many-plain", "flipflop-many-entropy", "flipflop-many-first"

# How figures and tables call families of configurations.
FAMILIES = {
    "baseline": "baseline", "middle": "middle-sized", "lstm": "LSTM", "data": "rare sequences in training",
    "scale_data": "more fresh data", "scale_epochs": "more epochs", "scale_size": "size", "wd": "weight decay",
    "dropout_attn": "attention dropout", "dropout_ff": "MLP dropout", "dropout_emb": "embedding dropout",
    "position": "positions", "activation": "activation", "sharpen": "sharpened attention", "optimiser": "optimiser",
    "combo": "combination", "generative": "generative loss", "seeds": "seeds", "symbols": "four symbols",
}  # fmt: skip

# Parameters that lack one of these are refused at the start.
RUNS = (
    BASE, LSTM, FACTORIAL, GENERATIVE, MIXTURE, FRESH, EPOCHS, SINE, EMBED, EMBED_HALF, *SHARP.values(), LINEAR,
    LINEAR_SHARP, LINEAR_RARE, LINEAR_RARE_SHARP, ONE, ONE_SHARP, MANY, MANY_SHARP, MANY_FIRST, *STANDINS,
)  # fmt: skip
DATASETS = (STRINGS, LONG, INPUTS, SWITCH, SWITCH_CONTEXT)
THEORY = (
    "flipflop-machines", "flipflop-lstm", "flipflop-parser", "flipflop-gadgets", "flipflop-attention",
    "flipflop-prediction", "flipflop-addition",
)  # fmt: skip
