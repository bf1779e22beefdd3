"""The study selfsup: its language, its construction, and all of it at smoke scale."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import polars as pl
from workspace import Workspace

from pipeline.languages import selfsup as language
from pipeline.studies.selfsup import names
from pipeline.studies.selfsup.theory import construction


def test_every_token_is_one_more_than_the_one_before() -> None:
    tokens = language.sample(np.random.default_rng(0), 100, 9, 7)
    assert tokens.shape == (100, 9) and set(tokens[:, 0]) == set(range(7))
    assert ((tokens[:, 1:] - tokens[:, :-1]) % 7 == 1).all()


def test_the_construction_makes_no_error() -> None:
    entry = SimpleNamespace(study="selfsup", symbols=[2, 3, 50], length=5)
    found = construction.check(entry, names.CONSTRUCTION, 0)  # type: ignore[arg-type]
    assert found["measured"].to_list() == [0, 0, 0] and found["passed"].all()


def test_the_study_is_built(smoke_of: Callable[[str], Workspace]) -> None:
    data = smoke_of("selfsup").path / "data"
    table = pl.read_parquet(data / "tables/selfsup/selfsup-accuracy/accuracy.parquet")
    assert set(names.RUNS) <= set(table["run"])  # and whatever other variants the parameters name
    figure = pl.read_parquet(data / "figures/selfsup/selfsup-accuracy/accuracy.parquet")
    assert figure["run"].to_list() == table["run"].to_list()
    assert (data / "report/study/selfsup.html").is_file()
