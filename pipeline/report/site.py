"""The site: every page from the results as they lie there, with one set of templates."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from pipeline.engine import graph
from pipeline.kit import charts
from pipeline.params import Params
from pipeline.report import cards, catalogue, figures, forest, results, search
from pipeline.report.findings import BLOCKS
from pipeline.report.shared import TEMPLATES, Site
from pipeline.report.study import StudyText
from pipeline.store.paths import DATA, REPORT

COPIED = ("style.css", "site.js")
VEGA = "vega.js"


def build(params: Params, out: Callable[[Path], Path], from_store: bool = False) -> int:
    """Write the site of ``params``, each file to where ``out`` says; return the number of its pages.

    Raises SandglassError if a result is damaged or (unless ``from_store``) missing, or a study's text asks for what
    does not exist.
    """
    return _write(Site(params, from_store), lambda name: out(REPORT / name))


def is_here() -> bool:
    """Return whether a site lies in ``data/report/``."""
    return graph.REPORT_PAGE.is_file()


def is_from_store() -> bool:
    """Return whether the site that lies here says that it was drawn from the store."""
    return is_here() and 'class="from-store"' in graph.REPORT_PAGE.read_text(encoding="utf-8", errors="replace")


def identity(folder: Path = Path()) -> str | None:
    """Return the md5 of code inputs and parameters from which the site below ``folder`` says that it was drawn."""
    page = folder / graph.REPORT_PAGE
    text = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
    found = re.search(r'<dt>Build</dt><dd>.*?<code class="long">([0-9a-f]{32})</code>', text)
    return found and found[1]


def build_from_store(params: Params) -> int:
    """Replace ``data/report/`` by the site of what is here; return the number of its pages.

    It says of itself that it was drawn from the store, so its bytes are never those of the report that engines build:
    to both it is a changed output, which they build again.

    Raises SandglassError if a result is damaged, or a study's text asks for what does not exist.
    """
    staging, before = (DATA / ".tmp" / f"{kind}-from-store.{os.getpid()}" for kind in ("report", "replaced"))

    def out(name: str) -> Path:
        path = staging / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    try:
        pages = _write(Site(params, from_store=True), out)
        if REPORT.is_dir():
            REPORT.replace(before)
        staging.replace(REPORT)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)
    return pages


def _write(site: Site, out: Callable[[str], Path]) -> int:
    pages = _pages(site)
    for page, text in pages.items():
        out(page).write_text(text, encoding="utf-8")
    for name, content in _assets(site, pages).items():
        out(name).write_bytes(content)
    return len(pages)


def _pages(site: Site) -> dict[str, str]:
    said = {
        each.id: [StudyText(site, each, "index.html").finding(block) for block in BLOCKS]
        for each in site.studies.values()
    }
    published = forest.draw(site.studies.values())
    pages = {
        name: site.render(f"{name}.j2", name, said=said, published=published, kinds=results.ERRATUM_KINDS)
        for name in ("index.html", "theory.html", "errata.html", "code.html", catalogue.INDEX)
    }
    for study in site.studies.values():
        content = StudyText(site, study).render()
        pages[study.page] = site.render("study.html.j2", study.page, study=study, content=content)
        for each in study.references:
            pages[each.page] = site.render("reference.html.j2", each.page, study=study, reference=each)
    for artifact in site.artifacts:
        card = cards.card(site, artifact)
        pages[artifact.page] = site.render("artifact.html.j2", artifact.page, artifact=artifact, card=card)
    return pages


def _assets(site: Site, pages: dict[str, str]) -> dict[str, bytes]:
    files = {name: (TEMPLATES / name).read_bytes() for name in COPIED}
    files[VEGA] = _vega()
    files[search.SCRIPT] = search.script(site, pages).encode()
    for artifact in site.artifacts:
        files |= {f"{artifact.download}.{suffix}": content for suffix, content in site.downloads(artifact).items()}
        if artifact.kind == "figure" and not site.lacks(artifact):
            study = site.studies[artifact.job.study]
            files |= figures.files(study, artifact.name)
            if (kept := figures.larger(study, artifact.name, site.params.scale)) is not None:
                files |= figures.files(study, artifact.name, kept)
    return files


def _vega() -> bytes:
    """Return the script that draws, bundled once in this work tree for each version of the renderer: it takes a second.

    What is kept begins with its md5, so that a script that was cut off or spoilt is bundled again.
    """
    kept = graph.STATE / f"vega-{version('vl-convert-python')}.js"
    digest, _, content = kept.read_bytes().partition(b"\n") if kept.is_file() else (b"", b"", b"")
    if digest != _md5(content):
        content = charts.script_bundle().encode()
        kept.parent.mkdir(exist_ok=True)
        temporary = kept.with_name(f"{kept.name}.{os.getpid()}.tmp")
        temporary.write_bytes(_md5(content) + b"\n" + content)
        temporary.replace(kept)
    return content


def _md5(content: bytes) -> bytes:
    return hashlib.md5(content, usedforsecurity=False).hexdigest().encode()
