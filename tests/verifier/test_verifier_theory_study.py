"""Theory checks, tables, claims and figures of what is exact in the verifier study, and the audit of printed
tables."""

from __future__ import annotations

import importlib
import itertools
import json
import statistics
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from spoiling import Checked, assert_no_row_holds
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.kit import evidence, verdicts
from pipeline.languages import constrained
from pipeline.steps.analyse import finished
from pipeline.store import tables
from pipeline.studies.verifier import names, params_theory
from pipeline.studies.verifier.claims import exact as claims
from pipeline.studies.verifier.exact import coin, hidden_parity, vgb
from pipeline.studies.verifier.exact import tokenwise as samplers
from pipeline.studies.verifier.figures import queries as query_figures
from pipeline.studies.verifier.figures import vgb as vgb_figures
from pipeline.studies.verifier.measures import printed as audit
from pipeline.studies.verifier.measures import published
from pipeline.studies.verifier.theory import printed, tokenwise, walk
from schemas.claims import FAILS, HOLDS, NOT_RUN, STATED
from schemas.verifier.tables import SCHEMAS
from schemas.verifier.theory_tables import RANDOM, Published

SEED = 20231210
MODULES: dict[str, Any] = {names.SEARCH: tokenwise, names.WALK: walk, names.PRINTED: printed}
EXPERIMENTS = (names.QUERIES, names.VGB, names.PUBLISHED)
# What the audit finds against captions and text
CONTRADICTED = {"Table 3.10, every setting", "Table 3.9, any layer", "most calls"}


def checked(key: str) -> pl.DataFrame:
    checks: pl.DataFrame = MODULES[key].check(load_study("verifier").theory[key], key, SEED)
    return checks


@pytest.fixture(scope="module")
def made() -> dict[str, pl.DataFrame]:
    """The tables of what is exact, at scale smoke."""
    loaded, found = load_study("verifier"), {}
    for key in EXPERIMENTS:
        entry = loaded.experiments[key]
        module = importlib.import_module(f"pipeline.studies.verifier.analysis.{entry.module}")
        context: Any = SimpleNamespace(
            study="verifier", experiment=key, entry=entry, scale="smoke", seed=SEED, params_hash="0" * 32
        )
        found |= finished(module.analyse(context), SCHEMAS, context)
        assert set(entry.tables) <= set(found)
    return found


def judged(found: dict[str, pl.DataFrame], checks: pl.DataFrame) -> dict[tuple[str, str], tuple[str, str]]:
    """Verdict and kind of each gate."""
    context: Any = SimpleNamespace(table=found.__getitem__, theory=lambda: checks)
    rows = verdicts.table(claims.gates(context), claims.STATEMENTS, "verifier", "quick", "0" * 32)
    return {(row["claim"], row["gate"]): (row["verdict"], row["kind"]) for row in rows.iter_rows(named=True)}


@pytest.fixture(scope="module")
def theory() -> pl.DataFrame:
    return pl.concat([checked(key) for key in MODULES])


# --- theory checks
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", MODULES)
def test_every_check_holds(unspoilt: Checked, key: str) -> None:
    checks = unspoilt(key)
    assert checks.filter(~checks["passed"])["check"].to_list() == []
    assert checks["claim"].is_in(list(claims.STATEMENTS)).all()


PLACES: list[tuple[str, tuple[Any, str], int | None]] = [
    (names.SEARCH, (samplers, "action_level_calls"), None),
    (names.SEARCH, (samplers, "rejection_calls"), None),
    (names.SEARCH, (samplers, "total_variation"), None),
    (names.SEARCH, (hidden_parity, "bayes_value"), None),
    (names.SEARCH, (coin, "accuracy"), None),
    (names.SEARCH, (coin, "calls"), None),
    (names.WALK, (vgb.Tree, "leaf_law"), None),
    (names.WALK, (vgb, "target_law"), None),
    (names.WALK, (vgb, "conductance_bound"), None),
    (names.WALK, (vgb.Tree, "conductance"), None),
    (names.WALK, (vgb, "sinclair_jerrum"), None),
    (names.PRINTED, (audit, "most_calls"), None),
    (names.PRINTED, (audit, "largest_spread"), None),
]


