"""Targets, options and profiles of the Snakefile."""

from __future__ import annotations

import subprocess
import sys

import pytest
from workspace import REPOSITORY, Done, Workspace, environment, load_all

from pipeline.engine import snakemake
from pipeline.errors import SandglassError

RUNS = {"dataset toy-numbers", "train toy-a", "train toy-b"}


def test_what_ran_is_read_from_lines_that_run_into_each_other() -> None:
    """Steps at work and Snakemake share a stream, and Snakemake ends its line by a call of its own."""
    output = (
        "Shell command: python -m pipeline figures toy-meansanalyse toy-losses: done in 0.1 s\n\n"
        "train toy-a: 3/10Shell command: python -m pipeline reportfigures toy-means: done in 0.1 s\n\n"
        "Shell command: python -m pipeline analyse trainsandglass: a warning\n\n"
        "Shell command: python -m pipeline judge toy\n"
        "> python -m pipeline train a-figures\n"
        "sandglass: see python -m pipeline why train-toy-a\n"
    )
    ran = {"figures toy-means", "report", "analyse train", "claims toy", "train a-figures"}
    assert Done(0, output).ran == ran


@pytest.mark.slow
def test_every_job_is_self_contained(empty: Workspace) -> None:
    """Each job in a process of its own, as on a cluster: of each way in which the Snakefile states a rule one."""
    table = "data/tables/toy/toy-losses/losses.parquet"
    done = empty.snakemake("--workflow-profile", "profiles/generic", table)
    assert done.status == 0, done.output
    assert done.ran == {"dataset toy-numbers", "train toy-a", "analyse toy-losses"}
    assert empty.planned(table) == set()


def test_targets(empty: Workspace) -> None:
    """A study, a figure, and a checkpoint: what each takes, and no more."""
    figure = {*RUNS, "theory toy-identity", "analyse toy-means", "analyse toy-losses", "figures toy-losses"}
    assert empty.planned("toy") == figure | {"figures toy-means", "claims toy"}
    assert empty.planned("data/figures/toy/toy-losses/losses.svg") == figure
    assert empty.planned("data/runs/toy/toy-b/toy-c.safetensors") == {"dataset toy-numbers", "train toy-b"}


def test_an_unknown_target_is_one_line_before_anything_is_looked_at(empty: Workspace) -> None:
    done = empty.snakemake("-n", "tyo")
    assert done.status == 1
    assert done.last_line == "sandglass: no study, rule or file is called 'tyo'; did you mean toy?"
    assert "Exception" not in done.output and not (empty.path / ".sandglass/params").exists()


def test_an_unknown_target_is_answered_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    loaded, model = load_all(), "data/runs/dyck/dyck-minimal/dyck-minim{}l.safetensors"
    for target, meant in (
        ("train_nce_digit", "train_nce_digits"),
        (f"{REPOSITORY}/data/report/index.html", "data/report/index.html"),
        (model.format("u"), model.format("a")),
    ):
        with pytest.raises(SandglassError) as error:
            snakemake._check_targets([target], loaded)
        assert f"no study, rule or file is called {target!r}; did you mean {meant}" in str(error.value)


def test_other_targets_are_left_to_snakemake(built: Workspace) -> None:
    """Names of rules, outputs, and words that belong to an option."""
    for words in (
        ["train_toy_a", "all", "data/report/index.html", "./data/report/index.html"],
        ["toy", "--quiet", "host", "progress"],
    ):
        done = built.snakemake("-n", *words)
        assert done.status == 0, done.output


def test_it_does_not_say_that_it_has_no_records(built: Workspace) -> None:
    """It has none by intent, and with nothing to do it would say so of every job."""
    done = built.snakemake("-n")
    assert "Nothing to be done" in done.output and "metadata" not in done.output


def test_parameters_on_the_command_line_are_refused(empty: Workspace) -> None:
    (empty.path / "other.yaml").write_text("scale: paper\n")
    for option in (("--config", "scale=paper"), ("--configfile", "other.yaml")):
        done = empty.snakemake(*option)
        assert done.status == 1
        assert "params.yaml" in done.last_line and "dvc exp run -S" in done.last_line
        assert not (empty.path / ".sandglass/params").exists()


def test_touch_is_refused(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    done = built.snakemake("--touch")
    assert done.status == 1
    assert "sandglass: --touch is refused" in done.last_line
    assert "train toy-a" in built.planned()


def test_wrong_parameters_are_one_line(built: Workspace) -> None:
    built.change_study(lambda params: params["runs"]["toy-a"].update(lr="fast"))
    before = built.artifacts()
    done = built.snakemake()
    assert done.status == 1
    assert done.last_line.startswith("sandglass: params/toy/runs.yaml: toy-a.lr")
    assert built.artifacts() == before
    done = built.repro()  # DVC deletes a stage's outputs before the step can look at anything
    assert done.status != 0
    assert "sandglass: params/toy/runs.yaml: toy-a.lr" in done.output and "Traceback" not in done.output


def test_an_id_that_code_names_and_no_file_holds_is_one_line(empty: Workspace) -> None:
    """Claims and figures would else say that it was not tested, for whatever reason."""
    empty.edit("pipeline/studies/toy/names.py", "RUNS += ('toy-lost',)\n")
    for status, command in ((1, ["snakemake", "-n"]), (2, ["python", "-m", "pipeline", "check"])):
        done = empty.run(*command)
        assert done.status == status
        assert "Traceback" not in done.output
        assert done.last_line.startswith("sandglass: params/toy/runs.yaml: 'toy-lost' is missing")


def test_other_software_is_refused(built: Workspace) -> None:
    requirements = built.path / "requirements.txt"
    requirements.write_text(requirements.read_text().replace("numpy==", "numpy==0."))
    done = built.snakemake()
    assert done.status == 1
    assert "sandglass: installed software differs from requirements.txt: numpy" in done.last_line
    assert built.snakemake("-n", SANDGLASS_ALLOW_VERSIONS="1").status == 0


@pytest.mark.slow
def test_dag_is_a_graph(built: Workspace) -> None:
    done = subprocess.run(
        ["snakemake", "--dag"], cwd=built.path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("digraph")
    assert "train_toy" in done.stdout


def test_job_processes_start_light() -> None:
    code = "import sys; from pipeline.engine import snakemake; print({'torch', 'polars', 'dvc'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_experiment_with_other_parameters(built: Workspace) -> None:
    """One that several runs share is set in `test_readme_commands`."""
    done = built.run("dvc", "exp", "run", "-S", "params/toy/runs.yaml:toy-b.variants.toy-c.lr=0.75")
    assert done.status == 0, done.output
    assert {step for step in done.ran if step.startswith("train")} == {"train toy-b"}
    built.assert_clean()


@pytest.mark.started  # DVC ends with 255, which of a forked process stands for signal 1
def test_experiment_with_a_value_that_is_shared_is_refused_with_what_to_type(built: Workspace) -> None:
    done = built.run("dvc", "exp", "run", "-S", "params/toy/runs.yaml:toy-a.steps.smoke=12")
    assert done.status == 255
    assert "use +toy-a.steps.smoke=12" in done.output
    assert built.run("python", "-m", "pipeline", "check").status == 0
    built.assert_clean()
