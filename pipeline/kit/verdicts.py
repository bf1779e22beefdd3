"""Verdicts on published claims: computed from what was measured, never typed.

A `Gate` is one testable piece of a claim: a measurement and the conditions that it has to meet. Two questions are
answered apart. *The effect*: the verdict says whether what is claimed (a direction, an order, a bound) holds, fails, is
undecided because the interval of the measurement reaches across a bar, or was not tested. *The size*: whether the
number that the source prints lies inside our interval. What kind of statement a gate tests (`schemas.claims.KINDS`)
stands beside both, and is never mixed in a count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit import intervals
from pipeline.kit.conditions import Condition, defined, in_words
from schemas.claims import (
    ANALOGUE,
    CEILING,
    CONTRADICTED,
    CORRECTED,
    FAILS,
    FLOOR,
    HOLDS,
    IN_PART,
    INSIDE,
    KINDS,
    NO_INTERVAL,
    NONE_PUBLISHED,
    NOT_RUN,
    NUMBER,
    OUTSIDE,
    OWN,
    SCALES,
    STATED,
    TOO_FEW,
    UNDECIDED,
    Claims,
)


@dataclass(frozen=True)
class Measured:
    """A value, its interval, and the units behind it; null and NaN mean that it is not defined."""

    value: float | None
    lo: float | None = None
    hi: float | None = None
    n: int | None = None
    excluded: int = 0
    excluded_reason: str = ""
    interval: str = ""  # its kind (`pipeline.kit.intervals.KINDS`); empty where there is none
    fewest: int | None = None  # units that a verdict needs, where it is on a sample of units
    confidence: float = 0.95

    @classmethod
    def of(cls, found: intervals.Interval, confidence: float) -> Measured:
        """Return what a gate reads of an interval that claims take of tables themselves."""
        value, lo, hi, kind, n, fewest = found
        return cls(value, lo, hi, n, interval=kind, fewest=fewest, confidence=confidence)

    @property
    def too_few(self) -> bool:
        """Return whether there are fewer units than a verdict needs."""
        return self.fewest is not None and (self.n or 0) < self.fewest

    @property
    def is_broken(self) -> bool:
        """Return whether there is an interval of which an end is not defined."""
        return (self.lo, self.hi) != (None, None) and not (defined(self.lo) and defined(self.hi))


@dataclass(frozen=True)
class Published:
    """A number of the source, or what follows from its numbers.

    ``high`` is the upper end of a printed range; ``form`` says whether the source prints the number itself or a bound
    (`schemas.claims.FORMS`); ``derivation`` says how a number that is not printed follows from those that are, for
    instance ``2.27 / 2.85``.
    """

    value: float
    high: float | None = None
    form: str = NUMBER
    derivation: str = ""

    @property
    def ends(self) -> tuple[float, float]:
        """Return the lowest and the highest value that the source allows."""
        low = -math.inf if self.form == CEILING else self.value
        return low, math.inf if self.form == FLOOR else self.value if self.high is None else self.high


def judged(condition: Condition, measured: Measured) -> str:
    """Return whether the bound is met by the whole interval, by none of it, or undecided by a part of it.

    Without an interval the value alone decides. A number that is not defined fails, and so does an interval of which an
    end is not.
    """
    number = getattr(measured, condition.what)
    if measured.is_broken or not (defined(measured.value) and defined(number)):
        return FAILS
    numbers = [each for each in (measured.value, measured.lo, measured.hi) if each is not None]
    met = {condition.meets(each) for each in numbers}
    return UNDECIDED if len(met) == 2 else HOLDS if met == {True} else FAILS


def described(condition: Condition, measured: Measured) -> str:
    """Return what was found, for instance ``upper end 0.31 < 0.5``, ``value 0.62, not < 0.5``, or
    ``the interval 0.4 to 0.6 reaches across 0.5``."""
    number, name = getattr(measured, condition.what), condition.name
    if not defined(number):
        return f"{name} not defined"
    if measured.is_broken:
        return "interval not defined"
    relation = f"{condition.comparison} {condition.bound:.4g}"
    if judged(condition, measured) == UNDECIDED:
        return f"the interval {measured.lo:.4g} to {measured.hi:.4g} reaches across {condition.bound:.4g}"
    return f"{name} {number:.4g} {relation}" if condition.meets(number) else f"{name} {number:.4g}, not {relation}"


@dataclass(frozen=True)
class Gate:
    """One row of the claims table; ``measured`` is None, with ``missing`` saying why, if there is nothing to test.

    ``measure`` says what is measured, in words without a bar: the bar is in the conditions alone. With ``stated`` it is
    the statement of a theory check, which says its bound itself. ``published`` is a number that the source prints; what
    else can be said of it, `Published` says. ``scale_needed`` is the scale from which the effect can be judged, and
    ``size_needed`` that from which the published number can be compared with ours, where that takes a larger one.
    ``comparison`` is the key of what is measured, if the study declares it (`pipeline.kit.comparisons`).
    """

    claim: str
    gate: str
    measure: str
    source: str
    conditions: tuple[Condition, ...]
    measured: Measured | None
    missing: str = ""
    published: Published | float | None = None
    scale_needed: str = "quick"
    kind: str = STATED
    size_needed: str = ""
    stated: bool = False
    comparison: str = ""

    @property
    def predicate(self) -> str:
        """Return what the gate asks for in words: what is measured, and the bar that decides."""
        asked = "" if self.stated else in_words(self.conditions)
        return f"{self.measure}: {asked}" if asked else self.measure

    def verdict(self, scale: str) -> tuple[str, str]:
        """Return the verdict on the effect at ``scale``, and the reason."""
        if self.measured is None:
            return NOT_RUN, self.missing
        if self.measured.too_few:
            shown = f"{self.measured.value:.3g} " if defined(self.measured.value) else ""
            return TOO_FEW, f"{shown}of {self.measured.n or 0}; a verdict needs {self.measured.fewest}"
        if SCALES.index(scale) < SCALES.index(self.scale_needed):
            return NOT_RUN, f"needs scale {self.scale_needed}, this is {scale}"
        if not defined(self.measured.value):
            return FAILS, "value not defined"  # also where the conditions look at the interval alone
        by_condition = {each: judged(each, self.measured) for each in self.conditions}
        verdict = next((v for v in (FAILS, UNDECIDED) if v in by_condition.values()), HOLDS)
        reasons = [described(each, self.measured) for each, result in by_condition.items() if result == verdict]
        return verdict, "; ".join(dict.fromkeys(reasons))

    def replicas(self, scale: str) -> int | None:
        """Return how many units would decide the gate by an interval of the same kind, judged by the spread of these.

        Of too few, at least those that a verdict needs. None where it is decided, or no number of them would tell.
        """
        measured, verdict = self.measured, self.verdict(scale)[0]
        if measured is None or verdict not in (UNDECIDED, TOO_FEW):
            return None
        least = measured.fewest or 0
        across = [each for each in self.conditions if measured.too_few or judged(each, measured) == UNDECIDED]
        value, lo, hi = (
            math.nan if number is None else number for number in (measured.value, measured.lo, measured.hi)
        )
        found = intervals.Interval(value, lo, hi, measured.interval, measured.n or 0, least)
        needed = [intervals.needed(found, each.bound, measured.confidence) for each in across]
        known = [number for number in needed if number is not None]
        if verdict == TOO_FEW:
            return max([least, *known])
        return max(known) if known and len(known) == len(needed) else None

    def size(self, scale: str) -> str:
        """Return where the published number lies: inside our interval, outside, or why that cannot be said."""
        if self.quoted is None:
            return NONE_PUBLISHED
        early = SCALES.index(scale) < SCALES.index(self.size_needed or self.scale_needed)
        if self.measured is None or early:
            return NOT_RUN
        lo, hi = self.measured.lo, self.measured.hi
        if lo is None or hi is None or not (defined(lo) and defined(hi)):
            return NO_INTERVAL
        low, high = self.quoted.ends
        return INSIDE if low <= hi and lo <= high else OUTSIDE

    @property
    def quoted(self) -> Published | None:
        """Return the published number with what is said of it."""
        plain = isinstance(self.published, float | int)
        return Published(float(self.published)) if plain else self.published  # type: ignore[arg-type,return-value]


SEVERAL = {
    STATED: "published statements",
    CORRECTED: "corrected forms",
    ANALOGUE: "statements on stand-ins",
    OWN: "own checks",
}
UNTESTED = (TOO_FEW, NOT_RUN)
MEASURED = ("value", "lo", "hi", "n", "excluded", "excluded_reason", "interval", "fewest")


def table(
    gates: Iterable[Gate], statements: Mapping[str, str], study: str, scale: str, params_hash: str
) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) of ``gates``; ``statements`` says each claim in a sentence.

    Raises SandglassError if a claim has no sentence.
    """
    rows = []
    for gate in gates:
        if gate.claim not in statements:
            raise SandglassError(f"claim {gate.claim} of {study} has no sentence that says it")
        measured = gate.measured or Measured(None)
        verdict, reason = gate.verdict(scale)
        quoted = gate.quoted
        same = ("claim", "gate", "comparison", "kind", "predicate", "source", "scale_needed")
        rows.append(
            {name: getattr(gate, name) for name in same}
            | {name: getattr(measured, name) for name in MEASURED}
            | {
                "study": study,
                "statement": statements[gate.claim],
                "published": quoted and quoted.value,
                "published_high": quoted and quoted.high,
                "published_form": quoted.form if quoted else "",
                "derivation": quoted.derivation if quoted else "",
                "bound": " and ".join(condition.text for condition in gate.conditions),
                "scale": scale,
                "verdict": verdict,
                "size": gate.size(scale),
                "replicas_needed": gate.replicas(scale),
                "reason": reason,
                "params_hash": params_hash,
            }
        )
    schema = {name: column.dtype.type for name, column in Claims.to_schema().columns.items()}
    return pl.DataFrame(rows, schema=schema).with_columns(pl.selectors.float().fill_nan(None))


