"""Rows of theory checks: what they share (`schemas.theory.rows`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.studies.parallel.names import SOURCE

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
FINITE = "the terms of the bound"


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, source: str, **more: Any
) -> dict[str, Any]:
    """Return a row; ``source`` is a place of the thesis, ``more`` claim and part, erratum and form, tolerance."""
    return {
        "check": check,
        "statement": statement,
        "size": size,
        "measured": float(measured),
        "comparison": comparison,
        "bound": float(bound),
        "source": SOURCE.format(source),
        **more,
    }


def zero(check: str, statement: str, size: str, measured: float, source: str, **more: Any) -> dict[str, Any]:
    """Return a row on a difference that must be 0 up to rounding, or on a count that must be 0."""
    return row(check, statement, size, measured, "<=", more.pop("bound", 1e-12), source, **more)


def near(
    check: str, statement: str, size: str, measured: float, expected: float, tolerance: float, source: str, **more: Any
) -> dict[str, Any]:
    """Return a row on a number that is known."""
    return row(check, statement, size, measured, "within", expected, source, tolerance=tolerance, **more)


def of(claim: str, part: str) -> Mapping[str, str]:
    """Return the fields by which a row decides a part of a claim."""
    return {"claim": claim, "part": part}


def printed(erratum: str) -> Mapping[str, str]:
    """Return the fields of a row on the printed form of what is wrong."""
    return {"erratum": f"parallel-{erratum}", "form": "printed"}


def corrected(erratum: str) -> Mapping[str, str]:
    """Return the fields of a row on a form that holds."""
    return {"erratum": f"parallel-{erratum}", "form": "corrected"}
