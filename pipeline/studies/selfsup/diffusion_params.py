"""What params/selfsup/ may say of diffusions (section 2.1)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.params import DatasetEntry, ExperimentEntry, GridRunEntry, Positive, Strict, TheoryEntry

Rate = Annotated[float, Field(gt=0, le=100)]
Interval = Annotated[float, Field(gt=0, le=20, description="eta: time between two observations")]
Span = Annotated[float, Field(gt=0, le=1e7, description="T: time that a trajectory covers")]
Shift = Annotated[float, Field(ge=-10, le=10, description="distance of the mean of q from 0, or from z")]
Width = Annotated[float, Field(gt=0, le=50, description="standard deviation of wide noise")]
Deviation = Annotated[float, Field(gt=0, le=10, description="of q, in each coordinate; 0 would have no density")]


def _ascending(values: list[float]) -> list[float]:
    if any(b <= a for a, b in pairwise(values)):
        raise ValueError(f"must ascend, got {values}")
    return values


Intervals = Annotated[list[Interval], Field(min_length=1), AfterValidator(_ascending)]
Spans = Annotated[list[Span], Field(min_length=1), AfterValidator(_ascending)]
Sizes = Annotated[list[Annotated[int, Field(ge=8)]], Field(min_length=1), AfterValidator(_ascending)]
Dimensions = Annotated[list[Annotated[int, Field(ge=1, le=4)]], Field(min_length=1), AfterValidator(_ascending)]


class Noise(Strict):
    """A contrast law q, Gaussian: around the origin, or around the first element z."""

    kind: Literal["marginal", "conditional"]
    shift: Shift
    sd: Deviation


# Datasets


class OuPaths(DatasetEntry):
    """SDE-P1: trajectories of an Ornstein-Uhlenbeck process."""

    kind: Literal["ou_paths"]
    rho: Rate
    d: Annotated[int, Field(ge=1, le=8, description="of the state")]
    eta: Interval
    span: Span
    seeds: Positive = Field(description="trajectories")


class LogCoshPairs(DatasetEntry):
    """SDE-P2, SDE-TASK: pairs of the log-cosh process, one trajectory for each seed."""

    kind: Literal["logcosh_pairs"]
    rho: Rate
    alpha: Annotated[float, Field(ge=0, le=100)]
    eta: Interval
    points: Annotated[int, Field(ge=51, description="of the grid that stands for the line")]
    half_width: Annotated[float, Field(gt=0, description="of that grid")]
    noise: Noise
    pairs: Positive = Field(description="of each trajectory")
    seeds: Positive = Field(description="trajectories")


# Training


class PairRun(GridRunEntry):
    """SDE-H2: MLPs that tell pairs of neighbours from pairs with noise; replica r learns from trajectory r."""

    objective: Literal["labelled_pairs"]
    pairs: Positive = Field(description="m: the first so many pairs of each trajectory")
    widths: list[Positive] = Field(min_length=1, description="of the hidden layers")


# Theory


class RatiosCheck(TheoryEntry):
    """Chapter 5.1, 5.2, 5.4 and errata."""

    module: Literal["diffusion_ratios"]
    rho: Rate
    eta: Interval
    draws: Annotated[int, Field(ge=10, description="random chains")]
    perturbations: Annotated[int, Field(ge=5, description="random classifiers for each law of noise")]
    points: Annotated[int, Field(ge=10, description="random (u, delta) for finite differences")]
    etas: Annotated[Intervals, Field(min_length=3)] = Field(description="for the slope of Eq. 2.32's second factor")


class MixingCheck(TheoryEntry):
    """Chapter 5.5 and errata."""

    module: Literal["diffusion_mixing"]
    rhos: Annotated[list[Rate], Field(min_length=1)]
    times: Intervals
    etas: Intervals
    dimensions: Dimensions
    nodes: Annotated[int, Field(ge=10, le=40, description="of Gauss-Hermite quadrature, in each dimension")]
    chains: Positive = Field(description="random chains whose pairs are enumerated")
    states: Annotated[int, Field(ge=3, le=8)]
    grid: Annotated[int, Field(ge=51, description="points of the grid kernel that is held against the truth")]


# Experiments


class DiffusionBounds(ExperimentEntry):
    """E1 and E6: population optimum, mixing, and inequalities on random chains."""

    module: Literal["diffusion_bounds"]
    rhos: Annotated[list[Rate], Field(min_length=1)]
    alpha: Annotated[float, Field(ge=0)] = Field(description="of the log-cosh process")
    etas: Intervals
    times: Intervals
    draws: Positive = Field(description="random chains for Theorem 2 and Eq. 2.32")
    chains: Positive = Field(description="random chains for Lemma 4")
    scaling: Annotated[Intervals, Field(min_length=3)] = Field(description="eta for Eq. 2.32's second factor")
    points: Annotated[int, Field(ge=101, description="z of the quadrature of E1; twice as many z'")]


class DiffusionRecovery(ExperimentEntry):
    """E2: kernels recovered by log-quadratic classifiers, by sample size and law of noise."""

    module: Literal["diffusion_recovery"]
    rho: Rate
    eta: Interval
    dimensions: Dimensions
    pairs: Annotated[Sizes, Field(min_length=2)]
    seeds: Positive
    noises: Annotated[list[Noise], Field(min_length=1)]
    samples: Annotated[int, Field(ge=100, description="Monte Carlo, for what has no grid: more than one dimension")]


class DiffusionSpan(ExperimentEntry):
    """E3 and E4: recovery and generalisation at equal time spans and different intervals."""

    module: Literal["diffusion_span"]
    spans: Spans = Field(description="T of E3")
    etas: Intervals = Field(description="of E3")
    seeds: Positive = Field(description="of E3; E4 takes all trajectories of the dataset")
    gap_spans: Annotated[Spans, Field(min_length=2)] = Field(description="T of E4")
    gap_etas: Annotated[Intervals, Field(min_length=2)] = Field(description="of E4")
    classifiers: Annotated[int, Field(ge=2, description="in the finite class of E4, the true one among them")]
    independent: Positive = Field(description="draws of as many independent pairs, for each trajectory")
    signs: Positive = Field(description="draws of the signs of the Rademacher complexity")
    sign_seeds: Positive = Field(description="trajectories of which it is measured")


class DiffusionNetwork(ExperimentEntry):
    """E5: the log-cosh process and neural classifiers."""

    module: Literal["diffusion_network"]
    slices: Annotated[list[float], Field(min_length=1, description="z of the kernels that are drawn")]


class DiffusionCloseness(ExperimentEntry):
    """Beyond the source: which closeness of q to the kernel decides how well it is recovered."""

    module: Literal["diffusion_closeness"]
    rho: Rate
    eta: Interval
    pairs: Annotated[int, Field(ge=8, description="m")]
    seeds: Positive
    shifts: Annotated[list[Shift], Field(min_length=2), AfterValidator(_ascending)]
    deviations: Annotated[list[Deviation], Field(min_length=2), AfterValidator(_ascending)]
    computed: list[Deviation] = Field(description="of laws of which only the limit law is computed: narrower ones, say")
    widths: Annotated[list[Width], Field(min_length=2), AfterValidator(_ascending)] = Field(
        description="deviations of noise around 0 of which only the limit law is computed, far wider ones"
    )
    width_etas: Intervals = Field(description="of these")
    matched: Deviation = Field(
        description="of the wide law that is held against a shifted one of the same two-sided closeness"
    )
    draws: Annotated[int, Field(ge=100, description="of the limit law of an error, for its mean logarithm")]

    @model_validator(mode="after")
    def _has_the_reference(self) -> Self:
        if 0.0 not in self.shifts or self.matched not in self.deviations:
            raise ValueError("shifts must list 0, and deviations that of matched")
        return self
