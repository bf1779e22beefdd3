"""Result tables of the study (chapter section 8).

A *run* is a member of a run in params/topic/; its models are those of several *cells* (loss and penalty) and
learning rates, and ``replica`` numbers the seeds of each.
"""

from __future__ import annotations

from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.comparisons import Comparisons
from schemas.results import Result

SHARE: dict[str, Any] = {"ge": 0, "le": 1}
FIELD = pa.Field
CATEGORIES = ["same_word", "same_topic_diff_word", "diff_topic", "unlabelled"]


class _Keyed(Result):
    """A table about cells of runs."""

    run: pl.String = FIELD(description="member of a run")
    cell: pl.String = FIELD(description="loss and penalty")
    lr: pl.Float64 = FIELD(ge=0, description="learning rate; 0 of what was not trained")


class _Blocks(Result):
    """MT1: statistics of a matrix of words."""

    block_mean: pl.Float64 = FIELD(description="mean of same-topic entries, with the diagonal")
    diag_mean: pl.Float64 = FIELD(description="mean of the diagonal")
    same_offdiag_mean: pl.Float64 = FIELD(description="mean of same-topic entries off the diagonal")
    diff_mean: pl.Float64 = FIELD(description="mean of different-topic entries")
    diff_std: pl.Float64 = FIELD(ge=0, description="their standard deviation")
    auc: pl.Float64 = FIELD(
        **SHARE, description="probability that a same-topic entry off the diagonal is above a different-topic entry"
    )
    block_sum_same: pl.Float64 = FIELD(description="sum of a row's same-topic entries, mean over rows")
    block_sum_diff: pl.Float64 = FIELD(description="the same of each other topic")
    top_share: pl.Float64 = FIELD(
        **SHARE, description="largest same-topic entry of a row over all of them, by size: 1 / v in an even block"
    )
    top_is_self: pl.Float64 = FIELD(**SHARE, description="share of rows whose largest same-topic entry is diagonal")
    top_distinct: pl.Float64 = FIELD(
        **SHARE, description="columns that hold the largest same-topic entry of a row, over rows"
    )
    nonblock_sub_std: pl.Float64 = FIELD(
        ge=0,
        nullable=True,
        description="standard deviation of the mean of 1000 different-topic entries drawn without replacement",
    )


class DocMoments(Result):
    """D1, D2: moments of the documents."""

    dataset: pl.String
    split: pl.String = FIELD(isin=["train", "dev"])
    n_docs: pl.Int32 = FIELD(ge=1, description="documents")
    mean_len: pl.Float64 = FIELD(ge=1, description="tokens of a document, on average")
    mean_sum_p2: pl.Float64 = FIELD(**SHARE, description="sum of squared shares of topics, on average")
    mean_entropy: pl.Float64 = FIELD(ge=0, description="entropy of theta in nats, on average")
    share_2_to_4: pl.Float64 = FIELD(
        **SHARE, description="share of documents in which two to four topics have at least 5% of tokens each"
    )
    share_2_to_4_any: pl.Float64 = FIELD(
        **SHARE, description="share of documents in which two to four topics have any token"
    )
    share_k: pl.List = FIELD(
        dtype_kwargs={"inner": pl.Float64},
        description="shares of documents in which 0, 1, 2, ... topics have at least 5% of tokens each",
    )

    class Config:
        """One row per split."""

        unique = ["dataset", "split"]


class PairShares(Result):
    """Shares of ordered pairs of tokens by category, in START and the first 99 words of all training documents."""

    label_offset: pl.Int8 = FIELD(isin=[0, 4], description="0: labels by word; 4: by token id, four too far")
    category: pl.String = FIELD(isin=CATEGORIES, description="words of a pair: the same, of one topic, or of two")
    pair_share: pl.Float64 = FIELD(**SHARE, description="share of all pairs")

    class Config:
        """One row per category."""

        unique = ["label_offset", "category"]


