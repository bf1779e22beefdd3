"""params.yaml: what is wrong is refused in one line that names the path; nothing is converted or defaulted."""

from __future__ import annotations

import copy
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import jsonschema
import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML
from workspace import STUDIES, load_study, write_study

from pipeline import params
from pipeline.audit import specification
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import WITH_VARIANTS, reading, schema
from pipeline.params.entries import Header
from pipeline.params.scales import SCALES, resolve
from schemas import results

ROOT = Path(__file__).parents[2]


DYCK = params.study_file("dyck", "title")
RUNS = params.study_file("dyck", "runs")
RUN = "runs/dyck-standard"
VARIANT = "dyck-standard.variants.dyck-standard"  # the first of this run's members
ENTRY = f"{RUNS}: dyck-standard"  # where what the run says for all of them is refused
MAIN = ("scale", "seed", "device", "studies", "seeed")  # keys of params.yaml; all others are of the study's files


def raw(path: str) -> tuple[str, dict]:
    """The file in which ``path`` stands, and what all of the study says, all that is shared written out."""
    read, section = load_study("dyck").raw, path.split("/")[0]
    if section in MAIN:
        return "params.yaml", copy.deepcopy(read["params.yaml"])
    tree = {name: read[params.study_file("dyck", name)] for name in params.SECTIONS} | read[DYCK]
    return params.study_file("dyck", section) if section in tree else DYCK, copy.deepcopy(tree)


def by_file(tree: dict) -> dict[str, dict]:
    """What each file of the study says, of all that they say."""
    files = {params.study_file("dyck", name): tree[name] for name in params.SECTIONS if name in tree}
    return files | {DYCK: {key: value for key, value in tree.items() if key not in params.SECTIONS}}


def load(tmp_path: Path, file: str, tree: dict | str) -> params.Params:
    write_study(tmp_path, "dyck")
    texts = {file: tree} if isinstance(tree, str) else {}
    if isinstance(tree, dict):
        for section in WITH_VARIANTS:
            _drop_unread(tree.get(section))
        files = {file: tree} if file == "params.yaml" else by_file(tree)
        texts = {name: specification._yaml(said) for name, said in files.items()}
        for name in {*params.study_files("dyck")} - {*texts} if file != "params.yaml" else ():
            (tmp_path / name).unlink()
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return params.load(tmp_path)


def _drop_unread(entries: object) -> None:
    """Drop what each variant of an entry says itself: what is shared may say it for other entries."""
    for entry in entries.values() if isinstance(entries, dict) else ():
        variants = entry.get("variants") if isinstance(entry, dict) else None
        if isinstance(variants, dict) and variants and all(isinstance(own, dict) for own in variants.values()):
            for name in [name for name in entry if all(name in own for own in variants.values())]:
                del entry[name]


def put(tree: dict, path: str, value: object) -> None:
    *parents, last = path.split("/")
    for key in parents:
        tree = tree[key]
    tree[last] = value


@pytest.mark.parametrize("study", STUDIES)
def test_the_files_are_valid_at_every_scale(study: str) -> None:
    for scale in SCALES:
        assert load_study(study, scale).scale == scale
    assert params.load(ROOT).studies.keys() == set(STUDIES)


def test_parameters_and_tables_know_the_same_scales() -> None:
    """A scale that tables refuse costs a whole build: they are named in both, since neither may import the other."""
    assert [*SCALES] == results.SCALES == [*get_args(Header.model_fields["scale"].annotation)]


def test_long_is_quick_where_nothing_is_said_of_it() -> None:
    assert resolve([{"smoke": 1, "quick": {"a": 2}, "paper": 3}], "long") == [{"a": 2}]
    assert resolve({"smoke": 1, "quick": 2, "long": 4, "paper": 3}, "long") == 4
    with pytest.raises(KeyError, match="quick"):
        resolve({"smoke": 1, "long": 4, "paper": 3}, "long")


