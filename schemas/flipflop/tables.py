"""Result tables of the flip-flop study (chapter section 8).

A *run* is an entry of params/flipflop/, one configuration; ``replica`` numbers its models. Errors are shares of
reads (of the automaton: of states) that are answered wrongly.
"""

from __future__ import annotations

from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.comparisons import Comparisons
from schemas.results import Result

SHARE: dict[str, Any] = {"ge": 0, "le": 1}
COUNT: dict[str, Any] = {"ge": 0}
FIELD = pa.Field
LEARNED = "whether the model learned what it was trained on"


class DataStats(Result):
    """FF-D1 to FF-D6: how many reads held-out sets have, beside what the language implies."""

    dataset: pl.String = FIELD(description="its entry")
    set: pl.String
    length: pl.Int16 = FIELD(ge=4, description="tokens of a string")
    p_ignore: pl.Float64 = FIELD(**SHARE, description="probability that a pair between the ends is ignored")
    n_seq: pl.Int32 = FIELD(ge=1, description="strings")
    n_distinct: pl.Int32 = FIELD(ge=1, description="different strings among them")
    n_reads: pl.Int32 = FIELD(ge=1, description="reads in all strings")
    reads_mean: pl.Float64 = FIELD(ge=1, description="reads of a string, on average")
    reads_expected: pl.Float64 = FIELD(ge=1, description="the same, from the law of the language")
    z: pl.Float64 = FIELD(ge=-5, le=5, description="difference of the two in standard deviations")

    class Config:
        """One row per set."""

        unique = ["dataset", "set", "length", "p_ignore"]


class Configs(Result):
    """Every configuration that has models at this scale."""

    run: pl.String = FIELD(unique=True)
    family: pl.String = FIELD(description="what it varies")
    model: pl.String = FIELD(description="module of the model")
    task: pl.String = FIELD(isin=["strings", "automaton"], description="strings to data, or symbols to states")
    layers: pl.Int8 = FIELD(ge=1, nullable=True, description="of a Transformer")
    heads: pl.Int8 = FIELD(ge=1, nullable=True, description="of a Transformer")
    width: pl.Int16 = FIELD(ge=1)
    length: pl.Int16 = FIELD(ge=4, description="tokens of a training string")
    position: pl.String = FIELD(nullable=True, description="code of positions")
    activation: pl.String = FIELD(nullable=True, description="of the MLP")
    loss: pl.String = FIELD(isin=["clean", "generative"], description="what is predicted")
    train: pl.String = FIELD(description="p_ignore of the training languages")
    batch: pl.Int32 = FIELD(ge=1)
    steps: pl.Int32 = FIELD(ge=1)
    epochs: pl.Int16 = FIELD(ge=1, description="how often a sequence is read")
    weight_decay: pl.Float64 = FIELD(ge=0)
    lr: pl.Float64 = FIELD(gt=0)
    beta1: pl.Float64 = FIELD(**SHARE, description="of AdamW")
    beta2: pl.Float64 = FIELD(**SHARE, description="of AdamW")
    dropout_embed: pl.Float64 = FIELD(**SHARE, description="rate on embeddings")
    dropout_attention: pl.Float64 = FIELD(**SHARE, description="rate on attention weights")
    dropout_ffn: pl.Float64 = FIELD(**SHARE, description="rate inside MLPs")
    sharpen_kind: pl.String = FIELD(nullable=True, description="penalty on attention that is not sharp")
    sharpen_weight: pl.Float64 = FIELD(gt=0, nullable=True, description="its weight at the peak")
    sharpen_schedule: pl.String = FIELD(nullable=True, description="how its weight changes")
    sharpen_start: pl.Int32 = FIELD(ge=0, nullable=True, description="step before which the weight is 0")
    sharpen_layers: pl.String = FIELD(nullable=True, description="layers that are penalised")
    parameters: pl.Int64 = FIELD(ge=1, description="trained numbers of a model")
    models: pl.Int32 = FIELD(ge=0, description="models that did not diverge")
    diverged: pl.Int32 = FIELD(ge=0, description="models that did")


