"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

Models of one seed share initial weights and the order of documents in all runs of one stream
(`pipeline.studies.topic.runs`), as far as they have the same parameters: values do with uniform and with trained
attention, trained embeddings alone and beside the rest do not, nor do models with and without special ids.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from pipeline.kit.comparisons import MEDIAN, OWN, SHARE, SHIFT, Arm, Comparison, Declared
from pipeline.kit.conditions import Condition, above, at_least, at_most, below
from pipeline.studies.topic.names import (
    ALL,
    ALL_SGD_CE,
    ALL_SGD_SQ,
    ATTENTION,
    ATTENTION_RELEASED,
    ATTENTION_SGD,
    ATTENTION_SGD_SHORT,
    BLOCK_SQ,
    DIAGONAL_5,
    DIAGONAL_10,
    DIAGONAL_10_RELEASED,
    DIAGONAL_SQ,
    ENCODER,
    ENCODER_ENGLISH,
    ENCODERS,
    FROZEN_ADAM,
    FROZEN_EXACT,
    FROZEN_PUBLISHED,
    FROZEN_RELEASED,
    FROZEN_SGD_CE,
    FROZEN_SGD_SQ,
    JOINT_ADAM,
    JOINT_LONG,
    JOINT_LONG_RELEASED,
    JOINT_PUBLISHED,
    JOINT_SGD_CE,
    JOINT_SGD_SQ,
    LAYERS,
    LAYERS_FAST,
    ONE_HOT_EXAMPLE,
    ONLY_CE,
    ONLY_SGD_CE,
    ONLY_SGD_SQ,
    ONLY_SQ,
    OVERLAPPING,
    READER_EMBEDDED,
    READER_ONE_HOT,
    REFERENCE,
    RELEASED_ADAM,
    RELEASED_EXAMPLE,
    RELEASED_FROZEN,
    RELEASED_JOINT,
    RELEASED_SGD,
    STAGES_A,
    STAGES_B,
    STAGES_C,
    STAGES_N,
    THRESHOLDS,
    UNIT,
)
from schemas.comparisons import NOTHING, SEEDS

DECLARED = Declared()
VALUES, GRAM, AVERAGES = "topic-values", "topic-embeddings-gram", "topic-averages"
STAGES, LANGUAGE, PRETRAINED = "topic-two-stages", "topic-language", "topic-pretrained"
Key = tuple[str, str]  # a run and a cell


def _slug(*parts: object) -> str:
    words = " ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in parts)
    return re.sub(r"[^a-z0-9.]+", "-", words.lower().replace("topic-", "")).strip("-")


def _one(
    key: str,
    measure: str,
    statistic: str,
    experiment: str,
    arm: str,
    *runs: str,
    hits: tuple[Condition, ...] = (),
    learned: bool = True,
    unit: str = "model",
) -> Comparison:
    """Declare a comparison of one arm: models of ``runs``, which it calls ``arm``."""
    arms = (Arm(arm, *runs),)
    return DECLARED(Comparison(key, measure, statistic, experiment, arms, unit=unit, learned=learned, hits=hits))


# --- E1 and E2: values ------------------------------------------------------------------------------------

FROZEN: dict[str, Key] = {  # panels of Figures 2.2 and 2.5: a run, and its cell without a penalty
    "cross-entropy, Adam": (FROZEN_ADAM, "ce"),
    "cross-entropy, SGD": (FROZEN_SGD_CE, "ce"),
    "squared, Adam": (FROZEN_ADAM, "sq"),
    "squared, SGD": (FROZEN_SGD_SQ, "sq"),
}
JOINT: dict[str, Key] = {  # panels of Figure 2.6
    "cross-entropy, Adam": (JOINT_ADAM, "ce"),
    "cross-entropy, SGD": (JOINT_SGD_CE, "ce"),
    "squared, Adam": (JOINT_ADAM, "sq"),
    "squared, SGD": (JOINT_SGD_SQ, "sq"),
}
PENALISED = {name: (run, f"{cell}-l2") for name, (run, cell) in FROZEN.items()}
# Values of runs in which attention has not moved are those of uniform attention, which are judged already.
TRAINED = {name: key for name, key in JOINT.items() if key[0] == JOINT_ADAM}
LONG = {"masks are keys": JOINT_LONG, "masks are no keys": JOINT_LONG_RELEASED}
WITH, WITHOUT, BOTH = "{}, with L2", "{}, without L2", "{}, attention trained"

