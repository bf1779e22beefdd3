"""Result tables of the NCE study (chapter section 8). Values that are not defined are null."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.comparisons import Comparisons
from schemas.results import Result

NCE, ENCE = LOSSES = ["nce", "ence"]
GD, NGD, NEWTON = OPTIMIZERS = ["gd", "ngd", "newton"]
MOMENTUM, ADAM = FURTHER = ["momentum", "adam"]
# A step size by the loss after the last update, by the lowest loss during the run, or by the smallest distance.
S_LOSS, S_BEST, S_DIST = SELECTIONS = ["s_loss", "s_best", "s_dist"]
# For images, whose tau_* is unknown: lowest loss on test images, or smallest area under the training loss.
S_AREA = "s_area"
IMAGE_SELECTIONS = [S_AREA, S_LOSS]
FULL, DIAG = NOISES = ["full", "diag"]
AREA, EARLY, FINAL_TEST = "area", "early_loss", "final_test_loss"  # of `DigitsFinal`
# Rules of the table of steps: step size 1/lambda_M; lambda_rho/lambda_M; delta/sqrt(2 kappa); that of Theorem 19.
STANDARD, CONSERVATIVE, FIXED, THEOREM_19 = RULES = ["1/lambda_M", "lambda_rho/lambda_M", "N5a", "N5b"]
LOG_R, PLAIN_R, R_SQUARED = ABSCISSAS = ["log R", "R", "R^2"]  # what logarithms are fitted against
TENTH, ONE, INVERSE = TARGETS = ["0.1R", "1", "1/R"]


class Landscape(Result):
    """N1: the population loss of N(R, 1) against N(0, 1) at tau_q and tau_*, and its Hessian at tau_*."""

    R: pl.Float64 = pa.Field(ge=0)
    loss: pl.String = pa.Field(isin=LOSSES)
    loss_init: pl.Float64 = pa.Field(gt=0, description="at tau_q")
    loss_opt: pl.Float64 = pa.Field(gt=0, description="at tau_*")
    sig_max: pl.Float64 = pa.Field(gt=0, description="of the Hessian at tau_*")
    sig_min: pl.Float64 = pa.Field(gt=0, description="as determinant over sig_max")
    kappa: pl.Float64 = pa.Field(ge=1)
    asym_loss: pl.Float64 = pa.Field(nullable=True, description="limit of loss_opt, large R; null at R = 0")
    asym_kappa: pl.Float64 = pa.Field(nullable=True, description="limit of kappa, large R; null at R = 0")
    grad_opt_norm: pl.Float64 = pa.Field(ge=0, le=1e-10)
    lemma46_bound: pl.Float64 = pa.Field(ge=0, description="R / sqrt(2 pi) exp(-R^2/8)")
    bc: pl.Float64 = pa.Field(gt=0, le=1, description="Bhattacharyya coefficient of P* and Q")
    quadrature_error: pl.Float64 = pa.Field(
        ge=0, description="largest relative change of loss_opt, sig_max and sig_min with half of the points"
    )

    class Config:
        """One row per R and loss."""

        unique = ["R", "loss"]


class HessianQ(Result):
    """Lemma 48: the Hessian at tau_q, the same for both losses."""

    R: pl.Float64 = pa.Field(ge=0)
    h11: pl.Float64
    h12: pl.Float64
    h22: pl.Float64
    sig_max: pl.Float64 = pa.Field(gt=0)

    class Config:
        """One row per R."""

        unique = ["R"]


class Annulus(Result):
    """N2, Lemma 49: how small the NCE gradient is on circles of radius rR around tau_*."""

    R: pl.Float64 = pa.Field(gt=0)
    r: pl.Float64 = pa.Field(gt=0, lt=0.5)
    max_ip: pl.Float64 = pa.Field(gt=0, description="largest |<gradient, u>| on the circle, u away from tau_*")
    kappa_min: pl.Float64 = pa.Field(description="-8 log(max_ip) / R^2")
    limit: pl.Float64 = pa.Field(description="4 ((1/2 - r)/(1 - r))^2")
    b_over_R: pl.Float64 = pa.Field(description="where the largest is attained")

    class Config:
        """One row per circle."""

        unique = ["R", "r"]


class Steps(Result):
    """N3 to N5: updates on the population loss from tau_q until the distance to tau_* is at most the target."""

    R: pl.Float64 = pa.Field(gt=0)
    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=OPTIMIZERS)
    rule: pl.String = pa.Field(isin=RULES, description="of the step size")
    target: pl.String = pa.Field(isin=TARGETS)
    eta: pl.Float64 = pa.Field(gt=0)
    steps: pl.Int64 = pa.Field(ge=-1, description="-1: censored")
    cap: pl.Int64 = pa.Field(gt=0)
    final_dist: pl.Float64 = pa.Field(ge=0)
    bound: pl.Float64 = pa.Field(gt=0, nullable=True, description="of Theorem 19")
    beta_u: pl.Float64 = pa.Field(ge=1, nullable=True)
    beta_l: pl.Float64 = pa.Field(gt=0, nullable=True)
    kappa: pl.Float64 = pa.Field(ge=1, description="of the Hessian at tau_*")

    class Config:
        """One row per path and target."""

        unique = ["R", "loss", "optimizer", "rule", "target"]

    @pa.dataframe_check(name="what is not censored ended before the cap")
    def censored(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("steps") <= pl.col("cap"))


class Crossings(Result):
    """N3: how many steps GD (eta = 1/lambda_M, NCE) takes from 0.15 R to 0.1 R, and the bound of the proof."""

    R: pl.Float64 = pa.Field(gt=0)
    steps: pl.Int64 = pa.Field(ge=-1, description="-1: censored")
    bound: pl.Float64 = pa.Field(gt=0, description="0.05 R / (eta max |<gradient, u>| between the circles)")

    class Config:
        """One row per R."""

        unique = ["R"]


class FullNewton(Result):
    """N4, ablation: the distance to tau_* after each Newton step of size 1."""

    R: pl.Float64 = pa.Field(gt=0)
    loss: pl.String = pa.Field(isin=LOSSES)
    step: pl.Int32 = pa.Field(ge=0)
    dist: pl.Float64 = pa.Field(ge=0)

    class Config:
        """One row per step."""

        unique = ["R", "loss", "step"]


class Rates(Result):
    """Slopes by least squares, and what is predicted.

    The points are exact, so what is left over is bend and no noise, and a slope has no interval.
    """

    quantity: pl.String
    loss: pl.String = pa.Field(isin=LOSSES)
    against: pl.String = pa.Field(isin=[LOG_R, R_SQUARED])
    first_R: pl.Float64
    last_R: pl.Float64
    points: pl.Int32 = pa.Field(ge=3)
    slope: pl.Float64
    intercept: pl.Float64
    largest_residual: pl.Float64 = pa.Field(ge=0)
    predicted: pl.Float64 = pa.Field(nullable=True, description="for large R")
    printed: pl.Float64 = pa.Field(nullable=True, description="in the source, where it differs")

    class Config:
        """One row per fit."""

        unique = ["quantity", "loss"]


class RatePoints(Result):
    """The points of each fit in `Rates`, and their residuals."""

    quantity: pl.String
    loss: pl.String = pa.Field(isin=LOSSES)
    R: pl.Float64
    x: pl.Float64
    y: pl.Float64 = pa.Field(description="natural logarithm of the quantity")
    residual: pl.Float64

    class Config:
        """One row per point."""

        unique = ["quantity", "loss", "R"]


class Continued(Result):
    """N3, N4: steps to 0.1 R far beyond what can be walked, from the modified equation of the method.

    An explicit Euler step of size eta follows the flow of f - eta/2 f' f up to terms of order eta^2 (f = -gradient, or
    minus the Newton step): its time to the target over eta counts the steps. ``walked`` are steps of `Steps`, where
    there are any.
    """

    R: pl.Float64 = pa.Field(gt=0)
    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=[GD, NEWTON])
    eta: pl.Float64 = pa.Field(gt=0)
    steps: pl.Float64 = pa.Field(gt=0)
    walked: pl.Int64 = pa.Field(gt=0, nullable=True, description="steps of the path that was walked, if one was")

    class Config:
        """One row per path."""

        unique = ["R", "loss", "optimizer"]


class GrowthFits(Result):
    """How steps grow with R: log steps = a x + b log R + c for x = R^2 and for x = R, b = 0 without the correction.

    AICc is that of least squares. The points are exact, so it ranks forms by how much bend they leave; it is no
    probability.
    """

    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=[GD, NEWTON])
    last_R: pl.Float64 = pa.Field(description="largest R of the fit")
    against: pl.String = pa.Field(isin=ABSCISSAS, description="x")
    corrected: pl.Boolean = pa.Field(description="whether there is a term b log R")
    points: pl.Int32 = pa.Field(ge=5)
    slope: pl.Float64 = pa.Field(description="a")
    power: pl.Float64 = pa.Field(description="b, 0 without a correction")
    intercept: pl.Float64
    largest_residual: pl.Float64 = pa.Field(ge=0)
    aicc: pl.Float64 = pa.Field(description="Akaike's criterion for small samples; a smaller one is preferred")

    class Config:
        """One row per fit."""

        unique = ["loss", "optimizer", "last_R", "against", "corrected"]


_RUN = ["dim", "loss", "optimizer", "eta", "n", "seed"]


class _GaussRun(Result):
    """What every table of N6 about single runs names."""

    dim: pl.Int8 = pa.Field(isin=[1, 16])
    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=[GD, NGD])
    eta: pl.Float64 = pa.Field(gt=0)
    n: pl.Int32 = pa.Field(gt=0, description="samples of P* and of Q per update")
    seed: pl.Int32 = pa.Field(ge=0)


class GaussRuns(_GaussRun):
    """N6: descent on fresh samples, from tau_q; the running minimum is what Figure 4.2 shows."""

    step: pl.Int16 = pa.Field(ge=0)
    dist: pl.Float64 = pa.Field(ge=0, nullable=True, description="inf or null only where diverged")
    min_dist: pl.Float64 = pa.Field(ge=0)
    batch_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="on the samples of this step")
    diverged: pl.Boolean
    skipped: pl.Boolean = pa.Field(description="the gradient was exactly 0, so the next update is none")

    class Config:
        """One row per run and step."""

        unique = [*_RUN, "step"]

    @pa.dataframe_check(name="the running minimum does not grow")
    def non_increasing(cls, data: PolarsData) -> pl.LazyFrame:
        change = pl.col("min_dist").diff().over(_RUN, order_by="step")
        return data.lazyframe.select((change <= 0).fill_null(True))

    @pa.dataframe_check(name="only what diverged is not finite")
    def finite(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("dist").is_finite().fill_null(False) | pl.col("diverged"))


class GaussFinal(_GaussRun):
    """N6: the end of each run."""

    fresh_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="inf or null where diverged")
    lowest_loss: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="the lowest of the losses during the run, each on samples that were fresh then"
    )
    min_dist: pl.Float64 = pa.Field(ge=0)
    final_dist: pl.Float64 = pa.Field(ge=0, nullable=True, description="inf or null where diverged")
    diverged: pl.Boolean
    skipped: pl.Int32 = pa.Field(ge=0, description="updates without a gradient")

    class Config:
        """One row per run."""

        unique = _RUN


class GaussWithoutMeans(GaussFinal):
    """N6, ablation: the same in 16 dimensions with 17 coordinates, without those of the means."""


class GaussSelected(Result):
    """N6: the step size that each rule of selection takes, from the same seeds that are shown."""

    dim: pl.Int8 = pa.Field(isin=[1, 16])
    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=[GD, NGD])
    n: pl.Int32 = pa.Field(gt=0)
    rule: pl.String = pa.Field(isin=SELECTIONS)
    eta: pl.Float64 = pa.Field(gt=0)
    mean_min_dist: pl.Float64 = pa.Field(ge=0)
    sd_min_dist: pl.Float64 = pa.Field(ge=0, nullable=True)
    fresh_loss: pl.Float64 = pa.Field(ge=0, description="mean over seeds")
    at_edge: pl.Boolean = pa.Field(description="eta is the least or the largest that was tried")

    class Config:
        """One row per method and rule."""

        unique = ["dim", "loss", "optimizer", "n", "rule"]


class GaussVariants(GaussFinal):
    """N6 with further optimisers, and with gradients or log-ratios of single samples cut off (NCE-NUM3, 4)."""

    optimizer: pl.String = pa.Field(isin=[GD, NGD, *FURTHER])
    limit: pl.Float64 = pa.Field(gt=0, nullable=True, description="longest gradient of a sample; null: none")
    clip: pl.Float64 = pa.Field(gt=0, nullable=True, description="largest |log-ratio| of a sample; null: none")

    class Config:
        """One row per run."""

        unique = [*_RUN, "limit", "clip"]


class GaussVariantsSelected(Result):
    """N6: each method of `GaussVariants` at its step size with the smallest mean distance."""

    dim: pl.Int8 = pa.Field(isin=[1, 16])
    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=[GD, NGD, *FURTHER])
    limit: pl.Float64 = pa.Field(gt=0, nullable=True, description="longest gradient of a sample; null: none")
    clip: pl.Float64 = pa.Field(gt=0, nullable=True, description="largest |log-ratio| of a sample; null: none")
    n: pl.Int32 = pa.Field(gt=0)
    eta: pl.Float64 = pa.Field(gt=0)
    at_edge: pl.Boolean = pa.Field(description="eta is the least or the largest that was tried")
    etas_diverged: pl.Int32 = pa.Field(ge=0, description="step sizes at which a seed diverged")
    mean_min_dist: pl.Float64 = pa.Field(ge=0)
    sd_min_dist: pl.Float64 = pa.Field(ge=0, nullable=True)
    seeds: pl.Int32 = pa.Field(ge=1)

    class Config:
        """One row per method."""

        unique = ["dim", "loss", "optimizer", "limit", "clip", "n"]


class GaussPrecision(Result):
    """What rounding does to NCE-NGD in one dimension: sigmoid(-psi) to all digits, or as 1 - sigmoid(psi)."""

    n: pl.Int32 = pa.Field(gt=0)
    eta: pl.Float64 = pa.Field(gt=0)
    seed: pl.Int32 = pa.Field(ge=0)
    sigmoid: pl.String = pa.Field(isin=["exact", "rounded"])
    min_dist: pl.Float64 = pa.Field(ge=0)
    final_dist: pl.Float64 = pa.Field(ge=0)
    fresh_loss: pl.Float64 = pa.Field(ge=0)
    skipped: pl.Int32 = pa.Field(ge=0, description="updates without a gradient")

    class Config:
        """One row per path; both kinds see the same samples."""

        unique = ["n", "eta", "seed", "sigmoid"]


class GaussPopulation(Result):
    """N6 without samples, in one dimension: the smallest distance after the same number of updates."""

    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=[GD, NGD])
    eta: pl.Float64 = pa.Field(gt=0)
    min_dist: pl.Float64 = pa.Field(ge=0)
    diverged: pl.Boolean

    class Config:
        """One row per method and step size."""

        unique = ["loss", "optimizer", "eta"]


class DigitsNoise(Result):
    """N7: the Gaussian noise fitted to the training images of each seed of the stand-in."""

    q_kind: pl.String = pa.Field(isin=NOISES)
    seed: pl.Int32 = pa.Field(ge=0)
    mean: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="64 pixels, row by row")
    cov: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="64 x 64, flattened")

    class Config:
        """One row per noise and seed."""

        unique = ["q_kind", "seed"]

    @pa.dataframe_check(name="64 means, 64 x 64 covariances")
    def lengths(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("mean").list.len() == 64) & (pl.col("cov").list.len() == 64 * 64))


_IMAGE_RUN = ["dataset", "q_kind", "loss", "optimizer", "eta", "seed"]


class _ImageRun(Result):
    """What every table of N7 about single models names."""

    dataset: pl.String = pa.Field(description="id of the images in params/nce/")
    q_kind: pl.String = pa.Field(isin=NOISES)
    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=[GD, NGD])
    eta: pl.Float64 = pa.Field(gt=0)
    seed: pl.Int32 = pa.Field(ge=0)


class DigitsRuns(_ImageRun):
    """N7: losses of log-ratio networks on fixed images and fixed draws of noise, while they train.

    A run counts as diverged from where its loss or gradient is not finite, or more than a given share of its log-ratios
    is clipped; losses are null where they are not finite.
    """

    step: pl.Int32 = pa.Field(ge=1)
    train_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="all training images, as minimised")
    test_loss: pl.Float64 = pa.Field(ge=0, nullable=True)
    train_nce_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="not clipped, whatever is minimised")
    min_train_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="smallest so far, before divergence")
    batch_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="mean over the batches since the point before")
    clip_fraction: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    grad_norm: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="of the gradient on a batch, mean since the point before"
    )
    skipped: pl.Int32 = pa.Field(ge=0, description="updates since the point before without a gradient to normalise")
    diverged: pl.Boolean

    class Config:
        """One row per model and logged update."""

        unique = [*_IMAGE_RUN, "step"]

    @pa.dataframe_check(name="only what diverged has no loss")
    def losses_there(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("train_loss").is_not_null() | pl.col("diverged"))

    @pa.dataframe_check(name="the running minimum does not grow")
    def non_increasing(cls, data: PolarsData) -> pl.LazyFrame:
        change = pl.col("min_train_loss").diff().over(_IMAGE_RUN, order_by="step")
        return data.lazyframe.select((change <= 0).fill_null(True))


class DigitsFinal(_ImageRun):
    """N7: each model in numbers; areas and losses of one that diverged are null."""

    area: pl.Float64 = pa.Field(ge=0, nullable=True, description="under the training loss, per update")
    batch_area: pl.Float64 = pa.Field(ge=0, nullable=True, description="mean loss of all batches")
    early_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="training loss after `early_step`")
    early_step: pl.Int32 = pa.Field(ge=1)
    final_train_loss: pl.Float64 = pa.Field(ge=0, nullable=True)
    final_test_loss: pl.Float64 = pa.Field(ge=0, nullable=True)
    min_train_loss: pl.Float64 = pa.Field(ge=0, nullable=True)
    skipped: pl.Int32 = pa.Field(ge=0, description="updates without a gradient to normalise")
    diverged: pl.Boolean

    class Config:
        """One row per model."""

        unique = _IMAGE_RUN


class DigitsSelected(Result):
    """N7: the step size that each rule of selection takes, from the same seeds that are shown; one at which a seed
    diverged is not taken."""

    dataset: pl.String
    q_kind: pl.String = pa.Field(isin=NOISES)
    loss: pl.String = pa.Field(isin=LOSSES)
    optimizer: pl.String = pa.Field(isin=[GD, NGD])
    rule: pl.String = pa.Field(isin=IMAGE_SELECTIONS)
    eta: pl.Float64 = pa.Field(gt=0)
    area: pl.Float64 = pa.Field(ge=0, description="mean over seeds, as the losses")
    early_loss: pl.Float64 = pa.Field(ge=0)
    final_train_loss: pl.Float64 = pa.Field(ge=0)
    final_test_loss: pl.Float64 = pa.Field(ge=0)
    seeds: pl.Int32 = pa.Field(ge=1)
    etas_diverged: pl.Int32 = pa.Field(ge=0, description="step sizes that could not be taken")
    at_edge: pl.Boolean = pa.Field(description="eta is the least or the largest that was tried")

    class Config:
        """One row per method and rule."""

        unique = ["dataset", "q_kind", "loss", "optimizer", "rule"]


SCHEMAS = {
    "landscape": Landscape,
    "hessian_q": HessianQ,
    "annulus": Annulus,
    "steps": Steps,
    "crossings": Crossings,
    "full_newton": FullNewton,
    "rates": Rates,
    "rate_points": RatePoints,
    "continued": Continued,
    "growth_fits": GrowthFits,
    "gauss_runs": GaussRuns,
    "gauss_final": GaussFinal,
    "gauss_without_means": GaussWithoutMeans,
    "gauss_selected": GaussSelected,
    "gauss_precision": GaussPrecision,
    "gauss_variants": GaussVariants,
    "gauss_variants_selected": GaussVariantsSelected,
    "gauss_population": GaussPopulation,
    "digits_noise": DigitsNoise,
    "digits_runs": DigitsRuns,
    "digits_final": DigitsFinal,
    "digits_selected": DigitsSelected,
    "comparisons": Comparisons,
}