@pytest.mark.parametrize(("key", "place", "parts"), PLACES, ids=[f"{key}-{p[1]}" for key, p, _ in PLACES])
def test_no_row_holds_that_read_an_output_which_is_none(
    unspoilt: Checked, key: str, place: tuple[Any, str], parts: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_no_row_holds(monkeypatch, unspoilt(key), lambda: checked(key), place, 0.7, parts=parts)


# --- tables
# -------------------------------------------------------------------------------------------------------


def test_tables_fit_their_schemas(made: dict[str, pl.DataFrame]) -> None:
    for name, frame in made.items():
        tables.validate(frame, SCHEMAS[name], name)
        assert frame.height, name


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("parity_minimax", "timeout_share", 1.5),
        ("knapsack_instances", "status", "FAIL"),
        ("vgb_nodes", "target", 0.7),
        ("vgb_chain", "leaf_mass", -0.1),
        ("published_verifier", "spread_kind", "std"),
        ("coin_backtrack", "acc_sim", 2.0),
    ],
)
def test_rows_that_do_not_fit_are_refused(made: dict[str, pl.DataFrame], name: str, column: str, value: Any) -> None:
    broken = made[name].with_columns(pl.lit(value, made[name].schema[column]).alias(column))
    with pytest.raises(SandglassError):
        tables.validate(broken, SCHEMAS[name], name)


def test_hidden_parity_has_the_numbers_of_the_chapter(made: dict[str, pl.DataFrame]) -> None:
    table = made["parity_minimax"].filter(searcher=RANDOM).sort("D")
    assert table["mean_queries"].to_list() == [1, 2.25, 4.375]
    assert (table["worst_queries"] == table["mean_queries"]).all()


def test_the_bias_of_tokenwise_rejection_has_the_numbers_of_the_chapter(made: dict[str, pl.DataFrame]) -> None:
    rows = {row["D"]: row for row in made["trs_distribution"].iter_rows(named=True)}
    assert np.isclose(rows[2]["tv_exact"], 1 / 6) and np.isclose(rows[3]["tv_exact"], 0.10714, atol=5e-6)
    assert np.allclose([rows[D]["tv_first_leaf"] for D in (2, 3)], [0.0667, 0.0446], atol=5e-5)
    assert np.isclose(rows[2]["leaf_mass"], 0.2143, atol=5e-5)


def test_errors_grow_as_the_chapter_says(made: dict[str, pl.DataFrame]) -> None:
    rows = made["vgb_amplification"].filter(family="bias", eps=0.3).sort("H")
    assert rows["H"].to_list() == [2, 4, 10, 160, 320]
    assert np.allclose(rows["tv_alrs"][:4], [0.1283, 0.1882, 0.3001, 0.8987], atol=5e-5)
    assert np.allclose(rows["tv_first"][:3], [0.0652, 0.0707, 0.0795], atol=5e-5)
    assert np.allclose(rows["kl_alrs"][2:], [0.306, 5.411, 10.855], atol=5e-4)
    assert np.allclose(rows["kl_first"][2:], [0.01889, 0.02188, 0.02198], atol=5e-6)


def test_exact_values_mix_as_the_chapter_says(made: dict[str, pl.DataFrame]) -> None:
    rows = made["vgb_chain"].filter(eps=0.0)
    assert np.allclose(rows["leaf_mass"], 1 / (2 * rows["H"]))
    assert np.allclose(rows["steps_first"], 2 * rows["H"] ** 2)
    assert (rows["tv_first"] < 1e-12).all() and np.allclose(rows.filter(H=3)["conductance"], 0.1)


def test_nodes_of_the_page_are_four_trees(made: dict[str, pl.DataFrame]) -> None:
    nodes = made["vgb_nodes"]
    assert nodes.group_by("instance", maintain_order=True).len()["len"].to_list() == [15, 15, 31, 31]
    leaves = nodes.filter(instance="dead-end", depth=3)
    assert leaves["tokenwise"].sum() == 0.75 and np.isclose(leaves["first_leaf"].sum(), 1)
    assert not nodes.select(pl.any_horizontal(pl.all().is_null().any())).item()  # the page joins on all columns


# --- claims
# -------------------------------------------------------------------------------------------------------


def test_claims_stand_as_they_do_at_quick(made: dict[str, pl.DataFrame], theory: pl.DataFrame) -> None:
    found = judged(made, theory)
    fallen = {gate for (_, gate), (verdict, _) in found.items() if verdict != HOLDS}
    assert fallen == {"printed constant"} | CONTRADICTED
    assert all(found["32", gate] == (FAILS, STATED) for gate in CONTRADICTED)
    assert {claim for claim, _ in found} == set(claims.STATEMENTS)


