"""The report's parts: words in which no value becomes markup, colours that can be read, lineage, inputs."""

from __future__ import annotations

import ast
import dataclasses
import graphlib
import importlib
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import polars as pl
import pytest
from markupsafe import Markup, escape
from PIL import Image
from workspace import load_all

from pipeline import access, params
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.kit import charts
from pipeline.params import Params
from pipeline.references import reading
from pipeline.references.standing import Line
from pipeline.report import cards, catalogue, curves, figures, results, site, sources, wording
from pipeline.report.contents import Heading, headings
from pipeline.report.files import Files, identity, read_table
from pipeline.report.formula import mathml
from pipeline.report.lineage import Lineage
from pipeline.report.markdown import ROWS, Mark, Text
from pipeline.report.study import StudyText
from pipeline.store import tables
from pipeline.store.paths import FIGURE_SUFFIXES
from schemas.claims import FAILS, HOLDS, NOT_RUN, UNDECIDED, Claims
from schemas.curves import Curves
from schemas.theory import Theory

ROOT = Path(__file__).parents[2]
NASTY = '</script><b>](javascript:alert(1)) {{ 7*7 }} `x` & "q" | ρ'


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def loaded() -> Params:
    return load_all()


# Markdown


def inline(text: Text, value: str) -> str:
    return text.mark(Mark("value()", False, lambda _: escape(value)))


def block(text: Text, draw: str = "<figure></figure>", *claims: str) -> str:
    return text.mark(Mark("figure()", True, lambda about: Markup(draw.format(*about)), claims))


def test_no_value_becomes_markup_wherever_it_stands() -> None:
    text = Text("t")
    mark = inline(text, NASTY)
    words = f"# A {mark}\n\n*{mark}* and [a {mark}](x)\n\n- `{mark}`\n\n|{mark}|\n|-|\n|{mark}|\n"
    html = text.html(words)
    assert html.count(str(escape(NASTY))) == 6
    assert html.replace(str(escape(NASTY)), "").count("<b>") == 0
    assert "<em>" in html and '<a href="x">' in html and "<table>" in html


def test_html_in_a_text_stays_text() -> None:
    html = Text("t").html("<script>x</script>\n\n[a](javascript:alert(1)) ![b](c.png)")
    assert "<script" not in html and "<img" not in html
    assert re.findall('href="([^"]*)"', html) == ["c.png"]


def test_a_block_replaces_its_paragraph_and_no_other() -> None:
    text = Text("t")
    html = text.html(f"before\n\n{block(text)}\n\nafter\n\n- one\n\n  {block(text)}")
    assert html.count("<figure></figure>") == 2
    assert "<p><figure>" not in html
    assert html.startswith("<p>before</p>") and "<p>after</p>" in html
    assert html.count("<p>") == html.count("</p>")


def test_a_block_is_told_the_claims_of_its_section_only() -> None:
    text = Text("t")
    other, figure, later = block(text, "", "7"), block(text, "<i>{0}</i>"), block(text, "", "5")
    html = text.html(f"## A\n\n{other}\n\n## B\n\n{figure}\n\n{later}")
    assert "<i>5</i>" in html


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("see {block} here", r"t: figure\(\) must stand in a paragraph of its own"),
        ("[a]({inline})", "t: a function's result cannot stand in an address"),
        ("[a](b '{inline}')", "t: a function's result cannot stand in an address"),
        ("    {inline}", "or a code block"),
    ],
)
def test_a_mark_in_the_wrong_place_is_refused(words: str, said: str) -> None:
    text = Text("t")
    given = words.format(block=block(text), inline=inline(text, "1"))
    with pytest.raises(SandglassError, match=said):
        text.html(given)


def test_headings_have_ids_of_their_own_and_start_at_the_second_level() -> None:
    text = Text("t")
    html = text.html(f"# Claim 5: {inline(text, 'partly')}\n\n## Same\n\n## Same\n", {"claim-5"})
    assert headings(html) == [
        Heading(2, "claim-5-2", "Claim 5: partly"),
        Heading(3, "same", "Same"),
        Heading(3, "same-2", "Same"),
    ]
    assert '<h2 id="claim-5-2">Claim 5: partly</h2>' in html and "<h1" not in html


def test_contents_leave_out_badges_and_permalinks() -> None:
    badge = '<span class="badge holds"><span aria-hidden="true">✓</span> holds</span>'
    link = '<a class="permalink" href="#x">#</a>'
    html = f'<h1 id="t">T</h1><h2 id="a">A &amp; <code>b</code>: {badge} {link}</h2><h3>none</h3><h4 id="d">D</h4>'
    assert headings(html + '<h3 id="c">C</h3>') == [Heading(2, "a", "A & b"), Heading(3, "c", "C")]


