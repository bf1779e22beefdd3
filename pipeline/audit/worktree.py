"""What git says of this work tree; nothing where there is no git, no repository or no commit."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path


def commit() -> str | None:
    """Return the short name of the commit that is checked out; None without one."""
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


def _paths(output: str | None) -> list[Path]:
    return sorted(Path(name) for name in (output or "").split("\0") if name)


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
