"""One flipped byte anywhere in a table, checkpoint, figure or dvc.lock: noticed on reading, or by verification."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from workspace import Workspace

from pipeline import access, params
from pipeline.audit import provenance, verify
from pipeline.audit.lineage import Chain
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.store import checkpoints, tables

FLIPS = {"tables": 350, "checkpoints": 300, "figures": 300, "lock": 150}
COSMETIC = [(b"\n", ord("\r")), (b" cmd", ord("\t")), (b"2.0", ord("3")), (b" md5", ord("\t"))]
ALL_OF_TRACE = 10  # every so many flips of dvc.lock, all that `trace --verify` does


@contextmanager
def flipped(path: Path, place: int, mask: int) -> Iterator[None]:
    """One byte is another one, for a while."""
    before = path.read_bytes()
    content = bytearray(before)
    content[place] ^= mask
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def survivors(files: list[Path], count: int, seed: int, noticed: Callable[[Path], bool]) -> list[str]:
    """The flips that nobody noticed, of ``count`` random ones; all files are hit, and found intact at the end."""
    rng = np.random.default_rng(seed)
    missed = []
    for i in range(count):
        path = files[i % len(files)]
        place, mask = int(rng.integers(path.stat().st_size)), int(rng.integers(1, 256))
        with flipped(path, place, mask):
            if not noticed(path):
                missed.append(f"{path} at {place} by {mask}")
    assert [path for path in files if noticed(path)] == []  # else it is not the flip that was noticed
    return missed


def refused(read: Callable[[], object]) -> bool:
    try:
        read()
    except SandglassError as error:
        assert "truncated or damaged" in str(error)
        return True
    return False


@pytest.fixture
def tree(dyck: Workspace, monkeypatch: pytest.MonkeyPatch) -> params.Params:
    """The study at smoke scale, built and committed; the current directory."""
    dyck.git("add", "-A")
    dyck.git("commit", "-qm", "results")
    monkeypatch.chdir(dyck.path)
    return params.load()


def of_step(loaded: params.Params, *steps: str) -> list[Path]:
    """The files of one study: all are sealed and recorded alike."""
    chosen = (job for job in graph.jobs(loaded) if job.step in steps and job.study == "dyck")
    return [path for job in chosen for path in graph.outputs(job, loaded)]


@pytest.mark.slow
def test_every_flipped_byte_is_noticed(tree: params.Params, monkeypatch: pytest.MonkeyPatch) -> None:
    """All in one process, some 1,100 flips; what it reads is unchanged at the end."""
    missed = flip(tree, monkeypatch, FLIPS)
    print(f"{sum(FLIPS.values())} flipped bytes: {FLIPS}; {len(missed)} not noticed")
    assert sum(FLIPS.values()) >= 1000
    assert missed == []


def flip(tree: params.Params, patch: pytest.MonkeyPatch, counts: dict[str, int], seed: int = 0) -> list[str]:
    """The flips that nobody noticed, of so many in each kind of file; for other ones, another ``seed``."""
    missed = flip_tables(tree, counts["tables"], seed + 1)
    missed += flip_checkpoints(tree, counts["checkpoints"], seed + 2)
    missed += flip_figures(tree, counts["figures"], seed + 3)
    with patch.context() as patched:
        # The committed text is the same every time, and a flip changes one of the records.
        patched.setattr(verify, "Lock", functools.cache(provenance.Lock))
        patched.setattr(provenance.Lock, "_parse", parsed_once(provenance.Lock._parse))
        return missed + flip_lock(tree, counts["lock"], seed + 4)


Parse = Callable[[provenance.Lock, str], Any]


def parsed_once(parse: Parse) -> Parse:
    """The same records for the same text, from the first time that it is read."""
    records: dict[str, Any] = {}

    def known(lock: provenance.Lock, text: str) -> Any:
        if text not in records:
            records[text] = parse(lock, text)
        return dict(records[text])

    return known


def flip_tables(tree: params.Params, count: int, seed: int) -> list[str]:
    """Datasets, curves, theory, result tables and claims, read as users and steps read them."""
    schemas = {path: schema for schema, paths in access._parts("dyck", tree).values() for path in paths}
    assert set(schemas) == {
        path for path in of_step(tree, "dataset", "train", "theory", "analyse", "claims") if path.suffix == ".parquet"
    }
    return survivors(list(schemas), count, seed, lambda path: refused(lambda: tables.read(path, schemas[path])))


def flip_checkpoints(tree: params.Params, count: int, seed: int) -> list[str]:
    files = [path for path in of_step(tree, "train") if path.suffix == ".safetensors"]
    return survivors(files, count, seed, lambda path: refused(lambda: checkpoints.read(path)))


def flip_figures(tree: params.Params, count: int, seed: int) -> list[str]:
    """Specifications, tables and pictures; of their chain only the job that drew them, the rest lies still."""
    files = [path for path in of_step(tree, "figures") if path.parent.name == "dyck-attention"]
    chain = Chain(provenance.resolve("figures-dyck-attention", tree), tree)
    chain.jobs = [job for job in chain.jobs if job.step == "figures"]

    def noticed(path: Path) -> bool:
        chain.md5.cache_clear()
        odd = [check for check in verify.results(chain) if check.state != verify.MATCH]
        assert {check.what for check in odd} <= {str(path)}
        return verify.verdict(odd) == verify.MISMATCH

    return survivors(files, count, seed, noticed)


def flip_lock(tree: params.Params, count: int, seed: int) -> list[str]:
    """Every byte of it, white space too; the chain of the report holds every stage."""
    artifacts = provenance.resolve("report", tree)
    calls = iter(range(10**6))

    def noticed(path: Path) -> bool:
        try:
            chain = Chain(artifacts, tree)
            checks = list(verify.lock(chain))
            another_build = verify.ELSEWHERE in {
                check.state for check in checks
            }  # another build? then the files must agree
            if another_build or next(calls) % ALL_OF_TRACE == 0:
                checks += [*verify.record(chain), *verify.results(chain)]
        except SandglassError:  # no longer a lock file
            return True
        return verify.verdict(checks) == verify.MISMATCH

    missed = survivors([provenance.LOCK], count, seed, noticed)
    content = provenance.LOCK.read_bytes()
    for text, new in COSMETIC:  # chance would take long to find those that change no value
        place = content.index(text)
        with flipped(provenance.LOCK, place, text[0] ^ new):
            missed += [] if noticed(provenance.LOCK) else [f"{text!r} to {new}"]
    return missed
