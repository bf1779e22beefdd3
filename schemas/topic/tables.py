"""Result tables of the study."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl

from schemas.results import Result


class Accuracy(Result):
    """The share of next tokens that a run predicts: mean over its replicas, with a bootstrap interval."""

    run: pl.String
    value: pl.Float64 = pa.Field(ge=0, le=1)
    lo: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    hi: pl.Float64 = pa.Field(ge=0, le=1, nullable=True)
    n: pl.Int32 = pa.Field(ge=1, description="replicas")

    class Config:
        """One row per run."""

        unique = ["run"]


class Landscape(Result):
    """E7: exact losses of stage 2 on a grid of alpha and beta (Figures 2.7 and 2.8)."""

    T: pl.Int32 = pa.Field(ge=1, description="topics")
    v: pl.Int32 = pa.Field(ge=1, description="words of a topic")
    tau: pl.Int32 = pa.Field(ge=1, description="topics of a document")
    kind: pl.String = pa.Field(isin=["block", "diag"], description="of the frozen value matrix")
    variant: pl.String = pa.Field(
        isin=["paper", "consistent"], description="normaliser without, and with, the keys that are [MASK]"
    )
    i: pl.Int16 = pa.Field(ge=0, description="place of alpha on the grid")
    j: pl.Int16 = pa.Field(ge=0, description="place of beta on the grid")
    alpha: pl.Float64 = pa.Field(gt=0, description="weight of other words of the query's topic")
    beta: pl.Float64 = pa.Field(gt=0, description="weight of the query's word")
    loss: pl.Float64 = pa.Field(
        ge=0, le=1, description="per masked position, without queries that are [MASK]"
    )

    class Config:
        """One row per point of each landscape."""

        unique = ["T", "v", "tau", "kind", "variant", "i", "j"]


class Stage2Optimum(Result):
    """E7: where a landscape is least, what the theorem says of that place, and the extent of its lowest part."""

    T: pl.Int32 = pa.Field(ge=1, description="topics")
    v: pl.Int32 = pa.Field(ge=1, description="words of a topic")
    tau: pl.Int32 = pa.Field(ge=1, description="topics of a document")
    kind: pl.String = pa.Field(isin=["block", "diag"], description="of the frozen value matrix")
    variant: pl.String = pa.Field(
        isin=["paper", "consistent"], description="normaliser without, and with, the keys that are [MASK]"
    )
    alpha_star: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="optimal alpha; of blocks gamma alone is determined"
    )
    beta_star: pl.Float64 = pa.Field(ge=0, nullable=True, description="optimal beta; likewise")
    gamma_star: pl.Float64 = pa.Field(ge=0, nullable=True, description="optimal ((v - 1) alpha + beta) / v")
    l_min: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="least loss")
    lo_printed: pl.Float64 = pa.Field(
        ge=0, description="lower end of the theorem's interval of gamma or beta"
    )
    lo_proof: pl.Float64 = pa.Field(ge=0, description="the same as the proof gives it")
    hi: pl.Float64 = pa.Field(gt=0, description="upper end")
    lambda5: pl.Float64 = pa.Field(
        gt=0, nullable=True, description="bound of the optimal alpha / beta; none for blocks"
    )
    inside: pl.Boolean = pa.Field(description="whether the optimum is where both forms of the theorem say")
    grid_min: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="least loss on the grid")
    grid_max: pl.Float64 = pa.Field(ge=0, le=1, nullable=True, description="largest loss on the grid")
    level: pl.Float64 = pa.Field(
        ge=0, le=1, nullable=True, description="loss up to which a point is in the lowest part"
    )
    n_low: pl.Int32 = pa.Field(ge=0, description="points in the lowest part")
    alpha_low: pl.Float64 = pa.Field(gt=0, nullable=True, description="smallest alpha of the lowest part")
    alpha_high: pl.Float64 = pa.Field(gt=0, nullable=True, description="largest alpha of it")
    beta_low: pl.Float64 = pa.Field(gt=0, nullable=True, description="smallest beta of it")
    beta_high: pl.Float64 = pa.Field(gt=0, nullable=True, description="largest beta of it")
    gamma_low: pl.Float64 = pa.Field(gt=0, nullable=True, description="smallest gamma of it")
    gamma_high: pl.Float64 = pa.Field(gt=0, nullable=True, description="largest gamma of it")
    ratio_high: pl.Float64 = pa.Field(gt=0, nullable=True, description="largest alpha / beta of it")
    gamma_gap: pl.Float64 = pa.Field(
        ge=0,
        nullable=True,
        description="of blocks: largest distance of the loss to that at alpha = beta = gamma",
    )

    class Config:
        """One row per landscape."""

        unique = ["T", "v", "tau", "kind", "variant"]


SCHEMAS = {"accuracy": Accuracy, "landscape": Landscape, "stage2_opt": Stage2Optimum}
