"""Theory checks of the depth study: all rows hold, and those that should fail do when the code is wrong."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.languages import sequence_tasks as tasks
from pipeline.models.attention_only import network as attention_only
from pipeline.store import tables
from pipeline.studies.depth import constructions
from pipeline.studies.depth.theory import contextual, generalization, impossibility, one_layer, reasoning
from schemas.theory import Theory

ENTRIES: dict[Any, SimpleNamespace] = {
    one_layer: SimpleNamespace(inputs=50, tokens=10, sequences=40),
    impossibility: SimpleNamespace(models=3, heads=[1, 2], lengths=[2, 3], tokens=4),
    reasoning: SimpleNamespace(inputs=60, tokens=12, examples=[2, 3], hops=[1, 3]),
    generalization: SimpleNamespace(inputs=60, tokens=10, lengths=[2, 3, 4]),
    contextual: SimpleNamespace(inputs=60, tokens=10, lengths=[2, 3], examples=3),
}


def rows(module: Any) -> pl.DataFrame:
    return module.check(ENTRIES[module], "depth-x", 1)


def failed(module: Any) -> set[str]:
    return set(rows(module).filter(~pl.col("passed"))["check"])


@pytest.fixture(scope="module", params=ENTRIES, ids=lambda module: module.__name__.rsplit(".", 1)[1])
def found(request: pytest.FixtureRequest) -> pl.DataFrame:
    return rows(request.param)


def test_every_row_is_valid_and_passes(found: pl.DataFrame) -> None:
    tables.validate(found, Theory, "theory")
    assert found.filter(~pl.col("passed"))["check"].to_list() == []


def test_every_erratum_has_a_printed_form_that_fails_and_a_corrected_one(found: pl.DataFrame) -> None:
    errata = found.filter(pl.col("erratum") != "")
    for _, both in errata.group_by("erratum"):
        assert sorted(both["form"]) == ["corrected", "printed"]
        assert dict(zip(both["form"], both["comparison"], strict=True))["printed"] == "beyond"


def test_numbers_of_the_chapter() -> None:
    measured = dict(rows(generalization).select("check", "measured").iter_rows())
    assert measured["values-printed"] == 14  # of 15 templates at l = 4
    directions = constructions.generalizer(tasks.templates(6), 6).weights["head.W"][0]
    assert (directions.T @ directions - np.eye(203)).max() == pytest.approx(0.99999, abs=1e-5)
    shares = rows(impossibility).filter(pl.col("check").str.starts_with("reasoning-share"))["measured"]
    assert shares.to_list() == [0.75, 0.75]


def test_toy_set_is_that_of_the_proof() -> None:
    """Section 13.1: dependent sequences, and labels by the pair of the question."""
    tokens = impossibility.TOY
    sums = [np.sort(tokens[pair], axis=0) for pair in ([0, 1], [2, 3])]
    assert (sums[0] == sums[1]).all()
    right = [row[[0, 3].index(next(i for i in (0, 3) if row[i] == row[6])) * 3 + 2] for row in tokens]
    assert right == [3, 3, 4, 4]
    assert impossibility.TOY_SIDES.tolist() == [1, 1, -1, -1]
    every, answers = reasoning.every_question(2, 2, 2)
    labels = dict(zip(map(tuple, every.tolist()), answers.tolist(), strict=True))
    toy_labels = dict(zip(map(tuple, impossibility.ALL_TOY.tolist()), [3, 3, 4, 4] * 2, strict=True))
    assert toy_labels == labels


def test_a_second_layer_breaks_the_identities(monkeypatch: pytest.MonkeyPatch) -> None:
    def two_layers(rng: np.random.Generator, count: int, heads: int, inputs: int, length: int, attention: str) -> Any:
        width = inputs + length
        spec = attention_only.Spec(2, (heads, heads), attention, width, length, inputs, inputs, "random")
        drawn = [attention_only.initial(spec, rng) for _ in range(count)]
        return constructions.Model(spec, {name: np.stack([each[name] for each in drawn]) for name in drawn[0]})

    monkeypatch.setattr(constructions, "random_models", two_layers)
    broken = failed(impossibility)
    assert {f"{task}-{what}-h1" for task in ("reasoning", "templates") for what in ("residual", "classifier")} <= broken


def test_softmax_is_not_dependent_without_its_normalisers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impossibility, "_normalisers", lambda models, ids: np.ones((3, len(ids))))
    assert failed(impossibility) == {"softmax-residual-reasoning", "softmax-residual-templates"}


def test_a_wrong_label_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tasks.nested

    def wrong(*args: Any) -> tasks.Sample:
        sample = right(*args)
        return sample._replace(label_N=sample.label_N[::-1])

    monkeypatch.setattr(tasks, "nested", wrong)
    assert failed(reasoning) == {f"nested-{hops}{suffix}" for hops in (1, 3) for suffix in ("", "-merged")}


@pytest.mark.parametrize(
    ("module", "without_outputs"),
    [
        (one_layer, {"directions", "width-printed", "width-corrected"}),
        (reasoning, set()),
        (generalization, set()),
        (contextual, set()),
        (
            impossibility,
            {
                *(f"{task}-classifier-h{h}" for task in ("reasoning", "templates") for h in (1, 2)),
                *("reasoning-share-h1", "reasoning-share-h2", "occurrences", "softmax-independent-h2"),
                *("softmax-classifier-reasoning", "softmax-classifier-templates"),
            },
        ),
    ],
)
def test_no_check_passes_with_an_output_that_is_not_a_number(
    module: Any, without_outputs: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of the inputs gives NaN in every run of a model, also of those whose printed form is to fail."""
    right = constructions.Model.run

    def spoilt(self: constructions.Model, ids: Any, record: Any = ()) -> Any:
        outputs, recorded = right(self, ids, record)
        # HiGHS takes no NaN in the columns of `impossibility`: the step ends there.
        for array in (outputs, *(() if module is impossibility else recorded.values())):
            array[:, 0] = np.nan
        return outputs, recorded

    monkeypatch.setattr(constructions.Model, "run", spoilt)
    frame = rows(module)
    assert set(frame.filter("passed")["check"]) == without_outputs < set(frame["check"])


