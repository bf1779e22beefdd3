"""Claims of the depth study read the right rows, say what is missing, and fail where they should."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import depth_tables
import polars as pl
import pytest
from ruamel.yaml import YAML

from pipeline.kit.comparisons import Comparison
from pipeline.kit.intervals import EXACT, NONE, ORDER, Interval
from pipeline.store import tables
from pipeline.studies.depth import claims
from pipeline.studies.depth.claims.theory import CONSTRUCTIONS, IMPOSSIBLE, PARTS
from pipeline.studies.depth.comparisons import (
    DECLARED,
    ENDED,
    FOUR_LAYERS,
    FOUR_LAYERS_PUBLISHED,
    HEADS_ACCURACY,
    HEADS_P,
    HEADS_STEPS,
    LEARNED,
    LEARNED_IN_CONTEXT,
    LIKENESS,
    RIGHT_PAIR,
    SOLVED,
)
from pipeline.studies.depth.names import (
    CONTEXT,
    CONTEXTUAL,
    CONTEXTUAL_PUBLISHED,
    FROZEN,
    GENERALIZATION,
    MEMORIZATION,
    ONE_LAYER,
    OUTPUTS,
    REASONING,
    SIZES,
    TWO_LAYERS_HEADS,
)
from schemas import theory
from schemas.claims import CORRECTED, FAILS, HOLDS, NOT_RUN, OWN, STATED, TOO_FEW, UNDECIDED, Claims

TABLES = depth_tables.every()
PUBLISHED_SETTING = [
    *(
        f"{gate}{start}{share}"
        for start in ("", ", published start")
        for gate, share in (("L=3", ""), ("L=2", ""), ("L=3", ", share"))
    ),
    "L=2, 2l heads",
    "L=1, uniform start",
]
LONGER = TABLES["runs"].with_columns(l=pl.lit(5, pl.Int8))  # the published size of contextual generalization
UNSEEN = "unseen_combination"


def theory_rows(left: dict[str, float] | None = None) -> pl.DataFrame:
    """Two checks of each part, of which ``left`` measures something else than 0."""
    checks = [
        {
            "check": f"{claim}-{number}-{i}",
            "statement": "it is 0",
            "size": "",
            "comparison": "<=",
            "bound": 0.0,
            "measured": (left or {}).get(part, 0.0) if i else 0.0,
            "claim": claim,
            "part": part,
        }
        for claim, parts in PARTS.items()
        for number, part in enumerate(parts)
        for i in range(2)
    ]
    return theory.rows("depth", "depth-x", "a source", checks)


def judge(
    found: dict[Comparison, float | Interval] | None = None,
    scale: str = "paper",
    checks: dict[str, float] | None = None,
    **replaced: pl.DataFrame,
) -> pl.DataFrame:
    read = TABLES | {"comparisons": depth_tables.comparisons(found or {})} | replaced
    context: Any = SimpleNamespace(
        table=read.__getitem__,
        theory=lambda: theory_rows(checks),
        study="depth",
        scale=scale,
        params_hash="0" * 32,
        settings=SimpleNamespace(close=0.02),
    )
    frame = claims.judge(context)
    tables.validate(frame, Claims, "claims")
    return frame


def verdicts(found: pl.DataFrame) -> dict[tuple[str, str], str]:
    return {(row["claim"], row["gate"]): row["verdict"] for row in found.iter_rows(named=True)}


def failed(found: pl.DataFrame) -> list[tuple[str, str]]:
    return [key for key, verdict in verdicts(found).items() if verdict == FAILS]


def test_tables_are_those_of_the_study() -> None:
    from schemas.depth.tables import SCHEMAS

    assert set(TABLES) == set(SCHEMAS)
    for name, frame in TABLES.items():
        tables.validate(frame, SCHEMAS[name], name)


def test_a_model_has_learned_from_the_accuracy_that_claims_ask_for() -> None:
    params = YAML(typ="safe").load(Path(__file__).parents[2] / "params/depth/study.yaml")["analysis"]
    assert (params["solved"], params["threshold"]) == (LEARNED, LEARNED_IN_CONTEXT)


def test_everything_is_reproduced_where_everything_is() -> None:
    """The tables here are at the middle setting of contextual generalization, l=3 and k=2."""
    frame = judge(scale="quick")
    assert frame["claim"].unique(maintain_order=True).to_list() == [str(n) for n in range(1, 11)]
    untested = frame.filter(pl.col("verdict") != HOLDS)
    assert set(untested["verdict"]) == {NOT_RUN}
    assert untested["gate"].to_list() == [*PUBLISHED_SETTING, "L=4 over L=3", "L=4 over L=3, published start"]
    assert set(untested["reason"]) == {"the runs at this scale have the other setting of l and k"}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_published_size_is_judged_where_runs_have_it(scale: str) -> None:
    outcomes = verdicts(judge(scale=scale, runs=LONGER))
    assert {outcomes["4", gate] for gate in PUBLISHED_SETTING} == {outcomes["5", "L=4 over L=3"]} == {HOLDS}
    assert outcomes["4", "middle setting, L=3"] == NOT_RUN


@pytest.mark.parametrize(
    ("comparison", "value", "gate"),
    [
        (ENDED[MEMORIZATION[1], "train", OUTPUTS], 0.98, ("1", "L=1")),
        (ENDED[SIZES, "train", OUTPUTS], 0.98, ("1", "L=1, N above the width")),
        (ENDED[FROZEN[MEMORIZATION[1]], "train", OUTPUTS], 1.0, ("1", "frozen attention")),
        (ENDED[FROZEN[SIZES], "train", OUTPUTS], 1.0, ("1", "frozen attention, N above the width")),
        (ENDED[REASONING[2], "fresh", OUTPUTS], 0.98, ("2", "L=2")),
        (ENDED[ONE_LAYER["ic_qa"], "fresh", CONTEXT], 0.31, ("2", "L=1, uniform start")),
        (ENDED[GENERALIZATION[2], UNSEEN, OUTPUTS], 0.98, ("3", "L=2")),
        (ENDED[GENERALIZATION[2], "unseen_token", OUTPUTS], 0.63, ("3", "L=2, unseen tokens")),
        (ENDED[GENERALIZATION[2], "unseen_repetition", OUTPUTS], 0.5, ("3", "L=2, one token")),
        (ENDED[ONE_LAYER["tm"], UNSEEN, OUTPUTS], 0.26, ("3", "L=1, uniform start")),
        (ENDED[CONTEXTUAL[3], "fresh", OUTPUTS], 0.94, ("4", "middle setting, L=3")),
        (ENDED[CONTEXTUAL[2], "fresh", CONTEXT], 0.61, ("4", "middle setting, L=2")),
        (ENDED[CONTEXTUAL_PUBLISHED[3], "fresh", OUTPUTS], 0.49, ("4", "middle setting, L=3, published start")),
        (ENDED[TWO_LAYERS_HEADS, "fresh", CONTEXT], 0.61, ("4", "middle setting, L=2, 2l heads")),
        (FOUR_LAYERS, 1.1, ("5", "middle setting, L=4 over L=3")),
        (FOUR_LAYERS_PUBLISHED, 1.1, ("5", "middle setting, L=4 over L=3, published start")),
        (HEADS_STEPS, 0.9, ("6", "SC, steps")),
        (HEADS_P, 0.06, ("6", "SC, p")),
        (HEADS_ACCURACY["ic_qa", "4, 4"], -0.03, ("6", "IC-QA, accuracy, heads 4, 4")),
        (HEADS_ACCURACY["tm", "2, 1"], 0.03, ("6", "TM, accuracy, heads 2, 1")),
        (RIGHT_PAIR, 0.94, ("9", "layer 2")),
        (LIKENESS[2], -0.1, ("10", "templates, layer 2")),
    ],
)
def test_a_gate_fails_where_its_comparison_does(comparison: Comparison, value: float, gate: tuple[str, str]) -> None:
    assert failed(judge({comparison: value})) == [gate]


def test_every_gate_on_models_needs_a_number_and_models_enough() -> None:
    """A value that is not defined fails, and five models do not make a median."""
    nothing = {each: Interval(math.nan, math.nan, math.nan, ORDER, 8, 6) for each in DECLARED}
    few = {each: Interval(0.5, math.nan, math.nan, ORDER, 5, 6) for each in DECLARED}
    for runs in (TABLES["runs"], LONGER):
        tested = {gate for gate, verdict in verdicts(judge(runs=runs)).items() if verdict != NOT_RUN}
        on_models = {gate for gate in tested if gate[0] not in PARTS}
        assert set(failed(judge(nothing, runs=runs))) == on_models
        outcomes = verdicts(judge(few, runs=runs))
        assert {gate for gate, verdict in outcomes.items() if verdict == TOO_FEW} == on_models


def test_one_layer_below_chance_is_what_the_theorem_says() -> None:
    frame = judge({ENDED[ONE_LAYER["tm"], UNSEEN, OUTPUTS]: 0.05})
    assert verdicts(frame)["3", "L=1, uniform start"] == HOLDS


def test_a_median_hides_no_starts_that_fail() -> None:
    """The interval is that of a share of models: five of five do not yet show that more than half do."""
    outcomes = verdicts(judge({SOLVED[REASONING[2]]: Interval(1.0, 0.478, 1.0, EXACT, 5, 1)}))
    assert outcomes["2", "L=2"] == HOLDS and outcomes["2", "L=2, share"] == UNDECIDED


def test_an_equal_accuracy_is_shown_by_the_whole_interval() -> None:
    wide = Interval(0.0, -0.9, 0.01, ORDER, 8, 6)
    assert verdicts(judge({HEADS_ACCURACY["tm", "4, 4"]: wide}))["6", "TM, accuracy, heads 4, 4"] == UNDECIDED


def test_what_is_ours_is_not_counted_as_published() -> None:
    kinds = dict(judge().select(pl.concat_str("claim", "gate", separator=" "), "kind").iter_rows())
    start = "4 middle setting, L=3"
    assert (kinds[start], kinds[f"{start}, published start"]) == (CORRECTED, STATED)
    assert {kind for gate, kind in kinds.items() if "share" in gate or "frozen" in gate} == {OWN}
    assert (kinds["6 SC, steps"], kinds["6 SC, p"]) == (STATED, OWN)  # the source has no test of significance
    assert {kind for gate, kind in kinds.items() if "L=1, uniform start" in gate} == {OWN}


@pytest.mark.parametrize("value", [1.0, math.nan])
@pytest.mark.parametrize(("claim", "part"), [(claim, part) for claim, parts in PARTS.items() for part in parts])
def test_one_check_is_enough(claim: str, part: str, value: float) -> None:
    assert failed(judge(checks={part: value})) == [(claim, part)]


def test_what_is_missing_is_said() -> None:
    nothing = {name: TABLES[name].clear() for name in ("accuracy", "comparisons", "runs")}
    frame = judge(**nothing)
    on_models = frame.filter(~pl.col("claim").is_in(list(PARTS)))
    assert set(on_models["verdict"]) == {NOT_RUN}
    assert frame.height == judge().height == on_models.height + len(CONSTRUCTIONS) + len(IMPOSSIBLE)


def test_the_bar_of_a_guess_needs_a_chance() -> None:
    gates = {
        ("4", "middle setting, L=2, published start"): "value <= 0.6",
        ("2", "L=1, uniform start"): "value <= 0.3",
        ("3", "L=1, uniform start"): "value <= 0.25",
    }
    for accuracy, bars in ((TABLES["accuracy"], gates), (TABLES["accuracy"].clear(), dict.fromkeys(gates, ""))):
        rows = judge(accuracy=accuracy, comparisons=TABLES["comparisons"].clear()).iter_rows(named=True)
        found = {(row["claim"], row["gate"]): row["bound"] for row in rows}
        assert {gate: found[gate] for gate in gates} == bars


def test_nothing_is_published_in_numbers() -> None:
    """The figures of the source show shapes; chance, our bounds and exactly 1 or 0 are no published numbers."""
    assert judge()["published"].null_count() == judge().height


def test_a_p_value_has_no_interval_and_says_so() -> None:
    frame = judge({HEADS_P: Interval(0.01, math.nan, math.nan, NONE, 20, 1)})
    row = frame.filter(claim="6", gate="SC, p").row(0, named=True)
    assert (row["verdict"], row["lo"], row["hi"]) == (HOLDS, None, None)