FLOORS = {
    "ce": _one(
        "floor-ce",
        "smallest loss on held-out documents of all its models with one-hot embeddings, in nats",
        SHARE,
        VALUES,
        "",
        FROZEN_ADAM,
        FROZEN_SGD_CE,
        FROZEN_PUBLISHED,
        JOINT_ADAM,
        JOINT_SGD_CE,
        JOINT_PUBLISHED,
        hits=at_least(2.88),
        learned=False,
        unit="seed",
    ),
    "sq": _one(
        "floor-sq",
        "smallest loss on held-out documents of all its models with uniform attention and no penalty",
        SHARE,
        VALUES,
        "",
        FROZEN_ADAM,
        FROZEN_SGD_SQ,
        hits=at_least(0.94),
        learned=False,
        unit="seed",
    ),
}

# Training against least squares on the same documents: a bar for each statistic. The diagonal, and with it the loss,
# lies in directions that SGD has not reached.
TOLERANCES = {"block_mean": 0.002, "diff_mean": 0.0004, "diag_mean": 0.004, "held_loss": 0.005}
CALLED = {
    "block_mean": "mean of blocks",
    "diff_mean": "mean outside blocks",
    "diag_mean": "mean of the diagonal",
    "held_loss": "loss on held-out documents",
}
OPTIMISERS = {FROZEN_ADAM: "Adam", FROZEN_SGD_SQ: "SGD"}
CLOSED = {
    (run, cell, what): _one(
        _slug("closed-form", run, cell, what),
        f"distance of the {CALLED[what]} from that of the closed form",
        SHARE,
        VALUES,
        f"{name}, {'with' if cell == 'sq-l2' else 'without'} L2",
        run,
        hits=at_most(bar),
    )
    for run, name in OPTIMISERS.items()
    for cell in ("sq", "sq-l2")
    for what, bar in TOLERANCES.items()
    if run == FROZEN_ADAM or what in ("block_mean", "diff_mean")
}

