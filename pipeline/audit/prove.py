"""The proof that an edit of code is harmless: jobs that run again with it, on the same inputs, make the same bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pipeline.audit import hashing, rebuild
from pipeline.audit.compare import IDENTICAL, ROUNDING, compare
from pipeline.engine import graph
from pipeline.engine.software import check_software
from pipeline.errors import SandglassError
from pipeline.params import Params

Proof = dict[str, str]  # path of an output -> its md5, here and as made again


def prove(jobs: Iterable[graph.Job], params: Params, code: dict[Path, str]) -> dict[graph.Job, Proof]:
    """Run ``jobs`` again in a scratch folder, with files of ``code`` that have these md5s, and compare the results.

    Each job reads the inputs that lie here. Raises SandglassError if one fails or makes anything else than what is
    here; the scratch folder then stays.
    """
    check_software(Path())
    folder = Path(tempfile.mkdtemp(prefix="sandglass-proof-"))
    try:
        rebuild.lay_out(folder)
        if edited := [str(path) for path, md5 in code.items() if hashing.md5(folder / path) != md5]:
            raise SandglassError(f"{', '.join(edited)} was edited at this moment")
        proofs = {job: _prove(job, params, folder) for job in jobs}
    except (SandglassError, KeyboardInterrupt):
        print(f"sandglass: what was made again is in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    return proofs


def _prove(job: graph.Job, params: Params, folder: Path) -> Proof:
    for path in graph.data(job, params):
        if not (folder / path).is_file():  # else a job before this one made it, the same as here
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path)
    env = {key: value for key, value in os.environ.items() if key != "DVC_ROOT"}
    words = [sys.executable, *job.command.split()[1:]]
    if subprocess.run(words, cwd=folder, env=env, stdout=sys.stderr, check=False).returncode:
        raise SandglassError(f"{job.stage} fails with this code: see {folder / graph.LOGS / job.name}.log")
    proof = {}
    for path in graph.outputs(job, params):
        made = compare(path, Path(), folder, ROUNDING)
        if made.state != IDENTICAL:
            text = f" ({made.text})" if made.text else ""
            raise SandglassError(f"{job.stage}, run again with this code, makes {path} {made.state}{text}")
        proof[str(path)] = hashing.md5(path)
    return proof
