"""Hidden Markov models as parameters, and the tables of their experiments (chapter section 8)."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from pipeline.languages.hmm import TOLERANCE
from schemas.results import Result

O, M, T = MATRICES = ["O", "M", "T"]
ROTATED, CIRCULANT = "rotated", "circulant"
PRINTED, RANDOM, GAUSSIAN = FAMILIES = ["published", "random", "ghmm"]
PAIRS = [PRINTED, ROTATED, CIRCULANT]
HMM, UNIT, FREE = SPACES = ["hmm", "ghmm_unit", "ghmm_free"]
# As in `pipeline.models.masked_prediction.identifiability`, which tables do not import.
TASKS = ["pair", "allpair", "triple1", "triple2", "triple3"]
ONE, OTHER = MODELS = ["model", "twin"]
EXACT, SAMPLE = SOURCES = ["population", "sample"]
JENNRICH, ALS = METHODS = ["jennrich", "als"]
SOLUTION, MIRROR = CANDIDATES = ["solution", "mirror image"]
RATIO, PEARSON = TESTS = ["likelihood ratio", "Pearson"]


class HmmParam(pa.DataFrameModel):
    """Models as parameters: an entry of a matrix in each row. O and T have columns that sum to 1, and T such rows."""

    instance_id: pl.String = pa.Field(str_length={"min_value": 1}, description="id of the model")
    family: pl.String = pa.Field(
        isin=FAMILIES, description="where the model is from: the source, drawn at random, or a G-HMM drawn at random"
    )
    matrix: pl.String = pa.Field(isin=MATRICES, description="O: emissions, M: means, T: transitions")
    row: pl.Int8 = pa.Field(ge=0, description="row of the entry, from 0")
    col: pl.Int8 = pa.Field(ge=0, description="column of the entry, from 0")
    value: pl.Float64 = pa.Field(description="the entry; of O and T a probability")

    class Config:
        """Exactly these columns, in this order; one row per entry."""

        strict = True
        ordered = True
        unique = ["instance_id", "matrix", "row", "col"]

    @pa.dataframe_check(name="entries of O and T are probabilities")
    def probabilities(cls, data: PolarsData) -> pl.LazyFrame:
        inside = pl.col("value").is_between(0, 1)
        return data.lazyframe.select(inside | (pl.col("matrix") == M))

    @pa.dataframe_check(name="columns of O and T sum to 1")
    def columns_sum_to_one(cls, data: PolarsData) -> pl.LazyFrame:
        total = pl.col("value").sum().over("instance_id", "matrix", "col")
        return data.lazyframe.select(((total - 1).abs() <= TOLERANCE) | (pl.col("matrix") == M))

    @pa.dataframe_check(name="rows of T sum to 1")
    def rows_sum_to_one(cls, data: PolarsData) -> pl.LazyFrame:
        total = pl.col("value").sum().over("instance_id", "matrix", "row")
        return data.lazyframe.select(((total - 1).abs() <= TOLERANCE) | (pl.col("matrix") != T))


class HmmEquivalence(Result):
    """E7, sections 5.6 to 5.8: how far the best predictors of two models are apart, task by task."""

    family: pl.String = pa.Field(
        isin=PAIRS,
        description="how the pair was made: printed in the source, by rotation, or from a cycle with the same power",
    )
    instance_a: pl.String = pa.Field(description="id of the first model")
    instance_b: pl.String = pa.Field(description="id of the second model")
    task: pl.String = pa.Field(str_matches=r"^x[0-9]+(x[0-9]+)?\|x[0-9]+$", description="predicted | shown")
    tokens: pl.Int8 = pa.Field(isin=[1, 2], description="that are predicted")
    max_abs_diff: pl.Float64 = pa.Field(ge=0, description="of two entries of the predictor")
    fro_diff: pl.Float64 = pa.Field(ge=0, description="Frobenius norm of the difference of the predictors")
    dist_O: pl.Float64 = pa.Field(ge=0, description="Frobenius distance, under the relabelling that is best for O")
    dist_T: pl.Float64 = pa.Field(ge=0, description="Frobenius distance, under the same relabelling")

    class Config:
        """One row per pair and task."""

        unique = ["instance_a", "instance_b", "task"]


class HmmMatrices(Result):
    """E7: O and T of both models of a pair that no predictor of one token tells apart."""

    pair: pl.String = pa.Field(description="id of the first model of the pair")
    model: pl.String = pa.Field(
        isin=MODELS, description="the first model, or its twin under the relabelling that is best for O"
    )
    matrix: pl.String = pa.Field(isin=[O, T], description="O: emissions, T: transitions")
    row: pl.Int8 = pa.Field(ge=0, description="row of the entry, from 0")
    col: pl.Int8 = pa.Field(ge=0, description="column of the entry, from 0")
    value: pl.Float64 = pa.Field(ge=0, le=1, description="the entry, a probability")

    class Config:
        """One row per entry."""

        unique = ["pair", "model", "matrix", "row", "col"]


class HmmTurns(Result):
    """E7: one model along the rotation about the all-ones axis."""

    instance_id: pl.String = pa.Field(description="id of the model that is turned")
    theta: pl.Float64 = pa.Field(description="radians")
    widest: pl.Float64 = pa.Field(ge=0, description="first angle, at most pi/3, at which an entry is negative")
    min_entry: pl.Float64 = pa.Field(description="of O and T of the twin; it is an HMM where this is not negative")
    pair_diff: pl.Float64 = pa.Field(ge=0, description="largest of all four predictors of one token")
    triple_diff: pl.Float64 = pa.Field(ge=0, description="largest of the case of Theorem 7 where it is smallest")
    dist_O: pl.Float64 = pa.Field(
        ge=0, description="Frobenius distance of the twin's O, under the relabelling that is best for O"
    )
    dist_T: pl.Float64 = pa.Field(ge=0, description="Frobenius distance of the twin's T, under the same relabelling")

    class Config:
        """One row per model and angle."""

        unique = ["instance_id", "theta"]


class HmmPaths(Result):
    """E7: where the posterior of each symbol lies in the triangle of three hidden states, along the rotation."""

    instance_id: pl.String = pa.Field(description="id of the model that is turned")
    theta: pl.Float64 = pa.Field(description="angle of the rotation, radians from 0 to 2 pi")
    symbol: pl.Int8 = pa.Field(ge=1, description="number of the observed symbol, from 1")
    u: pl.Float64 = pa.Field(description="of the triangle with corners (0, 0), (1, 0), (1/2, sqrt(3)/2)")
    v: pl.Float64 = pa.Field(description="vertical place of the posterior in the same triangle")
    valid: pl.Boolean = pa.Field(description="whether no entry of the twin is negative")

    class Config:
        """One row per model, angle and symbol."""

        unique = ["instance_id", "theta", "symbol"]


class HmmPower(Result):
    """E7, section 5.8: the cycle T that stays with probability a, and T~ = G T with T~^t = T^t (Claim 3)."""

    a: pl.Float64 = pa.Field(ge=0, le=1, description="probability with which the cycle stays in its state")
    t: pl.Int32 = pa.Field(ge=2, le=50, description="power in which T~ and T agree")
    min_entry: pl.Float64 = pa.Field(description="of T~")
    max_power_diff: pl.Float64 = pa.Field(ge=0, description="largest |T~^t - T^t|")
    commutator: pl.Float64 = pa.Field(ge=0, description="largest |G T - T G|")
    dist_T: pl.Float64 = pa.Field(ge=0, description="largest |T~ - T|")
    dist_T_relabel: pl.Float64 = pa.Field(ge=0, description="the same, under the best relabelling")
    closed_form_err: pl.Float64 = pa.Field(ge=0, nullable=True, description="at a = 1/2 alone")

    class Config:
        """One row per a and t."""

        unique = ["a", "t"]


class HmmJacobian(Result):
    """E7, section 5.9: directions of parameters that a task sees, near a model."""

    instance_id: pl.String = pa.Field(description="id of the model")
    model: pl.String = pa.Field(isin=SPACES, description="of a G-HMM with norms of means known, or free")
    task: pl.String = pa.Field(
        isin=TASKS, description="x2 from x1 (pair), all four of one token (allpair), or two tokens by case of Theorem 7"
    )
    d: pl.Int32 = pa.Field(ge=2, description="observed symbols; of a G-HMM, dimension of the means")
    k: pl.Int32 = pa.Field(ge=2, description="hidden states")
    n_param: pl.Int32 = pa.Field(ge=1, description="directions in which the parameters can move")
    rank: pl.Int32 = pa.Field(ge=0, description="directions that the task sees")
    deficit: pl.Int32 = pa.Field(ge=0, description="directions that the task does not see")
    predicted: pl.Int32 = pa.Field(ge=0, description="deficit by theory")
    s_ratio: pl.Float64 = pa.Field(gt=0, description="smallest singular value that is seen, over the largest")
    s_next: pl.Float64 = pa.Field(ge=0, description="largest singular value that is not seen, over the largest")

    class Config:
        """One row per model, space and task."""

        unique = ["instance_id", "model", "task"]

    @pa.dataframe_check(name="rank and deficit are all parameters")
    def adds_up(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("rank") + pl.col("deficit") == pl.col("n_param"))


class HmmExplorer(Result):
    """Models that the page's explorer turns: entries of few digits, which a page shows exactly."""

    instance_id: pl.String = pa.Field(description="id of the model")
    matrix: pl.String = pa.Field(isin=[O, T], description="O: emissions, T: transitions")
    row: pl.Int8 = pa.Field(ge=0, description="row of the entry, from 0")
    col: pl.Int8 = pa.Field(ge=0, description="column of the entry, from 0")
    value: pl.Float64 = pa.Field(ge=0, le=1, description="the entry, a probability")

    class Config:
        """One row per entry."""

        unique = ["instance_id", "matrix", "row", "col"]