_ABOVE = "probability that a same-topic entry off the diagonal is above a different-topic one"
BLOCKS = {
    (run, cell): _one(_slug("blocks", run, cell), _ABOVE, SHARE, VALUES, words.format(name), run, hits=at_least(bar))
    for panels, words, bar in ((PENALISED, WITH, 0.95), (FROZEN, WITHOUT, 0.9), (TRAINED, BOTH, 0.9))
    for name, (run, cell) in panels.items()
}
_LARGEST = "share of a row's largest entry in its block (0.1 in an even block), mean over rows"
EVEN = {
    (run, cell): _one(_slug("largest", run, cell), _LARGEST, MEDIAN, VALUES, words.format(name), run)
    for panels, words in ((PENALISED, WITH), (TRAINED, BOTH), ({n: (r, "sq") for n, r in LONG.items()}, "{}"))
    for name, (run, cell) in panels.items()
}
_COLUMNS = (
    "number of columns that hold some row's largest entry in its block, divided by the number of rows (0.65 where "
    "rows are independent)"
)
COLUMNS = {
    (run, cell): _one(_slug("columns", run, cell), _COLUMNS, MEDIAN, VALUES, name, run)
    for name, run, cell in (
        ("cross-entropy, Adam, attention trained", JOINT_ADAM, "ce"),
        *((name, run, "sq") for name, run in LONG.items()),
    )
}
MOVED = {
    (run, cell): _one(
        _slug("moved", run, cell),
        "norm of keys after training over that before",
        MEDIAN,
        VALUES,
        name,
        run,
        learned=False,
    )
    for name, (run, cell) in (JOINT | {"released model, squared, SGD": (RELEASED_JOINT, "sq")}).items()
}
RATE = "averaged squared loss, SGD and the published rate"
PUBLISHED_RUNS = {
    "uniform attention": RELEASED_FROZEN,
    "attention trained": RELEASED_JOINT,
    "uniform attention, one-hot embeddings": FROZEN_PUBLISHED,
    "attention trained, one-hot embeddings": JOINT_PUBLISHED,
}
# Whether models have learned does not matter: blocks as weak as the printed ones are those of a model that has hardly
# begun.
BLOCK_MEAN = {
    name: _one(_slug("block-mean", run), f"mean of blocks with {RATE}", MEDIAN, VALUES, name, run, learned=False)
    for name, run in PUBLISHED_RUNS.items()
}
BLOCK_LEAD = {
    name: _one(
        _slug("block-lead", run),
        f"mean of blocks less that outside them with {RATE}, in standard deviations of the mean of 1000 entries there",
        MEDIAN,
        VALUES,
        name,
        run,
        learned=False,
    )
    for name, run in PUBLISHED_RUNS.items()
}
EXAMPLES = {"normalised embeddings": RELEASED_EXAMPLE, "one-hot embeddings": ONE_HOT_EXAMPLE}
PRODUCTS = {  # of columns of the value matrix that are of words
    "square": "mean squared norm of a word's column of values",
    "other": "mean inner product of the columns of values of words of two topics",
}
EXAMPLE = {
    (run, what): _one(_slug("example", what, run), words, MEDIAN, VALUES, name, run)
    for name, run in EXAMPLES.items()
    for what, words in PRODUCTS.items()
}
INITIAL = _one(
    "initial-spread",
    "standard deviation of means of 1000 entries outside blocks before training",
    MEDIAN,
    VALUES,
    "",
    JOINT_ADAM,
    learned=False,
)
_DIAGONAL = "mean of the diagonal over that of the rest of blocks"
DIAGONAL = {
    (run, cell): _one(_slug("diagonal", run, cell), _DIAGONAL, MEDIAN, VALUES, name, run)
    for name, run, cell in (
        ("Adam, without L2", FROZEN_ADAM, "sq"),
        ("Adam, with L2", FROZEN_ADAM, "sq-l2"),
        ("Adam, masks are no keys", FROZEN_RELEASED, "sq"),
        ("Adam, exact topics, without L2", FROZEN_EXACT, "sq"),
    )
}
_LOST = (
    "share of what training everything saves on held-out documents, over an answer that takes all words for alike, "
    "that is lost"
)


def _lost(key: str, experiment: str, words: str, run: str, whole: str, in_common: str = NOTHING) -> Comparison:
    arms = (Arm(words, run), Arm("everything trained", whole))
    return DECLARED(Comparison(key, _LOST, OWN, experiment, arms, in_common))


# The same W_V at the start, and the same order of documents.
FROZEN_COST = {
    cell: _lost(f"frozen-cost-{cell}", VALUES, "uniform attention", FROZEN_ADAM, JOINT_ADAM, SEEDS)
    for cell in ("ce", "sq")
}
PENALTY_COST = {
    cell: DECLARED(
        Comparison(
            f"penalty-cost-{cell}",
            "share of what training without a penalty saves on held-out documents, over an answer that takes all words "
            "for alike, that is lost",
            OWN,
            VALUES,
            (Arm("penalty of 0.001", FROZEN_ADAM), Arm("no penalty", FROZEN_ADAM)),
            SEEDS,
        )
    )
    for cell in ("ce", "sq")
}
LONG_DIAGONAL = {
    name: _one(_slug("long-diagonal", run), f"{_DIAGONAL}, by size", SHARE, VALUES, name, run, hits=hits)
    for (name, run), hits in zip(LONG.items(), (at_least(3.0), at_most(2.0)), strict=True)
}
SELF_MATCHED = DECLARED(
    Comparison(
        "long-self-matched",
        "share of rows whose largest entry in its block is diagonal",
        SHIFT,
        VALUES,
        tuple(Arm(name, run) for name, run in LONG.items()),
    )
)


# --- E3: embeddings ---------------------------------------------------------------------------------------

