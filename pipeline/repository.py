"""DVC's view of this work tree: what changed, recording what was built, and its lock.

DVC has no documented API for the state of single stages, for committing several at once, or for
holding its lock; every call that is not documented is in this module, and DVC is pinned.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psutil
from dvc.dependency import param
from dvc.exceptions import DvcException
from dvc.lock import LockError
from dvc.repo import Repo
from dvc.utils.serialize import modify_yaml

from pipeline.errors import SandglassError

logging.getLogger("dvc").setLevel(logging.ERROR)  # its notes would mix with Snakemake's


class Repository:
    """The DVC repository at ``root``, with DVC's own lock held: no DVC command can start meanwhile."""

    def __init__(self, root: Path) -> None:
        """Take the lock until ``close`` or the end of the process, however it ends.

        Raises SandglassError if ``root`` has no DVC repository, or if a DVC command is at work in it.
        """
        with _dvc():
            self._repo = Repo(str(root))
        try:
            self._repo.lock.lock()
        except LockError:
            raise SandglassError(
                "a DVC command is at work in this folder; nothing was started, try again when it is done"
            ) from None
        try:
            self._refuse_running_repro()
        except SandglassError:
            self.close()
            raise
        self._repo._lock_depth = 1  # tells DVC that this process holds the lock already
        self._repo._reset()

    def close(self) -> None:
        """Give the lock back."""
        self._repo.lock.unlock()
        self._repo.close()

    def changed(self, among: set[str] | None = None) -> set[str]:
        """The stages (of those named) whose code, parameters, data, command or outputs differ from dvc.lock."""
        with _dvc():
            self._repo._reset()
            stages = [s for s in self._repo.index.stages if among is None or s.addressing in among]
            return {stage.addressing for stage in stages if stage.status()}

    def inputs(self) -> dict[str, list[Path]]:
        """By stage, the existing files it depends on; of a folder, all files in it."""
        with _dvc():
            return {
                stage.addressing: [
                    file
                    for dep in stage.deps
                    if not isinstance(dep, param.ParamsDependency)
                    for file in _files(Path(dep.fs_path))
                ]
                for stage in self._repo.index.stages
            }

    def commit(self, names: Iterable[str]) -> None:
        """Record the outputs of these stages, as they lie there, in dvc.lock and in DVC's cache."""
        wanted = set(names)
        with _dvc():
            stages = [stage for stage in self._repo.index.stages if stage.addressing in wanted]
            for stage in stages:
                stage.save()
                stage.commit(relink=False)  # a file taken back from the cache would get another time
            if stages:
                stages[0].dvcfile.dump_stages(stages, update_pipeline=False)
                self._repo._reset()

    def pull(self, files: Iterable[Path]) -> None:
        """Bring the data of these ``.dvc`` files here, from DVC's cache or remote."""
        with _dvc():
            self._repo.pull(targets=[str(file) for file in files])

    def _refuse_running_repro(self) -> None:
        """A `dvc repro` gives the lock back while a step of it runs, but names itself in this file."""
        file = Path(self._repo.tmp_dir) / "rwlock"
        try:
            entries = json.loads(file.read_text())
            named = file.stat().st_mtime
        except (OSError, ValueError):
            return
        readers = [reader for infos in entries.get("read", {}).values() for reader in infos]
        for info in (*entries.get("write", {}).values(), *readers):
            if _alive(info["pid"], named):
                arguments = " ".join(info["cmd"].split()[1:])
                raise SandglassError(
                    f"`dvc {arguments}` (process {info['pid']}) is at work in this folder; "
                    "nothing was started, try again when it is done"
                )
        file.unlink(missing_ok=True)  # all of them were killed


def forget_stages(root: Path, known: set[str]) -> None:
    """Drop from ``root/dvc.lock`` every stage that is not in ``known``; the caller keeps DVC from writing it."""
    with _dvc(), modify_yaml(str(root / "dvc.lock")) as lock:
        for name in set(lock.get("stages", {})) - known:
            del lock["stages"][name]


def _alive(pid: int, named: float) -> bool:
    """Whether ``pid`` still is the process that had it at time ``named``."""
    try:
        process = psutil.Process(pid)
        return process.create_time() <= named and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return [path] if path.is_file() else []


@contextmanager
def _dvc() -> Iterator[None]:
    """Calls into DVC: its errors become one line, and it parses params.yaml once, not once per stage.

    Each stage still gets objects of its own: shared ones would stand in dvc.lock as YAML anchors.
    """
    parse = param.load_path
    text = cache(lambda *path: json.dumps(parse(*path)))
    param.load_path = lambda *path: json.loads(text(*path))
    try:
        yield
    except DvcException as error:
        raise SandglassError(f"DVC: {' '.join(str(error).split())}") from None
    finally:
        param.load_path = parse
