"""Jobs of Snakemake that find their libraries loaded: they are forked from one process that has them.

Loading torch, polars and pandera takes a core more than two seconds, which is more than many a job computes. While
Snakemake runs, a server has loaded them once. ``python -m pipeline ...`` asks it for a process with its own folder,
environment and files, and ends as that one ends; where nobody answers (another machine, another number of threads) it
does the work itself. The workers of a training are asked for in the same way. Only libraries are loaded beforehand:
each job reads the code of the pipeline in its own folder, so that an edit during a build is seen. Linux only;
``SANDGLASS_PRELOAD=0`` turns it off, and the name of a server that runs already has all that is started use that one.
`dvc repro` starts each step anew.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

VARIABLE = "SANDGLASS_PRELOAD"  # 0: no server; else where it listens, which Snakemake says to its jobs
LIBRARIES = (
    "altair",
    "jinja2",
    "narwhals.stable.v1",
    "numpy",
    "pandera.backends.polars.builtin_checks",
    "pandera.backends.polars.container",
    "pandera.polars",
    "polars",
    "psutil",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pydantic.types",
    "rich.progress",
    "ruamel.yaml",
    "safetensors.numpy",
    "scipy.optimize",
    "scipy.stats",
    "sympy.combinatorics",
    "torch",
    "typer",
)
# Libraries read their number of threads when they are loaded. Snakemake sets it for each rule; most have one.
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# The tensors of a step of small models are a few hundred KB. By default glibc gives such memory back and asks for it
# again at every step, which is up to a quarter of the time. It reads this when a process starts: jobs, and what trains
# for a job, keep up to 1 GiB, in large pages where the kernel gives them (a tenth of the time of some trainings).
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
FORKED = "SANDGLASS_FORKED"  # the process that was forked for a job, which is to do the work itself
KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
MMAP_MAX, TRIM_THRESHOLD = -4, -1  # M_MMAP_MAX and M_TRIM_THRESHOLD of mallopt(3)


def keep_large_blocks() -> None:
    """Have this process take blocks of memory of any size from its heap, and keep them there once they are freed.

    Weights and gradients of large models are above the largest threshold that glibc accepts (32 MiB). Each would be
    mapped at every step, cleared by the kernel, and given back: up to a third of the time. The end of the heap would be
    given back in the same way where the process started without `KEEP_MEMORY`, as DVC's do. Another C library has no
    such settings, and nothing is done.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_MAX, 0)
        library.mallopt(TRIM_THRESHOLD, int(KEEP_MEMORY["MALLOC_TRIM_THRESHOLD_"]))


def start() -> None:
    """Start the server of this process, Snakemake's main one, for its jobs, unless they have one already."""
    if sys.platform == "linux" and not os.environ.get(VARIABLE):
        os.environ[VARIABLE], _ = launch(os.getpid())


