"""How a cause reads, and what of two requirements files differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.__main__ import app
from pipeline.audit.causes import Cause, requirements
from pipeline.audit.listing import size
from pipeline.engine.graph import Job
from pipeline.errors import SandglassError


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause("parameter", "runs.a.lr", 0.003, 0.01), "parameter runs.a.lr: 0.003 → 0.01"),
        (Cause("parameter", "runs.a.clip", 0.0, None), "parameter runs.a.clip: 0.0 → none"),
        (
            Cause("parameter", "params/s/experiments.yaml:e.runs", ["a", "b"], ["b", "c"]),
            'parameter params/s/experiments.yaml:e.runs: without ["a"], with ["c"]',
        ),
        (Cause("parameter", "datasets.d.lengths", [1, 2], [2, 1]), "parameter datasets.d.lengths: [1, 2] → [2, 1]"),
        (Cause("parameter", "runs.a.x", "y" * 100, "z"), f"parameter runs.a.x: {'y' * 59}… → z"),
        (
            Cause("code", "pipeline/store/tables.py", "a" * 32, "b" * 32),
            "code pipeline/store/tables.py: md5 aaaaaaaa → bbbbbbbb",
        ),
        (Cause("output", "data/x", "a" * 32, None, "not here"), "output data/x: md5 aaaaaaaa → none (not here)"),
        (
            Cause("data", "data/x", None, "b" * 32, makers=(Job("train", "a", "s"),)),
            "data data/x: md5 none → bbbbbbbb, made by train-a",
        ),
        (
            Cause("software", "requirements.txt: numpy", "numpy==1", "numpy==2"),
            "software requirements.txt: numpy: numpy==1 → numpy==2",
        ),
    ],
)
def test_a_cause_is_one_line_from_old_to_new(cause: Cause, text: str) -> None:
    assert str(cause) == text


def test_requirements_differ_by_package(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("dvc[s3]==3.1  # new\nNumPy>=2\nrich==1\n# remark\n")
    changes = {
        cause.what.rpartition(" ")[2]: (cause.old, cause.new)
        for cause in requirements(b"dvc[s3]==3.0\n# other\nrich==1\nscipy==1\n", file)
    }
    assert changes == {
        "dvc": ("dvc[s3]==3.0", "dvc[s3]==3.1"),
        "numpy": (None, "NumPy>=2"),
        "scipy": ("scipy==1", None),
    }


def test_sizes() -> None:
    assert [size(n) for n in (0, 999, 1000, 1_250_000, 3_000_000_000_000)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "3000.0 GB",
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["--all", "--reason", " "], "a reason is required"), (["--reason", "x"], "name what the edit does not")],
)
def test_an_acceptance_says_what_and_why(arguments: list[str], text: str) -> None:
    with pytest.raises(SandglassError, match=text):
        app(["accept", *arguments], standalone_mode=False)