class HmmRecovery(Result):
    """E8: O and T recovered from a predictor of two tokens, exact or the conditional shares of a sample."""

    instance_id: pl.String = pa.Field(description="id of the model")
    d: pl.Int32 = pa.Field(ge=2, description="observed symbols")
    k: pl.Int32 = pa.Field(ge=2, description="hidden states")
    case: pl.Int8 = pa.Field(isin=[1, 2, 3], description="of Theorem 7: which token is shown, from 1 to 3")
    source: pl.String = pa.Field(isin=SOURCES, description="the exact predictor (population), or shares of a sample")
    N: pl.Int64 = pa.Field(ge=0, description="triples; 0: the exact predictor")
    method: pl.String = pa.Field(
        isin=METHODS, description="Jennrich's algorithm, or alternating least squares (ALS) from its result"
    )
    err_O: pl.Float64 = pa.Field(ge=0, description="Frobenius norm, under the relabelling that is best for O")
    err_T: pl.Float64 = pa.Field(ge=0, description="Frobenius norm, under the same relabelling")
    sigma_O: pl.Float64 = pa.Field(gt=0, description="k-th singular value")
    sigma_T: pl.Float64 = pa.Field(gt=0, description="k-th singular value of T")
    kruskal_ok: pl.Boolean = pa.Field(description="whether k_A + k_B + k_C >= 2k + 2")

    class Config:
        """One row per model, case, sample and method."""

        unique = ["instance_id", "case", "source", "N", "method"]