class Final(Result):
    """FF-A1: errors at the last step, for every model and held-out set."""

    run: pl.String
    family: pl.String = FIELD(description="what the configuration varies")
    replica: pl.Int32 = FIELD(ge=0)
    data_seed: pl.Int32 = FIELD(ge=0, description="number of the order of data")
    model_seed: pl.Int32 = FIELD(ge=0, description="number of the initial weights")
    learned: pl.Boolean = FIELD(description=LEARNED)
    length: pl.Int16 = FIELD(ge=4, description="tokens of a string")
    set: pl.String
    n_reads: pl.Int32 = FIELD(ge=1, description="reads of the set")
    n_err: pl.Int32 = FIELD(ge=0, description="reads that are answered wrongly")
    error: pl.Float64 = FIELD(**SHARE, description="share of reads that are answered wrongly")
    lo: pl.Float64 = FIELD(**SHARE, description="lower end of the exact binomial interval of the error")
    hi: pl.Float64 = FIELD(**SHARE, description="its upper end: above 0 where no answer is wrong")
    interval: pl.String = FIELD(description="its kind")
    n_seq_wrong: pl.Int32 = FIELD(ge=0, description="strings with at least one wrong read")
    disagree: pl.Float64 = FIELD(
        **SHARE, description="share of reads at which the likeliest token is not the likelier of the data symbols"
    )

    class Config:
        """One row per model and set."""

        unique = ["run", "replica", "length", "set"]

    @pa.dataframe_check(name="no more errors than reads")
    def bounded(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("n_err") <= pl.col("n_reads"))


class Curves(Result):
    """FF-A2: errors on the first sequences of each set while training goes on; null once a model has diverged."""

    run: pl.String
    family: pl.String = FIELD(description="what the configuration varies")
    replica: pl.Int32 = FIELD(ge=0)
    step: pl.Int32 = FIELD(ge=1)
    set: pl.String
    loss: pl.Float64 = FIELD(nullable=True, description="on fresh sequences, with the penalty")
    cross_entropy: pl.Float64 = FIELD(nullable=True, description="on fresh sequences, in nats")
    error: pl.Float64 = FIELD(**SHARE, nullable=True, description="share of reads that are answered wrongly")
    best_so_far: pl.Float64 = FIELD(**SHARE, nullable=True, description="least error up to this step")

    class Config:
        """One row per model, step and set."""

        unique = ["run", "replica", "step", "set"]


class ByDistance(Result):
    """FF-A5: errors of the models of a run that learned, by the distance in pairs between a read and what it depends
    on."""

    run: pl.String
    set: pl.String
    kind: pl.String = FIELD(isin=["write", "info"], description="to the last write, or to the last pair that shows it")
    bin_lo: pl.Int16 = FIELD(ge=1, description="least distance of the bin")
    bin_hi: pl.Int16 = FIELD(ge=1, description="largest distance of the bin")
    n_reads: pl.Int32 = FIELD(ge=1, description="reads of the bin, for each model")
    n_err: pl.Int32 = FIELD(ge=0, description="wrong answers of all models")
    error: pl.Float64 = FIELD(**SHARE, description="mean over models of the share of wrong answers")
    lo: pl.Float64 = FIELD(**SHARE, nullable=True, description="lower end of its interval over models")
    hi: pl.Float64 = FIELD(**SHARE, nullable=True, description="upper end")
    interval: pl.String = FIELD(description="its kind")
    n: pl.Int32 = FIELD(ge=1, description="models that learned")

    class Config:
        """One row per bin."""

        unique = ["run", "set", "kind", "bin_lo"]