# Each gate on tables must be able to fall: a column, and a change under which these gates no longer hold.
SPOILT: list[tuple[str, str, pl.Expr, set[str]]] = [
    ("theory_queries", "mean_calls", pl.col("mean_calls") * 1.5, {"rejection, simulated", "tokenwise, simulated"}),
    ("theory_queries", "verifier_calls", pl.col("verifier_calls") + 99, {"scan of the verifier"}),
    ("parity_minimax", "mean_queries", pl.lit(9.0), {"exponential", "corrected constant"}),
    ("parity_minimax", "worst_queries", pl.lit(99.0), {"worst case of a fixed order"}),
    ("parity_minimax", "timeout_share", pl.lit(0.0), {"tokenwise, V of A"}),
    ("knapsack_instances", "trs_mean", pl.lit(100.0), {"tokenwise, at most 2 D", "tokenwise, simulated"}),
    ("knapsack_instances", "trs_mean", pl.lit(0.5), {"tokenwise, at least D"}),
    ("knapsack_instances", "rs_mean", pl.lit(1.0), {"rejection sampling"}),
    ("knapsack_instances", "greedy_ok", pl.lit(False), {"greedy"}),
    ("knapsack_instances", "scan_ok", pl.lit(False), {"scan"}),
    ("trs_distribution", "tv_exact", pl.lit(0.0), {"not the restricted distribution", "closed form"}),
    ("trs_distribution", "tv_first_leaf", pl.lit(0.9), {"first leaf of Algorithm 2"}),
    ("trs_distribution", "tv_stationary", pl.lit(0.1), {"stationary leaves of Algorithm 2"}),
    ("coin_backtrack", "acc_sim", pl.lit(0.5), {"accuracy, simulated", "greedy refills against sampled ones"}),
    ("coin_backtrack", "c_sim", pl.lit(0.5), {"calls, simulated"}),
    ("coin_backtrack", "unbalanced", pl.lit(1), {"calls are length and erased tokens"}),
    ("vgb_chain", "stat_residual", pl.lit(1e-6), {"stationary law"}),
    ("vgb_chain", "rev_residual", pl.lit(1e-6), {"reversible"}),
    ("vgb_chain", "tv_leaf", pl.lit(1e-6), {"law of the leaves"}),
    ("vgb_chain", "first_residual", pl.lit(1e-6), {"first leaf as a current"}),
    ("vgb_chain", "leaf_mass", pl.lit(0.01), {"mass of the leaves", "mass of the leaves, exact values"}),
    ("vgb_chain", "conductance", pl.lit(0.001), {"conductance"}),
    ("vgb_chain", "gap", pl.lit(1e-9), {"spectral gap"}),
    ("vgb_chain", "tmix_001", pl.lit(10**9), {"mixing time"}),
    ("vgb_chain", "tmix_001", pl.lit(None), {"mixing time"}),
    ("vgb_chain", "steps_first", pl.lit(1.0), {"steps to the first leaf, exact values"}),
    ("vgb_sj", "max_abs_diff", pl.lit(0.1), {"Sinclair-Jerrum walk"}),
    ("vgb_amplification", "tv_alrs", pl.lit(0.1), {"rejection, biased values", "by how much, H = 10"}),
    ("vgb_amplification", "kl_alrs", pl.lit(0.1), {"rejection grows in proportion"}),
    ("vgb_amplification", "kl_first", pl.col("H") / 10, {"Algorithm 2 saturates"}),
    ("vgb_amplification", "tv_stat", pl.lit(0.1), {"stationary leaves"}),
    ("vgb_amplification", "tv_first", pl.lit(0.9), {"random signs", "Algorithm 2 against rejection, H = 10"}),
    ("vgb_sim", "tv_emp", pl.lit(0.9), {"first leaf", "last node", "uniform node", "action-level rejection"}),
    ("vgb_sim", "chi2_p", pl.lit(0.0), {"first leaf, chi-squared", "action-level rejection, chi-squared"}),
]