class Configs(_Keyed):
    """Every model, how it was trained, and its loss on held-out documents."""

    replica: pl.Int32 = FIELD(ge=0, description="seed")
    model: pl.String = FIELD(
        isin=["M1", "M2", "M3", "released"],
        description="trained embeddings, one-hot ones, uniform attention, or that of the released code",
    )
    loss: pl.String = FIELD(isin=["ce", "sq_sum", "sq_mean"], description="cross-entropy, or squared distance")
    optimiser: pl.String = FIELD(isin=["adam", "sgd"], description="update rule")
    l2: pl.Float64 = FIELD(ge=0, description="weight of the sum of squares of all trained numbers")
    masking: pl.String = FIELD(isin=["thesis", "released"], description="as the thesis masks, or the released code")
    trained: pl.String = FIELD(description="trained parameters")
    width: pl.Int16 = FIELD(ge=1, description="dimension of embeddings")
    std: pl.Float64 = FIELD(gt=0, description="standard deviation of initial matrices")
    std_embedding: pl.Float64 = FIELD(gt=0, description="of initial embeddings")
    steps: pl.Int32 = FIELD(ge=1, description="of training")
    batch: pl.Int32 = FIELD(ge=1, description="documents of a step")
    status: pl.String = FIELD(isin=["ok", "diverged"], description="whether training ended in finite weights")
    held_loss: pl.Float64 = FIELD(
        ge=0, nullable=True, description="in nats, or squared distance summed over outputs; null if diverged"
    )
    held_accuracy: pl.Float64 = FIELD(**SHARE, nullable=True, description="share of masked words found")

    class Config:
        """One row per model."""

        unique = ["run", "cell", "lr", "replica"]


class BlockStats(_Keyed, _Blocks):
    """MT1 of every model: of W_V + b_V 1', or of the released model's W_V, and of its initial value."""

    replica: pl.Int32 = FIELD(ge=0, description="seed")
    matrix: pl.String = FIELD(isin=["WV_plus_bias", "WV", "WV_initial"], description="trained, or as it began")
    mask_col_mean: pl.Float64 = FIELD(description="mean of the column of the mask")

    class Config:
        """One row per model and matrix."""

        unique = ["run", "cell", "lr", "replica", "matrix"]


class ClosedForm(_Blocks):
    """X1: the optimum of uniform attention with squared loss on the documents, and a solver that finds it again."""

    dataset: pl.String = FIELD(description="its entry")
    masking: pl.String = FIELD(isin=["thesis", "released"], description="as the thesis masks, or the released code")
    intercept: pl.Boolean = FIELD(description="whether there is b_V")
    l2: pl.Float64 = FIELD(ge=0, description="weight of the sum of squares of all entries")
    train_loss: pl.Float64 = FIELD(ge=0, description="squared distance summed over outputs, without the penalty")
    held_loss: pl.Float64 = FIELD(ge=0, description="the same on held-out documents")
    solver_gap: pl.Float64 = FIELD(
        ge=0, description="largest distance of an entry from that of conjugate gradients on the same loss"
    )
    mask_col_mean: pl.Float64 = FIELD(description="mean of the column of the mask")

    class Config:
        """One row per problem."""

        unique = ["dataset", "masking", "intercept", "l2"]


class Matrices(_Keyed):
    """Matrices of words by rows, of the first seed of a cell."""

    matrix: pl.String = FIELD(
        isin=["WV_plus_bias", "WV", "WV_ols", "WV_ridge", "Gram", "Gram_init"],
        description="trained values, their optima, or products of embeddings",
    )
    row: pl.Int16 = FIELD(ge=1, description="word")
    values: pl.List = FIELD(dtype_kwargs={"inner": pl.Float32}, description="entries of the row")

    class Config:
        """One row per row."""

        unique = ["run", "cell", "lr", "matrix", "row"]


class GramStats(_Keyed, _Blocks):
    """MT1 of the Gram matrix of trained embeddings and of initial ones, and cosines of pairs of different words."""

    replica: pl.Int32 = FIELD(ge=0, description="seed")
    matrix: pl.String = FIELD(isin=["Gram", "Gram_init"], description="of trained embeddings, or of initial ones")
    cos_same: pl.Float64 = FIELD(ge=-1, le=1, description="mean cosine of words of one topic")
    cos_diff: pl.Float64 = FIELD(ge=-1, le=1, description="mean cosine of words of different topics")
    diag_least: pl.Float64 = FIELD(ge=0, description="smallest entry of the diagonal")
    offdiag_largest: pl.Float64 = FIELD(ge=0, description="largest size of an entry off the diagonal")

    class Config:
        """One row per model and matrix."""

        unique = ["run", "cell", "lr", "replica", "matrix"]


