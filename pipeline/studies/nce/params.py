"""What params/nce/ may say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.params import DatasetEntry, ExperimentEntry, GridRunEntry, Id, Positive, Strict, TheoryEntry

Mean = Annotated[float, Field(ge=0, le=30, description="R: P* = N(R, 1), Q = N(0, 1)")]
Means = Annotated[list[Mean], Field(min_length=1)]
Distances = Annotated[list[Annotated[float, Field(ge=1, le=30)]], Field(min_length=1)]
Rate = Annotated[float, Field(gt=0)]
StepSizes = Annotated[list[Rate], Field(min_length=1)]


def _in_order(ends: list[float]) -> list[float]:
    if not ends[0] < ends[1]:
        raise ValueError(f"must be a range, got {ends}")
    return ends


Range = Annotated[list[Rate], Field(min_length=2, max_length=2), AfterValidator(_in_order)]
Radii = Annotated[list[Annotated[float, Field(gt=0, lt=0.5)]], Field(min_length=1)]
BUNDLED = 1797  # images that come with scikit-learn, for training and test together (`pipeline.languages.digits`)


class Gauss(DatasetEntry):
    """NCE-D1, D16: pairs of Gaussians, as parameters; one pair per seed."""

    kind: Literal["gauss"]
    mean: Annotated[float, Field(gt=0, le=20, description="R of the 1-d pair")]
    variances: Annotated[
        list[Rate], Field(min_length=2, max_length=2, description="of the 16-d P*: range of a uniform draw")
    ]
    seeds: Positive

    @model_validator(mode="after")
    def _ordered(self) -> Gauss:
        if self.variances[0] > self.variances[1]:
            raise ValueError(f"variances must be a range, got {self.variances}")
        return self


Md5 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class MnistFiles(Strict):
    """The md5 of each of MNIST's files, unpacked."""

    train_images: Md5
    train_labels: Md5
    test_images: Md5
    test_labels: Md5


class Images(DatasetEntry):
    """NCE-DIG, NCE-MNIST: images of handwritten digits."""

    kind: Literal["images"]
    source: Literal["bundled", "mnist"] = Field(description="scikit-learn's 8 x 8 digits, or MNIST")
    path: str | None = Field(
        None, description="the folder with MNIST's four IDX files; only for source mnist, without it no images"
    )
    md5: MnistFiles | None = Field(
        None, description="what these files must be, so that other files are another dataset; needed for path"
    )

    @model_validator(mode="after")
    def _files_of_mnist(self) -> Images:
        if self.source == "bundled" and (self.path is not None or self.md5 is not None):
            raise ValueError("path and md5 are not for source 'bundled', which comes with scikit-learn")
        if self.path is not None and self.md5 is None:
            raise ValueError("md5 must be there where path is: the md5 of each file, unpacked")
        return self


Dataset = Annotated[Gauss | Images, Field(discriminator="kind")]


class Run(GridRunEntry):
    """N7: a log-ratio of images against Gaussian noise; ``replicas`` counts seeds, for each step size."""

    loss: Literal["nce", "ence"]
    q_kind: Literal["full", "diag"] = Field(description="the noise: covariance of the images, or its diagonal")
    log_ratio_clip: Annotated[float, Field(gt=0)] | None = Field(
        None, description="log-ratios are cut off there before the loss; without it nowhere"
    )
    logit_alpha: Annotated[float, Field(gt=0, lt=0.5)] = Field(description="y = logit(a + (1 - 2a) x)")
    held_out: Annotated[int, Field(ge=1, lt=BUNDLED)] = Field(
        description="test images, where the source has no parts of its own: the bundled digits"
    )
    evaluated: Positive = Field(description="images, and as many draws of noise, on which losses are measured")
    widths: list[Positive] = Field(min_length=1, description="channels of the residual blocks")
    strides: list[Positive] = Field(min_length=1, description="of the residual blocks")
    groups: Positive = Field(description="of each group normalisation")
    features: Positive = Field(description="of f, the width of the quadratic head")

    @model_validator(mode="after")
    def _consistent(self) -> Run:
        if self.optimizer == "adam":
            raise ValueError("optimizer must be 'sgd' or 'normalised_sgd': the study compares these")
        if len(self.widths) != len(self.strides):
            raise ValueError(f"strides must be as many as widths, {len(self.widths)}, got {len(self.strides)}")
        if any(width % self.groups for width in self.widths):
            raise ValueError(f"widths must be multiples of groups, {self.groups}")
        return self


class FormulasCheck(TheoryEntry):
    """Chapter 5.1, 5.2: derivatives, quadrature against closed forms, unique minimiser, convexity."""

    module: Literal["formulas"]
    means: Means
    points: Annotated[int, Field(ge=4, description="random tau near the segment from tau_q to tau_*")]
    pairs: Annotated[int, Field(ge=4, description="random pairs for convexity")]


class FlatnessCheck(TheoryEntry):
    """Chapter 5.3, 5.4: Proposition 7, Proposition 8."""

    module: Literal["flatness"]
    means: Means
    around: Distances
    radii: StepSizes
    directions: Annotated[int, Field(ge=8)]


class CurvatureCheck(TheoryEntry):
    """Chapter 5.5, 5.6: Lemmas 46 to 48."""

    module: Literal["curvature"]
    means: Means
    fitted: Annotated[list[Mean], Field(min_length=3, description="R over which rates are fitted")]


