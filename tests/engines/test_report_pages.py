"""The site of a study that no template knows, built by its step: complete, escaped, the same every time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from workspace import REPOSITORY, Workspace

from pipeline.store import tables
from schemas.claims import HOLDS, NOT_RUN, Claims
from schemas.theory import Theory

NOTE = "These pages show published results, not a build of this machine"
HOSTILE = "</title></script><script>bad()</script><img src=x onerror=bad()> ](javascript:bad()) {{ 7*7 }} | `x`"


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
def toy(template: Path, tmp_path_factory: pytest.TempPathFactory, fork_server: dict[str, str]) -> Iterator[Workspace]:
    """The toy study with the real report."""
    path = tmp_path_factory.mktemp("report") / "tree"
    workspace = Workspace(Path(shutil.copytree(template, path, symlinks=True)), dict(fork_server))
    shutil.copy2(REPOSITORY / "pipeline/steps/report.py", path / "pipeline/steps/report.py")
    workspace.git("commit", "-qam", "the real report")
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
    assert "Draw one bar per run." in text and "the mean of all values" in text and "x = x" in text
    assert 'id="claim-1"' in text and 'id="figure-means"' in text
    pages = {path.stem for path in (site / "artifact").iterdir()}
    assert pages == {
        "dataset-toy-numbers",
        "run-toy-a",
        "run-toy-b",
        "theory-toy-identity",
        "table-toy-means-means",
        "table-toy-losses-losses",
        "figure-toy-means",
        "figure-toy-losses",
        "claims-toy",
    }
    assert "study/toy.html" in (site / "index.html").read_text()
    assert "No erratum has been recorded" in (site / "errata.html").read_text()
    assert not (site / "reference").exists()


def test_an_artifact_page_tells_where_it_comes_from(toy: Workspace, site: Path) -> None:
    text = (site / "artifact/table-toy-losses-losses.html").read_text()
    table = toy.path / "data/tables/toy/toy-losses/losses.parquet"
    code = toy.path / "pipeline/studies/toy/analysis/losses.py"
    for file in (table, toy.path / "data/datasets/toy/toy-numbers/toy-numbers.parquet"):
        assert hashlib.md5(file.read_bytes()).hexdigest() in text
    assert f"<code>{code.relative_to(toy.path)}</code>" in text and 'href="../code.html"' in text
    assert hashlib.md5(code.read_bytes()).hexdigest() in (site / "code.html").read_text()
    assert "snakemake data/tables/toy/toy-losses/losses.parquet" in text
    assert "python -m pipeline trace data/tables/toy/toy-losses/losses.parquet" in text
    assert "def analyse(" in text
    entry = text[text.index("<code>params/toy/study.yaml:analysis</code>") :]
    assert "<code>offset</code>" in entry[: entry.index("</tbody>")]
    assert "toy-b.safetensors" not in text and "analysis/means.py" not in text  # of another experiment
    run = (site / "artifact/run-toy-a.html").read_text()
    assert '{"smoke": 10, "quick": 20, "paper": 30}' in run and "<code>10</code>" in run


def test_the_page_of_a_run_lists_its_members(toy: Workspace, site: Path) -> None:
    text = (site / "artifact/run-toy-b.html").read_text()
    for member in ("toy-b", "toy-c"):
        file = toy.path / f"data/runs/toy/toy-b/{member}.safetensors"
        assert f'id="member-{member}"' in text and f'href="#member-{member}"' in text
        assert text.count(hashlib.md5(file.read_bytes()).hexdigest()) == 2  # among the files, and at the member
    table = text[text.index("Table: members") : text.index("</table>", text.index("Table: members"))]
    assert ">lr<" in table and ">0.25<" in table and ">0.125<" in table and "replicas" not in table
    means = (site / "artifact/table-toy-means-means.html").read_text()
    assert 'href="../artifact/run-toy-b.html#member-toy-c"' in means


def test_lineage_follows_the_edges_of_the_experiment(site: Path) -> None:
    def drawn(page: str) -> set[str]:
        text = (site / "artifact" / page).read_text()
        lineage = text[text.index('class="lineage"') : text.index('id="inputs"')]
        return set(re.findall(r"<title>([^<]+)</title>", lineage))

    assert drawn("figure-toy-means.html") == {
        "dataset-toy-numbers",
        "train-toy-a",
        "train-toy-b",
        "analyse-toy-means",
        "figures-toy-means",
    }
    assert drawn("table-toy-losses-losses.html") == {
        "dataset-toy-numbers",
        "train-toy-a",
        "analyse-toy-losses",
        "figures-toy-losses",
        "claims-toy",
    }


def test_an_edit_of_one_function_changes_only_pages_that_tell_of_it(toy: Workspace, site: Path, tmp_path: Path) -> None:
    def contents(site: Path) -> dict[str, bytes]:
        return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}

    workspace = Workspace(Path(shutil.copytree(toy.path, tmp_path / "tree", symlinks=True)), dict(toy.env))
    before = contents(site)
    workspace.edit("pipeline/studies/toy/figures/losses.py")
    after = contents(build(workspace))
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {"index.html", "code.html"}  # with the md5 of all code, and of this file


def test_the_search_knows_every_claim_figure_and_artifact(site: Path) -> None:
    text = (site / "search.js").read_text()
    found = json.loads(text.removeprefix("sandglass.items(").removesuffix(");\n"))
    about = [item for item in found if item["kind"] in ("study", "section", "word")]
    assert about[0]["address"] == "study/toy.html" and {item["kind"] for item in about} == {"study", "section", "word"}
    items = [item for item in found if item not in about]
    assert [(item["kind"], item["address"]) for item in items[:3]] == [
        ("claim", "study/toy.html#claim-1"),
        ("figure", "study/toy.html#figure-means"),
        ("figure", "study/toy.html#figure-losses"),
    ]
    assert items[0]["verdict"] == HOLDS and items[0]["title"] == "Claim 1: The mean is near one half."
    checks = [item for item in items if item["kind"] == "check"]
    assert {(item["title"], item["address"]) for item in checks} == {("x = x", "theory.html#theory-toy-identity")}
    rest = {item["address"] for item in items[3:] if item["kind"] != "check"}
    assert rest == {
        f"artifact/{path.name}"
        for path in (site / "artifact").iterdir()
        if not path.name.startswith(("figure-", "claims-"))
    }
    assert "toy-c" in next(item["words"] for item in items if item["address"].endswith("run-toy-b.html"))


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
    workspace = Workspace(Path(shutil.copytree(toy.path, tmp_path / "tree", symlinks=True)), dict(toy.env))

    def edit(raw: dict[str, Any]) -> None:
        raw |= {"title": HOSTILE, "source": HOSTILE}

    workspace.change_study(edit)
    study = workspace.path / "pipeline/studies/toy"
    for file, old, new in [
        (
            "figures/common.py",
            "return alt.Chart(data)",
            f"return alt.Chart(data, title={HOSTILE!r}, description={HOSTILE!r})",
        ),
        ("figures/means.py", '"""Draw one bar per run."""', f'"""{HOSTILE}"""'),
        ("claims/__init__.py", 'gate="mean"', f"gate={HOSTILE!r}"),
        ("claims/__init__.py", 'measure="the mean of all values"', f"measure={HOSTILE!r}"),
    ]:
        text = (study / file).read_text()
        assert old in text
        (study / file).write_text(text.replace(old, new))
    gate = json.dumps(HOSTILE)
    (study / "report.md.j2").write_text(
        f'# Own words {{{{ verdict("1") }}}}\n\nIt is {{{{ value("1", {gate}) }}}}, '
        "{{ param('title') }}."
        "\n\n{{ figure('means') }}\n{{ figure('losses') }}\n{{ claims('1') }}\n"
        "{{ table('means', rows=1) }}\n{{ theory('toy-identity') }}\n\n"
        f"{{{{ artifact('data/tables/toy/toy-means/means.parquet', {gate}) }}}}\n"
    )
    for step, key in (("figures", "toy-means"), ("figures", "toy-losses"), ("judge", "toy")):
        done = workspace.run("python", "-m", "pipeline", step, key)
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
        assert all(image.endswith(".svg") for image in images)
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
        "sandglass: pipeline/studies/toy/report.md.j2: value('1', 'nix'): claim 1 has no gate 'nix'; known: 'mean'"
    )


def test_errata_reference_sets_and_accepted_edits_are_shown(toy: Workspace, tmp_path: Path) -> None:
    workspace = Workspace(Path(shutil.copytree(toy.path, tmp_path / "tree", symlinks=True)), dict(toy.env))
    root = workspace.path
    theory = root / "data/theory/toy/toy-identity.parquet"
    rows = tables.read(theory, Theory)
    wrong = rows.with_columns(
        check=pl.lit("as-printed"),
        statement=pl.lit("x = x + 1"),
        comparison=pl.lit("beyond"),
        bound=pl.lit(1.0),
        tolerance=pl.lit(0.5),
        erratum=pl.lit("one too many"),
        form=pl.lit("printed"),
    )
    right = rows.with_columns(erratum=pl.lit("one too many"), form=pl.lit("corrected"))
    tables.write(pl.concat([right, wrong]), theory, Theory)
    kept = root / "data/reference/toy/claims/claims.parquet"
    ours = tables.read(root / "data/claims/toy/claims.parquet", Claims)
    tables.write(ours.with_columns(scale=pl.lit("paper"), value=pl.lit(0.25)), kept, Claims)
    md5 = hashlib.md5(kept.read_bytes()).hexdigest()
    outputs = {"data/claims/toy/claims.parquet": md5, "data/tables/toy": "0" * 32 + ".dir"}
    shutil.copytree(root / "data/tables/toy", root / "data/reference/toy/tables")
    job = {"params": {"seed": 7}, "device": "NVIDIA", "code": {"a.py": "0" * 32}, "outputs": outputs}
    record = {"study": "toy", "scale": "paper", "jobs": {"claims-toy": job}}
    (root / "data/reference/toy/record.json").write_text(json.dumps(record))
    for name, value, verdict in (("toy-more", 0.75, HOLDS), ("toy-rest", None, NOT_RUN)):
        another = root / "data/reference" / name
        frame = ours.with_columns(pl.lit(value, pl.Float64).alias("value"), verdict=pl.lit(verdict))
        tables.write(frame, another / "claims/claims.parquet", Claims)
        (another / "record.json").write_text(json.dumps(record | {"jobs": {}}))
    code = "pipeline/studies/toy/analysis/means.py"
    now = hashlib.md5((root / code).read_bytes()).hexdigest()
    edit = {"files": [{"path": code, "old": "1" * 32, "new": now}], "author": "A", "diff": "3" * 64}
    lines = [
        edit | {"job": "analyse-toy-means", "reason": "a comma", "proof": {code: now}},
        edit | {"job": "analyse-toy-means", "reason": "long ago"},
    ]
    lines[1]["files"] = [{"path": code, "old": "1" * 32, "new": "2" * 32}]
    (root / "accepted.jsonl").write_text('{"about": "edits"}\n' + "".join(json.dumps(line) + "\n" for line in lines))

    site = build(workspace)
    errata = (site / "errata.html").read_text()
    section = errata[errata.index("<section") :]
    assert section.index("x = x + 1") < section.index("What holds") < section.index(">x = x</p>")
    assert errata.index('id="kind-misprint"') < errata.index("<section")  # without words of its own
    assert "artifact/theory-toy-identity.html" in errata
    study = (site / "study/toy.html").read_text()
    # Every set that tests a gate is shown with it; one that does not has a page of its own alone.
    assert "Reference, scale paper" in study and ">0.25" in study and ">0.75" in study
    assert study.count("../reference/toy-more.html") == 2 and study.count("../reference/toy-rest.html") == 1
    page = (site / "reference/toy.html").read_text()
    assert "NVIDIA" in page and md5 in page and page.count("yes</span>") == 1 and page.count("no</span>") == 2
    table = (site / "artifact/table-toy-means-means.html").read_text()
    assert "a comma" in table and "long ago" not in table
    assert "proved: built again" in table and "unproved" not in table
    assert "a comma" not in (site / "artifact/run-toy-a.html").read_text()
    index = (site / "index.html").read_text()
    assert "a comma" in index and "long ago" not in index and "unproved: declared" not in index
    assert "1 earlier record in <code>accepted.jsonl</code> is history: the jobs have been built again" in index


# From the store


@pytest.fixture(scope="module")
def clone(toy: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A fresh clone of the toy study with the real report, in which only what was pushed is pulled."""
    path = tmp_path_factory.mktemp("clone")
    built = Workspace(Path(shutil.copytree(toy.path, path / "built", symlinks=True)), dict(toy.env))
    built.engine("snakemake")
    done = built.run("dvc", "push")
    assert done.status == 0, done.output
    built.git("add", "-A")
    built.git("commit", "-qm", "results")
    built.git("clone", "-q", str(built.path), str(path / "clone"))
    workspace = Workspace(path / "clone", dict(toy.env))
    done = workspace.run("dvc", "pull", "--allow-missing")
    assert done.status == 0, done.output
    return workspace


