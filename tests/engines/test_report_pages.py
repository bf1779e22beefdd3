"""The site of a study that no template knows, built by its step: complete, escaped, the same every time."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from workspace import REPOSITORY, Workspace

from pipeline.store import tables
from schemas.claims import NOT_TESTED, REPRODUCED, Claims
from schemas.theory import Theory

HOSTILE = (
    "</title></script><script>bad()</script><img src=x onerror=bad()> ](javascript:bad()) {{ 7*7 }} | `x`"
)


class Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def toy(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The toy study with the real report."""
    path = tmp_path_factory.mktemp("report") / "tree"
    workspace = Workspace(Path(shutil.copytree(template, path, symlinks=True)))
    shutil.copy2(REPOSITORY / "pipeline/steps/report.py", path / "pipeline/steps/report.py")
    yield workspace
    shutil.rmtree(path)


def build(workspace: Workspace) -> Path:
    done = workspace.run("python", "-m", "pipeline", "report")
    assert done.status == 0, done.output
    return workspace.path / "data/report"


@pytest.fixture(scope="module")
def site(toy: Workspace) -> Path:
    return build(toy)


def test_a_new_study_appears_without_an_edit(site: Path) -> None:
    text = (site / "study/toy.html").read_text()
    assert "One bar per replica." in text and "the mean is near one half" in text and "x = x" in text
    assert 'id="claim-1"' in text and 'id="figure-means"' in text
    pages = {path.stem for path in (site / "artifact").iterdir()}
    assert pages == {
        "dataset-toy-numbers", "run-toy-a", "run-toy-b", "theory-toy-identity", "table-toy-means",
        "table-toy-losses", "figure-toy-means", "claims-toy",
    }  # fmt: skip
    assert "study/toy.html" in (site / "index.html").read_text()
    assert "No erratum has been recorded" in (site / "errata.html").read_text()
    assert not (site / "reference").exists()


def test_an_artifact_page_tells_where_it_comes_from(toy: Workspace, site: Path) -> None:
    text = (site / "artifact/table-toy-means.html").read_text()
    table = toy.path / "data/tables/toy/means.parquet"
    code = toy.path / "pipeline/studies/toy/analysis/metrics.py"
    for file in (table, code, toy.path / "data/datasets/toy/toy-numbers.parquet"):
        assert hashlib.md5(file.read_bytes()).hexdigest() in text
    assert "snakemake data/tables/toy/means.parquet" in text
    assert "python -m pipeline trace data/tables/toy/means.parquet" in text
    assert "def analyse(context" in text and "studies.toy.analysis.offset" in text
    run = (site / "artifact/run-toy-a.html").read_text()
    assert (
        "{&#34;smoke&#34;: 10, &#34;quick&#34;: 20, &#34;paper&#34;: 30}" in run and "<code>10</code>" in run
    )


def test_the_same_inputs_give_the_same_bytes(toy: Workspace, site: Path) -> None:
    def content() -> dict[str, bytes]:
        return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}

    first = content()
    (site / "left-over.html").touch()
    build(toy)
    assert content() == first


@pytest.fixture
def spoiled(toy: Workspace, tmp_path: Path) -> Workspace:
    """A copy in which everything that a user may write is hostile."""
    workspace = Workspace(Path(shutil.copytree(toy.path, tmp_path / "tree", symlinks=True)))

    def edit(raw: dict[str, Any]) -> None:
        raw["studies"]["toy"] |= {"title": HOSTILE, "source": HOSTILE}

    workspace.change(edit)
    study = workspace.path / "pipeline/studies/toy"
    for file, old, new in [
        (
            "figures/__init__.py",
            "return alt.Chart(data)",
            f"return alt.Chart(data, title={HOSTILE!r}, description={HOSTILE!r})",
        ),
        ("figures/__init__.py", '"""One bar per replica."""', f'"""{HOSTILE}"""'),
        ("claims/__init__.py", 'gate="mean"', f"gate={HOSTILE!r}"),
        ("claims/__init__.py", 'predicate="the mean is near one half"', f"predicate={HOSTILE!r}"),
    ]:
        text = (study / file).read_text()
        assert old in text
        (study / file).write_text(text.replace(old, new))
    gate = json.dumps(HOSTILE)
    (study / "report.md.j2").write_text(
        f'# Own words {{{{ verdict("1") }}}}\n\nIt is {{{{ value("1", {gate}) }}}}, '
        "{{ param('studies.toy.title') }}."
        "\n\n{{ figure('means') }}\n{{ claims('1') }}\n{{ table('means', rows=1) }}\n{{ theory('toy-identity') }}\n\n"
        f"{{{{ artifact('data/tables/toy/means.parquet', {gate}) }}}}\n"
    )
    for step in ("figures", "claims"):
        done = workspace.run("python", "-m", "pipeline", step, "toy")
        assert done.status == 0, done.output
    return workspace


