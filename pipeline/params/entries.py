"""The types of what ``params.yaml`` and the files in ``params/<study>/`` may say; a study adds its own fields to them.

No model here has a default that decides a result and none converts a type, so this module can refuse a file but cannot
alter a result; that is why it is not a code input of any step (the rules of scales, of grids and of what is shared,
which can, live in ``scales.py``, ``grids.py`` and ``sharing.py``).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

# They become file names. DVC splits paths at dots.
Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=80)]
Module = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=80)]
ModelName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*$", max_length=120)]
Positive = Annotated[int, Field(ge=1)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """Refuses unknown keys, converts nothing, cannot be changed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())


class Header(Strict):
    """What ``params.yaml`` says: the run as a whole."""

    scale: Literal["smoke", "quick", "long", "paper"] = Field(
        description="smoke: seconds, proves the wiring; quick: minutes on two cores; long: a night; paper: as published"
    )
    seed: int = Field(ge=0, description="root of all random streams")
    device: Literal["auto", "cpu", "cuda"] = Field(description="where training runs; not part of a result")
    studies: list[Module] = Field(min_length=1, description="what is built: params/<study>/ for each")


class DatasetEntry(Strict):
    """What every dataset names; a study adds the parameters of its generator."""

    study: Id = Field(description="filled in from the name of the folder")
    language: Module = Field(description="the module of pipeline/languages/ that generates it")


class LabelsEntry(DatasetEntry):
    """A dataset of what the models of a run answer; a study adds which, and on what."""

    teacher: Id = Field(description="the run, or variant of one, whose models answer")
    model: ModelName = Field(description="that of the teacher")
    objective: Module = Field(
        description="the module of pipeline/training/objectives/ that draws the inputs, for whoever learns from them"
    )


class Ensemble(Strict):
    """What every run (an ensemble of replicas of one model) names; a study adds its own fields."""

    study: Id = Field(description="filled in from the name of the folder")
    dataset: Id
    language: Module
    model: ModelName = Field(description="family and module of pipeline/models/, for instance transformer/decoder")
    objective: Module = Field(description="the module of pipeline/training/objectives/")
    stream: Id = Field(description="runs that name the same stream share initialisation and data order")
    replicas: Annotated[int, Field(ge=0, description="models; 0 = none are trained at this scale")]
    steps: Positive = Field(description="optimiser steps")
    batch: Positive = Field(description="sequences per step")
    schedule: Literal["constant", "cosine", "linear"] = Field(description="of the learning rate, to 0 over all steps")
    clip: float = Field(ge=0, description="bound on a replica's gradient norm; 0 = none")
    precision: Literal["fp32", "tf32"]
    log_every: Positive = Field(description="steps between two points of the curves")


class RunEntry(Ensemble):
    """A run at one learning rate, with Adam."""

    lr: float = Field(gt=0, description="peak learning rate")
    betas: list[Probability] = Field(min_length=2, max_length=2, description="of Adam")
    eps: float = Field(gt=0, description="of Adam")


class GridRunEntry(Ensemble):
    """A run over a grid of learning rates: ``replicas`` models for each, which share initial weights and data
    order with those of the other rates."""

    lr: list[Annotated[float, Field(gt=0)]] = Field(min_length=1, description="peak learning rates")
    optimizer: Literal["adam", "adamw", "sgd", "normalised_sgd"]
    betas: Annotated[list[Probability], Field(min_length=2, max_length=2)] | None = Field(
        None, description="of Adam and AdamW; of no other optimizer"
    )
    eps: Annotated[float, Field(gt=0)] | None = Field(None, description="of Adam and AdamW; of no other optimizer")

    @model_validator(mode="after")
    def _settings_of_adam(self) -> Self:
        adam = self.optimizer in ("adam", "adamw")
        if not (adam == (self.betas is not None) == (self.eps is not None)):
            raise ValueError("betas and eps must be there exactly for optimizers 'adam' and 'adamw'")
        if len(set(self.lr)) < len(self.lr):
            raise ValueError("lr lists a rate twice")
        return self


class AveragedRunEntry(GridRunEntry):
    """A run over a grid of learning rates with weight decay, a warm-up, and moving averages of the weights."""

    weight_decay: Annotated[float, Field(ge=0)] = Field(description="of AdamW; 0 for other optimizers")
    warmup: Annotated[int, Field(ge=0)] = Field(description="steps in which the rate rises to its peak")
    floor: Annotated[float, Field(ge=0, lt=1)] = Field(description="where a cosine ends, as a share of the peak rate")
    averages: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        description="decays of exponential moving averages of the weights that are kept beside them"
    )

    @model_validator(mode="after")
    def _settings_of_adamw(self) -> Self:
        if self.weight_decay and self.optimizer != "adamw":
            raise ValueError(f"weight_decay {self.weight_decay} is of adamw alone, not of {self.optimizer}")
        if self.warmup >= self.steps:
            raise ValueError(f"warmup {self.warmup} must be less than the steps, {self.steps}")
        if len(set(self.averages)) < len(self.averages):
            raise ValueError("averages lists a decay twice")
        return self


class TheoryEntry(Strict):
    """What every theory check names; a study adds its sizes."""

    study: Id = Field(description="filled in from the name of the folder")
    module: Module = Field(description="the module of pipeline/studies/<study>/theory/")


class ExperimentEntry(Strict):
    """What every experiment names: what it reads, the module that analyses and draws it, and what it makes."""

    study: Id = Field(description="filled in from the name of the folder")
    module: Module = Field(description="the module of the study's analysis/ and figures/")
    runs: list[Id] = Field(description="entries of runs whose models are analysed")
    datasets: list[Id] = Field(description="entries of datasets that the analysis reads")
    theory: list[Id] = Field(description="theory entries that the figures read")
    beside: list[Id] = Field(description="other experiments whose tables the figures read")
    tables: list[Module] = Field(description="made by the analysis; none: there is no analysis")
    figures: list[Module] = Field(description="functions of figures/<module>.py")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name in ("runs", "datasets", "theory", "beside", "tables", "figures"):
            listed = getattr(self, name)
            if len(set(listed)) < len(listed):
                raise ValueError(f"{name} lists a name twice")
        if not self.tables and not self.figures:
            raise ValueError("an experiment makes at least one table or figure")
        if self.tables == [] and (self.runs or self.datasets):
            raise ValueError("runs and datasets are read by an analysis, which needs tables")
        return self
