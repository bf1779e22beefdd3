"""What params.yaml may say of the toy study."""

from __future__ import annotations

from pipeline.params import DatasetEntry, Positive, RunEntry, Strict, TheoryEntry


class Dataset(DatasetEntry):
    rows: Positive


class Run(RunEntry):
    weights: Positive


class Theory(TheoryEntry):
    size: Positive


class Analysis(Strict):
    offset: float


class Claims(Strict):
    tolerance: float
