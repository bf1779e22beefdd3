"""What params/verifier/ may say of theory checks and experiments in exact numbers."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.params import ExperimentEntry, Positive, Strict, TheoryEntry

Lengths = Annotated[list[Annotated[int, Field(ge=2, le=10)]], Field(min_length=2, description="D")]
Errors = Annotated[list[Annotated[float, Field(ge=0, le=10)]], Field(min_length=1, description="eps")]
Trials = Annotated[int, Field(ge=100)]


class Shape(Strict):
    """A tree of prefixes."""

    actions: Annotated[int, Field(ge=2, le=4)]
    horizon: Annotated[int, Field(ge=2, le=10)]

    @model_validator(mode="after")
    def _has_a_matrix(self) -> Self:
        leaves = self.actions**self.horizon
        if leaves > 2048:
            raise ValueError(f"a tree of {leaves} leaves is too large for a matrix of its nodes, 2048 at most")
        return self


Shapes = Annotated[list[Shape], Field(min_length=1)]


class TokenwiseCheck(TheoryEntry):
    """Chapter 5.1 to 5.5: hidden parity, knapsack, powers, the bias of tokenwise rejection, the coin."""

    module: Literal["tokenwise"]
    lengths: Lengths
    knapsacks: Annotated[int, Field(ge=2, description="random knapsacks for the dynamic program")]
    items: Annotated[int, Field(ge=2, le=12, description="of a superincreasing knapsack")]
    sequences: Annotated[int, Field(ge=1, description="superincreasing knapsacks, each with every c")]


class WalkCheck(TheoryEntry):
    """Chapter 5.6 to 5.10: Algorithm 2."""

    module: Literal["walk"]
    shapes: Shapes
    errors: Errors
    seeds: Positive = Field(description="random trees of each shape and error")


class PrintedCheck(TheoryEntry):
    """Claim 32: whether the printed tables agree with each other, with their captions and with the text."""

    module: Literal["printed"]


class QueriesExperiment(ExperimentEntry):
    """Calls with and without a verifier, simulated and exact."""

    module: Literal["queries"]
    lengths: Lengths = Field(description="D of Propositions 3.1.1, 3.1.2")
    hidden: Annotated[list[Annotated[int, Field(ge=2, le=10)]], Field(min_length=2)] = Field(
        description="D of Theorem 3.1.1"
    )
    trials: Trials
    guard: Annotated[int, Field(ge=20, description="calls after which tokenwise rejection gives up")]
    items: Annotated[list[Annotated[int, Field(ge=3, le=10)]], Field(min_length=1)] = Field(
        description="D of knapsacks"
    )
    coin_length: Positive
    coin_error: Annotated[float, Field(gt=0, lt=1)]
    quotas: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    strides: Annotated[list[Positive], Field(min_length=2)]
    coins: Trials = Field(description="trials of Algorithm 1 on the coin")
    blocks: Annotated[list[Positive], Field(min_length=1, description="tokens of a block")]
    candidates: Annotated[list[Positive], Field(min_length=1, description="of a block")]

    @model_validator(mode="after")
    def _blocks_fill(self) -> Self:
        bad = [block for block in self.blocks if self.coin_length % block]
        if bad:
            raise ValueError(f"blocks of {bad[0]} do not fill a string of coin_length {self.coin_length}")
        return self


class VgbExperiment(ExperimentEntry):
    """Algorithm 2 on trees that are enumerated."""

    module: Literal["vgb"]
    shapes: Shapes
    errors: Errors
    seeds: Positive
    tolerance: Annotated[float, Field(gt=0, lt=1, description="distance at which the walk counts as mixed")]
    most_steps: Positive = Field(description="after which a walk counts as not mixed")
    amplified: Annotated[list[Annotated[float, Field(gt=0, le=10)]], Field(min_length=1)] = Field(
        description="eps of errors that grow with H"
    )
    horizons: Annotated[list[Annotated[int, Field(ge=2, le=10)]], Field(min_length=3)] = Field(
        description="H whose leaves are enumerated"
    )
    long_horizons: Annotated[list[Annotated[int, Field(ge=11, le=1000)]], Field(min_length=2)] = Field(
        description="H of the family bias, by its recursion"
    )
    draws: Annotated[int, Field(ge=2, description="random trees of the family iid")]
    walks: Trials = Field(description="leaves of each output rule")
    steps: Positive = Field(description="T of Algorithm 2")


class PublishedExperiment(ExperimentEntry):
    """What the source prints."""

    module: Literal["published"]


Theory = TokenwiseCheck | WalkCheck | PrintedCheck
Experiment = QueriesExperiment | VgbExperiment | PublishedExperiment
