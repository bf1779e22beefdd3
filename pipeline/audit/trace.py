"""The command `trace`: a result back to its roots, checked, and made again.

With ``--json`` it prints one object with these keys, which stay:

- ``names``: what was asked for; ``shared``: those of them that several results have in common, with
  the precise names of each; ``artifacts``: each ``path``, ``job``, ``md5`` and ``size`` (bytes) as
  recorded (null where that is not known: the list of a folder that was not pushed is not here), ``recorded``
  (whether dvc.lock or its reference set has it or its folder), ``rebuild`` (the command that makes it alone),
  ``jobs`` and ``seconds`` (of one core, on the reference machine) of all that it comes from, ``claim``.
- ``claims``: the rows of the claims table that were asked for (columns of `schemas.claims`).
- ``git``: ``commit`` (null without one) and ``edited``, the inputs on the chain that differ from it.
- ``jobs``: the chain, parents first; each ``job`` (a stage of dvc.yaml), ``command``, ``parents``,
  ``recorded`` (whether dvc.lock has it), ``outputs`` and ``code`` (``path``, ``md5``, ``size``), ``data``
  (files and folders that it read), ``parameters`` (``name``, ``written`` as in its file, ``value`` at its
  scale), ``accepted`` (edits of code declared harmless; with ``proof``, shown to be by a rebuild), and of the
  run that made it, if it was made here, ``device`` and ``software_overridden``.
- ``checks``: each ``job``, ``kind`` (lock, inputs, code, parameter, data, output, seal), ``what``,
  ``state`` (match, mismatch, not checked, another build), ``text``. The last three kinds only with ``--verify``.
  Where dvc.lock records another build than the committed one, ``lock`` says so, and that is no mismatch.
- ``verified``: null, or with ``--verify`` the worst state of all checks.
- ``rebuilt``: null, or with ``--rebuild`` the ``state`` (identical, within tolerance, moved inside intervals, not
  compared, different), ``comparisons`` (`pipeline.audit.compare.Comparison`), ``made`` and ``kept`` (the jobs that ran,
  and those whose results were taken from here), ``recorded_on`` and ``rebuilt_on`` (the machines; the first is null
  where it is not known), ``workspace`` (null where it was removed) with ``workspace_size`` (bytes) and ``temporary``
  (whether it lies in the folder for temporary files).
- ``status``: the exit status.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from pipeline import params
from pipeline.audit import git, lineage, provenance, rebuild, trace_text, verify
from pipeline.audit.compare import DIFFERENT, IDENTICAL, INSIDE, NOT_COMPARED, WITHIN
from pipeline.audit.elsewhere import Yardstick
from pipeline.audit.lineage import Chain
from pipeline.audit.provenance import Artifact
from pipeline.audit.verify import Check
from pipeline.engine import graph
from pipeline.engine.build import Reference
from pipeline.engine.software import check_software
from pipeline.references.record import step_log

VERIFIED = {verify.MATCH: 0, verify.MISMATCH: 1, verify.NOT_CHECKED: 3}
REBUILT = {IDENTICAL: 0, DIFFERENT: 1, NOT_COMPARED: 3, INSIDE: 4, WITHIN: 4}
WORST_FIRST = (1, 3, 4, 0)


def trace(
    names: list[str],
    *,
    verified: bool,
    rebuilt: bool,
    keep_runs: bool,
    train: bool,
    workspace: Path | None,
    as_json: bool,
    code: bool,
    full: bool = False,
) -> int:
    """Print the lineage of ``names`` and return the exit status. Raises SandglassError if it cannot be told.

    ``full`` prints each job and parameter by itself; without it, many of a kind are one line.
    """
    loaded = params.load()
    if rebuilt:
        check_software(Path())
    artifacts = [artifact for name in names for artifact in provenance.resolve(name, loaded)]
    chain = Chain(dict.fromkeys(artifacts), loaded)
    checks = list(verify.record(chain))
    if verified:
        checks += [*verify.results(chain), *verify.references(chain)]
    result = document(names, chain, checks, verify.verdict(checks) if verified else None)
    if not as_json:
        trace_text.show(result, code=code, full=full)
    if rebuilt:
        result["rebuilt"] = asdict(rebuild.rebuild(chain, workspace, keep_runs=keep_runs, train=train))
        if not as_json:
            trace_text.show_rebuilt(result, Yardstick.load(loaded.scale))
    result["status"] = status(result)
    if as_json:
        print(json.dumps(result, indent=1, default=str))
    return int(result["status"])


def status(result: dict[str, Any]) -> int:
    """Return the worst of what verification and rebuild came to."""
    codes = {VERIFIED[result["verified"]]} if result["verified"] else set()
    if result["rebuilt"]:
        codes.add(REBUILT[result["rebuilt"]["state"]])
    return next((code for code in WORST_FIRST if code in codes), 0)


def document(names: list[str], chain: Chain, checks: list[Check], verdict: str | None) -> dict[str, Any]:
    """Return what ``--json`` prints (see this module), and what the tree is drawn from."""
    edits = graph.accepted()
    inputs = {path for job in chain.jobs for path in graph.code(job, chain.params)}
    watched = [*map(Path, chain.params.raw), provenance.LOCK, *sorted(inputs)]
    commit = git.commit()
    times = Reference.known(chain.params)
    return {
        "names": names,
        "shared": {name: both for name in names if (both := provenance.shared_name(name, chain.params))},
        "artifacts": [_artifact(chain, artifact, times) for artifact in chain.artifacts],
        "claims": [row for artifact in chain.artifacts for row in _claim_rows(chain, artifact)],
        "git": {"commit": commit, "edited": [str(path) for path in git.edited(watched)] if commit else []},
        "jobs": [_job(chain, job, edits) for job in chain.jobs],
        "checks": [asdict(check) for check in checks],
        "verified": verdict,
        "rebuilt": None,
        "status": 0,
    }


def _artifact(chain: Chain, artifact: Artifact, times: Reference) -> dict[str, Any]:
    job, path = artifact.job, artifact.path
    behind = chain.behind(job) if job else []
    if job is None:
        entry = provenance.reference_set(path)
        outs = {entry.path: entry} if entry else {}
    else:
        stage = chain.stage(job)
        outs = stage.outs if stage else {}
    file = chain.recorded(outs, path)
    target = graph.outputs(job, chain.params)[0] if job and job.step == "report" else path
    return {
        "path": str(path),
        "job": job.stage if job else None,
        "md5": file.md5,
        "size": file.size,
        "recorded": bool(outs),
        "rebuild": f"snakemake {target}" if job else None,
        "jobs": len(behind),
        "seconds": round(times.work(behind)) if job else None,
        "claim": artifact.claim,
    }


def _claim_rows(chain: Chain, artifact: Artifact) -> list[dict[str, Any]]:
    if artifact.claim is None:
        return []
    stage = chain.stage(artifact.job) if artifact.job else None
    recorded = stage.outs.get(artifact.path) if stage else None
    try:
        if recorded is None or chain.md5(artifact.path) != recorded.md5:
            return []  # what it says is not what was built; verification names it
        rows = pl.read_parquet(artifact.path)
    except (OSError, pl.exceptions.PolarsError):  # not here, or damaged
        return []
    return rows.filter(pl.col("claim") == artifact.claim).to_dicts()


def _job(chain: Chain, job: graph.Job, edits: list[dict[str, Any]]) -> dict[str, Any]:
    stage = chain.stage(job)
    log = step_log(job, stage.params) if stage else {}
    return {
        "job": job.stage,
        "command": job.command,
        "parents": [parent.stage for parent in chain.parents[job]],
        "recorded": stage is not None,
        "outputs": [asdict(file) for file in chain.outputs(job)],
        "code": [asdict(file) for file in chain.code(job)],
        "data": [{"path": e.path, "md5": e.md5, "size": e.size} for e in chain.data(job)],
        "parameters": [asdict(each) for each in lineage.parameters(stage)] if stage else [],
        "accepted": lineage.accepted_for(chain, job, edits),
        "device": log.get("device"),
        "software_overridden": log.get("software_overridden", []),
    }
