"""Are the reference sets what their names say, and every file of them what was frozen?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pipeline.audit import git, hashing, provenance, verify
from pipeline.audit.findings import SETS, Finding
from pipeline.audit.lineage import Chain
from pipeline.errors import SandglassError
from pipeline.references import record
from pipeline.store.paths import REFERENCE


def sets(chain: Chain) -> tuple[list[str], list[Finding]]:
    """Return the names of the reference sets, and what of them is not as it was frozen or as `record.NAMES` says."""
    here = sorted(path.stem for path in REFERENCE.glob("*.dvc"))
    names = record.read_names()
    findings = [each for name in here for each in _findings(name, names, chain)]
    for name in sorted(names.keys() - set(here)):
        pointer = _pointer(name)
        text = f"is gone, and {record.NAMES} names it"
        findings.append(Finding(SETS, str(pointer), text, f"git checkout HEAD {pointer}"))
    return here, findings


def _findings(name: str, names: dict[str, str], chain: Chain) -> Iterator[Finding]:
    entry, pointer = provenance.reference_set(REFERENCE / name / record.RECORD), _pointer(name)
    assert entry is not None
    if git.committed(pointer) is not None and git.edited([pointer]):
        yield Finding(SETS, str(pointer), "differs from the committed one", f"git checkout {pointer}")
    if names.get(name) != entry.md5:
        others = [other for other, md5 in names.items() if md5 == entry.md5]
        known = f"is not the set that {record.NAMES} names" if name in names else f"is not in {record.NAMES}"
        text = f"is the set that {record.NAMES} calls {others[0]}" if others else known
        yield Finding(SETS, str(pointer), text, f"git log -p {pointer} {record.NAMES}")
    if linked := hashing.link(REFERENCE / name):
        yield Finding(SETS, str(linked), verify.LINK, f"rm {linked} && dvc checkout --force {pointer}")
        return
    for check in verify.folder(chain, entry, None, "output", partial(verify.Check, "")):
        if check.state != verify.MATCH:
            yield Finding(SETS, check.what, check.text, f"dvc checkout --force {pointer}")
    yield from _said(REFERENCE / name, chain)


def _said(folder: Path, chain: Chain) -> Iterator[Finding]:
    """Yield what the set's own record says against its place."""
    try:
        said = record.read_record(folder)
    except SandglassError as error:
        yield Finding(SETS, str(folder / record.RECORD), f"cannot be read: {error}")
        return
    if said.get("name", folder.name) != folder.name:
        yield Finding(SETS, str(folder), f"says of itself that it is the set {said['name']}")
    if (study := said.get("study", folder.name)) not in chain.params.studies:
        text = f"is of the study {study}, which params.yaml does not list"
        yield Finding(SETS, str(folder), text, "list it again under `studies`, or git rm the set")


def _pointer(name: str) -> Path:
    return REFERENCE / f"{name}.dvc"
