"""Result tables of the Dyck study (chapter section 8, with the keys ``run`` and ``replica`` for run_id).

A *run* is an ensemble (a member of an entry of ``params/dyck/``), a *replica* one of its models. Values that are
not defined are null. Columns that a frozen reference set has not got (`interval`, `learned`) may be null, so that it is
read all the same.
"""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.comparisons import Comparisons
from schemas.results import Result

ARCHITECTURES = ["gpt", "gpt_pos", "gpt200", "uniform", "resln", "eq6", "mfl15", "mfl16", "mfl17", "copy"]
DATA = ["complete", "prefix"]
NETWORKS = ["target", "parent", "pruned"]
TOKENS = ["start", "[", "]", "(", ")", "{", "}", "<", ">"]
_KIND = pa.Field(nullable=True, description="kind of the interval; docs/intervals.md")
_LEARNED = pa.Field(
    nullable=True, description="did not diverge, and learned its task in distribution; null where that is not known"
)


class Runs(Result):
    """The trained models: one row per replica."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    arch: pl.String = pa.Field(isin=ARCHITECTURES)
    n_layers: pl.Int8 = pa.Field(ge=1, le=4)
    n_heads: pl.Int8 = pa.Field(ge=1)
    width: pl.Int16 = pa.Field(ge=1)
    lr: pl.Float64 = pa.Field(gt=0)
    batch: pl.Int32 = pa.Field(ge=1)
    steps: pl.Int32 = pa.Field(ge=1)
    loss_positions: pl.String = pa.Field(isin=["closing", "all"])
    contrastive_lambda: pl.Float64 = pa.Field(ge=0)
    t_max: pl.Int32 = pa.Field(ge=1, nullable=True, description="null without a position code")
    train_dataset: pl.String
    train_split: pl.String
    lang_k: pl.Int8 = pa.Field(ge=1)
    lang_D: pl.Int8 = pa.Field(ge=1)
    corpus: pl.Int32 = pa.Field(ge=0, description="corpus_seed of the training data")
    stream: pl.String = pa.Field(description="runs of one stream share initialisation and data order")
    final_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="last point of the curve")
    diverged_at: pl.Int32 = pa.Field(ge=0, nullable=True, description="step at which it was frozen")
    learned: pl.Boolean = _LEARNED

    class Config:
        """One row per replica."""

        unique = ["run", "replica"]


class Accuracy(Result):
    """DYCK-A1 on each evaluation set; all positions of all sequences count the same."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    eval_split: pl.String
    in_distribution: pl.Boolean = pa.Field(description="drawn from the law of the training data")
    acc_close: pl.Float64 = pa.Field(ge=0, le=1)
    acc_all: pl.Float64 = pa.Field(ge=0, le=1)
    acc_thr80: pl.Float64 = pa.Field(ge=0, le=1)
    acc_close_unseen: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="acc_close on strings that no replica was trained on"
    )
    n_sequences: pl.Int32 = pa.Field(gt=0)
    unseen_share: pl.Float64 = pa.Field(ge=0, le=1, description="share of the sequences that no replica was trained on")
    shortest: pl.Int16 = pa.Field(gt=0, description="length of its shortest sequence")
    longest: pl.Int16 = pa.Field(gt=0)
    n_close: pl.Int32 = pa.Field(gt=0)
    n_close_unseen: pl.Int32 = pa.Field(ge=0, description="closing brackets of unseen strings among them")
    n_open_stack: pl.Int32 = pa.Field(gt=0)

    class Config:
        """One row per replica and evaluation set."""

        unique = ["run", "replica", "eval_split"]


_MAP = ["run", "replica", "probe_split", "seq_id", "layer", "head", "start_included", "causal"]


