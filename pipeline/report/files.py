"""What the report says of files: their md5 and size, taken from the files themselves."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.store import tables


@dataclass
class Files:
    """md5 and size of the files of a work tree, each read once."""

    _known: dict[Path, tuple[str, int]] = field(default_factory=dict)

    def md5(self, path: Path) -> str:
        """Return the md5 of the bytes of the file at ``path``."""
        return self._look(path)[0]

    def size(self, path: Path) -> int:
        """Return the size of the file at ``path`` in bytes."""
        return self._look(path)[1]

    def _look(self, path: Path) -> tuple[str, int]:
        if path not in self._known:
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                raise SandglassError(f"{path} is missing; make it with: snakemake {path}") from None
            self._known[path] = hashlib.md5(content).hexdigest(), len(content)
        return self._known[path]


def identity(params: Params, files: Files) -> str:
    """Return the md5 of all code inputs of all jobs and of the tracked parameters: without a date or a commit."""
    jobs = graph.jobs(params)
    code = {path for job in jobs for path in graph.code(job, params)}
    named = [[str(path), files.md5(path)] for path in sorted(code)]
    text = json.dumps([named, [job.tracked_text(params) for job in jobs]])
    return hashlib.md5(text.encode()).hexdigest()


def read_table(path: Path, schema: tables.Schema, *, pulled: bool) -> pl.DataFrame:
    """Return the table at ``path``, all of its bytes checked.

    A table that was only ``pulled`` is validated. One that was built was validated by this ``schema`` when it was
    written: with another schema it would have been made again. To do that once more took two fifths of the report.

    Raises SandglassError if it is missing, damaged or, pulled, breaks its schema.
    """
    if pulled:
        return tables.read(path, schema)
    tables.read_metadata(path)  # it checks every byte
    return pl.read_parquet(path)