@pytest.mark.parametrize(("name", "column", "change", "gates"), SPOILT, ids=[f"{s[0]}-{s[1]}" for s in SPOILT])
def test_gates_can_fall(
    made: dict[str, pl.DataFrame], theory: pl.DataFrame, name: str, column: str, change: pl.Expr, gates: set[str]
) -> None:
    for spoilt in (change, pl.lit(None)):
        broken = made[name].with_columns(spoilt.cast(made[name].schema[column]).alias(column))
        after = judged(made | {name: broken}, theory)
        # What is null everywhere may not have been measured; it must not hold.
        wanted = (FAILS,) if spoilt is change else (FAILS, NOT_RUN)
        assert {gate for (_, gate), (verdict, _) in after.items() if verdict in wanted} >= gates


@pytest.mark.parametrize("name", ["theory_queries", "vgb_chain", "vgb_amplification", "knapsack_instances"])
def test_what_is_not_there_is_not_judged(made: dict[str, pl.DataFrame], theory: pl.DataFrame, name: str) -> None:
    found = judged(made | {name: made[name].clear()}, theory)
    assert [verdict for verdict, _ in found.values()].count(NOT_RUN) >= 3


def test_a_check_that_fails_fells_its_gate(theory: pl.DataFrame) -> None:
    for claim, parts in claims.PARTS.items():
        for part in parts:
            mine = (pl.col("claim") == claim) & (pl.col("part") == part)
            failed = theory.with_columns(passed=pl.when(mine).then(False).otherwise(pl.col("passed")))
            by_part = {gate.gate: gate for gate in evidence.part_gates(failed, claim, parts)}
            assert {name for name, gate in by_part.items() if gate.verdict("quick")[0] == FAILS} == {part}


# --- the audit
# ----------------------------------------------------------------------------------------------------


def test_what_is_printed_is_complete(made: dict[str, pl.DataFrame]) -> None:
    table = made["published_verifier"]
    counts = dict(table.group_by("table").len().iter_rows())
    wanted = {"T3.1": 6, "T3.2": 11, "T3.3": 4, "T3.4": 27, "T3.5": 3, "T3.6": 11, "T3.9": 16, "T3.10": 8}
    wanted |= {"T3.11": 11, "T3.12": 7, "T3.13": 88, "T3.15": 6, "T3.16": 2, "T3.17": 4, "F3.2": 26}
    assert {name: counts[name] for name in wanted} == wanted
    assert all(isinstance(json.loads(key), dict) for key in table["row_key"])
    assert table.filter(table="T3.5")["spread_kind"].unique().to_list() == ["std"]
    assert Published.to_schema().columns["value"]


def counts_with(mean: float, size: int, reach: int) -> Iterator[list[int]]:
    total = round(mean * size)
    low, high = round(mean) - reach, round(mean) + reach
    for first in itertools.combinations_with_replacement(range(low, high + 1), size - 1):
        last = total - sum(first)
        if first[-1] <= last <= high:
            yield [*first, last]


@pytest.mark.parametrize("reading", audit.READINGS)
def test_spreads_of_whole_numbers_are_found_as_by_enumeration(reading: str) -> None:
    spread = {
        audit.POPULATION: statistics.pstdev,
        audit.SAMPLE: statistics.stdev,
        audit.POPULATION_ERROR: lambda counts: statistics.pstdev(counts) / len(counts) ** 0.5,
        audit.SAMPLE_ERROR: lambda counts: statistics.stdev(counts) / len(counts) ** 0.5,
    }[reading]
    for mean, size in ((3.0, 3), (2.5, 4), (7.4, 5)):
        given = {round(spread(counts), 2) for counts in counts_with(mean, size, 4)}
        # Further away than 4 no number is tried.
        within = int(100 * 4 / audit.READINGS[reading](size) ** 0.5)
        for printed_spread in (hundredths / 100 for hundredths in range(within)):
            found = audit.gives_spread(mean, printed_spread, reading, size, 2)
            assert found == (printed_spread in given), (mean, size, printed_spread)


def test_spreads_and_shares_are_those_of_the_chapter() -> None:
    pairs = [*published.ERRORS.values(), published.REFILL["no argmax"]]
    sums = [5 * spread**2 for _, spread in pairs]
    assert np.allclose(sums, [134, 5.2, 344.8, 52, 374.8], atol=0.05)
    assert audit.fewest_prompts(published.BACKTRACKED.values()) == 164
    assert audit.fewest_prompts([*published.FORCED.values(), published.GREEDY]) == 347
    assert not audit.is_share(0.331, 441) or not audit.is_share(0.366, 441) or not audit.is_share(0.438, 441)
    with pytest.raises(ValueError, match="no mean of"):
        audit.gives_spread(240.1, 1.0, audit.POPULATION)


