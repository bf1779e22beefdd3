"""Result tables of the study (chapter section 8)."""

from __future__ import annotations

from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.comparisons import Comparisons
from schemas.results import Result

FIELD = pa.Field
SHARE: dict[str, Any] = {"ge": 0, "le": 1}


class Arms(Result):
    """Mean accuracy of the models of an arm after so many steps, with its interval over models."""

    run: pl.String
    width: pl.Int32 = FIELD(ge=1, description="hidden units of an MLP, channels of a Transformer")
    heads: pl.Int16 = FIELD(ge=1, nullable=True, description="of a Transformer")
    arm: pl.String = FIELD(description="how it is taught; label: the teacher itself")
    step: pl.Int32 = FIELD(ge=1, description="steps of its own training")
    value: pl.Float64 = FIELD(**SHARE, nullable=True, description="mean accuracy on held-out strings")
    lo: pl.Float64 = FIELD(**SHARE, nullable=True, description="lower end of the interval")
    hi: pl.Float64 = FIELD(**SHARE, nullable=True, description="upper end of the interval")
    interval: pl.String = FIELD(description="kind of the interval; docs/intervals.md")
    loss: pl.Float64 = FIELD(ge=0, nullable=True, description="mean loss on held-out strings, nats")
    n: pl.Int32 = FIELD(ge=1, description="models")

    class Config:
        """One row per arm of a run and step."""

        unique = ["run", "arm", "step"]


class Models(Result):
    """Every model: when it has learned, and how well it ends."""

    run: pl.String
    width: pl.Int32 = FIELD(ge=1, description="hidden units of an MLP, channels of a Transformer")
    heads: pl.Int16 = FIELD(ge=1, nullable=True, description="of a Transformer")
    arm: pl.String = FIELD(description="how it is taught; label: the teacher itself")
    model: pl.Int32 = FIELD(ge=0, description="number within the arm; the same number has the same teacher")
    t90: pl.Int32 = FIELD(
        ge=1, nullable=True, description="first step with an accuracy of 0.9; null: not until its last"
    )
    t80: pl.Int32 = FIELD(ge=1, nullable=True, description="first step with 80 % of its last accuracy")
    final: pl.Float64 = FIELD(**SHARE, nullable=True, description="accuracy after the last step")
    horizon: pl.Int32 = FIELD(ge=1, description="last step")

    class Config:
        """One row per model."""

        unique = ["run", "arm", "model"]


class Courses(Result):
    """Accuracy of every model after so many steps: of models that learn at steps of their own no mean shows what one
    does."""

    run: pl.String
    arm: pl.String = FIELD(description="how it is taught; label: the teacher itself")
    model: pl.Int32 = FIELD(ge=0, description="number within the arm; the same number has the same teacher")
    step: pl.Int32 = FIELD(ge=1, description="steps of its own training")
    accuracy: pl.Float64 = FIELD(**SHARE, nullable=True, description="on held-out inputs")
    loss: pl.Float64 = FIELD(ge=0, nullable=True, description="on held-out inputs, nats")

    class Config:
        """One row per model and step."""

        unique = ["run", "arm", "model", "step"]


class LearningRates(Result):
    """Learning rates that were tried, and which of them is the best of an arm: by mean accuracy, then by speed."""

    run: pl.String
    arm: pl.String = FIELD(description="how it is taught; label: the teacher itself")
    lr: pl.Float64 = FIELD(gt=0, description="peak learning rate")
    n: pl.Int32 = FIELD(ge=1, description="models")
    accuracy: pl.Float64 = FIELD(**SHARE, nullable=True, description="mean accuracy after the last step")
    t80: pl.Float64 = FIELD(ge=1, nullable=True, description="mean of the first steps with 80 % of it")
    chosen: pl.Boolean = FIELD(description="is it the best rate of its arm?")
    place: pl.String = FIELD(
        isin=["", "inside", "lowest", "highest", "only"], description="of the chosen rate in its grid; else empty"
    )

    class Config:
        """One row per arm of a run and rate."""

        unique = ["run", "arm", "lr"]