PANELS: dict[str, Key] = {
    "everything, cross-entropy, Adam": (ALL, "ce"),
    "everything, cross-entropy, SGD": (ALL_SGD_CE, "ce"),
    "everything, squared, Adam": (ALL, "sq"),
    "everything, squared, SGD": (ALL_SGD_SQ, "sq"),
    "embeddings alone, cross-entropy, Adam": (ONLY_CE, "ce"),
    "embeddings alone, cross-entropy, SGD": (ONLY_SGD_CE, "ce"),
    "embeddings alone, squared, Adam": (ONLY_SQ, "sq"),
    "embeddings alone, squared, SGD": (ONLY_SGD_SQ, "sq"),
}
_SUM = "sum of a word's inner products with"
SUMS = {
    (run, cell): _one(
        _slug("sums", run, cell),
        f"{_SUM} its topic, itself among it, less that with another topic, mean over words",
        SHARE,
        GRAM,
        name,
        run,
        hits=above(0.0),
    )
    for name, (run, cell) in PANELS.items()
}
INNER = {
    (run, cell): _one(
        _slug("inner", run, cell),
        "mean inner product of different words of one topic less that of words of two topics",
        SHARE,
        GRAM,
        name,
        run,
        hits=above(0.0),
    )
    for name, (run, cell) in PANELS.items()
}
PAIRED_OFF = {
    (run, cell): _one(
        _slug("gram", run, cell),
        "probability that the inner product of different words of one topic is above that of words of two topics",
        SHARE,
        GRAM,
        name,
        run,
        hits=at_least(0.9),
    )
    for name, (run, cell) in PANELS.items()
}
COSINES = {
    (run, cell): _one(
        _slug("cosines", run, cell),
        "mean cosine of different words of one topic less that of words of two topics",
        SHARE,
        GRAM,
        name,
        run,
        hits=at_least(0.3),
    )
    for name, (run, cell) in PANELS.items()
    if (run, cell) in ((ALL, "ce"), (ONLY_CE, "ce"))
}
THEOREM_SUMS = {
    "block_sum_same": _one(
        "theorem-same",
        f"{_SUM} its topic, mean over words (1.156 in the theorem)",
        MEDIAN,
        GRAM,
        "embeddings alone, squared, Adam",
        ONLY_SQ,
    ),
    "block_sum_diff": _one(
        "theorem-other",
        f"{_SUM} another topic, mean over words (0 in the theorem)",
        MEDIAN,
        GRAM,
        "embeddings alone, squared, Adam",
        ONLY_SQ,
    ),
}
# Other initial embeddings: where values are trained they are drawn first.
ALONE = {"ce": ONLY_CE, "sq": ONLY_SQ}
ALONE_COST = {cell: _lost(f"alone-cost-{cell}", GRAM, "embeddings alone", run, ALL) for cell, run in ALONE.items()}
UNIT_DIAGONAL = _one(
    "unit-diagonal",
    "smallest entry of the diagonal over the largest other, after training",
    SHARE,
    GRAM,
    "embeddings of unit size",
    UNIT,
    hits=above(1.0),
)


# --- E4 and E5: attention ---------------------------------------------------------------------------------

