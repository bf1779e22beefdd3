"""Step ``report`` as a list of md5s: the real page takes seconds to make, and is tested with the real study."""

from __future__ import annotations

import hashlib
from typing import Any

from pipeline.store import paths

KINDS = ("reference", "theory", "tables", "figures", "claims")


def run(job: Any) -> None:
    """Make ``data/report/index.html``."""
    files = [path for kind in KINDS for path in (paths.DATA / kind).rglob("*") if path.is_file()]
    lines = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path}" for path in sorted(files)]
    job.out(paths.REPORT / "index.html").write_text("\n".join(lines) + "\n", encoding="utf-8")
