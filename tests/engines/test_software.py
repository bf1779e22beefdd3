"""The installed software against requirements.txt."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from pipeline.engine.software import check_software
from pipeline.errors import SandglassError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pins torch, of which a local build is installed, and something that is not installed."""
    (tmp_path / "requirements.txt").write_text("# software\ntorch==2.13.0  # numbers\npandera[polars]==0.35.0\n")
    monkeypatch.setattr(metadata, "version", {"torch": "2.13.0+cpu", "pandera": "0.35.0"}.__getitem__)
    monkeypatch.delenv("SANDGLASS_ALLOW_VERSIONS", raising=False)
    return tmp_path


def test_a_local_build_counts_as_its_public_version(root: Path) -> None:
    assert check_software(root) == []


def test_another_version_is_refused_unless_allowed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"torch": "2.14.0", "pandera": "0.35.0"}.__getitem__)
    with pytest.raises(SandglassError, match=r"torch 2\.14\.0 \(pinned: 2\.13\.0\)"):
        check_software(root)
    monkeypatch.setenv("SANDGLASS_ALLOW_VERSIONS", "1")
    assert check_software(root) == ["torch 2.14.0 (pinned: 2.13.0)"]


def test_missing_software_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(SandglassError, match="torch is missing"):
        check_software(root)


def test_the_real_pins_are_all_read() -> None:
    text = (Path(__file__).parents[2] / "requirements.txt").read_text()
    pinned = [line for line in text.splitlines() if line and not line.startswith("#")]
    from pipeline.engine.software import _pins

    assert len(_pins(Path(__file__).parents[2] / "requirements.txt")) == len(pinned)
