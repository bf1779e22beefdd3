"""The door to Parquet: validated both ways, same bytes for the same frame, nothing half-written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandera.polars as pa
import polars as pl
import pytest
from pandera.api.polars.types import PolarsData

from pipeline.errors import SandglassError
from pipeline.store import tables


class Schema(pa.DataFrameModel):
    """A key, a bounded number, and a list column with a check on its elements."""

    key: pl.Int32 = pa.Field(ge=0)
    share: float = pa.Field(ge=0, le=1)
    tokens: pl.List(pl.Int8)

    class Config:
        strict = True
        unique = ["key"]

    @pa.check("tokens")
    def positive(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key).list.min() > 0)


def frame(rows: int = 5) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "key": pl.Series(range(rows), dtype=pl.Int32),
            "share": rng.random(rows),
            "tokens": pl.Series([[1, 2, 3]] * rows, dtype=pl.List(pl.Int8)),
        }
    )


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "t.parquet"
    tables.write(frame(), path, Schema, {"vocabulary": '["a"]'})
    assert tables.read(path, Schema).equals(frame())
    assert tables.read_metadata(path) == {"vocabulary": '["a"]'}


def test_the_same_frame_gives_the_same_bytes(tmp_path: Path) -> None:
    whole = frame(200_000)
    pieces = pl.concat([whole[:70_000], whole[70_000:]], rechunk=False)
    for name, version in (("a", whole), ("b", pieces)):
        tables.write(version, tmp_path / name, Schema, {"x": "1", "a": "2"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").stat().st_size > 1_000_000


VIOLATIONS = [
    (pl.col("share") + 2.0, "share", "less_than_or_equal_to"),
    (pl.lit(None, dtype=pl.Float64).alias("share"), "share", "nullable"),
    (pl.col("share").cast(pl.Float32), "share", "Float64"),
    (pl.lit(1, dtype=pl.Int32).alias("key"), "key", "unique"),
    (pl.lit([1, 0], dtype=pl.List(pl.Int8)).alias("tokens"), "tokens", "positive"),
    (pl.lit(1).alias("surplus"), "surplus", "column"),
]


@pytest.mark.parametrize(("change", "column", "check"), VIOLATIONS, ids=[v[1] + "-" + v[2] for v in VIOLATIONS])
def test_a_violation_names_table_column_check_and_rows(
    tmp_path: Path, change: pl.Expr, column: str, check: str
) -> None:
    path = tmp_path / "t.parquet"
    with pytest.raises(SandglassError) as error:
        tables.write(frame().with_columns(change), path, Schema)
    text = str(error.value)
    assert str(path) in text
    assert column in text
    assert check in text
    assert "\n" not in text
    assert list(tmp_path.iterdir()) == []


def test_what_breaks_the_schema_is_refused_on_reading_too(tmp_path: Path) -> None:
    class Loose(Schema):
        share: float

    path = tmp_path / "t.parquet"
    tables.write(frame().with_columns(pl.col("share") + 2.0), path, Loose)
    with pytest.raises(SandglassError, match=r"'share' breaks .*row 0: 2\.6"):
        tables.read(path, Schema)


def test_a_missing_table_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(SandglassError, match="is missing; make it with: snakemake"):
        tables.read(tmp_path / "t.parquet", Schema)


def test_a_truncated_table_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    tables.write(frame(), path, Schema)
    whole = path.read_bytes()
    for size in (0, 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(SandglassError, match=r"truncated or damaged .* delete it and run snakemake again"):
            tables.read(path, Schema)


def test_a_flipped_bit_anywhere_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    tables.write(frame(1000), path, Schema)
    whole = bytearray(path.read_bytes())
    rng = np.random.default_rng(1)
    for place in rng.integers(0, len(whole), 500).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(SandglassError, match="truncated or damaged"):
            tables.read(path, Schema)


def test_other_readers_read_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    tables.write(frame(70_000), path, Schema)
    assert pl.read_parquet(path).equals(frame(70_000))


def test_a_failed_write_leaves_the_old_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    tables.write(frame(), path, Schema)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(tables.pq, "write_table", full)
    with pytest.raises(OSError, match="No space"):
        tables.write(frame(9), path, Schema)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


class Conforming(pa.DataFrameModel):
    """What `conform` should give."""

    key: pl.String
    weight: pl.Float64 = pa.Field(nullable=True)
    origin: pl.String


def test_conform_gives_the_columns_and_types_of_the_schema_and_nulls_for_nan() -> None:
    frames = [pl.DataFrame({"weight": [1, 2], "extra": [0, 0], "key": ["a", "b"]})]
    frames.append(pl.DataFrame({"key": ["c"], "weight": [float("nan")]}))
    table = tables.conform(frames, Conforming, origin="x")
    assert table.schema == {"key": pl.String, "weight": pl.Float64, "origin": pl.String}
    assert table.rows() == [("a", 1.0, "x"), ("b", 2.0, "x"), ("c", None, "x")]
    assert tables.conform([], Conforming, origin="x").schema == table.schema
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        tables.conform([pl.DataFrame({"key": ["a"]})], Conforming, origin="x")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are listed on Linux only")
def test_reading_leaves_no_thread_behind(tmp_path: Path) -> None:
    """One of Arrow's, alive when the interpreter ends, turns a success into an abort (status -6)."""
    tables.store(pl.DataFrame({"number": [1, 2]}), tmp_path / "t.parquet")
    code = (
        "import os, pathlib; from pipeline.store import tables; before = set(os.listdir('/proc/self/task')); "
        f"tables.read_metadata(pathlib.Path({str(tmp_path / 't.parquet')!r})); "
        "print(len(set(os.listdir('/proc/self/task')) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_of_several_schemas_the_kind_chooses(tmp_path: Path) -> None:
    class Other(pa.DataFrameModel):
        name: pl.String

    schemas, path = {"numbers": Schema, "names": Other}, tmp_path / "t.parquet"
    tables.write(frame(), path, schemas, {"kind": "numbers"})
    assert tables.read(path, schemas).equals(frame())
    with pytest.raises(SandglassError, match=r"column 'Other'.*: name"):
        tables.write(frame(), path, schemas, {"kind": "names"})
    for metadata in ({"kind": "number"}, {}):
        with pytest.raises(SandglassError, match=r"no schema for kind '(number)?'; known: numbers, names"):
            tables.write(frame(), path, schemas, metadata)
