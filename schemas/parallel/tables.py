"""Result tables of the study (chapter section 8)."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.comparisons import Comparisons
from schemas.parallel import translation
from schemas.parallel.datasets import FAMILIES
from schemas.results import Result

FULL, J_ONLY, ALLMASK = VARIANTS = ["full", "J_only", "allmask"]
DESCENT, NEWTON = OPTIMISERS = ["gd", "newton"]
GIBBS, INDEPENDENT = SAMPLERS = ["kgibbs", "indep"]
MARGINALS = "marginals"
DECODERS = [MARGINALS, INDEPENDENT]
REACH, STUCK, SEPARATION = PROPOSITIONS = ["reach", "stuck", "separation"]
# Sets of masks of EXP-6: of two pairs, (1, 2) and (3, 4), coupled strongly within
SINGLES, MISALIGNED, PAIRS, ALIGNED, ALL = SCHEMES = [
    "singles",
    "misaligned pairs",
    "all pairs",
    "aligned pairs",
    "all",
]
CROSSED = "crossed pairs"  # (1, 4) and (2, 3): of two coupled pairs the mirror image of the misaligned ones
ZERO, UNIFORM_CLIQUE, UNIFORM_ALL, EXPLICIT = FIELD_RULES = ["zero", "uniform_clique", "uniform_all", "explicit"]
PRODUCT_KERNEL, DETERMINISTIC = KERNELS = ["product", "deterministic"]
COUPLED, PRODUCT = FINITE = ["coupled", "product"]


class Law(Result):
    """A law that other tables name, as an Ising model."""

    dist_id: pl.String = pa.Field(
        unique=True, description="flat, modes, clique-J, pairs-J, random-sigma-draw, drawn-sigma-draw, fig43-J"
    )
    N: pl.Int32 = pa.Field(ge=2, le=100, description="spins of the model")
    c: pl.Int32 = pa.Field(ge=0, description="spins of the clique, the first ones; 0 for a law without one")
    J: pl.Float64 = pa.Field(description="coupling; of two pairs, that within; of random models, sigma")
    h_rule: pl.String = pa.Field(isin=FIELD_RULES, description="fields: none, one on the clique, one on all, any")
    theta: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="couplings of pairs, then fields")
    asm415: pl.Boolean = pa.Field(description="Assumption 4.1.5 holds")
    h_G: pl.Float64 = pa.Field(description="sum of the clique's fields")
    J0: pl.Float64 = pa.Field(description="J less the sum of the absolute fields")
    h_l1: pl.Float64 = pa.Field(ge=0, description="sum of the absolute fields")


class StateProbability(Result):
    """The probability of every state of a law of ten spins at most."""

    dist_id: pl.String = pa.Field(description="as in par_dist")
    state: pl.Int32 = pa.Field(ge=0, description="a bit for each spin, the first the most significant, +1 as 1")
    prob: pl.Float64 = pa.Field(gt=0, le=1, description="probability of the state")

    class Config:
        """One row per law and state."""

        unique = ["dist_id", "state"]

    @pa.dataframe_check(name="the probabilities of a law sum to 1")
    def sums(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("prob").sum().over("dist_id") - 1).abs() <= 1e-12)


class MaskScheme(Result):
    """The masks of a set with their probabilities, which may depend on the state."""

    scheme_id: pl.String = pa.Field(description="set of masks, as in par_asymp; of ten spins k and a number, of 10")
    N: pl.Int32 = pa.Field(ge=2, description="spins of the model")
    mask: pl.Int32 = pa.Field(ge=1, description="a bit for each position, the first the most significant")
    weight: pl.Float64 = pa.Field(gt=0, le=1, description="probability of the mask, given the state if adaptive")
    adaptive: pl.Boolean = pa.Field(description="the probability depends on the state")
    state: pl.Int32 = pa.Field(ge=0, nullable=True, description="of adaptive sets")

    class Config:
        """One row per set and mask, and state."""

        unique = ["scheme_id", "mask", "state"]

    @pa.dataframe_check(name="masks cover all positions, and their probabilities sum to 1")
    def sums(cls, data: PolarsData) -> pl.LazyFrame:
        group = ("scheme_id", "state")
        total = pl.col("weight").sum().over(group)
        cover = pl.col("mask").bitwise_or().over("scheme_id") == 2 ** pl.col("N") - 1
        return data.lazyframe.select(((total - 1).abs() <= 1e-12) & cover)


class Kernel(Result):
    """A constructed parallel decoder beside the kernel or map that it is to be (chapter 5.13)."""

    N: pl.Int32 = pa.Field(ge=1, description="positions")
    vocab: pl.Int32 = pa.Field(ge=2, description="tokens")
    kind: pl.String = pa.Field(isin=KERNELS, description="a random product kernel, or a random map of sequences")
    d_model: pl.Int32 = pa.Field(ge=1, description="width")
    ffn: pl.Int32 = pa.Field(ge=1, description="feed-forward width of the second block")
    max_err: pl.Float64 = pa.Field(ge=0, description="largest difference of a probability; of maps, share of errors")
    states_ok: pl.Int32 = pa.Field(ge=0, description="sequences that are right: within 1e-12, or after all steps")
    steps: pl.Int32 = pa.Field(ge=1, description="steps that are composed")

    class Config:
        """One row per shape and kind."""

        unique = ["N", "vocab", "kind"]


class Asymptotics(Result):
    """What pseudolikelihood with a scheme of masks can estimate, and how fast the matching block dynamics mix."""

    dist_id: pl.String = pa.Field(
        description="law: flat or modes, clique-J, pairs-J of two pairs, random-sigma-draw of random models"
    )
    scheme_id: pl.String = pa.Field(
        description="set of masks: k and a number for all masks of that size, or a name of EXP-6"
    )
    variant: pl.String = pa.Field(isin=VARIANTS, description="all parameters, couplings alone, all masks averaged")
    N: pl.Int32 = pa.Field(ge=1, description="spins of the model")
    J: pl.Float64 = pa.Field(description="coupling; of two pairs, that within; of random models, sigma")
    d: pl.Int32 = pa.Field(ge=1, description="parameters that are fitted")
    k: pl.Int32 = pa.Field(ge=1, nullable=True, description="masked positions; null where masks differ in size")
    tr_gamma: pl.Float64 = pa.Field(gt=0, description="trace of the asymptotic covariance")
    tr_couplings: pl.Float64 = pa.Field(gt=0, description="the part of tr_gamma that is of the couplings")
    tr_fields: pl.Float64 = pa.Field(
        gt=0, nullable=True, description="the part of tr_gamma that is of the fields; null where they are not fitted"
    )
    tr_fisher_inv: pl.Float64 = pa.Field(
        gt=0, description="trace of the inverse Fisher information: that of maximum likelihood"
    )
    gap: pl.Float64 = pa.Field(ge=0, le=1 + 1e-9, description="of the matching block dynamics")
    C: pl.Float64 = pa.Field(ge=1 - 1e-9, description="Poincare constant, 1/gap")
    min_eig_bound: pl.Float64 = pa.Field(
        ge=-1e-8, nullable=True, description="smallest eigenvalue of C I^-1 - Gamma; null for averaged masks"
    )
    worst_ratio: pl.Float64 = pa.Field(ge=1 - 1e-9, description="largest eigenvalue of Gamma I")
    tightness: pl.Float64 = pa.Field(
        gt=0, le=1 + 1e-8, nullable=True, description="worst_ratio over C; null for averaged masks"
    )

    class Config:
        """One row per law, scheme and variant."""

        unique = ["dist_id", "scheme_id", "variant"]


class Fit(Result):
    """One fit of the repetitions that figures show."""

    dist_id: pl.String = pa.Field(description="target law: flat (J = 0.05) or modes (J = 0.3)")
    J: pl.Float64 = pa.Field(description="coupling of all pairs")
    k: pl.Int32 = pa.Field(ge=1, description="masked positions")
    variant: pl.String = pa.Field(isin=VARIANTS, description="all parameters, couplings alone, all masks averaged")
    n: pl.Int32 = pa.Field(ge=1, description="states of the sample")
    rep: pl.Int32 = pa.Field(ge=0, description="number of the repetition, from 0")
    optimiser: pl.String = pa.Field(isin=OPTIMISERS, description="gd: the trained run, single precision")
    sq_err_sum: pl.Float64 = pa.Field(ge=0, description="squared error, summed over parameters")
    sq_err_mean: pl.Float64 = pa.Field(ge=0, description="squared error, averaged over parameters")
    grad_inf: pl.Float64 = pa.Field(ge=0, description="largest entry of the gradient, in double precision")
    iters: pl.Int32 = pa.Field(ge=0, description="steps of the optimiser")
    converged: pl.Boolean = pa.Field(
        description="of newton: grad_inf at most 1e-8, and no parameter at its cap; of gd: grad_inf below 1e-5"
    )
    apart: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="of gd: largest distance of a parameter from Newton's on the same sample"
    )

    class Config:
        """One row per fit."""

        unique = ["dist_id", "k", "variant", "n", "rep", "optimiser"]


class Cell(Result):
    """Squared errors of all repetitions of a sample size, by Newton's method."""

    dist_id: pl.String = pa.Field(description="target law: flat (J = 0.05) or modes (J = 0.3)")
    J: pl.Float64 = pa.Field(description="coupling of all pairs")
    k: pl.Int32 = pa.Field(ge=1, description="masked positions")
    variant: pl.String = pa.Field(isin=VARIANTS, description="all parameters, couplings alone, all masks averaged")
    n: pl.Int32 = pa.Field(ge=1, description="states of the sample")
    repetitions: pl.Int32 = pa.Field(ge=2, description="samples that were fitted")
    mse: pl.Float64 = pa.Field(ge=0, description="mean squared error, summed over parameters")
    sd: pl.Float64 = pa.Field(ge=0, description="of the squared error, over repetitions")
    tr_gamma: pl.Float64 = pa.Field(gt=0, description="trace of the asymptotic covariance")
    n_mse_ratio: pl.Float64 = pa.Field(ge=0, description="n mse over tr_gamma")
    whitened: pl.Float64 = pa.Field(ge=0, description="mean of n e' Gamma^-1 e over d; e the error")
    converged: pl.Int32 = pa.Field(ge=0, description="fits that converged")

    class Config:
        """One row per cell."""

        unique = ["dist_id", "k", "variant", "n"]