def test_values_are_those_of_the_scale() -> None:
    for scale, replicas in (("smoke", 2), ("quick", 10), ("long", 40), ("paper", 40)):
        assert load_study("dyck", scale).members("runs")["dyck-standard"].replicas == replicas


# path -> new value, and what the line must say
MUTATIONS = [
    ("seeed", 3, ["seeed: unknown key", "did you mean 'seed'"]),
    ("scale", "papr", ["scale:", "'smoke', 'quick', 'long' or 'paper'", "'papr'"]),
    ("seed", -1, ["seed:", "greater than or equal to 0", "-1"]),
    ("seed", "7", ["seed:", "valid integer", "'7'"]),
    ("device", "gpu", ["device:", "'cpu'"]),
    ("studies", [], ["studies:", "at least 1 item"]),
    ("studies", ["dyck", "dyck"], ["studies: lists a study twice"]),
    ("studies", ["dykc"], ["studies: there is no package pipeline/studies/dykc", "did you mean 'dyck'"]),
    ("studies", ["depth"], ["studies: there is no file params/depth/study.yaml"]),
    ("studdies", {}, ["studdies: unknown key", "valid: title, source, analysis, claims"]),
    ("datasets", [], ["expected a mapping at the top, got list"]),
    (f"{RUN}/widht", 50, [f"{ENTRY}.widht: unknown key", "did you mean 'width'"]),
    (f"{RUN}/lr", "fast", [f"{ENTRY}.lr:", "valid number", "'fast'"]),
    (f"{RUN}/lr", -0.1, [f"{ENTRY}.lr:", "greater than 0", "-0.1"]),
    (f"{RUN}/heads", 3, [f"{VARIANT}:", "multiple of heads"]),
    (f"{RUN}/block", "gtp", [f"{ENTRY}.block:", "'gpt', 'resln', 'stripped', 'no_skip' or 'eq6'"]),
    (f"{RUN}/study", "dyck", ["dyck-standard.study: is 'dyck' for all", "leave it out"]),
    (
        f"{RUN}/model",
        "transformer/decodr",
        ["dyck-standard.model: there is no module", "did you mean 'transformer/decoder'"],
    ),
    (f"{RUN}/model", "transformer", [f"{ENTRY}.model:", "match pattern"]),
    (
        f"{RUN}/dataset",
        "dyck-train-complet",
        [f"{ENTRY}.dataset: no such dataset", "did you mean 'dyck-train-complete'"],
    ),
    (
        f"{RUN}/steps",
        {"smoke": 1, "quik": 2, "paper": 3},
        ["steps: expected exactly the keys smoke, quick, paper", "did you mean 'quick'"],
    ),
    (
        f"{RUN}/steps",
        {"smoke": 1, "long": 2, "paper": 3},
        ["steps: expected exactly the keys smoke, quick, paper and, where it differs, long", "got smoke, long, paper"],
    ),
    # An impossible value at a scale that is not in use is found all the same.
    (f"{RUN}/steps", {"smoke": 1, "quick": 2, "paper": 0}, [f"{ENTRY}.steps:", "greater than or equal to 1"]),
    (f"{RUN}/variants", {}, ["dyck-standard.variants: expected a mapping of at least one id"]),
    (f"{RUN}/variants", ["dyck-standard"], ["dyck-standard.variants: expected a mapping"]),
    (f"{RUN}/variants/dyck-standard", 3, [f"{VARIANT}: expected a mapping, got 3"]),
    (f"{RUN}/variants/dyck-standard", {"widht": 50}, [f"{VARIANT}.widht: unknown key"]),
    (
        f"{RUN}/variants/dyck-standard",
        {"model": "transformer/theory"},
        [f"{VARIANT}.model: is the same for all variants of runs.dyck-standard"],
    ),
    (f"{RUN}/variants/standard", {}, ["ids of this study begin with 'dyck-'"]),
    (f"{RUN}/variants/dyck-minimal", {}, ["'dyck-minimal' is a variant of dyck-"]),
    (f"{RUN}/variants/Dyck", {}, ["variants.Dyck (the id):", "match pattern"]),
    (
        "runs/dyck-table1/variants",
        {"dyck-table1-k2-d4-l2": {}},
        ["'dyck-table1-k2-d4-l3' is missing, which pipeline/studies/dyck/ names"],
    ),
    ("datasets/dyck-train-complete/q", 1.5, ["dyck-train-complete.q:", "less than 1", "1.5"]),
    ("datasets/dyck-train-complete/min_length", 3, ["dyck-train-complete.min_length: unknown key"]),
    ("datasets/dyck-train-complete/grammars", [], ["dyck-train-complete.grammars:", "at least 1 item"]),
    (
        "datasets/dyck-train-complete/grammars",
        [{"k": 2, "depth": 4, "dept": 4}],
        ["dyck-train-complete.grammars.0.dept", "unknown key", "'depth'"],
    ),
    (
        "datasets/dyck-train-complete/grammars",
        [{"k": 2, "depth": 4}] * 2,
        ["dyck-train-complete:", "lists a grammar twice"],
    ),
    (
        "datasets/dyck-train-complete/sampler",
        "whole",
        ["dyck-train-complete.sampler: expected one of 'complete', 'prefix', 'nested', got 'whole'"],
    ),
    (
        "datasets/dyck-train-complete/sampler",
        {"a": ["much"] * 500},
        ["dyck-train-complete.sampler: expected one of 'complete'", "got {'a': ['much', 'much'", "…"],
    ),
    (
        "datasets/dyck-evaluation/variants/dyck-length-generalisation/min_length",
        600,
        ["dyck-evaluation.variants.dyck-length-generalisation:", "exceed"],
    ),
    ("theory/dyck-sampler/module", "smapler", ["dyck-sampler", "'sampler'"]),
    (
        "experiments/dyck-balance/runs",
        ["dyck-balanse"],
        ["dyck-balance.runs: no such entry of runs", "did you mean 'dyck-balance'"],
    ),
    (
        "experiments/dyck-balance/runs",
        {"smoke": ["dyck-balance"], "quick": ["dyck-balance"], "paper": ["dyck-balance"]},
        ["dyck-balance.runs: must be the same at every scale"],
    ),
    (
        "experiments/dyck-balance/theory",
        ["dyck-nothing"],
        ["dyck-balance.theory: no such entry of theory: 'dyck-nothing'"],
    ),
    (
        "experiments/dyck-balance/beside",
        ["dyck-balance"],
        ["dyck-balance.beside: 'dyck-balance' is not another experiment with tables"],
    ),
    ("experiments/dyck-balance/module", "balanse", ["dyck-balance", "balanse"]),
    ("experiments/dyck-balance/figures", ["fig3", "fig3"], ["dyck-balance", "lists a name twice"]),
    ("experiments/dyck-balance/figures", ["fig1"], ["'fig1' is a figure of dyck-attention already"]),
    ("analysis/stored_maps", True, ["analysis.stored_maps:", "valid integer"]),
    ("analysis/confidnce", 1, ["analysis.confidnce: unknown key", "'confidence'"]),
    ("runs/Dyck_Standard", {}, ["Dyck_Standard (the id):", "match pattern"]),
    ("runs/dyck.standard", {}, ["dyck.standard (the id):", "match pattern"]),
    ("runs/depth-standard", {}, ["depth-standard: ids of this study begin with 'dyck-'"]),
]


