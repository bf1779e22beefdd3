"""The study selfsup at smoke scale, from its parameters to its page."""

from __future__ import annotations

import polars as pl
from workspace import Workspace


def test_the_study_is_built(smoke: Workspace) -> None:
    data = smoke.path / "data"
    claims = pl.read_parquet(data / "claims/selfsup/claims.parquet")
    assert {"1", "2"} <= set(claims["claim"])
    assert (data / "report/study/selfsup.html").is_file()
