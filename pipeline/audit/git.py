"""What git says of this work tree, and what it still holds of files that dvc.lock knows by their md5s only."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.errors import SandglassError

COMMITS = 100  # of one path, newest first, that are looked at


@dataclass(frozen=True)
class Version:
    """The content that a file had in a commit (short name)."""

    commit: str
    content: bytes


def trouble() -> str | None:
    """Return in words why git answers nothing here: none installed, no repository, no commit, or its own refusal.

    None where it answers. Only then do the functions below that return None, or nothing, mean that there is none.
    """
    try:
        _must("rev-parse", "--show-toplevel")
    except SandglassError as error:
        text = str(error).partition("fatal: ")[2] or str(error)
        return "this folder is no git repository" if text.startswith("not a git repository") else text
    return None if commit() else "no commit is checked out"


def commit() -> str | None:
    """Return the short name of the commit that is checked out; None without one, and in `trouble`."""
    name = _git("rev-parse", "--short", "HEAD")
    return name.strip() if name else None


def committed(path: Path) -> str | None:
    """Return the text of ``path`` in that commit; None if it has none."""
    return _git("show", f"HEAD:./{path.as_posix()}")


def holds(path: Path) -> bool:
    """Return whether that commit has a file ``path``."""
    return _git("cat-file", "-e", f"HEAD:./{path.as_posix()}") is not None


def edited(paths: Iterable[Path]) -> list[Path]:
    """Return the files among ``paths``, or in them, that differ from the commit or are unknown to it."""
    names = [path.as_posix() for path in paths]
    return sorted({*differing(*names), *unknown(*names)})


def differing(*patterns: str) -> list[Path]:
    """Return the files of the commit that are otherwise here or gone: all, or those that match git's ``patterns``."""
    return _paths(_git("diff", "--name-only", "-z", "--relative", "HEAD", "--", *patterns))


def unknown(*patterns: str) -> list[Path]:
    """Return the files that git neither knows nor is told to ignore: all, or those that match its ``patterns``."""
    return _paths(_git("ls-files", "--others", "--exclude-standard", "-z", "--", *patterns))


def tags() -> list[str]:
    """Return the annotated tags of the commit that is checked out; others cannot carry a signature."""
    output = _git("tag", "--points-at", "HEAD", "--format=%(objecttype) %(refname:short)") or ""
    return [line.removeprefix("tag ") for line in output.splitlines() if line.startswith("tag ")]


def content(name: str) -> str | None:
    """Return the object ``name``, a tag for instance, as git stores it; None if there is none."""
    return _git("cat-file", "-p", name)


@cache
def find(path: Path, md5: str) -> Version | None:
    """Return the newest version of ``path`` with this md5 in the history of the current commit; None in `trouble`."""
    lines = _git("log", f"-{COMMITS}", "--format=%H", "--raw", "--no-abbrev", "--no-renames", "--", str(path)) or ""
    versions, commit = [], ""
    for line in lines.splitlines():
        if not line.startswith(":"):
            commit = line[:10] or commit
        else:
            versions.append((commit, line.split()[3]))
    contents = _blobs([name for _, name in versions])
    for commit, name in versions:
        if name in contents and hashlib.md5(contents[name]).hexdigest() == md5:
            return Version(commit, contents[name])
    return None


def listings(folder: Path) -> Iterator[dict[Path, str]]:
    """Yield the files of ``folder`` with their md5s, in each commit that changed it, newest first; none in
    `trouble`."""
    for commit in (_git("log", f"-{COMMITS}", "--format=%H", "--", str(folder)) or "").split():
        lines = _must("ls-tree", "-r", "-z", commit, "--", str(folder)).split("\0")
        details = [line.split("\t", 1) for line in lines if line]
        names = {Path(path): words.split()[2] for words, path in details}
        contents = _blobs(list(names.values()))
        yield {path: hashlib.md5(contents.get(name, b"")).hexdigest() for path, name in names.items()}


def author() -> str | None:
    """Return ``Name <email>`` as git is told to sign commits here; None where it is not told."""
    name, email = ((_git("config", f"user.{field}") or "").strip() for field in ("name", "email"))
    return f"{name} <{email}>" if name and email else name or email or None


def _blobs(names: list[str]) -> dict[str, bytes]:
    """Return the content of git's objects of these names, without those that there are not."""
    request = "".join(f"{name}\n" for name in dict.fromkeys(names)).encode()
    done = subprocess.run(["git", "cat-file", "--batch"], input=request, capture_output=True, check=False)
    blobs, rest = {}, done.stdout
    while rest:
        line, _, rest = rest.partition(b"\n")  # "<name> blob <bytes>", or "<name> missing"
        words = line.decode().split()
        if words[1] == "blob":
            size = int(words[2])
            blobs[words[0]], rest = rest[:size], rest[size + 1 :]
    return blobs


def _paths(output: str | None) -> list[Path]:
    return sorted(Path(name) for name in (output or "").split("\0") if name)


def _git(*arguments: str) -> str | None:
    """Return what a git command prints; None where it fails."""
    try:
        return _must(*arguments)
    except SandglassError:
        return None


def _must(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=False, text=True, errors="replace")
    except FileNotFoundError:
        raise SandglassError("git is not installed; it holds the old versions of the code") from None
    if done.returncode:
        raise SandglassError(f"git {arguments[0]}: {' '.join(done.stderr.split())}")
    return done.stdout
