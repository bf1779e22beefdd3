"""The command `readme`: what README.md and docs/ say of studies, claims and jobs, from parameters and results.

Between a line ``<!-- written: NAME -->`` and the next ``<!-- end -->`` a document holds what a function of this module
makes of the parameters, of ``dvc.lock`` and of the claims that it records. What is around is a person's; so are the two
sentences on each study, in ``readme.yaml`` beside its code.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl
from rich.console import Console
from ruamel.yaml import YAML, YAMLError

from pipeline import params as parameters
from pipeline.audit import elsewhere, hashing, inspection, provenance
from pipeline.engine import graph
from pipeline.errors import SandglassError, meant
from pipeline.kit.verdicts import short
from pipeline.params import Params
from pipeline.references import reading, standing
from pipeline.references.upgrade import upgraded
from pipeline.report import findings
from pipeline.store.paths import REFERENCE
from schemas.claims import FAILS, HOLDS, NOT_RUN, STATED, STATES, TOO_FEW, UNDECIDED

DOCUMENTS = tuple(map(Path, ("README.md", "docs/findings.md", "docs/audit.md", "docs/reference-sets.md")))
WORDS = "readme.yaml"
WIDTH = 120  # of a line
COMMAND = "python -m pipeline readme --write"
VERDICTS = {HOLDS: "hold", UNDECIDED: "undecided", FAILS: "fail", TOO_FEW: TOO_FEW, NOT_RUN: "not run"}  # in the plural
_BLOCK = re.compile(r"^<!-- written: (?P<name>[\w -]+) -->\n(?P<text>.*?)^<!-- end -->$", re.DOTALL | re.MULTILINE)


def run(*, written: bool) -> bool:
    """Say of each document whether it is up to date, or bring it up to date; return whether all are then."""
    results = Results(parameters.load())
    texts = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS if path.is_file()}
    made = {path: filled(text, results, str(path)) for path, text in texts.items()}
    for path, text in made.items():
        if written and text != texts[path]:
            path.write_text(text, encoding="utf-8")
        state = "is written" if written else f"is out of date: {COMMAND}"
        print(f"{path} {'is up to date' if text == texts[path] else state}")
    return written or made == texts


def filled(text: str, results: Results, where: str) -> str:
    """Return a document with its blocks as the ``results`` make them.

    Raises SandglassError for a block that is not known.
    """

    def made(block: re.Match[str]) -> str:
        name, _, argument = block["name"].partition(" ")
        if name not in BLOCKS:
            raise SandglassError(f"{where}: nothing writes a block {name!r}; {meant(name, BLOCKS)}")
        return f"<!-- written: {block['name']} -->\n{BLOCKS[name](results, argument)}\n<!-- end -->"

    return _BLOCK.sub(made, text)


@dataclass(frozen=True)
class Results:
    """What a document tells of: the parameters, the record of what was built, and the claims that it names."""

    params: Params

    @cached_property
    def lock(self) -> provenance.Lock:
        """Return the record that lies here."""
        return provenance.read_lock()

    def claims(self, study: str) -> pl.DataFrame | None:
        """Return the claims that the record names; None for a study that has none yet.

        Raises SandglassError if they are recorded and kept nowhere here.
        """
        claims = elsewhere.committed_claims(study, self.lock)
        if claims is None and graph.job("claims", study, self.params).stage in self.lock:
            raise SandglassError(f"readme: the claims of {study} are not kept here: `dvc fetch`, or `make reproduce`")
        return claims

    @cached_property
    def gates(self) -> dict[str, list[reading.Row] | None]:
        """Return by study the rows of `claims` with what the reference sets say of each; None where there are none yet.

        Most blocks ask for them, and all sets have to be read for them.
        """
        found = {study: self.claims(study) for study in self.params.studies}
        return {
            study: None if claims is None else standing.beside_sets(claims, self.sets(study))
            for study, claims in found.items()
        }

    def words(self, study: str) -> dict[str, str]:
        """Return what a person says of a study: what is ``here``, and what ``does_not_hold``.

        Raises SandglassError if the file says anything else.
        """
        path = Path("pipeline/studies") / study / WORDS
        try:
            words = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
        except (OSError, YAMLError) as error:
            raise SandglassError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
        if not isinstance(words, dict) or set(words) != {"here", "does_not_hold"}:
            raise SandglassError(f"{path}: expected two sentences, `here` and `does_not_hold`")
        return {key: " ".join(str(value).split()) for key, value in words.items()}

    def sets(self, study: str) -> list[reading.Reference]:
        """Return the claims of a study's reference sets, as DVC's cache or remote holds them."""
        frames = {path.stem: _claims_of_set(path.stem) for path in reading.ordered(REFERENCE.glob("*.dvc"), study)}
        return [
            reading.Reference(name, frame["scale"][0], {}, [], _by_gate(frame))
            for name, frame in frames.items()
            if frame["study"][0] == study
        ]


def _claims_of_set(name: str) -> pl.DataFrame:
    entry = provenance.reference_set(REFERENCE / name)
    files = (hashing.stored_listing(entry.md5) if entry else None) or {}
    content = hashing.stored_file(files.get("claims/claims.parquet", ""))
    if content is None:
        raise SandglassError(f"readme: the reference set {name} is not kept here: `dvc fetch`")
    return upgraded(pl.read_parquet(io.BytesIO(content)))


def _by_gate(claims: pl.DataFrame) -> dict[tuple[str, str], reading.Row]:
    return {(row["claim"], row["gate"]): row for row in claims.iter_rows(named=True)}


def _findings(results: Results, _: str) -> str:
    """What each study found, in a sentence or two, and what its source does not say."""
    lines = []
    for study in results.params.studies:
        gates = results.gates[study]
        if gates is None:
            lines.append(f"- **`{study}`**: not built yet.")
            continue
        found, surprising = (findings.plain(study, gates, block) for block in findings.BLOCKS)
        more = f" *Surprising:* {surprising}" if surprising else ""
        lines.append(f"- **`{study}`** {found}{more}")
    return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines)


def _studies(results: Results, _: str) -> str:
    """Each study: its source, what is here of it, in how many claims, and what does not hold or is open."""
    parts = []
    for study, own in results.params.studies.items():
        gates, words = results.gates[study], results.words(study)
        count = "not built yet" if gates is None else f"{len({gate['claim'] for gate in gates})} claims"
        texts = [
            f"### `{study}`",
            own.source,
            f"*Here*: {words['here']}; {count}.",
            f"*Open, or against the source, in this build*: {words['does_not_hold']}.",
        ]
        if gates is not None:
            texts.append(f"*By the strongest evidence*: {_stand(gates)}.")
        parts += [textwrap.fill(text, WIDTH, break_on_hyphens=False) for text in texts]
    return "\n\n".join(parts)


def _stand(rows: list[reading.Row]) -> str:
    """Say of all claims how they stand, those that do not hold by their numbers."""
    by_verdict: dict[str, list[str]] = {}
    for line in standing.lines(rows):
        by_verdict.setdefault(line.verdict, []).append(line.claim)
    others = [(verdict, by_verdict[verdict]) for verdict in STATES if verdict != HOLDS and verdict in by_verdict]
    words = [f"{len(by_verdict.get(HOLDS, []))} claims hold"]
    return "; ".join(words + [f"{short(verdict)}: {', '.join(claims)}" for verdict, claims in others])


def _verdicts(results: Results, _: str) -> str:
    """How many gates on statements of the sources have each verdict; the other kinds apart."""
    rows = []
    for study in results.params.studies:
        gates, counts = results.gates[study], [""] * (len(VERDICTS) + 1)
        if gates is not None:
            stated = Counter(gate["verdict"] for gate in gates if gate["kind"] == STATED)
            others = Counter(gate["verdict"] for gate in gates if gate["kind"] != STATED)
            tested = sum(others[verdict] for verdict in (HOLDS, UNDECIDED, FAILS))
            counts = [*(str(stated[verdict]) for verdict in VERDICTS), f"{others[HOLDS]} of {tested}"]
        rows.append([f"`{study}`", *counts])
    head = ["", *VERDICTS.values(), "of the other kinds that hold"]
    return _table(head, rows)


def _count(results: Results, _: str) -> str:
    """How many statements of the sources are decided, by the strongest evidence that there is of each."""
    decided = {study: each for study in results.params.studies if (each := _decided(results, study)) is not None}
    numbers, asked = (sum(each[place] for each in decided.values()) for place in (0, 1))
    shares = ", ".join(f"`{study}` {_share(*each)}" for study, each in decided.items())
    text = (
        f"Of {asked} statements of the sources that can be tested without data of one's own, {numbers} "
        f"({_share(numbers, asked)}) are decided, by this build or a reference set: {shares}."
    )
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)


def _open(results: Results, _: str) -> str:
    """Of each study how many statements are open, by what would decide them."""
    rows = []
    for study in results.params.studies:
        if (gates := results.gates[study]) is not None:
            ways = Counter(way for _, way in standing.open_gates(gates))
            rows.append([f"`{study}`", *(str(ways[way]) for way in standing.WAYS)])
    return _table(["", *standing.WAYS], rows)


def _decided(results: Results, study: str) -> tuple[int, int] | None:
    gates = results.gates[study]
    return None if gates is None else standing.decided(gates)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}".replace("%", "\N{NO-BREAK SPACE}%") if whole else "none"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, *rows]
    text = ["".join(f"| {cell} " if cell else "| " for cell in cells) + "|" for cells in lines]
    return "\n".join([text[0], "|---" * len(head) + "|", *text[1:]])


def _jobs(results: Results, _: str) -> str:
    """How large all of it is."""
    steps = Counter(job.step for job in graph.jobs(results.params))
    models = sum(len(run.members) for run in results.params.runs.values())
    figures = sum(len(each.figures) for each in results.params.experiments.values())
    datasets = steps["dataset"] + steps["labels"]
    text = (
        f"All of this is {steps.total()} jobs: {datasets} make datasets, {steps['train']} train {models} "
        f"ensembles of models, {steps['theory']} execute theory, {steps['analyse']} make tables, "
        f"{steps['figures']} draw {figures} figures, {steps['claims']} judge claims, and one makes the report."
    )
    return textwrap.fill(text, WIDTH)


def _audit(results: Results, _: str) -> str:
    """What `audit` prints where everything is as it was published, before a site is drawn."""
    params = results.params
    published = Counter[str]()
    for job in graph.jobs(params):
        outputs = graph.outputs(job, params)
        published["files"] += sum(map(graph.is_published, outputs))
        published["tables"] += len(outputs) if job.step in ("analyse", "theory") else 0
        published["made again"] += len(outputs) if job.step in ("figures", "claims") else 0
    kept_back = Counter(job.step for job in graph.jobs(params) if not graph.is_published(graph.outputs(job, params)[0]))
    sets = sorted(path.stem for path in REFERENCE.glob("*.dvc"))
    audit = inspection.Audit(
        commit="…",
        lock=f"{provenance.LOCK} is the committed one (made on …)",
        studies=list(params.studies),
        sets=sets,
        findings=[],
        warnings=[],
        files=published["files"],
        tables=published["tables"],
        made_again=published["made again"],
        recomputed=None,
        left_out={},
        kept_back=dict(kept_back),
        releases=[],
        unchecked=[],
    )
    text = io.StringIO()
    inspection.show(audit, Console(file=text, highlight=False))
    return f"```\n{text.getvalue()}```"


def _strongest(results: Results, study: str) -> str:
    """How the gates of a study stand by the strongest evidence, reference sets among it."""
    gates = results.gates.get(study)
    if gates is None:
        raise SandglassError(f"readme: {study} has no claims yet, and a block tells of them")
    counts = dict(dict(standing.counts(gates))[STATED])
    few, left = counts.get(TOO_FEW, 0), counts.get(NOT_RUN, 0)
    text = (
        f"By the strongest evidence there is, {counts.get(HOLDS, 0)} of the {sum(counts.values())} gates on published "
        f"statements hold, {counts.get(UNDECIDED, 0)} are undecided, {counts.get(FAILS, 0)} fail, {few} are on too "
        f"few models and {left} {'is' if left == 1 else 'are'} not run."
    )
    return textwrap.fill(text, WIDTH)


BLOCKS: dict[str, Callable[[Results, str], str]] = {
    "findings": _findings,
    "studies": _studies,
    "count": _count,
    "open": _open,
    "verdicts": _verdicts,
    "jobs": _jobs,
    "audit": _audit,
    "strongest": _strongest,
}
