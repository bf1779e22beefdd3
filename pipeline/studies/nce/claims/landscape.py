"""Claims 1 to 6: the landscape in closed form and by quadrature."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.evidence import reduced
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.nce.claims.common import NOT_THERE, SOURCE, bend, between, defined, slope
from pipeline.studies.nce.names import DECAY, LOSS_RANGE
from schemas.claims import CORRECTED, FLOOR, OWN
from schemas.nce.tables import ENCE, NCE

PROPOSITION_7, LEMMA_49 = SOURCE.format("Proposition 7"), SOURCE.format("Lemma 49")
ASYMPTOTIC, NEAR = 16.0, 3.0
SCALED = pl.col("loss_opt") / pl.col("bc")  # L_* exp(R^2/8)
AT = 20.0  # claim 6
DECAY_EXPONENT = "decay exponent -8 log(max |dL/du|)/R^2 (u: along the radius)"  # kappa of Lemma 49


def loss_range(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 1: the loss is log 2 at tau_q, and exponentially small at tau_*."""
    rows = context.table("landscape").filter(loss=NCE).sort("R")
    far = rows.filter(pl.col("R") >= ASYMPTOTIC)
    furthest = _last_by(pl.col("loss_init"), (pl.col("loss_init") - np.log(2)).abs())
    yield Gate(
        "1",
        "loss at tau_q",
        "L(tau_q) at the R where it is furthest from log 2",
        PROPOSITION_7,
        within(float(np.log(2)), 1e-9),
        *reduced(rows, furthest, "no R in params/nce/"),
        published=Published(float(np.log(2)), derivation="log 2"),
    )
    changes = pl.col("loss_opt").diff(null_behavior="drop")
    yield Gate(
        "1",
        "loss at tau_* falls",
        "change of L_* from one R to the next, largest",
        PROPOSITION_7,
        below(0),
        *reduced(rows, column_max(changes), "fewer than two R", 2),
        kind=CORRECTED,
    )
    distance = column_max((pl.col("loss_opt") / pl.col("asym_loss")).log().abs())
    yield Gate(
        "1",
        f"asymptote, R >= {ASYMPTOTIC:g}",
        "|log(L_* exp(R^2/8) R/sqrt(2 pi))|, largest",
        PROPOSITION_7,
        below(0.05),
        *reduced(far, distance, NOT_THERE),
        kind=CORRECTED,
    )
    for name, part in (
        (f"published range, R <= {NEAR:g}", rows.filter(pl.col("R") <= NEAR)),
        (f"published range, R > {NEAR:g}", rows.filter(pl.col("R") > NEAR)),
    ):
        yield Gate(
            "1",
            name,
            "L_* exp(R^2/8), the value furthest from 1 on a logarithmic scale",
            PROPOSITION_7,
            between(*LOSS_RANGE),
            *reduced(part, _last_by(SCALED, SCALED.log().abs()), NOT_THERE),
            published=Published(*LOSS_RANGE),
        )


def _last_by(value: pl.Expr, order: pl.Expr) -> pl.Expr:
    """Return ``value`` where ``order`` is largest, or where ``order`` is NaN or null if it is so anywhere."""
    return value.sort_by(defined(order)).last()