class Attention(_Keyed):
    """MT2 of every model, on held-out documents without masks."""

    replica: pl.Int32 = FIELD(ge=0, description="seed")
    label_offset: pl.Int8 = FIELD(isin=[0, 4], description="0: labels by word; 4: by token id, four too far")
    norm: pl.String = FIELD(isin=["raw", "norm100"], description="norm100: times tokens of the document / 100")
    category: pl.String = FIELD(isin=CATEGORIES, description="words of a pair: the same, of one topic, or of two")
    mean_attn: pl.Float64 = FIELD(ge=0, nullable=True, description="mean attention weight; null without pairs")
    n_pairs: pl.Int64 = FIELD(ge=0, description="ordered pairs of positions")
    pair_share: pl.Float64 = FIELD(**SHARE, description="share of all pairs")

    class Config:
        """One row per model and category."""

        unique = ["run", "cell", "lr", "replica", "label_offset", "norm", "category"]


class Averages(_Keyed):
    """Tables 2.1 and 2.2: means and standard deviations over models, ours and those that are printed."""

    label_offset: pl.Int8 = FIELD(isin=[0, 4], nullable=True, description="null: printed, not said")
    norm: pl.String = FIELD(isin=["raw", "norm100"], nullable=True, description="null: printed, not said")
    n: pl.Int32 = FIELD(ge=0, description="models")
    n_trained: pl.Int32 = FIELD(ge=0, description="models with those that are left out")
    n_learned: pl.Int32 = FIELD(ge=0, nullable=True, description="of these models; null: printed, not said")
    source: pl.String = FIELD(description="ours, or where it is printed")
    same_word: pl.Float64 = FIELD(ge=0, nullable=True, description="mean attention to the same word")
    same_word_sd: pl.Float64 = FIELD(ge=0, nullable=True, description="standard deviation over models")
    same_topic: pl.Float64 = FIELD(ge=0, nullable=True, description="different words of one topic")
    same_topic_sd: pl.Float64 = FIELD(ge=0, nullable=True, description="standard deviation over models")
    diff_topic: pl.Float64 = FIELD(ge=0, nullable=True, description="words of different topics")
    diff_topic_sd: pl.Float64 = FIELD(ge=0, nullable=True, description="standard deviation over models")

    class Config:
        """One row per group of models, labels and norm."""

        unique = ["run", "cell", "lr", "label_offset", "norm"]


class Norms(_Keyed):
    """MT4: Frobenius norms after every fifth step."""

    replica: pl.Int32 = FIELD(ge=0, description="seed")
    step: pl.Int32 = FIELD(ge=0, description="0: initial weights")
    norm_k: pl.Float32 = FIELD(ge=0, nullable=True, description="of keys; null if diverged")
    norm_q: pl.Float32 = FIELD(ge=0, nullable=True, description="of queries")
    norm_v: pl.Float32 = FIELD(ge=0, nullable=True, description="of values")

    class Config:
        """One row per model and step."""

        unique = ["run", "cell", "lr", "replica", "step"]


class ValueTurns(_Keyed):
    """MT4: how far values turn."""

    replica: pl.Int32 = FIELD(ge=0, description="seed")
    step: pl.Int32 = FIELD(ge=1)
    cosdist_v_lag10: pl.Float64 = FIELD(
        ge=0, le=1, description="(1 - cosine) / 2 of values and those of ten steps before"
    )

    class Config:
        """One row per model and step."""

        unique = ["run", "cell", "lr", "replica", "step"]


class StageMetrics(_Keyed):
    """When norms begin to grow: from a tenth of their growth."""

    replica: pl.Int32 = FIELD(ge=0, description="seed")
    s_v10: pl.Int32 = FIELD(ge=1, nullable=True, description="first step with a tenth of the growth of values")
    s_k10: pl.Int32 = FIELD(ge=1, nullable=True, description="the same of keys")
    s_q10: pl.Int32 = FIELD(ge=1, nullable=True, description="the same of queries")
    fv_at_sk10: pl.Float64 = FIELD(
        **SHARE, nullable=True, description="share of their growth that values have behind them where keys begin"
    )
    k_frac_400: pl.Float64 = FIELD(**SHARE, nullable=True, description="norm of keys after 400 steps over its largest")
    v_frac_400: pl.Float64 = FIELD(**SHARE, nullable=True, description="the same of values")

    class Config:
        """One row per model."""

        unique = ["run", "cell", "lr", "replica"]


