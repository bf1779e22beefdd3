"""Comparisons as objects: declared once per study, computed by analysis, judged by claims, read by figures.

A study lists them in ``pipeline/studies/<study>/comparisons.py``:

    DECLARED = Declared()
    LOST = DECLARED(
        Comparison(
            "c2-twice", "accuracy lost at twice the length", MEAN_DIFFERENCE, "automata-shifts",
            (Arm("plain", "automata-c2-l4"), Arm("scratchpad", "automata-c2-scratchpad")),
        )
    )

An analysis gives the samples (`Measurements`), and the statistic decides the interval (`pipeline.kit.intervals`). Each
comparison that an experiment declares has a row in its table ``comparisons``: measured, too few models, or not run. One
that is asked for and not declared, or declared and not measured though its models are there, is an error.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from pipeline.errors import SandglassError
from pipeline.kit import intervals
from pipeline.kit.conditions import Condition, in_words
from pipeline.kit.intervals import Interval
from schemas import comparisons as schema
from schemas.comparisons import MODELS, NOT_RUN, NOTHING, SEEDS, TEACHERS, TOO_FEW

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs

TABLE = "comparisons"
CLAIMS = "claims"  # stands for the experiment where arms are of several, whose tables only claims read together
MODEL = "model"
FLOOR = 5  # models in an arm, below which nothing that compares trained models holds or fails

MEAN, MEDIAN, SHARE, CORRELATION = "mean", "median", "share", "rank correlation"
MEAN_DIFFERENCE, SHIFT, RATIO = "difference of means", "median of the differences", "median of the quotients"
SHARE_DIFFERENCE = "difference of shares"
OWN = "as measured"  # the analysis makes value and interval itself, by one of the kinds of `pipeline.kit.intervals`
STATISTICS = [MEAN, MEDIAN, SHARE, CORRELATION, MEAN_DIFFERENCE, SHIFT, RATIO, SHARE_DIFFERENCE, OWN]
_OF_TWO = (MEAN_DIFFERENCE, SHIFT, RATIO, SHARE_DIFFERENCE)
_OF_SHARES = (SHARE, SHARE_DIFFERENCE)


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: what it is called in words, and the runs (members of ``params/<study>/``) whose
    models stand in it. What is ``elsewhere`` somebody has to bring: models of no run, or data to train on."""

    name: str
    runs: tuple[str, ...] = ()
    elsewhere: bool = False

    def __init__(self, name: str, *runs: str, elsewhere: bool = False) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "runs", runs)
        object.__setattr__(self, "elsewhere", elsewhere)


@dataclass(frozen=True)
class Comparison:
    """What is compared, and how.

    ``measure`` says what is measured of one unit, in words without a bar and without the arms. ``in_common`` says what
    both arms share: samples are paired where that is the seed and the data, the teacher, or the models themselves.
    With ``learned`` models that did not learn their task are left out. ``hits`` is what a unit has to meet to be
    counted in a share. ``span`` is where the statistic can lie. ``experiment`` is the one whose analysis measures it,
    or `CLAIMS`.
    """

    key: str
    measure: str
    statistic: str
    experiment: str
    arms: tuple[Arm, ...] = ()
    in_common: str = NOTHING
    unit: str = MODEL
    learned: bool = True
    hits: tuple[Condition, ...] = ()
    span: tuple[float, float] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        """Raise ValueError if the parts do not fit each other."""
        if self.statistic not in STATISTICS:
            raise ValueError(f"comparison {self.key}: no statistic is called {self.statistic!r}")
        if self.statistic in _OF_TWO and len(self.arms) != 2:
            raise ValueError(f"comparison {self.key}: {self.statistic} is of two arms, not of {len(self.arms)}")
        if (self.statistic in _OF_SHARES) != bool(self.hits):
            raise ValueError(f"comparison {self.key}: hits belong to shares, and shares have hits")
        if self.statistic == SHARE_DIFFERENCE and self.paired:
            raise ValueError(f"comparison {self.key}: a difference of shares is of independent arms")

    @property
    def paired(self) -> bool:
        """Return whether unit r of both arms belongs together."""
        return self.in_common in (SEEDS, TEACHERS, MODELS)

    @property
    def words(self) -> str:
        """Return what is measured, as gates, tables and pages say it."""
        hit = in_words(self.hits)
        measure = f"{self.unit}s whose {self.measure} is {hit}" if hit else self.measure
        names = [arm.name for arm in self.arms if arm.name]
        by_statistic = {
            MEAN: f"mean {measure}",
            MEDIAN: f"median {measure}",
            SHARE: f"share of {measure}",
            CORRELATION: f"rank correlation of {measure}",
            MEAN_DIFFERENCE: f"mean {measure}",
            SHARE_DIFFERENCE: f"share of {measure}",
            SHIFT: f"median difference of {measure}",
            RATIO: f"median quotient of {measure}",
        }
        said = by_statistic.get(self.statistic, measure)
        if self.statistic in _OF_TWO:
            return f"{said}: {names[0]} {'over' if self.statistic == RATIO else 'minus'} {names[1]}"
        return f"{said}: {', '.join(names)}" if names else said


