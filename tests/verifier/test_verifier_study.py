"""All of the verifier study at smoke scale, and what can go wrong with its data."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from workspace import Workspace, load_study

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder
from pipeline.store import tables
from pipeline.studies.verifier import datasets, labels, names, runs
from pipeline.studies.verifier.analysis import cases
from pipeline.studies.verifier.comparisons import DECLARED
from schemas.verifier.datasets import SCHEMA

SEED = 20231210


def test_datasets_are_what_they_say() -> None:
    study = load_study("verifier")
    entry = study.datasets[names.STRINGS].members[names.STRINGS]
    frame, _ = datasets.generate(entry, names.STRINGS, SEED)
    SCHEMA.validate(frame)
    again, _ = datasets.generate(entry, names.STRINGS, SEED)
    assert frame.equals(again)
    for name, kind in entry.sets.items():
        own = frame.filter(set=name)
        lengths = own["tokens"].list.len().to_numpy()
        assert own.height == kind.strings
        if kind.cut:
            assert lengths.min() >= entry.cut[0] + 1 and lengths.max() <= entry.cut[1] + 1
        else:
            assert set(lengths) == {entry.brackets + 2}
    tokens = frame.filter(pl.col("set").is_in(["id", "ood"])).explode("tokens")
    share = tokens.group_by("set").agg((pl.col("tokens") == 0).sum() / (pl.col("tokens") < 2).sum())
    assert dict(share.iter_rows())["id"] < 0.4 < 0.6 < dict(share.iter_rows())["ood"]


def test_a_string_that_goes_on_behind_its_mistake_is_refused() -> None:
    tokens = np.array([language.parse("B(])")], np.int8)
    frame = datasets.frame("error", 4, tokens, np.array([4]), 0)
    with pytest.raises(Exception, match="goes on behind its first mistake"):
        SCHEMA.validate(frame)
    SCHEMA.validate(datasets.frame("error", 4, tokens, np.array([3]), 0))
    with pytest.raises(Exception, match="strings of the grammar have none"):
        SCHEMA.validate(datasets.frame("unseen", 4, tokens, np.array([3])))


def test_a_run_on_other_strings_is_refused() -> None:
    study = load_study("verifier")
    entry = study.runs[names.DYCK].members[names.DYCK]
    frame, _ = datasets.generate(study.datasets[names.STRINGS].members[names.STRINGS], names.STRINGS, SEED)
    header, data, _ = runs.prepare(entry, frame, SEED)
    assert header.scheduled_average == entry.average.model_dump() and set(data) == {"held.id", "held.ood"}
    with pytest.raises(SandglassError, match="strings of \\[32\\] brackets, the run of 30"):
        runs.prepare(entry.model_copy(update={"brackets": 30}), frame, SEED)
    with pytest.raises(SandglassError, match="lacks the sets"):
        runs.prepare(entry, frame.filter(pl.col("set") != "ood"), SEED)


def test_mistakes_end_with_their_first_wrong_sign_and_have_right_strings_beside_them() -> None:
    entry = (
        load_study("verifier")
        .datasets[names.MISTAKES]
        .members[names.MISTAKES]
        .model_copy(update={"mistakes": 10, "held": 5, "most": 60, "brackets": 12, "cut": [4, 8]})
    )
    spec = decoder.Spec(1, 1, 8, 8, language.VOCABULARY)
    weights = [decoder.initial(spec, stream(SEED, "test", r)) for r in range(2)]
    arrays = {f"average.{name}": np.stack([w[name] for w in weights]).astype(np.float32) for name in weights[0]}
    header = {"spec": {name: getattr(spec, name) for name in spec.__dataclass_fields__}}
    frame = labels.answers({names.MISTAKES: entry}, SEED, arrays, header)[names.MISTAKES]
    SCHEMA.validate(tables.conform([frame], SCHEMA))
    for replica in range(2):
        own = frame.filter(replica=replica)
        for wrong, right in ((names.ERROR, names.CORRECT), (names.HELD_ERROR, names.HELD_CORRECT)):
            mistaken, grammar = own.filter(set=wrong), own.filter(set=right)
            assert mistaken["error"].null_count() == 0 and grammar["error"].null_count() == grammar.height > 0
            assert mistaken["tokens"].list.len().to_list() == grammar["tokens"].list.len().to_list()
    assert not frame.filter(replica=0)["tokens"].equals(frame.filter(replica=1)["tokens"])
    few = entry.model_copy(update={"most": 1})
    with pytest.raises(SandglassError, match="too few to learn from"):
        labels.answers({names.MISTAKES: few}, SEED, arrays, header)


def test_the_study_is_built(smoke: Workspace) -> None:
    data = smoke.path / "data"
    found = [pl.read_parquet(path) for path in sorted((data / "tables/verifier").glob("*/comparisons.parquet"))]
    measured = pl.concat(found)
    assert set(measured["comparison"]) == {each.key for each in DECLARED}
    runs_ = pl.read_parquet(data / "tables/verifier/verifier-unseen/unseen_runs.parquet")
    assert runs_["exact"].all() and runs_["verifier"].n_unique() == 5
    assert (runs_["needless"] <= runs_["backtracks"]).all()
    assert (runs_.filter(verifier="ground truth")["needless"] == 0).all()
    objections = pl.read_parquet(data / "tables/verifier/verifier-unseen/objections.parquet")
    assert (objections["objected"] <= objections["n"]).all() and not objections["wrong"].all()
    closers = pl.read_parquet(data / "tables/verifier/verifier-unseen/closers.parquet")
    assert (closers["wrong"] <= closers["due"]).all()
    greedy = runs_.filter(top_p=0.0)
    assert greedy["verifier"].unique().to_list() == ["none"] and greedy["run"].unique().to_list() == [0]
    diverse = pl.read_parquet(data / "tables/verifier/verifier-unseen/diversity.parquet")
    assert diverse.filter(top_p=0.0)["distinct"].unique().to_list() == [1]
    assert (diverse["right"] <= diverse["distinct"]).all()
    necessity = pl.read_parquet(data / "tables/verifier/verifier-prefixes/necessity.parquet")
    never = necessity.filter(pl.col("triggers") > 0, pl.col("valid") == 0, pl.col("whole") == 0)
    assert (never["nucleus"] == 0).all() and (never["greedy"] == 0).all()  # what cannot be completed never is
    claims = pl.read_parquet(data / "claims/verifier/claims.parquet")
    assert {"12", "13", "15", "16", "23", "26", "30"} <= set(claims["claim"])
    assert (data / "report/study/verifier.html").is_file()


def test_gains_at_equal_queries_are_between_repetitions_and_run_by_run() -> None:
    # The plain decoder asks 10 queries a repetition, ours 20: at 20 queries ours is at its first repetition.
    curves = [(0, 1, 10, 3), (0, 2, 20, 4), (1, 1, 20, 6), (1, 2, 40, 9)]
    cumulative = pl.DataFrame(
        [
            {
                "config": config,
                "replica": replica,
                "run": run,
                "completion": n,
                "calls": calls,
                "distinct": distinct + run,
            }
            for replica in range(2)
            for run in range(2)
            for config, n, calls, distinct in curves
        ]
    )
    frames = {"code_cumulative": cumulative, "code_runs": pl.DataFrame({"requested": [10]})}
    assert cases.at_equal_queries(frames, 0, 1).tolist() == pytest.approx([0.2, 0.2])
    # Ours asks fewer: between the plain one's repetitions.
    assert cases.at_equal_queries(frames, 1, 0).tolist() == pytest.approx([-0.2, -0.2])


@pytest.mark.parametrize("without", [[0.5], [0.0, 0.9], [0.0, 0.5, 0.5]])
def test_the_likeliest_sign_is_always_among_what_is_compared(without: list[float]) -> None:
    entry = load_study("verifier").experiments[names.UNSEEN]
    with pytest.raises(ValueError, match="without must have 0"):
        type(entry).model_validate(entry.model_dump() | {"without": without})
