"""The processes of a workspace, forked from one that has imported torch, Snakemake and DVC, so that they need not.

At scale smoke a step computes for a tenth of a second and imports for two, and an engine that has nothing to do
imports for most of its time. ``PROGRAM`` lets a process that would be ``python -m pipeline ...``, ``snakemake`` or
``dvc`` ask the server for another in its place, with its arguments, folder, environment and files, and end as that one
ends. The pipeline's own modules are imported anew each time. Tests of steps and engines themselves start them as a user
does; one compares the bytes. More is spared that gives the same bytes (`spare`).
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import gc
import hashlib
import importlib
import io
import itertools
import json
import os
import re
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from importlib import metadata
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

ROOT = Path(__file__).parents[1]  # of the repository
IMPORTED = (
    "altair", "importlib.metadata", "jinja2", "markdown_it", "narwhals._polars.dataframe",
    "narwhals.stable.v1._namespace", "pandera.backends.polars.builtin_checks", "pandera.backends.polars.components",
    "pandera.backends.polars.container", "pandera.polars", "PIL.Image", "psutil", "pyarrow.parquet", "pydantic",
    "rich.progress", "ruamel.yaml", "safetensors.numpy", "scipy.optimize", "scipy.sparse", "scipy.stats",
    "sklearn.datasets", "torch", "typer._click.decorators", "vl_convert",
)  # fmt: skip
ENGINES = {"snakemake": "snakemake.cli", "dvc": "dvc.cli"}  # command: the module whose `main` it calls
OF_ENGINES = (  # which they import only once they are at work
    "argparse_dataclass", "configobj", "dulwich.ignore", "dulwich.worktree", "dvc._debug", "dvc.analytics",
    "dvc.cachemgr", "dvc.cli.parser", "dvc.commands.repro", "dvc.commands.status", "dvc.data_cloud", "dvc.dirs",
    "dvc.lock", "dvc.parsing", "dvc.repo.artifacts", "dvc.repo.datasets", "dvc.repo.graph", "dvc.repo.index",
    "dvc.repo.metrics", "dvc.repo.open_repo", "dvc.repo.params", "dvc.repo.plots", "dvc.repo.reproduce",
    "dvc.repo.stage", "dvc.repo.status", "dvc.repo.trie", "dvc.rwlock", "dvc.scm", "dvc.stage.cache",
    "dvc.stage.loader", "dvc.utils.strictyaml", "dvc_data.hashfile.db.local", "fsspec.implementations.memory",
    "networkx", "pyparsing", "rich.json", "smart_open", "snakemake.api", "snakemake.profiles",
    "snakemake.report.html_reporter", "snakemake.storage", "snakemake.workflow",
    "snakemake_interface_executor_plugins.registry", "snakemake_interface_storage_plugins.registry",
)  # fmt: skip
UNUSED_FOR = 0.5  # seconds after which the server looks whether anybody still uses it
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # torch reads them when it is imported

# What both clients below begin with. Of 1,700 starts, an import of json and socket would take ten seconds.
ASK = """
import _socket, array, os, sys

def ask(command):
    asked = {"command": command, "folder": os.getcwd(), "env": dict(os.environ)}
    text = ascii(asked).encode() + b"\\n"
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(os.environ["FORK_SERVER"])
    files = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))
    server.sendall(text[server.sendmsg([text], [files]):])
    status = server.recv(1)
    os._exit(status[0] if status else 1)
"""

# The programs python, snakemake and dvc, first in the path. They look at no installed package, which takes a start of
# Python two thirds of its time.
PROGRAM = (
    "#!{python} -IS\n"
    + ASK
    + """
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
real = os.path.join(os.path.dirname(sys.executable), name)
if name == "python":
    if len(arguments) > 1 and arguments[0] == "-m" and arguments[1].split(".")[0] == "pipeline":
        ask(arguments[1:])
elif "FORK_STEPS_ALONE" not in os.environ:
    ask([real, *arguments])
os.execv(real, [real, *arguments])
"""
)

# For sitecustomize.py, which Python runs at the start of every process: it was started by its own path.
CUSTOM = (
    ASK
    + """