class Landscape(Result):
    """E7: exact losses of stage 2 on a grid of alpha and beta (Figures 2.7 and 2.8)."""

    T: pl.Int32 = FIELD(ge=1, description="topics")
    v: pl.Int32 = FIELD(ge=1, description="words of a topic")
    tau: pl.Int32 = FIELD(ge=1, description="topics of a document")
    kind: pl.String = FIELD(isin=["block", "diag"], description="of the frozen value matrix")
    variant: pl.String = FIELD(
        isin=["paper", "consistent"], description="normaliser without, and with, the keys that are [MASK]"
    )
    i: pl.Int16 = FIELD(ge=0, description="place of alpha on the grid")
    j: pl.Int16 = FIELD(ge=0, description="place of beta on the grid")
    alpha: pl.Float64 = FIELD(gt=0, description="weight of other words of the query's topic")
    beta: pl.Float64 = FIELD(gt=0, description="weight of the query's word")
    loss: pl.Float32 = FIELD(ge=0, le=1, description="per masked position, without queries that are [MASK]")

    class Config:
        """One row per point of each landscape."""

        unique = ["T", "v", "tau", "kind", "variant", "i", "j"]


class Stage2Optimum(Result):
    """E7: where a landscape is least, what the theorem says of that place, and the extent of its lowest part."""

    T: pl.Int32 = FIELD(ge=1, description="topics")
    v: pl.Int32 = FIELD(ge=1, description="words of a topic")
    tau: pl.Int32 = FIELD(ge=1, description="topics of a document")
    kind: pl.String = FIELD(isin=["block", "diag"], description="of the frozen value matrix")
    variant: pl.String = FIELD(
        isin=["paper", "consistent"], description="normaliser without, and with, the keys that are [MASK]"
    )
    alpha_star: pl.Float64 = FIELD(
        ge=0, nullable=True, description="optimal alpha; of blocks gamma alone is determined"
    )
    beta_star: pl.Float64 = FIELD(ge=0, nullable=True, description="optimal beta; likewise")
    gamma_star: pl.Float64 = FIELD(ge=0, nullable=True, description="optimal ((v - 1) alpha + beta) / v")
    l_min: pl.Float64 = FIELD(ge=0, le=1, nullable=True, description="least loss")
    lo_printed: pl.Float64 = FIELD(ge=0, description="lower end of the theorem's interval of gamma or beta")
    lo_proof: pl.Float64 = FIELD(ge=0, description="the same as the proof gives it")
    hi: pl.Float64 = FIELD(gt=0, description="upper end")
    lambda5: pl.Float64 = FIELD(gt=0, nullable=True, description="bound of the optimal alpha / beta; none for blocks")
    inside: pl.Boolean = FIELD(description="whether the optimum is where both forms of the theorem say")
    grid_min: pl.Float64 = FIELD(ge=0, le=1, nullable=True, description="least loss on the grid")
    grid_max: pl.Float64 = FIELD(ge=0, le=1, nullable=True, description="largest loss on the grid")
    level: pl.Float64 = FIELD(ge=0, le=1, nullable=True, description="loss up to which a point is in the lowest part")
    n_low: pl.Int32 = FIELD(ge=0, description="points in the lowest part")
    alpha_low: pl.Float64 = FIELD(gt=0, nullable=True, description="smallest alpha of the lowest part")
    alpha_high: pl.Float64 = FIELD(gt=0, nullable=True, description="largest alpha of it")
    beta_low: pl.Float64 = FIELD(gt=0, nullable=True, description="smallest beta of it")
    beta_high: pl.Float64 = FIELD(gt=0, nullable=True, description="largest beta of it")
    gamma_low: pl.Float64 = FIELD(gt=0, nullable=True, description="smallest gamma of it")
    gamma_high: pl.Float64 = FIELD(gt=0, nullable=True, description="largest gamma of it")
    ratio_high: pl.Float64 = FIELD(gt=0, nullable=True, description="largest alpha / beta of it")
    gamma_gap: pl.Float64 = FIELD(
        ge=0, nullable=True, description="of blocks: largest distance of the loss to that at alpha = beta = gamma"
    )

    class Config:
        """One row per landscape."""

        unique = ["T", "v", "tau", "kind", "variant"]


# --- E8 and E9: stand-ins for natural language, and encoders that were trained elsewhere -----------------

MODELS = ["NLM-0", "NLM-1", "NLM-2", "NLM-3", "NLM-4", "pretrained", "pretrained, before training"]
PHI = ["true", "lda"]
ASSIGN = ["one", "multi"]
MEASURES = [
    "cosine, word table",
    "dot product, word table",
    "cosine, layer output",
    "dot product, layer output",
    "attention, raw",
    "attention, debiased",
]