class Violin(Result):
    """FF-A3: the five numbers of the errors of a run's models that learned, and how many of all make none."""

    run: pl.String
    family: pl.String = FIELD(description="what the configuration varies")
    length: pl.Int16 = FIELD(ge=4, description="tokens of a string")
    set: pl.String
    n_runs: pl.Int32 = FIELD(ge=1, description="models")
    n_learned: pl.Int32 = FIELD(ge=0, description="models that learned what they were trained on")
    least: pl.Float64 = FIELD(**SHARE, nullable=True, description="smallest error of these; null for none")
    q25: pl.Float64 = FIELD(**SHARE, nullable=True, description="first quartile of errors")
    median: pl.Float64 = FIELD(**SHARE, nullable=True, description="median of errors")
    q75: pl.Float64 = FIELD(**SHARE, nullable=True, description="third quartile of errors")
    most: pl.Float64 = FIELD(**SHARE, nullable=True, description="largest error")
    n_zero: pl.Int32 = FIELD(ge=0, description="models without an error")
    n_reads: pl.Int32 = FIELD(ge=1, description="reads of the set")
    ratio_to_baseline: pl.Float64 = FIELD(
        ge=0, nullable=True, description="median over that of the baseline; null where that makes no error"
    )

    class Config:
        """One row per run and set."""

        unique = ["run", "length", "set"]


class Sharpness(Result):
    """FF-A7: how sharp attention is on strings of the training language, over all layers and heads."""

    run: pl.String
    replica: pl.Int32 = FIELD(ge=0)
    max_weight: pl.Float64 = FIELD(ge=0, le=1.000001, description="largest weight of a query, on average")
    entropy: pl.Float64 = FIELD(ge=0, description="of a query's weights, in nats, on average")
    sigma: pl.Float64 = FIELD(
        ge=0, nullable=True, description="R^2 |W_K' W_Q| / sqrt(d_h), R the largest norm of an input: median over heads"
    )
    bound: pl.Float64 = FIELD(
        gt=0, le=1, nullable=True, description="Proposition 4's bound on weights of the last query: median over heads"
    )
    slack: pl.Float64 = FIELD(
        nullable=True, description="least distance of a weight from its bound; null where positions act on scores"
    )

    class Config:
        """One row per model."""

        unique = ["run", "replica"]


class Scatter(Result):
    """FF-A4: errors of each model on both sets, and where no error is drawn on log axes."""

    run: pl.String
    family: pl.String = FIELD(description="what the configuration varies")
    replica: pl.Int32 = FIELD(ge=0)
    dense_error: pl.Float64 = FIELD(**SHARE, description="share of reads of the dense set that are answered wrongly")
    sparse_error: pl.Float64 = FIELD(**SHARE, description="the same of the sparse set")
    dense_floor: pl.Float64 = FIELD(gt=0, le=0.5, description="half an error among the reads of the dense set")
    sparse_floor: pl.Float64 = FIELD(gt=0, le=0.5, description="the same of the sparse set")

    class Config:
        """One row per model."""

        unique = ["run", "replica"]


class SeedFactorial(Result):
    """FF-A6: errors by order of data and initial weights."""

    data_seed: pl.Int32 = FIELD(ge=0, description="number of the order of data")
    model_seed: pl.Int32 = FIELD(ge=0, description="number of the initial weights")
    learned: pl.Boolean = FIELD(description=LEARNED)
    set: pl.String
    error: pl.Float64 = FIELD(**SHARE, description="share of reads that are answered wrongly")
    n_err: pl.Int32 = FIELD(ge=0, description="reads that are answered wrongly")
    n_reads: pl.Int32 = FIELD(ge=1, description="reads of the set")

    class Config:
        """One row per cell and set."""

        unique = ["data_seed", "model_seed", "set"]