class HmmSlopes(Result):
    """E8, E10: least squares of the logarithm of an error on the logarithm of the number of samples."""

    quantity: pl.String = pa.Field(description="the column that the line is fitted to")
    case: pl.Int8 = pa.Field(ge=0, description="of Theorem 7; 0 for none")
    group: pl.String = pa.Field(description="method, or norm of the means")
    first_N: pl.Int64 = pa.Field(description="smallest number of samples; 0 where the line is not over samples")
    last_N: pl.Int64 = pa.Field(description="largest number of samples; 0 where the line is not over samples")
    instances: pl.Int32 = pa.Field(ge=1, description="models")
    of_medians: pl.Float64 = pa.Field(description="slope of medians over models")
    mean: pl.Float64 = pa.Field(description="mean over models of their own slopes")
    last_median: pl.Float64 = pa.Field(ge=0, description="of the error, at the largest number")

    class Config:
        """One row per fit."""

        unique = ["quantity", "case", "group"]


class HmmLearned(Result):
    """E8 (c): tables that learned a predictor of two tokens by SGD, and what is recovered from them."""

    instance_id: pl.String = pa.Field(description="id of the model")
    case: pl.Int8 = pa.Field(isin=[1, 2, 3], description="of Theorem 7: which token is shown, from 1 to 3")
    samples: pl.Int64 = pa.Field(ge=1, description="triples that the table learned from")
    to_shares: pl.Float64 = pa.Field(ge=0, description="Frobenius distance of the table from the sample's shares")
    start: pl.Float64 = pa.Field(ge=0, description="the same before training")
    shares_to_law: pl.Float64 = pa.Field(ge=0, description="of the sample's shares from the exact predictor")
    err_O: pl.Float64 = pa.Field(ge=0, description="of O recovered from the table, Jennrich and ALS")
    err_O_shares: pl.Float64 = pa.Field(ge=0, description="of O recovered from the sample's shares")

    class Config:
        """One row per table."""

        unique = ["instance_id", "case"]


