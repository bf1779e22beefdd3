"""Whatever stands in params.yaml or in a study's file: a graph that makes sense, or one line that names the place."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from workspace import load_study, write_study

from pipeline import params
from pipeline.engine import graph, stages
from pipeline.errors import SandglassError
from pipeline.params.scales import SCALES
from pipeline.studies.dyck import names

ROOT = Path(__file__).parents[2]
MAIN, RUNS = "params.yaml", params.study_file("dyck", "runs")
TEXT = (ROOT / RUNS).read_text(encoding="utf-8")
DYCK = {file: YAML(typ="safe").load((ROOT / file).read_text(encoding="utf-8")) for file in params.study_files("dyck")}
FILES = {MAIN: load_study("dyck").raw[MAIN]} | DYCK  # what each file says
MAX_LINE = 700

fuzz = settings(
    derandomize=True, database=None, deadline=None, max_examples=80, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the files are written."""
    with all_renamed():
        yield tmp_path_factory.mktemp("params")


@contextmanager
def all_renamed() -> Iterator[None]:
    """No id must be there for the code's sake: any other could then not be renamed."""
    with pytest.MonkeyPatch.context() as patch:
        for constant in ("RUNS", "DATASETS", "THEORY"):
            patch.setattr(names, constant, ())
        patch.setattr(params, "_build", _build)
        yield


build = params._build
BUILT: dict[str, params.Params] = {}  # by scale, what was loaded last: every load builds them all


def _build(*args: Any) -> params.Params:
    loaded = build(*args)
    BUILT[loaded.scale] = loaded
    return loaded


@functools.cache
def is_code(path: Path) -> bool:
    return (ROOT / path).is_file()


def judge(folder: Path, contents: dict[str, bytes]) -> params.Params | None:
    """What the files give, some of them with these contents; None if that was refused as it should be."""
    write_study(folder, "dyck")
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    try:
        loaded = params.load(folder)
    except SandglassError as error:
        assert_one_line_that_names_the_place(str(error))
        return None
    assert set(BUILT) == {*SCALES} and loaded is BUILT[loaded.scale]
    for scale in SCALES:
        assert_a_graph(BUILT[scale])
    return loaded


def assert_one_line_that_names_the_place(text: str) -> None:
    assert text.isprintable(), repr(text)
    assert len(text) <= MAX_LINE
    line = r"( line \d+)?: (not valid YAML: .|line \d+: |cannot be read: .|expected a mapping at the top)"
    # An id that is refused may hold colons; what is missing from a section stands nowhere in it.
    place = r": (.+?: .|expected a mapping of at least one id)"
    assert re.match(rf"params(/dyck/[a-z]+)?\.yaml({line}|{place})", text), text


SECTION = {
    "dataset": "datasets",
    "train": "runs",
    "theory": "theory",
    "analyse": "experiments",
    "figures": "experiments",
}


def assert_a_graph(loaded: params.Params) -> None:
    jobs = list(graph.jobs(loaded))
    outputs = [path for job in jobs for path in graph.outputs(job, loaded)]
    assert len(set(outputs)) == len(outputs)
    assert len({job.stage for job in jobs}) == len({job.name for job in jobs}) == len(jobs)
    for path in outputs:
        assert path.parts[0] == "data"
        assert re.fullmatch(r"[a-z0-9][a-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)+", str(path)), path
        assert len(path.name) < 200
    for job in jobs:
        json.loads(job.tracked_text(loaded), parse_constant=pytest.fail)
        if job.step != "report":
            assert set(graph.data(job, loaded)) <= set(outputs)
            assert [path for path in graph.code(job, loaded) if not is_code(path)] == []
            # DVC names files by the file as it stands, without resolving scales.
            fields = (name for name in params.NAMES if hasattr(graph.entry(job, loaded), name))
            for name in fields:
                raw = loaded.value(f"{params.study_file('dyck', SECTION[job.step])}:{job.id}.{name}")
                assert raw == getattr(graph.entry(job, loaded), name)
    stated = YAML(typ="safe").load(stages.texts(loaded)[stages.DVC_FILE])["stages"]
    assert {job.stage: job.command for job in jobs} == {name: stage["cmd"] for name, stage in stated.items()}