class Attention(Result):
    """Maps that figures show, the entries with key <= query; with the start token, it is position 0."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    probe_split: pl.String
    seq_id: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1, le=4)
    head: pl.Int8 = pa.Field(ge=0)
    start_included: pl.Boolean
    causal: pl.Boolean
    text: pl.String = pa.Field(description="the sequence, a character per position; a dot is the start token")
    query: pl.Int16 = pa.Field(ge=0)
    key: pl.Int16 = pa.Field(ge=0)
    weight: pl.Float64 = pa.Field(ge=0, le=1)

    class Config:
        """One row per entry of each map."""

        unique = [*_MAP, "query", "key"]

    @pa.dataframe_check(name="weights of a query sum to 1")
    def rows_sum_to_one(cls, data: PolarsData) -> pl.LazyFrame:
        total = pl.col("weight").sum().over([*_MAP, "query"])
        return data.lazyframe.select((total - 1).abs() <= 1e-5)

    @pa.dataframe_check(name="a causal query looks at nothing later")
    def causal_keys(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(~pl.col("causal") | (pl.col("key") <= pl.col("query")))


class Variation(Result):
    """DYCK-A2: mean |A_r - A_s|_F^2 over pairs of replicas, with an interval over replicas, not pairs."""

    run: pl.String
    probe_split: pl.String
    seq_id: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1, le=4)
    head: pl.Int8 = pa.Field(ge=0)
    last_layer: pl.Boolean
    start_included: pl.Boolean
    causal: pl.Boolean
    n_models: pl.Int16 = pa.Field(ge=0)
    n_rows: pl.Int16 = pa.Field(ge=1)
    variation_mean: pl.Float64 = pa.Field(ge=0, nullable=True, description="null for fewer than two models")
    ci_lo: pl.Float64 = pa.Field(ge=0, nullable=True)
    ci_hi: pl.Float64 = pa.Field(ge=0, nullable=True)
    interval: pl.String = _KIND
    confidence: pl.Float64 = pa.Field(gt=0, lt=1, description="of the interval")
    random_baseline: pl.Float64 = pa.Field(ge=0, description="closed form for random causal maps of this size")
    n_excluded: pl.Int16 = pa.Field(ge=0)
    excluded_reason: pl.String

    class Config:
        """One row per run, probe, layer, head and convention."""

        unique = ["run", "probe_split", "seq_id", "layer", "head", "start_included", "causal"]

    @pa.dataframe_check(name="variation is at most 2 per row")
    def bounded(cls, data: PolarsData) -> pl.LazyFrame:
        bounded = pl.col("variation_mean") <= 2 * pl.col("n_rows").cast(pl.Float64)
        return data.lazyframe.select(bounded.fill_null(True))

    @pa.dataframe_check(name="variation is defined from two models on")
    def defined(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("variation_mean").is_not_null() == (pl.col("n_models") >= 2))


class VariationTable1(Result):
    """Table 1: variation on the sentences of D5 with the start token, averaged over the sentences."""

    run: pl.String
    lang_k: pl.Int8 = pa.Field(ge=1)
    lang_D: pl.Int8 = pa.Field(ge=1)
    data: pl.String = pa.Field(isin=DATA, description="training data")
    n_layers: pl.Int8 = pa.Field(ge=1, le=4)
    layer: pl.Int8 = pa.Field(ge=1, le=4)
    mean: pl.Float64 = pa.Field(ge=0, nullable=True, description="null for fewer than two models")
    sd_over_sentences: pl.Float64 = pa.Field(ge=0, nullable=True)
    ci_lo: pl.Float64 = pa.Field(ge=0, nullable=True, description="of the mean, over replicas")
    ci_hi: pl.Float64 = pa.Field(ge=0, nullable=True)
    interval: pl.String = _KIND
    confidence: pl.Float64 = pa.Field(gt=0, lt=1, description="of the interval")
    n_sentences: pl.Int16 = pa.Field(ge=1)
    n_rows: pl.Int16 = pa.Field(ge=1)
    n_models: pl.Int16 = pa.Field(ge=0)
    n_excluded: pl.Int16 = pa.Field(ge=0)
    excluded_reason: pl.String
    random_baseline: pl.Float64 = pa.Field(ge=0, description="closed form, random causal maps of this size")
    published_mean: pl.Float64 = pa.Field(ge=0, nullable=True)
    published_sd: pl.Float64 = pa.Field(ge=0, nullable=True)

    class Config:
        """One row per run and layer."""

        unique = ["run", "layer"]

    @pa.dataframe_check(name="what is excluded has a reason")
    def excluded_has_reason(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("n_excluded") > 0) == (pl.col("excluded_reason") != ""))


class StackScore(Result):
    """DYCK-A4 on data like the training data, start token included as in training."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1, le=4)
    head: pl.Int8 = pa.Field(ge=0)
    eval_split: pl.String
    stack_argmax: pl.Float64 = pa.Field(ge=0, le=1, description="the last unmatched open weighs most")
    stack_argmax_tied: pl.Float64 = pa.Field(ge=0, le=1, description="the same, ties as hits")
    stack_ceiling: pl.Float64 = pa.Field(
        ge=0,
        le=1,
        description="share of queries whose open bracket no other key equals in type and depth: the most that a layer "
        "can score which sees nothing else of its keys",
    )
    stack_argmax_closers: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="among closers; null if no closer leaves an open bracket"
    )
    stack_argmax_unseen: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="stack_argmax on strings that no replica was trained on"
    )
    stack_mass: pl.Float64 = pa.Field(ge=0, le=1)
    stack_mass_uniform: pl.Float64 = pa.Field(ge=0, le=1, description="of uniform attention")
    same_depth_mass: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="minimal first layer only")
    kl_uniform: pl.Float64 = pa.Field(
        ge=0, description="mean over all tokens of KL(weights | uniform causal attention), in nats"
    )
    n_queries: pl.Int32 = pa.Field(gt=0, description="tokens after which a bracket is open")
    n_closers: pl.Int32 = pa.Field(ge=0, description="closers among them")

    class Config:
        """One row per replica, layer and head."""

        unique = ["run", "replica", "layer", "head"]


