"""The claims of the Dyck study (chapter section 6; Wen et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import verdicts
from pipeline.studies.dyck.claims import attention, balance, copying, table1, theory

if TYPE_CHECKING:
    from pipeline.kit.results import Results

# Each claim as a reader of the paper would say it.
STATEMENTS = {
    "1": "The sampler of this pipeline draws strings from the exact law of the Markov chain of section 2.",
    "2": "The published baseline, 2.85 on 16 tokens and 3.33 on 19, is an average that forty random causal attention "
    "maps may have.",
    "3": "Every Transformer that is studied predicts closing brackets nearly perfectly on data like its training data.",
    "4": "Two-layer Transformers typically solve Dyck with attention that does not look like a stack.",
    "5": "Attention of equally accurate standard models varies by about 2.2 between initialisations.",
    "6": "Attention of standard models varies nearly as much between initialisations as random maps do.",
    "7": "With a minimal first layer, attention hardly varies between initialisations.",
    "8": "The contrastive term lowers the balance violation of models with a minimal first layer.",
    "9": "The contrastive term improves accuracy on longer strings.",
    "10": "Models that violate the balance condition more generalise worse to longer strings.",
    "11": "The contrastive term lowers the balance violation and improves length generalisation on prefixes, too.",
    "12": "Transformers whose attention is frozen to uniform still learn Dyck.",
    "13": "On prefixes, attention varies little in the first layer and more than random maps in the layers above.",
    "14": "Attention varies several times more in a third layer than in the second.",
    "15": "Balanced attention logits, and else random ones, give exact solvers whose attention looks like anything.",
    "16": "A first layer with uniform attention computes depths, and a second one decodes the stack, at any length.",
    "17": "Attention that is not balanced must fail on long enough strings.",
    "18": "A random Transformer that is wide enough can be pruned to approximate any target Transformer.",
    "19": "Two targets with different functions can share the weights of one layer, so one matrix tells neither.",
    "20": "With a layer norm on the residual stream, what tells brackets apart vanishes as one over the length.",
    "21": "Models that copy have attention heads whose maps seem to say what they do, and which hardly matter.",
    "22": "Trained on prefixes, standard models vary many times more than those with a minimal first layer.",
    "23": "In each language, block and training data of the factorial, attention of two layers is not stack-like.",
    "24": "More types of bracket, deeper nesting, the block of Table 1, prefixes as training data and longer training "
    "each make attention more stack-like.",
    "25": "Models of the paper's own layer (eq. 6) learn Dyck, too, with attention that does not look like a stack.",
}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study.

    Runs without models at this scale leave a gate that is not tested, and the reason says what is missing.
    """
    gates = [
        *theory.gates(context.theory()),
        *attention.in_distribution(context),
        *attention.unseen(context),
        *attention.stack_like(context),
        *attention.variation(context),
        *attention.over_random(context),
        *attention.minimal(context),
        *balance.balance(context),
        *balance.accuracy(context),
        *balance.rank(context),
        *balance.on_prefixes(context),
        *attention.uniform(context),
        *table1.table_1(context),
        *table1.last_layer(context),
        *attention.prefix_ratio(context),
        *attention.cells(context),
        *attention.effects(context),
        *attention.theory_layer(context),
        *copying.accuracy(context),
        *copying.misleading(context),
    ]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
