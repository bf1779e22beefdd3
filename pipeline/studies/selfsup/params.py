"""What params/selfsup/ may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.params import DatasetEntry, ExperimentEntry, GridRunEntry, Positive, Strict, TheoryEntry
from pipeline.studies.selfsup.diffusion_params import (
    DiffusionBounds,
    DiffusionCloseness,
    DiffusionNetwork,
    DiffusionRecovery,
    DiffusionSpan,
    LogCoshPairs,
    MixingCheck,
    OuPaths,
    PairRun,
    RatiosCheck,
)

# --- hidden Markov models ----------------------------------------------------------------------------


class _Drawn(DatasetEntry):
    """Models that are drawn until they are far enough from degenerate ones."""

    shapes: Annotated[list[list[Annotated[int, Field(ge=2, le=64)]]], Field(min_length=1)] = Field(
        description="[d, k] of each: symbols or dimensions, and hidden states"
    )
    instances: Positive = Field(description="models of each shape")
    power: Annotated[int, Field(ge=1, le=4)] = Field(
        description="T is Sinkhorn's scaling of U^power + offset, U uniform"
    )
    offset: Annotated[float, Field(gt=0, lt=10)]
    least_singular: Annotated[float, Field(ge=0, lt=1)] = Field(
        description="least k-th singular value of both matrices"
    )

    @model_validator(mode="after")
    def _wide_enough(self) -> Self:
        for shape in self.shapes:
            if len(shape) != 2 or shape[0] < shape[1]:
                raise ValueError(f"shapes: expected [d, k] with d >= k, got {shape}")
        return self


class PublishedHmms(DatasetEntry):
    """HMM-CE1: the two models of Eq. 2.47."""

    kind: Literal["published"]


class DrawnHmms(_Drawn):
    """HMM-P1: columns of O from a Dirichlet law."""

    kind: Literal["drawn"]
    concentration: Annotated[float, Field(gt=0)] = Field(
        description="of the Dirichlet law of each column of O"
    )
    least_row: Annotated[float, Field(ge=0, lt=1)] = Field(description="least sum of a row of O")
    digits: Annotated[int, Field(ge=2, le=5)] | None = Field(
        None,
        description="decimal digits of every entry, so that a page can show the model exactly; without it all",
    )


class GaussianHmms(_Drawn):
    """GHMM-P1: means of norm 1, uniform on the sphere."""

    kind: Literal["gaussian"]


class TableRun(GridRunEntry):
    """E8 (c): tables that learn to predict two tokens from one, a model of the dataset for each replica."""

    objective: Literal["masked_tokens"]
    case: Literal[1, 2, 3] = Field(description="of Theorem 7: which of three tokens is shown")
    samples: Positive = Field(description="triples of each model")


class HmmCounterexample(TheoryEntry):
    """Chapter 5.6."""

    module: Literal["hmm_counterexample"]


class HmmIdentity(ExperimentEntry):
    """E7: models that predictors of one token do not tell apart."""

    module: Literal["hmm_identity"]
    share: Annotated[float, Field(gt=0, le=1)] = Field(
        description="of the widest turn that leaves all entries non-negative, for each twin"
    )
    powers: Annotated[list[Annotated[int, Field(ge=2, le=50)]], Field(min_length=1)] = Field(
        description="t of Claim 3 for which a pair of models is built that agree on x_t | x_1"
    )


# --- the study ---------------------------------------------------------------------------------------

Dataset = Annotated[
    PublishedHmms | DrawnHmms | GaussianHmms | OuPaths | LogCoshPairs, Field(discriminator="kind")
]
Run = Annotated[TableRun | PairRun, Field(discriminator="objective")]
Theory = Annotated[HmmCounterexample | RatiosCheck | MixingCheck, Field(discriminator="module")]
Experiment = Annotated[
    HmmIdentity | DiffusionBounds | DiffusionRecovery | DiffusionSpan | DiffusionNetwork | DiffusionCloseness,
    Field(discriminator="module"),
]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]


class Claims(Strict):
    """Settings of claims."""
