"""Result tables of the study (chapter section 8)."""

from __future__ import annotations

from typing import Any

import pandera.polars as pa
import polars as pl

from schemas.results import Result

FIELD = pa.Field
SHARE: dict[str, Any] = {"ge": 0, "le": 1}


class Arms(Result):
    """Mean accuracy of the models of an arm after so many steps, with a bootstrap interval over models."""

    run: pl.String
    width: pl.Int32 = FIELD(ge=1, description="hidden units of an MLP, channels of a Transformer")
    heads: pl.Int16 = FIELD(ge=1, nullable=True, description="of a Transformer")
    arm: pl.String = FIELD(description="how it is taught; label: the teacher itself")
    step: pl.Int32 = FIELD(ge=1, description="steps of its own training")
    value: pl.Float64 = FIELD(**SHARE, nullable=True, description="mean accuracy on held-out strings")
    lo: pl.Float64 = FIELD(**SHARE, nullable=True, description="lower end of the interval")
    hi: pl.Float64 = FIELD(**SHARE, nullable=True, description="upper end of the interval")
    n: pl.Int32 = FIELD(ge=1, description="models")

    class Config:
        """One row per arm of a run and step."""

        unique = ["run", "arm", "step"]


class Models(Result):
    """Every model: when it has learned, and how well it ends."""

    run: pl.String
    width: pl.Int32 = FIELD(ge=1, description="hidden units of an MLP, channels of a Transformer")
    heads: pl.Int16 = FIELD(ge=1, nullable=True, description="of a Transformer")
    arm: pl.String = FIELD(description="how it is taught; label: the teacher itself")
    model: pl.Int32 = FIELD(ge=0, description="number within the arm; the same number has the same teacher")
    t90: pl.Int32 = FIELD(
        ge=1, nullable=True, description="first step with an accuracy of 0.9; null: not until its last"
    )
    final: pl.Float64 = FIELD(**SHARE, nullable=True, description="accuracy after the last step")
    horizon: pl.Int32 = FIELD(ge=1, description="last step")

    class Config:
        """One row per model."""

        unique = ["run", "arm", "model"]


class Contrasts(Result):
    """Comparisons, with bootstrap intervals over models."""

    contrast: pl.String
    value: pl.Float64 = FIELD(nullable=True, description="what is compared")
    lo: pl.Float64 = FIELD(nullable=True, description="lower end of the interval")
    hi: pl.Float64 = FIELD(nullable=True, description="upper end of the interval")
    n: pl.Int32 = FIELD(ge=0, description="models")

    class Config:
        """One row per comparison."""

        unique = ["contrast"]


class Correlations(Result):
    """A-CORR of degree 1: how far the probability of class 0 correlates with each sign of the input."""

    run: pl.String
    model: pl.Int32 = FIELD(ge=0)
    step: pl.Int32 = FIELD(ge=0, description="of the teacher's training; 0: before it")
    feature: pl.String = FIELD(description="the parity that the sign belongs to; rest: none that matters")
    place: pl.Int16 = FIELD(ge=0, description="of the sign in the string")
    correlation: pl.Float64 = FIELD(ge=0, le=0.51, description="absolute value, centred")

    class Config:
        """One row per sign, model and step."""

        unique = ["run", "model", "step", "place"]


class Separation(Result):
    """A-CORR by degree: monomials of signs that matter beside others."""

    run: pl.String
    model: pl.Int32 = FIELD(ge=0)
    step: pl.Int32 = FIELD(ge=0, description="of the teacher's training; 0: before it")
    degree: pl.Int16 = FIELD(ge=1, le=3, description="of the monomials")
    feature: pl.String = FIELD(description="the parity whose signs the monomials are made of")
    inside: pl.Float64 = FIELD(ge=0, le=0.51, description="median correlation of its monomials")
    least_inside: pl.Float64 = FIELD(ge=0, le=0.51, description="the smallest of them")
    outside: pl.Float64 = FIELD(ge=0, le=0.51, description="mean correlation of other monomials")
    outside_q95: pl.Float64 = FIELD(ge=0, le=0.51, description="their 95 % quantile")
    separation: pl.Float64 = FIELD(ge=0, nullable=True, description="SEP: inside over outside_q95")

    class Config:
        """One row per parity, degree, model and step."""

        unique = ["run", "model", "step", "degree", "feature"]


class Chosen(Result):
    """Which checkpoints of its teacher each student learned from, in turn."""

    arm: pl.String
    model: pl.Int32 = FIELD(ge=0, description="the student's number within the arm")
    teacher: pl.Int32 = FIELD(ge=0, description="the teacher's number")
    order: pl.Int32 = FIELD(ge=0, description="0: the first checkpoint")
    teacher_step: pl.Int32 = FIELD(ge=0, description="of the checkpoint")
    until: pl.Int32 = FIELD(ge=1, description="student step at which the next one follows, or training ends")
    accuracy: pl.Float64 = FIELD(
        **SHARE, nullable=True, description="of the checkpoint; null: before training"
    )

    class Config:
        """One row per student and checkpoint."""

        unique = ["arm", "model", "order"]


class Attention(Result):
    """A-ATTN: where the last token looks, along paths of two layers; median over strings."""

    run: pl.String
    model: pl.Int32 = FIELD(ge=0)
    step: pl.Int32 = FIELD(ge=0, description="of training; 0: before it")
    place: pl.Int16 = FIELD(ge=0, description="of the sign in the string")
    inside: pl.Boolean = FIELD(description="the sign matters")
    weight: pl.Float64 = FIELD(ge=0, le=1.000001, description="of all paths to it, heads averaged")

    class Config:
        """One row per sign, model and step."""

        unique = ["run", "model", "step", "place"]


SCHEMAS = {
    "arms": Arms,
    "models": Models,
    "contrasts": Contrasts,
    "correlations": Correlations,
    "separation": Separation,
    "chosen": Chosen,
    "attention": Attention,
}
