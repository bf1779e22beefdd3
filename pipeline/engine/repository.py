"""DVC's view of this work tree: what changed, recording what was built, and its lock.

DVC has no documented API for the state of single stages, for committing several at once, or for
holding its lock; every call that is not documented is in this module, and DVC is pinned.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
from dulwich.repo import Repo as GitRepo
from dvc import dvcfile, rwlock
from dvc.dependency import param
from dvc.exceptions import DvcException
from dvc.lock import LockError
from dvc.output import Output
from dvc.repo import Repo
from dvc.utils.serialize import dumps_yaml, parse_yaml
from dvc_data.hashfile.build import build
from dvc_data.hashfile.gc import gc
from dvc_data.hashfile.hash_info import HashInfo
from dvc_data.hashfile.obj import HashFile
from dvc_data.hashfile.tree import Tree

from pipeline.engine import graph, lockfile, unchanged
from pipeline.errors import SandglassError

logging.getLogger("dvc").setLevel(logging.ERROR)  # its notes would mix with Snakemake's


@dataclass(frozen=True)
class Difference:
    """What DVC finds in one stage that is not as dvc.lock has it.

    ``deps`` and ``outs`` give, by path, DVC's word: modified, deleted, new, not in cache.
    """

    command: str | None  # the new one, where it changed
    params: bool
    deps: dict[Path, str]
    outs: dict[Path, str]
    reads: frozenset[Path]  # all that it depends on now, changed or not
    returnable: frozenset[Path]  # those of ``outs`` that DVC can bring, from cache or default remote

    def __bool__(self) -> bool:
        """Return whether there is any difference."""
        return bool(self.command or self.params or self.deps or self.outs)


class View:
    """The DVC repository at ``root`` as it stands, without a lock: for commands that only look."""

    def __init__(self, root: Path) -> None:
        """Look at the DVC repository at ``root``, opened when it is first asked for what takes DVC.

        What asks it raises SandglassError if there is none.
        """
        self._root = root.resolve()

    @cached_property
    def _repo(self) -> Repo:
        with _dvc():
            return Repo(str(self._root))

    def close(self) -> None:
        """Close DVC's files."""
        if "_repo" in self.__dict__:
            self._repo.close()

    def differences(self) -> dict[str, Difference]:
        """Return, by stage, what differs from dvc.lock; stages without a difference are left out."""
        found: dict[str, Difference] = {}

        def look() -> set[str]:
            with _dvc(), _hashed_once():
                self._repo._reset()
                differences = {stage.addressing: self._difference(stage) for stage in self._repo.index.stages}
            found.update({name: difference for name, difference in differences.items() if difference})
            return set(found)

        self._unless_untouched(look)
        return found

    def _unless_untouched(self, look: Callable[[], set[str]]) -> set[str]:
        return unchanged.unless_untouched(self._root, look, lambda: Path(self._repo.cache.local.path))

    def _difference(self, stage: Any) -> Difference:
        # Not stage.status(): that waits for no one, but refuses while another process writes.
        files = [dep for dep in stage.deps if not isinstance(dep, param.ParamsDependency)]
        deps = {self._path(dep): word for dep in files for word in dep.status().values()}
        outs = {self._path(out): word for out in stage.outs for word in out.status().values()}
        remote = self._repo.config["core"].get("remote")  # of what DVC calls deleted, its cache has a copy
        return Difference(
            command=stage.cmd if stage.changed_stage() else None,
            params=any(dep.status() for dep in stage.params),
            deps=deps,
            outs=outs,
            reads=frozenset(map(self._path, files)),
            returnable=frozenset(
                self._path(out)
                for out in stage.outs
                if out.use_cache and (outs.get(self._path(out)) == "deleted" or (remote and out.can_push))
            ),
        )

    def _path(self, output: Any) -> Path:
        return Path(output.fs_path).relative_to(self._root)

    def md5s(self, path: Path) -> dict[Path, str]:
        """Return the md5, by path, of the file ``path`` or of every file in the folder; empty if it is gone."""
        node = self._hashed(path)
        if isinstance(node, Tree):
            return {path.joinpath(*key): str(info.value) for key, (_, info) in node.iteritems()}
        return {path: str(node.hash_info.value)} if node else {}

    def _hashed(self, path: Path) -> HashFile | None:
        if not (self._root / path).exists():
            return None
        cache, ignore = self._repo.cache.local, self._repo.dvcignore
        with _dvc():
            _, _, node = build(cache, str(self._root / path), self._repo.fs, "md5", ignore=ignore, dry_run=True)
        return node

    def at_work(self) -> str | None:
        """Return the `dvc repro` that runs in this folder, in words; None if none does.

        `dvc repro` gives its lock back while a step of it runs, but names itself in a file.
        """
        try:
            entries = json.loads(self._users.read_text())
            named = self._users.stat().st_mtime
        except (OSError, ValueError):
            return None
        readers = [reader for infos in entries.get("read", {}).values() for reader in infos]
        for info in (*entries.get("write", {}).values(), *readers):
            if alive(info["pid"], named):
                return f"`dvc {' '.join(info['cmd'].split()[1:])}` (process {info['pid']})"
        return None

    @property
    def _users(self) -> Path:
        return self._root / ".dvc" / "tmp" / "rwlock"

    def unused(self) -> dict[Path, int]:
        """Return the bytes of each object in DVC's cache that neither dvc.lock nor a .dvc file here names."""
        cache, used = self._repo.cache.local, {info.value for info in self._used()}
        with _dvc():
            paths = [Path(cache.oid_to_path(oid)) for oid in cache.all() if oid not in used]
        return {path: path.stat().st_size for path in paths}

    def _used(self) -> set[HashInfo]:
        """Return what dvc.lock and the .dvc files here name, folders and the files in them.

        DVC's own answer asks the remote for each folder whose list of files is not in its cache, as that of a run which
        was never pulled, and gives up if it is not there either. Here, of such a folder what lies in it is in use.
        """
        used = set()
        with _dvc():
            for out in self._repo.index.outs:
                if out.use_cache and out.hash_info:
                    used.add(out.hash_info)
                    if out.is_dir_checksum:
                        tree = out.get_obj() or self._hashed(self._path(out))
                        used |= {info for _, (_, info) in tree.iteritems()} if isinstance(tree, Tree) else set()
        return used


