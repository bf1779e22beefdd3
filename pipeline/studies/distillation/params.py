"""What params/distillation.yaml may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.params import (
    DatasetEntry,
    ExperimentEntry,
    GridRunEntry,
    LabelsEntry,
    Positive,
    Probability,
    Strict,
    TheoryEntry,
)

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$")]
Temperature = Annotated[float, Field(ge=0, description="tau of the teacher; 0: its most likely class")]


class HeldOut(DatasetEntry):
    """Held-out strings of a parity task."""

    d: Annotated[int, Field(ge=2, le=1000, description="signs of a string")]
    k: Annotated[int, Field(ge=1, le=32, description="signs of a parity")]
    depth: Annotated[int, Field(ge=1, le=5, description="parities on the way to a class")]
    strings: Positive

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.k * (2**self.depth - 1) > self.d:
            raise ValueError(f"{2**self.depth - 1} parities of {self.k} signs do not fit into {self.d}")
        return self


class Checkpoint(Strict):
    """Which of a teacher's kept weights a student learns from."""

    rule: Literal["step", "reaches", "before", "correlation", "between"] = Field(
        description="step: after so many steps; reaches: the first with this accuracy; before: the last below this "
        "accuracy that lies ``gap`` kept ones before the first with accuracy ``of``; correlation: the largest "
        "separation of degree 1; between: the smallest separation of degree 1 among those that lie between its two "
        "largest peaks"
    )
    value: Annotated[float, Field(ge=0)] = 0.0
    of: Probability = 0.0
    gap: Annotated[int, Field(ge=0)] = 0


class Arm(Strict):
    """How a student is taught."""

    schedule: Literal["labels", "one_shot", "in_turn", "intervals", "equal_split", "share_split"]
    tau: Temperature = 0.0
    each: Annotated[int, Field(ge=0, description="student steps with a checkpoint: in_turn, intervals")] = 0
    checkpoints: list[Checkpoint] = Field([], description="those before the last one: intervals")
    kappa: Annotated[float, Field(ge=0, le=1, description="share of the teacher's steps: share_split")] = 0.0

    @model_validator(mode="after")
    def _own_settings(self) -> Self:
        needed = {"in_turn": {"each"}, "intervals": {"each", "checkpoints"}, "share_split": {"kappa"}}
        own = {name for name in ("each", "checkpoints", "kappa") if getattr(self, name)}
        if own != needed.get(self.schedule, set()):
            raise ValueError(
                f"schedule {self.schedule!r} needs {sorted(needed.get(self.schedule, set()))}, has {sorted(own)}"
            )
        return self


class Answers(LabelsEntry):
    """What a teacher's checkpoints answer to the strings that its students read."""

    d: Annotated[int, Field(ge=2, le=1000)]
    k: Annotated[int, Field(ge=1, le=32)]
    depth: Annotated[int, Field(ge=1, le=5)]
    strings: Positive = Field(description="held-out strings")
    stream: Annotated[str, Field(description="that of the run which learns from it")]
    replicas: Annotated[int, Field(ge=0)]
    side: Positive = Field(description="students of each arm that train side by side in a replica")
    steps: Positive
    batch: Positive
    correlated: Positive = Field(description="strings on which correlations are estimated")
    arms: dict[Name, Arm] = Field(min_length=1)


Dataset = HeldOut | Answers