def stands(gates: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return how a claim stands (`schemas.claims.STATES`) by the kinds and verdicts of its ``gates``, and how many of
    them say so.

    Statements of the source decide; the other kinds stand beside them, and decide in turn where a claim has nothing
    before them (`deciding`). Gates that were not tested say nothing, unless none was.
    """
    found = by_kind(gates)
    verdicts = found.get(deciding(found), [])
    tested = [verdict for verdict in verdicts if verdict not in UNTESTED]
    failed, undecided = tested.count(FAILS), tested.count(UNDECIDED)
    if not tested:
        return (TOO_FEW if TOO_FEW in verdicts else NOT_RUN), ""
    if failed:
        return (CONTRADICTED if failed == len(tested) else IN_PART), _share(failed, len(tested))
    return (UNDECIDED, _share(undecided, len(tested))) if undecided else (HOLDS, _share(len(tested), len(verdicts)))


def beside(gates: Iterable[tuple[str, str]]) -> str:
    """Return what the other kinds of gates say beside a claim's statements: ``own checks: 3 of 4 hold``."""
    found = by_kind(gates)
    parts = []
    for kind, words in SEVERAL.items():
        tested = [verdict for verdict in found.get(kind, ()) if verdict not in UNTESTED]
        if tested and kind != STATED and STATED in found:
            parts.append(f"{words}: {tested.count(HOLDS)} of {len(tested)} hold")
    return "; ".join(parts)


def deciding(found: Mapping[str, Iterable[str]]) -> str:
    """Return the kind of gates that decides a claim with these verdicts by kind; empty for none.

    It is the first of `schemas.claims.KINDS`; but where none before them was tested, for want of data, those on
    stand-ins.
    """
    first = min(found, key=KINDS.index, default="")
    if first in (STATED, CORRECTED) and set(found[first]) <= {NOT_RUN} and ANALOGUE in found:
        return ANALOGUE
    return first


def by_kind(gates: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the verdicts of gates by their kind."""
    found: dict[str, list[str]] = {}
    for kind, verdict in gates:
        found.setdefault(kind, []).append(verdict)
    return found


def _share(some: int, all_: int) -> str:
    return f"{some} of {all_} gates" if all_ > 1 else "1 gate"


def short(verdict: str) -> str:
    """Return a verdict where the scale stands beside it: ``undecided`` for ``undecided at this scale``."""
    return verdict.removesuffix(" at this scale")


def as_metrics(claims: pl.DataFrame) -> dict[str, str]:
    """Return how each claim stands, for ``dvc metrics``: ``contradicted in part (4 of 20 gates)``."""
    words = {}
    for (claim,), gates in claims.group_by("claim", maintain_order=True):
        state, share = stands(gates.select("kind", "verdict").iter_rows())
        words[str(claim)] = f"{short(state)} ({share})" if share else short(state)
    return words
