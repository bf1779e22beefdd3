"""Claims that measure tables themselves: controls of what other claims say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.kit.verdicts import judged
from pipeline.studies.parallel.claims import learning, translation
from pipeline.studies.parallel.comparisons import STRONG_PAIR
from pipeline.studies.parallel.controls import NEVER
from pipeline.studies.parallel.names import DIAL, PADIR
from schemas.claims import FAILS, HOLDS
from schemas.parallel.datasets import RANDOM, TWO_PAIRS
from schemas.parallel.tables import ALIGNED, MISALIGNED


def results(**tables: pl.DataFrame) -> Any:
    return SimpleNamespace(table=lambda name: tables[name])


@pytest.mark.parametrize(("factor", "verdict"), [(1.5, HOLDS), (0.7, FAILS)])
def test_conditionals_are_compared_on_strongly_coupled_pairs_alone(factor: float, verdict: str) -> None:
    rng = np.random.default_rng(0)
    laws = [("weak", TWO_PAIRS, STRONG_PAIR / 2), ("strong", TWO_PAIRS, STRONG_PAIR), ("drawn", RANDOM, 2.0)]
    cells = [{"law": law, "family": family, "strength": strength} for law, family, strength in laws]
    rows = [
        {"law": law, "scheme": scheme, "k": k, "repetition": r, "kl_conditional": value * np.exp(0.01 * rng.normal())}
        for r in range(6)
        for law, _, _ in laws
        for k in (1, 2)
        for scheme, value in ((ALIGNED, 1.0), (MISALIGNED, factor if law == "strong" and k == 2 else 1 / factor))
    ]
    gate = learning._conditionals(results(par_scheme=pl.DataFrame(cells), par_scheme_model=pl.DataFrame(rows)))
    assert gate.measured is not None and gate.measured.n == 6
    assert gate.measured.value == pytest.approx(np.log(factor), abs=0.02)
    assert {judged(each, gate.measured) for each in gate.conditions} == {verdict}


def test_nothing_is_measured_without_models() -> None:
    cells = pl.DataFrame(schema={"law": pl.String, "family": pl.String, "strength": pl.Float64})
    columns = {
        "law": pl.String,
        "scheme": pl.String,
        "k": pl.Int32,
        "repetition": pl.Int32,
        "kl_conditional": pl.Float64,
    }
    gate = learning._conditionals(results(par_scheme=cells, par_scheme_model=pl.DataFrame(schema=columns)))
    assert gate.measured is None and gate.missing == "not run at this scale"


def test_translators_are_held_against_those_that_were_never_trained() -> None:
    """An effect is negative: trained models that show less of it fail, and those without an effect are left out."""
    rows = [
        {"run": run, "replica": r, "T": T, "cls": "stutter", "metric": "tv_mean", "cohen_d_vs_other": d + 0.01 * r}
        for run, effects in ((PADIR[DIAL], {1: -0.4, 4: -1.5}), (NEVER, {1: -1.1, 4: -1.0}))
        for T, d in effects.items()
        for r in range(6)
    ]
    rows.append(rows[0] | {"replica": 6, "cohen_d_vs_other": None})
    rows.append(rows[0] | {"cls": "other", "cohen_d_vs_other": 100.0})
    rows.append(rows[0] | {"metric": "sa_mean", "cohen_d_vs_other": 100.0})
    first, later = translation._untrained(pl.DataFrame(rows))
    assert first.measured is not None and later.measured is not None
    assert first.measured.value == pytest.approx(0.7) and later.measured.value == pytest.approx(-0.5)
    assert judged(first.conditions[0], first.measured) == FAILS
    assert judged(later.conditions[0], later.measured) == HOLDS
    (unknown, _) = translation._untrained(pl.DataFrame(rows).filter(run=NEVER))
    assert unknown.measured is None