class Repository(View):
    """The DVC repository at ``root``, with DVC's own lock held: no DVC command can start meanwhile."""

    def __init__(self, root: Path) -> None:
        """Take the lock until ``close`` or the end of the process, however it ends.

        Raises SandglassError if ``root`` has no DVC repository, or if a DVC command is at work in it.
        """
        super().__init__(root)
        try:
            self._repo.lock.lock()
        except LockError:
            raise SandglassError(
                "a DVC command is at work in this folder; nothing was started, try again when it is done"
            ) from None
        try:
            self._refuse_running_repro()
            lockfile.mend(root)
        except SandglassError:
            self.close()
            raise
        self._repo._lock_depth = 1  # tells DVC that this process holds the lock already
        self._repo._reset()

    def close(self) -> None:
        """Give the lock back."""
        self._repo.lock.unlock()
        super().close()

    def collect_garbage(self) -> None:
        """Delete the objects in DVC's cache that `unused` names."""
        used = self._used()
        with _dvc():
            gc(self._repo.cache.local, used)

    def changed(self, among: set[str] | None = None) -> set[str]:
        """Return the stages (of those named) whose code, parameters, data, command or outputs differ from dvc.lock."""

        def look() -> set[str]:
            with _dvc(), _hashed_once():
                self._repo._reset()
                stages = [s for s in self._repo.index.stages if among is None or s.addressing in among]
                return {stage.addressing for stage in stages if stage.status()}

        return look() if among is not None else self._unless_untouched(look)

    def commit(self, names: Iterable[str]) -> None:
        """Record the outputs of these stages, as they lie there, in dvc.lock and in DVC's cache.

        What a stage depends on is hashed anew for its record. Whether it can be hashed at all DVC asks twice more.
        """
        addresses = set(names)
        with _dvc(), _hashed_once(), _index_read_once():
            stages = [stage for stage in self._repo.index.stages if stage.addressing in addresses]
            for stage in stages:
                # With a note of a run DVC keeps a copy of all that it made; none when it runs such a stage itself.
                stage.save(run_cache=all(out.use_cache for out in stage.outs))
                stage.commit(relink=False)  # a file taken back from the cache would get another time
            if stages:
                stages[0].dvcfile.dump_stages(stages, update_pipeline=False)
                self._repo._reset()

    def pull(self, files: Iterable[Path]) -> None:
        """Bring the data of these ``.dvc`` files here, from DVC's cache or remote."""
        with _dvc():
            self._repo.pull(targets=[str(file) for file in files])

    def _refuse_running_repro(self) -> None:
        if busy := self.at_work():
            raise SandglassError(f"{busy} is at work in this folder; nothing was started, try again when it is done")
        # All that it names were killed, or a kill cut it off: DVC writes it with the lock that is ours now.
        self._users.unlink(missing_ok=True)


def forget_stages(root: Path, known: set[str]) -> None:
    """Drop from ``root/dvc.lock`` every stage that is not in ``known``; the caller keeps DVC from writing it."""
    with _dvc(), _replaced(root / "dvc.lock") as lock:
        for name in set(lock.get("stages", {})) - known:
            del lock["stages"][name]
    lockfile.keep_whole(root)  # else the stages that it lacks would be taken for cut off, and put back


