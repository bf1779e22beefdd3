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


Shapes = Annotated[
    list[Annotated[list[Annotated[int, Field(ge=2, le=64)]], Field(min_length=2, max_length=2)]],
    Field(min_length=1, description="[d, k] of each: symbols or dimensions, and hidden states"),
]


class _Drawn(DatasetEntry):
    """Models that are drawn until they are far enough from degenerate ones."""

    shapes: Shapes
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
            if shape[0] < shape[1]:
                raise ValueError(f"shapes: expected [d, k] with d >= k, got {shape}")
        return self


class PublishedHmms(DatasetEntry):
    """HMM-CE1: the two models of Eq. 2.47."""

    kind: Literal["published"]


class DrawnHmms(_Drawn):
    """HMM-P1: columns of O from a Dirichlet law."""

    kind: Literal["drawn"]
    concentration: Annotated[float, Field(gt=0)] = Field(description="of the Dirichlet law of each column of O")
    least_row: Annotated[float, Field(ge=0, lt=1)] = Field(description="least sum of a row of O")
    digits: Annotated[int, Field(ge=2, le=5)] | None = Field(
        None, description="decimal digits of every entry, so that a page can show the model exactly; without it all"
    )


class GaussianHmms(_Drawn):
    """GHMM-P1: means of norm 1, uniform on the sphere."""

    kind: Literal["gaussian"]


class TableRun(GridRunEntry):
    """E8 (c): tables that learn to predict two tokens from one, a model of the dataset for each replica."""

    objective: Literal["masked_tokens"]
    case: Literal[1, 2, 3] = Field(description="of Theorem 7: which of three tokens is shown")
    samples: Positive = Field(description="triples of each model")


class HmmPairs(TheoryEntry):
    """Chapter 5.6 to 5.8: pairs that predictors of one token do not tell apart."""

    module: Literal["hmm_pairs"]
    shapes: Shapes
    draws: Positive = Field(description="models of each shape")
    turn: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="Frobenius norm of the generator of the rotation; small, so that no entry becomes negative"
    )
    longest_gap: Positive
    powers: Annotated[list[Annotated[int, Field(ge=2, le=50)]], Field(min_length=1)] = Field(description="t of Claim 3")


class HmmTensors(TheoryEntry):
    """Chapter 5.10, Theorem 7: predictors as tensors, Kruskal's condition, recovery."""

    module: Literal["hmm_tensors"]
    shapes: Shapes
    draws: Positive = Field(description="models of each shape")
    least_singular: Annotated[float, Field(gt=0, lt=1)]


class HmmGaussian(TheoryEntry):
    """Chapter 5.11 and 5.12: Lemmas 7 and 8, Theorems 5, 8 and 9."""

    module: Literal["hmm_gaussian"]
    shapes: Shapes
    draws: Positive = Field(description="models of each shape")
    least_singular: Annotated[float, Field(gt=0, lt=1)]
    points: Annotated[int, Field(ge=10)] = Field(description="at which predictors are compared")


Sizes = Annotated[list[Annotated[int, Field(ge=10)]], Field(min_length=2)]


class HmmIdentity(ExperimentEntry):
    """E7: models that predictors of one token do not tell apart."""

    module: Literal["hmm_identity"]
    share: Annotated[float, Field(gt=0, le=1)] = Field(
        description="of the widest turn that leaves all entries non-negative, for each twin"
    )
    powers: Annotated[list[Annotated[int, Field(ge=2, le=50)]], Field(min_length=1)] = Field(
        description="t of Claim 3 for which a pair of models is built that agree on x_{t+1} from x_1"
    )
    stays: Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)] = Field(description="a of Claim 3")
    highest: Annotated[int, Field(ge=2, le=50)] = Field(description="largest t of Claim 3, from 2 on")
    angles: Annotated[int, Field(ge=3)] = Field(description="from 0 to a third of a turn")
    paths: Annotated[int, Field(ge=0)] = Field(
        description="twins whose posteriors are drawn, beside the published model"
    )
    points: Annotated[int, Field(ge=10)] = Field(
        description="x_1 at which the derivative of a G-HMM's predictor is taken"
    )


class HmmRecovery(ExperimentEntry):
    """E8: O and T from predictors of two tokens."""

    module: Literal["hmm_recovery"]
    samples: Sizes = Field(description="triples of a sample")
    sweeps: Positive = Field(description="of alternating least squares behind Jennrich's algorithm")


class HmmFits(ExperimentEntry):
    """E9: parameters fitted to exact predictors."""

    module: Literal["hmm_fits"]
    tasks: Annotated[list[Literal["pair", "allpair", "triple1", "triple2"]], Field(min_length=1)]
    starts: Positive = Field(description="random starts of each model and task")
    evaluations: Positive = Field(description="of the predictor, at most, from each start")
    iterations: Positive = Field(description="of Sinkhorn's scaling, at most")


class HmmGaussians(ExperimentEntry):
    """E10: G-HMMs from exact predictors and from samples."""

    module: Literal["hmm_gaussian"]
    norms: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)] = Field(description="c of the means")
    pairs: Sizes = Field(description="pairs (x_1, x_2) of a sample")
    first: Annotated[int, Field(ge=10)] = Field(description="pairs on which starts are tried")
    starts: Positive
    steps: Positive = Field(description="of L-BFGS, at most")
    iterations: Positive = Field(description="of Sinkhorn's scaling, at most")


class HmmDetection(ExperimentEntry):
    """Beyond the source: how many triples tell a twin."""

    module: Literal["hmm_detection"]
    instances: Positive = Field(description="models")
    shares: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], Field(min_length=2)] = Field(
        description="angles, as shares of the widest turn of each model"
    )
    fitted: Annotated[float, Field(gt=0, lt=1)] = Field(description="largest share over which the slope is fitted")
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(description="level of the tests")
    power: Annotated[float, Field(gt=0.5, lt=1)] = Field(description="for which the number of triples is computed")
    draws: Positive = Field(description="simulated samples of each model, angle and test")


# --- the study ---------------------------------------------------------------------------------------

Dataset = Annotated[PublishedHmms | DrawnHmms | GaussianHmms | OuPaths | LogCoshPairs, Field(discriminator="kind")]
Run = Annotated[TableRun | PairRun, Field(discriminator="objective")]
Theory = Annotated[HmmPairs | HmmTensors | HmmGaussian | RatiosCheck | MixingCheck, Field(discriminator="module")]
Experiment = Annotated[
    HmmIdentity
    | HmmRecovery
    | HmmFits
    | HmmGaussians
    | HmmDetection
    | DiffusionBounds
    | DiffusionRecovery
    | DiffusionSpan
    | DiffusionNetwork
    | DiffusionCloseness,
    Field(discriminator="module"),
]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]


class Claims(Strict):
    """Settings of claims."""
