"""A language of numbers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

PATIENCE = 600.0  # seconds


def sample(rows: int, generator: np.random.Generator) -> np.ndarray:
    """(rows,) uniform on [0, 1)."""
    return generator.random(rows)


def wait(job: str) -> None:
    """Wait for a file, if TOY_WAIT=<job>:<file> asks this job to: a test makes the file when it has seen enough.

    That the job waits is told by a file <file>.<job>.
    """
    who, _, file = os.environ.get("TOY_WAIT", "").partition(":")
    if who != job:
        return
    Path(f"{file}.{job}").touch()
    deadline = time.monotonic() + PATIENCE
    while not Path(file).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody made {file}")
        time.sleep(0.05)
