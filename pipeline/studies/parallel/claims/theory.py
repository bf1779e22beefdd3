"""Claims that theory checks decide: by claim, its parts."""

from __future__ import annotations

from pipeline.kit.evidence import Part
from pipeline.studies.parallel import checks
from pipeline.studies.parallel.names import SOURCE
from schemas.claims import CORRECTED, OWN


def _of(place: str) -> str:
    return SOURCE.format(place)


PARTS = {
    "6": {
        checks.EQUALITY: Part("second derivatives of the loss against the covariance of scores", _of("Lemma 4.1.2")),
        checks.UNBIASED: Part("the gradient at the truth", _of("Lemmas 4.1.2, 4.3.3")),
    },
    "7": {
        checks.ORDER: Part("covariances in order of k", _of("Theorem 4.1.1")),
        checks.INCREMENT: Part("what one more masked position adds", _of("Eq. 4.19")),
        checks.COUPLED: Part("masks that are made larger one by one", _of("Theorem 4.1.1"), OWN),
    },
    "8": {
        checks.BOUND: Part("the covariance below C I^-1", _of("Theorem 4.1.2")),
        checks.MECHANISM: Part("second derivatives as a Dirichlet form", _of("Theorem 4.1.2")),
        checks.ADAPTIVE: Part(
            "masks that depend on the state, by the chain on states", _of("Theorem 4.1.3"), CORRECTED
        ),
        checks.LITERAL: Part("the chain as printed has gap 0", _of("Eq. 4.26"), CORRECTED),
    },
    "9": {
        checks.DROPPED: Part("the gradient without K in the condition", _of("section 4.1.2.4"), OWN),
        checks.LEMMA: Part("the example in rational numbers", _of("Lemmas 4.3.1, 4.3.2")),
    },
    "10": {
        checks.GAPS: Part("gaps and relaxation times of k-Gibbs", _of("section 4.1.4")),
        checks.PRODUCTS: Part("product laws", _of("section 4.1.4"), OWN),
        checks.CHI: Part("the decay of chi-square", _of("Definition 4.1.5")),
    },
    "11": {
        checks.PRINTED_RATE: Part("cases against the printed rate", _of("section 4.1.3"), CORRECTED),
        checks.RATE: Part("half of the printed rate", _of("section 4.1.3"), CORRECTED),
    },
    "12": {
        checks.MODES: Part("probabilities of modes", _of("Proposition 4.3.3"), CORRECTED),
        checks.STUCK: Part("Proposition 4.1.5 with r > 0", _of("Proposition 4.1.5"), CORRECTED),
        checks.ALGEBRA: Part("the algebra of the corollary", _of("Corollary 4.1.1")),
        checks.CONTROLS: Part("settings in which the text says too much", _of("Propositions 4.1.5, 4.3.3"), CORRECTED),
    },
    "18": {
        checks.DECODER: Part("product kernels as weights", _of("Proposition 4.1.3")),
        checks.MAPS: Part("maps as weights, composed", _of("Proposition 4.1.2")),
    },
    "19": {
        checks.CORRELATION: Part("total correlations", _of("Proposition 4.1.3"), OWN),
        checks.SCAN: Part("1-Gibbs with a random site", _of("section 4.1.4.1"), CORRECTED),
    },
    "20": {
        checks.STATIONARY: Part("the stationary law", _of("section 4.1.4, footnote 12"), OWN),
        checks.LUMPED: Part("chains on the number of +1 spins", _of("Figure 4.3"), OWN),
    },
    "22": {
        checks.FINITE: Part("the terms of the bound", _of("Theorem 4.1.4")),
        checks.JOINT: Part("joint divergence from conditional ones", _of("Proposition 4.3.1")),
    },
    "38": {checks.TENSOR: Part("C_AT as searched", _of("Definition 4.1.9"), OWN)},
    "39": {checks.CONVEX: Part("second derivatives and mid-points", _of("Proposition 4.3.6"))},
}