@pytest.mark.parametrize(("path", "value", "expected"), MUTATIONS, ids=[f"{m[0]}={m[1]}" for m in MUTATIONS])
def test_a_wrong_value_is_one_line_that_names_it(tmp_path: Path, path: str, value: object, expected: list[str]) -> None:
    file, tree = raw(path)
    put(tree, path, value)
    with pytest.raises(SandglassError) as error:
        load(tmp_path, file, tree)
    text = str(error.value)
    assert text.startswith(f"{file}: ")
    assert "\n" not in text
    for part in expected:
        assert part in text, text


def test_a_misspelt_key_is_named_and_not_that_the_right_one_is_missing(tmp_path: Path) -> None:
    file, tree = raw(RUN)
    entry = tree["runs"]["dyck-standard"]
    entry["schedul"] = entry.pop("schedule")
    with pytest.raises(SandglassError, match=r"\.schedul: unknown key \(did you mean 'schedule'\?\)"):
        load(tmp_path, file, tree)


def test_a_run_may_use_any_number_of_datasets(tmp_path: Path) -> None:
    """It depends on those that its variants use, and on no other."""
    file, tree = raw(RUN)
    members = list(tree["datasets"]["dyck-evaluation"]["variants"])
    used = members[:6]
    many = {f"dyck-many-{place}": {"dataset": name} for place, name in enumerate(used)}
    tree["runs"]["dyck-many"] = tree["runs"]["dyck-standard"] | {"variants": many}
    loaded = load(tmp_path, file, tree)
    job = next(job for job in graph.jobs(loaded) if job.id == "dyck-many")
    folder = Path("data/datasets/dyck/dyck-evaluation")
    assert graph.data(job, loaded) == graph.inputs(job, loaded) == [folder / f"{name}.parquet" for name in used]