class Correlations(Result):
    """A-CORR of degree 1: how far the probability of class 0 correlates with each sign of the input."""

    run: pl.String
    model: pl.Int32 = FIELD(ge=0, description="number of the teacher")
    step: pl.Int32 = FIELD(ge=0, description="of the teacher's training; 0: before it")
    feature: pl.String = FIELD(description="the parity that the sign belongs to; rest: none that matters")
    place: pl.Int16 = FIELD(ge=0, description="of the sign in the string")
    correlation: pl.Float64 = FIELD(ge=0, le=0.51, description="absolute value, centred")

    class Config:
        """One row per sign, model and step."""

        unique = ["run", "model", "step", "place"]


class Separation(Result):
    """A-CORR by degree: monomials of signs that matter beside others."""

    run: pl.String
    model: pl.Int32 = FIELD(ge=0, description="number of the teacher")
    step: pl.Int32 = FIELD(ge=0, description="of the teacher's training; 0: before it")
    degree: pl.Int16 = FIELD(ge=1, le=3, description="of the monomials")
    feature: pl.String = FIELD(description="the parity whose signs the monomials are made of")
    inside: pl.Float64 = FIELD(ge=0, le=0.51, description="median correlation of its monomials")
    least_inside: pl.Float64 = FIELD(ge=0, le=0.51, description="the smallest of them")
    outside: pl.Float64 = FIELD(ge=0, le=0.51, description="mean correlation of other monomials")
    outside_q95: pl.Float64 = FIELD(ge=0, le=0.51, description="their 95 % quantile")
    separation: pl.Float64 = FIELD(ge=0, nullable=True, description="SEP: inside over outside_q95")

    class Config:
        """One row per parity, degree, model and step."""

        unique = ["run", "model", "step", "degree", "feature"]


class Chosen(Result):
    """Which checkpoints of its teacher each student learned from, in turn."""

    dataset: pl.String = FIELD(description="the answers that it learned from")
    arm: pl.String
    model: pl.Int32 = FIELD(ge=0, description="the student's number within the arm")
    teacher: pl.Int32 = FIELD(ge=0, description="the teacher's number")
    order: pl.Int32 = FIELD(ge=0, description="0: the first checkpoint")
    teacher_step: pl.Int32 = FIELD(ge=0, description="of the checkpoint")
    until: pl.Int32 = FIELD(ge=1, description="student step at which the next one follows, or training ends")
    accuracy: pl.Float64 = FIELD(**SHARE, nullable=True, description="of the checkpoint; null: before training")

    class Config:
        """One row per student and checkpoint."""

        unique = ["dataset", "arm", "model", "order"]


class Phases(Result):
    """A-PHASE: where the loss of a teacher stands, falls and flattens."""

    run: pl.String
    arm: pl.String = FIELD(description="label: the teacher itself")
    model: pl.Int32 = FIELD(ge=0, description="number of the teacher")
    plateau_loss: pl.Float64 = FIELD(ge=0, description="largest loss after 2 % of the steps, nats")
    final_loss: pl.Float64 = FIELD(ge=0, description="loss after the last step, nats")
    p2_start: pl.Int32 = FIELD(ge=0, nullable=True, description="first step with 5 % of the fall behind it")
    c1: pl.Int32 = FIELD(ge=0, description="point at which half of the fall is nearest")
    p2_end: pl.Int32 = FIELD(ge=0, nullable=True, description="first step with 85 % of the fall behind it")

    class Config:
        """One row per teacher."""

        unique = ["run", "arm", "model"]


class _AfterStep(Result):
    """A model after a kept step."""

    run: pl.String
    arm: pl.String = FIELD(description="how the model is taught; label: the teacher itself")
    model: pl.Int32 = FIELD(ge=0, description="number within the arm")
    step: pl.Int32 = FIELD(ge=0, description="steps of its training")


