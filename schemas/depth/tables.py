"""Result tables of the depth study (chapter section 8).

A *run* is an ensemble of params/depth/: ``replicas`` models for each learning rate. A model is found by its run,
``lr`` and ``replica``; models of two rates with one ``replica`` start from the same weights. ``heads`` lists those of
each layer, as text: ``1, 1, 2``. Values that are not defined are null.
"""

from __future__ import annotations

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.comparisons import Comparisons
from schemas.results import Result

TASKS = ["sc", "ic_qa", "tm", "ic_tm", "nested"]
EXPERIMENTS = ["exp-1", "exp-2", "exp-3", "exp-5", "exp-6", "control", "ablation"]
SPLITS = ["train", "fresh", "unseen_combination", "unseen_repetition", "unseen_token"]


class _Shape(Result):
    """What a run trains on which task; ``hops`` is 0 but for nested lookups."""

    run: pl.String
    experiment: pl.String = pa.Field(isin=EXPERIMENTS)
    task: pl.String = pa.Field(isin=TASKS)
    layers: pl.Int8 = pa.Field(ge=1)
    heads: pl.String = pa.Field(str_matches=r"^\d+(, \d+)*$")
    k: pl.Int8 = pa.Field(ge=0)
    l: pl.Int8 = pa.Field(ge=0)
    hops: pl.Int8 = pa.Field(ge=0)
    sequences: pl.Int32 = pa.Field(ge=1, description="distinct training sequences: N of sc")


class Examples(Result):
    """DEP-F1: sequences of each task with their labels."""

    task: pl.String = pa.Field(isin=TASKS)
    number: pl.Int8 = pa.Field(ge=0)
    dataset: pl.String
    tokens: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int16})
    text: pl.String = pa.Field(str_length={"min_value": 1}, description="questions A, B, ..., answers 1, 2, ...")
    label: pl.Int32 = pa.Field(ge=0)
    answer: pl.String = pa.Field(str_length={"min_value": 1}, description="the label in the same letters")
    explanation: pl.String = pa.Field(str_length={"min_value": 1})

    class Config:
        """One row per sequence."""

        unique = ["task", "number"]


class Runs(_Shape):
    """What was trained: one row per run and corpus."""

    dataset: pl.String
    d1: pl.Int16 = pa.Field(ge=1)
    d2: pl.Int16 = pa.Field(ge=0)
    length: pl.Int16 = pa.Field(ge=1, description="tokens of a sequence, n")
    outputs: pl.Int32 = pa.Field(ge=1, description="classes, C")
    width: pl.Int32 = pa.Field(ge=1, description="d'")
    weights: pl.Int32 = pa.Field(ge=1, description="of one model")
    init: pl.String = pa.Field(isin=["memorization", "construction", "random"])
    constructed: pl.String = pa.Field(description="patterns that the first layers start from")
    readout: pl.Float64 = pa.Field(nullable=True)
    later: pl.Float64 = pa.Field(nullable=True)
    optimizer: pl.String
    rates: pl.String = pa.Field(description="learning rates")
    trained: pl.String = pa.Field(isin=["all", "classifier"])
    attention: pl.String = pa.Field(isin=["relu", "softmax"])
    clip: pl.Float64 = pa.Field(ge=0)
    steps: pl.Int32 = pa.Field(ge=1)
    batch: pl.Int32 = pa.Field(ge=1)
    replicas: pl.Int32 = pa.Field(ge=1, description="of each learning rate, on this corpus")

    class Config:
        """One row per run and corpus."""

        unique = ["run", "hops", "sequences"]


class Curves(_Shape):
    """Accuracy and loss against steps: in training means since the point before, else on held-out sequences."""

    lr: pl.Float64 = pa.Field(gt=0)
    replica: pl.Int32 = pa.Field(ge=0)
    chosen: pl.Boolean = pa.Field(description="is this the best learning rate of its run by training loss?")
    split: pl.String = pa.Field(isin=SPLITS)
    step: pl.Int32 = pa.Field(ge=1)
    loss: pl.Float64 = pa.Field(ge=0, nullable=True)
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="over all outputs")
    context: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="among the context's answers")

    class Config:
        """One row per model, split and step."""

        unique = ["run", "lr", "replica", "split", "step"]


class Summary(_Shape):
    """How training ended: one row per model. Judged on the split of its task."""

    lr: pl.Float64 = pa.Field(gt=0)
    replica: pl.Int32 = pa.Field(ge=0)
    chosen: pl.Boolean
    learned: pl.Boolean = pa.Field(
        nullable=True, description="did it solve its task, on the judged split? null in older sets"
    )
    diverged_at: pl.Int32 = pa.Field(ge=0, nullable=True)
    training_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="at the last point of the curve")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    context: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    accuracy_unseen_repetition: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="of AAA")
    accuracy_unseen_token: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    steps_to_95: pl.Int32 = pa.Field(ge=1, nullable=True, description="first point at that accuracy; null if never")
    steps: pl.Int32 = pa.Field(ge=1, description="of training")
    chance: pl.Float64 = pa.Field(gt=0, le=1, description="1 / classes, or 1 / answer tokens")
    chance_context: pl.Float64 = pa.Field(gt=0, le=1, nullable=True, description="1 / answers of the context")
    heads_total: pl.Int32 = pa.Field(ge=1)
    heads_dead: pl.Int32 = pa.Field(
        ge=0, description="whose pattern is 0 at every key and query, of the last layer at its one query"
    )
    zero_share: pl.Float64 = pa.Field(ge=0, le=1, description="of the last layer's scores that are 0")

    class Config:
        """One row per model."""

        unique = ["run", "lr", "replica"]

    @pa.dataframe_check(name="no more heads are dead than there are")
    def dead_heads(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("heads_dead") <= pl.col("heads_total"))