IDS = sorted({*load_study("dyck").runs, *load_study("dyck").members("runs"), *load_study("dyck").experiments})


class Content(bytes):
    """A file; ``note`` says how it differs from the real one."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


# Trees: parts of the real one are removed, renamed, replaced, repeated and moved.

NASTY = [
    "",
    " ",
    ".",
    "..",
    "../../etc/passwd",
    "/tmp/x",
    "a/b",
    "a.b",
    "A",
    "-a",
    "a-",
    "a b",
    "ünï",
    "日本",
    "null",
    "a\nb",
    "\t",
    "\x7f",
    "\u2028",
    "\ud800",
    "${item.study}",
    "{study}",
    "%s",
    "*",
    "a" * 300,
    "🧨" * 50,
    "smoke",
    "dyck",
    "dyck-standard",
    "dyck-train-complete",
    "transformer",
    "next_token",
    "__init__",
    "con",
    "report",
    "all",
]
NUMBERS = [0, 1, -1, 2**31, 2**62, 2**63, -(2**70), 10**400, 0.0, -0.5, 0.5, 1e-320, 1e308]
NUMBERS += [float("inf"), -float("inf"), float("nan")]
WHOLE = [None, True, False, [], {}, [[]], [None], {"": None}, {"smoke": 1}, {"smoke": 1, "quick": 2, "paper": 3}]
values = st.one_of(*map(st.sampled_from, (NASTY, NUMBERS, WHOLE)), st.text(max_size=8))


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value below the top."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [place for key, child in items for place in ((*path, key), *places(child, (*path, key)))]


PLACES = {file: places(tree) for file, tree in FILES.items()}


@st.composite
def trees(draw: st.DrawFn) -> dict[str, bytes]:
    # The more a file says, the more of it is edited.
    file = draw(st.sampled_from([file for file in DYCK for _ in range(1 + len(PLACES[file]) // 100)] + [MAIN]))
    files = copy.deepcopy(FILES)
    for _ in range(draw(st.integers(1, 2))):
        mutate(draw, file, files)
    # JSON is YAML, up to the names of three numbers.
    texts = {name: json.dumps(tree) for name, tree in files.items() if tree != FILES[name]}
    return {
        name: Content(text.replace("NaN", ".nan").replace("Infinity", ".inf").encode()) for name, text in texts.items()
    }


def mutate(draw: st.DrawFn, file: str, files: dict[str, dict[str, Any]]) -> None:
    path = draw(st.sampled_from(PLACES[file]))
    owner: Any = files[file]
    try:
        for key in path[:-1]:
            owner = owner[key]
        old = owner[path[-1]]
    except (LookupError, TypeError):  # the first mutation has taken it away
        return
    key = path[-1]
    kind = draw(
        st.sampled_from(
            ["delete", "rename", "set", "set", "number", "nudge", "nudge", "wrap", "scale", "move", "deep", "id"]
        )
    )
    note(f"{kind} {path}")
    if kind == "delete":
        del owner[key]
    elif kind == "rename" and isinstance(owner, dict):
        owner[draw(st.sampled_from(NASTY))] = owner.pop(key)
    elif kind == "set":
        owner[key] = draw(values)
    elif kind == "number":
        owner[key] = draw(st.sampled_from(NUMBERS))
    elif kind == "nudge":  # the edit that a user makes, and the one that is often right
        if isinstance(old, int | float) and not isinstance(old, bool):
            owner[key] = old + draw(st.sampled_from([1, 2, -1]))
    elif kind == "wrap":
        owner[key] = [old, old]
    elif kind == "scale":
        owner[key] = {scale: copy.deepcopy(old) for scale in SCALES}
    elif kind == "move":
        owner[key] = copy.deepcopy(draw(st.sampled_from([*files.values(), *files[file].values()])))
    elif kind == "deep":
        for _ in range(draw(st.sampled_from([3, 30, 300]))):
            owner[key] = [owner[key]]
    elif kind == "id":
        old, new = draw(st.sampled_from(IDS)), draw(st.sampled_from(NASTY))
        for tree in files.values():
            rename_everywhere(tree, old, new)


def rename_everywhere(tree: Any, old: str, new: str) -> None:
    """An id as a user renames it, in every place: nothing but the id itself can be wrong then."""
    if isinstance(tree, dict):
        if old in tree:
            tree[new] = tree.pop(old)
        for key, child in tree.items():
            tree[key] = new if child == old else child
            rename_everywhere(child, old, new)
    elif isinstance(tree, list):
        tree[:] = [new if child == old else child for child in tree]
        for child in tree:
            rename_everywhere(child, old, new)


@pytest.mark.slow
def test_any_tree_is_a_graph_or_one_line(folder: Path) -> None:
    refusals: list[bool] = []

    @fuzz
    @given(spoiled=trees())
    def run(spoiled: dict[str, bytes]) -> None:
        refusals.append(judge(folder, spoiled) is not None)

    run()
    assert 0.05 < sum(refusals) / len(refusals) < 0.95, sum(refusals)  # else it would test one end only


# Text: the real file is cut, spoiled and stuffed.

STUFF = [
    b"---\n",
    b"...\n",
    b"=",
    b"seed: 1\n",
    b"%YAML 9.9\n",
    b"\xff\xfe",
    b"\x00",
    b"\x1b[31m",
    b"\r",
    b"\t",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"<<: *nothing\n",
    b"<<: 3\n",
    b"<<: [1, 2]\n",
    b"&a",
    b"*a",
    b"[",
    b"]",
    b"{",
    b"}",
    b": ",
    b"- ",
    b"? ",
    b"|\n",
    b"'",
    b'"',
    b"!!python/object:os.system x",
    b"!!binary x",
    b"!!timestamp 2024-13-45",
    b"!!set {a}",
    b"!!omap [a]",
    b"!!int x",
    b"!!float x",
    b"!!bool x",
    b"!!null x",
    b"2024-01-01",
    b"0o9",
    b"1_0",
    b"12:30:45",
    b".inf",
    b"~",
]


@st.composite
def texts(draw: st.DrawFn) -> Content:
    content = TEXT.encode()
    for _ in range(draw(st.integers(1, 3))):
        lines = content.splitlines(keepends=True)
        place, row = draw(st.integers(0, len(content))), draw(st.integers(0, max(len(lines) - 1, 0)))
        kind = draw(st.sampled_from(["insert", "insert", "value", "cut", "flip", "drop", "repeat", "indent", "swap"]))
        if kind == "insert":
            content = content[:place] + draw(st.sampled_from(STUFF)) + content[place:]
        elif kind == "value" and lines and b": " in lines[row]:
            lines[row] = lines[row].split(b": ")[0] + b": " + draw(st.sampled_from(STUFF)) + b"\n"
            content = b"".join(lines)
        elif kind == "cut":
            content = content[:place]
        elif kind == "flip" and place < len(content):
            content = content[:place] + bytes([content[place] ^ draw(st.integers(1, 255))]) + content[place + 1 :]
        elif kind in ("drop", "repeat", "indent", "swap") and lines:
            other = draw(st.integers(0, len(lines) - 1))
            new = {"drop": [], "repeat": [lines[row]] * 2, "indent": [b" " + lines[row]], "swap": [lines[other]]}
            content = b"".join([*lines[:row], *new[kind], *lines[row + 1 :]])
        note(f"{kind} at {place}, line {row}")
    return Content(content)


LAUGHS = b"a0: &a0 [1]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 30)
)


@pytest.mark.slow
@fuzz
@given(content=texts())
@example(content=b"")
@example(content=b"[" * 100_000)
@example(content=b"- " * 100_000)
@example(content=b"runs: " + b"{a: " * 60_000 + b"1" + b"}" * 60_000)
@example(content=LAUGHS)
@example(content=b"runs: &r {a: *r}\n")
@example(content=b"runs: &r\n  a: *r\n" + TEXT.replace("shared:", "sharde:", 1).encode())
@example(content=TEXT.encode("utf-16"))
@example(content=b"? [1, 2]\n: 3\n")
@example(content=b"seed: 1\n" * 2)
@example(content=b"seed: " + b"9" * 5000)
def test_any_text_is_a_graph_or_one_line(folder: Path, content: bytes) -> None:
    judge(folder, {RUNS: content})