Trained = tuple[str, float]  # a run and a learning rate
RATES = (0.003, 0.01, 0.03)
FROZEN_RATE = 0.003
TEXT_RATE = 0.01  # of the model of the text, which has one-hot embeddings
ROWS = {  # of Table 2.1, by the model that they are held against: a run, a rate, and an optimiser
    **{f"Adam, rate {rate:g}": (RELEASED_ADAM, rate, "adam") for rate in RATES},
    "SGD, rate 0.03": (RELEASED_SGD, 0.03, "sgd"),
    "one-hot embeddings, Adam, rate 0.01": (ATTENTION_RELEASED, TEXT_RATE, "adam"),
}
KINDS = {  # whom attention goes to
    "same_word": "the same word",
    "same_topic_diff_word": "other words of the topic",
    "diff_topic": "words of other topics",
}
TOPIC_FIRST = {
    (run, rate): _one(
        _slug("own topic", run, rate),
        "attention to other words of the topic over that to words of other topics",
        SHARE,
        AVERAGES,
        f"{name}, rate {rate:g}",
        run,
        hits=at_least(bar),
    )
    for name, run, rate, bar in (
        *(("released model, Adam", RELEASED_ADAM, rate, 1.4) for rate in RATES),
        *(("released model, SGD", RELEASED_SGD, rate, 1.4) for rate in (0.01, 0.03)),
        ("Adam", ATTENTION_RELEASED, TEXT_RATE, 1.4),
        ("Adam, masks are keys", ATTENTION, TEXT_RATE, 1.4),
        ("SGD", ATTENTION_SGD, 20.0, 1.4),
        ("blocks of the theorem, squared", BLOCK_SQ, FROZEN_RATE, 2.0),
    )
}
_FROM_ONE = "attention to other words of the topic over that to words of other topics, distance from 1"
SHORT = _one(
    "short",
    _FROM_ONE,
    SHARE,
    AVERAGES,
    "SGD, rate 0.03, few steps",
    ATTENTION_SGD_SHORT,
    hits=below(0.02),
    learned=False,
)
FAILED = _one(  # "similar averages": a tenth
    "failed",
    _FROM_ONE,
    SHARE,
    AVERAGES,
    "released model, SGD, rate 0.003",
    RELEASED_SGD,
    hits=below(0.1),
    learned=False,
)
CAPTIONED = {name: (run, rate) for name, (run, rate, _) in ROWS.items()} | {
    "one-hot embeddings, Adam, rate 0.01, masks are keys": (ATTENTION, TEXT_RATE)
}
CAPTION = {
    name: _one(
        _slug("caption", run, rate),
        "attention to the same word less that to other words of its topic",
        MEDIAN,
        AVERAGES,
        name,
        run,
    )
    for name, (run, rate) in CAPTIONED.items()
}
SHIFTED = {
    (kind, name): _one(
        _slug("shifted", kind, run, rate),
        f"raw attention to {words} with labels four ids too far",
        MEDIAN,
        AVERAGES,
        name,
        run,
    )
    for name, (run, rate, _) in ROWS.items()
    for kind, words in KINDS.items()
}
RIGHT = {
    name: _one(
        _slug("right", run, rate),
        f"raw attention to {KINDS['diff_topic']} with right labels",
        MEDIAN,
        AVERAGES,
        name,
        run,
    )
    for name, (run, rate, _) in ROWS.items()
}
DIAGONALS = {
    "5 times identity, cross-entropy": DIAGONAL_5,
    "10 times identity, cross-entropy": DIAGONAL_10,
    "10 times identity, masks no keys": DIAGONAL_10_RELEASED,
    "diagonal of the theorem, squared": DIAGONAL_SQ,
}
VISIBLE = {  # models with a visible diagonal
    "trained values, squared": (JOINT_LONG, FROZEN_RATE),
    "trained values, squared, rate 0.01": (JOINT_LONG, 0.01),
}
ORDERS = {  # what is measured of the order of Table 2.2: attention to the one less that to the other
    "same word first": ("same_word", "diff_topic"),
    "own topic last": ("diff_topic", "same_topic_diff_word"),
}
POOLED = {
    norm: _one(
        f"pooled-{norm}",
        "mean attention over all pairs, distance from what lengths fix",
        SHARE,
        AVERAGES,
        name,
        ATTENTION_RELEASED,
        ATTENTION,
        ATTENTION_SGD,
        ATTENTION_SGD_SHORT,
        RELEASED_ADAM,
        RELEASED_SGD,
        *DIAGONALS.values(),
        BLOCK_SQ,
        JOINT_LONG,
        hits=at_most(1e-6),
        learned=False,
    )
    for norm, name in (("raw", "raw weights"), ("norm100", "weights times lengths"))
}
ORDER = {
    (order, run, rate): _one(
        _slug(order, run, rate),
        f"attention to {KINDS[first]} less that to {KINDS[second]}",
        SHARE,
        AVERAGES,
        name,
        run,
        hits=above(0.0),
    )
    for name, (run, rate) in ({name: (run, FROZEN_RATE) for name, run in DIAGONALS.items()} | VISIBLE).items()
    for order, (first, second) in ORDERS.items()
}
SIZES = {
    (kind, run): _one(_slug("size", kind, run), f"attention to {words}", MEDIAN, AVERAGES, name, run)
    for name, run in DIAGONALS.items()
    for kind, words in KINDS.items()
}