class Families(Result):
    """Where last-layer maps on D4 look (appendix D.2), of every accurate model, over the queries behind the first."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    start_included: pl.Boolean
    current: pl.Float64 = pa.Field(ge=0, le=1, description="mean weight on the current position")
    first: pl.Float64 = pa.Field(
        ge=0, le=1, description="mean weight on the first position: the start token, where it is included"
    )
    family: pl.String = pa.Field(isin=["current position", "first position"], description="where it looks more")

    class Config:
        """One row per model and convention."""

        unique = ["run", "replica", "start_included"]


class FamilyDistances(Result):
    """Whether maps on D4 fall into two families (appendix D.2): variation within and between them."""

    run: pl.String = pa.Field(description="a run, or all of them together")
    start_included: pl.Boolean
    n_models: pl.Int32 = pa.Field(ge=0)
    n_first: pl.Int32 = pa.Field(ge=0, description="models that look more at the first position")
    bimodality: pl.Float64 = pa.Field(
        ge=0,
        nullable=True,
        description="coefficient of first minus current weight: 1/3 for a normal law, 5/9 for a uniform one, 1 for two "
        "points; null for fewer than four models",
    )
    within: pl.Float64 = pa.Field(ge=0, nullable=True, description="mean distance of maps of one family")
    between: pl.Float64 = pa.Field(ge=0, nullable=True, description="mean distance of maps of both families")
    n_within: pl.Int32 = pa.Field(ge=0, description="pairs of maps of one family")
    n_between: pl.Int32 = pa.Field(ge=0, description="pairs of maps of both families")

    class Config:
        """One row per run and convention."""

        unique = ["run", "start_included"]


class StackCells(Result):
    """The factorial of DYCK-A4: stack scores of the last layer in one cell, over its models that did not diverge.

    A model is stack-like if its stack_argmax is at least 0.9. Models below the accuracy that the paper asks for count
    in the mean, not in the share.
    """

    run: pl.String
    block: pl.String = pa.Field(
        isin=["gpt", "resln"], description="form of a layer: of M1, or of the models of Table 1"
    )
    data: pl.String = pa.Field(isin=DATA, description="training data")
    lang_k: pl.Int8 = pa.Field(ge=1)
    lang_D: pl.Int8 = pa.Field(ge=1)
    length: pl.String = pa.Field(isin=["short", "long", "longer"], description="of training")
    steps: pl.Int32 = pa.Field(ge=1)
    acc_close: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="median, in distribution")
    mean: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="of stack_argmax")
    lo: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="of the mean, over replicas")
    hi: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    interval: pl.String = _KIND
    unseen: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="the same mean, on strings that no replica was trained on"
    )
    n: pl.Int32 = pa.Field(ge=0, description="models that did not diverge")
    n_accurate: pl.Int32 = pa.Field(ge=0, description="accurate models among them")
    n_stack_like: pl.Int32 = pa.Field(ge=0, description="stack-like models among the accurate ones")
    share_lo: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="exact binomial interval of their share")
    share_hi: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="its upper end")
    confidence: pl.Float64 = pa.Field(gt=0, lt=1, description="of both intervals")

    class Config:
        """One row per cell."""

        unique = ["block", "data", "lang_k", "lang_D", "length"]


class StackEffects(Result):
    """Main effects of the factorial: mean stack score at one level of a factor minus that at the other, all else
    being equal, each cell counting the same."""

    factor: pl.String = pa.Field(
        isin=["types of bracket", "depth", "block", "training data", "length of training"],
        description="what differs between the cells of a pair",
    )
    low: pl.String = pa.Field(description="level that is subtracted")
    high: pl.String = pa.Field(description="level that it is subtracted from")
    scope: pl.String = pa.Field(description="which cells: of one length of training, or of all")
    mean_low: pl.Float64 = pa.Field(ge=0, le=1, description="mean stack score at that level")
    mean_high: pl.Float64 = pa.Field(ge=0, le=1, description="mean stack score at the other level")
    value: pl.Float64 = pa.Field(ge=-1, le=1, description="mean_high - mean_low")
    lo: pl.Float64 = pa.Field(
        ge=-1, le=1, nullable=True, description="replicas of cells that start alike left out together"
    )
    hi: pl.Float64 = pa.Field(ge=-1, le=1, nullable=True)
    interval: pl.String = _KIND
    confidence: pl.Float64 = pa.Field(gt=0, lt=1, description="of the interval")
    n_pairs: pl.Int32 = pa.Field(ge=1, description="pairs of cells that differ in the factor alone")
    n: pl.Int32 = pa.Field(ge=0, description="models in them")

    class Config:
        """One row per factor and scope."""

        unique = ["factor", "scope"]


class Balance(Result):
    """DYCK-A5: balance violation of the models with a minimal first layer."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    beta: pl.Float64 = pa.Field(ge=0)
    beta_max: pl.Float64 = pa.Field(ge=0)
    qk_residual: pl.Float64 = pa.Field(ge=0, description="condition (11), in units of attention logits")

    class Config:
        """One row per replica."""

        unique = ["run", "replica"]


