"""Nothing here unpickles: a pickle runs code of whoever wrote it, and results are passed around."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandera.polars as pa
import polars as pl
import pytest

from pipeline.errors import SandglassError
from pipeline.store import checkpoints, tables

ROOT = Path(__file__).parents[2]
MODULES = [path for folder in ("pipeline", "schemas", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
PICKLING = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "shelve"}
LOADERS = {("torch", "load"), ("numpy", "load"), ("torch.jit", "load"), ("torch.serialization", "load")}


def unpickling(source: str) -> Iterator[str]:
    """What in ``source`` unpickles, or could."""
    tree = ast.parse(source)
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
                if alias.name.split(".")[0] in PICKLING:
                    yield f"import {alias.name}"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (node.module or "").split(".")[0] in PICKLING or (node.module, alias.name) in LOADERS:
                    yield f"from {node.module} import {alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            *owner, last = _dotted(node, names).split(".")
            if (".".join(owner), last) in LOADERS or last == "read_pickle":
                yield ast.unparse(node)
        elif isinstance(node, ast.Call):
            yield from (ast.unparse(word) for word in node.keywords if word.arg == "allow_pickle")
            if ast.unparse(node.func) in ("__import__", "import_module", "importlib.import_module"):
                yield from (ast.unparse(node) for arg in node.args if _constant(arg) in PICKLING)


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return names.get(node.id, node.id) if isinstance(node, ast.Name) else "?"


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def test_no_module_unpickles() -> None:
    found = {path: list(unpickling(path.read_text(encoding="utf-8"))) for path in MODULES}
    assert {str(path.relative_to(ROOT)): words for path, words in found.items() if words} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "import joblib.memory",
        "from torch import load",
        "import torch\ntorch.load('x')",
        "import torch as t\nread = t.load",
        "import numpy as np\nnp.load('x')",
        "import pandas as pd\npd.read_pickle('x')",
        "f(allow_pickle=True)",
        "__import__('dill')",
    ],
)
def test_the_search_finds(source: str) -> None:
    assert list(unpickling(source))


class Numbers(pa.DataFrameModel):
    number: pl.Int64


@pytest.fixture
def no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something unpickles")

    for name in ("load", "loads", "Unpickler", "_load", "_loads", "_Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)


@pytest.mark.usefixtures("no_pickle")
def test_reading_unpickles_nothing(tmp_path: Path) -> None:
    frame = pl.DataFrame({"number": [1, 2]})
    tables.write(frame, tmp_path / "t.parquet", Numbers, {"key": "value"})
    assert tables.read(tmp_path / "t.parquet", Numbers).equals(frame)
    assert tables.read_metadata(tmp_path / "t.parquet") == {"key": "value"}
    checkpoints.write(tmp_path / "m.safetensors", {"w": np.ones(2)}, {"a": 1})
    arrays, header = checkpoints.read(tmp_path / "m.safetensors")
    assert arrays["w"].tolist() == [1, 1]
    assert header == {"a": 1}


class Bomb:
    """What it is unpickled from writes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.marker,)


def test_a_pickle_in_place_of_an_artifact_is_refused_unopened(tmp_path: Path) -> None:
    marker, file = tmp_path / "exploded", tmp_path / "artifact"
    file.write_bytes(pickle.dumps(Bomb(marker)))
    with pytest.raises(SandglassError, match="truncated or damaged"):
        tables.read(file, Numbers)
    with pytest.raises(SandglassError, match="truncated or damaged"):
        checkpoints.read(file)
    assert not marker.exists()
    pickle.loads(file.read_bytes())  # noqa: S301
    assert marker.exists()  # it would have
