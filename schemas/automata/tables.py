"""Result tables of the automata study (chapter section 8).

A *run* is an ensemble of params/automata/; ``replica`` numbers its models at the learning rate that validation
chose. Accuracies are shares of tokens unless said otherwise.
"""

from __future__ import annotations

from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.api.polars.types import PolarsData

from schemas.automata.tasks import ALL_TASKS, OBSERVED, TASKS
from schemas.comparisons import Comparisons
from schemas.results import Result

ARMS = ["gpt", "shift", "none", "linear", "scratchpad", "recency", "lstm"]
SHARE: dict[str, Any] = {"ge": 0, "le": 1}


class Automata(Result):
    """AUT-*: what each automaton is, computed from its table."""

    automaton: pl.String = pa.Field(unique=True)
    shown: pl.String
    n_states: pl.Int16 = pa.Field(ge=2)
    n_symbols: pl.Int16 = pa.Field(ge=1)
    q0: pl.Int16 = pa.Field(ge=0)
    semigroup_size: pl.Int32 = pa.Field(ge=1, nullable=True, description="null above 2000 elements")
    is_group: pl.Boolean
    solvable: pl.Boolean = pa.Field(description="whether all groups of its cascade are solvable")
    aperiodic: pl.Boolean = pa.Field(nullable=True)
    composition_factors: pl.String = pa.Field(description="of its group; empty for automata that are none")
    period: pl.Int8 = pa.Field(ge=1)


class Transitions(Result):
    """Every move of every automaton."""

    automaton: pl.String
    state: pl.Int16 = pa.Field(ge=0)
    symbol: pl.Int16 = pa.Field(ge=0)
    next_state: pl.Int16 = pa.Field(ge=0)
    state_shown: pl.String
    symbol_shown: pl.String

    class Config:
        """One row per move."""

        unique = ["automaton", "state", "symbol"]


class Observations(Result):
    """AUT-OBS: what is seen of each state."""

    task: pl.String = pa.Field(isin=[*OBSERVED])
    state: pl.Int16 = pa.Field(ge=0)
    state_shown: pl.String
    observation: pl.Int16 = pa.Field(ge=0)

    class Config:
        """One row per task and state."""

        unique = ["task", "state"]


class Baselines(Result):
    """Accuracy without reading the input: the best label at each position, and the best label at all positions."""

    task: pl.String = pa.Field(isin=[*ALL_TASKS])
    name: pl.String = pa.Field(description="the task in words")
    length: pl.Int16 = pa.Field(ge=1)
    constant: pl.Float64 = pa.Field(**SHARE)
    majority: pl.Float64 = pa.Field(**SHARE)

    class Config:
        """One row per task and length."""

        unique = ["task", "length"]

    @pa.dataframe_check(name="one label at each position is no worse than one at all")
    def ordered_baselines(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("majority") <= pl.col("constant") + 1e-12)


class Cascades(Result):
    """The levels of the hole cascade of an automaton (Theorem 15)."""

    automaton: pl.String
    level: pl.Int8 = pa.Field(ge=1)
    states: pl.Int16 = pa.Field(ge=2)
    start: pl.Int16 = pa.Field(ge=0)
    dependencies: pl.Int32 = pa.Field(ge=1, description="pairs of states above and symbol that occur")
    permutations: pl.Int32 = pa.Field(ge=1, description="different bijections among the moves")
    resets: pl.Int16 = pa.Field(ge=0, description="states that a constant move sets")
    group_order: pl.Int32 = pa.Field(ge=1)
    solvable: pl.Boolean

    class Config:
        """One row per level."""

        unique = ["automaton", "level"]


class GridTrace(Result):
    """FIG-GRIDALG: Algorithm 1 on one input, position by position, behind its padding."""

    states: pl.Int8 = pa.Field(ge=2)
    position: pl.Int16 = pa.Field(ge=0)
    move: pl.Int8 = pa.Field(ge=-1, le=1, nullable=True)
    prefix_sum: pl.Int16
    state: pl.Int8 = pa.Field(ge=0, nullable=True, description="null in the padding")
    mark: pl.String = pa.Field(isin=["", "t_uniq", "t_final"])

    class Config:
        """One row per position."""

        unique = ["position"]


class _Arm(Result):
    """What a row is about."""

    run: pl.String
    task: pl.String = pa.Field(isin=[*ALL_TASKS])
    arm: pl.String = pa.Field(isin=ARMS)
    depth: pl.Int8 = pa.Field(ge=1, nullable=True, description="layers; null for an LSTM")