class BarrierCheck(TheoryEntry):
    """Chapter 5.7, 5.8: Lemmas 49, 50, 59, Claim 6, Theorems 17 and 18."""

    module: Literal["barrier"]
    means: Distances
    radii: Radii
    angles: Annotated[int, Field(ge=8)]
    paths: Distances = Field(description="R of the paths of GD that are walked in full")
    newton: Distances = Field(description="R of the paths of Newton's method that are walked in full")
    multiples: StepSizes = Field(description="step sizes of further paths of GD, in units of 1/lambda_M")
    multiplied: Distances = Field(description="R of these paths")
    draws: Annotated[int, Field(ge=10, description="random tau for Claim 6")]


class NormalisedCheck(TheoryEntry):
    """Chapter 5.9, 5.10: Lemma 51, Theorem 19, Corollary 2."""

    module: Literal["normalised"]
    means: Annotated[Distances, Field(min_length=2)]
    draws: Annotated[int, Field(ge=10)]
    radii: Annotated[int, Field(ge=2, description="of the polar grid that bounds the Hessian")]
    angles: Annotated[int, Field(ge=4)]


class ExponentialLossCheck(TheoryEntry):
    """Chapter 5.11 to 5.13: Lemmas 53, 54, Theorem 21."""

    module: Literal["exponential_loss"]
    means: Distances
    steps: Distances = Field(description="R of the paths for Theorem 21")
    draws: Annotated[int, Field(ge=2, description="of the 16-d variances")]
    samples: Annotated[int, Field(ge=100, description="Monte Carlo, for the 16-d closed forms")]
    angles: Annotated[int, Field(ge=4)]


class OverlapCheck(TheoryEntry):
    """Chapter 5.14: Lemmas 52, 60 and 61, Theorem 20."""

    module: Literal["overlap"]
    means: Means


class TricksCheck(TheoryEntry):
    """Chapter 5.15: NCE-NUM1 to 4."""

    module: Literal["tricks"]
    draws: Annotated[int, Field(ge=10)]


Theory = Annotated[
    FormulasCheck
    | FlatnessCheck
    | CurvatureCheck
    | BarrierCheck
    | NormalisedCheck
    | ExponentialLossCheck
    | OverlapCheck
    | TricksCheck,
    Field(discriminator="module"),
]


class Landscape(ExperimentEntry):
    """N1."""

    module: Literal["landscape"]
    means: Means
    points: Annotated[int, Field(ge=801, description="of the trapezoid rule")]
    fitted: Range = Field(
        description="R over which loss, eigenvalues and condition number at tau_* are fitted, against log R"
    )


class Annulus(ExperimentEntry):
    """N2."""

    module: Literal["annulus"]
    means: Distances
    radii: Radii
    angles: Annotated[int, Field(ge=8)]


class Steps(ExperimentEntry):
    """N3, N4, N5: means for each rule, and where paths are censored."""

    module: Literal["steps"]
    gd: Distances
    newton_nce: Distances
    newton_ence: Distances
    ngd: Distances
    bounded: Distances = Field(description="R of the bound of Theorem 19")
    radii: Annotated[int, Field(ge=2, description="of the polar grid that bounds the Hessian")]
    angles: Annotated[int, Field(ge=4)]
    cap: Positive = Field(description="updates after which a path is censored")
    full_newton: Distances = Field(description="R of the ablation with step size 1")
    full_newton_steps: Positive
    fitted_ngd: Range = Field(description="R over which steps of NGD are fitted, against log R")
    fitted_exponential: Range = Field(
        description="R over which steps of GD and Newton's method are fitted, against R^2"
    )
    continued: Annotated[Distances, Field(min_length=5)] = Field(
        description="R of the modified equations of GD and Newton's method"
    )
    compared: Annotated[Distances, Field(min_length=1)] = Field(
        description="largest R of the fits that hold R^2 against R"
    )


class Rates(ExperimentEntry):
    """The fits of N1 and N3 to N5, side by side."""

    module: Literal["rates"]


class Sampled(ExperimentEntry):
    """N6."""

    module: Literal["gauss"]
    etas: StepSizes
    samples: Annotated[list[Positive], Field(min_length=1, description="n data and n noise per update")]
    updates: Positive
    fresh: Positive = Field(description="samples on which the loss after the last update is measured")
    population_etas: StepSizes


class Variants(ExperimentEntry):
    """N6 with further optimisers, and with NCE-NUM3 and NUM4."""

    module: Literal["variants"]
    etas: StepSizes
    samples: Annotated[list[Positive], Field(min_length=1, description="n data and n noise per update")]
    updates: Positive
    fresh: Positive = Field(description="samples on which the loss after the last update is measured")
    limit: Rate = Field(description="longest gradient of a sample")
    clip: Rate = Field(description="largest |log-ratio| of a sample")


class ImageRuns(ExperimentEntry):
    """N7."""

    module: Literal["images"]
    area_until: dict[Id, Positive] = Field(
        description="by dataset, the update up to which the area under the loss is taken; of others, the last"
    )
    early: Positive = Field(description="update after which the loss is compared, beside the area under it")
    clipped: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="share of clipped log-ratios above which a run counts as diverged"
    )


Experiment = Annotated[
    Landscape | Annulus | Steps | Rates | Sampled | Variants | ImageRuns, Field(discriminator="module")
]


class Analysis(Strict):
    """How the tables of all experiments are made."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]


class Claims(Strict):
    """How tables become verdicts."""

    comparable: Annotated[float, Field(gt=0, description="claim 12: how far apart comparable distances may be")]
