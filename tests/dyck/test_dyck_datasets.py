"""Dyck datasets: what is generated is valid, reproducible and stable; the schema refuses every kind of defect."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline.errors import SandglassError
from pipeline.languages import dyck
from pipeline.store import tables
from pipeline.studies.dyck import datasets
from pipeline.studies.dyck.params import Complete, Nested, Prefix

COMMON = {"study": "dyck", "language": "dyck", "grammars": [{"k": 2, "depth": 4}]}
COMPLETE = Complete.model_validate(
    COMMON
    | {
        "split": "train_complete",
        "sampler": "complete",
        "q": 0.5,
        "p_stop": 0.5,
        "max_length": 26,
        "sequences": 300,
        "corpora": 3,
    }
)
PREFIX = Prefix.model_validate(
    COMMON
    | {
        "split": "lengen",
        "sampler": "prefix",
        "q": 0.5,
        "min_length": 400,
        "max_length": 500,
        "sequences": 12,
        "corpora": 1,
    }
)
NESTED = Nested.model_validate(COMMON | {"split": "probe16", "sampler": "nested"})
PROBE19 = Prefix.model_validate(
    COMMON
    | {
        "grammars": [{"k": k, "depth": depth} for k in (2, 3) for depth in (4, 8)],
        "split": "probe19",
        "sampler": "prefix",
        "q": 0.5,
        "min_length": 19,
        "max_length": 19,
        "sequences": 40,
        "corpora": 1,
    }
)


@pytest.mark.parametrize("entry", [COMPLETE, PREFIX, NESTED, PROBE19], ids=lambda e: e.split)
def test_generated_frames_pass_the_schema_and_survive_the_file(entry, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    frame, metadata = datasets.generate(entry, "some-id", 1)
    path = tmp_path / "d.parquet"
    tables.write(frame, path, datasets.SCHEMA, metadata)
    assert tables.read(path, datasets.SCHEMA).equals(frame)
    assert tables.read_metadata(path) == metadata
    shown = ["start", "[", "]", "(", ")", "{", "}"]
    assert json.loads(metadata["vocabulary"]) == shown[: 2 * max(g.k for g in entry.grammars) + 1]
    count = getattr(entry, "sequences", 1) * getattr(entry, "corpora", 1)
    assert frame.height == count * len(entry.grammars)


def test_the_probe_is_the_one_of_the_paper() -> None:
    frame, _ = datasets.generate(NESTED, "probe", 1)
    assert frame["tokens"].to_list() == dyck.parse("[[[[]]]](((())))").tolist()
    assert frame["length"].to_list() == [16]


def test_lengths() -> None:
    complete, _ = datasets.generate(COMPLETE, "c", 1)
    assert complete["length"].max() == 26 and complete["length"].min() == 2
    assert (complete["length"] % 2 == 0).all()
    prefix, _ = datasets.generate(PREFIX, "p", 1)
    assert prefix["length"].is_between(400, 500).all() and prefix["length"].n_unique() > 6


def test_each_corpus_has_its_own_stream() -> None:
    frame, _ = datasets.generate(COMPLETE, "c", 1)
    fewer, _ = datasets.generate(COMPLETE.model_copy(update={"corpora": 2}), "c", 1)
    assert frame.filter(pl.col("corpus_seed") < 2).equals(fewer)
    first, second = (frame.filter(pl.col("corpus_seed") == c)["tokens"].to_list() for c in (0, 1))
    assert first != second
    for other in (datasets.generate(COMPLETE, "c", 2)[0], datasets.generate(COMPLETE, "d", 1)[0]):
        assert other["tokens"].to_list() != frame["tokens"].to_list()


def test_each_grammar_has_its_own_stream_whatever_stands_beside_it() -> None:
    """D5: 40 sentences of odd length for each grammar of Table 1, which reach its depth and use its types."""
    frame, _ = datasets.generate(PROBE19, "p", 1)
    frames = dict(frame.group_by("lang_k", "lang_D", maintain_order=True))
    assert list(frames) == [(2, 4), (2, 8), (3, 4), (3, 8)]
    for (k, depth), part in frames.items():
        assert (part["length"] == 19).all() and part.height == 40
        assert part["tokens"].explode().max() == 2 * k
        assert part["depths"].explode().max() <= depth  # type: ignore[operator]
    alone = PROBE19.model_copy(update={"grammars": PROBE19.grammars[2:3]})
    assert datasets.generate(alone, "p", 1)[0].equals(frames[3, 4])
    shallow, deep = (frames[2, depth]["tokens"].list.head(4).to_list() for depth in (4, 8))
    assert shallow != deep  # one stream would give both the same first D tokens


DEFECTS = {
    "tokens are 1..2k": lambda row: row | {"tokens": [1, 1, 2, 5], "depths": [1, 2, 1, 2]},
    "depths count the unmatched opens": lambda row: row | {"depths": [1, 2, 2, 0]},
    "depths are 0..D": lambda row: row | {"lang_D": 1},
    r"depths are 0\.\.D": lambda row: row | {"tokens": [2, 1, 1, 2], "depths": [-1, 0, 1, 0]},
    "every closer matches its opener": lambda row: row | {"tokens": [1, 3, 2, 4], "depths": [1, 2, 1, 0]},
    "complete strings end at depth 0": lambda row: row | {"tokens": [1, 1, 2], "depths": [1, 2, 1], "length": 3},
    "length counts tokens and depths": lambda row: row | {"length": 6},
    "multiple_fields_uniqueness": lambda row: row | {"seq_id": 0},
    "isin": lambda row: row | {"split": "train"},
}


@pytest.mark.parametrize("check", DEFECTS)
@pytest.mark.filterwarnings("ignore")
def test_the_schema_refuses(check: str) -> None:
    schema = {n: c.dtype for n, c in zip(*_columns(), strict=True)}
    good = {
        "split": "train_complete",
        "lang_k": 2,
        "lang_D": 4,
        "corpus_seed": 0,
        "tokens": [1, 3, 4, 2],
        "depths": [1, 2, 1, 0],
        "length": 4,
    }
    rows = [good | {"seq_id": i} for i in range(4)]
    tables.validate(pl.DataFrame(rows).select(*schema).cast(schema), datasets.SCHEMA, "t")
    rows[2] = DEFECTS[check](rows[2])
    with pytest.raises(SandglassError, match=check) as error:
        tables.validate(pl.DataFrame(rows).select(*schema).cast(schema), datasets.SCHEMA, "t")
    if check != "isin":
        assert "row " in str(error.value)


def test_a_closer_that_does_not_match_is_found_at_any_distance() -> None:
    frame, _ = datasets.generate(PREFIX, "p", 1)
    tokens = frame["tokens"].to_list()
    row = dyck.matching(np.array([tokens[5]], np.int8))[0]
    far = max(range(len(row)), key=lambda i: row[i] - i if row[i] > i else 0)
    tokens[5][row[far]] = 6 - tokens[5][row[far]]  # 2 <-> 4: the other closer
    bad = frame.with_columns(pl.Series("tokens", tokens, dtype=pl.List(pl.Int8)))
    with pytest.raises(SandglassError, match=r"every closer matches its opener.*row 5:"):
        tables.validate(bad, datasets.SCHEMA, "t")


def _columns() -> tuple[list[str], list[pl.Series]]:
    frame, _ = datasets.generate(NESTED, "probe", 1)
    return frame.columns, frame.get_columns()