class SeedVariance(Result):
    """FF-A6: what the two seeds add to the variance of log errors, of the initial weights that learned with every order
    of data; null where fewer than two did, or without any spread."""

    set: pl.String
    part: pl.String = FIELD(isin=["data seed", "model seed", "rest"], description="what explains the share")
    share: pl.Float64 = FIELD(**SHARE, nullable=True, description="of the sum of squares: above 0 for noise as well")
    component: pl.Float64 = FIELD(
        nullable=True,
        description="variance in squared decades, from expected mean squares: unbiased, so that it may be below 0",
    )
    ratio: pl.Float64 = FIELD(nullable=True, description="component of a seed over that of the rest")
    lo: pl.Float64 = FIELD(nullable=True, description="lower end of the ratio's interval, for normal log errors")
    hi: pl.Float64 = FIELD(nullable=True, description="upper end of the ratio's interval")
    interval: pl.String = FIELD(description="its kind")
    n: pl.Int32 = FIELD(ge=0, description="seeds of the part; of the rest, the fewer of both")

    class Config:
        """One row per set and part."""

        unique = ["set", "part"]


class Ngram(Result):
    """FF-M9: the least error of a predictor that sees the last n tokens, in closed form."""

    n: pl.Int16 = FIELD(ge=1, description="tokens in sight")
    set: pl.String
    length: pl.Int16 = FIELD(ge=4, description="tokens of a string")
    error: pl.Float64 = FIELD(ge=0, le=0.5, description="share of reads that are answered wrongly")

    class Config:
        """One row per n and set."""

        unique = ["n", "set", "length"]


class Pareto(Result):
    """FF-A12: median errors of each configuration on both sets, of models that learned."""

    run: pl.String = FIELD(unique=True)
    family: pl.String = FIELD(description="what the configuration varies")
    n: pl.Int32 = FIELD(ge=1, description="models that learned the training language")
    sparse: pl.Float64 = FIELD(**SHARE, description="median error on the sparse set")
    dense: pl.Float64 = FIELD(**SHARE, description="median error on the dense set")
    on_front: pl.Boolean = FIELD(description="whether no other configuration is as good on both and better on one")


class SimEval(Result):
    """FF-A7, FF-A8, FF-A11: models of the automaton; null where attention was not measured or no row was right."""

    run: pl.String
    family: pl.String = FIELD(description="kind of model")
    replica: pl.Int32 = FIELD(ge=0)
    set: pl.String = FIELD(isin=["p05", "p09", "p098"], description="probability of no-ops: 0.5, 0.9, 0.98")
    length: pl.Int16 = FIELD(ge=4, description="symbols of an input")
    n: pl.Int32 = FIELD(ge=1, description="states that are predicted")
    error: pl.Float64 = FIELD(**SHARE, description="share of states that are wrong")
    learned: pl.Boolean = FIELD(description=LEARNED)
    max_weight: pl.Float64 = FIELD(
        ge=0, le=1.000001, nullable=True, description="largest weight of a query, on average"
    )
    entropy: pl.Float64 = FIELD(ge=0, nullable=True, description="of a query's weights, in nats, on average")
    argmax_last: pl.Float64 = FIELD(**SHARE, nullable=True, description="queries that look most at the last write")
    argmax_last_noop: pl.Float64 = FIELD(**SHARE, nullable=True, description="the same, among queries of no-ops")
    argmax_right_type: pl.Float64 = FIELD(
        **SHARE, nullable=True, description="rightly answered no-ops that look most at a write of the right value"
    )
    value_right_type: pl.Float64 = FIELD(
        **SHARE, nullable=True, description="the same, by weight times the length of the value vector"
    )

    class Config:
        """One row per model, set and length."""

        unique = ["run", "replica", "set", "length"]


