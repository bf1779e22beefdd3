"""Claims 7 to 9: exponentially many steps of GD and Newton's method, polynomially many of NGD."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit.conditions import above, at_most, below
from pipeline.kit.evidence import reduced
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from pipeline.studies.nce.claims.common import NOT_THERE, SOURCE, bend, between, slope
from pipeline.studies.nce.names import LOSS_NAMES
from schemas.claims import CORRECTED, OWN
from schemas.nce.tables import ENCE, FIXED, GD, INVERSE, NCE, NEWTON, NGD, PLAIN_R, R_SQUARED, TENTH, THEOREM_19

THEOREM_17, THEOREM_18, THEOREM_19_SOURCE = (SOURCE.format(f"Theorem {number}") for number in (17, 18, 19))
COMPARED = 5.0  # R of the last gate of claim 8
COMPARED_TO = 7.0  # R of claim 7, where there are no fits
FEW_FITS = "no steps were continued to so large an R"
FEW = "no line was fitted to the steps of GD, or fewer than two neighbouring R of it have paths that end"


def exponential(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 7: steps of GD and of Newton's method to 0.1 R.

    GD has eta = 1/lambda_M, Newton's method eta = lambda_rho/lambda_M; both are over the R of the line of GD.
    """
    rates = context.table("rates")
    table = (
        context.table("steps")
        .filter(target=TENTH, loss=NCE)
        .join(rates.filter(quantity="GD steps", loss=NCE).select("first_R", "last_R"), how="cross")
    )
    table = table.filter(pl.col("R").is_between("first_R", "last_R"))
    yield from _preferred(context.table("growth_fits"))
    for name, optimizer, source in (("GD", GD, THEOREM_17), ("Newton", NEWTON, THEOREM_18)):
        factors = growth(table.filter(optimizer=optimizer))
        span = f" for R + 1 = {factors['R'][0]:g} to {factors['R'][-1]:g}" if factors.height else ""
        measure = f"steps of {name} on NCE at R + 1 over those at R, smallest{span}"
        yield Gate("7", f"{name}, growth", measure, source, above(5), *reduced(factors, column_min("growth"), FEW))


def _preferred(fits: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 7 that tell exp(R^2) from exp(a R), each times a power of R.

    A slope against R^2 that is above 0 does not, nor does a factor per unit of R. The steps come from the modified
    equation, so that R reaches far enough; up to which R decides, and every range has gates of its own.
    """
    ranges = fits["last_R"].unique().sort().to_list() or [COMPARED_TO]
    for last in ranges:
        for name, optimizer, loss, source in (
            ("GD, NCE", GD, NCE, THEOREM_17),
            ("Newton, NCE", NEWTON, NCE, THEOREM_18),
            ("Newton, eNCE", NEWTON, ENCE, THEOREM_18),
        ):
            rows = fits.filter(pl.col("corrected"), last_R=last, loss=loss, optimizer=optimizer)
            both = rows.pivot("against", index="last_R", values=["aicc", "largest_residual", "slope"])
            note = ""
            if both.height:
                row = both.row(0, named=True)
                note = (
                    f" (largest residuals {row[f'largest_residual_{R_SQUARED}']:.3f} and "
                    f"{row[f'largest_residual_{PLAIN_R}']:.3f}; a = {row[f'slope_{R_SQUARED}']:.3f} and "
                    f"{row[f'slope_{PLAIN_R}']:.3f})"
                )
            measure = (
                "AICc of a R^2 + b log R + c minus that of a R + b log R + c, each fitted to log steps up to "
                f"R = {last:g}{note}"
            )
            difference = pl.col(f"aicc_{R_SQUARED}") - pl.col(f"aicc_{PLAIN_R}")
            yield Gate(
                "7",
                f"{name}: R^2 against R, to R = {last:g}",
                measure,
                source,
                below(0),
                *reduced(both, difference, FEW_FITS),
                kind=OWN,  # the theorems say "exponential"
            )


def growth(rows: pl.DataFrame) -> pl.DataFrame:
    """Return steps at R over those at R - 1, where neither is censored, in column ``growth``."""
    before = rows.select(pl.col("R") + 1, pl.col("steps").alias("before"))
    both = rows.join(before, on="R").filter(pl.col("steps") > 0, pl.col("before") > 0)
    return both.select("R", (pl.col("steps") / pl.col("before")).alias("growth")).sort("R")


def polynomial(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 8: steps of NGD with eta = delta/sqrt(2 kappa_*), delta = 1/R."""
    rates, table = context.table("rates"), context.table("steps")
    fixed = table.filter(rule=FIXED, optimizer=NGD, target=INVERSE)
    source = SOURCE.format("Theorems 19, 21, Corollary 2")
    for loss, limits in ((NCE, (4.8, 6.3)), (ENCE, (4.0, 5.3))):
        row = rates.filter(quantity="NGD steps", loss=loss)
        span = f", R = {row['first_R'][0]:g} to {row['last_R'][0]:g}" if row.height else ""
        bent = bend(rates, "NGD steps", loss)
        measure = f"slope of log(steps of NGD) against log R{span}{bent}"
        found = slope(rates, "NGD steps", loss)
        # The printed exponents are those of upper bounds; these are the ones to be expected.
        yield Gate("8", f"rate, {LOSS_NAMES[loss]}", measure, source, between(*limits), *found, kind=CORRECTED)
    # A censored path counts against the claim: on eNCE as one without end, on NCE as one that ends at its cap.
    censored = pl.when(loss=ENCE).then(float("inf")).otherwise("cap")
    counted = fixed.with_columns(counted=pl.when(pl.col("steps") < 0).then(censored).otherwise("steps"))
    both = counted.filter(pl.col("R") >= 2).pivot("loss", index="R", values="counted")
    both = both if {NCE, ENCE} <= set(both.columns) else both.clear()
    yield Gate(
        "8",
        "eNCE over NCE",
        "steps of NGD on eNCE over those on NCE, largest for R >= 2",
        source,
        below(1),
        *reduced(both, column_max(pl.col(ENCE) / pl.col(NCE)), NOT_THERE),
        kind=OWN,
    )
    gd = table.filter(optimizer=GD, target=TENTH, loss=NCE, R=COMPARED)
    ngd = fixed.filter(loss=NCE, R=COMPARED)
    ratio = None
    if gd.height and ngd.height:
        # The same here: a path of GD that is censored has taken more than its cap, one of NGD has no end.
        long = gd["steps"][0] if gd["steps"][0] > 0 else gd["cap"][0]
        ratio = Measured(long / (ngd["steps"][0] if ngd["steps"][0] > 0 else float("inf")))
    yield Gate(
        "8",
        f"GD over NGD, R = {COMPARED:g}",
        "steps of GD to 0.1 R over those of NGD to 1/R",
        source,
        above(10),
        ratio,
        f"R = {COMPARED:g} is not in params/nce/",
        kind=OWN,
    )


def bounded(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 9: the bound of Theorem 19 with measured constants."""
    table = context.table("steps").filter(rule=THEOREM_19)
    for loss, name in LOSS_NAMES.items():
        rows = table.filter(loss=loss)
        share = pl.when(pl.col("steps") >= 0).then(pl.col("steps") / pl.col("bound")).otherwise(float("inf"))
        yield Gate(
            "9",
            name,
            "steps of NGD over the bound of the theorem, largest of all R",
            THEOREM_19_SOURCE,
            at_most(1),
            *reduced(rows, column_max(share), "no R in params/nce/"),
        )