@pytest.mark.parametrize("look", [constructions.separator, constructions.certificate])
def test_no_classifier_is_looked_for_among_columns_that_are_not_numbers(look: Any) -> None:
    with pytest.raises(ValueError, match="nan"):
        look(np.array([[1.0, np.nan], [0.0, 1.0]]), np.array([1, -1]))


def test_one_residual_that_is_not_a_number_is_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates of length 2 give NaN, those of length 3 do not; so for pairs of templates."""
    averages, residual, seen = impossibility._averages, impossibility.residual, []

    def first_is_nan(weights: Any, outputs: Any) -> float:
        seen.append(None)
        return math.nan if len(seen) % 2 else residual(weights, outputs)

    monkeypatch.setattr(impossibility, "residual", first_is_nan)
    monkeypatch.setattr(
        impossibility, "_averages", lambda outputs, sets: averages(outputs, sets) * (np.nan if len(sets) == 2 else 1)
    )
    assert {"templates-residual-h1", "templates-residual-h2", "softmax-residual-templates"} <= failed(impossibility)


def test_every_input_of_a_small_size_is_there_once() -> None:
    for ids, labels, count in (
        (*reasoning.every_question(2, 3, 3), 6 * 6 * 2),
        (*reasoning.every_chain(2, 4), 24 * 2),
        (*contextual.every_context(2, 2, 3, 2), 2 * 2 * 3 * 6 * (3 + 6)),
        (*generalization.every_sequence(3), 27),
    ):
        assert (
            len({(*row, label) for row, label in zip(ids.tolist(), labels.tolist(), strict=True)}) == count == len(ids)
        )
