"""The claims of the flip-flop study (chapter section 6; Liu 2024, section 3.5)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.studies.flipflop.claims import (
    arithmetic,
    autopsy,
    controls,
    glitches,
    language_models,
    simulation,
    theory,
)

# Each claim as a reader of the thesis would say it.
STATEMENTS = {
    "1": "A small LSTM learns the flip-flop language without a single error, on rare sequences as well.",
    "2": "Transformers fit the training language.",
    "3": "Transformers that fit the training language still make errors on rarer sequences of it: glitches.",
    "4": "There are glitches on sparse and on dense sequences.",
    "5": "Transformers err more than LSTMs.",
    "6": "Glitches have a long, irregular tail: models that differ in their seed alone differ widely.",
    "7": "Progress on rare sequences is erratic: errors rise again between checkpoints.",
    "8": "Rare sequences in training remove almost all glitches.",
    "9": "More data or more epochs help on sparse sequences, less than rare sequences do, and not on dense ones.",
    "10": "Depth, width and heads have no monotone effect.",
    "11": "Embedding dropout of one half reduces errors on sparse sequences tenfold (printed: hundredfold), and "
    "removes them of few models.",
    "12": "Position encodings that are not trained help on dense sequences.",
    "13": "Attention sharpening reduces errors to a third (printed: by an order of magnitude).",
    "14": "Without rare sequences in training most configurations leave errors.",
    "15": "Both the order of data and the initial weights matter.",
    "16": "Models of all next tokens learn the training language, and have glitches as well.",
    "17": "The settings of the optimiser do not change extrapolation much.",
    "18": "Sharpened attention looks at fewer places, and errs all the same.",
    "19": "With linear positions attention drifts away from the last write as inputs grow.",
    "20": "Sharpening leads into bad minima (models with errors on inputs like those of training), more often "
    "where writes are frequent.",
    "21": "Raw attention maps mislead: weighted by values, they point at writes of the right type more often.",
    "22": "The constructions are exact, the bounds and closed forms hold.",
    "23": "The numbers that the text prints agree with each other.",
    "24": "Transformers do not work like n-grams: they err where n-grams do not, and the other way round.",
    "25": "Language models that read stories do worse as the light switch is further back.",
    "26": "Where a model errs, stale bits outvote the last write in its last layer, and what the write says is intact.",
    "27": "In models of several layers a penalty leaves one head that looks at the last write, and parameter "
    "matrices of smaller norm.",
}
# What the abstract and the introduction of the paper, and its results R1 to R8, say first, each with the claims that
# test it: these are decided at quick.
HEADLINES = {
    "Transformers that fit the language have a long tail of sporadic errors (R1)": ("2", "3"),
    "a small recurrent model has none (R2)": ("1", "5"),
    "training on rare sequences removes almost all of them (R4)": ("8",),
    "some choices of the algorithm reduce them (R6)": ("12",),
    "sharpened attention is hard attention, and errors persist (R8)": ("18",),
    "and it drifts away from what has to be remembered (R8)": ("19",),
}
PARTS = (glitches, controls, simulation, theory, arithmetic, language_models, autopsy)


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    gates = [gate for part in PARTS for gate in part.gates(context)]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
