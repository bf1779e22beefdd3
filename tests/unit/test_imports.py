"""Code inputs are what is imported: found in made-up sources, and for every job of this repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from workspace import STUDIES, load_all

from pipeline.engine import graph
from pipeline.engine.imports import CACHE, Sources
from pipeline.errors import SandglassError

TREE = {
    "pipeline/__init__.py": "from pipeline import arithmetic",
    "pipeline/errors.py": "",
    "pipeline/arithmetic.py": "import os",
    "pipeline/kit/__init__.py": '"""Only words."""',
    "pipeline/kit/stats.py": "import numpy as np\nfrom . import ranks\nfrom ..errors import SandglassError",
    "pipeline/kit/ranks.py": "x = 1",
    "pipeline/kit/unused.py": "x = 1",
    "pipeline/kit/typed.py": "x = 1",
    "pipeline/models/wide/__init__.py": "from pipeline.models.wide.parts import norm",
    "pipeline/models/wide/parts.py": "def norm(): ...",
    "pipeline/models/wide/net.py": "class Net: ...",
    "pipeline/languages/dyck.py": "x = 1",
    "pipeline/languages/ising.py": "x = 1",
    "schemas/results.py": "x = 1",
    "pipeline/steps/train.py": """
import importlib
from typing import TYPE_CHECKING
import schemas.results
from pipeline.kit.stats import mean as average
if TYPE_CHECKING:
    from pipeline.kit import typed
else:
    from pipeline.models.wide import net
def run(job):
    import pipeline.languages.ising
    return importlib.import_module(f"pipeline.languages.{job.language}")
""",
}
READ = [
    "pipeline/kit/ranks.py",
    "pipeline/kit/stats.py",
    "pipeline/languages/dyck.py",
    "pipeline/languages/ising.py",
    "pipeline/models/wide/__init__.py",
    "pipeline/models/wide/net.py",
    "pipeline/models/wide/parts.py",
    "pipeline/steps/train.py",
    "schemas/results.py",
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def closure(root: Path) -> list[str]:
    sources = Sources(root)
    found = sources.closure(["pipeline/steps/train.py"], lambda pattern: [pattern.replace("{}", "dyck")])
    sources.keep()
    return found


def test_what_a_step_imports_directly_or_through_others_is_found(tree: Path) -> None:
    assert closure(tree) == READ


def test_an_edited_source_is_read_again_and_no_other(tree: Path) -> None:
    closure(tree)
    file = tree / "pipeline/kit/ranks.py"
    file.write_text("from pipeline.kit import unused", encoding="utf-8")
    known = json.loads((tree / CACHE).read_text())
    known["pipeline/languages/dyck.py"][1] = ["pipeline.kit.typed"]  # as if it had said so
    (tree / CACHE).write_text(json.dumps(known))
    assert set(closure(tree)) == {*READ, "pipeline/kit/unused.py", "pipeline/kit/typed.py"}
    assert json.loads((tree / CACHE).read_text())["pipeline/kit/ranks.py"][1] == ["pipeline.kit.unused"]


def test_a_damaged_note_of_what_was_read_is_written_anew(tree: Path) -> None:
    closure(tree)
    (tree / CACHE).write_text("{", encoding="utf-8")
    assert closure(tree) == READ and "pipeline/kit/ranks.py" in json.loads((tree / CACHE).read_text())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import importlib\nimportlib.import_module(name)", "line 2: what import_module imports"),
        ("from importlib import import_module as i, import_module\n\nimport_module(f'{a}.b')", "line 3"),
        ("x = (", "line 1"),
    ],
)
def test_what_cannot_be_followed_is_an_error(tree: Path, text: str, said: str) -> None:
    (tree / "pipeline/kit/ranks.py").write_text(text, encoding="utf-8")
    with pytest.raises(SandglassError, match=f"pipeline/kit/ranks.py, {said}"):
        closure(tree)
    (tree / "pipeline/steps/train.py").unlink()
    with pytest.raises(SandglassError, match=r"pipeline/steps/train\.py is missing"):
        closure(tree)


def test_code_of_one_study_is_no_input_of_another() -> None:
    loaded = load_all()
    for job in graph.jobs(loaded)[:-1]:
        files = list(map(str, graph.code(job, loaded)))
        assert f"pipeline/steps/{job.step}.py" in files and len(set(files)) == len(files)
        for study in {*STUDIES, "toy"} - {job.study}:
            assert not [file for file in files if f"/studies/{study}/" in file or f"schemas/{study}/" in file]
        assert not [file for file in files if file.startswith(("pipeline/engine", "pipeline/audit", "pipeline/report"))]


def test_modules_that_parameters_name_are_inputs_of_what_reads_them() -> None:
    loaded = load_all()

    def code(step: str, key: str) -> set[str]:
        return set(map(str, graph.code(graph.job(step, key, loaded), loaded)))

    assert {"pipeline/models/transformer/decoder.py", "pipeline/training/objectives/next_token.py"} <= code(
        "train", "dyck-standard"
    )
    assert "pipeline/models/transformer/decoder.py" in code("analyse", "dyck-balance")
    assert "pipeline/models/transformer/decoder.py" not in code("figures", "dyck-balance")
    assert "pipeline/studies/dyck/comparisons.py" in code("claims", "dyck")
