"""Is everything that is published here, as files of this folder, with the md5s and the ids that are recorded?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from pipeline.audit import git, hashing, verify
from pipeline.audit.findings import IDS, PUBLISHED, Finding
from pipeline.audit.lineage import Chain
from pipeline.audit.provenance import LOCK, Entry
from pipeline.engine import graph
from pipeline.params import SECTIONS, Params, study_file

# Columns of tables that hold ids, and the section of the parameter file that they are of.
COLUMNS = {"run": "runs", "dataset": "datasets", "train_dataset": "datasets", "corpus": "datasets"}
ALL = "all"  # stands in a column of runs for all of them together


def files(chain: Chain) -> tuple[int, list[Finding]]:
    """Return how many published files were hashed, and those that are lost, links, or not what dvc.lock records."""
    count, findings = 0, dict[Finding, None]()  # of a link, and of all that it holds, one
    for job in chain.jobs:
        stage = chain.stage(job)
        for entry in stage.outs.values() if stage else ():
            if graph.is_published(entry.path):
                listing = chain.contents(entry) if entry.is_folder else {"": entry.md5}
                count += len(listing or {})
                findings |= dict.fromkeys(_differing(entry, listing, chain))
    return count, list(findings)


def _differing(entry: Entry, listing: hashing.Listing | None, chain: Chain) -> Iterator[Finding]:
    if listing is None:
        yield Finding(PUBLISHED, str(entry.path), *_lost("the list of its files is lost", entry, entry.md5))
        return
    recorded = {entry.path / name if name else entry.path: md5 for name, md5 in listing.items()}
    for path, md5 in recorded.items():
        if linked := hashing.link(path):
            yield Finding(PUBLISHED, str(linked), verify.LINK, _unlink(linked, entry))
        elif not path.is_file():
            yield Finding(PUBLISHED, str(path), *_lost("lost", entry, md5))
        elif (here := chain.md5(path)) != md5:
            text = f"is not what {LOCK} records ({md5[:8]}), it is {here[:8]}"
            yield Finding(PUBLISHED, str(path), *_lost(text, entry, md5))
    if entry.is_folder:
        strange = {file for file in entry.path.rglob("*") if file.is_file()} - set(recorded)
        yield from (
            Finding(PUBLISHED, str(path), f"{LOCK} knows no such file", f"rm {path}") for path in sorted(strange)
        )


def _unlink(link: Path, entry: Entry) -> str:
    """Return the command that puts files in place of a link: to a file, a folder, or a folder of several outputs."""
    if link == entry.path or entry.path in link.parents:
        return f"rm {link} && dvc pull --force {entry.path}"
    return f"rm {link} && dvc pull --allow-missing"


def _lost(text: str, entry: Entry, md5: str) -> tuple[str, str]:
    """Return what is wrong with a file, and with what DVC keeps of it, and the command that brings it back."""
    fetch = f"dvc pull --force {entry.path}"
    copies = hashing.stored_copies(md5)
    damaged = [path for path, whole in copies.items() if whole is False]
    if not damaged and any(copies.values()):
        return text, fetch
    # A remote that is a folder of this repository: git has what it lost.
    kept = [path for path, whole in copies.items() if not whole and git.holds(path)]
    spoilt = [path for path in damaged if path not in kept]  # in the cache, for instance
    steps = [f"rm -f {path}" for path in spoilt] + [f"git checkout HEAD {path}" for path in kept]
    if damaged:
        text += f"; its stored copy is damaged: {', '.join(map(str, damaged))}"
    elif kept:
        text += f"; its stored copy is lost: {', '.join(map(str, kept))}"
    return text, " && ".join([*steps, fetch])


def ids(chain: Chain) -> tuple[int, list[Finding]]:
    """Return how many tables were read, and ids in them that the parameters of their study or experiment do not have.

    Where a table has rows of something else than a run, these have a name in words.
    """
    count, findings = 0, []
    for job in chain.jobs:
        if job.step in ("analyse", "theory"):
            known = _known(job, chain.params)
            for path in (path for path in graph.outputs(job, chain.params) if path.is_file()):
                try:
                    columns = _columns(path, known)
                except (OSError, pl.exceptions.PolarsError) as error:
                    text = f"cannot be read: {' '.join(str(error).split())}"
                    findings.append(Finding(IDS, str(path), text))
                    continue
                count += 1
                findings += [
                    Finding(IDS, str(path), f"column {column} holds {_few(strange)}, which {where} does not name")
                    for column, values in columns.items()
                    if (strange := sorted(values - known[column][0]))
                    for where in [known[column][1]]
                ]
    return count, findings


def _known(job: graph.Job, params: Params) -> dict[str, tuple[set[str], str]]:
    """Return the ids that may stand in each column of what a job makes, and the place that names them."""
    files = {section: study_file(job.study, section) for section in SECTIONS}
    if job.step == "theory":
        return {"study": ({job.study}, "params.yaml"), "theory": ({job.id}, files["theory"])}
    of_study = {
        section: {name for key, group in params.of_study(section, job.study).items() for name in (key, *group.members)}
        for section in ("runs", "datasets")
    }
    runs = {name for key in params.experiments[job.id].runs for name in params.runs[key].members}
    known = {column: (of_study[section], files[section]) for column, section in COLUMNS.items()}
    return known | {"run": ({*runs, ALL}, f"{files['experiments']}:{job.id}.runs")}


def _columns(path: Path, known: Iterable[str]) -> dict[str, set[str]]:
    """Return the different values in the columns of ids that a table has; what is in words is no id."""
    schema = pl.read_parquet_schema(path)
    names = [name for name in known if schema.get(name) == pl.String]
    frame = pl.read_parquet(path, columns=names) if names else pl.DataFrame()
    return {name: {each for each in frame[name].drop_nulls().unique() if " " not in each} for name in names}


def _few(values: list[str], shown: int = 3) -> str:
    more = len(values) - shown
    return ", ".join(map(repr, values[:shown])) + (f" and {more} more" if more > 0 else "")