class Runs(_Arm):
    """Every model: how it was trained, and how well it does on test sequences of its training length."""

    experiment: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    width: pl.Int16 = pa.Field(ge=1)
    heads: pl.Int8 = pa.Field(ge=1, nullable=True)
    ffn: pl.Int16 = pa.Field(ge=1, nullable=True)
    length: pl.Int16 = pa.Field(ge=1)
    batch: pl.Int32 = pa.Field(ge=1)
    steps: pl.Int32 = pa.Field(ge=1)
    sequences: pl.Int64 = pa.Field(ge=1, description="training sequences")
    lr: pl.Float64 = pa.Field(gt=0)
    at_edge: pl.Boolean = pa.Field(description="whether the chosen rate is the first or last of several")
    revealed: pl.Float64 = pa.Field(gt=0, le=1)
    shift: pl.Int16 = pa.Field(ge=0)
    dropout: pl.Float64 = pa.Field(ge=0, lt=1)
    diverged: pl.Int16 = pa.Field(ge=0, description="models of the run, at this rate, that are left out")
    final_loss: pl.Float64 = pa.Field(ge=0)
    acc_validation: pl.Float64 = pa.Field(**SHARE)
    acc_token: pl.Float64 = pa.Field(**SHARE)
    acc_seq: pl.Float64 = pa.Field(description="share of whole sequences", **SHARE)
    acc_average: pl.Float64 = pa.Field(
        description="token accuracy of moving averages of weights, decay 0.9", nullable=True, **SHARE
    )

    class Config:
        """One row per model."""

        unique = ["run", "replica"]


class DepthGrid(Result):
    """EXP-DEPTH: accuracy of the models of each task and depth, beside what is published (per cent)."""

    task: pl.String = pa.Field(isin=[*TASKS])
    depth: pl.Int8 = pa.Field(ge=1)
    n: pl.Int16 = pa.Field(ge=1)
    acc_max: pl.Float64 = pa.Field(**SHARE)
    acc_median: pl.Float64 = pa.Field(**SHARE)
    acc_iqr: pl.Float64 = pa.Field(**SHARE)
    solved: pl.Float64 = pa.Field(description="share of models that solve the task", **SHARE)
    constant: pl.Float64 = pa.Field(**SHARE)
    published_max: pl.Float64 = pa.Field(ge=0, le=100, nullable=True)
    published_median: pl.Float64 = pa.Field(ge=0, le=100, nullable=True)

    class Config:
        """One row per task and depth."""

        unique = ["task", "depth"]


class MinDepth(Result):
    """The first depth at which some model solves a task."""

    task: pl.String = pa.Field(isin=[*TASKS], unique=True)
    name: pl.String = pa.Field(description="the task in words")
    threshold: pl.Float64 = pa.Field(**SHARE)
    depth: pl.Int8 = pa.Field(ge=1, nullable=True, description="null: none of those trained")
    deepest: pl.Int8 = pa.Field(ge=1, description="that was trained")
    published_depth: pl.Int8 = pa.Field(ge=1)
    is_upper_bound: pl.Boolean = pa.Field(description="a shallower published cell is not legible")


class PublishedCells(Result):
    """Figures 3.15 (maximum) and 3.16 (median), per cent."""

    figure: pl.String = pa.Field(isin=["3.15", "3.16"])
    task: pl.String = pa.Field(isin=[*TASKS])
    depth: pl.Int8 = pa.Field(ge=1, le=16)
    value: pl.Float64 = pa.Field(ge=0, le=100, nullable=True)
    legible: pl.Boolean

    class Config:
        """One row per figure, task and depth."""

        unique = ["figure", "task", "depth"]


class Curves(_Arm):
    """EXP-INSTAB: accuracy on validation sequences while models train."""

    replica: pl.Int32 = pa.Field(ge=0)
    step: pl.Int32 = pa.Field(ge=1)
    train_loss: pl.Float64 = pa.Field(ge=0, nullable=True)
    accuracy: pl.Float64 = pa.Field(nullable=True, **SHARE)

    class Config:
        """One row per model and point."""

        unique = ["run", "replica", "step"]


