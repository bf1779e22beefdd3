"""What is packed for ten minutes of a GPU are runs that exist, of which scale paper trains something."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pipeline import params

SCRIPT = Path("benchmarks/gpu.py")


def worth() -> dict[str, list[str]]:
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    (value,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORTH"
    )
    found: dict[str, list[str]] = ast.literal_eval(value)
    return found


@pytest.mark.parametrize("study", worth())
def test_each_run_trains_at_scale_paper(study: str) -> None:
    groups = params.load(scale="paper").of_study("runs", study)
    for run in worth()[study]:
        assert any(entry.replicas for entry in groups[run].members.values()), run
