"""The claims of the NCE study (chapter section 6; Liu 2024, section 4.1)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import verdicts
from pipeline.kit.results import Results
from pipeline.studies.nce.claims import gauss, images, landscape, steps, theory


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
        *theory.checks(context),
    ]
    gates.sort(key=lambda gate: int(gate.claim))
    return verdicts.table(gates, context.study, context.scale, context.params_hash)