class LdaFit(Result):
    """Topics that were fitted to a corpus by variational Bayes."""

    corpus: pl.String = FIELD(description="dataset, and who cut it into tokens where that is not the dataset")
    k_topics: pl.Int32 = FIELD(ge=2, description="topics")
    documents: pl.Int32 = FIELD(ge=1, description="that were read")
    vocabulary: pl.Int32 = FIELD(ge=1, description="ids, special ones and stop words included, n")
    elbo: pl.Float64 = FIELD(description="bound on the log-likelihood of all documents, in nats")
    n_iter: pl.Int32 = FIELD(ge=1, description="passes over the corpus")
    matched_overlap: pl.Float64 = FIELD(
        **SHARE,
        nullable=True,
        description="sum of min(p, q) over words, mean over topics that are matched one to one with the true ones; "
        "null where nobody knows these",
    )

    class Config:
        """One row per fit."""

        unique = ["corpus"]


class LdaTopics(Result):
    """Words of the topics that were fitted, given that they are no stop words; each topic sums to 1."""

    corpus: pl.String = FIELD(description="as in the table of fits")
    topic: pl.Int32 = FIELD(ge=0, description="its number")
    id: pl.Int32 = FIELD(ge=0, description="of the word in the corpus")
    word: pl.String = FIELD(description="that the id stands for")
    p: pl.Float64 = FIELD(**SHARE, description="p(word | topic); words without probability are left out")

    class Config:
        """One row per topic and word."""

        unique = ["corpus", "topic", "id"]

    @pa.dataframe_check(name="each topic sums to 1")
    def sums(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("p").sum().over("corpus", "topic") - 1).abs() <= 1e-6)


class _Compared(Result):
    """A table that compares pairs of words, by a model and a choice of words."""

    model: pl.String = FIELD(isin=MODELS, description="name in the chapter")
    run: pl.String = FIELD(description="member of a run, or the name of an encoder")
    replica: pl.Int32 = FIELD(ge=0, description="seed")
    corpus: pl.String = FIELD(description="where topics and attention are from")
    is_standin: pl.Boolean = FIELD(description="false of an encoder that was trained on natural language")
    phi: pl.String = FIELD(isin=PHI, description="the topics that generated the corpus, or those of a fit")
    threshold: pl.Float64 = FIELD(gt=0, lt=1, description="ambiguity threshold theta")
    kept: pl.Int32 = FIELD(ge=1, description="words of a topic: int(theta n) + 1")


class Kinship(_Compared):
    """MT3: same-topic pairs of words beside different-topic pairs, of every model (Tables 2.3 and 2.4).

    Stand-ins and the published models are never in one row: ``is_standin`` says what a row is of.
    """

    assign: pl.String = FIELD(isin=ASSIGN, description="a word belongs to one topic alone, or to several")
    measure: pl.String = FIELD(isin=MEASURES, description="of embeddings, or of attention between positions")
    same: pl.Float64 = FIELD(description="mean over pairs of different words that share a topic")
    different: pl.Float64 = FIELD(description="mean over pairs of words that share none")
    difference: pl.Float64 = FIELD(description="same - different")
    ratio: pl.Float64 = FIELD(nullable=True, description="same / different; null where the latter is nearly 0")
    n_same: pl.Int64 = FIELD(gt=0, description="pairs: of words, or of positions in documents")
    n_different: pl.Int64 = FIELD(gt=0, description="pairs without a common topic")

    class Config:
        """One row per model, choice of words and measure."""

        unique = ["run", "model", "replica", "corpus", "phi", "threshold", "assign", "measure"]


class WordPairs(_Compared):
    """MT5: same-topic pairs of words, the most frequent companions, as many as one topic has pairs, those of them that
    share no topic, and all pairs (Table 2.5)."""

    group: pl.String = FIELD(
        isin=["same_topic", "top_cooccur", "top_unrelated", "all"], description="which pairs of words"
    )
    n_pairs: pl.Int32 = FIELD(gt=0, description="pairs of words")
    kin_share: pl.Float64 = FIELD(**SHARE, description="share of them that are same-topic pairs")
    mean_attention: pl.Float64 = FIELD(
        nullable=True, ge=0, description="debiased; null where no pair stands together in a document that was read"
    )
    mean_cosine: pl.Float64 = FIELD(nullable=True, description="of embeddings; null where there are none")

    class Config:
        """One row per model, choice of words and group."""

        unique = ["run", "model", "replica", "corpus", "phi", "threshold", "group"]


