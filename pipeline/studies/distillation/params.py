"""What params/distillation.yaml may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.params import (
    DatasetEntry,
    ExperimentEntry,
    Positive,
    Probability,
    RunEntry,
    Strict,
    TheoryEntry,
)


class Dataset(DatasetEntry):
    """Sequences that count upwards."""

    symbols: Annotated[int, Field(ge=2, le=1000)]
    length: Annotated[int, Field(ge=2, description="tokens of a sequence")]
    sequences: Positive


class Run(RunEntry):
    """Transformers that predict the next token."""

    layers: Annotated[int, Field(ge=1, le=4)]
    width: Positive


class Construction(TheoryEntry):
    """A construction, executed for several numbers of symbols."""

    module: Literal["construction"]
    symbols: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]
    length: Annotated[int, Field(ge=2)]


# --- the theory of sparse parity ---

Odd = Annotated[int, Field(ge=5, description="coordinates, an odd number")]


def _odd(values: list[int]) -> list[int]:
    if any(value % 2 == 0 for value in values) or values != sorted(set(values)):
        raise ValueError(f"{values}: expected odd numbers, ascending")
    return values


Coordinates = Annotated[list[Odd], Field(min_length=2), AfterValidator(_odd)]
Batches = Annotated[
    list[Annotated[int, Field(ge=2, le=1 << 26)]], Field(min_length=2, description="samples, ascending")
]
Even = Annotated[int, Field(ge=2, multiple_of=2)]
Support = Annotated[int, Field(ge=2, le=10, multiple_of=2, description="coordinates of the support, k")]


class Majority(TheoryEntry):
    """Fourier coefficients of the majority."""

    module: Literal["majority"]
    coordinates: Coordinates = Field(description="all inputs of which are gone through")
    pairs: Odd = Field(description="largest d all k of which are gone through")
    most: Odd = Field(description="largest d of closed forms")
    draws: Positive = Field(description="random neurons of each kind")


class Stages(TheoryEntry):
    """Both stages of training, on all inputs."""

    module: Literal["stages"]
    d: Annotated[int, Field(ge=7, le=15)]
    k: Support
    m: Even = Field(description="neurons")
    widths: list[Even] = Field(min_length=2, description="neurons from the aligned start")
    wide: Even = Field(description="neurons from the printed start")
    wide_second: Even = Field(description="neurons of teachers that go through stage two")
    batches: Batches
    replicas: Annotated[int, Field(ge=2)]
    steps: Positive = Field(description="of stage two")
    rate: Annotated[float, Field(gt=0, description="learning rate of stage two")]


class Complexity(TheoryEntry):
    """Numbers of samples and of steps."""

    module: Literal["complexity"]
    k: Support
    coordinates: Coordinates = Field(description="of formulas")
    small: Annotated[int, Field(ge=7, le=13, description="d, all inputs of which are gone through")]
    m_student: Even = Field(description="neurons")
    m_teacher: Even = Field(description="neurons")
    replicas: Annotated[int, Field(ge=2)]
    half: Probability = Field(description="share of neurons at which the predicted batch is tried")


class Definitions(TheoryEntry):
    """Definitions that are printed wrongly."""

    module: Literal["definitions"]
    depths: list[Annotated[int, Field(ge=1, le=4)]] = Field(min_length=1, description="of trees of parities")
    longest: Annotated[int, Field(ge=5, le=60, description="tokens of a sentence")]
    levels: Annotated[int, Field(ge=3, le=9, description="of random trees")]
    draws: Positive = Field(description="random trees")


class Batched(Strict):
    """Numbers of coordinates, and how often the smallest batch is doubled for each."""

    coordinates: Coordinates
    doublings: list[Annotated[int, Field(ge=1, le=20)]]

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if len(self.doublings) != len(self.coordinates):
            raise ValueError(
                f"{len(self.doublings)} doublings for {len(self.coordinates)} numbers of coordinates"
            )
        return self


class Recovery(Strict):
    """Theorem 23, stage one: how many samples a student needs to see the support."""

    k: Support
    m_student: Even = Field(description="neurons")
    m_teacher: Even = Field(description="neurons of teachers")
    replicas: Annotated[int, Field(ge=2)]
    share: Probability = Field(description="of neurons that have to show the support")
    least: Annotated[int, Field(ge=2, description="smallest batch; others double it")]
    aligned: Batched
    iid: Batched
    labels: Batched


class Correlations(Strict):
    """Lemma 64, from both starts."""

    d: Odd
    k: Support
    widths: list[Even] = Field(min_length=2, description="neurons")
    replicas: Annotated[int, Field(ge=2)]


class Weights(Strict):
    """Lemma 63 and Claim 8: weights after a step on a batch."""

    d: Odd
    k: Support
    m: Even = Field(description="neurons")
    batches: Batches
    replicas: Annotated[int, Field(ge=2)]


class SecondStage(Strict):
    """Lemma 65: stage two on top of weights from the whole population."""

    sizes: list[Annotated[list[int], Field(min_length=3, max_length=3)]] = Field(
        min_length=1, description="d, k and m"
    )
    replicas: Annotated[int, Field(ge=2)]
    steps: Positive
    every: Positive = Field(description="steps between measurements")
    rate: Annotated[float, Field(gt=0, description="learning rate")]
    held_out: Positive = Field(description="inputs for the loss, and as many for accuracy")


class EndToEnd(Strict):
    """Theorem 23, both stages of a student."""

    d: Odd
    sizes: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, description="k, and the student's m"
    )
    m_teacher: Even = Field(description="neurons of teachers")
    batches: Batches
    replicas: Annotated[int, Field(ge=2)]
    teacher_steps: Positive = Field(description="of a teacher's stage two")
    steps: Positive = Field(description="of a student's stage two")
    every: Positive = Field(description="steps between measurements")
    rate: Annotated[float, Field(gt=0, description="learning rate of stage two")]
    held_out: Positive = Field(description="inputs for the loss, and as many for accuracy")


class TwoStages(ExperimentEntry):
    """The theory of sparse parity, simulated."""

    module: Literal["two_stages"]
    recovery: Recovery
    correlations: Correlations
    weights: Weights
    second_stage: SecondStage
    end_to_end: EndToEnd
    delta: Annotated[float, Field(gt=0, lt=1, description="probability that bounds may fail with")]


# --- what may be ---

Theory = Annotated[Construction | Majority | Stages | Complexity | Definitions, Field(discriminator="module")]


class Other(ExperimentEntry):
    """Experiments without settings of their own."""

    module: Literal["accuracy"]


Experiment = Annotated[TwoStages | Other, Field(discriminator="module")]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Probability
    resamples: Positive


class Claims(Strict):
    """Settings of claims."""

    least_accuracy: Probability
