"""Whether the work tree is as it was when DVC last found nothing to do: a comparison that takes DVC four seconds.

The note holds one md5 over the path, size, inode and times of every file that DVC's answer depends on. Any write to
one of them gives it another time of change (ctime), which no program can set back; then DVC is asked again. Two writes
within one tick of the kernel's clock have the same time, so nothing is noted of files that were touched just now.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.engine import graph

NOTE = graph.STATE / "unchanged"
# Beside what lies in folders without a dot: what DVC compares with, and how it is set up.
CACHE = Path(".dvc/cache/files")
SETTINGS = (Path(".dvc/config"), Path(".dvc/config.local"), Path(".dvcignore"))
ASIDE = {"logs", "__pycache__"}  # folders that no stage reads or writes
JUST_NOW = 50_000_000  # nanoseconds: several ticks


def unless_untouched(root: Path, look: Callable[[], set[str]], cache: Callable[[], Path]) -> set[str]:
    """Return the stages that ``look`` finds changed by asking DVC; none, without asking, if no file was touched since
    it found none. That is noted only where DVC's ``cache`` lies in ``root``, with all the rest."""
    before = digest(root)
    if remembered(root, before):
        return set()
    found = look()
    if not found and (root / CACHE).resolve() in cache().resolve().parents:
        remember(root, before)
    return found


def digest(root: Path) -> str:
    """Return an md5 over the path, size, inode and times of all files that decide what DVC finds at ``root``."""
    return _look(root)[0]


def remembered(root: Path, now: str) -> bool:
    """Return whether DVC found nothing to do when the `digest` of ``root`` was ``now``."""
    try:
        return (root / NOTE).read_text(encoding="utf-8") == now
    except OSError:
        return False


def remember(root: Path, before: str) -> None:
    """Note that DVC, asked when the `digest` of ``root`` was ``before``, finds nothing to do, if that still stands."""
    asked, (now, newest) = time.time_ns(), _look(root)
    if now == before and newest < asked - JUST_NOW:
        (root / NOTE).parent.mkdir(exist_ok=True)
        (root / NOTE).write_text(now, encoding="utf-8")


def _look(root: Path) -> tuple[str, int]:
    """Return the `digest` of ``root`` and when one of its files was last touched, in nanoseconds."""
    md5, newest = hashlib.md5(usedforsecurity=False), 0
    for path, status in sorted(_files(root)):
        times = status.st_mtime_ns, status.st_ctime_ns
        md5.update(f"{path}\0{status.st_size}\0{status.st_ino}\0{times}\n".encode())
        newest = max(newest, status.st_ctime_ns)
    return md5.hexdigest(), newest


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
