"""The parameters of the self-supervision study alone, and what an analysis, a figure and a claim read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline import params

ROOT = Path(__file__).parents[2]
Load = Callable[[str], params.Params]


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Parameters at a scale, of this study and no other."""
    root = tmp_path_factory.mktemp("selfsup")
    header = {"scale": "smoke", "seed": 20231210, "device": "cpu", "studies": "[selfsup]"}
    (root / "params.yaml").write_text("".join(f"{name}: {value}\n" for name, value in header.items()))
    shutil.copytree(ROOT / "params/selfsup", root / "params/selfsup")
    return lambda scale: params.load(root, scale)


@pytest.fixture(scope="session")
def loaded(load: Load) -> params.Params:
    return load("smoke")
