"""What is wrong with a value is said of the place at which it stands, however an entry came by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from workspace import REPOSITORY, STUDIES, write_study

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.params import SECTIONS
from pipeline.params.files import StudyFiles
from pipeline.params.origin import origin
from pipeline.params.scales import is_per_scale
from pipeline.params.sharing import LIKE


def values(tree: Any, path: str = "") -> list[tuple[str, Any]]:
    """The paths and values below ``tree`` that are neither mappings, by scale or not, nor in lists."""
    if isinstance(tree, dict) and not is_per_scale(tree):
        return [found for key, each in tree.items() for found in values(each, f"{path}.{key}" if path else key)]
    return [(path, tree)]


@pytest.mark.parametrize("study", STUDIES)
def test_at_the_origin_of_a_value_stands_the_value(study: str) -> None:
    file = StudyFiles(study)
    file.read(REPOSITORY)
    count = 0
    for section in SECTIONS:
        entries, shared = file.written[section], file.shared[section]
        for path, value in values(file.values[section]):
            place = found = {**entries, "shared": shared}
            for key in origin(entries, shared, path).split("."):
                place, found = found, found[key]
            assert isinstance(place, dict)
            # By scale, an entry may say a part of it, and what it is like the rest.
            part = is_per_scale(found) and all(LIKE in str(each) or each == value[key] for key, each in found.items())
            assert found == value or part, path
            count += 1
    assert count > 20


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("shared.nce-digits.lr", [-1], "shared.nce-digits.lr.0: input should be greater than 0, got -1"),
        ("shared.nce-digits.lrr", 1, "shared.nce-digits.lrr: unknown key (did you mean 'lr'?); valid: "),
        ("nce-digits-diag.lr", [-1], "nce-digits-diag.lr.0: input should be greater than 0, got -1"),
        (
            "nce-digits-diag.variants.nce-digits-diag-nce-gd.lr",
            [-1],
            "nce-digits-diag.variants.nce-digits-diag-nce-gd.lr",
        ),
    ],
)
def test_a_shared_value_is_refused_where_it_stands(tmp_path: Path, place: str, value: Any, said: str) -> None:
    (tmp_path / "params.yaml").write_text("scale: smoke\nseed: 1\ndevice: cpu\nstudies: [nce]\n", encoding="utf-8")
    write_study(tmp_path, "nce")
    name = params.study_file("nce", "runs")
    tree = YAML(typ="safe").load((REPOSITORY / name).read_text(encoding="utf-8"))
    *parents, last = place.split(".")
    inner = tree
    for key in parents:
        inner = inner[key]
    inner[last] = value
    with (tmp_path / name).open("w", encoding="utf-8") as text:
        YAML().dump(tree, text)
    with pytest.raises(SandglassError) as error:
        params.load(tmp_path)
    assert str(error.value).startswith(f"{name}: {said}")
    assert ("(taken by nce-digits-" in str(error.value)) == ("variants" not in place)
