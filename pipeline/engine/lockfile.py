"""dvc.lock under kills, a copy of it to fall back on and its repair; and what it says of all results, in one md5.

DVC writes dvc.lock in place after every stage, which takes it a tenth of a second and more. What a kill
leaves then is cut off in the middle, and no engine starts on it. Nothing in it is lost for good: an older
one only makes DVC look at more stages, since what it records is compared by content.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from pipeline.engine import graph
from pipeline.store.paths import REPORT

NAME = "dvc.lock"


def digest(outputs: Mapping[Path, str]) -> str:
    """Return one md5 over ``outputs``, the md5s of recorded outputs by path: who made the same has the same.

    The report is left out: it is drawn again wherever its words change.

    >>> digest({}) == digest({REPORT: "x"})
    True
    """
    lines = (f"{path.as_posix()} {md5}\n" for path, md5 in outputs.items() if REPORT not in (path, *path.parents))
    return hashlib.md5("".join(sorted(lines)).encode()).hexdigest()


def sizes(file: Path, scale: str) -> dict[str, int]:
    """Return the bytes of what each stage made, by the dvc.lock ``file``; none of stages of another scale.

    The text is searched, not parsed: DVC lays it out always alike, and to parse it takes two seconds.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    parts = re.split(r"^  ([\w.-]+):\n", text, flags=re.MULTILINE)
    made = {}
    for name, block in zip(parts[1::2], parts[2::2], strict=True):
        before, _, outs = block.partition("\n    outs:\n")
        if f"\n        scale: {scale}\n" in f"{before}\n":
            made[name] = sum(map(int, re.findall(r"^      size: (\d+)$", outs, re.MULTILINE)))
    return made


def keep(root: Path) -> None:
    """Copy ``root/dvc.lock``, unless it is cut off, to where `mend` finds it; nobody may write it meanwhile."""
    if not _is_cut(root / NAME):
        _replace(root, root / graph.STATE / NAME, root / NAME)


def mend(root: Path) -> None:
    """Put the kept copy in place of a ``root/dvc.lock`` that is cut off; without a copy, remove it.

    The caller keeps DVC from writing it. A file with the marks of a merge is whole, and left as it is.
    """
    if not (root / NAME).is_file() or not _is_cut(root / NAME):
        return
    kept = root / graph.STATE / NAME
    if kept.is_file():
        _replace(root, root / NAME, kept)
    else:
        (root / NAME).unlink()
    how = "the copy of before its last stage" if kept.is_file() else "none: every stage is looked at again"
    print(f"sandglass: DVC was killed while it wrote {NAME}; in its place is {how}", file=sys.stderr)


def _is_cut(file: Path) -> bool:
    """Return whether ``file`` is missing or cut off by a kill: it lacks the newline that DVC writes last."""
    return not file.is_file() or not file.read_bytes().endswith(b"\n")


def _replace(root: Path, target: Path, source: Path) -> None:
    temporary = root / graph.STATE / f"{NAME}.tmp"
    temporary.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, temporary)
    temporary.replace(target)
