"""Verdicts on published claims: computed from what was measured, never typed.

A `Gate` is one testable piece of a claim: a measurement and the conditions that it has to meet. Two questions are
answered apart. *The effect*: the verdict says whether what is claimed (a direction, an order, a bound) holds, fails, is
undecided because the interval of the measurement reaches across a bar, or was not tested. *The size*: whether the
number that the source prints lies inside our interval. What kind of statement a gate tests (`schemas.claims.KINDS`)
stands beside both, and is never mixed in a count.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from pipeline.errors import SandglassError
from schemas.claims import (
    CEILING,
    CONTRADICTED,
    CORRECTED,
    FAILS,
    FLOOR,
    HOLDS,
    IN_PART,
    INSIDE,
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

_NAMES = {"value": "value", "lo": "lower end", "hi": "upper end"}
_RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Measured:
    """A value, its interval, and the replicas behind it; null and NaN mean that it is not defined."""

    value: float | None
    lo: float | None = None
    hi: float | None = None
    n: int | None = None
    excluded: int = 0
    excluded_reason: str = ""

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


@dataclass(frozen=True)
class Condition:
    """``Condition("hi", "<", 0.5)``: the upper end of the interval is below 0.5."""

    what: str  # value, lo or hi
    comparison: str  # <, <=, > or >=
    bound: float

    def holds(self, measured: Measured) -> bool:
        """Return whether the number meets the bound; False where the number is not defined."""
        number = getattr(measured, self.what)
        return defined(number) and bool(_OPERATORS[self.comparison](number, self.bound))

    def verdict(self, measured: Measured) -> str:
        """Return whether the bound is met by the whole interval, by none of it, or undecided by a part of it.

        Without an interval the value alone decides. A number that is not defined fails, and so does an interval of
        which an end is not.
        """
        if measured.is_broken or not (defined(measured.value) and defined(getattr(measured, self.what))):
            return FAILS
        numbers = [number for number in (measured.value, measured.lo, measured.hi) if number is not None]
        meets = _OPERATORS[self.comparison]
        met = {bool(meets(number, self.bound)) for number in numbers}
        return UNDECIDED if len(met) == 2 else HOLDS if met == {True} else FAILS

    def replicas(self, measured: Measured) -> float:
        """Return how many replicas would make an interval short enough not to reach across the bound.

        The half of the interval that reaches across shrinks as one over the square root of their number; infinite
        where the value is the bound.
        """
        value = math.nan if measured.value is None else measured.value
        end = measured.lo if self.bound < value else measured.hi
        distance, half = abs(value - self.bound), abs(value - (math.nan if end is None else end))
        return (measured.n or 0) * (half / distance) ** 2 if distance else math.inf

    @property
    def text(self) -> str:
        """Return the condition as the column ``bound`` shows it, for instance ``upper end < 0.5``."""
        return f"{_NAMES[self.what]} {self.comparison} {self.bound:.4g}"

    def describe(self, measured: Measured) -> str:
        """Return what was found, for instance ``upper end 0.31 < 0.5``, ``value 0.62, not < 0.5``, or
        ``the interval 0.4 to 0.6 reaches across 0.5``."""
        number, name = getattr(measured, self.what), _NAMES[self.what]
        if not defined(number):
            return f"{name} not defined"
        if measured.is_broken:
            return "interval not defined"
        relation = f"{self.comparison} {self.bound:.4g}"
        if self.verdict(measured) == UNDECIDED:
            return f"the interval {measured.lo:.4g} to {measured.hi:.4g} reaches across {self.bound:.4g}"
        return (
            f"{name} {number:.4g} {relation}"
            if self.holds(measured)
            else f"{name} {number:.4g}, not {relation}"
        )


class TooFew(str):
    """The reason why a gate has nothing to test: it was measured, on fewer models than a verdict needs."""


def defined(number: float | None) -> bool:
    """Return whether ``number`` is neither None nor NaN."""
    return number is not None and not math.isnan(number)


def in_words(conditions: Iterable[Condition]) -> str:
    """Return what the conditions ask for in words, so that no bar stands in a sentence beside the one that decides.

    >>> in_words(at_least(0.97)), in_words(within(1.0, 0.2)), in_words((Condition("hi", "<", 0),))
    ('at least 0.97', '0.8 to 1.2', 'below 0 with its whole interval')
    >>> in_words(within(3, 0)), in_words(within(0.6931, 1e-9))
    ('exactly 3', '0.6931 ± 1e-09')
    """
    words: list[str] = []
    asked = list(dict.fromkeys(conditions))
    low = [each for each in asked if each.what == "value" and each.comparison == ">="]
    high = [each for each in asked if each.what == "value" and each.comparison == "<="]
    if len(low) == len(high) == 1 and low[0].bound <= high[0].bound:
        words.append(_range(low[0].bound, high[0].bound))
        asked = [each for each in asked if each not in (low[0], high[0])]
    whole = {(each.comparison, each.bound) for each in asked if each.what != "value"}
    values = {(each.comparison, each.bound) for each in asked if each.what == "value"}
    for each in asked:
        with_interval = (each.comparison, each.bound) in whole
        if each.what == "value" or (each.comparison, each.bound) not in values:
            text = f"{_RELATIONS[each.comparison]} {each.bound:.4g}"
            words.append(f"{text} with its whole interval" if with_interval else text)
    return " and ".join(words)


def _range(low: float, high: float) -> str:
    ends = f"{low:.4g}", f"{high:.4g}"
    if ends[0] != ends[1]:
        return " to ".join(ends)
    return f"{(low + high) / 2:.4g} ± {(high - low) / 2:.1g}" if low < high else f"exactly {ends[0]}"


def within(center: float, tolerance: float) -> tuple[Condition, Condition]:
    """Return the conditions that the value lies within ``center`` ± ``tolerance``."""
    return Condition("value", ">=", center - tolerance), Condition("value", "<=", center + tolerance)


def above(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is above ``bar``."""
    return (Condition("value", ">", bar),)


