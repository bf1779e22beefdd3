"""A work tree of its own for the tests of the two engines: the repository's code with the toy study."""

from __future__ import annotations

import compileall
import copy
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from ruamel.yaml import YAML

from pipeline import params
from pipeline.engine import graph

REPOSITORY = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toy"
KINDS = ("datasets", "runs", "theory", "tables", "figures", "claims")
COPIED = (
    "Snakefile",
    "dvc.yaml",
    "requirements.txt",
    "pipeline",
    "schemas",
    "profiles",
    ".gitignore",
    ".dvcignore",
    ".dvc/config",
    ".dvc/.gitignore",
    "data/reference/README.md",
    "accepted.jsonl",
)
STUDIES = list(YAML(typ="safe").load((REPOSITORY / "params.yaml").read_text(encoding="utf-8"))["studies"])
TIMEOUT = 2400.0  # seconds; all studies at smoke take six minutes on two idle cores, three times that beside tests
NOBODY = "nobody"  # no job ends so
GONE_SECONDS = 10.0  # that what a kill has left may take to end

# What must be made again below a run of the toy study. The figures of toy-losses read the tables of both experiments.
BELOW_B = {"analyse toy-means", "figures toy-means", "figures toy-losses", "claims toy", "report"}
BELOW_A_RUN = BELOW_B | {"analyse toy-losses"}


@dataclass
class Done:
    """A finished command."""

    status: int
    output: str

    @property
    def ran(self) -> set[str]:
        """The steps it started, as ``train toy-a``."""
        # Steps that run beside each other share the stream: an engine's line may follow what one has not ended, and
        # be followed by what one says, as Snakemake writes the end of its line by a second call.
        said = rf"(?:{'|'.join((*graph.STEPS, 'sandglass'))})(?: [\w.-]+)?: "
        command = r"(?:^> |Shell command: )python -m pipeline (\w+?(?: [\w.-]+?)?)"
        commands = re.findall(rf"{command}(?=$|{said})", self.output, re.M)
        return {re.sub("^judge ", "claims ", command) for command in commands}

    @property
    def last_line(self) -> str:
        return self.output.strip().splitlines()[-1]


