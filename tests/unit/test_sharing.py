"""What a program sets in a parameter file is what changes: DVC's own ``-S``, over every value of the real files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dvc.exceptions import InvalidArgumentError
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML
from workspace import REPOSITORY, STUDIES, write_study

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.params import SECTIONS, WITH_VARIANTS, grids
from pipeline.params.checking import File
from pipeline.params.sharing import LIKE, SHARED, expand, names, over, recorded

Path_ = tuple[str, ...]
RUNS = params.study_file("nce", "runs")


def read(file: Path) -> dict[str, Any]:
    return YAML(typ="safe").load(file.read_text(encoding="utf-8"))


def expanded(tree: dict[str, Any]) -> dict[str, Any]:
    """What a file with the values ``tree`` says, with every ``like`` replaced."""
    file = File("params/x.yaml")
    file.values = tree
    return expand(file, tuple(SECTIONS))


def leaves(tree: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths of the values below ``tree`` that a program can set: all but mappings; of lists, the whole."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        elif key != LIKE:
            yield (*path, key)


def at(tree: Any, path: Path_) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def differences(old: Any, new: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths at which two trees differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if key not in old or key not in new:
                yield (*path, key)
            else:
                yield from differences(old[key], new[key], (*path, key))
    elif old != new or type(old) is not type(new):
        yield path


@pytest.mark.parametrize("study", STUDIES)
def test_dvc_sets_each_value_of_a_file_by_itself(study: str, tmp_path: Path) -> None:
    """All at once, each to another value: were two of them one to a program, one would end with that of the other."""
    write_study(tmp_path, study)
    count = 0
    for file in params.study_files(study):
        expected = read(tmp_path / file)
        overrides = []
        for number, path in enumerate(list(leaves(expected)), 10**6):
            at(expected, path[:-1])[path[-1]] = number
            overrides.append(f"{'.'.join(path)}={number}")
        apply_overrides(str(tmp_path / file), overrides)
        assert read(tmp_path / file) == expected
        count += len(overrides)
    assert count > 40
    # The files are read without a complaint about their form, too.
    with pytest.raises(SandglassError, match=rf"params/{study}/[a-z]+.yaml: .*got .*10"):
        params.load(tmp_path)


def members(section: str, key: str, entry: dict[str, Any]) -> dict[str, Any]:
    """What each member of an entry says, in which every ``like`` is replaced; of an entry without members, itself."""
    if section not in WITH_VARIANTS:
        return entry
    base = {name: value for name, value in entry.items() if name != "variants"}
    return {member: over(base, own) for member, own in entry.get("variants", {key: {}}).items()}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("study", STUDIES)
def test_a_value_changes_the_entry_that_it_stands_in_or_those_that_are_like_it(study: str, section: str) -> None:
    tree = read(REPOSITORY / params.study_file(study, section))
    shared = tree.get(SHARED, {})
    keys = [key for key in tree if key != SHARED]

    def now(key: str) -> Any:
        return members(section, key, recorded(grids.recorded(tree[key]), shared))

    before = {key: json.loads(json.dumps(now(key))) for key in keys}  # a copy
    used = {key: set(names(grids.recorded(tree[key]), shared)) for key in keys}
    for path in leaves(tree):
        owner, last, old = at(tree, path[:-1]), path[-1], at(tree, path)
        owner[last] = "another"
        readers = [key for key in keys if path[1] in used[key]] if path[0] == SHARED else [path[0]]
        found = [each for key in readers for each in differences(before[key], now(key), (key,))]
        owner[last] = old
        assert found, f"{'.'.join(path)} changes nothing"
        kept = tuple(word for word in path if word != "variants")  # a member stands where its variant stood
        for each in found:
            if path[0] == SHARED:
                assert last in each
            elif section in WITH_VARIANTS and "variants" in path and "grid" in at(tree, path[:3]):
                assert "grid" in path or each[2 : 2 + len(path[3:])] == path[3:]  # of one member or another
            elif section in WITH_VARIANTS and "variants" not in path:
                assert (each[0], *each[2:]) == path
            else:
                assert each == kept


@pytest.mark.parametrize(
    ("override", "key", "path", "value"),
    [
        ("+nce-digits-full.steps.quick=7", "nce-digits-full", ("steps", "quick"), 7),
        ("+nce-digits-full.batch=3", "nce-digits-full", ("batch",), 3),
        ("nce-digits-diag.replicas.quick=7", "nce-digits-diag", ("replicas", "quick"), 7),
    ],
)
def test_a_shared_value_is_set_for_one_entry_with_a_plus(
    override: str, key: str, path: Path_, value: int, tmp_path: Path
) -> None:
    write_study(tmp_path, "nce")
    before = params.load(tmp_path).raw
    apply_overrides(str(tmp_path / RUNS), [override])
    after = params.load(tmp_path).raw
    assert list(differences(before, after)) == [(RUNS, key, *path)]
    assert at(after[RUNS][key], path) == value


def test_without_the_plus_dvc_refuses_and_says_so(tmp_path: Path) -> None:
    write_study(tmp_path, "nce")
    file = tmp_path / RUNS
    text = file.read_text()
    with pytest.raises(InvalidArgumentError) as refused:
        apply_overrides(str(file), ["nce-digits-full.steps.quick=7"])
    assert "+nce-digits-full.steps.quick=7" in str(refused.value.__cause__)
    assert read(file) == YAML(typ="safe").load(text)


def test_a_value_that_every_variant_replaces_is_refused(tmp_path: Path) -> None:
    """Like what `-S` was to change and would not: the learning rate of a run whose variants have rates of their own."""
    write_study(tmp_path, "flipflop")
    file = tmp_path / params.study_file("flipflop", "runs")
    apply_overrides(str(file), ["+flipflop-baseline.replicas.quick=9"])
    with pytest.raises(
        SandglassError, match=r"runs.yaml: flipflop-baseline.replicas: each variant says its own, so nothing reads it"
    ):
        params.load(tmp_path)


# --- the rules of `like` -----------------------------------------------------------------------------------------

BASE = {"a": 1, "n": {"smoke": 1, "quick": 2, "paper": 3}, "deep": {"x": 1}}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"like": "base"}, BASE),
        ({"like": ["base"]}, BASE),
        ({"like": "base", "a": 5}, BASE | {"a": 5}),
        ({"like": "base", "n": {"quick": 7}}, BASE | {"n": {"smoke": 1, "quick": 7, "paper": 3}}),
        ({"like": "base", "n": 4}, BASE | {"n": 4}),
        ({"like": "base", "deep": {"y": 2}}, BASE | {"deep": {"y": 2}}),  # what is not by scale is replaced
        ({"like": ["more", "base"]}, BASE | {"a": 9, "b": 0}),  # the first counts
        ({"like": ["base", "more"]}, BASE | {"b": 0}),
        ({"like": "chain"}, BASE | {"a": 9, "b": 0, "c": 1}),
        ({"variants": {"v": {"like": "more"}}}, {"variants": {"v": {"a": 9, "b": 0}}}),
        ({"rates": {"like": "list"}}, {"rates": [1, 2]}),
        ({"r": {"smoke": 1, "quick": {"like": "list"}, "paper": 2}}, {"r": {"smoke": 1, "quick": [1, 2], "paper": 2}}),
        ({"cells": [{"like": "more"}]}, {"cells": [{"a": 9, "b": 0}]}),
    ],
)
def test_what_is_like_something(entry: dict[str, Any], expected: dict[str, Any]) -> None:
    shared = {"base": BASE, "more": {"a": 9, "b": 0}, "chain": {"like": ["more", "base"], "c": 1}, "list": [1, 2]}
    everything = {"like": ["chain"], "z": {"like": "list"}}
    tree = {"runs": {"x-a": entry, "x-all": everything}, SHARED: shared}
    kept = json.dumps(tree)
    assert expanded(tree)["runs"]["x-a"] == expected
    assert recorded(entry, shared) == expected
    assert json.dumps(tree) == kept


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"runs": {"x": {"like": "bsae"}}, SHARED: {"base": {}}}, r"shared has no 'bsae' \(did you mean 'base'"),
        ({"runs": {"x": {"like": "a"}}}, r"runs.x.like: shared has no 'a'"),
        ({"runs": {"x": {"like": 3}}, SHARED: {"a": {}}}, r"runs.x.like: shared has no 3"),
        ({"runs": {"x": {"like": []}}, SHARED: {"a": {}}}, r"runs.x.like: expected one name of shared"),
        ({"runs": {"x": {"like": ["a", "a"]}}, SHARED: {"a": {}}}, r"runs.x.like: expected one name of shared"),
        ({"runs": {"x": {"like": "a"}}, SHARED: {"a": {"like": "a"}}}, r"shared.a.like: is like itself: a → a"),
        ({"runs": {"x": {"like": "a"}}, SHARED: {"a": {"like": "b"}, "b": {"like": "a"}}}, r"like itself: a → b → a"),
        ({"runs": {"x": {"like": "a", "y": 1}}, SHARED: {"a": 3}}, r"runs.x.like: 'a' is no mapping"),
        ({"runs": {}, SHARED: {"a": {}}}, r"shared.a: nothing is like it: delete it"),
        ({"runs": {}, SHARED: [1]}, r"shared: expected a mapping of names, got \[1\]"),
        ({"runs": {"x": {"like": "a"}}, SHARED: {"a": {}}, "claims": {"like": "a"}}, r"claims.like: only "),
    ],
)
def test_what_cannot_be_like_something_is_one_line(tree: dict[str, Any], message: str) -> None:
    with pytest.raises(SandglassError, match=rf"^params/x.yaml: .*{message}") as refused:
        expanded(tree)
    assert "\n" not in str(refused.value)


def test_what_multiplies_is_refused() -> None:
    shared: dict[str, Any] = {"a0": {"x": 1}}
    for depth in range(1, 12):
        shared[f"a{depth}"] = {f"k{i}": {"like": f"a{depth - 1}"} for i in range(8)}
    with pytest.raises(SandglassError, match="more than 100000 values, shared ones counted each time"):
        expanded({"runs": {"x": {"like": "a11"}}, SHARED: shared})


def test_yaml_aliases_are_refused_with_what_to_write(tmp_path: Path) -> None:
    write_study(tmp_path, "nce")
    file = tmp_path / params.study_file("nce", "title")
    file.write_text(file.read_text().replace("title: ", "title: &t ").replace("source: ", "source: *t #"))
    with pytest.raises(SandglassError, match=r"params/nce/study.yaml: line \d+: \*t is an alias.*`like: t`$"):
        params.load(tmp_path)


def test_a_file_that_is_no_yaml_names_the_way_back(tmp_path: Path) -> None:
    write_study(tmp_path, "nce")
    (tmp_path / RUNS).write_text("runs: [a: b\n")
    with pytest.raises(SandglassError, match=r"not valid YAML: .*; `git checkout params/nce/runs.yaml` brings"):
        params.load(tmp_path)