# --- E6: stages -------------------------------------------------------------------------------------------

SETTINGS: dict[str, Trained] = {
    "A": (STAGES_A, 0.003),
    "B": (STAGES_B, 0.001),
    "C": (STAGES_C, 5.0),
    "D": (STAGES_C, 3.0),
}
CONTROL: Trained = (STAGES_N, 0.01)
# Of training itself: whether a model got anywhere does not matter.
_BEHIND = "share of their growth that values have behind them where keys have a tenth of theirs"
BEHIND = {
    (run, rate): _one(
        _slug("behind", run, rate), _BEHIND, SHARE, STAGES, f"setting {name}", run, hits=at_least(0.8), learned=False
    )
    for name, (run, rate) in SETTINGS.items()
} | {
    CONTROL: _one(
        "behind-control", _BEHIND, SHARE, STAGES, "common settings", STAGES_N, hits=below(0.35), learned=False
    )
}
AT_400 = {
    "k_frac_400": _one(
        "keys-400",
        "norm of keys at step 400 over their largest",
        SHARE,
        STAGES,
        "setting A",
        STAGES_A,
        hits=at_most(0.1),
        learned=False,
    ),
    "v_frac_400": _one(
        "values-400",
        "norm of values at step 400 over their largest",
        SHARE,
        STAGES,
        "setting A",
        STAGES_A,
        hits=at_least(0.75),
        learned=False,
    ),
}


# --- E8 and E9: stand-ins for natural language ------------------------------------------------------------


class Kin(NamedTuple):
    """What is compared of same-topic and different-topic pairs of words, each word in one topic."""

    run: str
    model: str
    corpus: str
    phi: str
    threshold: float
    measure: str
    what: str  # ratio or difference


class Pairs(NamedTuple):
    """Other pairs of words that same-topic pairs are compared with, each word in several topics."""

    run: str
    corpus: str
    phi: str
    threshold: float
    group: str


DEBIASED, RAW, OUTPUT, TABLE = ("attention, debiased", "attention, raw", "cosine, layer output", "cosine, word table")
SAID = {
    DEBIASED: "debiased attention",
    RAW: "raw attention",
    OUTPUT: "cosine of embedding outputs",
    TABLE: "cosine of word vectors",
}
TOPICS = {"true": "true topics", "lda": "fitted topics"}
STANDINS = {OVERLAPPING: "overlapping topics", REFERENCE: "language reference"}
_CALLED = {
    "NLM-0": "untrained encoders",
    "NLM-1": "one layer, one-hot",
    "NLM-2": "one layer, embedded",
    "NLM-3": "small encoders",
}
_RELATION = {
    "ratio": "same-topic over different-topic {}",
    "difference": "{} of same-topic pairs less that of pairs of two topics",
}


def _kin(kin: Kin) -> Comparison:
    measure = _RELATION[kin.what].format(SAID[kin.measure])
    arm = f"{_CALLED[kin.model]}, {STANDINS[kin.corpus]}, {TOPICS[kin.phi]}, threshold {kin.threshold:g}"
    return _one(_slug(*kin), measure, MEDIAN, LANGUAGE, arm, kin.run, learned=kin.model != "NLM-0")