def record_code(root: Path, files: dict[str, dict[str, dict[str, Any] | None]]) -> None:
    """Put into ``root/dvc.lock``, as what a stage was built from, these entries (by stage and path) of dependencies;
    None takes one out. The caller keeps DVC from writing it."""
    with _dvc(), _replaced(root / "dvc.lock") as lock:
        for name, entries in files.items():
            deps = lock["stages"][name]["deps"]
            deps[:] = [entry for entry in deps if entries.get(entry["path"], entry) is not None]
            for entry in deps:
                entry.update(entries.get(entry["path"]) or {})
            known = {entry["path"] for entry in deps}
            deps += [{"path": path} | entry for path, entry in entries.items() if entry and path not in known]


def alive(pid: int, named: float) -> bool:
    """Return whether ``pid`` still is the process that had this number at time ``named``."""
    try:
        process = psutil.Process(pid)
        return process.create_time() <= named and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@contextmanager
def _replaced(path: str | Path, fs: object = None) -> Iterator[dict[str, Any]]:
    """Yield the content of a YAML file to edit, then replace the file.

    Stands in for DVC's ``modify_yaml``, which writes in place; a kill here leaves the old file or the new one. It
    keeps no comments, which DVC writes none of, and so reads dvc.lock in a fifth of the time; of its stages it writes
    those anew that were edited, where DVC takes ten seconds for all of this repository's. The bytes are the same.
    """
    file = Path(path)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    data = parse_yaml(text, path) if text else {}
    before = _stages_as_text(data)
    yield data
    temporary = file.parent / graph.STATE / f"{file.name}.tmp"
    temporary.parent.mkdir(exist_ok=True)
    temporary.write_text(_edited(text, before, data), encoding="utf-8")
    temporary.replace(file)


def _stages_as_text(data: dict[str, Any]) -> dict[str, str]:
    return {name: json.dumps(stage, default=str) for name, stage in data.get("stages", {}).items()}


def _edited(text: str, before: dict[str, str], data: dict[str, Any]) -> str:
    """Return dvc.lock as DVC writes ``data``: of a stage that is as it was ``before``, what ``text`` has for it."""
    head = "schema: '2.0'\nstages:\n"
    if not text.startswith(head) or data.keys() != {"schema", "stages"} or not data["stages"]:
        return str(dumps_yaml(data))
    written = lockfile.blocks(text)
    now = _stages_as_text(data)
    blocks = []
    for name, stage in data["stages"].items():
        if now[name] == before.get(name) and name in written:
            blocks.append(f"  {name}:\n{written[name]}")
        else:
            blocks.append(str(dumps_yaml({"stages": {name: stage}})).removeprefix("stages:\n"))
    return head + "".join(blocks)


def _at(tree: Any, path: str, separator: str) -> Any:
    """Return the value at ``path``. Raises KeyError if there is none, which DVC takes for missing."""
    for key in path.split(separator):
        if not isinstance(tree, dict):
            raise KeyError(path)
        tree = tree[key]
    return tree


@contextmanager
def _hashed_once() -> Iterator[None]:
    """Let DVC hash each file once, as long as nothing is written meanwhile.

    DVC asks for the hash once for each stage that depends on the file, for a module of the code hundreds of times.
    """
    original, known = Output._get_hash_meta, dict[str, Any]()

    def get_hash_meta(output: Output) -> Any:
        if output.fs_path not in known:
            known[output.fs_path] = original(output)
        return known[output.fs_path]

    Output._get_hash_meta = get_hash_meta
    try:
        yield
    finally:
        Output._get_hash_meta = original


@contextmanager
def _index_read_once() -> Iterator[None]:
    """Let DVC read git's index once, as long as nothing is staged meanwhile.

    It asks of each output whether git tracks it, and reads the whole index for the answer: 30 ms, six hundred times.
    """
    original = GitRepo.open_index
    GitRepo.open_index = cache(original)  # type: ignore[method-assign]
    try:
        yield
    finally:
        GitRepo.open_index = original  # type: ignore[method-assign]


@contextmanager
def _dvc() -> Iterator[None]:
    """Change DVC in four ways for the calls made within, and turn its errors into one line.

    DVC then parses params.yaml once, not once per stage; each stage still gets objects of its own, since shared
    ones would stand in dvc.lock as YAML anchors. It goes straight to a parameter, and does not compare the
    path of every value with it as if with a pattern. It replaces dvc.lock in one step. And it keeps no note of
    who reads and writes what, rewritten in place for each stage: the lock of the repository is held.
    """
    original = param.load_path, param.dpath, dvcfile.modify_yaml, rwlock.rwlock
    parsed = cache(lambda *path: json.dumps(original[0](*path)))
    param.load_path = lambda *path: json.loads(parsed(*path))
    param.dpath = SimpleNamespace(get=_at)
    dvcfile.modify_yaml = _replaced
    rwlock.rwlock = lambda *_: nullcontext()
    try:
        yield
    except DvcException as error:
        text = " ".join(str(error).split())
        if "not a git repository" in text:
            text = "this folder is no git repository, which it needs; make it one with: git init"
        raise SandglassError(f"DVC: {text}") from None
    finally:
        param.load_path, param.dpath, dvcfile.modify_yaml, rwlock.rwlock = original