class BalanceDetail(Result):
    """|S| and P behind every beta, for the query b = closer of type j of a bracket opened at depth d.

    Both carry one common factor per replica and query (the largest exponent): only s_norm / p_dj has a meaning.
    """

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    d: pl.Int8 = pa.Field(ge=2)
    dprime: pl.Int8 = pa.Field(ge=1)
    i: pl.Int8 = pa.Field(ge=1)
    j: pl.Int8 = pa.Field(ge=1)
    s_norm: pl.Float64 = pa.Field(ge=0)
    p_dj: pl.Float64 = pa.Field(gt=0)

    class Config:
        """One row per replica, query and pair."""

        unique = ["run", "replica", "d", "dprime", "i", "j"]


class Fig3(Result):
    """Figures 3 and 10: balance violation against accuracy at lengths 400 to 500, one row per replica of an arm."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    arm: pl.String = pa.Field(isin=["standard", "contrastive"])
    data: pl.String = pa.Field(isin=DATA)
    beta: pl.Float64 = pa.Field(ge=0)
    acc_close: pl.Float64 = pa.Field(ge=0, le=1)
    acc_thr80: pl.Float64 = pa.Field(ge=0, le=1)
    diverged: pl.Boolean
    learned: pl.Boolean = _LEARNED

    class Config:
        """One row per replica."""

        unique = ["run", "replica"]


class Readings(Result):
    """What an open choice does to the numbers: each reading of it by a run of its own, all else being equal."""

    choice: pl.String = pa.Field(str_length={"min_value": 1})
    reading: pl.String
    recommended: pl.Boolean
    run: pl.String
    steps: pl.Int32 = pa.Field(ge=1, description="of training")
    quantity: pl.String = pa.Field(description="of replicas, a mean; of variation, a mean over pairs")
    value: pl.Float64 = pa.Field(nullable=True)
    lo: pl.Float64 = pa.Field(nullable=True)
    hi: pl.Float64 = pa.Field(nullable=True)
    interval: pl.String = _KIND
    confidence: pl.Float64 = pa.Field(gt=0, lt=1, description="of the interval")
    n: pl.Int32 = pa.Field(ge=0, description="replicas")
    n_excluded: pl.Int32 = pa.Field(ge=0)
    published: pl.Float64 = pa.Field(nullable=True)

    class Config:
        """One row per reading and quantity."""

        unique = ["choice", "reading", "quantity"]


class PruningDemo(Result):
    """DYCK-TH6 on a trained target: bracket accuracy of the target, of a random parent, and of the parent pruned.

    One parent for every number of candidates per weight; the target and its head are the same for all.
    """

    run: pl.String = pa.Field(description="the trained target")
    network: pl.String = pa.Field(isin=NETWORKS)
    candidates: pl.Int8 = pa.Field(ge=1, nullable=True, description="per weight and sign; null for the target")
    n_layers: pl.Int8 = pa.Field(ge=1)
    width: pl.Int32 = pa.Field(ge=1, description="hidden units of a network g")
    weights: pl.Int64 = pa.Field(ge=1, description="without embedding and head, zeros included")
    kept: pl.Int64 = pa.Field(ge=0, description="weights that are left by the mask")
    illegal: pl.Int64 = pa.Field(ge=0, description="weights that are neither the parent's nor 0")
    weight_error: pl.Float64 = pa.Field(ge=0, nullable=True, description="largest, of a product; pruned only")
    acc_close: pl.Float64 = pa.Field(ge=0, le=1)
    acc_all: pl.Float64 = pa.Field(ge=0, le=1)
    acc_thr80: pl.Float64 = pa.Field(ge=0, le=1)
    logit_error: pl.Float64 = pa.Field(ge=0, description="largest difference of a logit from the target's")
    map_distance: pl.Float64 = pa.Field(
        ge=0, description="mean over layers of |A - B|_F^2 from the target's maps on D4, without start token"
    )
    n_sequences: pl.Int32 = pa.Field(gt=0)
    n_close: pl.Int32 = pa.Field(gt=0)

    class Config:
        """One row per network and number of candidates."""

        unique = ["network", "candidates"]


class PruningMaps(Result):
    """Attention on D4 without start token, of the target and of the parent layers that it is pruned into."""

    network: pl.String = pa.Field(isin=NETWORKS)
    candidates: pl.Int8 = pa.Field(ge=1, nullable=True)
    layer: pl.Int8 = pa.Field(ge=1, description="of the target")
    network_layer: pl.Int8 = pa.Field(ge=1, description="the layer of this network that the map is of")
    query: pl.Int16 = pa.Field(ge=0)
    key: pl.Int16 = pa.Field(ge=0)
    weight: pl.Float64 = pa.Field(ge=0, le=1)

    class Config:
        """One row per entry of each map with key <= query."""

        unique = ["network", "layer", "query", "key"]

    @pa.dataframe_check(name="weights of a query sum to 1")
    def rows_sum_to_one(cls, data: PolarsData) -> pl.LazyFrame:
        total = pl.col("weight").sum().over("network", "layer", "query")
        return data.lazyframe.select((total - 1).abs() <= 1e-5)


class ClassLift(Result):
    """DYCK-A6: how much a head of a model that copies looks at a class of keys, against uniform attention.

    Means over the queries of a class in held-out strings, start token included. Key classes are tokens, and two
    that cut across them: the query's own position, and all positions that hold the query's token.
    """

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1, le=4)
    head: pl.Int8 = pa.Field(ge=0)
    query_class: pl.String = pa.Field(isin=["all", *TOKENS])
    key_class: pl.String = pa.Field(isin=[*TOKENS, "current position", "same token"])
    mass: pl.Float64 = pa.Field(ge=0, le=1 + 1e-6, description="mean attention on the class")
    mass_uniform: pl.Float64 = pa.Field(gt=0, le=1, description="of uniform causal attention")
    lift: pl.Float64 = pa.Field(ge=0, description="mass over mass_uniform")
    n_queries: pl.Int32 = pa.Field(gt=0)

    class Config:
        """One row per head and pair of classes that meet."""

        unique = ["run", "replica", "layer", "head", "query_class", "key_class"]


class Ablation(Result):
    """DYCK-A6: accuracy of copying, over all positions of held-out strings, when one head's map is replaced."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1, le=4)
    head: pl.Int8 = pa.Field(ge=0)
    mode: pl.String = pa.Field(
        isin=["uniform", "identity", "zero"], description="what stands in its place: a map, or no attention"
    )
    acc_before: pl.Float64 = pa.Field(ge=0, le=1)
    acc_after: pl.Float64 = pa.Field(ge=0, le=1, description="nothing is trained again")
    interpretable: pl.Boolean = pa.Field(description="the lift of some bracket is <= 0.25 or >= 2")
    misleading: pl.Boolean = pa.Field(description="interpretable, and accuracy changes by less than a point")
    n_positions: pl.Int32 = pa.Field(gt=0)

    class Config:
        """One row per head and mode."""

        unique = ["run", "replica", "layer", "head", "mode"]

    @pa.dataframe_check(name="what misleads is interpretable")
    def misleading_is_interpretable(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(~pl.col("misleading") | pl.col("interpretable"))


class CopyMaps(Result):
    """All maps of models that copy on D4, the entries with key <= query; position 0 is the start token."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1, le=4)
    head: pl.Int8 = pa.Field(ge=0)
    query: pl.Int16 = pa.Field(ge=0)
    key: pl.Int16 = pa.Field(ge=0)
    query_token: pl.String = pa.Field(isin=TOKENS)
    key_token: pl.String = pa.Field(isin=TOKENS)
    weight: pl.Float64 = pa.Field(ge=0, le=1)

    class Config:
        """One row per entry of each map with key <= query."""

        unique = ["run", "replica", "layer", "head", "query", "key"]

    @pa.dataframe_check(name="weights of a query sum to 1")
    def rows_sum_to_one(cls, data: PolarsData) -> pl.LazyFrame:
        total = pl.col("weight").sum().over("run", "replica", "layer", "head", "query")
        return data.lazyframe.select((total - 1).abs() <= 1e-5)


class HeadImportance(Result):
    """DYCK-E11: what a head is worth to bracket accuracy, the others left as they are or trained on without it.

    Further training alone changes accuracy, too, so what it does without a head is held against what it does with all.
    """

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1, le=4)
    head: pl.Int8 = pa.Field(ge=0)
    stack_argmax: pl.Float64 = pa.Field(ge=0, le=1, description="DYCK-A4 of the head")
    acc_before: pl.Float64 = pa.Field(ge=0, le=1, description="acc_close in distribution")
    acc_fixed: pl.Float64 = pa.Field(ge=0, le=1, description="the head zeroed")
    acc_adapted: pl.Float64 = pa.Field(ge=0, le=1, description="the head zeroed, then trained further")
    acc_control: pl.Float64 = pa.Field(ge=0, le=1, description="no head zeroed, trained further alike")
    importance_fixed: pl.Float64 = pa.Field(ge=-1, le=1, description="acc_before - acc_fixed")
    importance_adapt: pl.Float64 = pa.Field(ge=-1, le=1, description="acc_control - acc_adapted")
    finetune_steps: pl.Int32 = pa.Field(ge=1)
    learned: pl.Boolean = _LEARNED

    class Config:
        """One row per head."""

        unique = ["run", "replica", "layer", "head"]


SCHEMAS: dict[str, type[pa.DataFrameModel]] = {
    "runs": Runs,
    "accuracy": Accuracy,
    "stack_score": StackScore,
    "attention": Attention,
    "variation": Variation,
    "variation_table1": VariationTable1,
    "stack_cells": StackCells,
    "stack_effects": StackEffects,
    "families": Families,
    "family_distances": FamilyDistances,
    "balance": Balance,
    "balance_detail": BalanceDetail,
    "fig3": Fig3,
    "readings": Readings,
    "pruning_demo": PruningDemo,
    "pruning_maps": PruningMaps,
    "class_lift": ClassLift,
    "ablation": Ablation,
    "copy_maps": CopyMaps,
    "head_importance": HeadImportance,
    "comparisons": Comparisons,
}
