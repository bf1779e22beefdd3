"""Gates of all studies, on the published tables: each bar decides, stands in one place, and is the committed one."""

from __future__ import annotations

import importlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import polars as pl
import pytest
from workspace import REPOSITORY, STUDIES, load_all, stored

from pipeline.audit import provenance
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.kit import comparisons, verdicts
from pipeline.kit.conditions import in_words
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from pipeline.store.paths import claims_path
from schemas.claims import FAILS, HOLDS, NOT_RUN, TOO_FEW, UNDECIDED

LOADED = load_all()
LOCK = provenance.Lock((REPOSITORY / provenance.LOCK).read_text(encoding="utf-8"), str(provenance.LOCK))
WORDS = r"(at least|at most|above|below|less than|more than|fewer than|exceeds|within|up to) "


@pytest.fixture(scope="module", params=[study for study in STUDIES if f"claims-{study}" in LOCK])
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A study whose published tables and theory rows lie in the current folder."""
    root = tmp_path_factory.mktemp(request.param)
    for job in graph.jobs(LOADED):
        if job.study == request.param and job.step in ("analyse", "theory"):
            for out in LOCK[job.stage].outs.values():
                target = root / out.path
                target.parent.mkdir(parents=True, exist_ok=True)
                if not out.is_folder:
                    shutil.copy(stored(out.md5), target)
                    continue
                for file in json.loads(stored(out.md5).read_bytes()):
                    target.mkdir(exist_ok=True)
                    shutil.copy(stored(file["md5"]), target / file["relpath"])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        yield request.param


def context(study: str) -> Results:
    """What the claims of a study are judged from."""
    job = graph.job("claims", study, LOADED)
    return Results(
        study,
        study,
        graph.entry(job, LOADED),
        graph.settings(job, LOADED),
        LOADED.scale,
        LOADED.seed,
        job.params_hash(LOADED),
        graph.experiments(job, LOADED),
    )


@cache
def judged(study: str) -> tuple[pl.DataFrame, list[Gate]]:
    """The claims table of a study from what lies here, and the gates that it was made of; both made once."""
    gates: list[Gate] = []
    table = verdicts.table

    def kept(found: Iterator[Gate], *more: object) -> pl.DataFrame:
        gates.extend(found)
        return table(gates, *more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "table", kept)
        frame = importlib.import_module(f"pipeline.studies.{study}.claims").judge(context(study))
    return frame, gates


def test_gates_find_in_the_published_tables_what_is_committed(study: str) -> None:
    """A bar that is moved, or a comparison that is looked up under another name, makes another table.

    If it is meant: judge the claims again, and commit dvc.lock with what `dvc push` puts into the store.
    """
    frame, _ = judged(study)
    committed = pl.read_parquet(stored(LOCK[f"claims-{study}"].outs[claims_path(study, "parquet")].md5))
    for ours, theirs in zip(frame.iter_rows(named=True), committed.iter_rows(named=True), strict=True):
        assert ours == theirs


@pytest.mark.slow
def test_an_experiment_that_is_taken_out_of_a_study_is_not_run(study: str) -> None:
    """Claims are judged without its tables; no verdict comes of a gate that had none, or turns into another."""
    module, whole = importlib.import_module(f"pipeline.studies.{study}.claims"), context(study)
    verdict = {(row["claim"], row["gate"]): row["verdict"] for row in judged(study)[0].iter_rows(named=True)}
    for experiment in whole.experiments:
        rest = [each for each in whole.experiments if each != experiment]
        for row in module.judge(replace(whole, experiments=rest)).iter_rows(named=True):
            before = verdict[row["claim"], row["gate"]]
            assert row["verdict"] in (before, NOT_RUN, TOO_FEW), (experiment, row["claim"], row["gate"])


def test_each_bar_can_hold_fail_and_be_undecided(study: str) -> None:
    _, gates = judged(study)
    assert gates
    for gate in gates:
        for condition in gate.conditions:
            step = max(abs(condition.bound), 1.0)
            up = step if condition.comparison in (">", ">=") else -step
            for value, verdict in ((condition.bound + up, HOLDS), (condition.bound - up, FAILS)):
                found = verdicts.judged(condition, Measured(value, value - step / 4, value + step / 4, 9))
                assert found == verdict, (gate.claim, gate.gate, condition)
            across = Measured(condition.bound, condition.bound - step, condition.bound + step, 9)
            assert verdicts.judged(condition, across) == UNDECIDED
        if gate.measured is not None and gate.verdict("paper")[0] != NOT_RUN:
            assert gate.conditions, f"{gate.claim}, {gate.gate}: nothing is asked of what was measured"


def test_each_gate_can_hold_fail_and_be_undecided_by_what_its_comparison_found(study: str) -> None:
    """All three, at the scale that it asks for, of six models."""
    _, gates = judged(study)
    for gate in (gate for gate in gates if gate.comparison and gate.conditions):
        lows = [each.bound for each in gate.conditions if each.comparison in (">", ">=")]
        highs = [each.bound for each in gate.conditions if each.comparison in ("<", "<=")]
        inside = (max(lows) + min(highs)) / 2 if lows and highs else max(lows) + 1 if lows else min(highs) - 1
        outside = min(lows) - 1 if lows else max(highs) + 1
        reach = min([abs(inside - bar) for bar in (*lows, *highs)])
        for value, half, verdict in (
            (inside, reach / 2, HOLDS),
            (outside, 0.5, FAILS),
            (inside, 2 * reach + 1, UNDECIDED),
        ):
            found = Measured(value, value - half, value + half, 6, interval="Student", fewest=5)
            # A bar of a single value, such as exactly 0, holds for it alone.
            expected = HOLDS if verdict == HOLDS and reach > 0 else verdict
            if reach > 0 or verdict != HOLDS:
                assert replace(gate, measured=found).verdict("paper")[0] == expected, (gate.claim, gate.gate)
        few = Measured(inside, inside, inside, 4, interval="Student", fewest=5)
        assert replace(gate, measured=few).verdict("paper")[0] == TOO_FEW


def test_a_comparison_under_another_name_is_an_error(study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever is renamed, in the table or where it is declared, no claim is judged as if it had not been run."""
    rows = context(study).table(comparisons.TABLE)
    first = next(iter(comparisons.declared(study)))
    for key in rows["comparison"]:  # an experiment that is not run has no rows
        renamed = rows.with_columns(pl.col("comparison").replace(key, f"{key}-renamed"))
        tables = SimpleNamespace(study=study, table=lambda name, renamed=renamed: renamed)
        with pytest.raises(SandglassError, match=re.escape(key)):
            comparisons.read(tables, [first])


