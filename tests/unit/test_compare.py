"""Identical, equal within tolerance, or different."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandera.polars as pa
import polars as pl
import pytest

from pipeline.audit import hashing
from pipeline.audit.compare import (
    DIFFERENT,
    IDENTICAL,
    INSIDE,
    NOT_COMPARED,
    POINTS,
    ROUNDING,
    TRAINING,
    WITHIN,
    Comparison,
    Tolerance,
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
    tmp_path: Path,
    name: str,
    write: Callable[[Path, Any], None],
    ours: Any,
    rebuilt: Any,
    tolerance: Tolerance = ROUNDING,
    claim: str | None = None,
) -> Comparison:
    for folder, content in (("ours", ours), ("rebuilt", rebuilt)):
        (tmp_path / folder).mkdir(exist_ok=True)
        write(tmp_path / folder / name, content)
    return compare(Path(name), tmp_path / "ours", tmp_path / "rebuilt", tolerance, claim=claim)


def frames(
    tmp_path: Path, ours: pl.DataFrame, rebuilt: pl.DataFrame, tolerance: Tolerance = TRAINING, claim: str | None = None
) -> Comparison:
    return built(tmp_path, "t.parquet", lambda path, frame: tables.store(frame, path), ours, rebuilt, tolerance, claim)


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
    assert compare(Path("t.parquet"), tmp_path / "ours", tmp_path / "rebuilt", TRAINING).reason != comparison.reason


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


@pytest.mark.parametrize(
    ("old", "new", "tolerance", "state"),
    [
        ("0.6214", "0.6215", ROUNDING, WITHIN),  # as far as printing rounds off
        ("0.6214", "0.6217", ROUNDING, DIFFERENT),
        ("0.6214", "0.64", TRAINING, WITHIN),
        ("0.6214", "0.66", TRAINING, DIFFERENT),
        ("-1e-05", "1e-05", TRAINING, DIFFERENT),
        ("value", "median", TRAINING, DIFFERENT),
    ],
)
def test_numbers_within_a_text_are_compared_as_numbers(
    old: str, new: str, tolerance: Tolerance, state: str, tmp_path: Path
) -> None:
    changed = TABLE.with_columns(pl.col("reason").str.replace(old, new, literal=True))
    comparison = frames(tmp_path, TABLE, changed, tolerance)
    assert comparison.state == state
    if state == DIFFERENT:
        assert old[:6] in comparison.text and new[:6] in comparison.text


def test_a_name_must_be_equal_to_the_digit(tmp_path: Path) -> None:
    """Other than a sentence, a text names what is measured: a rate, an arm, a language."""
    rate = pl.DataFrame({"contrast": ["dropout 0.95 - none"], "value": [0.5]})
    other = rate.with_columns(contrast=pl.lit("dropout 0.96 - none"))
    assert frames(tmp_path, rate, other).state == DIFFERENT


@pytest.mark.parametrize(("rebuilt", "state"), [("87.2; 3 of 4", WITHIN), ("92.6; 3 of 4", DIFFERENT)])
def test_a_text_that_prints_a_number_of_its_row_is_judged_by_that(rebuilt: str, state: str, tmp_path: Path) -> None:
    """The value moved inside its interval; what is printed beside it is that value, in percent, or it is not."""
    here, remake = (
        pl.DataFrame({"value": [value], "lo": [0.5], "hi": [0.95], "text": [text]})
        for value, text in ((0.8, "80; 3 of 4"), (0.872, rebuilt))
    )
    expected = INSIDE if state == WITHIN else DIFFERENT
    assert frames(tmp_path, here, remake).state == expected
    counts = remake.with_columns(pl.col("text").str.replace("3 of 4", "4 of 4"))
    assert "4 of 4 rebuilt" in frames(tmp_path, here, counts).text


# --- statistics with intervals --------------------------------------------------------------------

STATISTIC = {"value": 0.44, "lo": -0.31, "hi": 0.88}
LEARNED = {"run": "a", "n": 3, "other": 1.0}


@pytest.mark.parametrize(
    ("rebuilt", "tolerance", "state", "text"),
    [
        ({"value": 0.21, "lo": -0.55, "hi": 0.73}, TRAINING, INSIDE, "a 0.44 [-0.31, 0.88] → 0.21 [-0.55, 0.73]"),
        ({"value": 0.441}, TRAINING, WITHIN, ""),
        ({"value": -0.61, "lo": -0.9, "hi": -0.31}, TRAINING, INSIDE, "1 moved inside their intervals"),
        ({"value": -0.62, "lo": -0.9, "hi": -0.32}, TRAINING, DIFFERENT, "-0.62 [-0.9, -0.32] rebuilt"),
        ({"value": 0.95, "lo": 0.89, "hi": 0.99}, TRAINING, DIFFERENT, ""),
        ({"value": 0.21, "lo": -0.55, "hi": 0.73}, ROUNDING, DIFFERENT, ""),  # the same models were measured
        ({"value": 0.21, "lo": None, "hi": None}, TRAINING, DIFFERENT, "0.21 [none, none] rebuilt"),
        ({"value": 0.21, "lo": -0.55, "hi": 0.73, "other": 1.2}, TRAINING, DIFFERENT, ""),
        ({"value": 0.21, "lo": -0.55, "hi": 0.73, "n": 4}, TRAINING, DIFFERENT, "n differs"),
    ],
)
@pytest.mark.parametrize("names", [("value", "lo", "hi"), ("variation_mean", "ci_lo", "ci_hi"), ("x", "x_lo", "x_hi")])
def test_a_statistic_is_judged_by_its_interval(
    names: tuple[str, ...], rebuilt: dict[str, Any], tolerance: Tolerance, state: str, text: str, tmp_path: Path
) -> None:
    new = dict(zip(STATISTIC, names, strict=True))
    here, remake = (
        pl.DataFrame([row], infer_schema_length=None).cast({"lo": pl.Float64, "hi": pl.Float64}).rename(new)
        for row in (LEARNED | STATISTIC, LEARNED | STATISTIC | rebuilt)
    )
    comparison = frames(tmp_path, here, remake, tolerance)
    assert comparison.state == state
    assert text in comparison.text
    if state == DIFFERENT and not text:
        assert comparison.difference is not None and comparison.difference > tolerance.share


def test_a_number_without_an_interval_may_not_move(tmp_path: Path) -> None:
    here, remake = (pl.DataFrame({"run": ["a"], "value": [value]}) for value in (0.44, 0.21))
    assert frames(tmp_path, here, remake).state == DIFFERENT


def test_each_table_with_an_interval_says_what_it_is_of() -> None:
    """A column ``lo`` or ``ci_lo`` of any study stands beside one of `POINTS`."""
    folder = Path("schemas")
    models = [
        model
        for study in sorted(path.parent.name for path in folder.glob("*/tables.py"))
        for model in vars(importlib.import_module(f"schemas.{study}.tables")).values()
        if isinstance(model, type) and issubclass(model, pa.DataFrameModel)
    ]
    columns = {f"{model.__module__}.{model.__name__}": {*model.to_schema().columns} for model in models}
    having = {name: each for name, each in columns.items() if {"lo", "hi"} <= each or {"ci_lo", "ci_hi"} <= each}
    assert len(having) >= 10
    assert [name for name, each in having.items() if not each & {*POINTS}] == []


# --- claims and theory ----------------------------------------------------------------------------

GATE = {
    "claim": "3",
    "gate": "M1",
    "statement": "More than 0.5 (Figure 10).",
    "bound": "value > 0.5",
    "value": 0.8,
    "lo": 0.6,
    "hi": 0.9,
    "n": 5,
    "excluded": 0,
    "excluded_reason": "",
    "verdict": "holds",
    "size": "inside our interval",
    "replicas_needed": None,
    "reason": "value 0.8 > 0.5; lower end 0.6 > 0.5",
    "params_hash": "x",
}
ALONE = {"gate": "theorem", "value": 0.8, "lo": None, "hi": None, "n": None, "reason": "value 0.8 > 0.5"}
LOOSE = ALONE | {"bound": "value < 100", "value": 6.0, "reason": "value 6 < 100"}
MOVED = {"value": 0.7, "lo": 0.55, "hi": 0.85, "reason": "value 0.7 > 0.5; lower end 0.55 > 0.5"}
TYPES = {
    **dict.fromkeys(("value", "lo", "hi", "published"), pl.Float64),
    **dict.fromkeys(("n", "excluded", "replicas_needed"), pl.Int32),
}


def claims(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([GATE | row for row in rows], schema_overrides=TYPES, infer_schema_length=None)


@pytest.mark.parametrize(
    ("ours", "rebuilt", "state", "text"),
    [
        ({}, MOVED, INSIDE, "3 M1 0.8 [0.6, 0.9] → 0.7 [0.55, 0.85]"),
        ({}, MOVED | {"n": 4}, INSIDE, "3 M1 n 5 → 4"),
        ({}, {"n": 4}, DIFFERENT, "3 M1: n differs"),
        ({"excluded": 1}, {"n": 6, "excluded": 0}, INSIDE, "3 M1 n 5 → 6, 3 M1 excluded 1 → 0"),
        (
            {"excluded": 1, "excluded_reason": "it did not learn"},
            {"n": 6, "excluded": 0, "excluded_reason": ""},
            INSIDE,
            "",
        ),
        (
            {"excluded": 1, "excluded_reason": "it did not learn"},
            {"excluded": 2, "excluded_reason": "it is too far"},
            DIFFERENT,
            "excluded_reason",
        ),
        ({"replicas_needed": 9}, MOVED | {"replicas_needed": 90}, INSIDE, ""),
        ({"replicas_needed": 9}, {"replicas_needed": 90}, DIFFERENT, "replicas_needed"),
        ({}, {"value": 0.81, "reason": "value 0.81 > 0.5; lower end 0.6 > 0.5"}, WITHIN, ""),
        ({}, {"reason": "value 0.8 > 0.5; lower end 0.75 > 0.5"}, DIFFERENT, "0.6 here, 0.75 rebuilt"),
        ({}, {"reason": "value 0.8 > 0.5, lower end 0.6 > 0.5"}, DIFFERENT, "3 M1: reason differs"),
        ({}, {"statement": "More than 0.51 (Figure 10)."}, DIFFERENT, "statement"),
        ({}, {"statement": "More than 0.5 (Figure 11)."}, DIFFERENT, "statement"),
        ({}, {"value": 0.95, "lo": 0.91, "hi": 0.99}, DIFFERENT, "0.95 [0.91, 0.99] rebuilt"),
        ({}, {"verdict": "fails"}, DIFFERENT, "1 turned: 3 M1 holds → fails"),
        ({}, {"size": "outside our interval"}, DIFFERENT, "1 turned: 3 M1 inside our interval → outside"),
        ({}, MOVED | {"params_hash": "y"}, DIFFERENT, "other parameters"),
        (
            ALONE,
            {"value": 0.86, "reason": "value 0.86 > 0.5"},
            INSIDE,
            "1 moved on the same side of their bounds: 3 theorem 0.8 → 0.86",
        ),
        (LOOSE, {"value": 10.0, "reason": "value 10 < 100"}, INSIDE, "3 theorem 6 → 10"),
        (LOOSE, {"value": 12.0, "reason": "value 12 < 100"}, DIFFERENT, "value 6 here, 12 rebuilt"),
        (ALONE, {"value": 0.95, "reason": "value 0.95 > 0.5"}, DIFFERENT, "value 0.8 here, 0.95 rebuilt"),
        (ALONE, {"bound": "value > 0.51", "reason": "value 0.8 > 0.51"}, WITHIN, ""),
        (ALONE, {"bound": "value > 0.7"}, DIFFERENT, "bound 0.5 here, 0.7 rebuilt"),
        (
            ALONE | {"bound": "value <= 1e-09", "value": 2.8e-12, "reason": "value 2.8e-12 <= 1e-09"},
            {"value": 3.2e-12, "reason": "value 3.2e-12 <= 1e-09"},
            WITHIN,
            "",
        ),
        (
            ALONE | {"verdict": "too few models", "value": None, "reason": "-0.04 of 2 models"},
            {"reason": "0.21 of 2 models"},
            INSIDE,
            "3 theorem (not tested)",
        ),
    ],
)
def test_a_gate_of_a_claim(
    ours: dict[str, Any], rebuilt: dict[str, Any], state: str, text: str, tmp_path: Path
) -> None:
    comparison = frames(tmp_path, claims(ours), claims(ours | rebuilt))
    assert comparison.state == state, comparison
    assert text in comparison.text


def test_the_claim_that_was_asked_for_decides(tmp_path: Path) -> None:
    other = {"claim": "4", "gate": "M2"}
    here, remake = claims({}, other), claims(MOVED, other | {"verdict": "fails"})
    assert frames(tmp_path, here, remake).text == "1 turned: 4 M2 holds → fails"
    asked = frames(tmp_path, here, remake, claim="3")
    assert asked.state == INSIDE
    assert asked.text.endswith("claim 3 alone was judged; of other claims 1 turned: 4 M2 holds → fails")
    assert frames(tmp_path, here, remake, claim="4").state == DIFFERENT
    assert frames(tmp_path, here, remake.head(1), claim="3").text == "2 rows here, 1 rebuilt"


CHECK = {
    "theory": "t",
    "check": "residual",
    "statement": "The difference is 0.",
    "size": "n=3",
    "measured": 4e-15,
    "comparison": "<=",
    "bound": 1e-9,
    "tolerance": None,
    "passed": True,
    "form": "",
    "detail": "largest |p - p*| 4.66e-15, shares 0.25, 0.75 of 100",
}
SHARE = {"check": "share", "measured": 0.95, "bound": 0.99, "detail": ""}


@pytest.mark.parametrize(
    ("ours", "rebuilt", "state", "text"),
    [
        ({}, {"measured": 0.0}, WITHIN, ""),
        ({}, {"measured": 9e-12, "detail": CHECK["detail"].replace("4.66e-15", "2.8e-12")}, WITHIN, ""),
        ({}, {"measured": 2e-11}, INSIDE, "1 moved on the same side of their bounds: residual 4e-15 → 2e-11"),
        ({}, {"measured": 2e-10}, DIFFERENT, "residual: measured 4e-15 here, 2e-10 rebuilt"),
        ({}, {"detail": CHECK["detail"].replace("0.75", "0.75001")}, WITHIN, ""),
        ({}, {"detail": CHECK["detail"].replace("0.75", "0.7502")}, DIFFERENT, "0.75 here, 0.7502 rebuilt"),
        ({}, {"detail": CHECK["detail"].replace("100", "101")}, DIFFERENT, "detail differs"),
        ({}, {"detail": CHECK["detail"].replace("shares", "parts")}, DIFFERENT, "detail differs"),
        ({}, {"passed": False, "measured": 1.0}, DIFFERENT, "1 turned: residual passed → failed"),
        ({}, {"size": "n=4"}, DIFFERENT, "size differs"),
        ({}, {"bound": 1e-8}, DIFFERENT, "bound 1e-09 here, 1e-08 rebuilt"),
        (SHARE, {"measured": 0.9500001}, WITHIN, ""),
        (SHARE, {"measured": 0.96}, INSIDE, "share 0.95 → 0.96"),
        (SHARE, {"measured": 0.8}, DIFFERENT, "share: measured 0.95 here, 0.8 rebuilt"),
        (
            SHARE | {"comparison": "within", "bound": 0.0, "tolerance": 1e-9, "measured": 4e-15},
            {"measured": 6e-15},
            WITHIN,
            "",
        ),
    ],
)
def test_a_theory_check_is_judged_beside_its_bound(
    ours: dict[str, Any], rebuilt: dict[str, Any], state: str, text: str, tmp_path: Path
) -> None:
    """It may move where nothing is trained: solvers and ties are decided by last bits as well."""
    # Another check has large numbers: they say nothing about this one.
    large = CHECK | {"check": "large", "comparison": ">=", "measured": 1e9, "bound": 1.0, "detail": ""}
    here, remake = (
        pl.DataFrame([large, row], schema_overrides={"tolerance": pl.Float64}, infer_schema_length=None)
        for row in (CHECK | ours, CHECK | ours | rebuilt)
    )
    comparison = frames(tmp_path, here, remake, ROUNDING)
    assert comparison.state == state, comparison
    assert text in comparison.text


def test_a_column_of_residues_is_zero(tmp_path: Path) -> None:
    """Of a quadrature, for instance; beside larger numbers of the same column a small one counts as they do."""
    for largest, state in ((2.8e-12, WITHIN), (2.8e-5, DIFFERENT)):
        here, remake = (pl.DataFrame({"error": [1e-13, value]}) for value in (largest, 2 * largest))
        assert frames(tmp_path, here, remake, ROUNDING).state == state


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
def test_checkpoints(arrays: dict[str, np.ndarray], header: dict[str, Any], state: str, tmp_path: Path) -> None:
    comparison = built(
        tmp_path,
        "m.safetensors",
        lambda path, both: checkpoints.write(path, *both),
        (ARRAYS, HEADER),
        (ARRAYS | arrays, HEADER | header),
    )
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
    comparison = built(tmp_path, "claims.json", lambda path, text: path.write_text(text), ours, ours.replace(old, new))
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
        ({"values": [1.0, 2.0], "picture": b"2", "title": "B"}, b"1", DIFFERENT, "title differs: A here, B rebuilt"),
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


@pytest.mark.parametrize(
    ("rebuilt", "state"),
    [
        ("standard: ρ = 0.21 [−0.55, 0.73]; 3 of 4 by 12 %.", INSIDE),
        ("standard: ρ = −0.62 [−0.80, −0.32]; 3 of 4 by 12 %.", DIFFERENT),
        ("standard: ρ = 0.44 [−0.31, 0.88]; 3 of 4 by 13 %.", WITHIN),
        ("standard: ρ = 0.44 [−0.31, 0.88]; 4 of 4 by 12 %.", DIFFERENT),
        ("standard: r = 0.44 [−0.31, 0.88]; 3 of 4 by 12 %.", DIFFERENT),
        ("standard: ρ = 0.44 (−0.31, 0.88); 3 of 4 by 12 %.", DIFFERENT),
        ("standard: ρ = 0.44 [−0.31, 0.88]; 3 of 4 by 15 %.", DIFFERENT),
    ],
)
def test_a_description_is_judged_by_its_numbers(rebuilt: str, state: str, tmp_path: Path) -> None:
    here = "standard: ρ = 0.44 [−0.31, 0.88]; 3 of 4 by 12 %."
    comparison = built(
        tmp_path,
        "f.vl.json",
        lambda path, text: path.write_text(json.dumps({"description": text})),
        here,
        rebuilt,
        TRAINING,
    )
    assert comparison.state == state, comparison


@pytest.mark.parametrize(("printed", "state"), [("0.29", INSIDE), ("0.33", DIFFERENT)])
def test_a_description_prints_what_moved_in_the_data(printed: str, state: str, tmp_path: Path) -> None:
    def write(path: Path, row: tuple[dict[str, Any], str]) -> None:
        path.write_text(json.dumps({"description": f"56 tokens: {row[1]}.", "datasets": {"data-0": [row[0]]}}))

    ours = {"value": 0.2497, "lo": 0.2, "hi": 0.4, "label": "0.95"}
    rebuilt = ours | {"value": 0.2855, "lo": 0.21}
    comparison = built(tmp_path, "f.vl.json", write, (ours, "0.25"), (rebuilt, printed), TRAINING)
    assert comparison.state == state, comparison
    renamed = built(tmp_path, "f.vl.json", write, (ours, "0.25"), (ours | {"label": "0.96"}, "0.25"), TRAINING)
    assert renamed.state == DIFFERENT