@pytest.mark.parametrize("path", ["seed", "studies", "runs/dyck-standard/lr", "claims", "experiments", "title"])
def test_a_missing_value_is_named(tmp_path: Path, path: str) -> None:
    file, tree = raw(path)
    *parents, last = path.split("/")
    owner = tree
    for key in parents:
        owner = owner[key]
    del owner[last]
    with pytest.raises(SandglassError, match=r"missing|expected|there is no file"):
        load(tmp_path, file, tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a mapping"),
        ("- 1\n", "expected a mapping"),
        ("scale: [quick\n", "line 2: not valid YAML"),
        ("scale: quick\nscale: paper\n", "not valid YAML"),
        ("\x00", "not valid YAML"),
        ("scale: !!python/object:os.system x\n", "not valid YAML"),
    ],
)
@pytest.mark.parametrize("file", ["params.yaml", DYCK, RUNS])
def test_what_is_not_yaml_is_one_line(tmp_path: Path, text: str, expected: str, file: str) -> None:
    with pytest.raises(SandglassError) as error:
        load(tmp_path, file, text)
    assert str(error.value).startswith(f"{file}: ") and expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SandglassError, match=r"^params\.yaml: there is no such file in .* a clone"):
        params.load(tmp_path)


def models(module: str) -> list[type[BaseModel]]:
    members = vars(importlib.import_module(module)).values()
    return [m for m in members if isinstance(m, type) and issubclass(m, params.Strict)]


MODULES = ["pipeline.params.entries", *(f"pipeline.studies.{study}.params" for study in STUDIES)]


@pytest.mark.parametrize("module", MODULES)
def test_no_parameter_has_a_default(module: str) -> None:
    """Else a change of the default would change results that no tracked parameter explains.

    What is absent where it would mean nothing (no contrastive term, no prefix of it) is None, and a validator says
    when it must be there.
    """
    for model in models(module):
        for name, field in model.model_fields.items():
            assert field.is_required() or field.default is None, f"{model.__name__}.{name}"


