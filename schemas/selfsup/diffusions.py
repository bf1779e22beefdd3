"""Diffusions: trajectories and pairs, and the tables of their experiments (chapter section 8, tables sde_*)."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from pipeline.languages.diffusions import CONTRASTS, KINDS
from schemas.results import Result

LOGQUAD, MLP, EULER, NORMAL = CLASSIFIERS = [
    "logquad",
    "mlp",
    "euler",
    "normal",
]  # the last two are kernels beside them
CURVATURE, LOCAL, UNCAPPED, OVERALL, REMARK_1 = "curvature", "thm2", "thm2-uncapped", "cs232", "remark1"
LEMMA_4, LEMMA_5, EQ_2_2, SCALING = "lemma4", "lemma5", "eq22", "scale232"
CHECKS = [CURVATURE, LOCAL, UNCAPPED, OVERALL, REMARK_1, LEMMA_4, LEMMA_5, EQ_2_2, SCALING]
TRUE, LEARNED = "true", "learned"


DRIFT_ERROR, GAP = "error of the drift", "generalisation gap"  # of the independent pairs


class Trajectories(pa.DataFrameModel):
    """sde_traj: a trajectory in each row, x at times 0, eta, 2 eta, ...: ``x`` lists them, d numbers a point."""

    process_id: pl.String = pa.Field(str_length={"min_value": 1}, description="id of the diffusion")
    kind: pl.String = pa.Field(
        isin=KINDS, description="Ornstein-Uhlenbeck (ou), log-cosh, or a chain on finitely many states"
    )
    rho: pl.Float64 = pa.Field(gt=0, description="strong convexity of f")
    d: pl.Int8 = pa.Field(ge=1, le=8, description="dimension of the state")
    eta: pl.Float64 = pa.Field(gt=0, description="time between points")
    seed: pl.Int32 = pa.Field(ge=0, description="number of the trajectory, from 0")
    x: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Float64}, description="the points of the trajectory, d numbers each"
    )

    class Config:
        """Exactly these columns, in this order; one row per trajectory."""

        strict = True
        ordered = True
        unique = ["process_id", "eta", "seed"]

    @pa.dataframe_check(name="points have d finite numbers")
    def points(cls, data: PolarsData) -> pl.LazyFrame:
        length = pl.col("x").list.len()
        finite = pl.col("x").list.eval(pl.element().is_finite()).list.all()
        return data.lazyframe.select((length > 0) & (length % pl.col("d").cast(pl.UInt32) == 0) & finite)


class PairTable(pa.DataFrameModel):
    """sde_pairs: the pairs of a trajectory in each row, in one dimension; ``y`` says whether x' followed x."""

    process_id: pl.String = pa.Field(str_length={"min_value": 1}, description="id of the diffusion")
    kind: pl.String = pa.Field(
        isin=KINDS, description="Ornstein-Uhlenbeck (ou), log-cosh, or a chain on finitely many states"
    )
    rho: pl.Float64 = pa.Field(gt=0, description="strong convexity of f")
    alpha: pl.Float64 = pa.Field(ge=0, description="weight of log cosh x in f; 0 for Ornstein-Uhlenbeck")
    points: pl.Int32 = pa.Field(ge=3, description="of the grid")
    half_width: pl.Float64 = pa.Field(gt=0, description="of the grid")
    q_kind: pl.String = pa.Field(
        isin=CONTRASTS,
        description="whether the noise is drawn around a fixed point (marginal) or around z (conditional)",
    )
    mu_q: pl.Float64 = pa.Field(description="mean of the noise; of a conditional one, from z")
    sd_q: pl.Float64 = pa.Field(gt=0, description="standard deviation of the noise, in each coordinate")
    eta: pl.Float64 = pa.Field(gt=0, description="time between the points of a pair")
    seed: pl.Int32 = pa.Field(ge=0, description="number of the trajectory, from 0")
    x: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="first points of the pairs")
    x_prime: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Float64}, description="second points: a time eta after the first, or noise"
    )
    y: pl.List = pa.Field(
        dtype_kwargs={"inner": pl.Int8}, description="labels: 1 where the second point followed, 0 where it is noise"
    )

    class Config:
        """Exactly these columns, in this order; one row per trajectory."""

        strict = True
        ordered = True
        unique = ["process_id", "eta", "seed"]

    @pa.dataframe_check(name="each pair has two finite points and a label")
    def complete(cls, data: PolarsData) -> pl.LazyFrame:
        length = pl.col("y").list.len()
        same = (pl.col("x").list.len() == length) & (pl.col("x_prime").list.len() == length) & (length > 0)
        finite = [pl.col(name).list.eval(pl.element().is_finite()).list.all() for name in ("x", "x_prime")]
        return data.lazyframe.select(same & finite[0] & finite[1])

    @pa.dataframe_check(name="labels are 0 and 1, about as many of each")
    def labels(cls, data: PolarsData) -> pl.LazyFrame:
        y = pl.col("y")
        # Within 0.1 of 1/2 is certain of many pairs; of a few, five standard deviations.
        room = pl.max_horizontal(pl.lit(0.1), 2.5 / y.list.len().sqrt())
        binary = (y.list.min() >= 0) & (y.list.max() <= 1)
        return data.lazyframe.select(binary & ((y.list.mean() - 0.5).abs() <= room))