CORPORA = ((ENCODER, OVERLAPPING, "true"), (ENCODER, OVERLAPPING, "lda"), (ENCODER_ENGLISH, REFERENCE, "lda"))
KINSHIP = {
    kin: _kin(kin)
    for threshold in THRESHOLDS
    for kin in (
        *(Kin(ENCODER, "NLM-0", OVERLAPPING, "true", threshold, own, "ratio") for own in (DEBIASED, RAW, OUTPUT)),
        Kin(READER_EMBEDDED, "NLM-2", OVERLAPPING, "true", threshold, TABLE, "difference"),
        Kin(ENCODER, "NLM-3", OVERLAPPING, "true", threshold, OUTPUT, "difference"),
        Kin(ENCODER, "NLM-3", OVERLAPPING, "true", threshold, OUTPUT, "ratio"),
        Kin(READER_ONE_HOT, "NLM-1", OVERLAPPING, "true", threshold, DEBIASED, "ratio"),
        Kin(READER_EMBEDDED, "NLM-2", OVERLAPPING, "true", threshold, DEBIASED, "ratio"),
        *(Kin(run, "NLM-3", corpus, phi, threshold, DEBIASED, "ratio") for run, corpus, phi in CORPORA),
    )
}
GROUPS = {
    "top_cooccur": "as many of the most frequent companions as one topic has pairs",
    "top_unrelated": "those of these companions that share no topic",
}
COMPANIONS = {
    pairs: _one(
        _slug(*pairs),
        f"mean cosine of same-topic pairs less that of {GROUPS[pairs.group]}",
        MEDIAN,
        LANGUAGE,
        f"small encoders, {STANDINS[pairs.corpus]}, {TOPICS[pairs.phi]}, threshold {pairs.threshold:g}",
        pairs.run,
    )
    for threshold in THRESHOLDS
    for run, corpus, phi in CORPORA
    for group in GROUPS
    for pairs in (Pairs(run, corpus, phi, threshold, group),)
}
_LAYERS = f"{_BEHIND}, lowest of the layers"
ONSET = {
    LAYERS: _one("layers-behind", _LAYERS, SHARE, LANGUAGE, "", LAYERS, hits=at_least(0.35), learned=False),
    LAYERS_FAST: _one(
        "layers-behind-control",
        _LAYERS,
        SHARE,
        LANGUAGE,
        "ten times the rate",
        LAYERS_FAST,
        hits=below(0.35),
        learned=False,
    ),
}
TURNING = _one(
    "layers-turning",
    "cosine distance that values turn in the ten steps before step 40 less that before step 200, lowest of the layers",
    SHARE,
    LANGUAGE,
    "",
    LAYERS,
    hits=above(0.0),
    learned=False,
)


# --- E8 on encoders that were trained elsewhere -----------------------------------------------------------

# One model each: what is left out to see how far chance reaches are topics. An encoder stands where a run would, so
# that nothing is measured of one that the parameters do not name.
ELSEWHERE, RANDOM = "pretrained", "pretrained, before training"
ASSIGNED = {"one": "one topic per word", "multi": "several topics per word"}


class Elsewhere(NamedTuple):
    """A quotient of same-topic and different-topic pairs of an encoder."""

    encoder: str
    model: str
    assign: str
    threshold: float
    measure: str


def _elsewhere(key: str, measure: str, arm: str) -> Comparison:
    arms = (Arm(arm, elsewhere=True),)
    return DECLARED(Comparison(key, measure, OWN, PRETRAINED, arms, unit="topic", learned=False))


QUOTIENTS = {
    own: _elsewhere(
        _slug(*own),
        f"same-topic over different-topic {SAID[own.measure]}, {ASSIGNED[own.assign]}",
        f"{own.encoder}{', random weights' if own.model == RANDOM else ''}, threshold {own.threshold:g}",
    )
    for encoder in ENCODERS
    for threshold in THRESHOLDS
    for model, assign, measure in (
        (ELSEWHERE, "one", TABLE),
        (ELSEWHERE, "one", OUTPUT),
        (ELSEWHERE, "one", DEBIASED),
        (ELSEWHERE, "multi", DEBIASED),
        (RANDOM, "one", OUTPUT),
        (RANDOM, "one", DEBIASED),
    )
    for own in (Elsewhere(encoder, model, assign, threshold, measure),)
}
FALLS = {
    (encoder, assign, low, high): _elsewhere(
        _slug(encoder, "falls", assign, high),
        f"same-topic over different-topic debiased attention less that at the next smaller threshold, {words}",
        f"{encoder}, thresholds {low:g} and {high:g}",
    )
    for encoder in ENCODERS
    for assign, words in ASSIGNED.items()
    for low, high in pairwise(THRESHOLDS)
}
OVER_COMPANIONS = {
    (encoder, what, threshold): _elsewhere(
        _slug(encoder, "companions", what, threshold),
        f"{what} of same-topic pairs less that of {GROUPS['top_cooccur']}",
        f"{encoder}, threshold {threshold:g}",
    )
    for encoder in ENCODERS
    for what in ("cosine", "attention")
    for threshold in THRESHOLDS
}
