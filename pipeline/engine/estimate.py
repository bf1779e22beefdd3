"""How long what is left of a build will take: a range, learnt from what this machine took for jobs of each kind.

What each job took on the reference machine is recorded. Here it takes some other time, and the ratio of the two depends
on the kind of job: what trains keeps a core busy, what draws waits for memory and disk. So it is learnt by step and by
study, first from the builds that this machine has done before, then from this build against that: another load on the
machine moves all kinds. Of several ratios the median counts, where each job weighs what it took on the reference
machine: one job that had the machine to itself, or that only went on from where it was killed, says little. A kind of
which few jobs were seen takes over most of what is known of its step, and that of all jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

# Jobs after which what was seen counts as much as what is known around it: of all jobs, a step, a study's part of it,
# and one job, which an earlier build has done.
TRUSTED = (1.0, 3.0, 3.0, 1.0)
FARTHEST = 2.0  # logarithm of a ratio; beyond it, a job counts as this far from the others around it
UNSEEN = 0.5  # standard deviation of the logarithm of a ratio, of a kind of which nothing was seen
LEAST = 0.15  # the same at least, of a kind of which much was seen: the load of a machine changes
OVERRUN = 0.1  # what a job that should have ended still needs, as a share of what it has spent

Kind = tuple[str, ...]  # step, study and the rest of the name of a job; or the first of these
Seconds = Mapping[str, float]  # by job


def kind(name: str) -> Kind:
    """Return a job's step, its study, and itself.

    >>> kind("train-dyck-standard-copies")
    ('train', 'dyck', 'standard-copies')
    """
    return tuple(name.split("-", 2))


class Pace:
    """How many times the reference machine's seconds jobs of each kind take here."""

    def __init__(self, took: Seconds, reference: Callable[[str], float], before: Pace | None = None) -> None:
        """Learn from the jobs that ``took`` seconds here, beside what is known from ``before``."""
        self._before = before
        self._seen: dict[Kind, list[tuple[float, float]]] = {}  # logarithm of the ratio and work, by kind and above it
        self._learnt: dict[Kind, float] = {}
        for name, seconds in took.items():
            work, of = reference(name), kind(name)
            if seconds > 0 and work > 0:
                ratio = math.log(seconds / work) - (before.logarithm(of) if before else 0.0)
                for depth in range(len(of) + 1):
                    self._seen.setdefault(of[:depth], []).append((ratio, work))

    def of(self, name: str) -> float:
        """Return how many times the reference machine's seconds the job ``name`` takes here."""
        return math.exp(self.logarithm(kind(name)))

    def logarithm(self, of: Kind) -> float:
        """Return the logarithm of the ratio for a kind of job."""
        return self._shrunk(of) + (self._before.logarithm(of) if self._before else 0.0)

    def _shrunk(self, of: Kind) -> float:
        """Return what was learnt here of a kind, towards what was learnt of the kinds around it."""
        if of not in self._learnt:
            around = self._shrunk(of[:-1]) if of else 0.0
            seen = [(min(max(ratio - around, -FARTHEST), FARTHEST), work) for ratio, work in self._seen.get(of, [])]
            jobs = _effective(seen)
            self._learnt[of] = around + jobs / (jobs + TRUSTED[len(of)]) * _median(seen)
        return self._learnt[of]

    def deviation(self, of: Kind) -> float:
        """Return the standard deviation of that logarithm for a job that is left."""
        kinds = [each for each in self._seen if len(each) == 2 and each[:1] == of[:1]]
        apart = [(abs(ratio - self._shrunk(each)), work) for each in kinds for ratio, work in self._seen[each]]
        return math.hypot(max(1.48 * _median(apart), LEAST), self._unseen(of))

    def _unseen(self, of: Kind) -> float:
        """Return what of a deviation is left as long as few jobs of a kind were seen."""
        jobs = _effective(self._seen.get(of[:2], []))
        before = self._before._unseen(of) if self._before else UNSEEN
        return before * math.sqrt(TRUSTED[2] / (jobs + TRUSTED[2]))


@dataclass(frozen=True)
class Left:
    """The seconds that a build still takes: most likely, and the ends of a range that it keeps two times of three."""

    likely: float
    least: float
    most: float


def left(
    took: Seconds,
    spent: Seconds,
    waiting: Iterable[str],
    elapsed: float,
    reference: Callable[[str], float],
    before: Pace | None = None,
    recorded: Container[str] | None = None,
) -> Left:
    """Return how long a build will go on that began ``elapsed`` seconds ago.

    Of jobs that are not ``recorded`` (None: all are), ``reference`` is a guess: from them nothing is learnt. Jobs that
    are done ``took`` seconds, those at work have ``spent`` some, the others are ``waiting``. As many will run
    at a time as so far. A job at work that should have ended says that its kind takes longer.
    """

    def learnt(seconds: Seconds) -> Pace:
        known = {name: each for name, each in seconds.items() if recorded is None or name in recorded}
        return Pace(known, reference, before)

    done = learnt(took)
    late = {name: seconds for name, seconds in spent.items() if seconds > done.of(name) * reference(name)}
    pace = learnt({**took, **late})
    sums = [0.0, 0.0, 0.0]
    longest = [0.0, 0.0, 0.0]
    for name in (*spent, *waiting):
        deviation = pace.deviation(kind(name))
        for place, factor in enumerate((1.0, math.exp(-deviation), math.exp(deviation))):
            whole = factor * pace.of(name) * reference(name)
            rest = max(whole - spent[name], OVERRUN * spent[name]) if name in spent else whole
            sums[place] += rest
            longest[place] = max(longest[place], rest)
    at_once = max((sum(took.values()) + sum(spent.values())) / max(elapsed, 1.0), 1.0)
    return Left(*(max(total / at_once, most) for total, most in zip(sums, longest, strict=True)))


def _effective(values: list[tuple[float, float]]) -> float:
    """Return how many numbers of equal weight would say as much as these: one long job among short ones says it all."""
    weights = [weight for _, weight in values]
    return sum(weights) ** 2 / sum(weight**2 for weight in weights) if weights else 0.0


def _median(values: list[tuple[float, float]]) -> float:
    """Return the median of the first numbers, each as often as the second says; 0 if there are none."""
    half = sum(weight for _, weight in values) / 2
    for value, weight in sorted(values):
        half -= weight
        if half <= 0:
            return value
    return 0.0
