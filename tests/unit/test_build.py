"""The estimate of what is left of a build."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from workspace import load_study

from pipeline import params
from pipeline.engine import build, estimate, graph
from pipeline.engine.build import Reference
from pipeline.engine.estimate import Left, Pace

ROOT = Path(__file__).parents[2]
REFERENCE = Reference("a machine", 100.0, {"a": 10.0, "b": 20.0, "c": 40.0, "d": 60.0})
# Of a build of seven studies on two cores: when each job began, its seconds there and on the reference machine.
RECORDED = pl.read_csv(Path(__file__).with_name("recorded_build.csv")).rows()
SECONDS = {job: seconds for job, _, seconds, _ in RECORDED}
WORK = {job: work for job, _, _, work in RECORDED}
END = max(began + seconds for _, began, seconds, _ in RECORDED)


def at(share: float, slower: float = 1.0, before: Pace | None = None) -> tuple[Left, float]:
    """What is estimated of the recorded build after a share of its time, on a machine so much slower; what was left."""
    now = share * END
    took = {job: slower * seconds for job, began, seconds, _ in RECORDED if began + seconds <= now}
    spent = {job: slower * (now - began) for job, began, _, _ in RECORDED if began < now and job not in took}
    waiting = [job for job, began, _, _ in RECORDED if began >= now]
    left = estimate.left(took, spent, waiting, slower * now, WORK.__getitem__, before)
    return left, slower * (END - now)


LOOKS = [share / 20 for share in range(1, 20)]


def test_a_recorded_build_ends_within_the_range() -> None:
    estimates = [at(share) for share in LOOKS]
    assert sum(left.least <= rest <= left.most for left, rest in estimates) >= 0.9 * len(LOOKS)
    assert all(0.6 < left.likely / rest < 1.4 for left, rest in estimates)


@pytest.mark.parametrize("slower", [0.5, 1.0, 2.0, 4.0])
def test_a_second_build_is_known_better_whatever_the_load(slower: float) -> None:
    before = Pace(SECONDS, WORK.__getitem__)
    first, second = [at(share) for share in LOOKS], [at(share, slower, before) for share in LOOKS]
    assert sum(left.least <= rest <= left.most for left, rest in second) >= 2 / 3 * len(LOOKS)
    for (left, _), (then, rest) in list(zip(first, second, strict=True))[2:]:  # under another load, once it is seen
        assert then.most / then.least < 0.85 * left.most / left.least
        assert 0.6 < then.likely / rest < 1.4


def test_a_job_that_only_went_on_says_little() -> None:
    took = {job: SECONDS[job] for job in list(SECONDS)[:40]}
    waiting = list(SECONDS)[40:]
    longest = max(took, key=WORK.__getitem__)  # a tenth of their work
    as_it_was, after_a_kill = (
        estimate.left(each, {}, waiting, 1000.0, WORK.__getitem__).likely for each in (took, took | {longest: 0.1})
    )
    assert 0.9 < after_a_kill / as_it_was < 1.1


def test_a_job_that_should_have_ended_says_that_its_kind_takes_longer() -> None:
    took, waiting = {"train-dyck-a": 10.0}, ["train-dyck-c"]

    def left(spent: float) -> float:
        return estimate.left(took, {"train-dyck-b": spent}, waiting, 10.0 + spent, lambda _: 10.0).likely

    assert left(1.0) > left(9.0)
    assert left(100.0) > left(50.0) > left(9.0)


def test_a_job_whose_time_is_a_guess_says_nothing_of_the_others() -> None:
    took, waiting = {"train-dyck-a": 10.0}, ["train-dyck-b"]
    known = estimate.left(took, {}, waiting, 10.0, lambda _: 10.0)
    took |= {f"train-parallel-{i}": 900.0 for i in range(3)}
    assert estimate.left(took, {}, waiting, 2710.0, lambda _: 10.0, recorded=["train-dyck-a", *waiting]) == known
    assert estimate.left(took, {}, waiting, 2710.0, lambda _: 10.0).most > 2 * known.most


def test_what_is_left_is_no_less_than_its_longest_job() -> None:
    left = estimate.left({"a": 10.0, "b": 20.0}, {}, ["d", "a2"], 5.0, lambda job: REFERENCE.jobs.get(job, 0.1))
    assert left.likely == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("free", "says"), [(5e9, "needs about 2.0 GB of disk"), (1e6, "1 MB are free: THE DISK WILL BE FULL")]
)
def test_what_is_not_here_is_said_to_need_disk(
    free: float, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_study("nce")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    assert build.disk(loaded) == ""  # nothing is recorded
    entry = "    params:\n      params.yaml:\n        scale: {}\n    outs:\n    - path: x\n      size: {}\n"
    blocks = [f"  {job.stage}:\n{entry.format('smoke', 10**9)}" for job in graph.jobs(loaded)[:2]]
    blocks[1] = blocks[1].replace("smoke", "quick")
    Path("dvc.lock").write_text("schema: '2.0'\nstages:\n" + "".join(blocks))
    assert says in build.disk(loaded)
    assert build.disk(loaded, "depth") == ""


def test_the_line_names_what_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert build.line(time.time(), REFERENCE) == ""
    started = time.time() - 60
    build.plan(["a", "b", "c"])
    _note("a", "done")
    _begin("b")
    assert build.line(started, REFERENCE) == "1 of 3 jobs, 1:00 min, about 36 s to 1:41 min left: b"


def test_a_job_that_failed_is_not_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    started = time.time() - 60
    build.plan(["a", "b", "c"])
    _note("a", "done")
    _begin("b")
    _note("b", "failed: MemoryError")
    _begin("c")
    assert build.line(started, REFERENCE).endswith(" left: c")


def test_a_job_may_end_while_the_line_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    started, read = time.time() - 60, build._step
    build.plan(["a", "b"])
    _note("a", "done")
    _begin("b")

    def ends_then(name: str, root: Path = Path()) -> dict[str, Any]:
        log = read(name, root)
        _note("b", "done")
        return log

    monkeypatch.setattr(build, "_step", ends_then)
    _note("b", "done", finished=1.0)  # of an earlier build
    assert build.line(started, REFERENCE).startswith("2 of 2 jobs")  # a was read first
    _note("b", "done", finished=1.0)
    build.plan(["b", "a"])
    assert build.line(started, REFERENCE).startswith("1 of 2 jobs")


def _note(job: str, status: str, finished: float | None = None) -> None:
    """Write what a step notes as it ends."""
    file = graph.LOGS / "steps" / f"{job}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"finished": finished or time.time(), "status": status, "seconds": 10.0}))


def _begin(job: str) -> None:
    """Write what a step writes as it begins."""
    lock = graph.STATE / "jobs" / f"{job}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text("1234")


def test_times_at_a_scale_that_was_never_timed_follow_the_examples_of_its_trainings() -> None:
    quick, long = (params.load(ROOT, scale) for scale in ("quick", "long"))
    timed, guessed = Reference.known(quick, ROOT), Reference.known(long, ROOT)
    assert timed == Reference.load("quick", ROOT) and not guessed.elapsed
    assert not Reference.known(params.load(ROOT, "smoke"), ROOT).jobs  # its jobs take seconds
    for key, run in quick.runs.items():
        seconds, job = timed.jobs.get(f"train-{key}"), guessed.jobs.get(f"train-{key}")
        now, then = (
            sum(entry.replicas * np.size(entry.lr) * entry.steps * entry.batch for entry in each.members.values())
            for each in (long.runs[key], run)
        )
        if seconds is not None and then:
            assert job == pytest.approx(seconds * now / then)
        if job is not None:  # of a study that was timed
            assert (job > 0) == (now > 0)
    others = [name for name in timed.jobs if not name.startswith("train-")]
    assert [guessed.jobs[name] for name in others] == [timed.jobs[name] for name in others]