@dataclass
class Workspace:
    """A work tree and its two engines."""

    path: Path
    env: dict[str, str] = field(default_factory=dict)
    held: str = NOBODY

    def start(self, *command: str, **env: str) -> subprocess.Popen[str]:
        """Start a command in a session of its own, stdout and stderr together."""
        return subprocess.Popen(
            command,
            cwd=self.path,
            env=environment() | self.env | env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

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

    def pushed_clone(self, path: Path) -> Workspace:
        """Push what is published to a store in the repository, commit that, and clone it to ``path``."""
        self.run("dvc", "remote", "add", "-d", "store", ".dvcstore")
        assert self.run("dvc", "push").status == 0
        self.git("add", "-A")
        self.git("commit", "-qm", "store")
        self.git("clone", "-q", ".", str(path))
        return Workspace(path, dict(self.env))

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
        yaml.representer.ignore_aliases = lambda _: True
        tree = yaml.load(file.read_text())
        edit(tree)
        with file.open("w") as out:
            yaml.dump(tree, out)

    def change_study(self, edit: Callable[[dict[str, Any]], object], study: str = "toy") -> None:
        """Edit the parameter files of a study, by section; what entries share stands in the section."""
        yaml = YAML(typ="safe")
        yaml.representer.ignore_aliases = lambda _: True
        files = {params.study_file(study, section): section for section in params.SECTIONS}
        before = {file: yaml.load((self.path / file).read_text()) for file in params.study_files(study)}
        settings = params.study_file(study, "claims")
        tree = {section: copy.deepcopy(before[file]) for file, section in files.items()}
        tree |= copy.deepcopy(before[settings])
        edit(tree)
        after = {file: tree.pop(section) for file, section in files.items()} | {settings: tree}
        for file, values in after.items():
            if values != before[file]:
                with (self.path / file).open("w") as out:
                    yaml.dump(values, out)

    def parameters(self, study: str = "toy") -> dict[Path, str]:
        """The parameter files of a study, with what they say: for `restore`."""
        return {self.path / file: (self.path / file).read_text() for file in params.study_files(study)}

    def restore(self, files: dict[Path, str]) -> None:
        """Write these files as they were."""
        for file, text in files.items():
            file.write_text(text)

    def set_lr(self, run: str, lr: float) -> None:
        def edit(tree: dict[str, Any]) -> None:
            entry = tree["runs"][run]  # of several variants, that of the same name
            entry.get("variants", {run: entry})[run]["lr"] = lr

        self.change_study(edit)

    def edit(self, file: str, text: str = "# edited\n") -> None:
        """Append ``text`` to a file of the code."""
        with (self.path / file).open("a") as out:
            out.write(text)

    def wait_for_step(self, job: str, process: subprocess.Popen[str]) -> None:
        """Wait until ``process`` has the step at work: it has written its process id to its lock, and waits if held."""
        lock = self.path / ".sandglass/jobs" / f"{job}.lock"
        before = lock.read_text() if lock.exists() else ""
        waits = self._waits(self.held)
        deadline = time.monotonic() + TIMEOUT
        while not lock.exists() or lock.read_text() in ("", before) or (job.endswith(self.held) and not waits.exists()):
            assert process.poll() is None, f"{job} did not start: {process.communicate()[0]}"
            assert time.monotonic() < deadline, f"{job} did not start"
            time.sleep(0.05)
        time.sleep(0.2)  # into its work

    def hold(self, job: str) -> dict[str, str]:
        """The environment in which a dataset or a run of the toy study waits until `release`."""
        self.held = job
        self._waits(job).unlink(missing_ok=True)
        return {"TOY_WAIT": f"{job}:{self.path.with_name('go')}"}

    def release(self) -> None:
        """Let what waits go on."""
        self.held = NOBODY
        self.path.with_name("go").touch()

    def _waits(self, job: str) -> Path:
        return self.path.with_name(f"go.{job}")

    def artifacts(self) -> dict[str, bytes]:
        """Every file that was built, with its bytes."""
        data = self.path / "data"
        files = (p for p in data.rglob("*") if p.is_file() and p.relative_to(data).parts[0] != "reference")
        return {str(p.relative_to(data)): p.read_bytes() for p in files}

    def take(self, study: str, other: Workspace) -> None:
        """Put in what is built of a study in another work tree, and record it here as DVC has recorded it there."""
        yaml = YAML(typ="safe")  # not the kind that keeps comments: it takes ten times as long
        for folder in (f"data/{kind}/{study}" for kind in KINDS):
            if (other.path / folder).is_dir():
                shutil.copytree(other.path / folder, self.path / folder)
        for file in [path for name in (f"*-{study}-*", f"*-{study}.*") for path in (other.path / "logs").rglob(name)]:
            _copied(file, self.path / file.relative_to(other.path))
        known = yaml.load(self.path / "dvc.yaml")["stages"]
        recorded = lock_of(other)["stages"].items()
        stages = {name: stage for name, stage in recorded if name in known and name != "report"}
        for md5 in (out["md5"] for stage in stages.values() for out in stage["outs"]):
            _copied(_cached(other, md5), _cached(self, md5))
            for entry in json.loads(_cached(other, md5).read_text()) if md5.endswith(".dir") else ():
                _copied(_cached(other, entry["md5"]), _cached(self, entry["md5"]))
        yaml.default_flow_style, yaml.sort_base_mapping_type_on_output = False, False
        yaml.dump({"schema": "2.0", "stages": stages}, self.path / "dvc.lock")


def _cached(tree: Workspace, md5: str) -> Path:
    """The object with this md5 in the DVC cache of a work tree."""
    return tree.path / ".dvc/cache/files/md5" / md5[:2] / md5[2:]


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def one_after_another(commands: Iterable[str]) -> str:
    """Code that runs commands in one process, which loads what they need once; it prints the status of each."""
    return f"""
import sys
from pipeline.__main__ import main
for command in {[*commands]}:
    sys.argv, status = ["pipeline", *command.split()], 0
    try:
        main()
    except SystemExit as end:
        status = end.code or 0
    sys.stdout.flush()
    print("status", status, flush=True)
"""


def stored(md5: str) -> Path:
    """The object with this md5 in the embedded store of the repository."""
    return REPOSITORY / ".dvcstore/files/md5" / md5[:2] / md5[2:]


def load_all() -> params.Params:
    """The parameters of this repository, read once; what is noted of the code that they name is noted anew."""
    return replace(_loaded(), memo={})


@functools.cache
def _loaded() -> params.Params:
    return params.load(REPOSITORY)


@functools.cache
def load_study(study: str, scale: str = "smoke") -> params.Params:
    """The parameters of one study of this repository, and of no other."""
    with tempfile.TemporaryDirectory() as folder:
        write_study(Path(folder), study)
        return params.load(Path(folder), scale)


def write_study(root: Path, study: str) -> None:
    """Write the parameter files of one study of this repository to the folder ``root``."""
    seed = YAML(typ="safe").load((REPOSITORY / "params.yaml").read_text(encoding="utf-8"))["seed"]
    header = f"scale: smoke\nseed: {seed}\ndevice: cpu\nstudies: [{study}]\n"
    (root / "params.yaml").write_text(header, encoding="utf-8")
    shutil.copytree(REPOSITORY / params.FOLDER / study, root / params.FOLDER / study, dirs_exist_ok=True)


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


def lay_out(path: Path, studies: Sequence[str] = (), env: dict[str, str] | None = None) -> Workspace:
    """The repository's code with ``studies`` at scale smoke, or else the toy study; under git, nothing built.

    Of the code of studies it holds that of its own (`_left_out`).

    ``env`` is added to the environment of its commands.
    """
    _compile()
    for name in (*COPIED, "params.yaml", "params") if studies else COPIED:
        source, target = REPOSITORY / name, path / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=partial(_left_out, studies=studies))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    workspace = Workspace(path, dict(env or {}))
    if studies:
        seed = YAML(typ="safe").load((path / "params.yaml").read_text(encoding="utf-8"))["seed"]
        header = f"scale: smoke\nseed: {seed}\ndevice: cpu\nstudies: [{', '.join(studies)}]\n"
        (path / "params.yaml").write_text(header, encoding="utf-8")
    else:
        shutil.copytree(TOY, path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    done = workspace.run(sys.executable, "-m", "pipeline", "params", "--write")
    assert done.status == 0, done.output
    workspace.git("init", "-q", "-b", "main", "--template=")
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "code")
    return workspace


