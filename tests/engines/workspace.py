"""A work tree of its own for the tests of the two engines: the repository's code with the toy study."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

REPOSITORY = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toy"
COPIED = (
    "Snakefile", "dvc.yaml", "requirements.txt", "pipeline", "schemas", "profiles",
    ".gitignore", ".dvcignore", ".dvc/config", ".dvc/.gitignore", "data/reference/README.md", "accepted.jsonl",
)  # fmt: skip
TIMEOUT = 900.0  # machines may be busy


@dataclass
class Done:
    """A finished command."""

    status: int
    output: str

    @property
    def ran(self) -> set[str]:
        """The steps it started, as ``train toy-a``."""
        return set(
            re.findall(r"^(?:> |Shell command: )python -m pipeline (\w+(?: [\w.-]+)?)$", self.output, re.M)
        )

    @property
    def last_line(self) -> str:
        return self.output.strip().splitlines()[-1]


@dataclass
class Workspace:
    """A work tree and its two engines."""

    path: Path
    env: dict[str, str] = field(default_factory=dict)

    def start(self, *command: str, **env: str) -> subprocess.Popen[str]:
        """Start a command in a session of its own, stdout and stderr together."""
        return subprocess.Popen(
            command, cwd=self.path, env=environment() | self.env | env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def run(self, *command: str, **env: str) -> Done:
        """Run a command to its end."""
        process = self.start(*command, **env)
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
        except BaseException:  # too long, or Ctrl-C: what it started must not go on
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return Done(process.returncode, output)

    def snakemake(self, *arguments: str, **env: str) -> Done:
        return self.run("snakemake", "--printshellcmds", "--nocolor", *arguments, **env)

    def repro(self, *arguments: str, **env: str) -> Done:
        return self.run("dvc", "repro", *arguments, **env)

    def engine(self, name: str, **env: str) -> Done:
        """Build everything by ``snakemake`` or ``dvc``; it must succeed."""
        done = self.snakemake(**env) if name == "snakemake" else self.repro(**env)
        assert done.status == 0, done.output
        return done

    def planned(self, *arguments: str) -> set[str]:
        """What Snakemake would run, by a dry run."""
        done = self.snakemake("-n", *arguments)
        assert done.status == 0, done.output
        return done.ran

    def status(self) -> dict[str, Any]:
        """What DVC says has changed."""
        done = self.run("dvc", "status", "--json")
        assert done.status == 0, done.output
        return json.loads(done.output)

    def assert_clean(self) -> None:
        """Neither engine has anything to do."""
        assert self.planned() == set()
        assert self.status() == {}

    def git(self, *arguments: str) -> str:
        done = self.run("git", *arguments)
        assert done.status == 0, done.output
        return done.output

    def change(self, edit: Callable[[dict[str, Any]], None], name: str = "params.yaml") -> None:
        """Edit a parameter file as a user does: load, change, write."""
        file = self.path / name
        yaml = YAML(typ="safe")
        params = yaml.load(file.read_text())
        edit(params)
        with file.open("w") as out:
            yaml.dump(params, out)

    def set_lr(self, run: str, lr: float) -> None:
        def edit(params: dict[str, Any]) -> None:
            params["runs"][run]["lr"] = lr

        self.change(edit, "params/toy.yaml")

    def edit(self, file: str, text: str = "# edited\n") -> None:
        """Append ``text`` to a file of the code."""
        with (self.path / file).open("a") as out:
            out.write(text)

    def wait_for_step(self, job: str) -> None:
        """Until the step is at work: it holds its lock and has written its process id there."""
        lock = self.path / ".sandglass/jobs" / f"{job}.lock"
        before = lock.read_text() if lock.exists() else ""
        deadline = time.monotonic() + TIMEOUT
        while not lock.exists() or lock.read_text() in ("", before):
            assert time.monotonic() < deadline, f"{job} did not start"
            time.sleep(0.05)
        time.sleep(1)  # into its work

    def artifacts(self) -> dict[str, bytes]:
        """Every file that was built, with its bytes."""
        data = self.path / "data"
        files = (p for p in data.rglob("*") if p.is_file() and p.relative_to(data).parts[0] != "reference")
        return {str(p.relative_to(data)): p.read_bytes() for p in files}


def environment() -> dict[str, str]:
    """This interpreter's programs first; nothing of the machine's that could change a result."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    drop = ("PYTEST_", "SANDGLASS_", "TOY_", "SNAKEMAKE_", "DVC_", "GIT_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(drop)}
    names = {
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@t",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@t",
        "PYTHONDONTWRITEBYTECODE": "1",  # folders change when a command changes them, not when Python compiles it
    }
    return kept | names | {"PATH": path, "DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def lay_out(path: Path, toy: bool = True) -> Workspace:
    """The repository's code with the toy study in place of its own, or as it is; under git, nothing built."""
    for name in COPIED if toy else (*COPIED, "params.yaml", "params"):
        source, target = REPOSITORY / name, path / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    if toy:
        shutil.copytree(TOY, path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    workspace = Workspace(path)
    done = workspace.run(sys.executable, "-m", "pipeline", "params", "--write")
    assert done.status == 0, done.output
    workspace.git("init", "-q", "-b", "main", "--template=")
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "code")
    return workspace