class EvalNoise(Result):
    """EXP-EVALSD: accuracy of one model on several evaluation sets of one size."""

    run: pl.String
    replica: pl.Int32 = pa.Field(ge=0)
    sample: pl.Int8 = pa.Field(ge=0)
    sequences: pl.Int32 = pa.Field(ge=1)
    accuracy: pl.Float64 = pa.Field(**SHARE)

    class Config:
        """One row per evaluation set."""

        unique = ["run", "replica", "sample"]


class Stabilisers(Result):
    """EXP-STAB: accuracy by dropout, and of moving averages of weights."""

    task: pl.String = pa.Field(isin=[*TASKS])
    depth: pl.Int8 = pa.Field(ge=1)
    dropout: pl.Float64 = pa.Field(ge=0, lt=1)
    average: pl.Float64 = pa.Field(ge=0, lt=1, description="decay of the moving average; 0: the weights themselves")
    replica: pl.Int32 = pa.Field(ge=0)
    accuracy: pl.Float64 = pa.Field(**SHARE)
    learned: pl.Boolean = pa.Field(description="whether the model is right on sequences like those of training")

    class Config:
        """One row per model and average."""

        unique = ["task", "depth", "dropout", "average", "replica"]


class Indirect(Result):
    """EXP-INDIR: accuracy where states are seen through a map."""

    task: pl.String = pa.Field(isin=[*OBSERVED])
    arm: pl.String = pa.Field(isin=ARMS)
    n: pl.Int16 = pa.Field(ge=1)
    acc_max: pl.Float64 = pa.Field(**SHARE)
    acc_median: pl.Float64 = pa.Field(**SHARE)
    constant: pl.Float64 = pa.Field(**SHARE)
    majority: pl.Float64 = pa.Field(**SHARE)
    published: pl.Float64 = pa.Field(ge=0, le=100, description="maximum, per cent")

    class Config:
        """One row per task and arm."""

        unique = ["task", "arm"]


class Incomplete(Result):
    """EXP-INCOMP: accuracy by the probability with which a label is shown."""

    task: pl.String = pa.Field(isin=[*ALL_TASKS])
    arm: pl.String = pa.Field(isin=ARMS)
    revealed: pl.Float64 = pa.Field(gt=0, le=1)
    replica: pl.Int32 = pa.Field(ge=0)
    accuracy: pl.Float64 = pa.Field(**SHARE)
    learned: pl.Boolean = pa.Field(description="whether the model is right on sequences like those of training")

    class Config:
        """One row per model."""

        unique = ["task", "arm", "revealed", "replica"]


class _Probed(_Arm):
    """Accuracy of a model on one set of test sequences."""

    replica: pl.Int32 = pa.Field(ge=0)
    accuracy: pl.Float64 = pa.Field(**SHARE)
    sequences: pl.Int32 = pa.Field(ge=1)
    learned: pl.Boolean = pa.Field(description="whether the model is right on sequences like those of training")


class _Shifted(_Probed):
    """That on a set with another law or length than in training."""

    seen: pl.Float64 = pa.Field(description="share of sequences that are training ones, or how such begin", **SHARE)


class OodP(_Shifted):
    """EXP-OODP: by the probability of a one."""

    p1: pl.Float64 = pa.Field(**SHARE)

    class Config:
        """One row per model and probability."""

        unique = ["run", "replica", "p1"]


class OodCount(_Shifted):
    """EXP-OODC: by the exact number of ones."""

    ones: pl.Int16 = pa.Field(ge=0)

    class Config:
        """One row per model and count."""

        unique = ["run", "replica", "ones"]


class LengthGen(_Shifted):
    """EXP-LEN: by the length of the test sequences."""

    length: pl.Int16 = pa.Field(ge=1)
    trained: pl.Int16 = pa.Field(ge=1, description="length in training")

    class Config:
        """One row per model and length."""

        unique = ["run", "replica", "length"]


class Coverage(Result):
    """EXP-COVER: accuracy of a model that knows the parity of a count if training showed it often enough."""

    variant: pl.String = pa.Field(isin=["position and count", "count alone"])
    sequences: pl.Int64 = pa.Field(ge=1, description="N")
    seen: pl.Int32 = pa.Field(ge=1, description="how often a count must have occurred, m")
    p1: pl.Float64 = pa.Field(**SHARE)
    predicted: pl.Float64 = pa.Field(**SHARE)

    class Config:
        """One row per variant, m and probability."""

        unique = ["variant", "seen", "p1"]