class SimMaps(Result):
    """Attention of the first model of each run on the input 1, no-op, 0, no-op, no-op, 0, 1, no-op."""

    run: pl.String
    layer: pl.Int8 = FIELD(ge=1)
    head: pl.Int8 = FIELD(ge=1)
    query: pl.Int16 = FIELD(ge=0)
    key: pl.Int16 = FIELD(ge=0)
    weight: pl.Float64 = FIELD(ge=0, le=1.000001)
    last_write: pl.Boolean = FIELD(description="whether the key is the last write")

    class Config:
        """One row per query and key."""

        unique = ["run", "layer", "head", "query", "key"]

    @pa.dataframe_check(name="weights of a query add up to one")
    def adds_up(cls, data: PolarsData) -> pl.LazyFrame:
        total = data.lazyframe.group_by("run", "layer", "head", "query").agg(pl.col("weight").sum())
        return total.select((pl.col("weight") - 1).abs() < 1e-4)


class HeadDistance(Result):
    """FF-A9: distance between the attention of two heads of a layer, over training."""

    run: pl.String
    replica: pl.Int32 = FIELD(ge=0)
    step: pl.Int32 = FIELD(ge=0)
    layer: pl.Int8 = FIELD(ge=1)
    head_a: pl.Int8 = FIELD(ge=1, description="one head")
    head_b: pl.Int8 = FIELD(ge=2, description="another one")
    distance: pl.Float64 = FIELD(ge=0, description="Frobenius norm of the difference, over the root of the length")

    class Config:
        """One row per pair."""

        unique = ["run", "replica", "step", "layer", "head_a", "head_b"]


class Heads(Result):
    """FF-A7, E15: where each head of models of the automaton looks."""

    run: pl.String
    replica: pl.Int32 = FIELD(ge=0)
    layer: pl.Int8 = FIELD(ge=1)
    head: pl.Int8 = FIELD(ge=1)
    max_weight: pl.Float64 = FIELD(ge=0, le=1.000001, description="largest weight of a query, on average")
    argmax_last_noop: pl.Float64 = FIELD(**SHARE, description="no-ops that look most at the last write")
    ideal: pl.Boolean = FIELD(
        description="whether all no-ops of the input of eight symbols look most at the last write"
    )

    class Config:
        """One row per head."""

        unique = ["run", "replica", "layer", "head"]


class WeightNorms(Result):
    """Norms of weights of models of the automaton: at the end, and at the steps that are kept."""

    run: pl.String
    replica: pl.Int32 = FIELD(ge=0)
    step: pl.Int32 = FIELD(ge=0)
    matrix: pl.String = FIELD(description="name of the weights")
    frobenius: pl.Float64 = FIELD(ge=0, description="Frobenius norm")
    spectral: pl.Float64 = FIELD(ge=0, description="largest singular value")

    class Config:
        """One row per matrix."""

        unique = ["run", "replica", "step", "matrix"]


class Drift(Result):
    """FF-A10: where queries of a long run of no-ops look."""

    run: pl.String
    replica: pl.Int32 = FIELD(ge=0)
    probe: pl.String = FIELD(isin=["one_write", "two_writes"], description="the input")
    position: pl.Int16 = FIELD(ge=1, description="of the query, from 1")
    argmax_key: pl.Int16 = FIELD(ge=1, description="position of the largest weight, from 1")
    on_last_write: pl.Float64 = FIELD(ge=0, le=1.000001, description="weight on the last write")
    on_itself: pl.Float64 = FIELD(ge=0, le=1.000001, description="weight on the query's own position")
    on_recent: pl.Float64 = FIELD(**SHARE, description="weight on the last 32 positions")
    correct: pl.Boolean = FIELD(description="whether the state is right")

    class Config:
        """One row per position."""

        unique = ["run", "replica", "probe", "position"]


