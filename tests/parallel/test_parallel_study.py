"""The study parallel at smoke scale, from its parameters to its page."""

from __future__ import annotations

import polars as pl
from workspace import Workspace


def test_the_study_is_built(smoke: Workspace) -> None:
    data = smoke.path / "data"
    claims = pl.read_parquet(data / "claims/parallel/claims.parquet")
    assert {str(claim) for claim in range(1, 42)} == set(claims["claim"])
    theory = [pl.read_parquet(file) for file in sorted((data / "theory/parallel").glob("*.parquet"))]
    assert len(theory) == 3 and pl.concat(theory)["passed"].all()
    fits = pl.read_parquet(data / "tables/parallel/parallel-masking/par_mple_fit.parquet")
    assert set(fits["optimiser"]) == {"gd", "newton"}
    tables = data / "tables/parallel/parallel-translation"
    metrics = pl.read_parquet(tables / "synmt_metric.parquet")
    assert set(metrics["T"]) == {0, 1, 2, 4, 10} and set(metrics["B_l"]) == {1, 5}
    outputs = pl.read_parquet(tables / "synmt_output.parquet")
    assert (outputs["hyp"].list.last() == 1).all()
    assert (data / "report/study/parallel.html").is_file()