class LearningRates(_Shape):
    """The rule for every depth: the rate whose models have the lowest median training loss at the end; a model that
    diverged counts as infinite."""

    lr: pl.Float64 = pa.Field(gt=0)
    n: pl.Int32 = pa.Field(ge=1)
    n_diverged: pl.Int32 = pa.Field(ge=0)
    training_loss: pl.Float64 = pa.Field(ge=0, nullable=True, description="median; null if half diverged")
    accuracy: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="median, on the judged split")
    chosen: pl.Boolean
    place: pl.String = pa.Field(
        isin=["", "inside", "lowest", "highest", "only"], description="of the chosen rate in its grid; else empty"
    )

    class Config:
        """One row per run, corpus and rate."""

        unique = ["run", "hops", "sequences", "lr"]


class Accuracy(_Shape):
    """Final accuracy at the chosen rate: medians over models, with their intervals. A model that diverged has its last
    accuracy nowhere: it is left out and counted."""

    lr: pl.Float64 = pa.Field(gt=0)
    split: pl.String = pa.Field(isin=SPLITS)
    among: pl.String = pa.Field(isin=["outputs", "context"], description="what the largest score is taken of")
    value: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="median")
    lo: pl.Float64 = pa.Field(nullable=True)
    hi: pl.Float64 = pa.Field(nullable=True)
    interval: pl.String = pa.Field(nullable=True, description="its kind; null in older sets: a bootstrap")
    confidence: pl.Float64 = pa.Field(gt=0, lt=1)
    least: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    most: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    n: pl.Int32 = pa.Field(ge=0)
    n_diverged: pl.Int32 = pa.Field(ge=0)
    distinct: pl.Int32 = pa.Field(ge=1, description="different sequences of the split")
    solved: pl.Float64 = pa.Field(gt=0, le=1, description="accuracy from which a model counts as one that learned")
    n_solved: pl.Int32 = pa.Field(ge=0)
    share: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="n_solved of n and n_diverged")
    share_lo: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="exact binomial interval")
    share_hi: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    chance: pl.Float64 = pa.Field(gt=0, le=1)

    class Config:
        """One row per run, corpus, split and choice of outputs."""

        unique = ["run", "hops", "sequences", "split", "among"]


class Findings(Result):
    """What was found beside comparisons, in sentences computed from the tables of the experiment."""

    topic: pl.String
    leads: pl.Boolean = pa.Field(description="is it among what the page begins with?")
    finding: pl.String = pa.Field(str_length={"min_value": 1})

    class Config:
        """One sentence for each topic."""

        unique = ["topic"]


class Agreement(_Shape):
    """DEP-A1 at the chosen rate: trained against constructed attention on test sequences.

    Of the last layer only the last query counts: nothing else of it is read. ``right_example``: share of the
    sequences where the query's largest key lies in the right pair or example. Keys of the query's own
    block hold its tokens as well, but no answer: without them, and (``right_example_all``) with them.
    """

    lr: pl.Float64 = pa.Field(gt=0)
    replica: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1)
    head: pl.Int8 = pa.Field(ge=0)
    last_layer: pl.Boolean
    cosine: pl.Float64 = pa.Field(
        ge=0, le=1 + 1e-9, nullable=True, description="mean over sequences; null if nothing is constructed here"
    )
    cosine_start: pl.Float64 = pa.Field(ge=0, le=1 + 1e-9, nullable=True, description="before training")
    right_example: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    right_example_all: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    n_sequences: pl.Int32 = pa.Field(ge=1)

    class Config:
        """One row per head."""

        unique = ["run", "lr", "replica", "layer", "head"]


class Attention(Result):
    """DEP-F3: attention on the probes, trained and constructed; of the last layer only the last query."""

    probe: pl.String = pa.Field(str_matches=r"^([A-Z]+=\d?)+$", description="questions A, B, ..., answers 1, 2, ...")
    run: pl.String
    source: pl.String = pa.Field(isin=["trained", "constructed"])
    replica: pl.Int32 = pa.Field(ge=0, nullable=True, description="null for the construction")
    learned: pl.Boolean = pa.Field(
        nullable=True, description="did the model solve its task? null for the construction and in older sets"
    )
    layer: pl.Int8 = pa.Field(ge=1)
    head: pl.Int8 = pa.Field(ge=0)
    query: pl.Int16 = pa.Field(ge=0)
    key: pl.Int16 = pa.Field(ge=0)
    query_token: pl.String
    key_token: pl.String
    weight: pl.Float64 = pa.Field(ge=0)

    class Config:
        """One row per entry of each map."""

        unique = ["probe", "source", "replica", "layer", "head", "query", "key"]


SCHEMAS: dict[str, type[pa.DataFrameModel]] = {
    "examples": Examples,
    "runs": Runs,
    "curves": Curves,
    "summary": Summary,
    "learning_rates": LearningRates,
    "accuracy": Accuracy,
    "comparisons": Comparisons,
    "agreement": Agreement,
    "findings": Findings,
    "attention": Attention,
}
