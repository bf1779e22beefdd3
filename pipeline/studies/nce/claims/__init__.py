"""The claims of the NCE study (chapter section 6; Liu 2024, section 4.1)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import evidence, verdicts
from pipeline.kit.results import Results
from pipeline.studies.nce.claims import gauss, images, landscape, steps, theory, variants

# Each claim as a reader of the thesis would say it.
STATEMENTS = {
    "1": "The NCE loss is log 2 at the noise and exponentially small in R squared at the data.",
    "2": "At the optimum the largest curvature is exponentially small in R squared.",
    "3": "At the optimum the smallest curvature is smaller still, by a power of R.",
    "4": "The condition number at the optimum grows as a power of R, and more slowly for eNCE than for NCE.",
    "5": "At the noise the largest curvature grows as R squared.",
    "6": "In an annulus around the optimum all gradients are exponentially small.",
    "7": "Gradient descent and Newton's method need a number of steps that grows exponentially in R.",
    "8": "Normalised gradient descent needs polynomially many steps, and fewer on eNCE than on NCE.",
    "9": "The bound of Theorem 19 on the steps of normalised gradient descent holds with measured constants.",
    "10": "In one dimension, at equal step sizes, eNCE-NGD comes closer than NCE-NGD, and that closer than NCE-GD.",
    "11": "In one dimension the same order holds where step sizes are chosen by the loss on fresh samples.",
    "12": "In 16 dimensions normalised gradients come closer than GD, and eNCE with them closer than NCE or as close.",
    "13": "At standard step sizes gradient descent hardly moves in 16 dimensions.",
    "14": "In 16 dimensions NCE-NGD comes closer than NCE-GD where the loss on fresh samples chooses step sizes.",
    "15": "On images, normalised gradients bring the training loss down faster than gradient descent.",
    "16": "The lemmas and theorems hold where they are executed, apart from misprints, which are listed.",
    "17": "Momentum does not make up for a flat loss: normalised gradients come closer.",
    "18": "Limits on gradients or log-ratios of single samples keep gradient descent on eNCE from diverging "
    "and bring it closer, but not as close as normalised gradients.",
}


def judge(context: Results) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) from the tables and theory rows of the study.

    The printed forms of Proposition 7 and of Lemmas 47, 48, 49 and 60 have gates of their own, beside those of the
    forms which hold. Other misprints have rows of errata among the theory checks, and no gates.
    """
    gates: list[verdicts.Gate] = [
        *landscape.loss_range(context),
        *landscape.curvature(context),
        *landscape.at_noise(context),
        *landscape.annulus(context),
        *steps.exponential(context),
        *steps.polynomial(context),
        *steps.bounded(context),
        *gauss.matched(context),
        *gauss.selected(context),
        *gauss.standard_steps(context),
        *images.faster(context),
        *evidence.part_gates(context.theory(), "16", theory.PARTS),
        *variants.further(context),
        *variants.guarded(context),
    ]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, STATEMENTS, context.study, context.scale, context.params_hash)
