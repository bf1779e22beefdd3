"""What every step on results knows, whether it reads runs (`pipeline.kit.inputs`) or tables
(`pipeline.kit.results`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pipeline.store import tables


@dataclass(frozen=True)
class Context:
    """What every step on results knows: its study, its settings and where its random streams start.

    ``entry`` is the experiment's entry of ``params/<study>/``, with the fields of its own; ``settings`` are those
    that all experiments of the study share (section ``analysis``) or, for claims, the section ``claims``.
    """

    study: str
    experiment: str  # its id; of claims, the study
    entry: Any
    settings: Any
    scale: str
    seed: int
    params_hash: str
    # What is measured of each model of a run, and each gate of a claim, asks for its tables again.
    _tables: tables.Opened = field(default_factory=tables.Opened, init=False, repr=False, compare=False)