def test_a_table_scrolls_in_a_box_that_the_keyboard_reaches() -> None:
    html = Text("t").html("## Where & why\n\n|a|\n|-|\n|b|\n")
    assert 'tabindex="0" role="region" aria-label="Table: Where &amp; why"><table>' in html
    assert html.count("<div") == html.count("</div>") == 1


def test_sections_of_the_evidence_are_folded_and_nothing_else_is() -> None:
    html = Text("t").html(
        "## One\n\n### A\n\na\n\n## Evidence\n\nAll.\n\n### B\n\nb\n\n#### C\n\nc\n\n### D\n\nd\n\n## Last\n\nl"
    )
    folded = re.findall(r'<details class="wide section"><summary>(.*?)</details>', html, re.DOTALL)
    assert [re.sub(r"<[^>]*>|\s+", " ", each).split() for each in folded] == [["B", "b", "C", "c"], ["D", "d"]]
    assert [heading.id for heading in headings(html)] == ["one", "a", "evidence", "b", "d", "last"]


def test_a_long_table_is_folded_and_a_short_one_stands_open() -> None:
    def table(rows: int) -> str:
        return "## Where\n\n|a|\n|-|\n" + "|b|\n" * rows

    assert "<details" not in Text("t").html(table(ROWS))
    html = Text("t").html(table(ROWS + 1) + "\nafter")
    assert re.search(
        r"<details[^>]*><summary>All 8 rows: Where</summary>\s*<div.*</div>\s*</details>\s*<p>after", html, re.DOTALL
    )


def test_a_word_leads_to_its_explanation_where_a_section_first_has_it() -> None:
    words = (
        "# A\n\n- **stack score**: the stack score.\n- **other**: like a stack score.\n\n## Stack score\n\n"
        "One `stack score`, Stack scores and a stack score, [stack score](x).\n\n## B\n\nA stack score."
    )
    html = Text("t").html(words)
    links = re.findall(r'<a class="term" href="#(.*?)" aria-describedby="(.*?)">(.*?)</a>', html)
    assert links == [
        ("word-stack-score", "word-stack-score", said) for said in ("stack score", "Stack scores", "stack score")
    ]
    assert '<li id="word-stack-score" class="word">' in html and html.count('id="word-') == 2
    assert 'class="term"' not in Text("t").html("A stack score.")


def test_formulas_are_mathml() -> None:
    html = Text("t").html(r"It is $\frac{1}{2} x_i^{k-1} \le \exp(-\tau)$ and $\text{if <b>}$.")
    assert "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>" in html
    assert "<msubsup><mi>x</mi><mi>i</mi><mrow><mi>k</mi><mo>−</mo><mn>1</mn></mrow></msubsup><mo>≤</mo>" in html
    assert (
        "<mi>exp</mi><mo>&#x2061;</mo><mo>(</mo><mo>−</mo><mi>τ</mi>" in html and "<mtext>if &lt;b&gt;</mtext>" in html
    )
    for wrong, said in ((r"\nix", r"\nix is not known"), ("x_{i", "a brace is missing"), ("x}", "a brace is missing")):
        with pytest.raises(SandglassError, match=re.escape(said)):
            mathml(wrong)