class HitExact(Result):
    """Steps to R_1 by the lumped chain."""

    dist_id: pl.String = pa.Field(description="law: fig43-J")
    sampler: pl.String = pa.Field(isin=SAMPLERS, description="kgibbs: k-Gibbs; indep: independent parallel sampling")
    k: pl.Int32 = pa.Field(ge=0, description="masked positions; 0 for independent parallel sampling")
    J: pl.Float64 = pa.Field(description="coupling of all pairs of the clique")
    N: pl.Int32 = pa.Field(ge=1, description="spins in all")
    c: pl.Int32 = pa.Field(ge=1, description="spins of the clique")
    h: pl.Float64 = pa.Field(description="field on each spin")
    budget: pl.Int32 = pa.Field(ge=1, description="steps after which a run is given up")
    mean_censored: pl.Float64 = pa.Field(ge=1 - 1e-9, description="E[min(T, budget)]")
    sd: pl.Float64 = pa.Field(ge=0, description="standard deviation of min(T, budget)")
    miss_prob: pl.Float64 = pa.Field(ge=-1e-12, le=1 + 1e-12, description="not there within the budget")
    large_J_limit: pl.Float64 = pa.Field(ge=1, nullable=True, description="C(N,k) / C(N-c,k-c); null for k < c")

    class Config:
        """One row per cell."""

        unique = ["sampler", "k", "J"]


