"""``python -m pipeline new NAME``: a study that builds at once, or one line that says why not."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from ruamel.yaml import YAML
from workspace import REPOSITORY, STUDIES, Workspace, copy_of_repository

from pipeline.errors import SandglassError
from pipeline.params import schema
from pipeline.scaffold.new import _with_study, create, files

NAME = "counting"
GENERATED = {"dvc.yaml", "params/graph.json"}  # by every start


def _new(workspace: Workspace) -> None:
    done = workspace.run("python", "-m", "pipeline", "new", NAME)
    assert done.status == 0, done.output
    assert {str(path) for path in files(NAME)} <= set(done.output.splitlines())


@pytest.mark.slow
def test_a_new_study_builds_at_once(empty: Workspace) -> None:
    """With its data, models, table, figure, claim and page; both engines then have nothing to do."""
    for step in ("train", "figures", "report"):  # the toy study brings its own
        shutil.copy(REPOSITORY / f"pipeline/steps/{step}.py", empty.path / f"pipeline/steps/{step}.py")
    _new(empty)
    # `new` says so, and its words are the command: the study alone, without the rest of what lies here.
    empty.change(lambda params: params.update(studies=[NAME]))
    done = empty.snakemake("--cores", "2")
    assert done.status == 0, done.output
    assert done.ran == {
        f"dataset {NAME}-sequences",
        f"train {NAME}-small",
        f"theory {NAME}-construction",
        f"analyse {NAME}-accuracy",
        f"figures {NAME}-accuracy",
        f"claims {NAME}",
        "report",
    }
    empty.assert_clean()
    # One more variant is trained, measured and drawn, before any code knows of it.
    empty.change_study(
        lambda params: params["runs"][f"{NAME}-small"]["variants"].update({f"{NAME}-layers3": {"layers": 3}}), NAME
    )
    again = empty.run("python", "-m", "pipeline", "build", NAME)
    assert again.status == 0, again.output
    data = empty.path / "data"
    table = pl.read_parquet(data / f"tables/{NAME}/{NAME}-accuracy/accuracy.parquet")
    assert table["run"].unique(maintain_order=True).to_list() == [f"{NAME}-layers{n}" for n in (1, 2, 3)]
    figure = pl.read_parquet(data / f"figures/{NAME}/{NAME}-accuracy/accuracy.parquet")
    drawn = figure["model"].unique(maintain_order=True)
    assert drawn.to_list() == ["1 layer", "2 layers", f"{NAME}-layers3"]
    assert pl.read_parquet(data / f"theory/{NAME}/{NAME}-construction.parquet")["passed"].all()
    claims = pl.read_parquet(data / f"claims/{NAME}/claims.parquet")
    assert claims["claim"].unique().to_list() == ["1"] and claims.height == 3
    page = (data / f"report/study/{NAME}.html").read_text(encoding="utf-8")
    assert 'id="figure-accuracy"' in page and 'id="claim-1"' in page and "Also measured" not in page
    assert 'class="from-store"' not in page
    # Beside a study that was never built, its page is drawn from what is here, and the other is left alone.
    empty.change(lambda params: params.update(studies=["toy", NAME]))
    beside = empty.run("python", "-m", "pipeline", "build", NAME)
    assert beside.status == 0, beside.output
    assert not (data / "datasets/toy").exists()
    assert 'class="from-store"' in (data / "report/index.html").read_text(encoding="utf-8")


def test_a_new_study_is_in_order_for_editors_linters_and_its_own_tests(empty: Workspace) -> None:
    before = (empty.path / "params.yaml").read_text()
    _new(empty)
    assert (empty.path / "params.yaml").read_text() == before.replace("[toy]", f"[toy, {NAME}]")
    assert (empty.path / schema.schema_file(f"params/{NAME}/runs.yaml")).is_file()
    paths = [f"pipeline/studies/{NAME}", f"pipeline/languages/{NAME}.py", f"schemas/{NAME}", f"tests/{NAME}"]
    config = ("--config", str(REPOSITORY / "pyproject.toml"))
    for command in (("ruff", "check", *config), ("ruff", "format", "--check", *config)):
        done = empty.run(*command, *paths)
        assert done.status == 0, done.output
    done = empty.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"tests/{NAME}",
        "-k",
        "not built",
        PYTHONPATH=f"{empty.path}:{REPOSITORY / 'tests/engines'}",
    )
    assert done.status == 0 and "2 passed, 1 deselected" in done.output, done.output
    assert empty.run("python", "-m", "pipeline", "check").status == 0
    again = empty.run("python", "-m", "pipeline", "new", NAME)
    assert again.status == 2 and again.last_line == f"sandglass: new: params/{NAME} is there already"


@pytest.mark.slow
def test_a_new_study_needs_no_edit_outside_its_own_folders(tmp_path: Path) -> None:
    """In a copy of the repository linters find nothing, and no test fails: neither its own, nor those that run once for
    each study, engines among them, nor those of README and of the index."""
    copy = copy_of_repository(tmp_path / "copy", store=False)
    _new(copy)
    changed = copy.git("status", "--porcelain", "--untracked-files=no").split()[1::2]
    assert {*changed} <= {"params.yaml", "README.md", "docs/findings.md", "docs/audit.md", *GENERATED}, changed
    if (cache := REPOSITORY / ".mypy_cache").is_dir():  # of all other modules, from `make lint`
        shutil.copytree(cache, copy.path / cache.name)
    packages = [f"pipeline.studies.{NAME}", f"pipeline.languages.{NAME}", f"schemas.{NAME}"]
    types = ["mypy", *(word for package in packages for word in ("-p", package))]
    for command in (["ruff", "check", "."], ["ruff", "format", "--check", "."], types):
        done = copy.run(*command)
        assert done.status == 0, done.output
    files = [path.relative_to(copy.path) for path in sorted((copy.path / "tests").glob("[ue]*/test_*.py"))]
    each = [str(path) for path in files if "STUDIES" in (copy.path / path).read_text(encoding="utf-8")]
    for tests in (["--study", NAME, f"tests/{NAME}", *each], ["tests/unit/test_readme.py"]):
        done = copy.run(
            "python",
            "-m",
            "pytest",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            f"--basetemp={tmp_path}/base",
            *tests,
            PYTHONPATH=str(copy.path),
        )
        assert done.status == 0, done.output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "'' is no name of a study: small letters and digits, a letter first"),
        ("Counting", "is no name"),
        ("two-words", "is no name"),
        ("two_words", "is no name"),
        ("2nd", "is no name"),
        ("../../x", "is no name"),
        ("x" * 5000, "x…' is no name"),
        ("class", "'class' means something else already"),
        ("all", "'all' means something else already"),
        ("dyck", "new: params/dyck is there already"),
        ("digits", "new: pipeline/languages/digits.py is there already"),
        ("unit", "new: tests/unit is there already"),
    ],
)
def test_a_name_that_cannot_be_is_one_line(name: str, message: str) -> None:
    header = (REPOSITORY / "params.yaml").read_bytes()
    with pytest.raises(SandglassError) as error:
        create(name)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert (REPOSITORY / "params.yaml").read_bytes() == header


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("scale: smoke\nstudies: {toy: 1}\n", "expected a list `studies:`"),
        ("scale: [\n", "params.yaml: cannot be read"),
        ("scale: smoke\n", "params.yaml: cannot be read"),
        ("studies: [toy, counting]\n", "params.yaml lists counting already, without params/counting"),
    ],
)
def test_a_header_that_cannot_be_edited_is_left_as_it_is(tmp_path: Path, header: str, message: str) -> None:
    (tmp_path / "params.yaml").write_text(header)
    with pytest.raises(SandglassError) as error:
        create(NAME, tmp_path)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["params.yaml"]
    assert (tmp_path / "params.yaml").read_text() == header


@pytest.mark.parametrize(
    "listed",
    [
        "studies: [toy, other|, NEW|]  # in this order\n",
        "studies:    # in this order\n  - toy  # the first\n  - other|\n  - NEW|\n",
        "studies:\n# in this order\n- toy\n- other  # the last|\n- NEW|\n",
    ],
)
def test_the_header_keeps_its_words(tmp_path: Path, listed: str) -> None:
    before, added, after = listed.split("|")
    header = "# what is built\nscale: quick  # smoke: seconds\n{}# the root\nseed: 1\n"
    (tmp_path / "params.yaml").write_text(header.format(before + after))
    made = create(NAME, tmp_path)
    assert all(path.is_file() for path in made)
    assert (tmp_path / "params.yaml").read_text() == header.format(before + added.replace("NEW", NAME) + after)


def test_the_real_header_can_be_edited() -> None:
    text = _with_study(NAME, REPOSITORY)
    assert YAML(typ="safe").load(text)["studies"] == [*STUDIES, NAME]