def from_store(workspace: Workspace) -> Path:
    done = workspace.run("python", "-m", "pipeline", "report", "--from-store")
    assert done.status == 0, done.output
    return workspace.path / "data/report"


def test_a_fresh_clone_shows_what_the_store_holds(clone: Workspace, site: Path) -> None:
    held = {str(path.parent.relative_to(clone.path / "data")) for path in clone.path.glob("data/*/*/*/*.*")}
    assert held == {"figures/toy/toy-losses", "figures/toy/toy-means", "tables/toy/toy-losses", "tables/toy/toy-means"}
    drawn = from_store(clone)
    assert {path.relative_to(drawn) for path in drawn.rglob("*")} == {
        path.relative_to(site) for path in site.rglob("*")
    }
    for page in drawn.rglob("*.html"):
        assert NOTE in page.read_text() and NOTE not in (site / page.relative_to(drawn)).read_text()
    study = (drawn / "study/toy.html").read_text()
    assert "the mean of all values" in study and "not here" not in study and study.count("<figure") == 2
    run = (drawn / "artifact/run-toy-b.html").read_text()
    assert "Part of it is not here" in run and "3 of its 4 files" in run and "toy-c" in run
    numbers = (drawn / "artifact/dataset-toy-numbers.html").read_text()
    assert "It is not here" in numbers and "snakemake data/datasets/toy/toy-numbers/toy-numbers.parquet" in numbers
    table = (drawn / "artifact/table-toy-means-means.html").read_text()
    md5 = hashlib.md5((clone.path / "data/tables/toy/toy-means/means.parquet").read_bytes()).hexdigest()
    assert md5 in table and "not here" in table[table.index("Table: data it was made from") :]


