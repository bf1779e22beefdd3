"""The embedded DVC remote holds what dvc.lock promises, and stays small."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from ruamel.yaml import YAML

from pipeline.kit import charts

REPOSITORY = Path(__file__).parents[2]
STORE = REPOSITORY / ".dvcstore" / "files" / "md5"
Published = list[tuple[str, str]]
LIMIT = 9 * 2**20  # bytes of a study; topic shows whole matrices of a hundred words


def _read(path: Path) -> dict:
    document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return dict(document)


def _kept_back(path: str) -> bool:
    """Whether dvc.yaml keeps an output from `dvc push`: datasets, checkpoints with their curves, and the report."""
    checkpoints = path.startswith("data/runs/") and not path.endswith(".json")
    return checkpoints or path.startswith(("data/datasets/", "data/report"))


@pytest.fixture(scope="module")
def published() -> Published:
    """Path and md5 of every output and reference set that is pushed."""
    return list(_published())


def _published() -> Iterator[tuple[str, str]]:
    for stage in _read(REPOSITORY / "dvc.lock")["stages"].values():
        yield from ((out["path"], out["md5"]) for out in stage["outs"])
    for file in (REPOSITORY / "data" / "reference").glob("*.dvc"):
        yield from ((f"data/reference/{out['path']}", out["md5"]) for out in _read(file)["outs"])


def test_every_published_file_is_in_the_embedded_remote(published: Published) -> None:
    """If this fails: dvc push, and commit .dvcstore with dvc.lock."""
    missing = []
    for path, md5 in published:
        if not _kept_back(path):
            stored = STORE / md5[:2] / md5[2:]
            if not stored.is_file():
                missing.append(path)
            elif md5.endswith(".dir"):
                inside = [entry["md5"] for entry in json.loads(stored.read_text())]
                missing += [f"{path}: {each}" for each in inside if not (STORE / each[:2] / each[2:]).is_file()]
    assert not missing


def test_large_artifacts_are_kept_back(published: Published) -> None:
    kept = [(path, md5) for path, md5 in published if _kept_back(path)]
    assert len(kept) > 20
    assert not [path for path, md5 in kept if (STORE / md5[:2] / md5[2:]).exists()]


def test_the_store_is_small(published: Published) -> None:
    """A study takes at most nine megabytes there: tables, claims, theory rows and figures."""
    sizes: dict[str, int] = {}
    for path, md5 in published:
        if not path.startswith("data/reference/") and not _kept_back(path):
            study = Path(path).parts[2]
            stored = STORE / md5[:2] / md5[2:]
            inside = [entry["md5"] for entry in json.loads(stored.read_text())] if md5.endswith(".dir") else [md5]
            sizes[study] = sizes.get(study, 0) + sum((STORE / o[:2] / o[2:]).stat().st_size for o in inside)
    assert sizes and max(sizes.values()) <= LIMIT, sizes


def test_nothing_else_is_in_the_store(published: Published) -> None:
    """If this fails: dvc gc --workspace --cloud, and commit .dvcstore; what only the report names, delete."""
    named = set()
    for path, md5 in published:
        if not _kept_back(path):
            named.add(md5)
            if md5.endswith(".dir"):
                named |= {entry["md5"] for entry in json.loads((STORE / md5[:2] / md5[2:]).read_text())}
    assert {file.parent.name + file.name for file in STORE.rglob("*") if file.is_file()} == named


def test_the_picture_in_the_readme_is_the_published_figure(published: Published) -> None:
    """If this fails: python -m pipeline picture data/figures/dyck/<experiment>/fig3.vl.json docs/fig3.png."""
    specification = next(
        entry["md5"]
        for path, folder in published
        if path.startswith("data/figures/dyck/")
        for entry in json.loads((STORE / folder[:2] / folder[2:]).read_text())
        if entry["relpath"] == "fig3.vl.json"
    )
    drawn = charts.png(json.loads((STORE / specification[:2] / specification[2:]).read_text()))
    # By pixels: another version of the library that packs them gives other bytes.
    with Image.open(io.BytesIO(drawn)) as ours, Image.open(REPOSITORY / "docs" / "fig3.png") as kept:
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(kept))