class HitSim(Result):
    """Steps to R_1 of the runs that the figure shows."""

    dist_id: pl.String = pa.Field(description="law: fig43-J")
    sampler: pl.String = pa.Field(isin=SAMPLERS, description="kgibbs: k-Gibbs; indep: independent parallel sampling")
    k: pl.Int32 = pa.Field(ge=0, description="masked positions; 0 for independent parallel sampling")
    J: pl.Float64 = pa.Field(description="coupling of all pairs of the clique")
    rep: pl.Int32 = pa.Field(ge=0, description="number of the run, from 0")
    steps: pl.Int32 = pa.Field(ge=1, description="steps of the sampler to R_1")
    censored: pl.Boolean = pa.Field(description="not there within the budget; steps is the budget then")

    class Config:
        """One row per run."""

        unique = ["sampler", "k", "J", "rep"]


class HitCell(Result):
    """Steps to R_1 of all runs of a cell."""

    sampler: pl.String = pa.Field(isin=SAMPLERS, description="kgibbs: k-Gibbs; indep: independent parallel sampling")
    k: pl.Int32 = pa.Field(ge=0, description="masked positions; 0 for independent parallel sampling")
    J: pl.Float64 = pa.Field(description="coupling of all pairs of the clique")
    runs: pl.Int32 = pa.Field(ge=2, description="runs of the sampler")
    mean: pl.Float64 = pa.Field(ge=1, description="of min(T, budget)")
    se: pl.Float64 = pa.Field(ge=0, description="of the mean, by the exact standard deviation")
    reached: pl.Int32 = pa.Field(ge=0, description="runs that came to R_1")
    exact: pl.Float64 = pa.Field(ge=1 - 1e-9, description="mean of min(T, budget) by the lumped chain")
    off: pl.Float64 = pa.Field(ge=0, description="distance from exact over max(4 se, 1 step)")

    class Config:
        """One row per cell."""

        unique = ["sampler", "k", "J"]