class NgramSummary(_AfterStep):
    """A-ROB and A-CLOSE: total variation between predictions with and without short windows, over sentences and
    places."""

    measure: pl.String = FIELD(isin=["robust", "close"], description="without the window, or with nothing but it")
    ngram: pl.Int16 = FIELD(ge=2, description="tokens of the window")
    mean: pl.Float64 = FIELD(**SHARE)
    q25: pl.Float64 = FIELD(**SHARE, description="25 % quantile")
    q50: pl.Float64 = FIELD(**SHARE, description="median")
    q75: pl.Float64 = FIELD(**SHARE, description="75 % quantile")
    q90: pl.Float64 = FIELD(**SHARE, description="90 % quantile")
    n: pl.Int32 = FIELD(ge=1, description="sentences and places")

    class Config:
        """One row per model, step, measure and width."""

        unique = ["run", "arm", "model", "step", "measure", "ngram"]


class NtProbe(_AfterStep):
    """A-NT: how well the symbol above a token can be read from a model's last states."""

    level: pl.Int16 = FIELD(ge=2, description="of the symbols, counted from the leaves")
    acc_boundary: pl.Float64 = FIELD(**SHARE, description="accuracy at tokens that end a span of the level")
    acc_all: pl.Float64 = FIELD(**SHARE, description="accuracy at all tokens")
    majority: pl.Float64 = FIELD(**SHARE, description="share of the most frequent symbol")
    n_train: pl.Int32 = FIELD(ge=1, description="sentences that the probe is trained on")
    n_test: pl.Int32 = FIELD(ge=1, description="sentences that it is tested on, of other strings")

    class Config:
        """One row per model, step and level."""

        unique = ["run", "arm", "model", "step", "level"]


class Attention(Result):
    """A-ATTN: where the last token looks, along paths of two layers; median over strings."""

    run: pl.String
    model: pl.Int32 = FIELD(ge=0, description="number of the teacher")
    step: pl.Int32 = FIELD(ge=0, description="of training; 0: before it")
    place: pl.Int16 = FIELD(ge=0, description="of the sign in the string")
    inside: pl.Boolean = FIELD(description="the sign matters")
    weight: pl.Float64 = FIELD(ge=0, le=1.000001, description="of all paths to it, heads averaged")

    class Config:
        """One row per sign, model and step."""

        unique = ["run", "model", "step", "place"]


# --- the theory of sparse parity (experiment distillation-two-stages) ---

MODES = ["aligned", "iid", "labels"]
_D: dict[str, Any] = {"ge": 3, "description": "coordinates of an input"}
_K: dict[str, Any] = {"ge": 2, "description": "coordinates of the support"}
_M: dict[str, Any] = {"ge": 1, "description": "neurons"}
_SEED: dict[str, Any] = {"ge": 0, "description": "number of the replica"}


class MajoritySizes(Result):
    """Absolute Fourier coefficients of the majority, beside the printed and the corrected form of their size."""

    d: pl.Int32 = FIELD(**_D)
    i: pl.Int16 = FIELD(ge=1, description="coordinates of the set")
    exact: pl.Float64 = FIELD(gt=0, description="absolute coefficient, from its closed form")
    printed: pl.Float64 = FIELD(gt=0, description="i^(-1/3) / C(d, i)")
    corrected: pl.Float64 = FIELD(gt=0, description="i^(-3/4) / sqrt(C(d, i))")

    class Config:
        """One row per d and size of set."""

        unique = ["d", "i"]


class StageCorrelations(Result):
    """TH-L64: exact correlations E f(x) x_j of the network behind stage one, from both starts."""

    mode: pl.String = FIELD(isin=["aligned", "iid"], description="the start: as the proof takes it, or as printed")
    d: pl.Int32 = FIELD(**_D)
    k: pl.Int16 = FIELD(**_K)
    m: pl.Int32 = FIELD(**_M)
    seed: pl.Int32 = FIELD(**_SEED)
    in_signed_min: pl.Float64 = FIELD(description="least correlation inside the support, with its sign")
    in_mean: pl.Float64 = FIELD(ge=0, description="mean absolute correlation inside the support")
    in_min: pl.Float64 = FIELD(ge=0, description="least absolute correlation inside the support")
    off_mean: pl.Float64 = FIELD(ge=0, description="mean absolute correlation outside the support")
    off_max: pl.Float64 = FIELD(ge=0, description="largest absolute correlation outside the support")
    bound: pl.Float64 = FIELD(gt=0, description="1/8k, the printed bound inside the support")
    spread: pl.Float64 = FIELD(
        gt=0, description="mean absolute correlation inside, from the printed start, by closed form"
    )
    signal: pl.Float64 = FIELD(
        ge=0, le=1 + 1e-9, description="sum of c_j^2 inside the support over E f(x)^2: its share of the output's square"
    )

    class Config:
        """One row per replica."""

        unique = ["mode", "d", "k", "m", "seed"]