class Declared:
    """The comparisons of a study, by key."""

    def __init__(self) -> None:
        self._known: dict[str, Comparison] = {}

    def __call__(self, comparison: Comparison) -> Comparison:
        """Add a comparison and return it. Raises ValueError if another has its key."""
        if comparison.key in self._known:
            raise ValueError(f"two comparisons have the key {comparison.key!r}")
        self._known[comparison.key] = comparison
        return comparison

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self._known.values())

    def of(self, experiment: str) -> dict[str, Comparison]:
        """Return the comparisons that ``experiment`` measures, by key, in the order in which they are declared."""
        return {key: each for key, each in self._known.items() if each.experiment == experiment}


def declared(study: str) -> Declared:
    """Return the comparisons of a study."""
    found: Declared = importlib.import_module(f"pipeline.studies.{study}.comparisons").DECLARED
    return found


def estimate(comparison: Comparison, *samples: ArrayLike, confidence: float) -> Interval:
    """Return the statistic of a comparison with its interval; each sample has one value for each unit of an arm.

    Of a rank correlation the samples are both quantities of the same units. Raises ValueError if their number is not
    that of the arms, or paired samples differ in length.
    """
    values = [np.asarray(sample, float) for sample in samples]
    wanted = 2 if comparison.statistic in (*_OF_TWO, CORRELATION) else 1
    if len(values) != wanted:
        raise ValueError(f"comparison {comparison.key}: {wanted} samples are compared, not {len(values)}")
    if comparison.hits:
        values = [np.array([_hit(comparison.hits, value) for value in sample.tolist()], float) for sample in values]
    paired = comparison.paired
    by_statistic: dict[str, Callable[..., Interval]] = {
        MEAN: intervals.mean,
        MEDIAN: intervals.median,
        SHARE: intervals.share,
        CORRELATION: intervals.correlation,
        MEAN_DIFFERENCE: lambda *arms: intervals.mean_difference(*arms, paired=paired),
        SHIFT: lambda *arms: intervals.shift(*arms, paired=paired),
        RATIO: lambda *arms: intervals.ratio(*arms, paired=paired),
        SHARE_DIFFERENCE: intervals.share_difference,
    }
    if comparison.statistic not in by_statistic:
        raise ValueError(f"comparison {comparison.key}: the analysis makes its value and interval itself")
    return by_statistic[comparison.statistic](*values, confidence).within(*comparison.span)


def _hit(conditions: tuple[Condition, ...], value: float) -> float:
    """Return whether a unit is counted; NaN for one that was not judged."""
    return math.nan if math.isnan(value) else float(all(each.meets(value) for each in conditions))


class Measurements:
    """What an analysis found of the comparisons that its experiment declares.

    ``reason`` says why units are left out where a measurement does not say it itself.
    """

    def __init__(self, context: Inputs, reason: str = "") -> None:
        self._reason = reason
        self._context = context
        self._confidence: float = context.settings.confidence
        self._declared = declared(context.study).of(context.experiment)
        self._trained = set(context.runs())
        self.rows: dict[str, dict[str, Any]] = {}  # of what was measured, by key

    def add(self, comparison: Comparison, *samples: ArrayLike, excluded: int = 0, reason: str = "") -> Interval:
        """Measure a comparison on its samples, one value for each unit of an arm, and return what was found.

        ``excluded`` units are left out for a ``reason``. An empty sample is one of which no model counts.
        """
        found = estimate(comparison, *samples, confidence=self._confidence)
        self.put(comparison, found, excluded, reason)
        return found

    def put(self, comparison: Comparison, found: Interval, excluded: int = 0, reason: str = "") -> None:
        """Take a value and interval that the analysis made itself; nothing where an arm has no models at this scale.

        Raises SandglassError if the experiment does not declare the comparison, or measured it before.
        """
        self._expect(comparison)
        if self._is_trained(comparison):
            self.rows[comparison.key] = row(comparison, found, self._confidence, excluded, reason or self._reason)

    def not_run(self, comparison: Comparison) -> None:
        """Say that the parameters at this scale lack what is compared, a step size for instance, or a checkpoint.

        A comparison whose runs have no models needs no such word.
        """
        self._expect(comparison)
        self.rows[comparison.key] = not_run(comparison, self._confidence)

    def table(self) -> pl.DataFrame:
        """Return the table ``comparisons``: a row for each that is declared.

        Raises SandglassError if one was not measured though each of its arms has models at this scale.
        """
        for key, comparison in self._declared.items():
            if key in self.rows:
                continue
            if self._is_trained(comparison) and not any(arm.elsewhere for arm in comparison.arms):
                raise SandglassError(
                    f"{self._context.experiment}: comparison {key!r} is declared, its models are trained, and it was "
                    "not measured"
                )
            self.not_run(comparison)
        return frame(self.rows[key] for key in self._declared)

    def _expect(self, comparison: Comparison) -> None:
        key, experiment = comparison.key, self._context.experiment
        if self._declared.get(key) != comparison:
            raise SandglassError(f"{experiment}: comparison {key!r} is not declared for it")
        if key in self.rows:
            raise SandglassError(f"{experiment}: comparison {key!r} is measured twice")

    def _is_trained(self, comparison: Comparison) -> bool:
        """Return whether each arm has models at this scale: one of several runs as soon as one of them has."""
        return all(not arm.runs or self._trained.intersection(arm.runs) for arm in comparison.arms)


