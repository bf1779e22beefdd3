"""Is the software that decides a result the software that requirements.txt pins?"""

from __future__ import annotations

import os
import re
from importlib import metadata
from pathlib import Path

from pipeline.errors import SandglassError

REQUIREMENTS = "requirements.txt"
OVERRIDE = "SANDGLASS_ALLOW_VERSIONS"

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?==(?P<version>[^\s;#]+)")


def check_software(root: Path) -> list[str]:
    """Compare what is installed with the pins of ``root/requirements.txt``; return the differences.

    Local builds count as the public version they are built from: ``2.13.0+cpu`` is ``2.13.0``.

    Raises SandglassError naming every difference, unless SANDGLASS_ALLOW_VERSIONS is 1: machines that
    bring their own torch go on, and the step records the differences beside its artifacts.
    """
    different = [
        f"{name} {installed_version or 'is missing'} (pinned: {version})"
        for name, version in _pins(root / REQUIREMENTS)
        if (installed_version := _installed(name)) != version
    ]
    if different and os.environ.get(OVERRIDE) != "1":
        raise SandglassError(
            f"installed software differs from {REQUIREMENTS}: {', '.join(different)}; "
            f"run `make env` and `. .venv/bin/activate`, or pip install -r {REQUIREMENTS}; "
            f"{OVERRIDE}=1 goes on as it is (results may differ)"
        )
    return different


def _pins(path: Path) -> list[tuple[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SandglassError(f"{path}: cannot be read: {error.strerror}") from None
    return [(pin["name"], pin["version"]) for line in lines if (pin := _PIN.match(line))]


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        return None
