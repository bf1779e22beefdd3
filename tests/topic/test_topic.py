"""The study topic, all of it at smoke scale."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from workspace import Workspace

from pipeline.studies.topic.claims import STATEMENTS


def test_the_study_is_built(smoke_of: Callable[[str], Workspace]) -> None:
    data = smoke_of("topic").path / "data"
    claims = pl.read_parquet(data / "claims/topic/claims.parquet")
    assert set(claims["claim"]) <= set(STATEMENTS)
    assert (data / "report/study/topic.html").is_file()