# What a study's text may ask for


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Renders a text of a study with a figure, two claims, a theory check and a table; blocks are their names."""
    monkeypatch.chdir(tmp_path)
    gates = [
        ("1", "mean", 0.5, 0.75, HOLDS),
        ("2", "a", None, None, NOT_RUN),
        ("2", "b", -0.25, None, UNDECIDED),
        ("2", "c", 1.5, 2.0, FAILS),
    ]
    rows = [
        {"row": i, "claim": claim, "gate": gate, "value": value, "published": 1.0, "lo": 0.25, "hi": hi}
        | {"verdict": verdict, "scale": "quick", "references": [], "published_form": ""}
        for i, (claim, gate, value, hi, verdict) in enumerate(gates)
    ]
    verdict = {
        key: Line(key, "It is so.", "S", text, "", "", "")
        for key, text in (("1", "holds"), ("2", "contradicted in part"))
    }
    figure, table = {"fig": "s-one", "other": "s-two"}, {"t": ["s-one", "s-two"]}
    study = results.Study("s", "Title", "Source", figure, table, rows, verdict, {"check": []}, [], [])
    blocks = SimpleNamespace(
        figure=lambda figure, artifact, alt: f"<figure>{figure.name}: {escape(alt)}</figure>",
        figures=lambda first, other, summary, *_: (
            f"<figure>{first.name}</figure><details>{summary}: {other.name}</details>"
        ),
        again=lambda name: f"<p>{name} again</p>",
        judged=lambda study, names: f"<p>{', '.join(f'{n} {study.lines[n].verdict}' for n in names)}</p>",
        claim=lambda study, rows, name, anchored: f"<table>{','.join(row['gate'] for row in rows)}</table>",
        theory=lambda artifact, rows, first, fold: "<table>theory</table>",
        table=lambda name, artifacts, shown, height: (
            f"<table>{name} {','.join(shown.columns)} {shown.height}/{height} of {len(artifacts)}</table>"
        ),
        badge=lambda verdict: f"<b>{verdict}</b>",
        traced=lambda study, row, column, text: f"<a>{text}</a>",
        spark=lambda drawn: f"<s>{drawn.words}</s>",
        param=lambda path, text: Markup(f'<i title="{escape(path)}">{escape(text)}</i>'),
        to=lambda page, text: f'<a href="{page}">{escape(text)}</a>',
    )
    path = Path("data/tables/s/s-one/t.parquet")
    artifact = SimpleNamespace(paths=[path], place=lambda path: "p.html")
    run = {"steps": {"smoke": 1, "quick": 2, "paper": 3}, "width": 8, "variants": {"s-b": {"width": 16}}}
    raw = {f"params/s/{name}.yaml": {} for name in ("datasets", "theory", "experiments")} | {
        "params.yaml": {"scale": "quick"},
        "params/s/runs.yaml": {"s-a": run},
        "params/s/study.yaml": {"analysis": {"n": 7}},
    }
    frame = pl.DataFrame({"x": [1, 2, 3], "y": [4, 5, 6]})
    site = SimpleNamespace(
        from_store=False,
        params=SimpleNamespace(raw=raw, scale="quick"),
        blocks=lambda page: blocks,
        figure=lambda study, name: artifact,
        theory=lambda check: artifact,
        tables=lambda study, name: [artifact, artifact],
        artifacts=[],
        by_path={path: artifact},
        lacks=lambda artifact: [],
        source_of=lambda artifact: None,
        table=lambda artifact: (frame, None),
    )
    told = partial(figures.Figure, title="", caption="", description="Told.", width=1, height=1, base="")
    monkeypatch.setattr(figures, "larger", lambda study, name, scale: None)
    monkeypatch.setattr(figures, "load", lambda study, name, _: told(study, name, data=path, reference=None))
    file = Path("pipeline/studies/s/report.md.j2")
    file.parent.mkdir(parents=True)

    def render(words: str, finding: bool = False) -> str:
        file.write_text(words)
        text = StudyText(site, study, "index.html" if finding else None)  # type: ignore[arg-type]
        return text.finding() if finding else text.render()

    return render


def test_a_text_of_a_study(ask: Callable[[str], str]) -> None:
    html = ask(
        """## One {{ verdict("1") }}
{{ value("2", "b") }} {{ value("2", "a") }} {{ published("1", "mean") }} {{ interval("1", "mean") }}
{{ param("runs.s-b.steps") }} {{ artifact("data/tables/s/s-one/t.parquet", "<t>") }}
{{ param("runs.s-a.width") }} {{ param("runs.s-b.width") }} {{ param("analysis.n") }} {{ param("scale") }}
{{ figure("fig") }}
{{ claims("2") }}
{{ table("t", columns=["y"], rows=2) }}
"""
    )
    assert "<a>−0.25</a> <a>not measured</a> <a>1</a> <a>0.25 to 0.75</a>" in html
    assert '<i title="params/s/runs.yaml: s-b.steps">2</i> <a href="p.html">&lt;t&gt;</a>' in html
    assert re.findall(r"<i title=[^>]+>(\w+)</i>", html) == ["2", "8", "16", "7", "quick"]
    assert 'title="params.yaml: scale"' in html
    assert "<figure>fig: Told. Verdicts: claim 1 holds; claim 2 contradicted in part.</figure>" in html
    assert "<table>a,b,c</table>" in html and "<table>t y 2/6 of 2</table>" in html
    rest = html[html.index('<h2 id="evidence">Evidence</h2>') :]
    assert '<details class="wide section"><summary><h3 id="also-measured">Also measured</h3>' in rest
    assert "<figure>other: Told. Verdicts: claim 1 holds.</figure>" in rest  # shown beside claim 1
    assert "<table>mean</table>" in rest and "theory" in rest
    assert "<figure>fig" not in rest and "a,b,c" not in rest
    assert [heading.text for heading in headings(html)] == ["One holds", "Evidence", "Also measured"]


@pytest.mark.parametrize(
    ("is_whole", "first", "folded"),
    [
        (True, "long", "The same figure at scale quick, as built here"),
        (False, "quick", "The figure at scale long, which lacks some of what this one shows"),
    ],
)
def test_a_figure_of_a_set_stands_first_unless_this_build_shows_more(
    ask: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, is_whole: bool, first: str, folded: str
) -> None:
    def load(study: Any, name: str, source: Any, kept: Any = None) -> Any:
        return SimpleNamespace(name=kept.scale if kept else "quick", alt=lambda claims: "Told.")

    monkeypatch.setattr(figures, "larger", lambda study, name, scale: SimpleNamespace(scale="long"))
    monkeypatch.setattr(figures, "shows_all", lambda study, name, kept: is_whole)
    monkeypatch.setattr(figures, "load", load)
    other = {"long": "quick", "quick": "long"}[first]
    page = ask("## One\n\n{{ figure('fig') }}")
    assert f"<figure>{first}</figure><details>{folded}: {other}</details>" in page


def test_a_figure_that_the_page_has_is_led_to_the_second_time(ask: Callable[[str], str]) -> None:
    html = ask("## One\n\n{{ figure('fig') }}\n\n## Two\n\n{{ figure('fig') }}\n\n{{ judged('1', '2') }}")
    assert html.count("<figure>fig") == 1 and html.index("<figure>fig") < html.index("<p>fig again</p>")
    assert "<p>1 holds, 2 contradicted in part</p>" in html


@pytest.mark.parametrize(("claim", "phrase"), [("1", "is"), ("2", "is not")])
def test_a_sentence_follows_the_verdict_of_a_whole_claim(ask: Callable[[str], str], claim: str, phrase: str) -> None:
    assert f"<p>It {phrase}.</p>" in ask(f"It {{{{ stands('{claim}', 'is', 'is not', 'may be') }}}}.")


@pytest.mark.parametrize(
    ("gate", "phrase", "number"),
    [
        ("'1', 'mean'", "is", "<a>0.5</a> (<a>0.25 to 0.75</a>)"),
        ("'2', 'b'", "may be", "<a>−0.25</a>"),
        ("'2', 'c'", "is not", "<a>1.5</a> (<a>0.25 to 2</a>)"),
        ("'2', 'a'", "may be", "(not measured at this scale)"),
        ("'2', 'at another scale'", "may be", "(not measured at this scale)"),
    ],
)
def test_a_sentence_follows_the_verdict_of_its_gate(
    ask: Callable[[str], str], gate: str, phrase: str, number: str
) -> None:
    html = ask(f"It {{{{ says({gate}, 'is', 'is not', 'may be') }}}}: {{{{ number({gate}) }}}}.")
    assert f"<p>It {phrase}: {number}.</p>" in html


def test_what_a_study_found_in_short_stands_on_the_index_too(ask: Callable[..., str]) -> None:
    words = "# One\n\n{% block finding %}\nIt is {{ number('1', 'mean') }}.\n{% endblock %}\n\nMore."
    said, drawn = "<p>It is <a>0.5</a> (<a>0.25 to 0.75</a>)", "<s>0.5, 0.25 to 0.75; published 1</s>"
    assert ask(words, finding=True).strip() == f"{said}{drawn}.</p>"
    assert f"{said}.</p>" in ask(words) and "<p>More.</p>" in ask(words)
    assert ask("# One\n\nMore.", finding=True) == ""
    with pytest.raises(SandglassError, match="nothing"):
        ask("{% block finding %}{{ nothing() }}{% endblock %}", finding=True)


def test_a_number_can_be_that_of_one_scale(ask: Callable[[str], str]) -> None:
    html = ask("It is {{ at('quick', '1', 'mean') }}, at paper {{ at('paper', '1', 'mean') }}.")
    assert "<p>It is <a>0.5</a> (<a>0.25 to 0.75</a>), at paper (not measured at this scale).</p>" in html


def test_an_undecided_gate_has_words_of_its_own(ask: Callable[[str], str]) -> None:
    assert "<p>(undecided at this scale)</p>" in ask("{{ says('2', 'b', 'x', 'y') }}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("{{ figure('nix') }}", "figure('nix'): no figure 'nix'; known: fig, other"),
        ("{{ claims('1', '99') }}", "claims('1', '99'): no claim '99'; known: 1, 2"),
        ("{{ value('9', 'a') }}", "value('9', 'a'): no claim '9'; known: 1, 2"),
        ("{{ value('2', 'nix') }}", "value('2', 'nix'): claim 2 has no gate 'nix'; known: 'a', 'b', 'c'"),
        ("{{ number('9', 'a') }}", "number('9', 'a'): no claim '9'; known: 1, 2"),
        ("{{ says('9', 'a', 'x', 'y') }}", "says('9', 'a', 'x', 'y'): no claim '9'; known: 1, 2"),
        ("{{ table('t', columns=['nix']) }}", "table('t', columns=['nix']): no column 'nix'; known: x, y"),
        ("{{ theory('nix') }}", "theory('nix'): no theory entry 'nix'; known: check"),
        ("{{ param('runs.s-a.nix') }}", "param('runs.s-a.nix'): no key 'nix'; known: steps, width"),
        ("{{ param('runs.r.steps') }}", "param('runs.r.steps'): no key 'r'; known: s-a, s-b"),
        ("{{ param('runs.s-b.steps.quick') }}", "param('runs.s-b.steps.quick'): runs.s-b.steps is a value, 2"),
        ("{{ artifact('nix', 'x') }}", "no artifact 'nix'; known: data/tables/s/s-one/t.parquet"),
        ("{{ verdict() }}", "verdict() missing 1 required positional argument"),
        ("a\n{{ nix }}", "'nix' is undefined"),
        ("a\n{{ nix", "line 2 "),
        ("```\n{{ figure('fig') }}\n```", "cannot stand in an address or a code block"),
    ],
)
def test_what_is_not_there_is_named(ask: Callable[[str], str], words: str, said: str) -> None:
    with pytest.raises(SandglassError) as refused:
        ask(words)
    assert str(refused.value).startswith("pipeline/studies/s/report.md.j2:") and said in str(refused.value)


# Words


def test_numbers_and_cells() -> None:
    assert wording.number(-0.123456) == "−0.1235"
    assert wording.number(None) == ""
    assert wording.interval(0.5, 1.0) == "0.5 to 1"
    assert wording.interval(None, 1.0) == ""
    assert wording.cell(list(range(13))).endswith("11 … (13)")
    assert wording.cell(True) == "yes"
    assert [wording.size(n) for n in (812, 17_300, 2_100_000)] == ["812 B", "17.3 kB", "2.1 MB"]


def test_docstrings_are_prose_with_names_as_code() -> None:
    html = wording.prose("``k`` <b> *not* [x](y)\n\nTwo.")
    assert html == "<p><code>k</code> &lt;b&gt; *not* [x](y)</p>\n<p>Two.</p>\n"


def test_sources_are_read_without_running_them(tmp_path: Path) -> None:
    file = tmp_path / "figures.py"
    file.write_text(
        '"""Doc."""\nimport nowhere\n\n\ndef f():\n    """What f draws."""\n\n\nFIGURES: dict = {"one": f}\n'
    )
    source = sources.defined(file, "f")
    assert source is not None and (source.name, source.line, source.doc) == ("f", 5, "What f draws.")
    assert source.text.startswith("def f") and sources.module_doc(file) == "Doc."
    assert sources.defined(file, "one") is None


def test_every_figure_and_table_names_the_function_that_makes_it(loaded: Params) -> None:
    for job in graph.jobs(loaded):
        if job.step in ("figures", "analyse"):
            entry = graph.entry(job, loaded)
            folder, names = ("figures", entry.figures) if job.step == "figures" else ("analysis", ["analyse"])
            module = Path("pipeline/studies") / job.study / folder / f"{entry.module}.py"
            for name in names:
                source = sources.defined(module, name)
                assert source is not None and source.doc, f"{module} has no documented {name}"


# Figures


def test_a_figure_is_an_image_and_a_script_with_the_same_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = Path("pipeline/studies/study/figures/charts.py")
    code.parent.mkdir(parents=True)
    code.write_text('def fig(context):\n    """What is drawn."""\n')
    data = pl.DataFrame({"x": [1, 2], "label": [NASTY, "b"]})
    chart = alt.Chart(data, description=NASTY).mark_point().encode(x="x", y="label")
    charts.save(chart, data, Path("data/figures/study/study-one"), "fig")
    study = results.Study(
        "study",
        "",
        "",
        {"fig": "study-one"},
        {},
        [],
        {"5": Line("5", "It is so.", "S", "undecided at this scale", "", "", "")},
        {},
        [],
        [],
    )
    figure, files = figures.load(study, "fig", sources.defined(code, "fig")), figures.files(study, "fig")
    assert (figure.caption, figure.description) == ("What is drawn.", NASTY)
    assert figure.alt(["5"]) == f"{NASTY} Verdicts: claim 5 undecided at this scale."
    assert files["figures/study/fig.svg"] == Path("data/figures/study/study-one/fig.svg").read_bytes()
    name, _, spec = files["figures/study/fig.js"].decode().partition(",")
    assert name == 'sandglass.chart("figures/study/fig"'
    saved = json.loads(Path("data/figures/study/study-one/fig.vl.json").read_text())
    drawn, columns = json.loads(f"[{spec.removesuffix(');' + chr(10))}]")
    ((key, rows),) = saved.pop("datasets").items()
    assert drawn == saved and len(files) == 3
    # Each label stands once: as columns, whose names and values in order say the rows.
    assert columns == {key: {name: [[row[name] for row in rows]] for name in ("label", "x")}}

    damaged = Path("data/figures/study/study-one/fig.vl.json")
    damaged.write_text(damaged.read_text()[:9])
    with pytest.raises(SandglassError, match=f"figure {damaged} is damaged"):
        figures.load(study, "fig", None)
    damaged.write_text(json.dumps(saved))

    # Of the sets at a larger scale that have the figure, that at the largest is shown.
    sets = [reference(name, scale) for name, scale in (("a", "smoke"), ("b", "paper"), ("c", "long"), ("d", "paper"))]
    study = dataclasses.replace(study, references=sets[:1])
    assert figures.larger(study, "fig", "quick") is None
    study = dataclasses.replace(study, references=[*sets[:3], dataclasses.replace(sets[3], files=[])])
    assert figures.larger(study, "fig", "quick") is None  # a copy of the figure that is here
    sets[1].files[2].write_text(files["figures/study/fig.svg"].decode() + "<!-- another -->")
    kept = figures.larger(study, "fig", "quick")
    assert kept is sets[1]
    # Of two of the same scale that of more models, if it shows all that the other does.
    study = dataclasses.replace(study, references=[sets[1], sets[3]])
    assert figures.larger(study, "fig", "quick") is sets[1]
    more = data.with_columns(model=pl.lit(0))
    pl.concat([more, more.with_columns(model=pl.lit(1))]).write_parquet(sets[3].files[1])
    assert figures.larger(study, "fig", "quick") is sets[3]
    more.with_columns(label=pl.lit("b"), model=pl.int_range(2)).write_parquet(sets[3].files[1])
    assert figures.larger(study, "fig", "quick") is sets[1]
    # A set at the largest scale that lacks what this build shows stands behind a smaller one that has it.
    study = dataclasses.replace(study, references=[sets[2], sets[3]])
    sets[2].files[2].write_text(files["figures/study/fig.svg"].decode() + "<!-- another -->")
    assert figures.larger(study, "fig", "quick") is sets[2]
    assert figures.larger(dataclasses.replace(study, references=sets[3:]), "fig", "quick") is sets[3]
    assert figures.shows_all(study, "fig", sets[2]) and not figures.shows_all(study, "fig", sets[3])
    # Measured numbers in labels tell nothing apart.
    for frame, file in ((more, sets[3].files[1]), (more, figures._path(study, "fig", "parquet"))):
        number = "0.25 (2 of 6)" if file is sets[3].files[1] else "0.5 (3 of 6)"
        frame.with_columns(label=pl.lit(f"a: {number}")).write_parquet(file)
    assert figures.shows_all(study, "fig", sets[3])
    shown = figures.load(study, "fig", None, kept)
    assert shown.reference is kept and shown.data == kept.files[1]
    assert figures.files(study, "fig", kept).keys() == {
        f"figures/study/b/fig.{end}" for end in ("parquet", "svg", "js")
    }


def reference(name: str, scale: str) -> reading.Reference:
    """A set that holds the figure of this build."""
    files = []
    for suffix in FIGURE_SUFFIXES:
        made = Path(f"data/figures/study/study-one/fig.{suffix}")
        files.append(Path(f"data/reference/{name}/figures/study-one") / made.name)
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_bytes(made.read_bytes())
    return reading.Reference(name, scale, {}, files, {})


def test_the_script_bundle_is_a_plain_script() -> None:
    script = charts.script_bundle()
    assert "window.vegaEmbed=" in script.replace(" ", "")
    assert not re.search(r"^\s*(import|export)\b", script, re.M)  # so that file:// may load it


def test_the_script_is_bundled_once_and_anew_where_it_is_spoilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = iter(["first", "second", "third"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(charts, "script_bundle", lambda: next(scripts))
    assert [site._vega(), site._vega()] == [b"first", b"first"]
    (kept,) = graph.STATE.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert [site._vega(), site._vega()] == [b"second", b"second"]
    monkeypatch.setattr(site, "version", lambda _: "another")
    assert site._vega() == b"third"


def test_what_was_pulled_is_validated_and_every_byte_of_what_was_built_is_checked(tmp_path: Path) -> None:
    frame, path = pl.DataFrame({"step": [1]}), tmp_path / "table.parquet"
    tables.store(frame, path)
    assert read_table(path, Curves, pulled=False).equals(frame)
    with pytest.raises(SandglassError, match="column 'Curves' breaks"):
        read_table(path, Curves, pulled=True)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"PAR1", b"PAR1\0", 1))
    for pulled in (True, False):
        with pytest.raises(SandglassError, match="truncated or damaged"):
            read_table(path, Curves, pulled=pulled)
    with pytest.raises(SandglassError, match="missing"):
        read_table(tmp_path / "other.parquet", Curves, pulled=False)


def test_a_picture_is_drawn_from_the_specification(tmp_path: Path) -> None:
    data = pl.DataFrame({"x": [1, 2]})
    charts.save(alt.Chart(data).mark_point().encode(x="x"), data, tmp_path, "fig")
    figures.picture(tmp_path / "fig.vl.json", tmp_path / "fig.png")
    with Image.open(tmp_path / "fig.png") as image:
        size = re.search(r'width="([0-9.]+)"', (tmp_path / "fig.svg").read_text())
        assert size is not None and abs(image.width - charts.PNG_SCALE * float(size[1])) <= 2
    for name, reason in (("fig.svg", "Expecting value"), ("nix", "No such file")):
        with pytest.raises(SandglassError, match=f"{name} is no specification of a figure: .*{reason}"):
            figures.picture(tmp_path / name, tmp_path / "other.png")
    with pytest.raises(SandglassError, match="cannot be written: No such file"):
        figures.picture(tmp_path / "fig.vl.json", tmp_path / "nix" / "fig.png")


# Graph


def test_every_output_has_exactly_one_page(loaded: Params) -> None:
    known = catalogue.artifacts(loaded)
    paths = [path for artifact in known for path in artifact.paths]
    made = [path for job in graph.jobs(loaded) if job.step != "report" for path in graph.outputs(job, loaded)]
    assert sorted(paths) == sorted(made)
    assert len({artifact.page for artifact in known}) == len(known)
    assert all(re.fullmatch(r"artifact/[a-z0-9_-]+\.html", artifact.page) for artifact in known)


def test_lineage_draws_all_ancestors_and_descendants(loaded: Params) -> None:
    lineage = Lineage(loaded)
    study = next(iter(loaded.studies))
    own = [job for job in graph.jobs(loaded) if job.study == study]
    for job in own:
        drawn = lineage.draw(job)
        shown = [node.job for node in drawn.nodes]
        assert [node.job for node in drawn.nodes if node.own] == [job]
        assert len(shown) == len(set(shown))
        inside = [parent for each in shown for parent in graph.parents(each, loaded) if parent in shown]
        assert len(drawn.edges) == len(inside)
        for node in drawn.nodes:
            assert 0 <= node.x <= drawn.width - node.width and 0 <= node.y <= drawn.height
        assert {*graph.parents(job, loaded)} <= {*shown} and {*lineage.children[job]} <= {*shown}
    claims = graph.job("claims", study, loaded)
    assert {node.job for node in lineage.draw(claims).nodes} == {
        job for job in own if job.step != "figures" and _leads_to(job, claims, lineage)
    } | {claims}
    train = next(job for job in own if job.step == "train")
    steps = [node.job.step for node in lineage.draw(train).nodes]
    assert steps == sorted(steps, key=graph.STEPS.index) and {"dataset", "train", "analyse", "claims"} <= {*steps}
    other = next(job for job in own if job.step == "train" and job not in lineage.children[train] and job != train)
    assert other not in [node.job for node in lineage.draw(train).nodes]


def _leads_to(job: graph.Job, target: graph.Job, lineage: Lineage) -> bool:
    return any(child == target or _leads_to(child, target, lineage) for child in lineage.children[job])


def test_the_build_is_named_by_code_and_parameters_and_nothing_else(loaded: Params) -> None:
    before = identity(loaded, Files())
    assert re.fullmatch("[0-9a-f]{32}", before) and before == identity(loaded, Files())

    def changed(**values: object) -> Params:
        main = loaded.raw[params.FILE] | values
        return dataclasses.replace(loaded, raw=loaded.raw | {params.FILE: main}, memo={})

    assert identity(changed(device="cuda"), Files()) == before
    assert identity(changed(seed=1), Files()) != before
    files = Files()
    files.md5(Path("pipeline/kit/stats.py"))
    files._known[Path("pipeline/kit/stats.py")] = ("0" * 32, 0)
    assert identity(loaded, files) != before


def test_members_of_a_run_share_its_page(loaded: Params) -> None:
    known = catalogue.by_path(catalogue.artifacts(loaded))
    for section, kind in (("datasets", ".parquet"), ("runs", ".safetensors")):
        for member in loaded.members(section):
            owner = loaded.owner(section, member)
            artifact = next(each for each in known.values() if each.job.id == owner.id and member in each.members)
            path = artifact.members[member]
            assert path.suffix == kind and artifact.label(path) == member
            several = len(owner.members) > 1
            assert artifact.place(path) == artifact.page + (f"#member-{member}" if several else "")


# Imports


def test_imports_of_the_report_run_one_way() -> None:
    """Also those that are there for types alone."""
    imports: dict[str, set[str]] = {}
    for file in sorted(Path("pipeline/report").glob("*.py")):
        names = imports[file.stem] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipeline."):
                _, room, *rest = node.module.split(".")  # type: ignore[union-attr]
                if room == "report":
                    names |= {*rest} or {alias.name for alias in node.names}
                else:
                    assert room in {"errors", "engine", "kit", "params", "references", "store"}, (file, node.module)
    order = list(graphlib.TopologicalSorter(imports).static_order())  # raises where there is a cycle
    assert order[-1] == "site"


# Colours

_CSS = (ROOT / "pipeline/report/style.css").read_text()
_PAIRS = [
    *((ink, paper) for ink in ("ink", "faint", "link", "good", "half", "bad", "none") for paper in ("paper", "soft")),
    *((f"{ink}", f"{ink}-soft") for ink in ("good", "half", "bad", "none")),
    ("paper", "ink"),
    ("ink", "half-soft"),
    ("faint", "half-soft"),
    ("link", "half-soft"),
]


def _luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: str, second: str) -> float:
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_contrast(mode: int) -> None:
    named = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", _CSS)
    colours = {name: both[mode] for name, *both in named}
    for ink, paper in _PAIRS:
        assert _contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    for line in ("edge", "link"):  # borders of buttons, outlines of the focus
        for paper in ("paper", "soft"):
            assert _contrast(colours[line], colours[paper]) >= 3, (line, paper)
    used = set(re.findall(r"[^-]color: var\(--([a-z-]+)\)", _CSS))
    assert used <= {ink for ink, _ in _PAIRS} | {"edge"}


def test_every_column_is_described() -> None:
    models = [Claims, Curves, Theory]
    for study in load_all().studies:
        datasets = importlib.import_module(f"schemas.{study}.datasets").SCHEMA
        models += datasets.values() if isinstance(datasets, dict) else [datasets]
        models += importlib.import_module(f"schemas.{study}.tables").SCHEMAS.values()
    rows = [(model.__name__, row) for model in models for row in cards.columns(model)[0]]
    bare = {f"{model}.{row['name']}" for model, row in rows if not row["description"]}
    assert bare == set()


def test_a_curve_is_the_median_and_the_range_of_its_replicas() -> None:
    rows = [(0, 10, 1.0), (1, 10, 4.0), (2, 10, 2.0), (0, 20, 0.5), (1, 20, 0.25), (2, 20, 0.25), (0, 30, None)]
    frame = pl.DataFrame(rows, schema=["replica", "step", "loss"], orient="row")
    curve = curves.draw(frame)
    assert curve is not None
    assert (curve.first, curve.last, curve.low, curve.high, curve.replicas) == (10, 20, 0.25, 4.0, 3)
    assert (
        curve.line == "0.0,30.0 360.0,120.0"
    )  # 2 lies a quarter of the way from 4 down to 0.25, on a logarithmic scale
    assert curve.band == "0.0,0.0 360.0,90.0 360.0,120.0 0.0,60.0"
    assert "between 0.25 and 4" in curve.words and "3 replicas" in curve.words
    assert curves.draw(frame.filter(step=10)) is None


def test_what_a_page_says_exports_its_table() -> None:
    """The words after ``export`` name a table of the study, and the experiment that makes it."""
    loaded = params.load()
    for artifact in catalogue.artifacts(loaded):
        if artifact.download:
            study, name, *rest = artifact.exported.split()
            assert name in access.list_tables(study)
            made = access._of_experiment(study, name, rest[1], loaded) if rest else [artifact.paths[0]]
            assert made == [artifact.paths[0]] and (rest or name in ("claims", "theory"))
