"""Datasets of the depth study: every entry at smoke, and a schema that notices what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.store import tables
from pipeline.studies.depth import datasets
from schemas.depth.datasets import Sequences

ENTRIES = load_study("depth").members("datasets", "depth")
ONE_OF_EACH = ["depth-sc", "depth-ic-qa", "depth-tm", "depth-ic-tm", "depth-nested"]


def made(key: str, **changes: object) -> pl.DataFrame:
    return datasets.generate(ENTRIES[key].model_copy(update=changes), key, 3)[0]


@pytest.mark.parametrize("key", ENTRIES)
def test_every_dataset_is_valid(key: str) -> None:
    frame = made(key)
    tables.validate(frame, Sequences, key)
    assert frame.equals(made(key))


def test_a_longer_dataset_begins_with_the_shorter_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else more steps would mean other data from the first step on."""
    monkeypatch.setattr(datasets, "SHARE", 16)
    short, long = (made("depth-ic-tm", train=n).filter(split="train") for n in (32, 50))
    assert long.height == 50 and long.head(32).equals(short)


def test_corpora_have_their_own_sequences_and_sizes() -> None:
    sizes = made("depth-sc-sizes").group_by("corpus", maintain_order=True).len()["len"].to_list()
    assert sizes == ENTRIES["depth-sc-sizes"].sizes
    nested = made("depth-nested").select("corpus", "hops").unique().sort("corpus")
    assert nested["hops"].to_list() == ENTRIES["depth-nested"].hops


def test_tokens_that_training_never_shows() -> None:
    entry, frame = ENTRIES["depth-tm"], made("depth-tm")
    tokens = {split: set(part["tokens"].explode()) for (split,), part in frame.group_by("split")}
    unseen = set(range(entry.d1 - entry.unseen, entry.d1))
    assert not unseen & tokens["train"] and tokens["unseen_token"] <= unseen | {entry.d1}


def first(column: str, value: Callable[[list[int]], list[int]]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A frame whose first row has another list in ``column``."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        lists = frame[column].to_list()
        return frame.with_columns(pl.Series(column, [value(lists[0]), *lists[1:]], dtype=pl.List(pl.Int16)))

    return change


def shifted(frame: pl.DataFrame) -> pl.DataFrame:
    """Every label one row too low."""
    return frame.with_columns(pl.col("label", "right").gather((pl.int_range(pl.len()) + 1) % pl.len()))


@pytest.mark.parametrize("key", [key for key in ONE_OF_EACH if key != "depth-sc"])
def test_schema_notices_labels_of_other_sequences(key: str) -> None:
    with pytest.raises(SandglassError, match="the label is the one that the task asks for"):
        tables.validate(shifted(made(key)), Sequences, key)


@pytest.mark.parametrize(
    ("key", "change", "check"),
    [
        ("depth-ic-qa", first("tokens", lambda t: [*t[:-1], 0]), "the response sign ends"),
        ("depth-ic-qa", first("tokens", lambda t: [99, *t[1:]]), "tokens are of the vocabulary"),
        ("depth-ic-qa", first("tokens", lambda t: t[1:]), "one task, one shape"),
        ("depth-sc", lambda frame: frame.with_columns(label=0), "the label is"),
        ("depth-sc", lambda frame: frame.with_columns(tokens=pl.col("tokens").first()), "the label is"),
        ("depth-tm", lambda frame: frame.with_columns(split=pl.lit("unseen_token")), None),
        ("depth-nested", lambda frame: frame.with_columns(hops=pl.lit(2, pl.Int8)), "the label is"),
    ],
)
def test_schema_notices(key: str, change: Callable[[pl.DataFrame], pl.DataFrame], check: str | None) -> None:
    if check is None:  # no training rows are left: nothing to be apart from, but keys repeat
        check = "multiple_fields_uniqueness"
    with pytest.raises(SandglassError, match=check):
        tables.validate(change(made(key)), Sequences, key)


def test_schema_notices_a_query_of_another_template() -> None:
    def other(tokens: list[int]) -> list[int]:
        *query, sign = tokens[-4:]
        return [*tokens[:-4], *([0, 1, 2] if len(set(query)) < 3 else [0, 0, 0]), sign]

    with pytest.raises(SandglassError, match="the label is the one that the task asks for"):
        tables.validate(first("tokens", other)(made("depth-ic-tm")), Sequences, "depth-ic-tm")


def test_schema_notices_a_query_that_repeats_its_example() -> None:
    frame = made("depth-ic-tm").filter(split="train").filter(right=0)
    repeated = first("tokens", lambda t: [*t[:-4], *t[:3], t[-1]])(frame)
    tables.validate(frame, Sequences, "depth-ic-tm")
    with pytest.raises(SandglassError, match="the label is the one that the task asks for"):
        tables.validate(repeated, Sequences, "depth-ic-tm")


@pytest.mark.parametrize("split", ["unseen_combination", "unseen_repetition", "unseen_token"])
def test_schema_notices_training_sequences_among_the_held_out(split: str) -> None:
    frame = made("depth-tm")
    leaked = frame.filter(split="train").head(1).with_columns(split=pl.lit(split), seq_id=pl.lit(999, pl.Int32))
    with pytest.raises(SandglassError, match="held out does not occur in training"):
        tables.validate(pl.concat([frame, leaked]), Sequences, "depth-tm")
