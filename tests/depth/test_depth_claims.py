"""Claims of the depth study read the right rows, say what is missing, and fail where they should."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import depth_tables
import polars as pl
import pytest

from pipeline.store import tables
from pipeline.studies.depth import claims
from pipeline.studies.depth.claims.theory import CONSTRUCTIONS, IMPOSSIBLE
from pipeline.studies.depth.names import (
    CONTEXTUAL,
    CONTEXTUAL_PUBLISHED,
    FROZEN,
    GENERALIZATION,
    LIKENESS,
    MEMORIZATION,
    ONE_LAYER,
    REASONING,
    SIZES,
    TWO_LAYERS_HEADS,
)
from schemas.claims import CORRECTED, FAILS, HOLDS, NOT_RUN, OWN, STATED, UNDECIDED, Claims

TABLES = depth_tables.every()
PUBLISHED_SETTING = [
    *(f"{gate}{start}{share}" for start in ("", ", published start")
      for gate, share in (("L=3", ""), ("L=2", ""), ("L=3", ", share"))),
    "L=2, 2l heads", "L=1, uniform start",
]  # fmt: skip
CHECKS = {
    "memorize-all-3-4": 1.0, "memorize-100": 1.0, "copy-match-all": 1.0, "copy-match-column": 0.0, "copy-match-4": 1.0,
    "parse-map-all-2": 1.0, "parse-copy-match-2-2": 1.0, "nested-all": 1.0, "nested-3": 1.0, "nested-3-merged": 0.5,
    "reasoning-residual-h1": 1e-16, "reasoning-residual-h2": 1e-15, "reasoning-classifier-h1": 0.0,
    "reasoning-share-h1": 0.75, "templates-residual-h1": 1e-16, "templates-classifier-h1": 0.0,
    "softmax-residual-reasoning": 1e-15, "softmax-classifier-templates": 0.0, "softmax-solves-h2": 1.0,
}  # fmt: skip


def context(scale: str, checks: dict[str, float] | None = None, **replaced: pl.DataFrame) -> Any:
    theory = pl.DataFrame({"check": list(checks or CHECKS), "measured": list((checks or CHECKS).values())})
    return SimpleNamespace(
        table=(TABLES | replaced).__getitem__, theory=lambda: theory, study="depth", scale=scale, params_hash="0" * 32,
        settings=SimpleNamespace(close=0.02),
    )  # fmt: skip


def judge(
    scale: str = "paper", checks: dict[str, float] | None = None, **replaced: pl.DataFrame
) -> pl.DataFrame:
    frame = claims.judge(context(scale, checks, **replaced))
    tables.validate(frame, Claims, "claims")
    return frame


def verdicts(found: pl.DataFrame) -> dict[tuple[str, str], str]:
    return {(row["claim"], row["gate"]): row["verdict"] for row in found.iter_rows(named=True)}


def changed(name: str, run: str, column: str, value: float, **where: str) -> dict[str, pl.DataFrame]:
    """The table ``name`` with one measure of one run changed, and its interval with it."""
    rows = pl.all_horizontal(pl.col("run") == run, *(pl.col(key) == label for key, label in where.items()))
    columns = [column, *(["lo", "hi"] if column == "value" else [])]
    new = [pl.when(rows).then(pl.lit(value)).otherwise(pl.col(each)).alias(each) for each in columns]
    return {name: TABLES[name].with_columns(new)}


def test_tables_are_those_of_the_study() -> None:
    from schemas.depth.tables import SCHEMAS

    for name, frame in TABLES.items():
        tables.validate(frame, SCHEMAS[name], name)


def test_everything_is_reproduced_where_everything_is() -> None:
    """The tables here are at the middle setting of contextual generalization, l=3 and k=2."""
    frame = judge("quick")
    assert frame["claim"].unique(maintain_order=True).to_list() == [str(n) for n in range(1, 10)]
    untested = frame.filter(pl.col("verdict") != HOLDS)
    assert set(untested["verdict"]) == {NOT_RUN}
    assert untested["gate"].to_list() == [*PUBLISHED_SETTING, "L=4 over L=3", "L=4 over L=3, published start"]
    assert set(untested["reason"]) == {"the runs at this scale have the other setting of l and k"}


def test_the_published_size_is_judged_where_runs_have_it() -> None:
    longer = TABLES["accuracy"].with_columns(l=pl.lit(5, pl.Int8))
    for scale in ("quick", "paper"):
        outcomes = verdicts(judge(scale, accuracy=longer))
        assert (
            {outcomes["4", gate] for gate in PUBLISHED_SETTING} == {outcomes["5", "L=4 over L=3"]} == {HOLDS}
        )
        assert outcomes["4", "middle setting, L=3"] == NOT_RUN


@pytest.mark.parametrize(
    ("gate", "replaced"),
    [
        (("1", "L=1"), changed("accuracy", MEMORIZATION[1], "value", 0.98)),
        (("2", "L=2"), changed("accuracy", REASONING[2], "value", 0.98, among="outputs")),
        (("3", "L=2"), changed("accuracy", GENERALIZATION[2], "value", 0.98, split="unseen_combination")),
        (("1", "L=1, N above the width"), changed("accuracy", SIZES, "value", 0.98)),
        (("1", "frozen attention"), changed("accuracy", FROZEN[MEMORIZATION[1]], "value", 1.0)),
        (("1", "frozen attention, N above the width"), changed("accuracy", FROZEN[SIZES], "value", 1.0)),
        (
            ("3", "L=2, unseen tokens"),
            changed("accuracy", GENERALIZATION[2], "value", 0.63, split="unseen_token"),
        ),
        (
            ("3", "L=2, one token"),
            changed("accuracy", GENERALIZATION[2], "value", 0.5, split="unseen_repetition"),
        ),
        (
            ("2", "L=1, uniform start"),
            changed("accuracy", ONE_LAYER["ic_qa"], "value", 0.31, among="context"),
        ),
        (
            ("3", "L=1, uniform start"),
            changed("accuracy", ONE_LAYER["tm"], "value", 0.26, split="unseen_combination"),
        ),
        (
            ("4", "middle setting, L=3, published start"),
            changed("accuracy", CONTEXTUAL_PUBLISHED[3], "value", 0.49, among="outputs"),
        ),
        (
            ("4", "middle setting, L=2, 2l heads"),
            changed("accuracy", TWO_LAYERS_HEADS, "value", 0.61, among="context"),
        ),
        (("4", "middle setting, L=3"), changed("accuracy", CONTEXTUAL[3], "value", 0.94, among="outputs")),
        (("4", "middle setting, L=2"), changed("accuracy", CONTEXTUAL[2], "value", 0.61, among="context")),
        (("9", "layer 2"), changed("agreement", REASONING[2], "right_example", 0.94)),
    ],
)
def test_a_claim_fails_where_its_run_does(gate: tuple[str, str], replaced: dict[str, pl.DataFrame]) -> None:
    outcomes = verdicts(judge(**replaced))
    assert [key for key, verdict in outcomes.items() if verdict == FAILS] == [gate]


def test_one_layer_below_chance_is_what_the_theorem_says() -> None:
    frame = judge(**changed("accuracy", ONE_LAYER["tm"], "value", 0.05, split="unseen_combination"))
    assert verdicts(frame)["3", "L=1, uniform start"] == HOLDS


def test_a_median_hides_no_starts_that_fail() -> None:
    """The interval is that of a share of models: five of five do not yet show that more than half do."""
    columns = {"share": 1.0, "share_lo": 0.478, "share_hi": 1.0}
    this = pl.col("run") == REASONING[2]
    new = [
        pl.when(this).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        for name, value in columns.items()
    ]
    outcomes = verdicts(judge(accuracy=TABLES["accuracy"].with_columns(new)))
    assert outcomes["2", "L=2"] == HOLDS and outcomes["2", "L=2, share"] == UNDECIDED


def test_what_is_ours_is_not_counted_as_published() -> None:
    kinds = dict(judge().select(pl.concat_str("claim", "gate", separator=" "), "kind").iter_rows())
    start = "4 middle setting, L=3"
    assert (kinds[start], kinds[f"{start}, published start"]) == (CORRECTED, STATED)
    assert {kind for gate, kind in kinds.items() if "share" in gate or "frozen" in gate} == {OWN}


def test_a_significant_correlation_of_the_wrong_sign_is_none() -> None:
    opposite = TABLES["contrasts"].with_columns(value=-pl.col("value"), lo=-pl.col("hi"), hi=-pl.col("lo"))
    outcomes = verdicts(judge(contrasts=opposite))
    assert outcomes["6", "SC, steps"] == outcomes["6", "SC, p"] == FAILS


@pytest.mark.parametrize(
    ("contrast", "column", "value", "gate"),
    [
        ("heads of one layer", "p", 0.06, ("6", "SC, p")),
        ("heads of two layers, ic_qa", "value", 0.03, ("6", "IC-QA, accuracy")),
        ("heads of two layers, tm", "value", 0.03, ("6", "TM, accuracy")),
        ("four layers against three", "value", 1.0, ("5", "middle setting, L=4 over L=3")),
        (
            "four layers against three, published start",
            "value",
            1.0,
            ("5", "middle setting, L=4 over L=3, published start"),
        ),
        (LIKENESS[2], "value", -0.1, ("9", "templates, layer 2")),
    ],
)
def test_comparisons_fail(contrast: str, column: str, value: float, gate: tuple[str, str]) -> None:
    columns = [column, *(["lo", "hi"] if column == "value" else [])]
    this = pl.col("contrast") == contrast
    new = [pl.when(this).then(pl.lit(value)).otherwise(pl.col(each)).alias(each) for each in columns]
    outcomes = verdicts(judge(contrasts=TABLES["contrasts"].with_columns(new)))
    assert [key for key, verdict in outcomes.items() if verdict == FAILS] == [gate]


@pytest.mark.parametrize(
    ("name", "theorem"), [("memorize-100", "T1"), ("copy-match-4", "T3"), ("nested-3", "T9")]
)
def test_one_wrong_input_is_enough(name: str, theorem: str) -> None:
    outcomes = verdicts(judge(checks=CHECKS | {name: 0.999}))
    assert [key for key, verdict in outcomes.items() if verdict == FAILS] == [("7", theorem)]


@pytest.mark.parametrize(
    ("name", "value", "gate"),
    [
        ("reasoning-residual-h2", 1e-8, "T2, residual"),
        ("templates-classifier-h1", 1.0, "T4, classifiers"),
        ("softmax-residual-reasoning", 1.0, "T8, residual"),
    ],
)
def test_one_model_that_can_is_enough(name: str, value: float, gate: str) -> None:
    outcomes = verdicts(judge(checks=CHECKS | {name: value}))
    assert [key for key, verdict in outcomes.items() if verdict == FAILS] == [("8", gate)]


def test_what_is_missing_is_said() -> None:
    nothing = {name: TABLES[name].clear() for name in ("accuracy", "contrasts", "agreement")}
    frame = judge(checks={"other": 0.0}, **nothing)
    assert set(frame["verdict"]) == {NOT_RUN}
    assert frame.height == judge().height == 39 + len(CONSTRUCTIONS) + 2 * len(IMPOSSIBLE)
    reasons = dict(frame.select("gate", "reason").iter_rows())
    assert reasons["L=3"] == "depth-ic-tm-l3 trains nothing at this scale"
    assert reasons["T1"] == "no theory check has a name like ^memorize-"
    undefined = TABLES["contrasts"].with_columns(value=pl.lit(None, pl.Float64), n_censored=8)
    reasons = dict(judge(contrasts=undefined).select("gate", "reason").iter_rows())
    assert reasons["middle setting, L=4 over L=3"].endswith("not defined, 8 of 8 models never got to 95%")
    undefined = TABLES["contrasts"].with_columns(value=pl.lit(None, pl.Float64))
    reasons = dict(judge(contrasts=undefined).select("gate", "reason").iter_rows())
    assert reasons["IC-QA, accuracy"] == "heads of two layers, ic_qa: not defined"


def test_the_bar_of_a_guess_needs_a_chance() -> None:
    """That of a run that trains nothing is the chance of the others with as many examples, or no bar is shown."""

    def bars(accuracy: pl.DataFrame) -> dict[tuple[str, str], str]:
        return {key: row["bound"] for key, row in by_gate(judge(accuracy=accuracy)).items()}

    gate = "4", "middle setting, L=2, published start"
    others = TABLES["accuracy"].filter(pl.col("run") != CONTEXTUAL_PUBLISHED[2])
    assert bars(TABLES["accuracy"])[gate] == bars(others)[gate] == "value <= 0.6"
    none = bars(TABLES["accuracy"].clear())
    assert {none[gate], none["2", "L=1, uniform start"], none["3", "L=1, uniform start"]} == {""}


def test_nothing_is_published_in_numbers() -> None:
    """The figures of the source show shapes; chance, our bounds and exactly 1 or 0 are no published numbers."""
    assert judge()["published"].null_count() == judge().height


# A NaN never passes. Which gates read a number is found out by changing it.

READ = ("accuracy", "contrasts", "agreement")
PUBLISHED_SIZE = (
    TABLES["accuracy"].filter(pl.col("run").str.contains("-ic-tm-l")).with_columns(l=pl.lit(5, pl.Int8))
)


@pytest.mark.parametrize(("scale", "accuracy"), [("quick", TABLES["accuracy"]), ("paper", PUBLISHED_SIZE)])
def test_a_nan_in_a_table_fails_every_gate_that_reads_it(scale: str, accuracy: pl.DataFrame) -> None:
    given = {name: TABLES[name] for name in READ} | {"accuracy": accuracy}
    before, read = by_gate(judge(scale, **given)), set()

    def gates(name: str, column: str, rows: range, new: pl.Expr) -> dict[Any, dict[str, Any]]:
        """The gates that are other ones with ``new`` in the cells."""
        here = pl.int_range(pl.len()).is_between(rows.start, rows.stop - 1) & pl.col(column).is_not_null()
        frame = given[name].with_columns(pl.when(here).then(new).otherwise(pl.col(column)).alias(column))
        after = by_gate(claims.judge(context(scale, **given | {name: frame})))
        return {gate: row for gate, row in after.items() if row != before[gate]}

    def search(name: str, column: str, rows: range) -> None:
        readers = gates(name, column, rows, -1 - pl.col(column))
        if readers and len(rows) > 1:
            middle = rows.start + len(rows) // 2
            search(name, column, range(rows.start, middle))
            search(name, column, range(middle, rows.stop))
        elif readers:
            read.update(readers)
            after = gates(name, column, rows, pl.lit(math.nan))
            assert set(after) >= set(readers), (column, given[name].row(rows[0], named=True))
            assert HOLDS not in {row["verdict"] for row in after.values()}, (name, column, rows)

    for name, frame in given.items():
        for column in (column for column, dtype in frame.schema.items() if dtype == pl.Float64):
            search(name, column, range(frame.height))
    tested = {gate for gate, row in before.items() if row["verdict"] != NOT_RUN and gate[0] not in "78"}
    assert tested and tested <= read
    assert {before[gate]["verdict"] for gate in tested} == {HOLDS}


def by_gate(found: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """What is judged."""
    return {(row["claim"], row["gate"]): row for row in found.iter_rows(named=True)}


def test_a_model_without_a_share_fails_the_gate_on_attention() -> None:
    """On writing a table NaN becomes null, and medians pass over it."""
    ours = pl.col("last_layer") & (pl.col("run") == REASONING[2]) & (pl.col("replica") == 0)
    lost = pl.when(ours).then(None).otherwise(pl.col("right_example")).alias("right_example")
    frame = judge(agreement=TABLES["agreement"].with_columns(lost))
    assert verdicts(frame)["9", "layer 2"] == FAILS


@pytest.mark.parametrize("name", CHECKS)
def test_a_nan_in_a_check_fails_every_gate_that_reads_it(name: str) -> None:
    patterns = {("7", theorem): pattern for theorem, (_, _, pattern) in CONSTRUCTIONS.items()}
    for theorem, (_, _, residuals, programs) in IMPOSSIBLE.items():
        patterns["8", f"{theorem}, residual"] = residuals
        patterns["8", f"{theorem}, classifiers"] = programs
    readers = {gate for gate, pattern in patterns.items() if re.search(pattern, name)}
    failed = verdicts(judge(checks=CHECKS | {name: math.nan}))
    assert {gate for gate, verdict in failed.items() if verdict == FAILS} == readers
    covered = {gate for gate, pattern in patterns.items() if any(re.search(pattern, each) for each in CHECKS)}
    assert covered == set(patterns)