def test_nothing_that_is_shown_becomes_markup(spoiled: Workspace) -> None:
    site = build(spoiled)
    for file in site.rglob("*.html"):
        page = Page(file)
        assert [script["src"] for script in page.all("script")] in (["site.js"], ["../site.js"]), file
        for tag, attributes in page.tags:
            assert not any(name.startswith("on") for name in attributes), (file, tag)
            assert not (attributes.get("href") or "").lower().startswith("javascript"), file
        images = [image["src"] or "" for image in page.all("img")]
        assert all(image.endswith(".view.svg") for image in images)
    text = (site / "study/toy.html").read_text()
    assert text.count("&lt;script&gt;bad()") >= 8 and text.count("{{ 7*7 }}") >= 8
    assert "Also measured" not in text


def test_a_text_that_asks_for_what_is_not_there_is_named(toy: Workspace) -> None:
    file = toy.path / "pipeline/studies/toy/report.md.j2"
    file.write_text("{{ value('1', 'nix') }}")
    done = toy.run("python", "-m", "pipeline", "report")
    file.unlink()
    assert done.status == 1
    assert done.last_line == (
        "sandglass: pipeline/studies/toy/report.md.j2: value('1', 'nix'): "
        "claim 1 has no gate 'nix'; known: 'mean'"
    )


def test_errata_reference_sets_and_accepted_edits_are_shown(toy: Workspace, tmp_path: Path) -> None:
    workspace = Workspace(Path(shutil.copytree(toy.path, tmp_path / "tree", symlinks=True)))
    root = workspace.path
    theory = root / "data/theory/toy/toy-identity.parquet"
    rows = tables.read(theory, Theory)
    wrong = rows.with_columns(
        check=pl.lit("as-printed"), statement=pl.lit("x = x + 1"), comparison=pl.lit("beyond"), bound=pl.lit(1.0),
        tolerance=pl.lit(0.5), erratum=pl.lit("one too many"), form=pl.lit("printed"),
    )  # fmt: skip
    right = rows.with_columns(erratum=pl.lit("one too many"), form=pl.lit("corrected"))
    tables.write(pl.concat([right, wrong]), theory, Theory)
    kept = root / "data/reference/toy/claims/claims.parquet"
    ours = tables.read(root / "data/claims/toy/claims.parquet", Claims)
    tables.write(ours.with_columns(scale=pl.lit("paper"), value=pl.lit(0.25)), kept, Claims)
    md5 = hashlib.md5(kept.read_bytes()).hexdigest()
    outputs = {"data/claims/toy/claims.parquet": md5, "data/tables/toy": "0" * 32 + ".dir"}
    shutil.copytree(root / "data/tables/toy", root / "data/reference/toy/tables")
    job = {"params": {"seed": 7}, "device": "NVIDIA", "code": {"a.py": "0" * 32}, "outputs": outputs}
    record = {"study": "toy", "scale": "paper", "jobs": {"claims@toy": job}}
    (root / "data/reference/toy/record.json").write_text(json.dumps(record))
    for name, value, verdict in (("toy-more", 0.75, REPRODUCED), ("toy-rest", None, NOT_TESTED)):
        another = root / "data/reference" / name
        frame = ours.with_columns(pl.lit(value, pl.Float64).alias("value"), verdict=pl.lit(verdict))
        tables.write(frame, another / "claims/claims.parquet", Claims)
        (another / "record.json").write_text(json.dumps(record | {"jobs": {}}))
    code = "pipeline/studies/toy/analysis/__init__.py"
    now = hashlib.md5((root / code).read_bytes()).hexdigest()
    edit = {"files": [{"path": code, "old": "1" * 32, "new": now}], "author": "A", "diff": "3" * 64}
    lines = [
        edit | {"job": "analyse@toy", "reason": "a comma"},
        edit | {"job": "analyse@toy", "reason": "long ago"},
    ]
    lines[1]["files"] = [{"path": code, "old": "1" * 32, "new": "2" * 32}]
    (root / "accepted.jsonl").write_text(
        '{"about": "edits"}\n' + "".join(json.dumps(line) + "\n" for line in lines)
    )

    site = build(workspace)
    errata = (site / "errata.html").read_text()
    assert errata.index("x = x + 1") < errata.index("What holds") < errata.index(">x = x</p>")
    assert "artifact/theory-toy-identity.html" in errata
    study = (site / "study/toy.html").read_text()
    # Every set that tests a gate is shown with it; one that does not has a page of its own alone.
    assert "Reference, scale paper" in study and ">0.25" in study and ">0.75" in study
    assert study.count("../reference/toy-more.html") == 2 and study.count("../reference/toy-rest.html") == 1
    page = (site / "reference/toy.html").read_text()
    assert "NVIDIA" in page and md5 in page and page.count("yes</span>") == 1 and page.count("no</span>") == 2
    table = (site / "artifact/table-toy-means.html").read_text()
    assert "a comma" in table and "long ago" not in table
    assert "a comma" not in (site / "artifact/run-toy-a.html").read_text()
    assert "long ago" in (site / "index.html").read_text()