class Parity(GridRunEntry):
    """Models that learn a parity: teachers, from labels, or students, from the dataset that names their arms."""

    role: Literal["teacher", "student"]
    side: Positive = Field(
        description="models that train side by side in a replica; of a student, for each arm"
    )
    warmup: Annotated[int, Field(ge=0)] = Field(description="steps in which the rate rises to its peak")
    snapshots_every: Annotated[int, Field(ge=0, description="steps between kept weights; 0: only the last")]
    width: Positive = Field(description="hidden units of an MLP; channels of a Transformer")
    layers: Positive | None = Field(None, description="of a Transformer")
    heads: Positive | None = Field(None, description="of a Transformer")
    head_width: Positive | None = Field(None, description="channels of a head")
    average: bool | None = Field(None, description="heads of full width, averaged, in place of concatenated")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        shape = (self.layers, self.heads, self.head_width, self.average)
        mlp = self.model == "distillation/mlp"
        if mlp != all(value is None for value in shape) or (not mlp and None in shape):
            raise ValueError(
                "a Transformer has layers, heads, head_width and average; an MLP has none of them"
            )
        if self.warmup >= self.steps:
            raise ValueError(f"warmup {self.warmup} must be less than the steps, {self.steps}")
        if self.snapshots_every and self.steps % self.snapshots_every:
            raise ValueError(
                f"steps {self.steps} must be a multiple of snapshots_every, {self.snapshots_every}"
            )
        return self


Run = Parity


class Trees(TheoryEntry):
    """Hierarchical parity, enumerated."""

    module: Literal["trees"]
    depths: list[Annotated[int, Field(ge=1, le=3)]] = Field(min_length=1)


Symbol = Annotated[int, Field(ge=7, le=22, description="root of a grammar")]


class Lengths(TheoryEntry):
    """The grammars, and the laws of their lengths."""

    module: Literal["lengths"]
    sentences: Annotated[int, Field(ge=20, description="strings of each grammar that are drawn")]
    rate: Probability = Field(description="of masks")


class Oracle(TheoryEntry):
    """The best predictors, on strings that are drawn."""

    module: Literal["oracle"]
    strings: Positive = Field(description="masked strings whose posteriors are enumerated")
    sentences: Annotated[int, Field(ge=40, description="strings of each truncated grammar")]
    full: Annotated[int, Field(ge=20, description="strings of each full grammar")]
    rate: Probability = Field(description="of masks")
    roots: list[Symbol] = Field(min_length=1, description="of truncated grammars")


class Selecting(TheoryEntry):
    """Two Transformers that compute a parity."""

    module: Literal["attention"]
    sizes: list[Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, description="d and k of the parities; k below d"
    )
    repeats: Positive = Field(description="strings beside each string on the support")


Theory = Annotated[Trees | Lengths | Oracle | Selecting, Field(discriminator="module")]


class Grammars(ExperimentEntry):
    """The grammars themselves, the best predictors, and attention with weights written down."""

    module: Literal["grammars"]
    sentences: Annotated[int, Field(ge=100, description="strings of each grammar for its length")]
    truncated: Annotated[
        int, Field(ge=20, description="strings of each truncated grammar for best predictors")
    ]
    full: Annotated[int, Field(ge=4, description="strings of each full grammar for best predictors")]
    roots: list[Symbol] = Field(min_length=1, description="of truncated grammars")
    rates: list[Probability] = Field(min_length=1, description="of masks")
    ngrams: list[Annotated[int, Field(ge=2)]] = Field(min_length=1, description="widths of windows")
    levels: list[Annotated[int, Field(ge=1, le=6)]] = Field(
        min_length=1, description="of the spans at whose ends next tokens are asked for"
    )
    sizes: list[Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, description="d and k of parities"
    )
    sharpness: list[Annotated[float, Field(ge=0)]] = Field(min_length=1, description="c of Proposition 9")


class Parities(ExperimentEntry):
    """What an experiment on parities compares."""

    module: Literal["acceleration", "curriculum", "trees", "transformers"]
    correlated: Annotated[
        int, Field(ge=0, description="strings on which correlations are estimated; 0: none are")
    ]
    others: Annotated[int, Field(ge=0, description="monomials of degrees 2 and 3 outside the support")]


Experiment = Annotated[Parities | Grammars, Field(discriminator="module")]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    resamples: Annotated[int, Field(ge=100)]
    risen: Probability = Field(description="accuracy that counts as having learned a parity (t90)")


class Claims(Strict):
    """How tables become verdicts."""

    fewest: Positive = Field(description="models from which a verdict may follow")