def curvature(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 2 to 4: extreme eigenvalues and condition number at tau_*."""
    table, rates = context.table("landscape").sort("R"), context.table("rates")
    rows = table.filter(pl.col("R") >= 1, loss=NCE)
    ratio = column_max(pl.col("sig_max") / pl.col("lemma46_bound"))
    yield Gate(
        "2",
        "sigma_max",
        "sigma_max(H_*) over R/sqrt(2 pi) exp(-R^2/8), largest for R >= 1",
        SOURCE.format("Lemma 46"),
        at_most(1),
        *reduced(rows, ratio, "no R from 1 on in params/nce/"),
    )
    lemma_47 = SOURCE.format("Lemma 47")
    measure = "slope of log(sigma_min(H_*) exp(R^2/8)) against log R"
    first = min(rates.filter(quantity="kappa")["first_R"].to_list(), default=0.0)
    bent = bend(rates, "sig_min", NCE)
    yield Gate(
        "3",
        "rate",
        f"{measure}, R >= {first:g}{bent}",
        lemma_47,
        between(-5.1, -4.3),
        *slope(rates, "sig_min", NCE),
        kind=CORRECTED,
    )
    yield Gate(
        "3",
        "published rate",
        f"{measure}, R >= {first:g}{bent}",
        lemma_47,
        within(-1, 0.5),
        *slope(rates, "sig_min", NCE),
        published=-1.0,
    )
    lemma_53 = SOURCE.format("Lemma 53")
    for name, loss, limits, source in (("NCE", NCE, (5.3, 6.1), lemma_47), ("eNCE", ENCE, (3.6, 4.05), lemma_53)):
        yield Gate(
            "4",
            f"rate, {name}",
            f"slope of log kappa against log R, R >= {first:g}{bend(rates, 'kappa', loss)}",
            source,
            between(*limits),
            *slope(rates, "kappa", loss),
            kind=CORRECTED,
        )
    both = table.filter(pl.col("R") >= 0.5).pivot("loss", index="R", values="kappa")
    yield Gate(
        "4",
        "NCE over eNCE",
        "kappa of NCE over that of eNCE, smallest for R >= 0.5",
        lemma_53,
        above(1),
        *reduced(both, column_min(pl.col(NCE) / pl.col(ENCE)), NOT_THERE),
        kind=OWN,  # the lemma is of eNCE alone
    )


def at_noise(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 5: the Hessian at tau_q."""
    rows = context.table("hessian_q").sort("R")
    source = SOURCE.format("Lemma 48")
    exact = {"h11": (pl.col("R") ** 2 + 2) / 8, "h12": -pl.col("R") / 8, "h22": pl.lit(0.25)}
    errors = [(pl.col(name) - value).abs() for name, value in exact.items()]
    error = column_max(pl.concat_list(errors).explode())  # max_horizontal would skip NaN
    yield Gate(
        "5",
        "entries",
        "distance of the Hessian's entries at tau_q from [[R^2 + 2, -R], [-R, 2]]/8, largest",
        SOURCE.format("Eq. 4.58"),
        at_most(1e-9),
        *reduced(rows, error, "no R in params/nce/"),
    )
    far, share = rows.filter(pl.col("R") >= 4), pl.col("sig_max") / pl.col("R") ** 2
    for name, value in (("smallest", column_min(share)), ("largest", column_max(share))):
        yield Gate(
            "5",
            f"{name} ratio, R >= 4",
            f"sigma_max/R^2, {name} for R >= 4",
            source,
            between(0.12, 0.15),
            *reduced(far, value, NOT_THERE),
            kind=CORRECTED,
        )
    yield Gate(
        "5",
        "published bound",
        "sigma_max/R^2, smallest for R >= 4",
        source,
        at_least(0.5),
        *reduced(far, column_min(share), NOT_THERE),
        published=Published(0.5, form=FLOOR),
    )


def annulus(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 6: exponentially small gradients on the annulus."""
    table = context.table("annulus").sort("R", "r").with_columns(defined(pl.col("limit")))
    for r in table["r"].unique().sort().to_list():
        row = table.filter(R=AT, r=r)
        limit = table.filter(r=r)["limit"][0]
        measure = f"{DECAY_EXPONENT} on the circle of radius {r:g} R (its limit for large R: {limit:.4f})"
        yield Gate(
            "6",
            f"decay at r = {r:g}, R = {AT:g}",
            measure,
            LEMMA_49,
            within(limit, 0.03),
            *reduced(row, pl.col("kappa_min"), f"R = {AT:g} is not in params/nce/"),
            kind=CORRECTED,
        )
    every = table.filter(pl.col("R") >= 4)
    smallest = reduced(every, column_min("kappa_min"), "no R from 4 on in params/nce/")
    yield Gate(
        "6",
        "smallest decay",
        "decay exponent, smallest of all circles for R >= 4",
        LEMMA_49,
        at_least(0.5),
        *smallest,
        kind=CORRECTED,
    )
    yield Gate(
        "6",
        "published range",
        "decay exponent, smallest of all circles for R >= 4",
        LEMMA_49,
        at_least(DECAY[0]),
        *smallest,
        published=Published(*DECAY),
    )
