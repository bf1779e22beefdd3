"""One engine works, the other must agree: with the real programs, on the toy study."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as decode
from workspace import BELOW_A_RUN, BELOW_B, Workspace, add_twin

MODEL_A = "data/runs/toy/toy-a/toy-a.safetensors"
FIGURE = "data/figures/toy/toy-means/means.svg"


@pytest.mark.slow
def test_what_is_no_edit_makes_nothing_stale(built: Workspace) -> None:
    """New times, and lost records of Snakemake."""
    files = ("pipeline/store/tables.py", "requirements.txt", "data/datasets/toy/toy-numbers/toy-numbers.parquet")
    built.run("touch", *files)
    assert built.engine("dvc").ran == set()
    built.run("rm", "-rf", ".snakemake", ".sandglass", "logs")
    built.assert_clean()
    built.set_lr("toy-a", 0.75)
    assert built.planned() == {"train toy-a"} | BELOW_A_RUN
    assert built.planned("data/runs/toy/toy-b/toy-c.safetensors") == set()


def test_dvc_alone_makes_the_same_bytes(template: Path, empty: Workspace) -> None:
    assert len(empty.engine("dvc").ran) == 10
    assert empty.artifacts() == Workspace(template).artifacts()
    empty.assert_clean()


def test_artifacts_above_the_checksum_limit_take_part(built: Workspace) -> None:
    sizes = [len(content) for name, content in built.artifacts().items() if name.endswith(".safetensors")]
    assert len(sizes) == 3 and min(sizes) > 1_000_000


def test_a_parameter_changed_by_snakemake_and_back_by_dvc(built: Workspace) -> None:
    before = built.artifacts()
    built.set_lr("toy-a", 0.75)
    assert built.engine("snakemake").ran == {"train toy-a"} | BELOW_A_RUN
    assert built.artifacts() != before
    built.assert_clean()
    built.set_lr("toy-a", 0.5)
    built.engine("dvc")
    assert built.artifacts() == before
    built.assert_clean()


@pytest.mark.slow
def test_a_value_that_two_runs_share_is_changed_by_dvc_and_back_by_snakemake(built: Workspace) -> None:
    before = built.artifacts()

    def steps(count: int) -> None:
        _toy(built, lambda params: params["runs"]["shared"]["base"]["steps"].update(smoke=count))

    steps(12)
    why = built.run("python", "-m", "pipeline", "why", "train-toy-a")
    assert "parameter params/toy/runs.yaml:toy-a.steps.smoke: 10 → 12" in why.output
    assert built.engine("dvc").ran >= {"train toy-a", "train toy-b"}
    assert built.artifacts() != before
    built.assert_clean()
    steps(10)
    built.engine("snakemake")
    assert built.artifacts() == before
    built.assert_clean()


@pytest.mark.slow
def test_what_only_writes_the_same_otherwise_is_said_so(built: Workspace) -> None:
    """DVC tracks the shared values as such, and runs again; the file says as before what to do."""
    _toy(built, lambda params: params["runs"]["shared"]["base"].update(lr=0.1))  # each run says its own
    why = built.run("python", "-m", "pipeline", "why", "train-toy-a")
    assert "params/toy/runs.yaml:toy-a (it says what it did, but is written differently" in why.output
    before = built.artifacts()
    assert built.engine("snakemake").ran >= {"train toy-a", "train toy-b"}
    assert built.artifacts()[MODEL_A.removeprefix("data/")] == before[MODEL_A.removeprefix("data/")]
    built.assert_clean()


@pytest.mark.slow
def test_git_checkout_restores_the_old_results(built: Workspace) -> None:
    before = built.artifacts()
    built.set_lr("toy-a", 0.75)
    built.engine("snakemake")
    built.git("commit", "-qam", "other rate")
    built.git("checkout", "-q", "HEAD~1")
    assert built.planned() == {"train toy-a"} | BELOW_A_RUN
    assert built.run("dvc", "checkout").status == 0
    assert built.planned() == {"report"} == set(built.status())  # the site is none of DVC's
    assert built.engine("dvc").ran == {"report"}
    assert built.artifacts() == before
    built.assert_clean()


@pytest.mark.slow
def test_a_job_that_failed_in_dvc_is_run_again_by_snakemake_with_everything_below(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    failed = built.repro(TOY_FAIL="toy-a")
    assert failed.status != 0
    assert "Traceback" not in failed.output
    assert built.engine("snakemake").ran == {"train toy-a"} | BELOW_A_RUN
    built.assert_clean()


def test_a_failed_run_keeps_what_it_finished_and_leaves_no_target_fresh(built: Workspace) -> None:
    before, params = built.artifacts(), built.parameters()
    built.set_lr("toy-a", 0.75)
    built.set_lr("toy-b", 0.75)
    failed = built.snakemake("--keep-going", TOY_FAIL="toy-a")
    assert failed.status != 0 and "Traceback" not in failed.output
    assert "train-toy-b" not in built.status()
    assert built.planned() == {"train toy-a"} | BELOW_A_RUN
    assert built.planned(FIGURE) == {"train toy-a", "analyse toy-means", "figures toy-means"}
    built.restore(params)
    built.engine("dvc")
    assert built.artifacts() == before
    built.assert_clean()


@pytest.mark.slow
def test_partial_target_records_only_its_own_stages(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    built.set_lr("toy-b", 0.75)
    assert built.snakemake(MODEL_A).ran == {"train toy-a"}
    assert {"train-toy-b", "analyse-toy-means"} <= set(built.status())
    assert "train-toy-a" not in built.status()
    assert built.planned() == {"train toy-b"} | BELOW_A_RUN


def test_code_is_an_input(built: Workspace) -> None:
    """A comment changes no result, so DVC stops where the bytes are the same; Snakemake plans for the worst.

    The report prints the md5 of all code, so it is made anew.
    """
    built.edit("data/reference/README.md")
    assert built.planned() == {"report"}
    figures = "pipeline/studies/toy/figures/means.py"
    built.edit(figures)
    built.run("touch", "-d", "2001-01-01", figures)  # an old time does not hide an edit
    assert built.planned() == {"figures toy-means", "report"}
    built.edit("pipeline/studies/toy/measures/metrics.py")  # which the other analysis does not import
    assert built.planned() == BELOW_B
    assert built.engine("dvc").ran == {"analyse toy-means", "figures toy-means", "report"}
    built.assert_clean()


@pytest.mark.slow
def test_an_output_that_git_tracks_is_not_recorded(built: Workspace) -> None:
    built.git("add", "--force", FIGURE)
    built.set_lr("toy-a", 0.75)
    done = built.run("snakemake", "--cores", "2")
    assert done.status and "what was built is not recorded in DVC" in done.output
    assert "git rm -r --cached 'data/figures/toy/toy-means'" in done.output
    built.git("restore", "--staged", FIGURE)
    built.engine("snakemake")
    built.assert_clean()


def test_deleted_output_is_planned_with_everything_below(built: Workspace) -> None:
    (built.path / "data/theory/toy/toy-identity.parquet").unlink()
    assert built.planned() == {"theory toy-identity", "figures toy-losses", "claims toy", "report"}
    assert built.planned(FIGURE) == set()  # this figure reads no theory
    losses = "data/figures/toy/toy-losses/losses.svg"
    assert built.planned(losses) == {"theory toy-identity", "figures toy-losses"}


@pytest.mark.slow
def test_what_is_edited_while_a_step_runs_is_not_taken_for_what_ran(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    process = built.start("snakemake", FIGURE, **built.hold("toy-a"))
    built.wait_for_step("train-toy-a", process)
    built.edit("pipeline/studies/toy/figures/means.py")  # its step has not begun, so it reads this
    built.edit("pipeline/studies/toy/runs.py")
    built.release()
    output, _ = process.communicate()
    assert process.returncode == 0
    assert "edited while they ran, so the next start runs them again: train-toy-a\n" in output
    assert {"train-toy-a", "train-toy-b"} <= set(built.status())
    assert "figures-toy-means" not in built.status()
    assert built.planned() == {"train toy-a", "train toy-b"} | BELOW_A_RUN


def test_parameters_edited_to_and_fro_while_steps_run(built: Workspace) -> None:
    """The training begins after one edit and ends before the other: it made B, although A was and is asked for."""
    before = built.artifacts()
    built.edit("pipeline/studies/toy/datasets.py")
    process = built.start("snakemake", MODEL_A, **built.hold("toy-numbers"))
    built.wait_for_step("dataset-toy-numbers", process)
    built.set_lr("toy-a", 0.75)
    built.release()
    built.wait_for_step("train-toy-a", process)
    while process.poll() is None and not (built.path / MODEL_A).exists():
        time.sleep(0.05)
    built.set_lr("toy-a", 0.5)
    process.communicate()
    assert built.artifacts() != before
    assert built.snakemake(MODEL_A).ran == {"train toy-a"}
    assert built.artifacts() == before


# --- variants, removals, and other studies ---------------------------------------------------------------


def _toy(workspace: Workspace, edit: Callable[[dict[str, Any]], object]) -> None:
    workspace.change_study(edit)


@pytest.mark.slow
def test_an_edit_of_a_variant_makes_its_run_and_what_uses_it(built: Workspace) -> None:
    """And only the file of that variant is another one."""
    before = built.artifacts()
    _toy(built, lambda params: params["runs"]["toy-b"]["variants"]["toy-c"].update(lr=0.75))
    assert built.planned() == {"train toy-b"} | BELOW_B
    done = built.engine("dvc")
    assert done.ran == {"train toy-b"} | BELOW_B, done.output
    after = built.artifacts()
    runs = {name for name in before if name.startswith("runs/") and before[name] != after[name]}
    assert "runs/toy/toy-b/toy-c.safetensors" in runs
    weights = [checkpoints_of(files["runs/toy/toy-b/toy-b.safetensors"]) for files in (before, after)]
    assert (weights[0] == weights[1]).all()
    assert not any("toy-a" in name for name in runs)
    built.assert_clean()


def checkpoints_of(content: bytes) -> np.ndarray:
    return decode(content)["weights"]


@pytest.mark.slow
def test_an_experiment_that_is_removed_makes_its_readers_stale(built: Workspace) -> None:
    _toy(built, lambda params: params["experiments"].pop("toy-losses"))
    assert built.planned() == {"claims toy", "report"}
    assert built.engine("dvc").ran == {"claims toy", "report"}
    assert not [name for name in built.artifacts() if "losses" in name]
    for kind in ("tables", "figures"):  # gone before the claims read the folder that they were in
        assert not (built.path / f"data/{kind}/toy/toy-losses").exists()
    built.assert_clean()


@pytest.mark.slow
def test_a_graph_that_is_out_of_date_stops_dvc_and_is_written_by_snakemake(built: Workspace) -> None:
    """DVC reads the edges from a file; the parameter files alone decide what they are."""
    entry = {"module": "identity", "size": 9}

    def add(params: dict[str, Any]) -> None:
        params["theory"]["toy-other"] = entry

    def rename(params: dict[str, Any]) -> None:
        params["theory"] = {"toy-third": entry}
        params["experiments"]["toy-losses"] |= {"theory": ["toy-third"]}

    built.edit("pipeline/studies/toy/names.py", "THEORY = ()\n")
    _toy(built, add)
    before = (built.path / "dvc.yaml").read_bytes()
    done = built.repro()
    assert done.status != 0 and "Traceback" not in done.output
    lines = [line for line in done.output.splitlines() if line.startswith("sandglass: ")]
    assert len(lines) == 1 and "is not what the parameters and the code ask for" in lines[0], done.output
    assert "python -m pipeline params --write" in lines[0]
    assert (built.path / "dvc.yaml").read_bytes() == before
    assert built.engine("snakemake").ran >= {"theory toy-other", "claims toy"}  # claims read the folder that it is in
    assert (built.path / "dvc.yaml").read_bytes() != before
    _toy(built, rename)
    done = built.repro()  # DVC itself asks for the parameters of a job that is gone
    assert done.status != 0 and "Traceback" not in done.output
    assert "are missing from 'params/toy/theory.yaml'" in done.output
    assert "theory toy-third" in built.planned()
    assert built.engine("dvc").ran >= {"theory toy-third", "claims toy", "figures toy-losses"}
    assert not [name for name in built.artifacts() if "toy-other" in name or "toy-identity" in name]
    built.assert_clean()


@pytest.mark.slow
def test_an_edit_of_one_study_leaves_the_others_fresh(built: Workspace) -> None:
    """A second study is added without an edit of any file of the first, or of either graph."""
    toy = {name: content for name, content in built.artifacts().items() if "/toy/" in name}
    add_twin(built)
    added = built.planned()
    assert len(added) == 10 and not any(" toy" in command for command in added)
    assert built.engine("snakemake").ran == added
    assert toy.items() <= built.artifacts().items()
    built.assert_clean()
    built.change_study(lambda params: params["runs"]["twin-a"].update(lr=0.75), "twin")
    below = {command.replace("toy", "twin") for command in BELOW_A_RUN}
    assert built.planned() == {"train twin-a"} | below
    assert built.engine("dvc").ran == {"train twin-a"} | below
    assert toy.items() <= built.artifacts().items()
    built.assert_clean()
    built.change_study(lambda params: params["claims"].update(tolerance=0.25), "twin")
    assert built.planned() == {"claims twin", "report"}
    built.change(lambda params: params["studies"].remove("twin"))
    assert built.planned() == {"report"}
    assert built.engine("snakemake").ran == {"report"}
    assert not [name for name in built.artifacts() if "twin" in name]
    built.assert_clean()