@pytest.mark.parametrize("study", STUDIES)
def test_validation_changes_nothing(study: str) -> None:
    loaded = load_study(study)
    file = {section: loaded.raw[params.study_file(study, section)] for section in params.SECTIONS}
    for section in ("datasets", "runs"):
        for key, group in getattr(loaded, section).items():
            base = {name: value for name, value in file[section][key].items() if name != "variants"}
            for member, own in file[section][key].get("variants", {key: {}}).items():
                expected = resolve(base | own, loaded.scale) | {"study": study}
                stated = {
                    name: value for name, value in expected.items() if value is not None
                }  # null takes a value away
                assert group.members[member].model_dump(exclude_none=True) == stated
    for section in ("theory", "experiments"):
        for key, entry in getattr(loaded, section).items():
            expected = resolve(file[section][key], loaded.scale) | {"study": study}
            stated = {name: value for name, value in expected.items() if value is not None}
            assert entry.model_dump(exclude_none=True) == stated


def test_reading_parameters_is_light() -> None:
    code = (
        "import sys; from pipeline import params; from pipeline.engine import graph; "
        "graph.jobs(params.load()); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "polars", "pandera", "numpy"} & set(done.stdout.split())


def test_a_path_leads_to_the_raw_value() -> None:
    loaded = load_study("dyck", "quick")
    assert loaded.value("scale") == "smoke" and loaded.scale == "quick"
    steps = loaded.value(f"{RUNS}:dyck-standard.steps")
    assert steps == {"smoke": 10, "quick": 1200, "paper": 4240}


# --- what is derived: one document, and schemas for editors ----------------------------------------------


@pytest.mark.parametrize("study", STUDIES)
def test_the_document_holds_every_member_with_all_its_values(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path, study)
    monkeypatch.chdir(tmp_path)
    for scale in SCALES:
        loaded, tree = params.load(scale=scale), YAML(typ="safe").load(specification.document(study, scale))
        assert tree["scale"] == scale and list(tree["studies"]) == [study]
        sections = tree["studies"][study]
        for section in ("datasets", "runs"):
            members = {}
            for key, entry in sections[section].items():
                members |= entry.get("variants", {key: entry})
            typed = loaded.members(section)
            assert list(members) == list(typed)
            for key, values in members.items():
                assert typed[key].model_dump(exclude={"study"}, exclude_none=True) == values
        assert sections["experiments"].keys() == loaded.experiments.keys()


def test_unknown_studies_and_scales_are_one_line(tmp_path: Path) -> None:
    write_study(tmp_path, "dyck")
    with pytest.raises(SandglassError, match=r"no study 'dykc' \(did you mean 'dyck'\?\)"):
        specification.document("dykc", root=tmp_path)
    with pytest.raises(SandglassError, match="no scale 'papr'; known: smoke, quick, long, paper"):
        specification.document("dyck", "papr", tmp_path)


FILES = [(study, file) for study in STUDIES for file in params.study_files(study)]


@pytest.mark.parametrize(("study", "file"), FILES)
def test_the_file_names_its_schema(study: str, file: str) -> None:
    first = (ROOT / file).read_text(encoding="utf-8").splitlines()[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert (ROOT / file).parent.joinpath(named).resolve() == ROOT / schema.schema_file(file)
    assert json.loads(specification.schema_text(study, file)) == schema.of_file(study, file)


@pytest.mark.parametrize("file", [file for _, file in FILES])
def test_lines_can_be_read(file: str) -> None:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > 120] == []


@pytest.fixture(scope="module")
def dyck_schema() -> dict[str, jsonschema.Draft7Validator]:
    """The schema of each file of the study."""
    schemas = {file: schema.of_file("dyck", file) for file in params.study_files("dyck")}
    for each in schemas.values():
        jsonschema.Draft7Validator.check_schema(each)
    return {file: jsonschema.Draft7Validator(each) for file, each in schemas.items()}


@pytest.mark.parametrize(("study", "file"), FILES)
def test_the_schema_takes_the_file(study: str, file: str) -> None:
    tree = YAML(typ="safe").load((ROOT / file).read_text(encoding="utf-8"))
    found = jsonschema.Draft7Validator(schema.of_file(study, file)).iter_errors(tree)
    assert [error.message for error in found] == []


@pytest.mark.parametrize(("path", "value", "expected"), MUTATIONS, ids=[f"{m[0]}={m[1]}" for m in MUTATIONS])
def test_the_schema_refuses_what_it_can_know(
    dyck_schema: dict[str, jsonschema.Draft7Validator], path: str, value: object, expected: list[str]
) -> None:
    file, tree = raw(path)
    put(tree, path, value)
    known = ("unknown key", "valid", "greater than", "less than", "'gpt'", "expected one of", "expected a mapping")
    if file in dyck_schema and any(word in " ".join(expected) for word in known):
        assert not dyck_schema[file].is_valid(by_file(tree)[file])


def test_what_a_file_says_is_kept_parsed_until_it_is_edited(tmp_path: Path) -> None:
    write_study(tmp_path, "dyck")
    first = params.load(tmp_path)
    assert not (tmp_path / reading.PARSED.parent).exists()  # reading alone leaves nothing behind
    (tmp_path / reading.PARSED.parent).mkdir()
    assert params.load(tmp_path) == first
    note = tmp_path / reading.PARSED / f"{DYCK}.json"
    kept = json.loads(note.read_text())
    assert kept["values"] == YAML(typ="safe").load((tmp_path / DYCK).read_text())
    # What is kept is what is returned, as long as it is of this text:
    note.write_text(json.dumps(kept | {"values": kept["values"] | {"title": "Kept"}}))
    assert params.load(tmp_path).studies["dyck"].title == "Kept"
    text = (tmp_path / DYCK).read_text()
    (tmp_path / DYCK).write_text(f"{text}\n# edited\n")
    assert params.load(tmp_path).studies["dyck"].title == first.studies["dyck"].title
    assert json.loads(note.read_text())["values"] == YAML(typ="safe").load((tmp_path / DYCK).read_text())


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"digest": 3}'])
def test_a_damaged_note_of_what_a_file_says_is_not_used(tmp_path: Path, damage: str) -> None:
    write_study(tmp_path, "dyck")
    (tmp_path / reading.PARSED.parent).mkdir()
    first = params.load(tmp_path)
    (tmp_path / reading.PARSED / f"{DYCK}.json").write_text(damage)
    assert params.load(tmp_path) == first