class DriftSummary(Result):
    """FF-A10: coefficients of scores, and where attention leaves the last write; null where it does not."""

    run: pl.String
    replica: pl.Int32 = FIELD(ge=0)
    a: pl.Float64 = FIELD(description="coefficient of query times key position")
    b: pl.Float64 = FIELD(description="coefficient of the key's position")
    A0: pl.Float64 = FIELD(description="score of a no-op as key")
    A1: pl.Float64 = FIELD(description="score of a write of 0 as key")
    A2: pl.Float64 = FIELD(description="score of a write of 1 as key")
    g0: pl.Float64 = FIELD(description="coefficient of the query's position, key a no-op")
    g1: pl.Float64 = FIELD(description="the same, key a write of 0")
    g2: pl.Float64 = FIELD(description="the same, key a write of 1")
    switch_predicted: pl.Int16 = FIELD(ge=1, nullable=True, description="from the coefficients")
    switch_observed: pl.Int16 = FIELD(ge=1, nullable=True, description="from attention weights")
    agree: pl.Boolean = FIELD(description="whether the two are the same")
    on_write_at_end: pl.Boolean = FIELD(description="whether the last query looks most at the last write")
    recent_mass_at_end: pl.Float64 = FIELD(**SHARE, description="weight of the last query on the last 32 positions")
    right_at_end: pl.Boolean = FIELD(description="whether the last state is right on the input and on its swapped twin")

    class Config:
        """One row per model."""

        unique = ["run", "replica"]


class Autopsy(Result):
    """Where the last layer looks at the wrong and the right answers of each model; null where there are none."""

    run: pl.String
    replica: pl.Int32 = FIELD(ge=0)
    set: pl.String
    learned: pl.Boolean = FIELD(description=LEARNED)
    n_wrong: pl.Int32 = FIELD(ge=0, description="wrong answers among the reads that were searched")
    n_right: pl.Int32 = FIELD(ge=0, description="right ones")
    mended: pl.Float64 = FIELD(
        **SHARE, nullable=True, description="wrong answers that are right once attention is on the last write alone"
    )
    kept: pl.Float64 = FIELD(**SHARE, nullable=True, description="right answers that then stay right")
    votes_wrong: pl.Float64 = FIELD(
        **SHARE,
        nullable=True,
        description="wrong answers at which weights times lengths of values are more for the wrong bit",
    )
    votes_right: pl.Float64 = FIELD(**SHARE, nullable=True, description="the same of right answers")
    on_write_wrong: pl.Float64 = FIELD(
        ge=0, le=1.000001, nullable=True, description="weight on the last write at wrong answers, mean over heads"
    )
    on_write_right: pl.Float64 = FIELD(ge=0, le=1.000001, nullable=True, description="the same of right answers")

    class Config:
        """One row per model and set."""

        unique = ["run", "replica", "set"]


# --- theory, language models, addition -------------------------------------------------------------


class Machines(Result):
    """Every move of the flip-flop and of the machine that reads its language."""

    machine: pl.String = pa.Field(isin=["flip-flop", "recogniser"])
    state: pl.Int16 = pa.Field(ge=0)
    symbol: pl.Int16 = pa.Field(ge=0)
    next_state: pl.Int16 = pa.Field(ge=0)
    state_shown: pl.String
    symbol_shown: pl.String

    class Config:
        """One row per move."""

        unique = ["machine", "state", "symbol"]


class Dilution(Result):
    """Proposition 4: the largest weight that one token can have."""

    sigma: pl.Float64 = pa.Field(ge=0, description="norm of W_K'W_Q")
    length: pl.Int32 = pa.Field(ge=1, description="tokens, T")
    bound: pl.Float64 = pa.Field(gt=0, le=1, description="largest possible weight")
    half: pl.Float64 = pa.Field(ge=1, description="length at which the bound is one half")

    class Config:
        """One row per norm and length."""

        unique = ["sigma", "length"]


class NgramLaw(Result):
    """The least error of a predictor that sees n tokens, on all reads of a language."""

    n: pl.Int16 = pa.Field(ge=1, description="tokens that are seen, the read among them")
    set: pl.String = pa.Field(isin=["val", "sparse", "dense"])
    length: pl.Int16 = pa.Field(ge=4, description="tokens of a string, T")
    error: pl.Float64 = pa.Field(ge=0, le=1, description="share of reads that are wrong, by the closed form")
    sampled: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="the same of the predictor itself")
    reads: pl.Int32 = pa.Field(ge=1, description="reads in the strings that were drawn for it")

    class Config:
        """One row per predictor and language."""

        unique = ["n", "set"]