name = os.path.basename(sys.orig_argv[1]) if len(sys.orig_argv) > 1 else ""
module = sys.orig_argv[2] if name == "-m" else ""
engine = name in ("snakemake", "dvc") and "FORK_STEPS_ALONE" not in os.environ
if module.split(".")[0] == "pipeline" or engine:
    ask(sys.orig_argv[2:] if module else sys.orig_argv[1:])
"""
)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which a workspace finds the server of ``folder``.

    It is started by the first that asks, serves all that ask meanwhile, and ends with the last of them. With
    FORK_IMPORTS in its environment as well, that folder gets a file for each process of the pipeline: its ``argv``, and
    the files of the workspace it ``used``.
    """
    folder.mkdir(exist_ok=True)
    path, site, server = folder / "socket", folder / "site", None
    with (folder / "used").open("w") as used:
        fcntl.flock(used, fcntl.LOCK_SH)  # as long as somebody has it, the server stays
        with (folder / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not _answers(path):
                _lay_out(site)
                command = [sys.executable, __file__, str(folder)]
                server = subprocess.Popen(
                    command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True
                )
                assert server.stdout is not None and server.stdout.readline() == "ready\n"
        try:
            programs = os.pathsep.join(
                [str(site / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
            )
            yield {
                "FORK_SERVER": str(path), "PYTHONPATH": str(site), "PATH": programs, "SANDGLASS_PRELOAD": "0"
            }  # fmt: skip
        finally:
            fcntl.flock(used, fcntl.LOCK_UN)
            if server:
                server.communicate()  # else its work would be in nobody's sum: `time pytest` would say half


def _lay_out(site: Path) -> None:
    (site / "bin").mkdir(parents=True, exist_ok=True)
    (site / "sitecustomize.py").write_text(CUSTOM)
    for name in ("python", *ENGINES):
        program = site / "bin" / name
        program.write_text(PROGRAM.replace("{python}", sys.executable))
        program.chmod(0o755)


def _answers(path: Path) -> bool:
    with (
        socket.socket(socket.AF_UNIX) as client,
        contextlib.suppress(FileNotFoundError, ConnectionRefusedError),
    ):
        client.connect(str(path))
        return True
    return False


def serve(folder: Path) -> list[str]:
    """Answer as long as somebody uses the server; returns in each process that was asked for, with its command.

    The server waits for its children itself. A process between the two would be another fork, which takes as long as a
    small step; and were SIGCHLD ignored, what children worked would be in nobody's sum: ``time pytest`` would say half.
    """
    waiting: dict[int, socket.socket] = {}  # by process id, who is told how it ended
    ended, end = socket.socketpair()
    end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(end.fileno())
    path = folder / "socket"
    path.unlink(missing_ok=True)
    # The socket is closed first: who gets the lock behind this server finds nobody there, and starts another.
    with (folder / "used").open() as used, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(32)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([server, ended], [], [], UNUSED_FOR)
            if not ready:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    sys.exit()
            if ended in ready:
                ended.recv(2**10)
                tell(waiting)
            if server not in ready:
                continue
            client, _ = server.accept()
            text, files, _, _ = socket.recv_fds(client, 2**20, 3)
            while not text.endswith(b"\n") and (more := client.recv(2**20)):
                text += more
            if text.endswith(b"\n") and (process := os.fork()) == 0:
                break
            for file in files:  # else a reader would wait for this process too
                os.close(file)
            if text.endswith(b"\n"):
                waiting[process] = client
            else:  # who asked was killed
                client.close()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Who is told sees by their end that the server is gone.
    for each in (client, ended, end, *waiting.values()):
        each.close()
    request = ast.literal_eval(text.decode())
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    if os.access(program := folder.absolute() / "site/bin/python", os.X_OK):  # memory may hold no programs
        sys.executable = str(program)  # for the processes that this one starts
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    module, *arguments = request["command"]
    # A module is run in its folder; an engine does not see that, and finds the pipeline by its Snakefile or by steps.
    sys.path[0] = str(Path(module).parent) if Path(module).is_absolute() else request["folder"]
    return [module, *arguments]


def tell(waiting: dict[int, socket.socket]) -> None:
    """Send the status of every child that has ended to who asked for it."""
    with contextlib.suppress(ChildProcessError):  # there are none
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            process, status = child
            with waiting.pop(process) as client, contextlib.suppress(OSError):  # it may have been killed
                client.sendall(bytes([os.waitstatus_to_exitcode(status) % 256]))


def compile_once() -> None:
    """Compile the modules of the repository once, not in each process: a work tree of a test holds most as they are.

    Nothing compiled may lie in those trees, so every process compiled what it imported, a tenth of its time.
    """
    plain = SourceFileLoader.source_to_code
    files = [*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "schemas").rglob("*.py")]
    known = {file.read_bytes(): SourceFileLoader(file.stem, str(file)).get_code(file.stem) for file in files}

    def source_to_code(loader: SourceFileLoader, data: Any, path: Any, **options: Any) -> Any:
        if not isinstance(data, bytes) or (code := known.get(data)) is None:
            return plain(loader, data, path, **options)
        return placed(code, str(path))

    SourceFileLoader.source_to_code = source_to_code


def placed(code: CodeType, path: str) -> CodeType:
    """The same code as if compiled from the file ``path``."""
    inner = (placed(each, path) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=path, co_consts=tuple(inner))


def spare(notes: Path) -> None:
    """Do once what each process would do again with the same end: see below, `spare_yaml`, `spare_validation`.

    The renderer starts an engine for JavaScript, which takes a step of figures most of its time, and a report as much:
    what was asked of it before gives the same text again. Every step asks for the version of all pinned software, and
    what is installed stays. DVC builds the parser of all its commands, which takes longer than to see what has changed.
    """
    import vl_convert
    from dvc.cli import parser

    notes.mkdir(exist_ok=True)

    def once(name: str) -> None:
        draw = getattr(vl_convert, name)

        def known(*asked: Any, **options: Any) -> str:
            text = json.dumps([name, asked, options])
            file = notes / hashlib.sha256(text.encode()).hexdigest()
            if not file.exists():
                temporary = file.with_name(f"{file.name}.{os.getpid()}")
                temporary.write_text(draw(*asked, **options), encoding="utf-8", newline="")
                temporary.replace(file)
            return file.read_bytes().decode()

        setattr(vl_convert, name, known)

    once("vegalite_to_svg")
    once("javascript_bundle")
    spare_yaml(notes)
    spare_validation(notes)
    metadata.version = cache(metadata.version)
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for name in re.findall(r"^([\w.-]+).*==", pins, re.MULTILINE):
        metadata.version(name)
    built = parser.get_main_parser()
    parser.get_main_parser = lambda: built


def spare_yaml(notes: Path) -> None:
    """Have DVC read dvc.yaml and dvc.lock from notes, and write dvc.lock stage by stage from notes.

    Reading and writing these two is most of what an engine does in a small study: both are whole files, DVC writes
    dvc.lock after every stage, and most of the text was read or written before. To update dvc.lock, DVC reads it in a
    way that keeps comments, of which it writes none: here it is read like the others.
    """
    from dvc.utils import serialize, strictyaml
    from dvc.utils.serialize import _yaml as yaml

    parse, parse_for_update, dump = yaml.parse_yaml, yaml.parse_yaml_for_update, yaml._dump

    def noted(kind: str, asked: str, make: Callable[[], Any]) -> Any:
        file = notes / hashlib.sha256(f"{kind}\0{asked}".encode()).hexdigest()
        if file.exists():
            return json.loads(file.read_text(encoding="utf-8"))
        content = make()
        with contextlib.suppress(TypeError):  # a date
            if json.loads(text := json.dumps(content)) == content:  # no numbers as keys
                temporary = file.with_name(f"{file.name}.{os.getpid()}")
                temporary.write_text(text, encoding="utf-8")
                temporary.replace(file)
        return content

    def parse_yaml(text: str, path: Any, typ: str = "safe") -> Any:
        # An anchor makes one object of two places, which JSON does not.
        if typ != "safe" or "&" in text or Path(path).name not in ("dvc.yaml", "dvc.lock"):
            return parse(text, path, typ)
        return noted("read", text, lambda: parse(text, path))

    def parse_yaml_for_update(text: str, path: Any) -> Any:
        return (parse_yaml if Path(path).name == "dvc.lock" else parse_for_update)(text, path)

    def stage_by_stage(data: Any, stream: TextIO) -> None:
        try:
            stages = {name: json.dumps(stage) for name, stage in data["stages"].items()}
            assert list(data) == ["schema", "stages"] and stages and not shares(data["stages"].values())
        except (TypeError, KeyError, AttributeError, AssertionError):
            return dump(data, stream)
        stream.write(plain({"schema": data["schema"]}) + "stages:\n")
        for name, text in stages.items():
            alone = {"stages": {name: data["stages"][name]}}  # it folds lines by their indentation
            stream.write(noted("written", f"{name}\0{text}", partial(plain, alone)).removeprefix("stages:\n"))

    def plain(data: Any) -> str:
        stream = io.StringIO()
        dump(data, stream)
        return stream.getvalue()

    def shares(stages: Iterable[Any]) -> bool:
        """Whether two places hold one object, which DVC writes once, with an anchor."""
        todo, seen = list(stages), set[int]()
        while todo:
            each = todo.pop()
            if isinstance(each, dict | list):
                if id(each) in seen:
                    return True
                seen.add(id(each))
                todo += each.values() if isinstance(each, dict) else each
        return False

    for module in (serialize, strictyaml, yaml):
        module.parse_yaml = parse_yaml
    yaml.parse_yaml_for_update = parse_yaml_for_update
    yaml._dump = stage_by_stage


def spare_validation(notes: Path) -> None:
    """Let a table that fits its schema fit it again: one is validated when it is written and whenever it is read.

    What is noted is the content of the table and of all schemas of the work tree. What does not fit is not noted.
    """
    from pandera.api.polars.model import DataFrameModel

    plain = vars(DataFrameModel)["validate"].__func__
    schemas = cache(lambda: b"".join(file.read_bytes() for file in sorted(Path("schemas").rglob("*.py"))))

    def validate(model: Any, frame: Any, *asked: Any, **options: Any) -> Any:
        content = io.BytesIO()
        frame.write_ipc(content, compression="uncompressed")
        kind = f"{model.__module__}.{model.__qualname__}{asked}{options}".encode()
        file = notes / hashlib.sha256(b"\0".join([kind, schemas(), content.getvalue()])).hexdigest()
        if not file.exists():
            plain(model, frame, *asked, **options)
            file.touch()
        return frame

    DataFrameModel.validate = classmethod(validate)


def record(folder: str, file: str, argv: list[str], before: int) -> None:
    """Which files of the workspace this process has imported.

    Only modules that came after those of the server are looked at: a look at one copies the memory that it lies in.
    """
    root = f"{Path.cwd()}{os.sep}"
    new = list(itertools.islice(reversed(sys.modules.values()), len(sys.modules) - before))
    files = [getattr(module, "__file__", None) or "" for module in new]
    used = [name.removeprefix(root) for name in files if name.startswith(root)]
    text = json.dumps({"argv": argv, "used": sorted({file, *used})})
    Path(folder, f"{os.getpid()}.json").write_text(text)


if __name__ == "__main__":
    served = Path(sys.argv[1])
    for name in (*IMPORTED, *ENGINES.values(), *OF_ENGINES):
        importlib.import_module(name)
    importlib.import_module("snakemake.cli").get_argument_parser()  # looks through every package for plugins
    spare(served / "notes")
    compile_once()
    gc.freeze()  # a look at all these objects would copy their memory
    imported = len(sys.modules)
    module, *arguments = serve(served)
    engine = ENGINES.get(Path(module).name)
    file = (
        module if engine else module.replace(".", "/") + ("/__main__.py" if module == "pipeline" else ".py")
    )
    sys.argv = [file, *arguments]
    status: object = 0
    try:
        if engine:
            status = importlib.import_module(engine).main()
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code or 0
    if not engine and "FORK_IMPORTS" in os.environ:
        record(os.environ["FORK_IMPORTS"], file, arguments, imported)
    if isinstance(status, str):  # as `sys.exit` says it
        print(status, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: the usual end visits every object as well.
    os._exit(status if isinstance(status, int) else status is not None)
