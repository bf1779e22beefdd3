"""The claims of the verifier study (chapter section 6; Li 2025, chapter 3). 33, 34 and 36 are our own, 35 is the
half of claim 23 that is about queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import evidence, verdicts
from pipeline.studies.verifier.claims import cases, dyck, exact, theory

if TYPE_CHECKING:
    from pipeline.kit.results import Results

# Each claim as a reader of the thesis would say it.
STATEMENTS = exact.STATEMENTS | {
    "9": "A small Transformer learns the Dyck strings of its training: it closes the right bracket.",
    "10": "On prompts out of distribution the same model makes mistakes.",
    "11": "Without truncation to the nucleus it makes more of them.",
    "12": "A linear verifier tells from the model's own hidden state whether a string has just gone wrong.",
    "13": "Where a model is about to make a mistake, erasing the last signs lets it complete the string.",
    "14": "Algorithm 1 with a trained verifier does so where the verifier objects.",
    "15": "On unseen prompts Algorithm 1 takes away a good part of the mistakes, and more without truncation.",
    "16": "It takes greedy refilling: with sampled refills less is gained.",
    "17": "The backtracks were necessary: what the verifier objects to ends worse without them than all with them.",
    "18": "What Algorithm 1 leaves are wrong closing brackets, of the kind that was frequent in training.",
    "19": "Completions stay as diverse.",
    "20": "States of mistakes lie in a few clusters.",
    "21": "Backtracking takes fewer queries for each right completion.",
    "22": "Of test cases too low a temperature gives few distinct ones, and too high a one few right ones.",
    "23": "Algorithm 1 with a trained verifier gives more distinct right test cases than sampling alone.",
    "24": "Block best-of-n pays for each candidate, and gives fewer test cases per query than Algorithm 1.",
    "25": "With a small quota it is better to reject at a low threshold.",
    "26": "A perfect verifier is better than a trained one, which is better than chance.",
    "27": "A linear verifier is as good as deeper ones.",
    "28": "On misleading names Algorithm 1 loses less than sampling alone.",
    "29": "Greedy refills help a little with test cases, too.",
    "30": "On a language model Algorithm 2, told the truth at leaves, is nearer to the target than rejection with the "
    "same verifier.",
    "31": "Rejection at a threshold ends farther from the target than rejection by probability, dead ends counted.",
    "33": "The law of Dyck strings of one length sums to 1 once a printed sign is corrected.",
    "34": "Both parts of Algorithm 1 count: finding mistakes, and refilling greedily.",
    "35": "Of test cases Algorithm 1 gives more for its queries than sampling alone.",
    "36": "Most of what the trained verifier sends back is right so far; where it hardly learned it objects more.",
}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    checks = context.theory()
    gates: list[verdicts.Gate] = []
    for claim, parts in theory.PARTS.items():
        gates += evidence.part_gates(checks, claim, parts)
    for part in (
        dyck.learned,
        dyck.classifiers,
        dyck.prefixes,
        dyck.unseen,
        dyck.factorial,
        dyck.objections,
        dyck.walks,
        cases.decoders,
    ):
        gates += part(context)
    gates += exact.gates(context)
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
