"""Tables of theory: queries with and without a verifier, and the walk of Algorithm 2 on small trees."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.results import Result

REJECTION, TOKENWISE, SCAN = ALGORITHMS = ["rejection", "tokenwise", "scan"]
FIXED, RANDOM, SAMPLING, PLAIN, AWARE = SEARCHERS = [
    "fixed order", "random order", "rejection sampling", "tokenwise, V of A", "tokenwise, V of A and O",
]  # fmt: skip
ARGMAX, SAMPLE = REFILLS = ["argmax", "sample"]
BLOCKS = "block best-of-n"
METHODS = [f"Algorithm 1, {ARGMAX}", f"Algorithm 1, {SAMPLE}", BLOCKS]
BIAS, IID = FAMILIES = ["bias", "iid"]
LAST, UNIFORM, FIRST, ACTIONS = SAMPLERS = ["last node", "uniform node", "first leaf", "action-level rejection"]


class Queries(Result):
    """Proposition 3.1.1: calls that it takes to produce 0^D, simulated and expected."""

    D: pl.Int32 = pa.Field(ge=2, le=10, description="length of a string, in symbols")
    algorithm: pl.String = pa.Field(
        isin=ALGORITHMS, description="rejection of whole strings, tokenwise rejection, or a scan of the verifier"
    )
    trials: pl.Int32 = pa.Field(ge=1, description="strings that were produced")
    mean_calls: pl.Float64 = pa.Field(ge=0, description="symbols drawn from the oracle")
    se_calls: pl.Float64 = pa.Field(ge=0, description="standard error of mean_calls")
    expected_calls: pl.Float64 = pa.Field(ge=0, description="mean_calls in exact numbers")
    verifier_calls: pl.Float64 = pa.Field(ge=0, description="mean number of strings that the verifier was asked of")

    class Config:
        """One row per length and algorithm."""

        unique = ["D", "algorithm"]


class Parity(Result):
    """Theorem 3.1.1: queries that find the hidden prefix, the mean over all 2^(D - 1) oracles."""

    D: pl.Int32 = pa.Field(ge=2, le=12, description="length of a string, in symbols")
    searcher: pl.String = pa.Field(isin=SEARCHERS, description="how the hidden prefix is looked for")
    trials: pl.Int32 = pa.Field(ge=0, description="0: enumerated")
    mean_queries: pl.Float64 = pa.Field(ge=0, description="of whole prefixes; of those that sample, calls")
    se_queries: pl.Float64 = pa.Field(ge=0, description="0 where they are enumerated")
    closed_form: pl.Float64 = pa.Field(ge=0, description="mean_queries in closed form")
    worst_queries: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="the largest mean of one oracle; null where queries are simulated"
    )
    printed_bound: pl.Float64 = pa.Field(ge=1, description="2^(D - 1), of the expected number of calls")
    timeout_share: pl.Float64 = pa.Field(ge=0, le=1, description="trials that the guard ended")
    timeout_closed: pl.Float64 = pa.Field(ge=0, le=1, description="timeout_share in closed form")
    max_calls: pl.Int32 = pa.Field(ge=1, nullable=True, description="the guard; null where there is none")

    class Config:
        """One row per length and searcher."""

        unique = ["D", "searcher"]


class Knapsack(Result):
    """Theorem 3.1.2: knapsacks without a verifier, with that of the dynamic program, by a scan, greedily."""

    instance: pl.String = pa.Field(description="how weights and sum were made, and D")
    D: pl.Int32 = pa.Field(ge=2, le=12, description="items")
    max_weight: pl.Int64 = pa.Field(ge=1, description="largest weight")
    density: pl.Float64 = pa.Field(gt=0, description="D / log2 of the largest weight")
    c: pl.Int64 = pa.Field(ge=0, description="sum that the taken weights are to have")
    n_solutions: pl.Int32 = pa.Field(ge=0, description="subsets of items with this sum")
    superincreasing: pl.Boolean = pa.Field(description="whether each weight is at least the sum of those before")
    trials: pl.Int32 = pa.Field(ge=1, description="of each way to sample")
    rs_mean: pl.Float64 = pa.Field(ge=1, nullable=True, description="calls; null without a solution")
    rs_se: pl.Float64 = pa.Field(ge=0, nullable=True, description="standard error of rs_mean; null without a solution")
    rs_expected: pl.Float64 = pa.Field(ge=1, nullable=True, description="D 2^D / n_solutions")
    trs_mean: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="calls of tokenwise rejection; null without a solution"
    )
    trs_se: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="standard error of trs_mean; null without a solution"
    )
    trs_expected: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="trs_mean in exact numbers; null without a solution"
    )
    scan_calls: pl.Int32 = pa.Field(ge=1, description="of the verifier; a scan makes none of the oracle")
    scan_ok: pl.Boolean = pa.Field(description="it found a solution, or rightly none")
    greedy_ok: pl.Boolean = pa.Field(nullable=True, description="null where weights are not superincreasing")
    status: pl.String = pa.Field(isin=["OK", "FAIL"], description="what scan and tokenwise rejection returned")

    class Config:
        """One row per instance."""

        unique = ["instance"]

    @pa.dataframe_check(name="FAIL exactly where there is no solution")
    def fails_without_solution(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("status") == "FAIL") == (pl.col("n_solutions") == 0))


class Bias(Result):
    """Proposition 3.1.2: distances in total variation from the restricted distribution."""

    D: pl.Int32 = pa.Field(ge=2, le=12, description="length of a string, in symbols")
    tv_exact: pl.Float64 = pa.Field(ge=0, le=1, description="of tokenwise rejection, from its law")
    tv_closed: pl.Float64 = pa.Field(ge=0, le=1, description="(2^D - 2) / (2^D (2^D - 1))")
    tv_first_leaf: pl.Float64 = pa.Field(ge=0, le=1, description="of VGB with the same verifier, first leaf")
    tv_stationary: pl.Float64 = pa.Field(ge=0, le=1, description="of VGB at its stationary leaves")
    leaf_mass: pl.Float64 = pa.Field(gt=0, le=0.5, description="stationary, of all leaves")

    class Config:
        """One row per length."""

        unique = ["D"]


class Coin(Result):
    """Algorithm 1 with a perfect verifier on an oracle whose tokens are independent errors."""

    eta: pl.Float64 = pa.Field(gt=0, lt=1, description="probability of an error")
    D: pl.Int32 = pa.Field(ge=1, description="length of a string, in symbols")
    Q: pl.Int32 = pa.Field(ge=0, description="most backtracks of a completion")
    B: pl.Int32 = pa.Field(ge=1, description="symbols that a backtrack erases")
    refill: pl.String = pa.Field(
        isin=REFILLS, description="what replaces erased symbols: the likeliest ones, or drawn ones"
    )
    n: pl.Int32 = pa.Field(ge=2, description="trials")
    acc_sim: pl.Float64 = pa.Field(ge=0, le=1, description="share of trials that end without an error")
    acc_closed: pl.Float64 = pa.Field(ge=0, le=1, description="acc_sim in closed form")
    se_acc: pl.Float64 = pa.Field(ge=0, description="by the closed form: sqrt(p (1 - p) / n)")
    c_sim: pl.Float64 = pa.Field(ge=0, description="calls")
    c_closed: pl.Float64 = pa.Field(ge=0, description="c_sim in closed form")
    se_c: pl.Float64 = pa.Field(ge=0, description="standard error of c_sim")
    unbalanced: pl.Int32 = pa.Field(ge=0, description="trials whose calls are not length plus erased tokens")

    class Config:
        """One row per setting."""

        unique = ["eta", "D", "Q", "B", "refill"]


class Frontier(Result):
    """Accuracy and calls of Algorithm 1 and block best-of-n with perfect verifiers, in closed form."""

    method: pl.String = pa.Field(isin=METHODS, description="the decoder; of Algorithm 1 with its refill")
    eta: pl.Float64 = pa.Field(gt=0, lt=1, description="probability of an error")
    D: pl.Int32 = pa.Field(ge=1, description="length of a string, in symbols")
    Q: pl.Int32 = pa.Field(ge=0, nullable=True, description="of Algorithm 1")
    B: pl.Int32 = pa.Field(ge=1, nullable=True, description="of Algorithm 1")
    block: pl.Int32 = pa.Field(ge=1, nullable=True, description="tokens of a block")
    n: pl.Int32 = pa.Field(ge=1, nullable=True, description="candidates of a block")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, description="probability that the string has no error")
    calls: pl.Float64 = pa.Field(ge=0, description="symbols drawn from the oracle, expected")

    class Config:
        """One row per setting."""

        unique = ["method", "eta", "D", "Q", "B", "block", "n"]


class Chain(Result):
    """Algorithm 2 on random trees: closed forms, and what the matrix of its transitions says."""

    A: pl.Int32 = pa.Field(ge=2, description="actions at each inner node")
    H: pl.Int32 = pa.Field(ge=1, description="horizon: depth of the leaves")
    eps: pl.Float64 = pa.Field(ge=0, description="V/V* is 1 + eps or its inverse at inner nodes")
    seed: pl.Int32 = pa.Field(ge=0, description="number of the random tree, from 0")
    stat_residual: pl.Float64 = pa.Field(ge=0, description="largest entry of |pi P - pi|")
    rev_residual: pl.Float64 = pa.Field(ge=0, description="largest entry of |pi_i P_ij - pi_j P_ji|")
    tv_leaf: pl.Float64 = pa.Field(ge=0, le=1, description="of the stationary leaves from the target")
    leaf_mass: pl.Float64 = pa.Field(gt=0, lt=1, description="stationary probability of all leaves together")
    leaf_mass_bound: pl.Float64 = pa.Field(gt=0, lt=1, description="1 / (2 (1 + (H - 1) (1 + eps)))")
    conductance: pl.Float64 = pa.Field(
        gt=0, le=0.5, nullable=True, description="by all sets of nodes; null for larger trees"
    )
    conductance_bound: pl.Float64 = pa.Field(gt=0, description="1 / (2 (2H - 1) (1 + eps)^2)")
    gap: pl.Float64 = pa.Field(
        gt=0, le=1, description="spectral gap of the walk: 1 minus the second largest eigenvalue"
    )
    gap_bound: pl.Float64 = pa.Field(gt=0, description="half the square of conductance_bound")
    tmix_001: pl.Int32 = pa.Field(ge=1, nullable=True, description="steps from the root to a distance of 0.01")
    tmix_bound: pl.Int64 = pa.Field(ge=1, description="steps that suffice for tmix_001, by gap_bound")
    tv_alrs: pl.Float64 = pa.Field(ge=0, le=1, description="of action-level rejection from the target")
    tv_first: pl.Float64 = pa.Field(ge=0, le=1, description="of the first leaf from the target")
    first_residual: pl.Float64 = pa.Field(ge=0, description="current against absorbing chain, largest difference")
    steps_first: pl.Float64 = pa.Field(ge=1, description="expected steps to the first leaf")
    steps_first_ref: pl.Float64 = pa.Field(ge=1, description="2 H^2, that of exact values")

    class Config:
        """One row per tree."""

        unique = ["A", "H", "eps", "seed"]


class Amplification(Result):
    """How errors of the value grow with the horizon: distances from the uniform target on the binary tree."""

    family: pl.String = pa.Field(isin=FAMILIES, description="bias: by the last action; iid: random signs")
    eps: pl.Float64 = pa.Field(gt=0, description="V/V* is 1 + eps or its inverse at inner nodes")
    H: pl.Int32 = pa.Field(ge=1, description="horizon: depth of the leaves")
    draw: pl.Int32 = pa.Field(ge=0, description="number of the random tree, from 0; 0 for bias")
    tv_alrs: pl.Float64 = pa.Field(ge=0, le=1, description="of action-level rejection, total variation")
    tv_first: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="null where leaves are not enumerated")
    tv_stat: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="of the stationary leaves; null where leaves are not enumerated"
    )
    kl_alrs: pl.Float64 = pa.Field(ge=-1e-12, description="KL(target || law), nats")
    kl_first: pl.Float64 = pa.Field(ge=-1e-12, description="the same of the first leaf, nats")

    class Config:
        """One row per tree."""

        unique = ["family", "eps", "H", "draw"]


class Simulated(Result):
    """Walks that were taken on one tree, against the exact law of their output rule."""

    sampler: pl.String = pa.Field(
        isin=SAMPLERS, description="output rule of the walk, or action-level rejection without a walk"
    )
    n: pl.Int32 = pa.Field(ge=1, description="leaves that were drawn")
    steps: pl.Int32 = pa.Field(ge=1, nullable=True, description="T of Algorithm 2; null where there is none")
    tv_emp: pl.Float64 = pa.Field(ge=0, le=1, description="of the frequencies from the exact law")
    tv_tol: pl.Float64 = pa.Field(gt=0, description="3 sqrt(leaves / (2 pi n))")
    chi2_p: pl.Float64 = pa.Field(
        ge=0, le=1, description="p-value of the chi-squared test of the frequencies against the exact law"
    )
    tv_target: pl.Float64 = pa.Field(ge=0, le=1, description="of the exact law from the target")

    class Config:
        """One row per output rule."""

        unique = ["sampler"]


class SinclairJerrum(Result):
    """VGB on knapsacks, uniform base model, against the walk that counts solutions."""

    instance: pl.String = pa.Field(description="weights of the knapsack, and the sum that is asked for")
    D: pl.Int32 = pa.Field(ge=2, description="items")
    n_solutions: pl.Int32 = pa.Field(ge=1, description="subsets of items with this sum")
    factor: pl.Float64 = pa.Field(ge=1, description="by which counts at inner nodes are wrong")
    max_abs_diff: pl.Float64 = pa.Field(ge=0, description="of the transition probabilities")
    tv_leaf: pl.Float64 = pa.Field(ge=0, le=1, description="of the stationary leaves from uniform solutions")
    tv_first: pl.Float64 = pa.Field(ge=0, le=1, description="of the first leaf from uniform solutions")

    class Config:
        """One row per instance and error."""

        unique = ["instance", "factor"]


class Nodes(Result):
    """Small trees node by node, for the page: what a walk and tokenwise rejection are driven by, and their
    laws."""

    instance: pl.String = pa.Field(description="id of the tree")
    title: pl.String = pa.Field(description="what the page calls the tree")
    node: pl.Int32 = pa.Field(ge=0, description="by depth, then by number; 0 is the root")
    parent: pl.Int32 = pa.Field(ge=-1, description="number of the node above; -1 for the root")
    depth: pl.Int32 = pa.Field(ge=0, description="actions from the root")
    label: pl.String = pa.Field(description="the actions so far")
    chance: pl.Float64 = pa.Field(ge=0, le=1, description="pi_ref of the last action; 1 at the root")
    value: pl.Float64 = pa.Field(ge=0, description="V; that of the root is not used")
    stationary: pl.Float64 = pa.Field(
        ge=0, le=1, description="probability of the node in the stationary law of the walk"
    )
    target: pl.Float64 = pa.Field(ge=0, le=1, description="probability of what lies below, of a leaf its own")
    first_leaf: pl.Float64 = pa.Field(ge=0, le=1, description="the same of the first leaf of the walk")
    tokenwise: pl.Float64 = pa.Field(ge=0, le=1, description="the same of tokenwise rejection")

    class Config:
        """One row per node."""

        unique = ["instance", "node"]

    @pa.dataframe_check(name="at each depth laws sum to 1; that of tokenwise rejection to less where it is stuck")
    def laws_sum(cls, data: PolarsData) -> pl.LazyFrame:
        laws = ("target", "first_leaf", "tokenwise")
        sums = data.lazyframe.select(pl.col(name).sum().over("instance", "depth") for name in laws)
        near = [(pl.col(name) - 1).abs() < 1e-9 for name in laws[:2]]
        return sums.select(pl.all_horizontal(*near, pl.col("tokenwise") <= 1 + 1e-9))


class Published(Result):
    """What the source prints: tables 3.1 to 3.6, 3.9 to 3.13, 3.15 to 3.17, Figure 3.2, and numbers of the
    text."""

    table: pl.String = pa.Field(str_matches=r"^(T3\.[0-9]+|F3\.[0-9]+|3(\.[0-9]+)+)$", description="or section")
    row_key: pl.String = pa.Field(str_matches=r"^\{.*\}$", description="what the row is of, as JSON")
    metric: pl.String = pa.Field(str_length={"min_value": 1}, description="what the number measures")
    value: pl.Float64 = pa.Field(description="the number as printed")
    spread: pl.Float64 = pa.Field(ge=0, nullable=True, description="what follows the sign ±")
    spread_kind: pl.String = pa.Field(
        isin=["std0", "std", "unknown", ""], description="what it is: by the audit, not by the source"
    )
    note: pl.String = pa.Field(description="what else is to be known of the number; often empty")

    class Config:
        """One row per printed number."""

        unique = ["table", "row_key", "metric"]

    @pa.dataframe_check(name="a kind exactly where there is a spread")
    def kinds(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("spread").is_null() == (pl.col("spread_kind") == ""))


SCHEMAS = {
    "theory_queries": Queries,
    "parity_minimax": Parity,
    "knapsack_instances": Knapsack,
    "trs_distribution": Bias,
    "coin_backtrack": Coin,
    "coin_frontier": Frontier,
    "vgb_chain": Chain,
    "vgb_amplification": Amplification,
    "vgb_sim": Simulated,
    "vgb_sj": SinclairJerrum,
    "vgb_nodes": Nodes,
    "published_verifier": Published,
}
