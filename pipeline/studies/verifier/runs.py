"""From held-out strings to training jobs; training strings are new at every step (Li 2025, section 3.2.1.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import SandglassError
from pipeline.languages import dyck_strings as language
from pipeline.languages import test_cases
from pipeline.studies.verifier.datasets import padded
from pipeline.studies.verifier.names import DOCUMENTS
from pipeline.training.jobs import Header
from schemas.verifier.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.verifier.params import Run

__all__ = ["DATASET_SCHEMA", "prepare"]

HELD = ("id", "ood")  # sets of whole strings that training is watched on


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, held-out strings and an empty embedding table of the training job of one member of a run.

    Raises SandglassError if the dataset has strings of another length, or lacks a held-out set.
    """
    brackets = entry.brackets if entry.task == "strings" else 0
    found = frame["brackets"].unique().to_list()
    if found != [brackets]:
        raise SandglassError(f"dataset {entry.dataset} has strings of {found} brackets, the run of {brackets}")
    wanted = HELD if entry.task == "strings" else (DOCUMENTS,)
    if lacking := {*wanted} - {*frame["set"]}:
        raise SandglassError(f"dataset {entry.dataset} lacks the sets {sorted(lacking)}, which training is watched on")
    spec = {name: getattr(entry, name) for name in ("layers", "heads", "width", "inner")}
    empty = np.zeros((1, 1), np.float32)
    if entry.task == "cases":
        longest = int(frame.filter(set=DOCUMENTS)["tokens"].list.len().to_numpy().max())
        documents = padded(frame.filter(set=DOCUMENTS)["tokens"], longest)[0].astype(np.int8)
        spec["symbols"] = len(test_cases.SIGNS)
        header = Header.grid(entry, seed, spec, {"corpus": entry.corpus.model_dump()})
        return header, {f"held.{DOCUMENTS}": documents}, empty
    data = {f"held.{name}": padded(frame.filter(set=name)["tokens"], brackets + 2)[0].astype(np.int8) for name in HELD}
    spec["symbols"] = language.VOCABULARY
    settings = {name: getattr(entry, name) for name in ("brackets", "p", "q", "max_depth")}
    header = Header.grid(entry, seed, spec, settings | {"held": list(HELD)})
    return replace(header, scheduled_average=entry.average.model_dump()), data, empty