class Process(Result):
    """sde_process: the diffusions of the study."""

    process_id: pl.String = pa.Field(unique=True, description="id of the diffusion")
    kind: pl.String = pa.Field(
        isin=KINDS, description="Ornstein-Uhlenbeck (ou), log-cosh, or a chain on finitely many states"
    )
    d: pl.Int8 = pa.Field(ge=1, le=8, description="dimension of the state")
    rho: pl.Float64 = pa.Field(gt=0, description="strong convexity of f")
    alpha: pl.Float64 = pa.Field(ge=0, description="weight of log cosh x in f; 0 for Ornstein-Uhlenbeck")
    B: pl.Float64 = pa.Field(gt=0, description="E_pi |x|")
    variance: pl.Float64 = pa.Field(gt=0, description="of pi, in each coordinate")


class Population(Result):
    """E1: the Bayes classifier of an Ornstein-Uhlenbeck process against q = pi, and the height of its kernel."""

    process_id: pl.String = pa.Field(description="id of the diffusion")
    eta: pl.Float64 = pa.Field(gt=0, description="time between the points of a pair")
    eps_star: pl.Float64 = pa.Field(gt=0, le=0.25, description="R(h*)")
    height: pl.Float64 = pa.Field(gt=0, description="E_{pi, p*} p*, by quadrature")
    height_exact: pl.Float64 = pa.Field(gt=0, description="(4 pi s^2)^(-d/2)")

    class Config:
        """One row per interval."""

        unique = ["process_id", "eta"]


class Beta(Result):
    """sde_beta: mixing of an Ornstein-Uhlenbeck process after a time t, and the bound of Lemma 5."""

    process_id: pl.String = pa.Field(description="id of the diffusion")
    t: pl.Float64 = pa.Field(gt=0, description="time that has passed")
    beta: pl.Float64 = pa.Field(ge=0, le=1, description="E_{z ~ pi} TV(P^t(. | z), pi)")
    bound: pl.Float64 = pa.Field(gt=0, description="B/sqrt(2 pi t)")
    tv_z0: pl.Float64 = pa.Field(ge=0, le=1, description="from z = 0")
    tv_z5: pl.Float64 = pa.Field(ge=0, le=1, description="from five standard deviations away")

    class Config:
        """One row per time."""

        unique = ["process_id", "t"]


class Bounds(Result):
    """sde_bounds: an inequality lhs <= rhs on an instance, and whether it is expected to hold."""

    check: pl.String = pa.Field(isin=CHECKS, description="the statement that is checked")
    draw: pl.Int32 = pa.Field(ge=0, description="number of the instance within its check, from 0")
    case: pl.String = pa.Field(description="what is on the left, or of which instance")
    lhs: pl.Float64 = pa.Field(description="left side")
    rhs: pl.Float64 = pa.Field(description="right side")
    ratio: pl.Float64 = pa.Field(nullable=True, description="lhs/rhs; null where rhs is 0")
    holds: pl.Boolean = pa.Field(description="whether lhs <= rhs, up to rounding")
    expected: pl.Boolean = pa.Field(description="false for printed forms that are known to fail here")

    class Config:
        """One row per check and draw."""

        unique = ["check", "draw"]

    @pa.dataframe_check(name="holds follows from both sides")
    def holds_is_computed(cls, data: PolarsData) -> pl.LazyFrame:
        lhs, rhs = pl.col("lhs"), pl.col("rhs")
        # Rounding of sums of some hundred terms.
        return data.lazyframe.select(pl.col("holds") == (lhs <= rhs + 1e-12 * (1 + rhs.abs())))


