"""What params/toy.yaml may say."""

from __future__ import annotations

from pipeline.params import DatasetEntry, ExperimentEntry, Positive, RunEntry, Strict, TheoryEntry


class Dataset(DatasetEntry):
    rows: Positive


class Run(RunEntry):
    weights: Positive


class Theory(TheoryEntry):
    size: Positive


Experiment = ExperimentEntry


class Analysis(Strict):
    offset: float


class Claims(Strict):
    tolerance: float
