"""What params/selfsup/ may say."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

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


class Theory(TheoryEntry):
    """A construction, executed for several numbers of symbols."""

    symbols: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=1)]
    length: Annotated[int, Field(ge=2)]


Experiment = ExperimentEntry


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Probability


class Claims(Strict):
    """Settings of claims."""

    least_accuracy: Probability
