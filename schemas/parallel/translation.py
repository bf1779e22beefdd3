"""Result tables of the learned part: SYNMT in place of WMT (chapter sections 4 and 8)."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.results import Result

WORD, PARALLEL = KINDS = ["ar", "padir"]
NO_TEACHER, ORACLE, MODELS = DISTILLED = ["none", "oracle", "ar"]
RAW, TAKEN_OUT, REMASKED, REMASKED_LATE, CLEANED = POSTS = ["raw", "dedup", "remask", "remask_late", "remask_dedup"]
STUTTER, WITHIN, OTHER = PAIRS = ["stutter", "fert_pair", "other"]
HYP_RULE = "sum_len"
METRICS = [
    *("sa_min", "sa_mean", "sa_max", "sa_top1", "sa_top2"),
    *("tv_min", "tv_mean", "tv_max", "cos_min", "cos_mean", "cos_max", "ov1", "ov2"),
]
RUN = "member of the runs of params/parallel/runs.yaml"
REPLICA = "number of the model in its run, from 0"
PASSES = "passes of the decoder at most; 0: word by word"
BEAM = "lengths that are tried"
POST = (
    "raw; dedup: repeated tokens taken out at the end; remask: stutter takes the token of the state before, after each "
    "pass but the last; remask_late: from the second pass on, so that no random token of the start comes back; "
    "remask_dedup: remask, then dedup"
)


class Run(Result):
    """What was trained."""

    run: pl.String = pa.Field(unique=True, description=RUN)
    kind: pl.String = pa.Field(isin=KINDS, description="word by word, or in parallel")
    alpha: pl.Float64 = pa.Field(ge=0, le=1, description="dial of the corpus that was learned")
    tested: pl.Float64 = pa.Field(ge=0, le=1, description="dial of the corpus whose references it is tested against")
    distill: pl.String = pa.Field(
        isin=DISTILLED, description="oracle: alpha = 0, one translation of each source; ar: what models wrote"
    )
    stages: pl.Int32 = pa.Field(ge=1, le=4, description="S, passes of training")
    unmask: pl.Float64 = pa.Field(ge=0, le=1, description="share of tokens that training shows the decoder")
    pos_att: pl.Boolean = pa.Field(description="positional attention")
    init: pl.String = pa.Field(isin=["random", "mask"], description="what stands where a token is hidden")
    hyp_rule: pl.String = pa.Field(isin=[HYP_RULE], description="sum of log probabilities of tokens and of the length")
    steps: pl.Int32 = pa.Field(ge=1, description="of the optimiser")
    params: pl.Int64 = pa.Field(ge=1, description="weights of a model")
    models: pl.Int32 = pa.Field(ge=1, description="replicas, seeds")
    final_loss: pl.Float64 = pa.Field(description="mean over the last points of the curves, all replicas; nats")


class Metric(Result):
    """What the translations of one model are worth; intervals are over test sentences."""

    run: pl.String = pa.Field(description=RUN)
    replica: pl.Int32 = pa.Field(ge=0, description=REPLICA)
    T: pl.Int32 = pa.Field(ge=0, description=PASSES)
    B_l: pl.Int32 = pa.Field(ge=1, description=BEAM)
    post: pl.String = pa.Field(isin=POSTS, description=POST)
    n: pl.Int32 = pa.Field(ge=2, description="test sentences")
    bleu: pl.Float64 = pa.Field(ge=0, le=100 + 1e-9, description="corpus BLEU-4 on ids, one reference; not of words")
    valid_rate: pl.Float64 = pa.Field(ge=0, le=1, description="translations that have probability at alpha = 1")
    valid_lo: pl.Float64 = pa.Field(ge=0, le=1, description="lower end of its 95 % interval")
    valid_hi: pl.Float64 = pa.Field(ge=0, le=1, description="upper end of its 95 % interval")
    exact_rate: pl.Float64 = pa.Field(ge=0, le=1, description="translations that are the reference")
    len_acc: pl.Float64 = pa.Field(ge=0, le=1, description="translations as long as the reference")
    log_p_mean: pl.Float64 = pa.Field(
        nullable=True, description="mean log p(y | x) under the tested corpus, over outputs that have probability; nats"
    )
    stutter_per_100: pl.Float64 = pa.Field(
        ge=0, le=100, description="tokens equal to the one before, per 100; before any are taken out"
    )
    stutter_lo: pl.Float64 = pa.Field(ge=0, description="lower end of its 95 % interval")
    stutter_hi: pl.Float64 = pa.Field(ge=0, description="upper end of its 95 % interval")
    passes_mean: pl.Float64 = pa.Field(ge=0, description="passes of the decoder, of a sentence")
    passes_max: pl.Int32 = pa.Field(ge=0, description="passes of the decoder, of the slowest sentence")

    class Config:
        """One row per model and way to decode."""

        unique = ["run", "replica", "T", "B_l", "post"]

    @pa.dataframe_check(name="rates lie in their intervals")
    def inside(cls, data: PolarsData) -> pl.LazyFrame:
        valid = pl.col("valid_rate").is_between(pl.col("valid_lo") - 1e-12, pl.col("valid_hi") + 1e-12)
        stutter = pl.col("stutter_per_100").is_between(pl.col("stutter_lo") - 1e-9, pl.col("stutter_hi") + 1e-9)
        return data.lazyframe.select(valid & stutter)


class Output(Result):
    """Translations of some test sentences by the first model of each run."""

    run: pl.String = pa.Field(description=RUN)
    T: pl.Int32 = pa.Field(ge=0, description=PASSES)
    B_l: pl.Int32 = pa.Field(ge=1, description=BEAM)
    post: pl.String = pa.Field(isin=POSTS, description=POST)
    idx: pl.Int32 = pa.Field(ge=0, description="number of the sentence in the test split")
    src: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="words of the source")
    hyp: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16}, description="ids of the translation, EOS last")
    passes: pl.Int32 = pa.Field(ge=0, description="of the decoder")
    log_p_true: pl.Float64 = pa.Field(
        le=1e-9,
        nullable=True,
        description="log p(hyp | src) under the tested corpus, nats; null: it has no probability",
    )
    valid: pl.Boolean = pa.Field(description="hyp has probability at alpha = 1")
    exact: pl.Boolean = pa.Field(description="hyp is the reference")
    len_ok: pl.Boolean = pa.Field(description="hyp is as long as the reference")
    stutter: pl.Int32 = pa.Field(ge=0, description="tokens equal to the one before")
    n_tok: pl.Int32 = pa.Field(ge=0, description="tokens without EOS")

    class Config:
        """One row per sentence and way to decode."""

        unique = ["run", "T", "B_l", "post", "idx"]


class Loss(Result):
    """Total correlation of targets beside what parallel decoding loses, and what it could at best."""

    alpha: pl.Float64 = pa.Field(ge=0, le=1, description="dial of the corpus")
    T: pl.Int32 = pa.Field(ge=1, description="passes of the decoder at most")
    sentences: pl.Int32 = pa.Field(ge=1, description="test sources")
    tc_nats: pl.Float64 = pa.Field(ge=-1e-9, description="total correlation of the target, mean over sources, exact")
    h_nats: pl.Float64 = pa.Field(ge=-1e-9, description="H(Y | x), mean over sources, exact")
    tv_prod: pl.Float64 = pa.Field(
        ge=-1e-9, le=1 + 1e-9, description="distance of p(y | x) from the product of its marginals, mean, exact"
    )
    bayes_valid: pl.Float64 = pa.Field(
        ge=0, le=1, description="valid share where each position takes the token of its largest marginal, exact"
    )
    bayes_stutter: pl.Float64 = pa.Field(ge=0, description="of the same, tokens equal to the one before, per 100")
    lost: pl.Float64 = pa.Field(
        ge=-1, le=1, nullable=True, description="valid share word by word minus that in parallel; null: not trained"
    )
    lo: pl.Float64 = pa.Field(nullable=True, description="lower end of its 95 % interval over seeds")
    hi: pl.Float64 = pa.Field(nullable=True, description="upper end of its 95 % interval over seeds")
    n: pl.Int32 = pa.Field(ge=0, description="seeds")

    class Config:
        """One row per corpus and number of passes."""

        unique = ["alpha", "T"]


class Published(Result):
    """Numbers that the source prints for WMT. They are never joined to numbers of the stand-in."""

    table: pl.String = pa.Field(isin=["B1", "B2", "B3", "B4", "B5"], description="Tables 4.1 to 4.5")
    row: pl.String = pa.Field(description="model, with length hypotheses / passes, or class of pairs")
    col: pl.String = pa.Field(description="direction of translation, or what is measured of attention")
    value: pl.Float64 = pa.Field(description="as printed")
    sd: pl.Float64 = pa.Field(ge=0, nullable=True, description="over pairs, as printed")
    unit: pl.String = pa.Field(description="of the value")
    source_ref: pl.String = pa.Field(description="where it is printed")

    class Config:
        """One row per printed cell."""

        unique = ["table", "row", "col"]


class Pair(Result):
    """Attention of neighbouring tokens of some sentences, first model of each run, last decoder layer."""

    run: pl.String = pa.Field(description=RUN)
    T: pl.Int32 = pa.Field(ge=1, description="the pass whose attention is read")
    idx: pl.Int32 = pa.Field(ge=0, description="number of the sentence in the test split")
    pos: pl.Int32 = pa.Field(ge=0, description="position of the first of both tokens, from 0")
    cls: pl.String = pa.Field(isin=PAIRS, description="equal tokens; both tokens of one word; all others")
    sa_min: pl.Float32 = pa.Field(ge=0, le=1.0001, description="self-attention between both, least of heads and ways")
    sa_mean: pl.Float32 = pa.Field(ge=0, le=1.0001, description="the mean of the same")
    sa_max: pl.Float32 = pa.Field(ge=0, le=1.0001, description="the largest of the same")
    sa_top1: pl.Float32 = pa.Field(ge=0, le=1, description="heads and ways in which the neighbour is the top key")
    sa_top2: pl.Float32 = pa.Field(ge=0, le=1, description="heads and ways in which it is among the top two keys")
    tv_min: pl.Float32 = pa.Field(ge=0, le=1.0001, description="distance of cross-attention, least of heads")
    tv_mean: pl.Float32 = pa.Field(ge=0, le=1.0001, description="mean over heads")
    tv_max: pl.Float32 = pa.Field(ge=0, le=1.0001, description="largest of heads")
    cos_min: pl.Float32 = pa.Field(ge=-1e-3, le=1.0001, description="1 minus the cosine of the same, least of heads")
    cos_mean: pl.Float32 = pa.Field(ge=-1e-3, le=1.0001, description="mean over heads")
    cos_max: pl.Float32 = pa.Field(ge=-1e-3, le=1.0001, description="largest of heads")
    ov1: pl.Float32 = pa.Field(ge=0, le=1, description="heads whose top source token is the same")
    ov2: pl.Float32 = pa.Field(ge=0, le=1, description="heads whose top two source tokens intersect")

    class Config:
        """One row per pair."""

        unique = ["run", "T", "idx", "pos"]


class Summary(Result):
    """Attention of neighbouring tokens by class, for each model: Tables 4.4 and 4.5 on the stand-in."""

    run: pl.String = pa.Field(description=RUN)
    replica: pl.Int32 = pa.Field(ge=0, description=REPLICA)
    T: pl.Int32 = pa.Field(ge=1, description="the pass whose attention is read")
    cls: pl.String = pa.Field(isin=PAIRS, description="equal tokens; both tokens of one word; all others")
    metric: pl.String = pa.Field(isin=METRICS, description="a column of synmt_attn_pair")
    mean: pl.Float64 = pa.Field(nullable=True, description="over pairs; null where there is none")
    sd: pl.Float64 = pa.Field(ge=0, nullable=True, description="over pairs")
    n: pl.Int32 = pa.Field(ge=0, description="pairs")
    cohen_d_vs_other: pl.Float64 = pa.Field(
        nullable=True,
        description="mean minus that of all others, over the pooled standard deviation; null below 20 pairs",
    )

    class Config:
        """One row per model, pass, class and metric."""

        unique = ["run", "replica", "T", "cls", "metric"]


class Weights(Result):
    """The weights of one model for the page, half precision."""

    run: pl.String = pa.Field(description=RUN)
    name: pl.String = pa.Field(unique=True, description="of the parameter")
    heads: pl.Int32 = pa.Field(ge=1, description="of attention")
    shape: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int32}, description="without the replica")
    numbers: pl.String = pa.Field(description="16-bit floats, little-endian, row by row, in base 64")


SCHEMAS = {
    "synmt_run": Run,
    "synmt_output": Output,
    "synmt_metric": Metric,
    "synmt_tc": Loss,
    "synmt_attn_pair": Pair,
    "synmt_attn_summary": Summary,
    "synmt_weights": Weights,
    "par_published": Published,
}