def test_a_job_needs_the_files_of_its_own_study_alone(tmp_path: Path) -> None:
    write_study(tmp_path, "dyck")
    write_study(tmp_path, "nce")
    main = YAML().load(tmp_path / "params.yaml")
    YAML().dump(main | {"studies": ["dyck", "nce"]}, tmp_path / "params.yaml")
    whole = params.load(tmp_path)
    (tmp_path / "params/nce/study.yaml").write_text("title: broken\n")
    for key in ("dyck", "dyck-standard"):
        own = params.load(tmp_path, of=key)
        assert own.runs == {name: run for name, run in whole.runs.items() if run.study == "dyck"}
    for key in ("nce", "nce-digits", "dyckling", None):
        with pytest.raises(SandglassError, match="nce"):
            params.load(tmp_path, of=key)


@pytest.mark.parametrize("scale", SCALES)
def test_datasets_hold_what_runs_read_of_them(scale: str) -> None:
    """Steps refuse a run whose dataset is too small, hours after the start: no scale may have one."""
    loaded = params.load(ROOT, scale)
    datasets = loaded.members("datasets")
    for key, run in loaded.members("runs").items():
        dataset = datasets.get(run.dataset)
        if not run.replicas or dataset is None:
            continue
        if run.study in ("automata", "depth") and getattr(dataset, "task", "") != "sc":  # sequences that are read once
            assert dataset.train >= run.steps * run.batch, f"{key} at {scale}"
        if getattr(run, "corpus", "") == "per_replica":
            assert dataset.corpora >= run.replicas, f"{key} at {scale}"