def test_the_published_rows_are_of_the_comparisons_that_are_declared(study: str) -> None:
    """The same arms, measure, statistic, unit and pairing: a declaration that is edited asks for another analysis."""
    known = {each.key: each for each in comparisons.declared(study)}
    for row in context(study).table(comparisons.TABLE).iter_rows(named=True):
        each = known[row["comparison"]]
        arms = [arm.name for arm in each.arms]
        expected = (each.words, each.statistic, each.in_common, each.unit, *(arms or [""])[:2])
        said = (row["measure"], row["statistic"], row["in_common"], row["unit"], row["first"], row["second"])
        assert said[: len(expected)] == expected


def test_every_comparison_is_judged_drawn_or_printed(study: str) -> None:
    """What nothing reads would be kept for nobody."""
    _, gates = judged(study)
    judged_keys = {gate.comparison for gate in gates}
    folder = REPOSITORY / "pipeline" / "studies" / study
    shown = "".join(
        path.read_text(encoding="utf-8") for path in (*(folder / "figures").glob("*.py"), folder / "report.md.j2")
    )
    unread = [each.key for each in comparisons.declared(study) if each.key not in judged_keys]
    assert not unread or "comparisons" in shown, unread


def test_no_words_repeat_a_bar(study: str) -> None:
    """They are made of the conditions. Only a theory check says its bound itself, in its statement."""
    _, gates = judged(study)
    for gate in gates:
        if not gate.stated:
            bars = "|".join(re.escape(f"{condition.bound:g}") for condition in gate.conditions)
            known = {each.key: in_words(each.hits) for each in comparisons.declared(study)}
            measure = gate.measure.replace(known.get(gate.comparison) or "-", "")  # who is counted in a share
            said = re.search(rf"{WORDS}({bars})(?![\w.,]*\d)", measure) if bars else None
            assert said is None, (gate.claim, gate.gate, gate.measure)
            assert gate.predicate.startswith(gate.measure)
            asked = [f"{condition.bound:.4g}" for condition in gate.conditions]
            assert not asked or gate.predicate != gate.measure
