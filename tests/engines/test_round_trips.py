"""One engine works, the other must agree: with the real programs, on the toy study."""

from __future__ import annotations

from pathlib import Path

import pytest
from workspace import Workspace

pytestmark = pytest.mark.forked

OTHER = {"snakemake": "dvc", "dvc": "snakemake"}
BELOW_A_RUN = {"analyse toy", "figures toy", "claims toy", "report"}
MODEL_A = "data/runs/toy/toy-a/model.safetensors"
FIGURE = "data/figures/toy/means.svg"


def test_after_snakemake_dvc_skips_all(built: Workspace) -> None:
    built.assert_clean()
    assert built.engine("dvc").ran == set()


def test_dvc_alone_makes_the_same_bytes(template: Path, empty: Workspace) -> None:
    assert len(empty.engine("dvc").ran) == 8
    assert empty.artifacts() == Workspace(template).artifacts()
    empty.assert_clean()


def test_artifacts_above_the_checksum_limit_take_part(built: Workspace) -> None:
    sizes = [len(content) for name, content in built.artifacts().items() if name.endswith(".safetensors")]
    assert len(sizes) == 2 and min(sizes) > 1_000_000


@pytest.mark.parametrize("engine", OTHER)
def test_a_parameter_changed_by_one_engine_and_back_by_the_other(built: Workspace, engine: str) -> None:
    before = built.artifacts()
    built.set_lr("toy-a", 0.75)
    assert built.engine(engine).ran == {"train toy-a"} | BELOW_A_RUN
    assert built.artifacts() != before
    built.assert_clean()
    built.set_lr("toy-a", 0.5)
    built.engine(OTHER[engine])
    assert built.artifacts() == before
    built.assert_clean()


def test_git_checkout_restores_the_old_results(built: Workspace) -> None:
    before = built.artifacts()
    built.set_lr("toy-a", 0.75)
    built.engine("snakemake")
    built.git("commit", "-qam", "other rate")
    built.git("checkout", "-q", "HEAD~1")
    assert built.planned() == {"train toy-a"} | BELOW_A_RUN
    assert built.run("dvc", "checkout").status == 0
    assert built.artifacts() == before
    built.assert_clean()
    assert built.engine("dvc").ran == set()