class ProbeScores(Result):
    """Proposition 5: scores along a probe with two writes, less the score of the right one."""

    model: pl.String
    a: pl.Float64 = pa.Field(description="W_Qp' W_Kp, the term of both positions")
    position: pl.Int32 = pa.Field(ge=1, description="of the query, from 1")
    key: pl.String = pa.Field(isin=["last write", "first write", "itself"])
    score: pl.Float64 = pa.Field(description="score of the key less that of the last write")

    class Config:
        """One row per model, query and key."""

        unique = ["model", "position", "key"]


class LmEval(Result):
    """Light-switch stories: how many a predictor completes as they should be."""

    model: pl.String
    kind: pl.String = pa.Field(isin=["standin", "pretrained", "oracle", "heuristic", "ngram"])
    replica: pl.Int16 = pa.Field(ge=0)
    n_params: pl.Int64 = pa.Field(ge=0, nullable=True, description="trained numbers of a model")
    length: pl.Int16 = pa.Field(ge=4, description="tokens of the string that is asked about")
    n: pl.Int32 = pa.Field(ge=1, description="strings")
    n_correct: pl.Int32 = pa.Field(ge=0, nullable=True, description="strings for which the right state scores higher")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="their share")
    strict: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="share for which the right state leads all words"
    )
    expected: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="accuracy of a rule by the law of strings")
    told: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="accuracy of a stand-in on stories like those of training"
    )
    learned: pl.Boolean = pa.Field(description="whether that is enough; all others count as such")

    class Config:
        """One row per model and length."""

        unique = ["model", "replica", "length"]

    @pa.dataframe_check(name="no more right answers than strings")
    def counts(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("n_correct") <= pl.col("n")).fill_null(True))


class Addition(Result):
    """Recorded answers of GPT models to additions (Tables 3.2, 3.3)."""

    printed_in: pl.String = pa.Field(isin=["Table 3.2", "Table 3.3"])
    a: pl.String = pa.Field(str_matches=r"^\d+$", description="first operand")
    b: pl.String = pa.Field(str_matches=r"^\d+$", description="second operand")
    model: pl.String = pa.Field(isin=["GPT-3.5", "GPT-4"])
    answer: pl.String = pa.Field(description="what the model said, as printed")
    marked_right: pl.Boolean = pa.Field(description="the printed mark")
    right: pl.Boolean = pa.Field(description="whether the answer is the sum")
    truth: pl.String = pa.Field(str_matches=r"^\d+$", description="the sum, computed")
    printed_truth: pl.String = pa.Field(str_matches=r"^\d+$", description="the sum, as printed")
    carried: pl.String = pa.Field(str_matches=r"^\d+$", description="the sum with a flip-flop as carry")

    class Config:
        """One row per question and model."""

        unique = ["a", "b", "model"]


THEORY = {
    "machines": Machines,
    "dilution": Dilution,
    "ngram_law": NgramLaw,
    "probe_scores": ProbeScores,
    "lm_eval": LmEval,
    "addition": Addition,
}
# ---------------------------------------------------------------------------------------------------


SCHEMAS = {
    "data_stats": DataStats,
    "configs": Configs,
    "final": Final,
    "curves": Curves,
    "by_distance": ByDistance,
    "violin": Violin,
    "sharpness": Sharpness,
    "scatter": Scatter,
    "seed_factorial": SeedFactorial,
    "seed_variance": SeedVariance,
    "ngram": Ngram,
    "pareto": Pareto,
    "sim_eval": SimEval,
    "sim_maps": SimMaps,
    "heads": Heads,
    "head_distance": HeadDistance,
    "weight_norms": WeightNorms,
    "drift": Drift,
    "drift_summary": DriftSummary,
    "autopsy": Autopsy,
    **THEORY,
    "comparisons": Comparisons,
}