class Fit(Result):
    """sde_fit: what a classifier of pairs recovered of the kernel."""

    process_id: pl.String = pa.Field(description="id of the diffusion")
    d: pl.Int8 = pa.Field(ge=1, le=8, description="dimension of the state")
    q_id: pl.String = pa.Field(description="the law of the noise, as figures name it")
    q_kind: pl.String = pa.Field(
        isin=CONTRASTS,
        description="whether the noise is drawn around a fixed point (marginal) or around z (conditional)",
    )
    mu_q: pl.Float64 = pa.Field(description="mean of the noise; of a conditional one, from z")
    sd_q: pl.Float64 = pa.Field(gt=0, description="standard deviation of the noise, in each coordinate")
    eta: pl.Float64 = pa.Field(gt=0, description="time between the points of a pair")
    T: pl.Float64 = pa.Field(ge=0, description="time span 2 m eta; 0 for a kernel that is not learned")
    m: pl.Int32 = pa.Field(ge=0, description="pairs; 0 for a kernel that is not learned")
    model: pl.String = pa.Field(
        isin=CLASSIFIERS,
        description="log-quadratic classifier, neural network (mlp), or a kernel that is not learned: Euler's, or the "
        "normal one with a linear mean that is closest to the true one",
    )
    seed: pl.Int32 = pa.Field(ge=0, description="number of the trajectory, from 0; 0 for a kernel that is not learned")
    exc: pl.Float64 = pa.Field(ge=0, description="R(h) - R(h*)")
    kl: pl.Float64 = pa.Field(
        ge=-1e-9, nullable=True, description="E_pi KL(p* | p), rows of p normalised; null where p is no density"
    )
    l1: pl.Float64 = pa.Field(ge=0, nullable=True, description="E_{pi, p*} |p - p*|; null where it overflows")
    mass_err: pl.Float64 = pa.Field(ge=0, nullable=True, description="E_pi |int p - 1|; null where it overflows")
    slope: pl.Float64 = pa.Field(nullable=True, description="of E_p[z' | z] on z, through 0")
    drift_rmse: pl.Float64 = pa.Field(ge=0, nullable=True, description="of E_p[z' | z], over eta")
    cq95: pl.Float64 = pa.Field(ge=1, description="exp of the 95 % quantile of |log p*/q| under the law of pairs")
    cq99: pl.Float64 = pa.Field(ge=1, description="the same with the 99 % quantile")
    kl_star_q: pl.Float64 = pa.Field(ge=0, description="E_pi KL(p* | q)")
    eps_star: pl.Float64 = pa.Field(gt=0, le=0.25, description="R(h*)")

    class Config:
        """One row per fitted classifier."""

        unique = ["process_id", "q_id", "eta", "m", "model", "seed"]


class KernelMap(Result):
    """sde_kernel_ref: kernels on a grid, the true one and those that are learned."""

    process_id: pl.String = pa.Field(description="id of the diffusion")
    source: pl.String = pa.Field(isin=[TRUE, LEARNED, EULER], description="the true kernel, a learned one, or Euler's")
    q_id: pl.String = pa.Field(description="the noise of a learned kernel; empty for others")
    eta: pl.Float64 = pa.Field(gt=0, description="time from z to z'")
    m: pl.Int32 = pa.Field(ge=0, description="pairs of a learned kernel; 0 for others")
    seed: pl.Int32 = pa.Field(ge=-1, description="of a learned kernel; -1 for others")
    z: pl.Float64 = pa.Field(description="first point")
    z_prime: pl.Float64 = pa.Field(description="second point, z'")
    p: pl.Float64 = pa.Field(ge=0, description="density of z' given z, rows normalised")
    pi_z: pl.Float64 = pa.Field(ge=0, description="density of z")

    class Config:
        """One row per kernel and pair of points."""

        unique = ["process_id", "source", "q_id", "m", "seed", "z", "z_prime"]


class Gap(Result):
    """sde_gap: the largest difference between empirical and population risk in a finite class of classifiers."""

    eta: pl.Float64 = pa.Field(gt=0, description="time between the points of a pair")
    T: pl.Float64 = pa.Field(gt=0, description="time span of the trajectory, 2 m eta up to rounding")
    m: pl.Int32 = pa.Field(ge=1, description="pairs of the trajectory")
    seed: pl.Int32 = pa.Field(ge=0, description="number of the trajectory, from 0")
    phi: pl.Float64 = pa.Field(ge=0, le=1, description="largest |empirical risk - risk| in the class, from 0 to 1")
    n_class: pl.Int32 = pa.Field(ge=2, description="classifiers in the class")

    class Config:
        """One row per trajectory."""

        unique = ["eta", "T", "seed"]