class StageWeights(Result):
    """TH-L63 and TH-C8: gradients at the start on batches of labels, and weights after one step on them."""

    d: pl.Int32 = FIELD(**_D)
    k: pl.Int16 = FIELD(**_K)
    m: pl.Int32 = FIELD(**_M)
    batch: pl.Int32 = FIELD(ge=1, description="inputs of the batch")
    seed: pl.Int32 = FIELD(**_SEED)
    gradient_error: pl.Float64 = FIELD(ge=0, description="largest error of an entry of the gradient, without a")
    hoeffding: pl.Float64 = FIELD(gt=0, description="its bound with probability 1 - delta")
    weight_error: pl.Float64 = FIELD(ge=0, description="largest error of a weight after the step")
    weight_bound: pl.Float64 = FIELD(ge=0, description="error of the gradient over k |zeta_(k-1)|")
    in_mean: pl.Float64 = FIELD(ge=0, description="mean |w| inside the support after the step")
    off_mean: pl.Float64 = FIELD(ge=0, description="mean |w| outside the support after the step")
    in_goal: pl.Float64 = FIELD(gt=0, description="|w| inside the support after a step on the whole population")
    off_goal: pl.Float64 = FIELD(gt=0, description="|w| outside the support after a step on the whole population")

    class Config:
        """One row per replica and batch; batches of a replica are nested."""

        unique = ["batch", "seed"]


class StageTwo(Result):
    """TH-L65: stage two on labels from the weights of the whole population."""

    d: pl.Int32 = FIELD(**_D)
    k: pl.Int16 = FIELD(**_K)
    m: pl.Int32 = FIELD(**_M)
    rate_name: pl.String = FIELD(
        isin=["ours", "printed"], description="the learning rate: of the parameters, or as printed"
    )
    rate: pl.Float64 = FIELD(gt=0, description="learning rate")
    seed: pl.Int32 = FIELD(**_SEED)
    step: pl.Int32 = FIELD(ge=0, description="steps done, which are inputs seen")
    hinge: pl.Float64 = FIELD(ge=0, description="hinge loss on held-out inputs")
    accuracy: pl.Float64 = FIELD(**SHARE, description="share of other held-out inputs with the right sign")
    is_best: pl.Boolean = FIELD(description="whether the hinge loss is the least of the replica")

    class Config:
        """One row per replica and measurement."""

        unique = ["d", "k", "m", "rate_name", "seed", "step"]


class SampleComplexity(Result):
    """TH-T23: how many of a student's neurons show the support in their first gradient on a batch."""

    mode: pl.String = FIELD(
        isin=MODES,
        description="the target: outputs of a stage-one teacher from the aligned or the printed start, or labels",
    )
    d: pl.Int32 = FIELD(**_D)
    k: pl.Int16 = FIELD(**_K)
    m_student: pl.Int32 = FIELD(**_M)
    batch: pl.Int32 = FIELD(ge=1, description="inputs of the batch; batches of a replica are nested")
    seed: pl.Int32 = FIELD(**_SEED)
    frac_neurons: pl.Float64 = FIELD(**SHARE, description="share of neurons whose k largest |entries| are the support")
    precision: pl.Float64 = FIELD(**SHARE, description="share of the support among the k largest |entries|, on average")
    aggregate_ok: pl.Boolean = FIELD(description="whether the k largest sums of |entries| over neurons are the support")

    class Config:
        """One row per replica and batch."""

        unique = ["mode", "d", "k", "batch", "seed"]


