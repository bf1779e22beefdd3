"""The claims of the automata study (chapter section 6; Liu 2024, chapter 3)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.studies.automata.claims import depth, robustness, stabilisers, theory

# Each claim as a reader of the thesis would say it.
STATEMENTS = {
    "1": "The constructions simulate their automata without an error, where they are executed in their corrected form.",
    "2": "Prefix composition has logarithmic depth; solvable groups and the gridworld need a depth "
    "that no length changes.",
    "3": "The construction for groups succeeds on the solvable ones.",
    "4": "Measured sizes of the constructions stay within the claimed bounds, except for bounds that are errata.",
    "5": "Printed forms that do not work have an input on which they fail, or a bound that they break.",
    "6": "Algorithm 1 finds the state of the gridworld from prefix sums alone.",
    "7": "One or two layers learn bounded Dyck and the small gridworld.",
    "8": "The large gridworld needs a second layer.",
    "9": "On groups that do not commute accuracy grows with depth.",
    "10": "At equal depth automata without groups are learned better than D8, and D8 better than Q8.",
    "11": "Some depth learns every one of the 19 tasks.",
    "12": "Harder algebra needs more layers.",
    "13": "Accuracies by task and depth have the published order.",
    "14": "Training is unstable: the best of several models is right, and most of them are far from it.",
    "15": "The noise of evaluation is small.",
    "16": "An LSTM counts modulo 2 without an error at every probability of ones and every length.",
    "17": "A Transformer that counts modulo 2 fails where ones are more, or fewer, than in training.",
    "18": "A Transformer that counts modulo 2 fails at lengths beyond training.",
    "19": "A scratchpad with a recency bias is right at every probability and length.",
    "20": "A scratchpad without recency bias generalises to longer inputs no better than a plain Transformer.",
    "21": "A Transformer that learned bounded Dyck fails at twice the length, an LSTM does not.",
    "22": "Shifted positions, or none, generalise better to longer inputs than plain ones.",
    "23": "Low counts of ones fail more than high ones.",
    "24": "Where most labels are hidden, an LSTM learns all the same, and a Transformer does not.",
    "25": "Transformers and LSTMs learn automata whose states are seen through a map.",
    "26": "Gridworld models have heads that look at visits to a boundary, and heads that spread evenly.",
    "27": "Linear positions generalise better to longer inputs of the gridworld than sinusoidal ones.",
    "28": "Dropout helps on dihedral groups and harms on bounded Dyck.",
    "29": "Which counts were seen in training predicts at which numbers of ones a Transformer fails.",
    "30": "Moving averages of weights are more accurate than the weights, and their decay hardly matters.",
    "31": "Sinusoidal positions learn abab better than linear ones.",
    "32": "Bounded Dyck and the gridworlds need no more than two layers.",
}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    gates = [gate for part in (theory, depth, stabilisers, robustness) for gate in part.gates(context)]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