class HmmFit(Result):
    """E9: parameters fitted to an exact predictor, from random starts."""

    instance_id: pl.String = pa.Field(description="id of the model")
    task: pl.String = pa.Field(
        isin=TASKS, description="x2 from x1 (pair), all four of one token (allpair), or two tokens by case of Theorem 7"
    )
    start: pl.Int32 = pa.Field(ge=0, description="number of the random start, from 0")
    residual: pl.Float64 = pa.Field(ge=0, description="squared distance of the predictors")
    param_error: pl.Float64 = pa.Field(ge=0, description="Frobenius norms of O and T, under one relabelling, added")
    evaluations: pl.Int32 = pa.Field(ge=1, description="of the predictor, until the fit stopped")
    converged: pl.Boolean = pa.Field(description="residual below 1e-16")

    class Config:
        """One row per start."""

        unique = ["instance_id", "task", "start"]


class GhmmChecks(Result):
    """E10 (a): the constructive proof of Theorem 5 on an exact predictor, and the mirror image of Lemma 7."""

    instance_id: pl.String = pa.Field(description="id of the model")
    check: pl.String = pa.Field(description="what is computed")
    value: pl.Float64 = pa.Field(description="the deviation that is found, 0 in exact arithmetic")
    tolerance: pl.Float64 = pa.Field(gt=0, description="largest value that passes")
    holds: pl.Boolean = pa.Field(description="whether the value is within the tolerance")

    class Config:
        """One row per model and check."""

        unique = ["instance_id", "check"]

    @pa.dataframe_check(name="what holds is within its tolerance")
    def within(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("holds") == (pl.col("value") <= pl.col("tolerance")))