class Proposition(Result):
    """One setting of Proposition 4.1.4 (reach), 4.1.5 (stuck) or Corollary 4.1.1 (separation)."""

    check_id: pl.String = pa.Field(isin=PROPOSITIONS, description="which of the three")
    cell: pl.Int32 = pa.Field(ge=0, description="number of the setting in its grid, from 0")
    c: pl.Int32 = pa.Field(ge=2, description="spins of the clique")
    N: pl.Int32 = pa.Field(ge=2, description="spins in all")
    k: pl.Int32 = pa.Field(ge=0, description="0 where no k enters")
    J0: pl.Float64 = pa.Field(gt=0, description="coupling less the sum of all fields")
    h_G: pl.Float64 = pa.Field(gt=0, description="sum of the fields on the clique; there are no others")
    delta: pl.Float64 = pa.Field(gt=0, lt=1, description="probability of failure that is granted")
    M: pl.Int32 = pa.Field(ge=0, description="of a separation, steps of the slow sampler; else 0")
    rate: pl.Float64 = pa.Field(nullable=True, description="c_R1 or c_stuck; null where r <= 0")
    T: pl.Int64 = pa.Field(ge=0, description="steps that the proposition speaks of")
    exact_T: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="of reach, fewest steps that do; of stuck, most; from the worst start"
    )
    exact_prob: pl.Float64 = pa.Field(ge=-1e-9, le=1 + 1e-9, description="of the good event, from the worst start")
    bound_prob: pl.Float64 = pa.Field(
        ge=0, le=1, description="probability that is promised: 1 - delta; of separation, 1 - delta/2"
    )
    one_step: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="of one step: into R_1 (reach, separation), from the worst start"
    )
    margin: pl.Float64 = pa.Field(description="exact_prob - bound_prob")
    applicable: pl.Boolean = pa.Field(
        description="the proposition says something: T >= 1, and r > 0 where it needs that"
    )
    passed: pl.Boolean = pa.Field(description="exact_prob is at least bound_prob, or nothing is said")
    mc_prob: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="share of runs with the good event")
    mc_runs: pl.Int32 = pa.Field(ge=1, nullable=True, description="simulated runs; null where none were")

    class Config:
        """One row per cell."""

        unique = ["check_id", "cell"]

    @pa.dataframe_check(name="passed follows from the probabilities")
    def follows(cls, data: PolarsData) -> pl.LazyFrame:
        holds = pl.col("exact_prob") >= pl.col("bound_prob") - 1e-12
        return data.lazyframe.select(pl.col("passed") == (holds | ~pl.col("applicable")))


