"""Identical, equal within tolerance, or different."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.audit import hashing
from pipeline.audit.compare import (
    DIFFERENT,
    IDENTICAL,
    NOT_COMPARED,
    ROUNDING,
    TRAINING,
    WITHIN,
    Comparison,
    compare,
)
from pipeline.store import checkpoints, tables

TOLERANCE = ROUNDING.share
TABLE = pl.DataFrame(
    {
        "run": ["a", "b"],
        "n": [3, 4],
        "value": [1.0, None],
        "map": [[0.25, 0.75], [1.0]],
        "ids": [[1, 2], [3]],
        "reason": ["value 0.6214 > 0.5", "lower end -1e-05, not > 0"],
        "params_hash": ["x", "x"],
    }
)
HEADER = {"run": "a", "params_hash": "x", "diverged": {}}
ARRAYS = {"w": np.ones((2, 3), dtype=np.float32), "b": np.full(2, TOLERANCE), "table": np.arange(4)}
CLAIMS = {"1": {"verdict": "holds", "gates": {"g": {"value": 0.5, "n": 3, "lo": None}}}}


def built(
    tmp_path: Path, name: str, write: Callable[[Path, Any], None], ours: Any, rebuilt: Any
) -> Comparison:
    for folder, content in (("ours", ours), ("rebuilt", rebuilt)):
        (tmp_path / folder).mkdir(exist_ok=True)
        write(tmp_path / folder / name, content)
    return compare(Path(name), tmp_path / "ours", tmp_path / "rebuilt", ROUNDING)


def table(tmp_path: Path, rebuilt: pl.DataFrame) -> Comparison:
    return built(tmp_path, "t.parquet", lambda path, frame: tables.store(frame, path), TABLE, rebuilt)


def test_the_same_bytes_are_identical(tmp_path: Path) -> None:
    assert table(tmp_path, TABLE) == Comparison("t.parquet", IDENTICAL)


@pytest.mark.parametrize(
    ("changed", "column"),
    [
        (pl.col("value") * (1 + TOLERANCE / 2), "value"),
        (pl.col("map").list.eval(pl.element() * (1 - TOLERANCE / 2)), "map"),
    ],
)
def test_last_bits_are_within_tolerance(changed: pl.Expr, column: str, tmp_path: Path) -> None:
    comparison = table(tmp_path, TABLE.with_columns(changed))
    assert (comparison.state, comparison.column) == (WITHIN, column)
    assert comparison.difference == pytest.approx(TOLERANCE / 2, rel=1e-2)
    assert comparison.tolerance == TOLERANCE and comparison.reason
    assert (
        compare(Path("t.parquet"), tmp_path / "ours", tmp_path / "rebuilt", TRAINING).reason
        != comparison.reason
    )


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (pl.col("value") * (1 + 2 * TOLERANCE), ""),
        (pl.col("value").fill_null(0.0), "value is not defined in other places"),
        (pl.col("n") + 1, "n differs, first in row 0: 3 here, 4 rebuilt"),
        (pl.col("run").reverse(), "run differs, first in row 0"),
        (pl.col("ids").list.eval(pl.element() + 1), "ids differs"),
        (pl.col("map").list.head(1), "length of its lists"),
        (pl.col("reason").str.replace(">", "<"), "reason differs"),
        (pl.lit("y").alias("params_hash"), "other parameters"),
        (pl.col("n").cast(pl.Float64), "the columns differ: n"),
        (pl.lit(1).alias("new"), "the columns differ: new"),
    ],
)
def test_what_must_be_equal(changed: pl.Expr, text: str, tmp_path: Path) -> None:
    comparison = table(tmp_path, TABLE.with_columns(changed))
    assert comparison.state == DIFFERENT
    assert text in comparison.text
    if not text:
        assert (comparison.column, comparison.tolerance) == ("value", TOLERANCE)


def test_a_value_near_zero_is_judged_beside_the_largest(tmp_path: Path) -> None:
    """It is the difference of larger ones; but a small value among larger ones is not forgiven anything."""
    for value, state in ((1e-9, WITHIN), (1e-2 * (1 + 1e-4), DIFFERENT)):
        ours, theirs = ({"x": [1.0, base]} for base in (0.0 if value < 1e-3 else 1e-2, value))
        comparison = built(
            tmp_path, "z.parquet", lambda p, columns: tables.store(pl.DataFrame(columns), p), ours, theirs
        )
        assert comparison.state == state


def test_rows_and_footers_must_be_equal(tmp_path: Path) -> None:
    assert table(tmp_path, TABLE.head(1)).text == "2 rows here, 1 rebuilt"
    comparison = built(
        tmp_path, "u.parquet", lambda path, meta: tables.store(TABLE, path, meta), {}, {"vocabulary": "[]"}
    )
    assert (comparison.state, comparison.text) == (DIFFERENT, "the entries of the footer differ")


def test_numbers_within_a_reason_stand_in_columns_of_their_own(tmp_path: Path) -> None:
    changed = TABLE.with_columns(pl.col("reason").str.replace("0.6214", "0.6215", literal=True))
    assert table(tmp_path, changed).state == WITHIN


def test_a_damaged_table_is_different(tmp_path: Path) -> None:
    table(tmp_path, TABLE)
    path = tmp_path / "ours/t.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    comparison = compare(Path("t.parquet"), tmp_path / "ours", tmp_path / "rebuilt", ROUNDING)
    assert comparison.state == DIFFERENT and "truncated or damaged" in comparison.text


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    assert compare(Path("t.parquet"), tmp_path, tmp_path, ROUNDING).state == NOT_COMPARED


@pytest.mark.parametrize(
    ("arrays", "header", "state"),
    [
        ({"w": ARRAYS["w"] * np.float32(1 + TOLERANCE / 2)}, {}, WITHIN),
        ({"w": ARRAYS["w"] * np.float32(1 + 2 * TOLERANCE)}, {}, DIFFERENT),
        ({"b": ARRAYS["b"] * 1.5}, {}, WITHIN),
        ({"w": ARRAYS["w"].T}, {}, DIFFERENT),
        ({"table": ARRAYS["table"] + 1}, {}, DIFFERENT),
        ({"more": ARRAYS["w"]}, {}, DIFFERENT),
        ({}, {"diverged": {"0": 7}}, DIFFERENT),
    ],
)
def test_checkpoints(
    arrays: dict[str, np.ndarray], header: dict[str, Any], state: str, tmp_path: Path
) -> None:
    comparison = built(
        tmp_path, "m.safetensors", lambda path, both: checkpoints.write(path, *both),
        (ARRAYS, HEADER), (ARRAYS | arrays, HEADER | header),
    )  # fmt: skip
    assert comparison.state == state


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ("0.5", str(0.5 * (1 + TOLERANCE / 2)), WITHIN),
        ("0.5", "0.6", DIFFERENT),
        ("0.5", "null", DIFFERENT),
        ('"n": 3', '"n": 4', DIFFERENT),
        ("holds", "fails", DIFFERENT),
        ('"lo"', '"hi"', DIFFERENT),
    ],
)
def test_claims_as_metrics(old: str, new: str, state: str, tmp_path: Path) -> None:
    ours = json.dumps(CLAIMS)
    comparison = built(
        tmp_path, "claims.json", lambda path, text: path.write_text(text), ours, ours.replace(old, new)
    )
    assert comparison.state == state


# --- pictures -------------------------------------------------------------------------------------


def figure(folder: Path, values: list[float], title: str = "A", picture: bytes = b"1") -> None:
    folder.mkdir()
    tables.store(pl.DataFrame({"x": values}), folder / "f.parquet")
    name = f"data-{hashing.hashlib.md5(str(values).encode()).hexdigest()}"
    rows = [{"x": value} for value in values]
    (folder / "f.vl.json").write_text(json.dumps({"title": title, "data": name, "datasets": {name: rows}}))
    (folder / "f.png").write_bytes(picture)


@pytest.mark.parametrize(
    ("rebuilt", "recorded", "state", "text"),
    [
        ({"values": [1.0, 2.0 + 1e-9], "picture": b"2"}, b"1", WITHIN, "judged by its data"),
        ({"values": [1.0, 2.0], "picture": b"2"}, b"1", WITHIN, "which are identical"),
        ({"values": [1.0, 3.0], "picture": b"2"}, b"1", DIFFERENT, "judged by its data"),
        (
            {"values": [1.0, 2.0], "picture": b"2", "title": "B"},
            b"1",
            DIFFERENT,
            "title differs: A here, B rebuilt",
        ),
        ({"values": [1.0, 2.0], "picture": b"2"}, b"0", DIFFERENT, "not the picture that dvc.lock records"),
    ],
)
def test_a_picture_is_judged_by_what_it_shows(
    rebuilt: dict[str, Any], recorded: bytes, state: str, text: str, tmp_path: Path
) -> None:
    figure(tmp_path / "ours", [1.0, 2.0])
    figure(tmp_path / "rebuilt", **rebuilt)
    (tmp_path / "recorded").write_bytes(recorded)
    md5 = hashing.md5(tmp_path / "recorded")
    comparison = compare(Path("f.png"), tmp_path / "ours", tmp_path / "rebuilt", ROUNDING, md5)
    assert comparison.state == state
    assert text in comparison.text


def test_data_sets_of_a_chart_are_matched_by_their_use(tmp_path: Path) -> None:
    """Not by their names, which are hashes of their rows, nor by the order of these."""

    def write(path: Path, names: tuple[str, str]) -> None:
        first, second = (f"data-{name * 32}" for name in names)
        layers = [{"data": {"name": first}}, {"data": {"name": second}}]
        datasets = {first: [{"x": 1.0}], second: [{"x": 2.0}]}
        path.write_text(json.dumps({"layer": layers, "datasets": datasets}, sort_keys=True))

    comparison = built(tmp_path, "f.vl.json", write, ("a", "b"), ("d", "c"))
    assert (comparison.state, comparison.text) == (WITHIN, "the same values in other bytes")
