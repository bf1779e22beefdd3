"""What git still holds of a file that dvc.lock knows by its md5 only."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
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


@cache
def find(path: Path, md5: str) -> Version | None:
    """Return the newest version of ``path`` with this md5 in the history of the current commit."""
    lines = _git("log", f"-{COMMITS}", "--format=%H", "--raw", "--no-abbrev", "--no-renames", "--", str(path))
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
    """Yield the files of ``folder`` with their md5s, in each commit that changed it, newest first."""
    for commit in _git("log", f"-{COMMITS}", "--format=%H", "--", str(folder)).split():
        lines = _git("ls-tree", "-r", "-z", commit, "--", str(folder)).split("\0")
        details = [line.split("\t", 1) for line in lines if line]
        names = {Path(path): words.split()[2] for words, path in details}
        contents = _blobs(list(names.values()))
        yield {path: hashlib.md5(contents.get(name, b"")).hexdigest() for path, name in names.items()}


def committed(path: Path) -> str | None:
    """Return the text of ``path`` in the current commit."""
    return _git("show", f"HEAD:./{path}", quiet=True) or None


def author() -> str | None:
    """Return ``Name <email>`` as git is told to sign commits here; None where it is not told."""
    name, email = (_git("config", f"user.{field}", quiet=True).strip() for field in ("name", "email"))
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


def _git(*arguments: str, quiet: bool = False) -> str:
    """Return what a git command prints; with ``quiet``, nothing where it fails."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=False, text=True, errors="replace")
    except FileNotFoundError:
        raise SandglassError("git is not installed; it holds the old versions of the code") from None
    if done.returncode and not quiet:
        raise SandglassError(f"git {arguments[0]}: {' '.join(done.stderr.split())}")
    return done.stdout
