"""Intervals of few models are Student's, of more a bootstrap's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats as student

from pipeline.kit import stats
from pipeline.studies.automata.measures.contrasts import contrast, difference

CONTEXT: Any = SimpleNamespace(
    seed=0, study="automata", settings=SimpleNamespace(confidence=0.95, resamples=500)
)


def ends(row: dict[str, Any]) -> tuple[float, float]:
    return row["lo"], row["hi"]


def test_few_models_have_intervals_of_student() -> None:
    first, second = np.array([0.5, 0.7, 0.6]), np.array([0.2, 0.5, 0.35])
    expected = student.ttest_1samp(first, 0).confidence_interval(0.95)
    assert ends(contrast(CONTEXT, "mean", stats.mean, first)) == pytest.approx(tuple(expected))
    expected = student.ttest_rel(first, second).confidence_interval(0.95)
    assert ends(difference(CONTEXT, "paired", first, second)) == pytest.approx(tuple(expected))
    more = np.array([0.1, 0.4, 0.2, 0.3])
    expected = student.ttest_ind(first, more, equal_var=False).confidence_interval(0.95)
    assert ends(difference(CONTEXT, "apart", first, more)) == pytest.approx(tuple(expected))


def test_models_that_agree_have_no_width_and_two_models_no_interval() -> None:
    one = np.ones(3)
    assert ends(difference(CONTEXT, "same", one, one * 0)) == (1.0, 1.0)
    assert ends(difference(CONTEXT, "apart", one, np.zeros(4))) == (1.0, 1.0)
    for n in (1, 2):
        assert ends(contrast(CONTEXT, "few", stats.mean, one[:n])) == (None, None)


def test_no_accuracy_is_above_one() -> None:
    lo, hi = ends(contrast(CONTEXT, "mean", stats.mean, np.array([0.9, 0.99, 1.0])))
    assert lo < 0.9 and hi == 1


def test_five_models_have_a_bootstrap_interval() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    row = contrast(CONTEXT, "mean", stats.mean, values)
    assert values.min() < row["lo"] < row["value"] < row["hi"] < values.max()