class Positions(_Probed):
    """EXP-PE: accuracy at the training length and at twice that."""

    position: pl.String = pa.Field(isin=["sin", "linear"])
    length: pl.Int16 = pa.Field(ge=1)
    trained: pl.Int16 = pa.Field(ge=1)

    class Config:
        """One row per model and length."""

        unique = ["run", "replica", "length"]


class AttnMetrics(Result):
    """EXP-ATTN: what a head looks at, mean over sequences and positions t >= 8 (fewer at small lengths)."""

    run: pl.String
    trained: pl.Boolean = pa.Field(description="false: a control of the same shape, as training starts from")
    replica: pl.Int32 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1)
    head: pl.Int8 = pa.Field(ge=1)
    last_layer: pl.Boolean
    uniformity: pl.Float64 = pa.Field(description="entropy over log t: 1 is flat", **SHARE)
    lift_0: pl.Float64 = pa.Field(ge=0, description="weight on visits to state 0 over their share of positions")
    lift_S: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="the same for the other end; null if nothing gets there"
    )
    blind_lift_0: pl.Float64 = pa.Field(
        ge=0,
        nullable=True,
        description="weight on visits to state 0 over that of the same head blind to states: its mean weight by "
        "place and symbol; null if nothing gets there",
    )
    blind_lift_S: pl.Float64 = pa.Field(ge=0, nullable=True, description="the same for the other end")
    argmax_last0: pl.Float64 = pa.Field(nullable=True, **SHARE)
    argmax_lastS: pl.Float64 = pa.Field(nullable=True, **SHARE)
    pre_reset_mass: pl.Float64 = pa.Field(description="weight before the last visit to a boundary", **SHARE)
    pre_reset_blind: pl.Float64 = pa.Field(description="that of the same head blind to states", **SHARE)
    pre_reset_uniform: pl.Float64 = pa.Field(description="that of uniform attention", **SHARE)
    accuracy: pl.Float64 = pa.Field(description="of the model", **SHARE)
    learned: pl.Boolean = pa.Field(description="whether the model is right on sequences like those of training")

    class Config:
        """One row per head."""

        unique = ["run", "trained", "replica", "layer", "head"]


class AttnMaps(Result):
    """Attention of the heads of one model on two sequences, with the states."""

    run: pl.String
    sequence: pl.Int8 = pa.Field(ge=0)
    layer: pl.Int8 = pa.Field(ge=1)
    head: pl.Int8 = pa.Field(ge=1)
    query: pl.Int16 = pa.Field(ge=0)
    key: pl.Int16 = pa.Field(ge=0)
    weight: pl.Float64 = pa.Field(**SHARE)
    state: pl.Int8 = pa.Field(ge=0, description="at the key's position")

    class Config:
        """One row per cell on or below the diagonal."""

        unique = ["sequence", "layer", "head", "query", "key"]

    @pa.dataframe_check(name="weights of a query add up to 1")
    def rows_add_up(cls, data: PolarsData) -> pl.LazyFrame:
        total = pl.col("weight").sum().over("sequence", "layer", "head", "query")
        return data.lazyframe.select((total - 1).abs() < 1e-4)


class Explorer(Result):
    """Weights of what the page's explorer runs: a tiny trained model and an exact network for each automaton."""

    automaton: pl.String
    kind: pl.String = pa.Field(isin=["trained", "exact"])
    part: pl.String = pa.Field(description="name of a weight or a size")
    shape: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int32})
    values: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="row by row")

    class Config:
        """One row per part."""

        unique = ["automaton", "kind", "part"]


SCHEMAS = {
    "automata": Automata,
    "transitions": Transitions,
    "observations": Observations,
    "baselines": Baselines,
    "cascades": Cascades,
    "grid_trace": GridTrace,
    "runs": Runs,
    "depth_grid": DepthGrid,
    "min_depth": MinDepth,
    "published_cells": PublishedCells,
    "curves": Curves,
    "eval_noise": EvalNoise,
    "stabilisers": Stabilisers,
    "indirect": Indirect,
    "incomplete": Incomplete,
    "ood_p": OodP,
    "ood_count": OodCount,
    "length_gen": LengthGen,
    "coverage": Coverage,
    "positions": Positions,
    "attn_metrics": AttnMetrics,
    "attn_maps": AttnMaps,
    "explorer": Explorer,
    "comparisons": Comparisons,
}
