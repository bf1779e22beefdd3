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


def edited(paths: Iterable[Path]) -> list[Path]:
    """Return the files among ``paths``, or in them, that differ from the commit or are unknown to it."""
    names = [path.as_posix() for path in paths]
    changed = _git("diff", "--name-only", "-z", "--relative", "HEAD", "--", *names) or ""
    unknown = _git("ls-files", "--others", "--exclude-standard", "-z", "--", *names) or ""
    return sorted(Path(name) for name in {*changed.split("\0"), *unknown.split("\0")} - {""})


def tags() -> list[str]:
    """Return the annotated tags of the commit that is checked out; others cannot carry a signature."""
    output = _git("tag", "--points-at", "HEAD", "--format=%(objecttype) %(refname:short)") or ""
    return [line.removeprefix("tag ") for line in output.splitlines() if line.startswith("tag ")]


def content(name: str) -> str | None:
    """Return the object ``name``, a tag for instance, as git stores it; None if there is none."""
    return _git("cat-file", "-p", name)


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