def row(
    comparison: Comparison, found: Interval, confidence: float, excluded: int = 0, reason: str = ""
) -> dict[str, Any]:
    """Return what was found as a row of `schemas.comparisons.Comparisons`; ``excluded`` units are left out for a
    ``reason``."""
    fewest = max(found.fewest, FLOOR if comparison.unit == MODEL else 0)
    numbers = {name: _null(getattr(found, name)) for name in ("value", "lo", "hi")}
    return (
        _about(comparison, confidence)
        | numbers
        | {
            "interval": found.kind,
            "n": found.n,
            "fewest": fewest,
            "n_excluded": excluded,
            "excluded_reason": reason if excluded else "",
            "state": TOO_FEW if found.n < fewest else schema.MEASURED,
        }
    )


def not_run(comparison: Comparison, confidence: float) -> dict[str, Any]:
    """Return the row of a comparison of which there is nothing at this scale."""
    return row(comparison, intervals.plain(math.nan, 0), confidence) | {"fewest": 0, "state": NOT_RUN}


def frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Return rows (`row`, `not_run`) as a table `schemas.comparisons.Comparisons`, without scale and params_hash."""
    columns = {name: column.dtype.type for name, column in schema.Comparisons.to_schema().columns.items()}
    own = {name: dtype for name, dtype in columns.items() if name not in ("scale", "params_hash")}
    return pl.DataFrame(list(rows), schema=own)


def _about(comparison: Comparison, confidence: float) -> dict[str, Any]:
    names = [arm.name for arm in comparison.arms]
    return {
        "comparison": comparison.key,
        "measure": comparison.words,
        "statistic": comparison.statistic,
        "first": names[0] if names else "",
        "second": names[1] if len(names) > 1 else None,
        "in_common": comparison.in_common,
        "unit": comparison.unit,
        "confidence": confidence,
    }


def _null(number: float) -> float | None:
    """Return a number as tables store it: null for NaN, and for what is infinite."""
    return float(number) if math.isfinite(number) else None


class Tables(Protocol):
    """What figures and claims read from (`pipeline.kit.results.Results`)."""

    @property
    def study(self) -> str:
        """Return the study whose tables these are."""

    def table(self, name: str) -> pl.DataFrame:
        """Return the rows of a table of all experiments that have one of this name."""


def read(context: Tables, asked: Iterable[Comparison]) -> pl.DataFrame:
    """Return the rows of these comparisons, in their order.

    Raises SandglassError if an experiment's rows are not exactly what it declares, or one that is asked for has none:
    it was renamed, or analysis and claims are not of one version.
    """
    rows = context.table(TABLE)
    known = {each.key: each for each in declared(context.study)}
    found = rows["comparison"].to_list()
    for key in found:
        if key not in known:
            raise SandglassError(f"{context.study}: a table has a comparison {key!r}, which is not declared")
    for experiment in {known[key].experiment for key in found}:
        lacking = [key for key, each in known.items() if each.experiment == experiment and key not in found]
        if lacking:
            raise SandglassError(f"{experiment}: its table lacks the comparison {lacking[0]!r}")
    keys = [comparison.key for comparison in asked]
    for key in keys:
        if key not in known:
            raise SandglassError(f"{context.study}: comparison {key!r} is not declared")
        if known[key].experiment == CLAIMS:
            raise SandglassError(f"{context.study}: comparison {key!r} is measured by claims, no table has it")
    order = pl.DataFrame({"comparison": keys}, schema={"comparison": pl.String})
    return order.join(rows, on="comparison", how="left", maintain_order="left").with_columns(
        pl.col("state").fill_null(NOT_RUN)  # the whole experiment is not run
    )
