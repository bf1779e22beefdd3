"""What `make reproduce` says at its end: a few lines of what was built, or of what went wrong and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace import Done, Workspace, add_twin

BUILD = ("python", "-m", "pipeline", "build")
MOST_LINES = 12
PAGE = Path("data/report/study/toy.html")


def lines(done: Done) -> list[str]:
    """What a build said, without the lines of its progress."""
    assert "Traceback" not in done.output, done.output
    said = [line for line in done.output.splitlines() if not line.startswith("sandglass: ") or "jobs, " not in line]
    assert len(said) <= MOST_LINES, done.output
    return said


def time_of(path: Path) -> int:
    return path.stat().st_mtime_ns


def test_with_nothing_to_do_it_says_so_and_draws_nothing(built: Workspace) -> None:
    before = time_of(built.path / "data/report/index.html")
    done = built.run(*BUILD)
    assert done.status == 0
    said = lines(done)
    assert said[0] == "scale smoke: all is up to date, nothing had to run"
    assert said[1] == "scale smoke proves that everything runs: it judges no claim"
    assert "dvc.lock is the committed one" in said[2] and said[3].startswith("open data/report/index.html")
    assert "the claim" not in done.output and "claims of" not in done.output
    assert time_of(built.path / "data/report/index.html") == before


@pytest.mark.slow
def test_a_study_beside_another_that_is_not_built_is_drawn_once(built: Workspace) -> None:
    add_twin(built)
    built.set_lr("toy-a", 0.75)
    done = built.run(*BUILD, "toy")
    assert done.status == 0 and "drawing the site: other studies are shown as they lie here" in done.output
    said = lines(done)
    assert any(line.startswith("toy, scale smoke: 6 jobs ran, in ") for line in said)
    assert "twin" not in done.output
    before = time_of(built.path / PAGE)
    done = built.run(*BUILD, "toy")
    assert lines(done)[0] == "toy, scale smoke: all is up to date, nothing had to run"
    assert "drawing" not in done.output and time_of(built.path / PAGE) == before
    os.utime(built.path / "data/tables/toy/toy-means/means.parquet")  # brought by `dvc pull`, say
    done = built.run(*BUILD, "toy")
    assert "drawing the site" in done.output and time_of(built.path / PAGE) > before


@pytest.mark.slow
def test_at_another_scale_claims_are_counted_and_results_are_not_compared(built: Workspace) -> None:
    built.change(lambda params: params.update(scale="quick"))
    done = built.run("python", "-m", "pipeline", "summary")
    assert done.output.startswith("scale quick: 0 of 10 jobs have their results\n  10 have results of another scale")
    done = built.run(*BUILD)
    assert done.status == 0
    said = lines(done)
    assert "scale quick: 10 jobs ran, in " in done.output
    header = next(number for number, line in enumerate(said) if line.startswith("claims of"))
    assert said[header].split() == ["claims", "of", "all", "hold"] and said[header + 1].split() == ["toy", "1", "1"]
    assert "the committed results are of scale smoke, these of scale quick: they are not compared" in done.output
    assert built.run("python", "-m", "pipeline", "summary").output.startswith(
        "scale quick: 10 of 10 jobs have their results\n"
    )


def test_a_job_that_fails_is_named_with_its_log_and_nothing_else(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    done = built.run(*BUILD, TOY_FAIL="toy-a")
    assert done.status == 1
    said = lines(done)
    assert said == [
        "sandglass: train toy-a failed: RuntimeError: told to fail (details: logs/train-toy-a.log)",
        "sandglass: the build stopped with status 1: 0 of 7 jobs are done; see logs/train-toy-a.log",
        "sandglass: when that is mended, the same command continues",
    ]


@pytest.mark.slow
@pytest.mark.started
def test_after_ctrl_c_there_is_one_line(built: Workspace, calmed: Callable[[Workspace], Workspace]) -> None:
    built.change_study(lambda params: params["datasets"]["toy-numbers"].update(rows=50))
    process = built.start(*BUILD, **built.hold("toy-a"))
    built.wait_for_step("train-toy-a", process)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 130, output
    said = lines(Done(130, output))
    assert len(said) <= 2, output  # the step may have said so before
    assert said[-1].startswith("sandglass: interrupted after ")
    assert said[-1].endswith("; the same command continues")
    assert '"status": "interrupted"' in (built.path / "logs/steps/train-toy-a.json").read_text()
    # What was finished is not lost, though nothing was recorded while somebody waited for the prompt.
    calm = calmed(built)
    assert "dataset-toy-numbers" in calm.status()
    assert "dataset toy-numbers" not in calm.planned()
    done = calm.run(*BUILD)
    assert done.status == 0
    calm.assert_clean()


@pytest.mark.slow
@pytest.mark.started
def test_beside_another_build_there_is_its_refusal_alone(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    first = built.start("snakemake", **built.hold("toy-a"))
    built.wait_for_step("train-toy-a", first)
    done = built.run(*BUILD)
    assert done.status == 1
    (said,) = [line for line in lines(done) if line]
    assert said.startswith("sandglass: another snakemake (process ") and "nothing was started" in said
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()


def test_a_wrong_parameter_is_its_line_alone(built: Workspace) -> None:
    built.set_lr("toy-a", -1.0)
    done = built.run(*BUILD)
    assert done.status == 2
    (said,) = lines(done)
    assert said.startswith("sandglass: params/toy/runs.yaml: toy-a.lr")


@pytest.mark.slow
def test_a_trial_changes_nothing_outside_its_folder(built: Workspace) -> None:
    built.change(lambda params: params.update(scale="quick"))
    before = {path: path.read_bytes() for path in built.path.glob("*") if path.is_file()} | built.artifacts()
    done = built.run("python", "-m", "pipeline", "try", "toy")
    assert done.status == 0, done.output
    assert "10 jobs ran, in " in done.output and "judges no claim" in done.output
    made = built.path / ".sandglass/try"
    assert (made / "data/report/index.html").is_file()
    assert "scale: smoke" in (made / "params.yaml").read_text()
    after = {path: path.read_bytes() for path in built.path.glob("*") if path.is_file()} | built.artifacts()
    assert after == before
    assert "done before; " in built.run("python", "-m", "pipeline", "try", "toy").output
    done = built.run("python", "-m", "pipeline", "try", "tyo")
    assert done.status == 2 and done.last_line == "sandglass: try: no study is called 'tyo'; did you mean toy?"