def launch(owner: int, module: str = __name__) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a server that ends when the process ``owner`` does; return its name, and its process.

    ``module`` is what it runs; the tests have one that has loaded more.
    """
    name = f"sandglass-{os.getpid()}-{os.urandom(8).hex()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")  # a name that no file has, so that none is left behind
        listener.listen(128)
        server = subprocess.Popen(
            [sys.executable, "-m", module, str(owner)],
            cwd=Path(__file__).parents[2],
            env=os.environ | THREADS | KEEP_MEMORY,
            stdin=listener.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return name, server


def ask(words: list[str]) -> None:
    """Have the server run ``python -m pipeline`` with ``words`` and end as that ends; return where nobody answers."""
    address = os.environ.get(VARIABLE, "0")
    if address == "0" or os.environ.get(FORKED) == str(os.getpid()):
        return
    if any(os.environ.get(name, value) != value for name, value in THREADS.items()):
        return
    mask = os.umask(0)
    os.umask(mask)
    request = {"words": words, "folder": str(Path.cwd()), "environment": dict(os.environ), "umask": mask}
    # Ctrl-C reaches the job as well, and that ends in order.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
        server.connect(f"\0{address}")
        if not _ours(server):
            raise ConnectionRefusedError
        socket.send_fds(server, [json.dumps(request).encode() + b"\n"], [0, 1, 2])
        if server.recv(1):  # a process has begun; without one nothing was done
            status = b""
            with contextlib.suppress(OSError):
                status = server.recv(1)
            _end(status[0] if status else 1)
    signal.signal(signal.SIGINT, before)


def _end(status: int) -> NoReturn:
    """End this process with ``status``, or by the signal that it stands for: 247 by signal 9."""
    if status > 256 - signal.NSIG:
        with contextlib.suppress(OSError):  # of signals 9 and 19, which nobody can handle
            signal.signal(256 - status, signal.SIG_DFL)
        os.kill(os.getpid(), 256 - status)
    os._exit(status)


def serve(engine: int) -> list[str]:
    """Answer on standard input until the process ``engine`` ends; return in each forked process, with its words."""
    # By the descriptor of a process: its number, and who asked.
    running: dict[int, tuple[int, socket.socket]] = {}
    listener = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the engine, and with it the server
    lives = os.pidfd_open(engine)
    while True:
        callers = {caller: process for process, (_, caller) in running.items()}
        watched: list[Any] = [lives, listener, *running, *callers]
        ready, _, _ = select.select(watched, [], [])
        if lives in ready:
            sys.exit()
        for caller in [each for each in ready if each in callers]:  # it was killed, and so is its job
            os.kill(running[callers[caller]][0], signal.SIGKILL)
        for process in [each for each in ready if each in running]:
            number, caller = running.pop(process)
            _, status = os.waitpid(number, 0)
            os.close(process)
            with caller, contextlib.suppress(OSError):
                caller.sendall(bytes([os.waitstatus_to_exitcode(status) % 256]))
        if listener not in ready:
            continue
        caller, _ = listener.accept()
        text, files = _read(caller) if _ours(caller) else (b"", [])
        number = os.fork() if text else -1
        if number == 0:
            for each in (listener, caller, *(other for _, other in running.values())):
                each.close()
            for descriptor in (lives, *running):
                os.close(descriptor)
            return _become(json.loads(text), files)
        for file in files:  # else who reads there would wait for the server too
            os.close(file)
        if not text:
            caller.close()
            continue
        running[os.pidfd_open(number)] = (number, caller)
        with contextlib.suppress(OSError):
            caller.sendall(b"\n")


def _ours(other: socket.socket) -> bool:
    """Return whether the process at the other end is of this user: any process can connect to a name without a file."""
    credentials = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)  # process, user, group
    return bool(user == os.getuid())


def _read(caller: socket.socket) -> tuple[bytes, list[int]]:
    """Return what was asked and the caller's three files; no text if it was killed while it asked."""
    text, files, _, _ = socket.recv_fds(caller, 2**20, 3)
    while not text.endswith(b"\n") and (more := caller.recv(2**20)):
        text += more
    return (text if text.endswith(b"\n") else b""), files


def _become(request: dict[str, Any], files: list[int]) -> list[str]:
    """Take the caller's files, folder and environment; return the words of its command.

    What the server itself has loaded of the pipeline may be of another folder, or of another time.
    """
    ctypes.CDLL(None).prctl(KILL_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.umask(request["umask"])
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    for name in [each for each in sys.modules if each.split(".")[0] == "pipeline"]:
        del sys.modules[name]
    os.environ.clear()
    os.environ.update(request["environment"] | {FORKED: str(os.getpid())})
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    words: list[str] = request["words"]
    return words


def run(words: list[str]) -> NoReturn:
    """Run ``python -m pipeline`` with ``words`` in this process and end it."""
    sys.argv = ["pipeline", *words]
    end_after(lambda: runpy.run_module("pipeline", run_name="__main__", alter_sys=True))


def end_after(program: Callable[[], object]) -> NoReturn:
    """Run ``program`` and end this process as Python would, with its status or its traceback.

    The usual end of Python visits all that is loaded, which takes as long as a small job.
    """
    status: object = 0
    try:
        program()
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # a look at all these objects would copy their memory
    run(serve(int(sys.argv[1])))