@pytest.mark.slow
def test_the_report_from_the_store_is_no_built_report(clone: Workspace) -> None:
    from_store(clone)
    assert "report" in clone.status() and "report" in clone.planned()
    assert not clone.git("status", "--short")
    done = clone.run("python", "-m", "pipeline", "report")  # a built one needs all that it shows
    assert done.status == 1 and "is missing; make it with: snakemake data/" in done.last_line
    assert NOTE in (clone.path / "data/report/index.html").read_text()


def test_it_is_drawn_beside_an_engine_and_over_a_built_report(toy: Workspace, tmp_path: Path) -> None:
    workspace = Workspace(Path(shutil.copytree(toy.path, tmp_path / "tree", symlinks=True)), dict(toy.env))
    build(workspace)
    with contextlib.ExitStack() as held:  # the lock of the step, DVC's, and one of Snakemake's
        for name in (".sandglass/jobs/report-all.lock", ".dvc/tmp/lock", ".snakemake/locks/0.input.lock"):
            (workspace.path / name).parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(held.enter_context((workspace.path / name).open("a+")), fcntl.LOCK_EX)
        text = (from_store(workspace) / "index.html").read_text()
    assert NOTE in text
    assert "not here" not in (workspace.path / "data/report/artifact/run-toy-a.html").read_text()
    assert not list((workspace.path / "data/.tmp").glob("*from-store*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["claims", "theory", "figures", "tables"])
def test_whatever_is_not_here_is_said(clone: Workspace, tmp_path: Path, kind: str) -> None:
    workspace = Workspace(Path(shutil.copytree(clone.path, tmp_path / "tree", symlinks=True)), dict(clone.env))
    shutil.rmtree(workspace.path / "data" / kind)
    (workspace.path / "pipeline/studies/toy/report.md.j2").write_text(
        "# Words {{ verdict('1') }}\n\n{{ value('1', 'mean') }}, {{ interval('1', 'mean') }}\n\n{{ claims('1') }}\n"
        "{{ figure('means') }}\n{{ table('means') }}\n{{ theory('toy-identity') }}\n"
    )
    study = (from_store(workspace) / "study/toy.html").read_text()
    notices = {
        "claims": "Claim 1 is not here",
        "theory": "Theory check toy-identity is not here",
        "figures": "Figure means is not here",
        "tables": "Table means is not here",
    }
    assert [words for words in notices.values() if words in study] == [notices[kind]]
    index = (workspace.path / "data/report/index.html").read_text()
    assert ("Its claims are not here" in index) == (kind == "claims")


def test_claims_of_other_parameters_are_marked(clone: Workspace, tmp_path: Path) -> None:
    workspace = Workspace(Path(shutil.copytree(clone.path, tmp_path / "tree", symlinks=True)), dict(clone.env))
    assert "judged with other parameters" not in (from_store(workspace) / "index.html").read_text()
    workspace.change_study(lambda raw: raw["claims"].update(tolerance=0.25))
    site = from_store(workspace)
    for page in ("index.html", "study/toy.html"):
        assert "judged with other parameters than those of today" in (site / page).read_text()


def test_what_is_damaged_is_refused_from_the_store_too(clone: Workspace, tmp_path: Path) -> None:
    workspace = Workspace(Path(shutil.copytree(clone.path, tmp_path / "tree", symlinks=True)), dict(clone.env))
    table = workspace.path / "data/tables/toy/toy-means/means.parquet"
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.unlink()  # it may be a link into DVC's cache
    table.write_bytes(content)
    shutil.rmtree(workspace.path / "data/report", ignore_errors=True)
    done = workspace.run("python", "-m", "pipeline", "report", "--from-store")
    assert done.status == 2 and "means.parquet is truncated or damaged" in done.last_line
    assert not (workspace.path / "data/report").exists()
