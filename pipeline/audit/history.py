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
    """The newest version of ``path`` with this md5 in the history of the current commit."""
    lines = _git("log", f"-{COMMITS}", "--format=%H", "--raw", "--no-abbrev", "--no-renames", "--", str(path))
    commit = ""
    for line in lines.splitlines():
        if not line.startswith(":"):
            commit = line[:10] or commit
        elif (version := _blob(line.split()[3])) is not None and hashlib.md5(version).hexdigest() == md5:
            return Version(commit, version)
    return None


def listings(folder: Path) -> Iterator[dict[Path, str]]:
    """The files of ``folder`` with their md5s, in each commit that changed it, newest first."""
    for commit in _git("log", f"-{COMMITS}", "--format=%H", "--", str(folder)).split():
        files = {}
        for line in _git("ls-tree", "-r", "-z", commit, "--", str(folder)).split("\0"):
            if line:
                details, name = line.split("\t", 1)
                files[Path(name)] = hashlib.md5(_blob(details.split()[2]) or b"").hexdigest()
        yield files


def committed(path: Path) -> str | None:
    """The text of ``path`` in the current commit."""
    return _git("show", f"HEAD:./{path}", quiet=True) or None


def author() -> str | None:
    """``Name <email>`` as git is told to sign commits here; None where it is not."""
    name, email = (_git("config", f"user.{field}", quiet=True).strip() for field in ("name", "email"))
    return f"{name} <{email}>" if name and email else name or email or None


@cache
def _blob(name: str) -> bytes | None:
    done = subprocess.run(["git", "cat-file", "blob", name], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def _git(*arguments: str, quiet: bool = False) -> str:
    """What a git command prints; with ``quiet``, nothing where it fails."""
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, check=False, text=True, errors="replace"
        )
    except FileNotFoundError:
        raise SandglassError("git is not installed; it holds the old versions of the code") from None
    if done.returncode and not quiet:
        raise SandglassError(f"git {arguments[0]}: {' '.join(done.stderr.split())}")
    return done.stdout
