"""Rows of theory checks: what they share (`schemas.theory.rows`)."""

from __future__ import annotations

from pipeline.kit.theory_rows import Rows, of
from pipeline.studies.parallel.names import SOURCE

__all__ = ["corrected", "near", "of", "printed", "row", "zero"]

_ROWS = Rows(SOURCE, "parallel")
row, zero, near, printed, corrected = _ROWS.row, _ROWS.zero, _ROWS.near, _ROWS.printed, _ROWS.corrected

# Parts of claims that theory checks decide, and gates count (`claims.theory`)
EQUALITY, UNBIASED = "second derivatives and scores", "the truth is stationary"
ORDER, INCREMENT, COUPLED = "order of covariances", "what one more position adds", "larger masks by any coupling"
BOUND, MECHANISM, ADAPTIVE, LITERAL = (
    *("covariance below C / I", "second derivatives as a Dirichlet form"),
    *("masks that depend on the state", "the chain of Eq. 4.26 as printed"),
)
DROPPED, LEMMA = "the gradient without K", "Lemmas 4.3.1 and 4.3.2"
GAPS, PRODUCTS, CHI = "k-Gibbs against 1-Gibbs", "product laws", "decay of chi-square"
PRINTED_RATE, RATE = "the printed rate", "half of the printed rate"
TENSOR = "C_AT"
MODES, CONTROLS, ALGEBRA, STUCK = (
    "modes",
    "where the text says too much",
    "algebra of the corollary",
    "stuck, further cells",
)
DECODER, MAPS = "product kernels", "deterministic maps"
CORRELATION, SCAN = "total correlation", "random scan"
STATIONARY, LUMPED = "stationary law", "lumped chains"
CONVEX = "second derivatives"
FINITE, JOINT = "the terms of the bound", "joint from conditional"
