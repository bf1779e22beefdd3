"""What params/toy/ may say."""

from __future__ import annotations

from pipeline.params import DatasetEntry, ExperimentEntry, LabelsEntry, Positive, RunEntry, Strict, TheoryEntry


class Numbers(DatasetEntry):
    rows: Positive


Dataset = Numbers | LabelsEntry


class Run(RunEntry):
    weights: Positive


class Theory(TheoryEntry):
    size: Positive


Experiment = ExperimentEntry


class Analysis(Strict):
    offset: float


class Claims(Strict):
    tolerance: float