def test_the_audit_sees_a_table_that_was_printed_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    failing: dict[str, tuple[str, Any]] = {
        "table-3-6": ("MAIN", (*published.MAIN[:-1], (0, None, 0.0, 1.0, None, 0.014, 0.0))),
        "tables-3-3-3-16": ("REFILL", published.REFILL | {"Algorithm 1": (180.0, 1.02)}),
        "ablations": ("BASELINE", (0.661, 0.042)),
        "figure-3-2": ("QUOTA_USED_UP", 224),
        "spread-standard-deviation-n": ("REFILL", published.REFILL | {"no argmax": (245.8, 8.659)}),
        "diversity-error": ("DIVERSITY", {(4, 4, 1.0): (5.52, 0.33)}),
        "any-layer": ("LAYERS", published.LAYERS | {11: (0.67, 0.041)}),
        "out-of-distribution": ("OOD_ACCURACY", 0.976),
        "fewest-prompts-3-2": ("BACKTRACKED", published.BACKTRACKED | {(4, 6): 0.9}),
        "table-3-4-below": ("BACKTRACKED", published.BACKTRACKED | {(1, 2): 0.3}),
    }
    for name, (constant, value) in failing.items():
        with monkeypatch.context() as patch:
            patch.setattr(published, constant, value)
            rows = checked(names.PRINTED)
            assert name in rows.filter(~pl.col("passed"))["check"].to_list(), name


# --- figures, parameters
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["calls", "hidden_parity", "frontier", "leaf_laws", "mixing", "amplification"])
def test_figures_say_what_the_table_says(made: dict[str, pl.DataFrame], name: str) -> None:
    module = query_figures if hasattr(query_figures, name) else vgb_figures
    context: Any = SimpleNamespace(table=made.__getitem__)
    chart, data = getattr(module, name)(context)
    spec = chart.to_dict()
    assert data.height and len(spec["description"]) > 60
    title = " ".join(spec["title"]["text"])
    calls = dict(made["theory_queries"].filter(D=6).select("algorithm", "mean_calls").iter_rows())
    said = {
        "calls": f"factor of {calls['rejection'] / calls['tokenwise']:.0f}",
        "hidden_parity": "0.55 of the printed bound at D = 4",
        "frontier": "98 times in 100 for 34 calls",
        "leaf_laws": "Stationary leaves",
        "mixing": f"for {made['vgb_chain'].height} of {made['vgb_chain'].height}",
        "amplification": "3.8 times as far",
    }
    assert said[name] in title, title


@pytest.mark.parametrize(
    ("kind", "key", "change", "words"),
    [
        ("experiments", names.QUERIES, {"blocks": [5]}, "do not fill"),
        ("experiments", names.QUERIES, {"lengths": [1, 2]}, "greater than or equal to 2"),
        ("experiments", names.QUERIES, {"coin_error": 1.0}, "less than 1"),
        ("experiments", names.VGB, {"shapes": [{"actions": 4, "horizon": 10}]}, "too large for a matrix"),
        ("experiments", names.VGB, {"shapes": [{"actions": 1, "horizon": 3}]}, "greater than or equal to 2"),
        ("experiments", names.VGB, {"horizons": [2, 4, 12]}, "less than or equal to 10"),
        ("theory", names.SEARCH, {"items": 40}, "less than or equal to 12"),
        ("theory", names.WALK, {"errors": [-0.5]}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_computed_is_refused(kind: str, key: str, change: dict[str, Any], words: str) -> None:
    entry = getattr(load_study("verifier"), kind)[key]
    with pytest.raises(ValidationError, match=words):
        type(entry).model_validate(entry.model_dump() | change)
    assert type(entry).__module__ == params_theory.__name__


def test_hidden_prefixes_and_knapsacks_of_the_published_sizes_take_steps() -> None:
    """At scale paper: the largest tasks build."""
    entry = load_study("verifier", "paper").experiments[names.QUERIES]
    task = constrained.hidden_parity(max(entry.hidden), 0)
    assert task.verifier()[0][0] == 1 and samplers.action_level_calls(task.laws, task.verifier(aware=True)) == 19
