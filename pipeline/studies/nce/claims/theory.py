"""Claim 16: the executed lemmas and theorems."""

from __future__ import annotations

from pipeline.kit.evidence import Part
from pipeline.studies.nce.claims.common import SOURCE
from schemas.claims import CORRECTED, OWN

_EXECUTED = {
    "formulas": "Definitions 19, 20, Lemmas 44, 45",
    "flatness": "Propositions 7, 8",
    "curvature": "Lemmas 46 to 48",
    "barrier": "Lemmas 49, 50, 59, Claim 6, Theorems 17, 18",
    "normalised gradients": "Lemma 51, Theorem 19, Corollary 2",
    "exponential loss": "Lemmas 53, 54, Theorem 21",
    "overlap": "Theorem 20, Lemmas 52, 60, 61",
    "numerical tricks": "section 4.1.6",
}
PARTS = {name: Part(source, SOURCE.format(source), OWN) for name, source in _EXECUTED.items()} | {
    "printed Lemma 60": Part("the printed bound fails near R = 0 alone", SOURCE.format("Lemma 60"), CORRECTED)
}