def test_plan_equals_run(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    assert built.planned() == {"train toy-a"} | BELOW_A_RUN
    assert built.planned("data/runs/toy/toy-b/model.safetensors") == set()


@pytest.mark.parametrize(
    ("engine", "then"), [("snakemake", "snakemake"), ("snakemake", "dvc"), ("dvc", "snakemake")]
)
def test_failed_job_is_run_again_with_everything_below(built: Workspace, engine: str, then: str) -> None:
    built.set_lr("toy-a", 0.75)
    run = built.snakemake if engine == "snakemake" else built.repro
    failed = run(TOY_FAIL="toy-a")
    assert failed.status != 0
    assert "Traceback" not in failed.output
    assert built.engine(then).ran == {"train toy-a"} | BELOW_A_RUN
    built.assert_clean()


def test_failed_job_leaves_no_target_fresh(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    assert built.snakemake(TOY_FAIL="toy-a").status != 0
    assert built.planned(FIGURE) == {"train toy-a", "analyse toy", "figures toy"}


def test_failed_run_keeps_what_it_finished(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    built.set_lr("toy-b", 0.75)
    assert built.snakemake("--keep-going", TOY_FAIL="toy-a").status != 0
    assert "train@toy-b" not in built.status()
    assert built.planned() == {"train toy-a"} | BELOW_A_RUN


def test_parameter_set_back_after_a_failure(built: Workspace) -> None:
    before = built.artifacts()
    built.set_lr("toy-a", 0.75)
    assert built.snakemake(TOY_FAIL="toy-a").status != 0
    built.set_lr("toy-a", 0.5)
    built.engine("dvc")
    assert built.artifacts() == before
    built.assert_clean()


def test_partial_target_records_only_its_own_stages(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    built.set_lr("toy-b", 0.75)
    assert built.snakemake(MODEL_A).ran == {"train toy-a"}
    assert {"train@toy-b", "analyse@toy"} <= set(built.status())
    assert "train@toy-a" not in built.status()
    assert built.planned() == {"train toy-b"} | BELOW_A_RUN


@pytest.mark.parametrize(
    ("file", "steps", "below"),
    [
        ("pipeline/studies/toy/figures/__init__.py", {"figures toy"}, {"report"}),
        ("pipeline/studies/toy/runs.py", {"train toy-a", "train toy-b"}, BELOW_A_RUN),
        ("data/reference/README.md", {"report"}, set()),
    ],
)
def test_code_is_an_input(built: Workspace, file: str, steps: set[str], below: set[str]) -> None:
    """A comment changes no result, so DVC stops where the bytes are the same; Snakemake plans for the worst.

    The report prints the md5 of all code, so it is made anew.
    """
    built.edit(file)
    assert built.planned() == steps | below
    assert built.engine("dvc").ran == steps | {"report"}
    built.assert_clean()


def test_old_time_stamp_does_not_hide_an_edit(built: Workspace) -> None:
    built.edit("pipeline/studies/toy/figures/__init__.py")
    built.run("touch", "-d", "2001-01-01", "pipeline/studies/toy/figures/__init__.py")
    assert built.planned() == {"figures toy", "report"}


def test_touched_code_is_not_an_edit(built: Workspace) -> None:
    built.run(
        "touch", "pipeline/store/tables.py", "requirements.txt", "data/datasets/toy/toy-numbers.parquet"
    )
    built.assert_clean()


def test_lost_records_do_not_matter(built: Workspace) -> None:
    built.run("rm", "-rf", ".snakemake", ".sandglass", "logs")
    built.assert_clean()
    built.set_lr("toy-a", 0.75)
    assert built.planned() == {"train toy-a"} | BELOW_A_RUN


def test_damaged_output_is_made_again(built: Workspace) -> None:
    before = built.artifacts()
    file = built.path / "data/tables/toy/means.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    built.engine("snakemake")
    assert built.artifacts() == before
    built.assert_clean()


def test_deleted_output_is_planned_with_everything_below(built: Workspace) -> None:
    (built.path / "data/theory/toy/toy-identity.parquet").unlink()
    assert built.planned() == {"theory toy-identity", "figures toy", "claims toy", "report"}
    assert built.planned(FIGURE) == {"theory toy-identity", "figures toy"}


def test_what_is_edited_while_a_step_runs_is_not_taken_for_what_ran(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    process = built.start("snakemake", FIGURE, TOY_SECONDS="toy-a:3")
    built.wait_for_step("train-toy-a")
    built.edit("pipeline/studies/toy/figures/__init__.py")  # its step has not begun, so it reads this
    built.edit("pipeline/studies/toy/runs.py")
    output, _ = process.communicate()
    assert process.returncode == 0
    assert "edited while they ran, so the next start runs them again: train-toy-a\n" in output
    assert {"train@toy-a", "train@toy-b"} <= set(built.status())
    assert "figures@toy" not in built.status()
    assert built.planned() == {"train toy-a", "train toy-b"} | BELOW_A_RUN


def test_parameters_edited_to_and_fro_while_steps_run(built: Workspace) -> None:
    """The training begins after one edit and ends before the other: it made B, although A was and is asked for."""
    before = built.artifacts()
    built.edit("pipeline/studies/toy/datasets.py")
    process = built.start("snakemake", MODEL_A, TOY_SECONDS="toy-numbers:3")
    built.wait_for_step("dataset-toy-numbers")
    built.set_lr("toy-a", 0.75)
    built.wait_for_step("train-toy-a")
    built.set_lr("toy-a", 0.5)
    process.communicate()
    assert built.artifacts() != before
    assert built.snakemake(MODEL_A).ran == {"train toy-a"}
    assert built.artifacts() == before
