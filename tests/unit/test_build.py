"""The estimate of what is left of a build."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pipeline.engine import build, graph
from pipeline.engine.build import Reference

REFERENCE = Reference("a machine", 100.0, {"a": 10.0, "b": 20.0, "c": 40.0, "d": 60.0})


@pytest.mark.parametrize(
    ("took", "spent", "waiting", "elapsed", "left"),
    [
        ({"a": 20.0}, {}, ["b"], 20.0, 20.0 * 80 / 70),  # slower, one at a time: ten seconds tell little
        ({"a": 0.0}, {}, ["b"], 1.0, 20.0 * 60 / 70),  # it only went on from where it was killed
        ({"a": 10.0, "b": 20.0}, {"c": 10.0}, ["d"], 20.0, (30.0 + 60.0) / 2),  # two at a time
        ({"a": 10.0}, {"b": 50.0}, [], 60.0, 0.0),  # longer than expected: it may end at any time
        ({"a": 10.0}, {"e": 1.0}, [], 11.0, build.UNKNOWN_SECONDS - 1.0),  # a job without a record
    ],
)
def test_what_is_left(
    took: dict[str, float], spent: dict[str, float], waiting: list[str], elapsed: float, left: float
) -> None:
    assert build._left(took, spent, waiting, elapsed, REFERENCE) == pytest.approx(left)


def test_the_line_names_what_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert build.line(time.time(), REFERENCE) == ""
    started = time.time() - 60
    build.plan(["a", "b", "c"])
    steps = graph.LOGS / "steps"
    steps.mkdir(parents=True)
    (steps / "a.json").write_text(json.dumps({"finished": time.time(), "status": "done", "seconds": 10.0}))
    lock = graph.STATE / "jobs" / "b.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("1234")
    assert build.line(started, REFERENCE) == "1 of 3 jobs, 1:00 min, about 1:00 min left: b"