def at_least(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is at least ``bar``."""
    return (Condition("value", ">=", bar),)


def below(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is below ``bar``."""
    return (Condition("value", "<", bar),)


def at_most(bar: float) -> tuple[Condition, ...]:
    """Return the condition that the value is at most ``bar``."""
    return (Condition("value", "<=", bar),)


@dataclass(frozen=True)
class Gate:
    """One row of the claims table; ``measured`` is None, with ``missing`` saying why, if there is nothing to test.

    ``measure`` says what is measured, in words without a bar: the bar is in the conditions alone. With ``stated`` it is
    the statement of a theory check, which says its bound itself. ``published`` is a number that the source prints; what
    else can be said of it, `Published` says. ``scale_needed`` is the scale from which the effect can be judged, and
    ``size_needed`` that from which the published number can be compared with ours, where that takes a larger one.
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

    @property
    def predicate(self) -> str:
        """Return what the gate asks for in words: what is measured, and the bar that decides."""
        asked = "" if self.stated else in_words(self.conditions)
        return f"{self.measure}: {asked}" if asked else self.measure

    def verdict(self, scale: str) -> tuple[str, str]:
        """Return the verdict on the effect at ``scale``, and the reason."""
        if self.measured is None:
            return (TOO_FEW if isinstance(self.missing, TooFew) else NOT_RUN), str(self.missing)
        if SCALES.index(scale) < SCALES.index(self.scale_needed):
            return NOT_RUN, f"needs scale {self.scale_needed}, this is {scale}"
        if not defined(self.measured.value):
            return FAILS, "value not defined"  # also where the conditions look at the interval alone
        by_condition = {condition: condition.verdict(self.measured) for condition in self.conditions}
        verdict = next((v for v in (FAILS, UNDECIDED) if v in by_condition.values()), HOLDS)
        reasons = [each.describe(self.measured) for each, result in by_condition.items() if result == verdict]
        return verdict, "; ".join(dict.fromkeys(reasons))

    def replicas(self, scale: str) -> int | None:
        """Return how many replicas would decide the gate, judged by the spread of those there are.

        None where it is decided, or where no number of them would tell.
        """
        if self.measured is None or self.verdict(scale)[0] != UNDECIDED:
            return None
        across = [each for each in self.conditions if each.verdict(self.measured) == UNDECIDED]
        needed = max(each.replicas(self.measured) for each in across)
        return math.ceil(round(needed, 6)) if self.measured.n and needed < MOST_REPLICAS else None

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


MOST_REPLICAS = 1_000_000  # nobody would run more
UNTESTED = (TOO_FEW, NOT_RUN)


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
        same = ("claim", "gate", "kind", "predicate", "source", "scale_needed")
        rows.append(
            {name: getattr(gate, name) for name in same}
            | {name: getattr(measured, name) for name in Measured.__dataclass_fields__}
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

    Statements of the source decide; own checks and corrected forms stand beside them, and decide where a claim has
    nothing else. Gates that were not tested say nothing, unless none was.
    """
    by_kind = _by_kind(gates)
    verdicts = next((by_kind[kind] for kind in (STATED, CORRECTED, OWN) if kind in by_kind), [])
    tested = [verdict for verdict in verdicts if verdict not in UNTESTED]
    failed, undecided = tested.count(FAILS), tested.count(UNDECIDED)
    if not tested:
        return (TOO_FEW if TOO_FEW in verdicts else NOT_RUN), ""
    if failed:
        return (CONTRADICTED if failed == len(tested) else IN_PART), _share(failed, len(tested))
    return (
        (UNDECIDED, _share(undecided, len(tested)))
        if undecided
        else (HOLDS, _share(len(tested), len(verdicts)))
    )


def beside(gates: Iterable[tuple[str, str]]) -> str:
    """Return what own checks and corrected forms say beside a claim's statements: ``own checks: 3 of 4 hold``."""
    by_kind = _by_kind(gates)
    kinds = {CORRECTED: "corrected forms", OWN: "own checks"}
    parts = []
    for kind, words in kinds.items():
        tested = [verdict for verdict in by_kind.get(kind, ()) if verdict not in UNTESTED]
        if tested and len(by_kind) > 1 and STATED in by_kind:
            parts.append(f"{words}: {tested.count(HOLDS)} of {len(tested)} hold")
    return "; ".join(parts)


def _by_kind(gates: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    by_kind: dict[str, list[str]] = {}
    for kind, verdict in gates:
        by_kind.setdefault(kind, []).append(verdict)
    return by_kind


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
