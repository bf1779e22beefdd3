"""The one door to Parquet: what is written has been validated, what is read is validated again.

Files are written by pyarrow with zstd and a fixed row-group size and hold no time stamp: the same
frame gives the same bytes. Between the data and the footer, where readers do not look, lies the
SHA-256 of all other bytes (`_seal`), so that one flipped bit anywhere is noticed on reading.
``write`` is atomic: a reader, a crash or a full disk never meets half a table.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandera.errors
import pandera.polars as pa
import polars as pl
import pyarrow as arrow
import pyarrow.parquet as pq

from pipeline.errors import SandglassError

ROW_GROUP_SIZE = 65_536
SHOWN_ROWS = 3

Schema = type[pa.DataFrameModel]
# Of a study whose datasets are of several kinds: the schema of each kind, which a file names in its metadata.
Schemas = Schema | Mapping[str, Schema]


def write(frame: pl.DataFrame, path: Path, schema: Schemas, metadata: dict[str, str] | None = None) -> None:
    """Validate ``frame`` against ``schema`` and write it to ``path`` (Parquet) in one atomic step.

    ``metadata`` (text to text, for instance a vocabulary as JSON) is kept in the file's footer; its entry ``kind``
    chooses among several schemas.

    Raises SandglassError naming table, column, check and first offending rows; nothing is written then.
    """
    validate(frame, of_kind(schema, metadata or {}, path), str(path))
    store(frame, path, metadata)


def of_kind(schema: Schemas, metadata: Mapping[str, str], path: Path) -> Schema:
    """Return ``schema``, or the one that it holds for the ``kind`` in the metadata of the table at ``path``.

    Raises SandglassError if there is none for it.
    """
    if not isinstance(schema, Mapping):
        return schema
    kind = metadata.get("kind", "")
    if kind not in schema:
        raise SandglassError(f"table {path}: no schema for kind {kind!r}; known: {', '.join(schema)}")
    return schema[kind]


def store(frame: pl.DataFrame, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a frame without a schema of its own (what a figure shows, taken from validated tables)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(_encode(frame, metadata or {}))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def lists(values: np.ndarray, lengths: np.ndarray) -> pl.Series:
    """Return a column of lists: ``values`` (one-dimensional) cut into lists of ``lengths``, one after another."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    column = pl.from_arrow(arrow.LargeListArray.from_arrays(arrow.array(ends), arrow.array(values)))
    assert isinstance(column, pl.Series)
    return column


def conform(frames: Iterable[pl.DataFrame], schema: Schema, **stamp: str) -> pl.DataFrame:
    """Return ``frames`` below each other with the columns, order and types of ``schema``.

    The constant columns of ``stamp`` are added; NaN becomes null. Without frames, it is a table without rows.
    """
    dtypes = {column: field.dtype.type for column, field in schema.to_schema().columns.items()}
    own = [column for column in dtypes if column not in stamp]
    typed = [frame.select(pl.col(column).cast(dtypes[column]) for column in own) for frame in frames]
    frame = pl.concat([pl.DataFrame(schema={column: dtypes[column] for column in own}), *typed])
    stamped = frame.with_columns(pl.selectors.float().fill_nan(None)).with_columns(
        pl.lit(value).alias(key) for key, value in stamp.items()
    )
    return stamped.select(*dtypes)


def read(path: Path, schema: Schemas) -> pl.DataFrame:
    """Read the table at ``path`` and validate it.

    Raises SandglassError if the file is missing, has lost or changed a single bit, or breaks ``schema``.
    """
    table = _load(path)
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    validate(frame, of_kind(schema, _metadata(table), path), str(path))
    return frame


class Opened:
    """The tables that were opened: each is read and validated once, however often it is asked for."""

    def __init__(self) -> None:
        self._frames: dict[Path, pl.DataFrame] = {}

    def read(self, path: Path, schema: Schemas) -> pl.DataFrame:
        """Return the table at ``path``; raises SandglassError as `read` does when it is first opened."""
        if path not in self._frames:
            self._frames[path] = read(path, schema)
        return self._frames[path]


def read_metadata(path: Path) -> dict[str, str]:
    """Return the text entries that ``write`` put in the footer of the table at ``path``."""
    return _metadata(_load(path))


def _metadata(table: arrow.Table) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}


def validate(frame: pl.DataFrame, schema: Schema, name: str) -> None:
    """Check an eager frame (pandera checks lazy ones for their columns only) or raise SandglassError."""
    try:
        schema.validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as error:
        raise SandglassError(_describe(error.failure_cases, frame, name)) from None


def _encode(frame: pl.DataFrame, metadata: dict[str, str]) -> bytes:
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    sink = io.BytesIO()
    table = table.replace_schema_metadata(dict(sorted(metadata.items())))
    pq.write_table(table, sink, compression="zstd", row_group_size=ROW_GROUP_SIZE)
    return _seal(sink.getvalue())


def _load(path: Path) -> arrow.Table:
    if not path.is_file():
        raise SandglassError(f"table {path} is missing; make it with: snakemake {path}")
    try:
        # Not pq.read_table: it leaves threads behind, and a process that ends at once may abort with them
        # (apache/arrow issues 34314 and 50482).
        return pq.ParquetFile(arrow.BufferReader(_unseal(path.read_bytes()))).read(use_threads=False)
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise SandglassError(
            f"table {path} is truncated or damaged ({reason}); delete it and run snakemake again"
        ) from None


def _seal(content: bytes) -> bytes:
    """Put the digest of a Parquet file between its data and its footer."""
    cut = len(content) - _tail(content)
    return content[:cut] + hashlib.sha256(content).digest() + content[cut:]


def _unseal(sealed: bytes) -> bytes:
    """Return the file without its digest. Raises ValueError if the digest is missing or does not match."""
    cut = len(sealed) - _tail(sealed)
    seal = slice(max(cut - hashlib.sha256().digest_size, 0), max(cut, 0))
    content = sealed[: seal.start] + sealed[seal.stop :]
    if hashlib.sha256(content).digest() != sealed[seal]:
        raise ValueError("its checksum does not match")
    return content


def _tail(content: bytes) -> int:
    """Return how many bytes the footer, its length (4, little-endian) and the closing magic number take."""
    return int.from_bytes(content[-8:-4], "little") + 8


def _describe(cases: pl.DataFrame, frame: pl.DataFrame, name: str) -> str:
    """Return one line: table, column, check, first offending rows, and how many more failures there are."""
    first = cases.row(0, named=True)
    same = cases.filter((pl.col("column") == first["column"]) & (pl.col("check") == first["check"]))
    shown = []
    for case in same.head(SHOWN_ROWS).iter_rows(named=True):
        row = case["index"]
        where = f"row {row}: " if row is not None else ""
        shown.append(f"{where}{case['failure_case']}")
    others = cases.height - min(same.height, SHOWN_ROWS)
    more = f" (and {others} more failures)" if others else ""
    return (
        f"table {name}: column {first['column']!r} breaks {first['check']!r} "
        f"({frame.height} rows): {'; '.join(shown)}{more}"
    )
