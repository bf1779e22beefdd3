"""The claims of the study (chapter section 6; Li 2025, section 2.1)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.studies.topic.claims import attention, embeddings, language, stages, theory, values

# Each claim as a reader of the thesis would say it.
STATEMENTS = {
    "1": "The theorems and closed forms hold when they are executed.",
    "2": "With a vanishing penalty on its size, the optimal value matrix is the one of the theorem.",
    "3": "The optimal attention lies within the intervals of the theorems.",
    "4": "The weight of same-topic words grows with the number of topics in a document.",
    "5": "For many topics in a document the optimal mean weight γ of a topic's words is near the number of these "
    "topics over a = (1 - p_c) p_m, and with the normaliser as printed near that times the share of positions "
    "that do not show [MASK].",
    "6": "The landscapes over attention weights have the published shapes.",
    "7": "Attention of two weights is nearly as good as any attention.",
    "8": "Training with uniform attention reaches the least-squares optimum on the same documents.",
    "9": "With uniform or trained attention the value matrix becomes block-wise.",
    "10": "The published means of blocks come out with the published rate, in the model of the released code.",
    "11": "Initial weights spread outside blocks as much as is published of trained ones.",
    "12": "Without a penalty the optimum has a heavy diagonal; a penalty or hidden masks remove it.",
    "13": "Frozen attention costs little: its loss is only slightly above that of joint training.",
    "14": "Values that are trained with attention and squared loss match words within topics, and more words with "
    "themselves where masked positions can be attended to.",
    "15": "Trained embeddings reach the block sums of the theorem with squared loss.",
    "16": "Words of one topic get more similar embeddings.",
    "17": "Training embeddings alone costs little.",
    "18": "From unit embeddings the Gram matrix stays diagonal in training.",
    "19": "Trained attention gives more weight to words of the same topic.",
    "20": "With SGD attention learns topics at a rate of 0.03, and not at 0.003, in as many steps as the released "
    "example has.",
    "21": "The published averages come out when labels are shifted by four ids.",
    "22": "Labels that are shifted by four ids explain the published counts of pairs.",
    "23": "Averages of attention over all pairs are fixed by the lengths of documents.",
    "24": "With a diagonal value matrix attention prefers the same word, then other topics, then its topic.",
    "25": "With the block-wise value matrix of the theorem attention prefers the same topic.",
    "26": "Training has two stages: values grow first, keys and queries later.",
    "27": "From weights near zero the gradients of keys and queries are smaller by two powers.",
    "28": "In untrained models of stand-ins for language, debiased ratios are 1.",
    "29": "Trained models of stand-ins for language embed words of one topic alike.",
    "30": "Trained models attend more within topics on stand-ins for language.",
    "31": "Topics explain similarity beyond co-occurrence.",
    "32": "Training of four layers has two stages as well.",
    "33": "Documents have the moments of their law.",
    "34": "The value matrix in the release is one of a model with normalised embeddings.",
    "35": "Trained attention gives more weight to the same word than to other words of its topic under most settings, "
    "and less with Adam at a rate of 0.03 (caption of Table 2.1).",
}
PARTS = (theory, values, embeddings, attention, stages, language)


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study."""
    gates = [gate for part in PARTS for gate in part.gates(context)]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
