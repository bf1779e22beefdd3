"""No traceback reaches a user: every command with nonsense, every command with a spoiled params.yaml."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.testing
from test_bad_input import step
from workspace import Workspace, write_study

from pipeline import __main__ as cli
from pipeline.errors import SandglassError

COMMANDS = sorted(command.name or command.callback.__name__ for command in cli.app.registered_commands)  # type: ignore[union-attr]
NONSENSE = ["", "..", "/", "a b", "ünï", "\n", "dyck.standard", "$(touch x)", "--no-such-option", "x" * 5000, "{}"]


def refused(status: int, output: str) -> None:
    shown = output[-500:]
    assert "Traceback" not in output, shown
    assert status in (1, 2), shown
    lines = [line for line in output.splitlines() if line.startswith("sandglass: ")]
    usage = "Usage: " in output  # typer's own refusal, in its own frame
    assert len(lines) == 1 or (usage and not lines), shown


COMMAND = functools.cache(typer.main.get_command)  # made of the same functions each time, in 20 ms


@pytest.fixture(autouse=True)
def command_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typer.testing, "_get_command", COMMAND)


def call(arguments: list[str]) -> tuple[int, str]:
    """A command in this process, ended as ``main`` ends it."""
    result = typer.testing.CliRunner().invoke(cli.app, arguments)
    if isinstance(result.exception, SandglassError):
        text = str(result.exception)
        assert "\n" not in text, text
        return 2, f"sandglass: {text}\n"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_nonsense_is_refused_by_every_command(
    alone: Callable[[str], Workspace], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    smoke = alone("dyck")
    monkeypatch.chdir(smoke.path)
    before = smoke.artifacts()
    for word in NONSENSE:
        for arguments in ([word], ["nothing", word], [word, "nothing", "--x"]):
            status, output = call([command, *arguments])
            refused(status, output)
    assert smoke.artifacts() == before


@pytest.mark.study("dyck")
@pytest.mark.parametrize(
    "arguments", [["trian", "dyck-standard"], ["train"], ["train", "dyck-standrad"], ["export", "dyck", "\udcff"]]
)
def test_the_real_command_line(alone: Callable[[str], Workspace], arguments: list[str]) -> None:
    done = step(alone("dyck"), *arguments)
    refused(done.status, done.output)


SPOILED: dict[str, tuple[str, Callable[[str], str | bytes]]] = {
    "not YAML": ("params/dyck/runs.yaml", lambda text: text.replace("shared:", "shared: [")),
    "not UTF-8": ("params/dyck/study.yaml", lambda text: text.encode("utf-16")),
    "the main file not UTF-8": ("params.yaml", lambda text: text.encode("utf-16")),
    "deep": ("params.yaml", lambda text: text.replace("seed: ", "seed: " + "[" * 50_000)),
    "an id with dots": ("params/dyck/runs.yaml", lambda text: text.replace("dyck-wide", "dyck.wide")),
    "names by scale": (
        "params/dyck/runs.yaml",
        lambda text: text.replace(
            "    objective: next_token", "    objective: {smoke: next_token, quick: next_token, paper: next_token}"
        ),
    ),
    "infinite": ("params/dyck/runs.yaml", lambda text: text.replace("lr: 0.003", "lr: .inf", 1)),
    "a study that is not there": ("params.yaml", lambda text: text.replace("dyck", "dyk")),
}
WITH_PARAMS = [
    ["check"],
    ["params"],
    ["summary"],
    ["export", "dyck", "variation"],
    ["trace", "dyck"],
    ["train", "dyck-standard"],
]


def spoil(folder: Path, name: str) -> str:
    """Damage one parameter file of the Dyck study in ``folder``; return its name."""
    write_study(folder, "dyck")
    file, damage = SPOILED[name]
    before = (folder / file).read_text(encoding="utf-8")
    content = damage(before)
    assert content != before
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize("name", SPOILED)
def test_spoiled_parameters_are_one_line_in_every_command(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = spoil(tmp_path, name)
    (tmp_path / "dvc.yaml").touch()  # by which `export` knows a work tree
    for arguments in WITH_PARAMS:
        status, output = call(arguments)
        refused(status, output)
        assert f"sandglass: {file}: " in output, (arguments, output[-500:])


@pytest.mark.started
@pytest.mark.parametrize("name", ["deep", "names by scale"])
def test_spoiled_parameters_are_one_line_in_a_shell(dyck: Workspace, name: str) -> None:
    """With the ends of processes as they are: the C parser would end them by a signal."""
    file = spoil(dyck.path, name)
    for command in (["python", "-m", "pipeline", "train", "dyck-standard"], ["snakemake", "-n"]):
        done = dyck.run(*command)
        refused(done.status, done.output)
        assert f"sandglass: {file}: " in done.output