def copy_of_repository(path: Path, *, store: bool = True) -> Workspace:
    """All files that lie in the repository and that git does not ignore, as they are, under git of their own.

    Without ``store`` the embedded one is a link: half of all files, and of no interest to who does not clone it.
    """
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.check_output(command, cwd=REPOSITORY, text=True).split("\0")[:-1]
    for name in listed:
        if (REPOSITORY / name).is_file() and (store or not name.startswith(".dvcstore/")):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, path / name)
    if not store:
        (path / ".dvcstore").symlink_to(REPOSITORY / ".dvcstore")
    workspace = Workspace(path)
    workspace.git("init", "-q", "-b", "main", "--template=")
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "as it lies there")
    return workspace


def lock_of(tree: Workspace) -> Any:
    """What dvc.lock says."""
    return YAML(typ="safe").load((tree.path / "dvc.lock").read_text(encoding="utf-8"))


def outliving(tree: Path) -> list[str]:
    """Wait until no process has its working directory in ``tree``; a complaint for each that stays."""
    deadline = time.monotonic() + GONE_SECONDS
    while alive := [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == str(tree)]:
        if time.monotonic() > deadline:
            return [f"process {process.pid} outlived the kill" for process in alive]
        time.sleep(0.05)
    return []


def cache_complaints(tree: Workspace) -> list[str]:
    """A complaint for each output in dvc.lock that DVC's cache does not hold, or holds otherwise.

    The report is kept nowhere but where it lies.
    """

    def content(md5: str) -> bytes | None:
        file = _cached(tree, md5)
        data = file.read_bytes() if file.is_file() else b""
        return data if hashlib.md5(data).hexdigest() == md5.removesuffix(".dir") else None

    stages = lock_of(tree)["stages"].items()
    outputs = [out for name, stage in stages if name != "report" for out in stage["outs"]]
    paths = {out["md5"]: out["path"] for out in outputs}
    for md5, path in list(paths.items()):
        if md5.endswith(".dir"):
            entries = json.loads(content(md5) or b"[]")
            paths |= {entry["md5"]: f"{path}/{entry['relpath']}" for entry in entries}
    return [f"DVC's cache has lost {path}" for md5, path in paths.items() if content(md5) is None]


@functools.cache
def _compile() -> None:
    """Compile the code of the repository once, unless Python is told to write no such files.

    A copy of a module has its time, so Python takes the copy of its compiled form: a fifth of the time of a short step,
    which would else compile the hundred modules that it imports.
    """
    for folder in ("pipeline", "schemas") if not sys.dont_write_bytecode else ():
        compileall.compile_dir(REPOSITORY / folder, quiet=1)


def _left_out(folder: str, names: list[str], studies: Sequence[str]) -> set[str]:
    """The code of studies that the work tree does not have.

    No step of another study reads that code, but it is half of all files. Each test would copy them, DVC would
    hash them, and both engines would look at each of them at every start.
    """
    others = set(STUDIES) - set(studies) if Path(folder).name in ("studies", "schemas") else set()
    return others & set(names)


def add_twin(workspace: Workspace) -> None:
    """Give the workspace a second study like the toy study, called twin, and commit it; nothing of it is built."""
    root = workspace.path
    for folder in ("pipeline/studies", "schemas"):
        shutil.copytree(root / folder / "toy", root / folder / "twin")
    shutil.copytree(root / "params/toy", root / "params/twin")
    files = [*(root / "pipeline/studies/twin").rglob("*.py"), *(root / "schemas/twin").rglob("*.py")]
    for file in (*files, *(root / "params/twin").iterdir()):
        text = re.sub(r"\b(studies|schemas)\.toy\b", r"\1.twin", file.read_text(encoding="utf-8"))
        file.write_text(re.sub(r"\btoy-", "twin-", text), encoding="utf-8")
    workspace.change(lambda params: params["studies"].append("twin"))
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "a second study")