class SupportRecovery(Result):
    """TH-T23: the batch at which enough neurons show the support, on average over replicas, beside formulas."""

    mode: pl.String = FIELD(isin=MODES, description="the target, as in sample_complexity")
    d: pl.Int32 = FIELD(**_D)
    k: pl.Int16 = FIELD(**_K)
    seeds: pl.Int32 = FIELD(ge=1, description="replicas")
    ever: pl.Int32 = FIELD(ge=0, description="replicas that reach the share with one of the batches")
    largest: pl.Int32 = FIELD(ge=1, description="largest batch that was tried")
    b90: pl.Int32 = FIELD(ge=1, nullable=True, description="smallest batch that was tried and is enough")
    value: pl.Float64 = FIELD(
        gt=0, nullable=True, description="the same, between two batches by log-linear interpolation"
    )
    lo: pl.Float64 = FIELD(gt=0, nullable=True, description="lower end of its interval over replicas")
    hi: pl.Float64 = FIELD(gt=0, nullable=True, description="upper end of its interval over replicas")
    interval: pl.String = FIELD(description="kind of the interval; docs/intervals.md")
    predicted: pl.Float64 = FIELD(
        gt=0,
        nullable=True,
        description="batch at which normal noise on the population's gradient leaves the share right",
    )
    formula: pl.Float64 = FIELD(gt=0, description="k^2 ln(dm/delta), or of labels d^(k-1); constants are left out")

    class Config:
        """One row per target and d."""

        unique = ["mode", "d", "k"]


class EndToEnd(Result):
    """TH-T23: students after both stages; the first step is on the target, stage two on labels."""

    target: pl.String = FIELD(
        isin=[*MODES, "final"], description="of the first step; final: raw outputs of a teacher behind stage two"
    )
    d: pl.Int32 = FIELD(**_D)
    k: pl.Int16 = FIELD(**_K)
    m_student: pl.Int32 = FIELD(**_M)
    batch: pl.Int32 = FIELD(ge=1, description="inputs of the first step")
    seed: pl.Int32 = FIELD(**_SEED)
    frac_neurons: pl.Float64 = FIELD(**SHARE, description="share of neurons whose k largest |entries| are the support")
    precision: pl.Float64 = FIELD(**SHARE, description="share of the support among the k largest |entries|, on average")
    teacher_accuracy: pl.Float64 = FIELD(
        **SHARE, nullable=True, description="of the teacher behind stage two, at its best"
    )
    step: pl.Int32 = FIELD(ge=0, description="step of stage two with the least hinge loss")
    hinge: pl.Float64 = FIELD(ge=0, description="hinge loss on held-out inputs at that step")
    accuracy: pl.Float64 = FIELD(**SHARE, description="accuracy on other held-out inputs at that step")
    last_accuracy: pl.Float64 = FIELD(**SHARE, description="accuracy at the last step")

    class Config:
        """One row per student."""

        unique = ["target", "k", "batch", "seed"]


class LowerBounds(Result):
    """The formulas of Theorem 23 (without their constants) and Lemma 66."""

    d: pl.Int32 = FIELD(**_D)
    k: pl.Int16 = FIELD(**_K)
    m: pl.Int32 = FIELD(**_M)
    delta: pl.Float64 = FIELD(gt=0, lt=1, description="probability that the statement may fail with")
    gradient_error: pl.Float64 = FIELD(gt=0, description="tau_g of Lemma 66, and the loss of Theorem 23")
    most_steps: pl.Float64 = FIELD(
        gt=0, description="C(d, k) delta tau_g^2 / 2m: steps after which some parity is not learned"
    )
    progressive_first: pl.Float64 = FIELD(gt=0, description="k^2 ln(dm/delta): samples of stage one")
    progressive_second: pl.Float64 = FIELD(gt=0, description="2^k d^2 k^4 ln(k/delta) / loss^2: samples of stage two")
    one_shot: pl.Float64 = FIELD(gt=0, description="d^(k-1): samples of stage one on labels, as stated")
    one_shot_proof: pl.Float64 = FIELD(gt=0, description="d^(k-1) / m: the same, as the proof ends")

    class Config:
        """One row per size and error."""

        unique = ["d", "k", "m", "gradient_error"]