class WordMap(Result):
    """Cosines between embeddings of three words of each of three topics, first seed (Figure 2.3)."""

    model: pl.String = FIELD(isin=MODELS, description="name in the chapter")
    run: pl.String = FIELD(description="member of a run, or the name of an encoder")
    corpus: pl.String = FIELD(description="where topics and attention are from")
    is_standin: pl.Boolean = FIELD(description="false of an encoder that was trained on natural language")
    embedding: pl.String = FIELD(isin=["word table", "layer output"], description="which vectors of words")
    row: pl.Int32 = FIELD(ge=0, description="place among the words")
    column: pl.Int32 = FIELD(ge=0, description="place of the other word")
    row_word: pl.String = FIELD(description="word of the row")
    column_word: pl.String = FIELD(description="word of the column")
    same_topic: pl.Boolean = FIELD(description="whether both are of one topic")
    cosine: pl.Float64 = FIELD(ge=-1.000001, le=1.000001, description="cosine of both embeddings")

    class Config:
        """One row per cell."""

        unique = ["run", "model", "corpus", "embedding", "row", "column"]


class _Layers(Result):
    """A table about the layers of encoders in training."""

    run: pl.String = FIELD(description="member of a run")
    replica: pl.Int32 = FIELD(ge=0, description="seed")
    layer: pl.Int8 = FIELD(ge=1, description="counted from the input")


class LayerNorms(_Layers):
    """MT4: norms of queries, keys and values of each layer during training (Figure 2.9)."""

    step: pl.Int32 = FIELD(ge=0, description="0: initial weights")
    norm_k: pl.Float64 = FIELD(ge=0, description="Frobenius norm of W_K, all heads together")
    norm_q: pl.Float64 = FIELD(ge=0, description="the same of W_Q")
    norm_v: pl.Float64 = FIELD(ge=0, description="the same of W_V")

    class Config:
        """One row per layer and step."""

        unique = ["run", "replica", "layer", "step"]


class Turns(_Layers):
    """MT4: how far the value matrix of each layer turned in ten steps (Figure 2.9)."""

    step: pl.Int32 = FIELD(ge=1, description="the later of both")
    distance: pl.Float64 = FIELD(**SHARE, description="(1 - cosine of both matrices) / 2")

    class Config:
        """One row per layer and step."""

        unique = ["run", "replica", "layer", "step"]


class PublishedKinship(Result):
    """Numbers that Tables 2.3 to 2.5 print, of models and texts that were not measured here."""

    item: pl.String = FIELD(isin=["Table 2.3", "Table 2.4", "Table 2.5"], description="where it is printed")
    model: pl.String = FIELD(description="encoder, as the table calls it")
    threshold: pl.Float64 = FIELD(gt=0, lt=1, description="ambiguity threshold theta")
    n_pairs: pl.Int32 = FIELD(gt=0, nullable=True, description="pairs of words, where they are printed")
    group: pl.String = FIELD(
        isin=["ratio", "same_topic", "top_cooccur"], description="ratio: same-topic over different"
    )
    measure: pl.String = FIELD(
        isin=["cosine", "dot product", "attention"], description="of embeddings, or of attention"
    )
    value: pl.Float64 = FIELD(description="as printed")

    class Config:
        """One row per number."""

        unique = ["item", "model", "threshold", "group", "measure"]


LANGUAGE = {
    "lda_fit": LdaFit,
    "lda_topics": LdaTopics,
    "kinship": Kinship,
    "word_pairs": WordPairs,
    "word_map": WordMap,
    "layer_norms": LayerNorms,
    "turns": Turns,
    "published_kinship": PublishedKinship,
}

SCHEMAS = LANGUAGE | {
    "doc_moments": DocMoments,
    "pair_shares": PairShares,
    "configs": Configs,
    "block_stats": BlockStats,
    "closed_form": ClosedForm,
    "matrices": Matrices,
    "gram_stats": GramStats,
    "attention": Attention,
    "averages": Averages,
    "norms": Norms,
    "value_turns": ValueTurns,
    "stage_metrics": StageMetrics,
    "comparisons": Comparisons,
    "landscape": Landscape,
    "stage2_opt": Stage2Optimum,
}