class Correlation(Result):
    """What a product law loses on rows of k-Gibbs: total correlation."""

    dist_id: pl.String = pa.Field(description="law: clique-J, four spins without fields")
    J: pl.Float64 = pa.Field(description="coupling of all pairs")
    k: pl.Int32 = pa.Field(ge=1, description="masked positions")
    tc_nats: pl.Float64 = pa.Field(ge=-1e-12, description="mean over rows under the stationary law")
    tc_most: pl.Float64 = pa.Field(ge=-1e-12, description="largest of a row")
    tv_prod: pl.Float64 = pa.Field(ge=0, le=1, description="mean distance from the product of marginals")
    indep_kl: pl.Float64 = pa.Field(ge=-1e-12, description="mean divergence from independent parallel sampling's row")
    modes: pl.Float64 = pa.Field(ge=0, le=1, description="mass of both modes under the target")
    modes_prod: pl.Float64 = pa.Field(ge=0, le=1, description="mass of both under the product of its marginals")
    lost: pl.Float64 = pa.Field(
        ge=0,
        le=1,
        nullable=True,
        description="of k = N: distance of the law from that of four passes of independent parallel sampling; exact",
    )

    class Config:
        """One row per law and k."""

        unique = ["dist_id", "k"]


class Decoding(Result):
    """What decoding in parallel makes of a target, exactly: the best product law, or passes from random states."""

    dist_id: pl.String = pa.Field(description="target: clique-J, four spins without fields")
    J: pl.Float64 = pa.Field(description="coupling of all pairs")
    tc_nats: pl.Float64 = pa.Field(ge=-1e-12, description="total correlation of the target")
    decoder: pl.String = pa.Field(
        isin=DECODERS,
        description="marginals: the product of the target's; indep: independent parallel sampling from uniform states",
    )
    T: pl.Int32 = pa.Field(ge=1, description="passes")
    kl: pl.Float64 = pa.Field(ge=-1e-12, description="divergence of what is decoded from the target, nats")
    tv: pl.Float64 = pa.Field(ge=0, le=1, description="total variation between both")
    modes_lost: pl.Float64 = pa.Field(
        ge=-1, le=1, description="mass of both modes under the target, less that under what is decoded"
    )

    class Config:
        """One row per target, decoder and number of passes."""

        unique = ["dist_id", "decoder", "T"]


class FiniteSample(Result):
    """Theorem 4.1.4 on two spins: a fit, its distance from the truth, and both forms of the bound."""

    family: pl.String = pa.Field(
        isin=FINITE,
        description="coupled: one coupling, both spins masked; product: one field for both, one spin masked",
    )
    N: pl.Int32 = pa.Field(ge=2, description="spins of the model")
    k: pl.Int32 = pa.Field(ge=1, description="masked positions")
    n: pl.Int64 = pa.Field(ge=1, description="states of the sample")
    m: pl.Int64 = pa.Field(ge=1, description="masks of each sample")
    rep: pl.Int32 = pa.Field(ge=0, description="number of the repetition, from 0")
    tv: pl.Float64 = pa.Field(ge=0, le=1, description="total variation between the fitted law and the truth")
    loss_nll: pl.Float64 = pa.Field(ge=0, description="mean of -log p of what is masked, at the fit, nats")
    loss_kl: pl.Float64 = pa.Field(
        description="less the sample's conditional entropy; masks drawn, so near 0 of any sign"
    )
    C_AT: pl.Float64 = pa.Field(ge=1, description="constant of approximate tensorisation of entropy; N/k here")
    beta: pl.Float64 = pa.Field(gt=0, lt=1, description="least conditional probability of all parameters")
    C_eps: pl.Int32 = pa.Field(ge=1, description="cells that cover the range of the parameter")
    term_mask: pl.Float64 = pa.Field(ge=0, description="of the bound, for masks that are drawn; falls with m")
    term_sample: pl.Float64 = pa.Field(ge=0, description="of the bound, for states that are drawn; falls with n")
    term_emp: pl.Float64 = pa.Field(
        ge=0, description="of the bound, added outside the root: the sample's distance from the truth; falls with n"
    )
    bound_nll: pl.Float64 = pa.Field(ge=0, description="bound on tv from loss_nll")
    bound_kl: pl.Float64 = pa.Field(ge=0, description="bound on tv from loss_kl")
    violated: pl.Boolean = pa.Field(description="tv above one of the bounds")

    class Config:
        """One row per fit."""

        unique = ["family", "n", "m", "rep"]