class GhmmCandidates(Result):
    """E10 (a): the means of both solutions, in coordinates in which the mirror of Lemma 7 lies flat."""

    instance_id: pl.String = pa.Field(description="id of the model")
    candidate: pl.String = pa.Field(isin=CANDIDATES, description="the solution, or its mirror image by Lemma 7")
    state: pl.Int8 = pa.Field(ge=1, description="number of the hidden state, from 1")
    height: pl.Float64 = pa.Field(description="along v, across the mirror")
    along: pl.Float64 = pa.Field(description="first coordinate in the mirror")
    column_sum: pl.Float64 = pa.Field(description="of this state's column of T")
    smallest: pl.Float64 = pa.Field(description="entry of T")

    class Config:
        """One row per mean."""

        unique = ["instance_id", "candidate", "state"]


class GhmmFit(Result):
    """E10 (b): M and T fitted to samples of (x1, x2) by the squared loss of predicting x2."""

    instance_id: pl.String = pa.Field(description="id of the model")
    c: pl.Float64 = pa.Field(gt=0, description="norm of the means")
    N: pl.Int64 = pa.Field(ge=1, description="pairs")
    err_M: pl.Float64 = pa.Field(ge=0, description="Frobenius norm over c, under the relabelling that is best for M")
    err_T: pl.Float64 = pa.Field(ge=0, description="Frobenius norm, under the same relabelling")
    loss: pl.Float64 = pa.Field(ge=0, description="mean squared error of predicting x2, of the fit")
    loss_truth: pl.Float64 = pa.Field(ge=0, description="of the model that drew the sample")
    steps: pl.Int32 = pa.Field(ge=0, description="iterations of L-BFGS")

    class Config:
        """One row per model, norm and size."""

        unique = ["instance_id", "c", "N"]


class HmmDetection(Result):
    """Beyond the source: how many triples tell an exact twin from a model, by theory and in simulation."""

    instance_id: pl.String = pa.Field(description="id of the model")
    theta: pl.Float64 = pa.Field(gt=0, description="radians by which the twin is turned")
    share: pl.Float64 = pa.Field(gt=0, le=1, description="theta over the widest turn")
    test: pl.String = pa.Field(
        isin=TESTS, description="likelihood ratio of the model and its twin, or Pearson's test of the model"
    )
    chi2: pl.Float64 = pa.Field(gt=0, description="sum (P_theta - P)^2 / P over triples")
    needed: pl.Float64 = pa.Field(gt=0, description="triples for the intended power, by theory")
    law: pl.Float64 = pa.Field(gt=0, description="the same for close laws, by the Fisher information at angle 0")
    samples: pl.Int64 = pa.Field(ge=1, description="triples of each simulated sample")
    draws: pl.Int32 = pa.Field(ge=1, description="simulated samples of the model, and of its twin")
    expected: pl.Float64 = pa.Field(ge=0, le=1, description="power at this number of triples, by theory")
    power: pl.Float64 = pa.Field(ge=0, le=1, description="share of the twin's samples that are told")
    level: pl.Float64 = pa.Field(ge=0, le=1, description="share of the model's own samples that are told apart wrongly")
    pairs: pl.Float64 = pa.Field(
        ge=0, le=1, description="share of the twin's samples told by pairs of neighbours alone"
    )
    ends: pl.Float64 = pa.Field(
        ge=0, le=1, description="share of the twin's samples told by counts of the first and the last token alone"
    )

    class Config:
        """One row per model, angle and test."""

        unique = ["instance_id", "theta", "test"]


SCHEMAS = {
    "hmm_equivalence": HmmEquivalence,
    "hmm_matrices": HmmMatrices,
    "hmm_turns": HmmTurns,
    "hmm_paths": HmmPaths,
    "hmm_power": HmmPower,
    "hmm_jacobian": HmmJacobian,
    "hmm_explorer": HmmExplorer,
    "hmm_recovery": HmmRecovery,
    "hmm_slopes": HmmSlopes,
    "hmm_learned": HmmLearned,
    "hmm_fit": HmmFit,
    "ghmm_checks": GhmmChecks,
    "ghmm_candidates": GhmmCandidates,
    "ghmm_fit": GhmmFit,
    "hmm_detection": HmmDetection,
}