TWO_STAGES = {
    "majority_sizes": MajoritySizes,
    "stage_correlations": StageCorrelations,
    "stage_weights": StageWeights,
    "stage_two": StageTwo,
    "sample_complexity": SampleComplexity,
    "support_recovery": SupportRecovery,
    "end_to_end": EndToEnd,
    "lower_bounds": LowerBounds,
}

SCHEMAS = {
    "arms": Arms,
    "models": Models,
    "courses": Courses,
    "learning_rates": LearningRates,
    "comparisons": Comparisons,
    "correlations": Correlations,
    "separation": Separation,
    "chosen": Chosen,
    "attention": Attention,
} | TWO_STAGES


# --- grammars ----------------------------------------------------------------------------------------------------


class GrammarRules(Result):
    """The rules of the grammars (Figure 4.23)."""

    grammar: pl.String = FIELD(description="its name; cfg3b_pdcode is cfg3b as the published code has it")
    lhs: pl.Int16 = FIELD(ge=7, le=22, description="symbol that is replaced")
    rule_idx: pl.Int8 = FIELD(ge=0, description="number among the rules of that symbol")
    rhs: pl.List = FIELD(dtype_kwargs={"inner": pl.Int16}, description="symbols of the next level that replace it")
    depth: pl.Int8 = FIELD(ge=0, le=5, description="of the symbol below the root 22")
    level: pl.Int8 = FIELD(ge=2, le=7, description="of the symbol, counted from the leaves, whose level is 1")
    prob: pl.Float64 = FIELD(gt=0, le=1, description="of the rule, given the symbol")
    source: pl.String = FIELD(description="where the rule is listed")

    class Config:
        """One row per rule."""

        unique = ["grammar", "lhs", "rule_idx"]

    @pa.dataframe_check(name="the rules of a symbol have probability 1 together")
    def whole(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(((pl.col("prob").sum().over("grammar", "lhs") - 1).abs() <= 1e-12).alias("ok"))

    @pa.dataframe_check(name="two or three symbols on the right")
    def short(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("rhs").list.len().is_between(2, 3))


class PcfgLengthStats(Result):
    """TH-LEN: lengths of strings, exact, sampled and published."""

    grammar: pl.String = FIELD(description="its name; cfg3b_pdcode is cfg3b as the published code has it")
    quantity: pl.String = FIELD(
        isin=["q25", "q50", "q75", "q95", "mean", "sd", "min", "max"], description="of lengths in tokens"
    )
    exact: pl.Float64 = FIELD(gt=0, description="from the law of the length")
    sampled: pl.Float64 = FIELD(gt=0, description="of the strings that were drawn")
    n_sampled: pl.Int32 = FIELD(ge=1, description="strings that were drawn")
    published: pl.Float64 = FIELD(nullable=True, description="percentile in section 4.2.8.3; null: none is printed")

    class Config:
        """One row per quantity."""

        unique = ["grammar", "quantity"]


class PcfgLengthLaw(Result):
    """The distribution of lengths, exact and sampled."""

    grammar: pl.String = FIELD(description="its name; cfg3b_pdcode is cfg3b as the published code has it")
    length: pl.Int16 = FIELD(ge=1, description="tokens of a string")
    probability: pl.Float64 = FIELD(**SHARE, description="of this length")
    cumulative: pl.Float64 = FIELD(ge=0, le=1 + 1e-12, description="of this length or less")
    sampled: pl.Float64 = FIELD(**SHARE, description="share of the strings that were drawn")

    class Config:
        """One row per possible length."""

        unique = ["grammar", "length"]


class ParseTree(Result):
    """The derivation of one string, drawn (as in Figure 4.6)."""

    grammar: pl.String = FIELD(description="its name; cfg3b_pdcode is cfg3b as the published code has it")
    root: pl.Int16 = FIELD(ge=7, le=22, description="symbol at the top")
    node: pl.Int32 = FIELD(ge=0, description="number, level by level from the root and from left to right")
    parent: pl.Int32 = FIELD(ge=0, nullable=True, description="number of the node above; null: the root")
    level: pl.Int8 = FIELD(ge=1, le=7, description="counted from the leaves, whose level is 1")
    symbol: pl.Int16 = FIELD(ge=1, le=22, description="of the node; 1 to 3 are terminals")
    first: pl.Int16 = FIELD(ge=0, description="first token of its span, from 0")
    last: pl.Int16 = FIELD(ge=0, description="last token of its span: its right boundary")

    class Config:
        """One row per node."""

        unique = ["node"]


class Oracle(Result):
    """A-ORACLE: how well the best possible predictor does; no model can do better."""

    grammar: pl.String = FIELD(description="its name; cfg3b_pdcode is cfg3b as the published code has it")
    root: pl.Int16 = FIELD(ge=7, le=22, description="symbol at the top; 22: the full grammar")
    task: pl.String = FIELD(
        isin=["masked", "hidden", "next"],
        description="masked tokens; the same with selected positions hidden; next tokens at the ends of spans",
    )
    mask_rate: pl.Float64 = FIELD(
        **SHARE, nullable=True, description="share of tokens that are selected; null for next tokens"
    )
    level: pl.Int8 = FIELD(
        ge=1, le=6, nullable=True, description="of the spans at whose ends next tokens are asked for"
    )
    quantity: pl.String = FIELD(
        isin=["acc", "loss", "plateau_acc", "plateau_loss", "robust", "close"],
        description="accuracy, loss in nats; the same without context; median of L_robust and L_close",
    )
    ngram: pl.Int8 = FIELD(ge=2, nullable=True, description="tokens of the window of L_robust and L_close")
    value: pl.Float64 = FIELD(
        ge=0,
        nullable=True,
        description="expected under the posterior; of L_robust and L_close, median of total variation",
    )
    realised: pl.Float64 = FIELD(
        ge=0, nullable=True, description="with the tokens that were drawn: share of right guesses, mean loss"
    )
    se: pl.Float64 = FIELD(ge=0, nullable=True, description="standard error of value, over strings")
    n: pl.Int32 = FIELD(ge=0, description="tokens; strings where it is a median; 0: closed form")
    published: pl.Float64 = FIELD(
        nullable=True, description="of a trained model in the source, read from a graphic where it is not in the text"
    )
    where: pl.String = FIELD(nullable=True, description="figure or section of the published value")

    class Config:
        """One row per quantity."""

        unique = ["grammar", "root", "task", "mask_rate", "level", "quantity", "ngram"]


class Constructions(Result):
    """Propositions 9 and 10: Transformers with weights written down, on all strings of fair bits."""

    prop: pl.Int8 = FIELD(isin=[9, 10], description="9: attention selects the support; 10: it is uniform")
    d: pl.Int16 = FIELD(ge=2, description="bits of a string")
    k: pl.Int16 = FIELD(ge=1, description="bits of the parity")
    c: pl.Float64 = FIELD(ge=0, nullable=True, description="score of the support; null for proposition 10")
    accuracy: pl.Float64 = FIELD(**SHARE, description="probability that the sign of the output is the parity")
    max_err: pl.Float64 = FIELD(ge=0, description="largest distance between output and parity")
    off_mass: pl.Float64 = FIELD(**SHARE, description="attention outside the support")
    threshold_c: pl.Float64 = FIELD(nullable=True, description="least c with which the construction is exact")
    hidden1: pl.Int32 = FIELD(ge=1, description="units of the MLP's first hidden layer")
    hidden2: pl.Int32 = FIELD(ge=1, nullable=True, description="units of its second; null: it has one")
    w1_max: pl.Float64 = FIELD(gt=0, description="largest weight of the first layer")
    b1_max: pl.Float64 = FIELD(gt=0, description="largest bias of the first layer")

    class Config:
        """One row per construction."""

        unique = ["prop", "d", "k", "c"]


SCHEMAS |= {
    "phases": Phases,
    "ngram_summary": NgramSummary,
    "nt_probe": NtProbe,
    "grammar_rules": GrammarRules,
    "pcfg_length_stats": PcfgLengthStats,
    "pcfg_length_law": PcfgLengthLaw,
    "parse_tree": ParseTree,
    "oracle": Oracle,
    "constructions": Constructions,
}
