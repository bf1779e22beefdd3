"""Which instructions the libraries take: those of AVX2, on every processor that has them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import arithmetic

AVX2, WIDER = "flags\t\t: fpu avx avx2 fma\n", "flags\t\t: fpu avx avx2 fma avx512f avx512bw\n"
LOADED = """
import json, os, sys
import pipeline
import numpy, torch, scipy.linalg
from numpy._core._multiarray_umath import __cpu_features__ as able
from threadpoolctl import threadpool_info
kernels = [each["architecture"] for each in threadpool_info() if each.get("internal_api") == "openblas"]
print(json.dumps([torch.backends.cpu.get_cpu_capability(), kernels, able["X86_V4"]]))
"""


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a description of its processor, and none of the variables set."""
    monkeypatch.setattr(arithmetic, "CPU", tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for name in arithmetic.SET | arithmetic.WIDER | arithmetic.ALWAYS:
        monkeypatch.setenv(name, "before")
        monkeypatch.delenv(name)
    return tmp_path / "cpuinfo"


def variables() -> dict[str, str]:
    return {name: os.environ[name] for name in arithmetic.SET | arithmetic.WIDER if name in os.environ}


def test_a_processor_with_avx2_takes_it(surroundings: Path) -> None:
    surroundings.write_text(AVX2)
    arithmetic.settle()
    assert variables() == arithmetic.SET


def test_a_wider_processor_takes_it_too(surroundings: Path) -> None:
    surroundings.write_text("model name\t: x\n" + WIDER)
    arithmetic.settle()
    assert variables() == arithmetic.SET | arithmetic.WIDER


def test_products_run_on_one_thread_whatever_an_engine_sets(
    surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "8")
    arithmetic.settle()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"


def test_what_is_set_already_stays(surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    surroundings.write_text(AVX2)
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    arithmetic.settle()
    assert variables() == arithmetic.SET | {"MKL_CBWR": "COMPATIBLE"}


@pytest.mark.parametrize(("machine", "text"), [("x86_64", "flags : fpu sse2\n"), ("aarch64", AVX2), ("x86_64", None)])
def test_elsewhere_the_libraries_choose(
    surroundings: Path, monkeypatch: pytest.MonkeyPatch, machine: str, text: str | None
) -> None:
    if text is not None:
        surroundings.write_text(text)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    arithmetic.settle()
    assert variables() == {}


@pytest.mark.skipif("avx2" not in arithmetic.flags(), reason="this processor has no AVX2")
def test_the_libraries_do_as_they_are_told() -> None:
    """In a process that has loaded none of them before; numpy names what it does not know in a warning."""
    own = arithmetic.SET | arithmetic.WIDER
    clean = {name: value for name, value in os.environ.items() if name not in own}
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", LOADED], env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    capability, kernels, wide = json.loads(done.stdout)
    assert capability == "AVX2" and not wide
    assert kernels and set(kernels) == {"Haswell"}
