"""The product's fork server (`pipeline.engine.preload`) with the two engines loaded as well, for work trees of tests.

Snakemake and DVC are what is installed, run by their own scripts: only their start, three quarters of the time of a
look at the toy study, is done once for all tests. Tests that kill them, send them signals or look for them among the
processes have them started as users do (mark ``started``).
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import subprocess
import sys
import threading
from pathlib import Path

from pipeline.engine import preload

PROGRAMS = ("dvc", "snakemake")
LIBRARIES = (
    "dvc.cli.parser",
    "dvc.dvcfile",
    "dvc.repo.reproduce",
    "dvc.repo.status",
    "dvc.stage.loader",
    "dvc_data.index",
    "dvc_task.proc.manager",
    "networkx",
    "psutil",
    "scmrepo.git",
    "smart_open",
    "snakemake.cli",
    "snakemake.storage",
)
SCRIPT = """#!{python}
import os, sys
sys.path[0] = {repository!r}
from pipeline.engine import preload
preload.ask([{program!r}, *sys.argv[1:]])  # ends here
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""


def launch(owner: int, scripts: Path) -> tuple[dict[str, str], subprocess.Popen[bytes]]:
    """Start the server; return the environment in which programs are forked from it, and its process.

    ``scripts`` is a folder for what stands in the place of both engines there.
    """
    here = Path(sys.executable).parent
    scripts.mkdir()
    for name in PROGRAMS:
        text = SCRIPT.format(python=sys.executable, repository=str(Path(__file__).parents[2]), program=str(here / name))
        (scripts / name).write_text(text, encoding="utf-8")
        (scripts / name).chmod(0o755)
    address, server = preload.launch(owner, "tests.engines.forked")
    path = os.pathsep.join((str(scripts), str(here), os.environ["PATH"]))
    return {preload.VARIABLE: address, "PATH": path}, server


def run(words: list[str]) -> None:
    """Run the script of an engine, or else the command line of the pipeline, and end this process."""
    program = Path(words[0]) if words else Path()
    if not program.is_absolute():
        preload.run(words)
    sys.argv, sys.path[0] = words, str(program.parent)

    def script() -> None:
        try:
            runpy.run_path(words[0], run_name="__main__")
        finally:
            threading._shutdown()  # type: ignore[attr-defined]  # as at the usual end, wait for all threads

    preload.end_after(script)


if __name__ == "__main__":
    for name in (*preload.LIBRARIES, *LIBRARIES):
        importlib.import_module(name)
    from snakemake.cli import get_argument_parser

    get_argument_parser()  # which loads what is plugged in
    gc.freeze()
    run(preload.serve(int(sys.argv[1])))
