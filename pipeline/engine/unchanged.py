"""Whether the work tree is as it was when DVC last found nothing to do: a comparison that takes DVC four seconds.

The note holds one md5 over the path, size, inode and times of every file that DVC's answer depends on. Any write to
one of them gives it another time of change (ctime), which no program can set back; then DVC is asked again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from pipeline.engine import graph

NOTE = graph.STATE / "unchanged"
# Beside what lies in folders without a dot: what DVC compares with, and how it is set up.
CACHE = Path(".dvc/cache/files")
SETTINGS = (Path(".dvc/config"), Path(".dvc/config.local"), Path(".dvcignore"))
ASIDE = {"logs", "__pycache__"}  # folders that no stage reads or writes


def digest(root: Path) -> str:
    """Return an md5 over the path, size, inode and times of all files that decide what DVC finds at ``root``."""
    md5 = hashlib.md5(usedforsecurity=False)
    for path, status in sorted(_files(root)):
        times = status.st_mtime_ns, status.st_ctime_ns
        md5.update(f"{path}\0{status.st_size}\0{status.st_ino}\0{times}\n".encode())
    return md5.hexdigest()


def remembered(root: Path, now: str) -> bool:
    """Return whether DVC found nothing to do when the `digest` of ``root`` was ``now``."""
    try:
        return (root / NOTE).read_text(encoding="utf-8") == now
    except OSError:
        return False


def remember(root: Path, now: str) -> None:
    """Note that DVC finds nothing to do at ``root`` while its `digest` is ``now``."""
    (root / NOTE).parent.mkdir(exist_ok=True)
    (root / NOTE).write_text(now, encoding="utf-8")


def _files(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    todo = [each for each in root.iterdir() if not each.name.startswith(".") and each.name not in ASIDE]
    todo += [root / each for each in (CACHE, *SETTINGS)]
    while todo:
        path = todo.pop()
        try:
            if path.is_dir():
                if not (path / "pyvenv.cfg").exists():  # an environment is no part of it
                    todo += [each for each in path.iterdir() if each.name not in ASIDE]
            else:
                yield path, path.stat()
        except FileNotFoundError:  # a setting that is not there, or a file that went meanwhile
            continue
