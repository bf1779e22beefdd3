"""The claims of the parallel study (chapter section 6; Li 2025, chapter 4). Those from 38 on are our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import evidence, verdicts
from pipeline.studies.parallel.claims import learning, tables, theory, translation

if TYPE_CHECKING:
    from pipeline.kit.results import Results

# Each claim as a reader of the thesis would say it.
STATEMENTS = {
    "1": "The more positions are masked, the smaller is the asymptotic error of pseudolikelihood.",
    "2": "At equal training size the error falls with the number of masked positions, for both targets.",
    "3": "With enough samples the squared error is what asymptotics say.",
    "4": "Masking more does not always improve strictly: for couplings without fields three of four are enough.",
    "5": "At weak couplings the effect of masking more is one of drawing a single mask of k positions for each sample.",
    "6": "At the truth the second derivatives of the loss are the covariance of its scores.",
    "7": "Masking more is better, in every direction.",
    "8": "The error is at most the Poincaré constant of the block dynamics with the same masks times that of the MLE.",
    "9": "Where masks depend on the data, which mask was drawn must be in the condition.",
    "10": "k-Gibbs mixes at least k times as fast as 1-Gibbs.",
    "11": "Entropy decays at the rate that approximate tensorisation gives, which is half of the printed one.",
    "12": "On strongly ferromagnetic models k-Gibbs reaches the mode, and independent parallel sampling is stuck.",
    "13": "The larger k, the fewer steps k-Gibbs takes to the larger mode.",
    "14": "The larger the coupling, the more steps are taken.",
    "15": "From J = 4 on independent parallel sampling misses the larger mode within the budget; at J = 3 some runs "
    "arrive, below all.",
    "16": "At strong coupling masks smaller than the clique are stuck as well; masks of its size are not.",
    "17": "For masks that can hold the clique the time saturates as the coupling grows.",
    "18": "A Transformer that decodes in parallel can be every product kernel and every deterministic map.",
    "19": "What a product law loses on a step of k-Gibbs is at least its total correlation.",
    "20": "On Ising models independent parallel sampling has a stationary law, and it is another than the target.",
    "21": "Of single positions and of pairs, pairs that fit strongly coupled blocks are best in the worst direction.",
    "22": "The joint law is as near as the conditional losses say, up to what samples and masks cost.",
    "23": "On WMT parallel decoding loses 0.8 SacreBLEU and two BLEURT; more passes buy readability: as printed.",
    "24": "Word by word the stand-in is translated validly and without stutter, whatever its dependence.",
    "25": "In one parallel pass fewer translations are valid, the more target tokens depend on each other.",
    "26": "What parallel decoding loses against its twin rises with the total correlation of the target, as trained.",
    "27": "At alpha = 0.5 refinement makes more translations valid and lessens stutter, and four passes are enough.",
    "28": "Parallel decoding stutters more than decoding word by word, at least twice as often.",
    "29": "Distilled targets make one parallel pass far better.",
    "30": "Hiding 85 % of the target in training makes more translations valid in few passes than hiding 40 %.",
    "31": "Positional attention helps.",
    "32": "Training on two stages is better than on one.",
    "33": "Self-attention of the decoder does not tell stutter from other neighbours: on average it is no larger.",
    "34": "Neighbours that stutter look at the same of the source more than others do, and training has made it so.",
    "35": "Tokens of one word look at the same of the source.",
    "36": "Parallel decoding takes a third of the passes of the decoder, or fewer.",
    "37": "Where all translations are in the data, the best guess of each position by itself is never valid.",
    "38": "A search for the constant of approximate tensorisation, a lower bound, finds the Poincaré constant.",
    "39": "Pseudolikelihood of Ising models is convex.",
    "40": "The faster block dynamics mix on the data, the better do the same masks train a small masked Transformer "
    "and sample from it.",
    "41": "What the text does against stutter, remasking and taking out repeated tokens, makes translations shorter, "
    "and better.",
}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    checks = context.theory()
    gates: list[verdicts.Gate] = []
    for claim, parts in theory.PARTS.items():
        gates += evidence.part_gates(checks, claim, parts)
    gates += tables.gates(context)
    gates += learning.gates(context)
    gates += translation.gates(context)
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
