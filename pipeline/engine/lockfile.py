"""dvc.lock under kills, a copy of it to fall back on and its repair; and what it says of all results, in one md5.

DVC writes dvc.lock in place after every stage, which takes it a tenth of a second and more. What a kill
leaves then is cut off in the middle, and no engine starts on it. Nothing in it is lost for good: an older
one only makes DVC look at more stages, since what it records is compared by content.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ruamel.yaml import YAML, YAMLError

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


def blocks(text: str) -> dict[str, str]:
    """Return what the text of a dvc.lock has for each stage, by its name, in its order.

    It is searched, not parsed: DVC lays it out always alike, and to parse it takes two seconds.

    >>> blocks("schema: '2.0'\\nstages:\\n  a:\\n    cmd: x\\n  b:\\n    cmd: y\\n")
    {'a': '    cmd: x\\n', 'b': '    cmd: y\\n'}
    """
    parts = re.split(r"^  (\S+):\n", text, flags=re.MULTILINE)  # names are at odd places
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def sizes(file: Path, scale: str) -> dict[str, int]:
    """Return the bytes of what each stage made, by the dvc.lock ``file``; none of stages of another scale."""
    made = {}
    for name, block in blocks(file.read_text(encoding="utf-8") if file.is_file() else "").items():
        before, _, outs = block.partition("\n    outs:\n")
        if f"\n        scale: {scale}\n" in f"{before}\n":
            made[name] = sum(map(int, re.findall(r"^      size: (\d+)$", outs, re.MULTILINE)))
    return made


def keep(root: Path) -> None:
    """Copy ``root/dvc.lock``, unless it is cut off, to where `mend` finds it; nobody may write it meanwhile."""
    if not _is_cut(root):
        keep_whole(root)


def keep_whole(root: Path) -> None:
    """Copy ``root/dvc.lock``, which is whole, to where `mend` finds it: it may have fewer stages than the copy had."""
    _replace(root, root / graph.STATE / NAME, root / NAME)


def mend(root: Path) -> None:
    """Put the kept copy in place of a ``root/dvc.lock`` that is cut off; without a copy, remove it.

    The caller keeps DVC from writing it.
    """
    if not (root / NAME).is_file() or not _is_cut(root):
        return
    kept = root / graph.STATE / NAME
    if kept.is_file():
        _replace(root, root / NAME, kept)
    else:
        (root / NAME).unlink()
    how = "the copy of before its last stage" if kept.is_file() else "none: every stage is looked at again"
    print(f"sandglass: DVC was killed while it wrote {NAME}; in its place is {how}", file=sys.stderr)


def _is_cut(root: Path) -> bool:
    """Return whether ``root/dvc.lock`` is missing, or cut off by a kill.

    DVC writes one stage after the other, and a newline last. What is cut behind a line may end in a stage that lacks
    something, which DVC refuses, or lack whole stages that the kept copy has. A file with the marks of a merge is
    whole, and so are one from which all stages were dropped and one that git has in its index.
    """
    file = root / NAME
    content = file.read_bytes() if file.is_file() else b""
    if not content.endswith(b"\n"):
        return True
    if re.search(rb"^<<<<<<< ", content, re.MULTILINE) or content.endswith(b"\nstages: {}\n"):
        return False
    stages = blocks(content.decode(errors="replace"))
    if not stages or not _is_stage([*stages.values()][-1]):
        return True
    kept = root / graph.STATE / NAME
    own, whole = [*stages], [*blocks(kept.read_text(encoding="utf-8", errors="replace"))] if kept.is_file() else []
    return len(own) < len(whole) and own == whole[: len(own)] and not _in_index(root, content)


def _in_index(root: Path, content: bytes) -> bool:
    """Return whether git has ``content`` as dvc.lock in its index: it was checked out."""
    show = ["git", "-C", str(root), "cat-file", "-p", f":./{NAME}"]
    try:
        return subprocess.run(show, capture_output=True, check=False).stdout == content
    except FileNotFoundError:  # git is not installed
        return False


def _is_stage(text: str) -> bool:
    """Return whether ``text`` is a stage in the form in which DVC accepts one (`dvc.schema.LOCK_FILE_STAGE_SCHEMA`)."""
    try:
        stage = YAML(typ="safe").load(text)
        files = [entry for part in ("deps", "outs") for entry in stage.get(part, [])]
        params = list(stage.get("params", {}).values())
    except (YAMLError, AttributeError, TypeError):  # a part of it is cut off, or nothing stands where it would
        return False
    return bool(stage.get("cmd")) and all("path" in each for each in files) and all(isinstance(p, dict) for p in params)


def _replace(root: Path, target: Path, source: Path) -> None:
    temporary = root / graph.STATE / f"{NAME}.tmp"
    temporary.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, temporary)
    temporary.replace(target)