class Independent(Result):
    """sde_independent: what as many pairs give that are drawn independently of each other, from the same law."""

    quantity: pl.String = pa.Field(isin=[DRIFT_ERROR, GAP], description="root mean square error of the drift, or Phi")
    eta: pl.Float64 = pa.Field(gt=0, description="time between the points of a pair")
    T: pl.Float64 = pa.Field(gt=0, description="time span of a trajectory with as many pairs, 2 m eta up to rounding")
    m: pl.Int32 = pa.Field(ge=1, description="pairs")
    seed: pl.Int32 = pa.Field(ge=0, description="number of the trajectory whose labels and noise these pairs have")
    draw: pl.Int32 = pa.Field(ge=0, description="number of the sample beside this trajectory, from 0")
    value: pl.Float64 = pa.Field(gt=0, nullable=True, description="the quantity; null where p is no density")

    class Config:
        """One row per sample."""

        unique = ["quantity", "eta", "T", "seed", "draw"]


class Complexity(Result):
    """SDE-RAD: empirical Rademacher complexity of the same class (Eq. 2.8), over random signs."""

    eta: pl.Float64 = pa.Field(gt=0, description="time between the points of a pair")
    T: pl.Float64 = pa.Field(gt=0, description="time span of the trajectory, 2 m eta up to rounding")
    m: pl.Int32 = pa.Field(ge=1, description="pairs of the trajectory")
    seed: pl.Int32 = pa.Field(ge=0, description="number of the trajectory, from 0")
    complexity: pl.Float64 = pa.Field(
        ge=0, le=1, description="mean over random signs of the largest |mean of sign times h| in the class"
    )
    massart: pl.Float64 = pa.Field(gt=0, description="sqrt(2 log(2 n_class)/m), its bound for a finite class")

    class Config:
        """One row per trajectory."""

        unique = ["eta", "T", "seed"]


class Closeness(Result):
    """Beyond the source: how close each law of noise is to the kernel, and the limit law of its errors."""

    q_id: pl.String = pa.Field(unique=True, description="the law of the noise, as figures name it")
    mu_q: pl.Float64 = pa.Field(description="mean of the noise")
    sd_q: pl.Float64 = pa.Field(gt=0, description="standard deviation of the noise")
    m: pl.Int32 = pa.Field(ge=1, description="pairs of each trajectory")
    two_sided: pl.Float64 = pa.Field(ge=1, description="exp of the 95 % quantile of |log p*/q| under the law of pairs")
    one_sided: pl.Float64 = pa.Field(gt=0, description="exp of the 95 % quantile of log p*/q under the law of pairs")
    kl_star_q: pl.Float64 = pa.Field(ge=0, description="E_pi KL(p* | q)")
    limit_exc: pl.Float64 = pa.Field(gt=0, description="limit of m E Exc")
    limit_kl: pl.Float64 = pa.Field(gt=0, description="limit of m E KL")
    limit_log_exc: pl.Float64 = pa.Field(description="limit of E log(m Exc)")
    limit_log_kl: pl.Float64 = pa.Field(description="limit of E log(m KL)")
    kl: pl.Float64 = pa.Field(
        ge=0,
        nullable=True,
        description="measured: geometric mean over trajectories; null where only limits are computed",
    )
    exc: pl.Float64 = pa.Field(ge=0, nullable=True, description="measured: geometric mean over trajectories")


class Widths(Result):
    """Beyond the source: what wide noise costs in the limit, far beyond the widths that are fitted."""

    eta: pl.Float64 = pa.Field(gt=0, description="time between the points of a pair")
    sd_q: pl.Float64 = pa.Field(gt=0, description="standard deviation of the noise, whose mean is that of the process")
    limit_kl: pl.Float64 = pa.Field(gt=0, description="limit of m E KL")
    limit_exc: pl.Float64 = pa.Field(gt=0, description="limit of m E Exc")
    over: pl.Float64 = pa.Field(gt=0, description="limit_kl over that of the narrowest noise")

    class Config:
        """One row per interval and width."""

        unique = ["eta", "sd_q"]


class ClosenessFits(Result):
    """Beyond the source: excess risk and KL of every fitted classifier."""

    q_id: pl.String = pa.Field(description="the law of the noise, as figures name it")
    seed: pl.Int32 = pa.Field(ge=0, description="number of the trajectory, from 0")
    exc: pl.Float64 = pa.Field(gt=0, description="R(h) - R(h*)")
    kl: pl.Float64 = pa.Field(gt=0, description="E_pi KL(p* | p), rows of p normalised")

    class Config:
        """One row per classifier."""

        unique = ["q_id", "seed"]


SCHEMAS = {
    "sde_process": Process,
    "sde_population": Population,
    "sde_beta": Beta,
    "sde_bounds": Bounds,
    "sde_fit": Fit,
    "sde_kernel_ref": KernelMap,
    "sde_gap": Gap,
    "sde_complexity": Complexity,
    "sde_independent": Independent,
    "sde_closeness": Closeness,
    "sde_closeness_fits": ClosenessFits,
    "sde_widths": Widths,
}