class SchemeModel(Result):
    """A masked Transformer, trained on one sample of a law under one set of masks."""

    law: pl.String = pa.Field(description="id: pairs-J of two coupled pairs, drawn-sigma-draw of random models")
    scheme: pl.String = pa.Field(description="set of masks, each equally likely")
    k: pl.Int32 = pa.Field(ge=1, le=4, description="masked positions")
    n: pl.Int32 = pa.Field(ge=1, description="states of the sample, each with one mask")
    repetition: pl.Int32 = pa.Field(ge=0, description="of sample and initial weights, from 0")
    kl: pl.Float64 = pa.Field(
        ge=-1e-12,
        description="divergence of the stationary law of block dynamics with the model's conditional laws from the "
        "true law, nats",
    )
    kl_conditional: pl.Float64 = pa.Field(
        ge=-1e-12, description="mean divergence of the model's conditional laws from the true ones, nats"
    )
    kl_untrained: pl.Float64 = pa.Field(ge=-1e-12, description="as kl, of the same model before training")
    slow: pl.Float64 = pa.Field(
        ge=0, description="n times the squared error of the mean of the slowest mode, which has variance 1"
    )

    class Config:
        """One row per model."""

        unique = ["law", "scheme", "n", "repetition"]


class SchemeCell(Result):
    """What is exact of a law under a set of masks, and the mean errors of the Transformers that learned from it."""

    law: pl.String = pa.Field(description="id: pairs-J of two coupled pairs, drawn-sigma-draw of random models")
    family: pl.String = pa.Field(isin=FAMILIES, description="two coupled pairs (PAR-D7) or random models (PAR-D6)")
    strength: pl.Float64 = pa.Field(ge=0, description="coupling within pairs; of random models, sigma")
    scheme: pl.String = pa.Field(description="set of masks, each equally likely")
    k: pl.Int32 = pa.Field(ge=1, le=4, description="masked positions")
    n: pl.Int32 = pa.Field(ge=1, description="states of a sample")
    predicted: pl.Int32 = pa.Field(ge=1, description="positions that are predicted in a sample, k n")
    C: pl.Float64 = pa.Field(ge=1 - 1e-9, description="Poincare constant of the block dynamics with the same masks")
    modes: pl.Float64 = pa.Field(
        gt=0, description="sum of 1/(1 - lambda) over all modes of the block dynamics: 2 n times the expected kl"
    )
    tr_gamma: pl.Float64 = pa.Field(gt=0, description="trace of the asymptotic covariance of the Ising model's fit")
    tr_ratio: pl.Float64 = pa.Field(gt=0, description="trace of Gamma I: 2 n times the expected kl of the Ising model")
    rarest: pl.Float64 = pa.Field(gt=0, description="expected count of the rarest mask with what it leaves")
    models: pl.Int32 = pa.Field(ge=1, description="trained models")
    scaled_kl: pl.Float64 = pa.Field(ge=0, description="mean of 2 n kl over models")
    scaled_se: pl.Float64 = pa.Field(ge=0, description="its standard error")
    slow: pl.Float64 = pa.Field(ge=0, description="mean of slow over models; C is expected")

    class Config:
        """One row per law, set of masks and sample size."""

        unique = ["law", "scheme", "n"]


SCHEMAS = translation.SCHEMAS | {
    "par_dist": Law,
    "par_state_prob": StateProbability,
    "par_mask_scheme": MaskScheme,
    "par_kernel": Kernel,
    "par_asymp": Asymptotics,
    "par_mple_fit": Fit,
    "par_mple_cell": Cell,
    "par_hit_exact": HitExact,
    "par_hit_sim": HitSim,
    "par_hit_cell": HitCell,
    "par_prop_cell": Proposition,
    "par_tc": Correlation,
    "par_decoding": Decoding,
    "par_finite_sample": FiniteSample,
    "par_scheme_model": SchemeModel,
    "par_scheme": SchemeCell,
    "comparisons": Comparisons,
}
