"""What params/automata/ may say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.params import AveragedRunEntry, DatasetEntry, ExperimentEntry, Positive, Probability, Strict, TheoryEntry
from schemas.automata.tasks import ALL_TASKS

Length = Annotated[int, Field(ge=2, le=1000, description="symbols of a sequence, T")]


if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[ALL_TASKS]


class Dataset(DatasetEntry):
    """Inputs of some tasks with their states."""

    tasks: list[TaskName] = Field(min_length=1)
    length: Length
    train: Positive = Field(description="training sequences: steps times batch of its runs, so that all are fresh")
    held: Positive = Field(description="sequences of validation, and as many for the test")
    probabilities: list[Probability] | None = Field(None, description="of the symbol 1, in sets of their own (C2)")
    counts: Annotated[int, Field(ge=1)] | None = Field(
        None, description="step between numbers of ones, in sets of their own (C2)"
    )
    lengths: list[Length] | None = Field(None, description="of further test sequences")
    probes: Positive | None = Field(None, description="sequences of each of those sets")

    @model_validator(mode="after")
    def _probed(self) -> Self:
        if (self.probes is None) != (not (self.probabilities or self.counts or self.lengths)):
            raise ValueError("probes must be there exactly with probabilities, counts or lengths")
        if (self.probabilities or self.counts) and self.tasks != ["c2"]:
            raise ValueError(f"tasks {self.tasks}: probabilities and counts of ones are for c2 alone")
        return self


class Run(AveragedRunEntry):
    """An ensemble of Transformers or LSTMs over a grid of learning rates."""

    experiment: Literal[
        "depth", "stabilisers", "indirect", "incomplete", "brittleness", "positions", "attention", "explorer"
    ]
    arm: Literal["gpt", "shift", "none", "scratchpad", "recency", "linear", "lstm"] = Field(
        description="gpt: sinusoidal positions; shift: shifted in training; recency: a scratchpad, and that bias"
    )
    task: TaskName = Field(description="of those that the dataset has")
    width: Positive
    layers: Positive | None = Field(None, description="of a Transformer")
    heads: Positive | None = Field(None, description="of a Transformer")
    ffn: Positive | None = Field(None, description="width of a Transformer's MLP")
    embed: Positive | None = Field(None, description="width of an LSTM's embedding")
    scale: Annotated[float, Field(gt=0)] | None = Field(
        None, description="of arm 'linear': p_t = scale t on every coordinate, which the source leaves open"
    )
    revealed: Annotated[float, Field(gt=0, le=1)] = Field(description="probability that a label is shown")
    shift: Annotated[int, Field(ge=0)] = Field(description="largest shift of positions in training")
    dropout: Annotated[float, Field(ge=0, lt=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        lstm = self.arm == "lstm"
        if lstm != (self.model == "automata/lstm"):
            raise ValueError(f"arm {self.arm} does not go with model {self.model}")
        shape = (self.layers, self.heads, self.ffn)
        if (self.embed is None) == lstm or any((value is None) != lstm for value in shape):
            raise ValueError("an LSTM has embed; a Transformer has layers, heads and ffn")
        if self.heads and self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} must be a multiple of twice the heads, {2 * self.heads}")
        if (self.arm == "linear") != (self.scale is not None):
            raise ValueError("scale must be there exactly in arm 'linear'")
        if (self.arm == "shift") != (self.shift > 0):
            raise ValueError("shift must be above 0 exactly in arm 'shift'")
        return self


class Theory(TheoryEntry):
    """Constructions, executed."""

    module: Literal["gadgets", "prefix", "counters", "groups", "cascades", "gridworld"]
    sequences: Annotated[int, Field(ge=4, description="random inputs")]
    length: Annotated[int, Field(ge=8, le=128, description="of random inputs, T")]
    short: Annotated[int, Field(ge=4, le=12, description="length at which all inputs are tried")]


class Objects(ExperimentEntry):
    """The automata themselves, and Algorithm 1 on one input."""

    module: Literal["objects"]
    shown: Annotated[int, Field(ge=10, le=60, description="moves of the figure of Algorithm 1")]


class Attention(ExperimentEntry):
    """EXP-ATTN."""

    module: Literal["attention"]
    length: Length
    sequences: Annotated[int, Field(ge=2, description="of which two are drawn")]


class Depth(ExperimentEntry):
    """EXP-DEPTH, EXP-INSTAB, EXP-EVALSD."""

    module: Literal["depth"]
    evaluations: Annotated[int, Field(ge=3, description="test sets on which one model is evaluated (footnote 31)")]
    sequences: Positive = Field(description="of each of those sets")


class Trained(ExperimentEntry):
    """Everything else that reads trained models."""

    module: Literal["stabilisers", "supervision", "brittleness", "positions", "explorer", "ledger"]


Experiment = Annotated[Objects | Attention | Depth | Trained, Field(discriminator="module")]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    solved: Probability = Field(
        description="accuracy on validation sequences from which a model counts as one that learned its task"
    )


class Claims(Strict):
    """How tables become verdicts."""

    best_of: Positive = Field(
        description="models of a published maximum, which says that about one of so many gets there"
    )
