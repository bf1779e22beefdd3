"""What the search finds, as a script: studies, sections, words, claims, figures, errata, theory checks, artifacts.

A page that is read from disk may load scripts, but neither JSON nor other pages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.report import contents, figures, wording
from pipeline.report.results import Study
from pipeline.report.shared import Site

SCRIPT = "search.js"
_TERM = re.compile(r"<dt>([^<]+)</dt><dd>(.*?)</dd>", re.DOTALL)

Item = dict[str, Any]


def script(site: Site, pages: Mapping[str, str]) -> str:
    """Return the script that hands all items to ``site.js``; ``pages`` are the pages of the site by their path."""
    found = [*_studies(site, pages), *items(site)]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return f"sandglass.items({text});\n"


def items(site: Site) -> Iterator[Item]:
    """Yield what can be found: kind, title, address, study, verdict of a claim, and further words to find it by.

    Claims come first, then figures, errata, theory checks, and the pages of all other artifacts.
    """
    for study in site.studies.values():
        yield from _claims(study)
    for artifact in site.artifacts:
        if artifact.kind == "figure" and not site.lacks(artifact):
            study = site.studies[artifact.job.study]
            figure = figures.load(study, artifact.name, site.source_of(artifact))
            words = " ".join([figure.caption, figure.description, artifact.job.id])
            title = f"Figure {figure.name}" + (f": {figure.title}" if figure.title else "")
            yield _item("figure", title, f"{study.page}#figure-{figure.name}", study.id, words)
    for erratum in site.errata():
        statements = [row["statement"] for row in (*erratum.printed, *erratum.corrected)]
        words = " ".join([erratum.id, erratum.follows, erratum.source, *statements])
        yield _item("erratum", erratum.title, f"errata.html#{erratum.anchor}", erratum.study, words)
    for study in site.studies.values():
        for check, rows in study.theory.items():
            for row in rows:
                yield _item("check", row["statement"], f"theory.html#theory-{check}", study.id, row["check"])
    for artifact in site.artifacts:
        if artifact.kind not in ("figure", "claims"):
            words = " ".join([artifact.job.id, *artifact.members, *map(str, artifact.paths)])
            yield _item(artifact.kind, wording.capital(artifact.title), artifact.page, artifact.job.study, words)


def _studies(site: Site, pages: Mapping[str, str]) -> Iterator[Item]:
    """Yield the studies, the sections of their pages, and the words that the overview explains."""
    for study in site.studies.values():
        yield _item("study", f"{study.title} ({study.id})", study.page, study.id, study.source)
    for study in site.studies.values():
        for heading in contents.headings(pages.get(study.page, "")):
            if not heading.id.startswith(("claim-", "figure-", "theory-")):  # these have items of their own
                yield _item("section", heading.text, f"{study.page}#{heading.id}", study.id, "")
    for term, meaning in _TERM.findall(pages.get("index.html", "")):
        yield _item("word", term, "index.html#words", "", re.sub(r"<[^>]*>", "", meaning))


def _claims(study: Study) -> Iterator[Item]:
    for claim, line in study.lines.items():
        rows = [row for row in study.claims if row["claim"] == claim]
        words = [f"{study.id}:{claim}"]
        words += [row[name] for row in rows for name in ("gate", "predicate", "source")]
        words += [wording.number(row[name]) for row in rows for name in ("value", "published")]
        title = f"Claim {claim}: {line.statement}"
        address = f"{study.page}#claim-{claim}"
        yield _item("claim", title, address, study.id, " ".join(dict.fromkeys(words))) | {"verdict": line.verdict}


def _item(kind: str, title: str, address: str, study: str, words: str) -> Item:
    return {"kind": kind, "title": title, "address": address, "study": study, "words": words}
