"""Two builds of one artifact: identical, equal within tolerance, moved inside intervals, or different.

Words, keys, counts and token ids must be equal. Measured numbers may differ in their last bits, which another
processor, another number of threads or a GPU changes in training and evaluation, wherever they stand: in a column of
a table, in JSON, or among words (`pipeline.audit.wording`). What was measured on models that were trained again is
another sample: a statistic that has an interval is judged by whether the two intervals overlap. A theory check, or a
claim without an interval, says on which side of its bound a number lies: it is judged beside that bound.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.audit import hashing, wording
from pipeline.audit.wording import RESIDUAL
from pipeline.errors import SandglassError
from pipeline.kit.verdicts import UNTESTED
from pipeline.store import checkpoints, tables

IDENTICAL, WITHIN, DIFFERENT, NOT_COMPARED = "identical", "within tolerance", "different", "not compared"
INSIDE = "moved inside intervals"  # or on the same side of a bound
IN_INTERVAL, BY_BOUND = "inside their intervals", "on the same side of their bounds"
STATES = (DIFFERENT, NOT_COMPARED, INSIDE, WITHIN, IDENTICAL)  # worst first


@dataclass(frozen=True)
class Tolerance:
    """The largest difference, as a share of a value, at which it counts as the same number.

    ``retrained`` says that other models were measured, so that intervals decide where there are some.
    """

    share: float
    reason: str
    retrained: bool = False


ROUNDING = Tolerance(
    1e-5,
    "the same models were evaluated; another processor or thread count changes the last bits of single "
    "precision (measured over all tables of dyck with and without AVX: up to 8e-7)",
)
TRAINING = Tolerance(
    0.05,
    "training was repeated; on another processor rounding grows with every step (measured over 1,200 steps of "
    "dyck-standard with and without AVX: the median loss parts by 0.3 %, a single replica's by 2 %)",
    retrained=True,
)
# A value near zero is the difference of larger ones: it is judged by this share of the column's largest.
NEAR_ZERO = 1e-3
# A bound of at most this asks for zero up to rounding, and a hundredth of such a bound is zero.
ZERO_BOUND, ZERO = 1e-6, 1e-2
# A check, or a claim without an interval, may move this far on the same side of its bound, as a share of its value or
# of the bound. Between processors of two makers checks moved by up to 5.4 % of the value, where ties are broken, and
# by 2.5 % of the bound, where a minimum is flat.
OF_VALUE, OF_BOUND = 0.1, 0.05
POINTS = ("value", "mean", "variation_mean", "error", "ratio")  # columns that ``lo`` and ``hi`` belong to
# Columns, and keys of a chart, whose words carry results; any other text is a name, and must be equal.
PROSE = {"description", "title", "subtitle", "text", "reason", "detail", "excluded_reason"}
LABELS = ("contrast", "quantity", "run", "arm", "model")  # columns that name a row

_DATA_NAME = re.compile(r"\bdata-[0-9a-f]{32}\b")  # altair names a data set by a hash of its rows
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """``state`` is one of STATES, ``text`` says more: what is unlike, or what moved inside its interval or bound.

    ``difference`` is the largest in any ``column``, as a share of the value (of a checkpoint: of the largest); what
    moved inside intervals or bounds is left out of it.
    """

    path: str
    state: str
    text: str = ""
    column: str | None = None
    difference: float | None = None
    tolerance: float | None = None
    reason: str | None = None


class _UnlikeError(Exception):
    """Something that has to be equal is not."""


def compare(
    path: Path, ours: Path, rebuilt: Path, tolerance: Tolerance, recorded: str | None = None, claim: str | None = None
) -> Comparison:
    """Compare the artifact ``path``, as it lies below the folder ``ours``, with that made again below ``rebuilt``.

    ``recorded`` is its md5 in dvc.lock: a picture that differs is judged by its data only if it is the
    picture that was recorded. Of a claims table ``claim`` alone decides, if it is given.
    """
    here, remake = ours / path, rebuilt / path
    if not here.is_file():
        return Comparison(str(path), NOT_COMPARED, "not here: there is nothing to compare with")
    if here.read_bytes() == remake.read_bytes():
        return Comparison(str(path), IDENTICAL)
    judge = _Judge(tolerance, claim)
    try:
        if path.suffix in (".svg", ".png"):
            return _picture(path, ours, rebuilt, tolerance, recorded)
        _READERS[path.suffix](judge, here, remake)
        return judge.comparison(path)
    except (_UnlikeError, SandglassError) as error:
        return Comparison(str(path), DIFFERENT, str(error))
    except KeyError:
        return Comparison(str(path), DIFFERENT, "other bytes (a file of this kind is compared by bytes only)")
    except (ValueError, OSError, pl.exceptions.PolarsError) as error:
        return Comparison(str(path), DIFFERENT, f"cannot be read: {' '.join(str(error).split())}")


class _Judge:
    """What is apart in one artifact: of each column the largest share, and what moved inside intervals or bounds."""

    def __init__(self, tolerance: Tolerance, claim: str | None) -> None:
        """Take what counts as the same number, and the claim that was asked for, if one was."""
        self.tolerance, self.claim = tolerance, claim
        self.shares: dict[str, tuple[float, str]] = {}  # with an example, where a number stands among others
        # What moved further than the tolerance, by how it did, and how far.
        self.moved: dict[str, dict[str, float]] = {IN_INTERVAL: {}, BY_BOUND: {}}
        self.pairs: list[tuple[float, float]] = []  # of statistics that moved: words may print them
        self.equal = "the same values in other bytes"
        self.note = ""

    def comparison(self, path: Path) -> Comparison:
        """Return what the artifact comes to."""
        column = max(self.shares, key=lambda name: self.shares[name][0], default="")
        worst, text = self.shares.get(column, (0.0, ""))
        moved = "; ".join(
            f"{len(names)} moved {how}: {_some(sorted(names, key=names.__getitem__, reverse=True))}"
            for how, names in self.moved.items()
            if names
        )
        if worst > self.tolerance.share:
            state = DIFFERENT
        elif moved:
            state, text = INSIDE, moved
        else:
            state, text = WITHIN, "" if worst else self.equal
        text = "; ".join(filter(None, (text, self.note)))
        return Comparison(str(path), state, text, column, worst, self.tolerance.share, self.tolerance.reason)

    def _keep(self, name: str, share: float, text: str = "") -> None:
        if share >= self.shares.get(name, (0.0, ""))[0]:
            self.shares[name] = share, text

    def numbers(self, name: str, here: np.ndarray, remake: np.ndarray, beside: float = 0.0) -> None:
        """Compare a column, each number as a share of the larger one or, if that is larger, of ``beside``."""
        self._keep(name, _share(name, here, remake, beside))

    def statistic(self, label: str, names: Sequence[str], here: Row, remake: Row) -> bool:
        """Compare a value and the ends of its interval in one row; return whether it moved, inside its interval."""
        ours, rebuilt = ([row[name] for name in names] for row in (here, remake))
        where = f"{label}: {names[0]}"
        if any((a is None) != (b is None) for a, b in zip(ours, rebuilt, strict=True)):
            raise _UnlikeError(f"{where} is {_values(ours)} here, {_values(rebuilt)} rebuilt")
        shares = _shares(where, _array(ours), _array(rebuilt))
        worst = float(shares.max(initial=0.0))
        text = f"{where} {_values(ours)} here, {_values(rebuilt)} rebuilt"
        if worst > self.tolerance.share and self.tolerance.retrained and _overlap(ours[-2:], rebuilt[-2:]):
            self.move(f"{label} {_values(ours)} → {_values(rebuilt)}", float(shares[0]))
            self.pairs += [pair for pair in zip(ours, rebuilt, strict=True) if None not in pair]
            return True
        self._keep(names[int(shares.argmax())], worst, text)
        return False

    def bounded(self, label: str, name: str, here: float | None, remake: float | None, bound: float) -> None:
        """Compare a number that lies on the same side of a bound, which is this far from zero."""
        if here is None or remake is None:
            if here is not remake:
                raise _UnlikeError(f"{label}: {name} is {_values([here])} here, {_values([remake])} rebuilt")
            return
        zero = ZERO * bound if 0 < bound <= ZERO_BOUND else RESIDUAL
        share = _share(f"{label}: {name}", np.array([here]), np.array([remake]), zero=zero)
        if share <= self.tolerance.share:
            self._keep(name, share)
        elif abs(here - remake) <= max(OF_VALUE * max(abs(here), abs(remake)), OF_BOUND * bound):
            self.move(f"{label} {here:.4g} → {remake:.4g}", share, BY_BOUND)
        else:
            self._keep(name, share, f"{label}: {name} {here:.4g} here, {remake:.4g} rebuilt")

    def move(self, label: str, share: float = 0.0, how: str = IN_INTERVAL) -> None:
        """Note what moved further than the tolerance, and how far; by default inside its interval."""
        self.moved[how][label] = max(share, self.moved[how].get(label, 0.0))

    def text(
        self, name: str, here: str, remake: str, pairs: Iterable[tuple[float, float]] = (), where: str = ""
    ) -> None:
        """Compare two texts: their words must be equal, their numbers are judged as numbers.

        Numbers that print one of ``pairs`` are judged where that stands.
        """
        if here == remake:
            return
        ours, rebuilt = wording.read(here), wording.read(remake)
        if ours.words != rebuilt.words:
            raise _UnlikeError(f"{name} differs{where}: {_apart(here, remake)}")
        free = self._intervals(name, ours, rebuilt) if self.tolerance.retrained else set()
        self.equal = "the same values, to rounding or to the last digit that is printed"
        known = [*pairs, *self.pairs]
        for i, (a, b) in enumerate(zip(ours.numbers, rebuilt.numbers, strict=True)):
            share = 0.0 if i in free else a.share(b)
            if share > self.tolerance.share and any(a.prints(u) and b.prints(v) for u, v in known):
                share = 0.0
            if share and a.whole and b.whole:
                raise _UnlikeError(f"{name} differs{where}: {_apart(here, remake)}")
            self._keep(name, share, f"{ours.printed[i]} here, {rebuilt.printed[i]} rebuilt{where}")

    def _intervals(self, name: str, ours: wording.Wording, rebuilt: wording.Wording) -> set[int]:
        """Return which numbers of two texts are a value that moved, with its interval."""
        free: set[int] = set()
        for three in sorted({*ours.intervals} & {*rebuilt.intervals}):
            shares = [ours.numbers[i].share(rebuilt.numbers[i]) for i in three]
            values, others = ([text.numbers[i].value for i in three] for text in (ours, rebuilt))
            if max(shares) > self.tolerance.share and _overlap(values[1:], others[1:]):
                self.move(f"{name} {_values(values)} → {_values(others)}", shares[0])
                free |= {*three}
        return free


def _share(name: str, here: np.ndarray, remake: np.ndarray, beside: float = 0.0, zero: float = RESIDUAL) -> float:
    """Return the largest difference, as a share of the value that it is in, or of the value ``beside``."""
    if here.shape != remake.shape:
        raise _UnlikeError(f"{name} has the shape {here.shape} here, {remake.shape} rebuilt")
    return float(_shares(name, here, remake, beside, zero).max(initial=0.0))


def _shares(name: str, here: np.ndarray, remake: np.ndarray, beside: float = 0.0, zero: float = RESIDUAL) -> np.ndarray:
    """Return each difference as a share of the larger number.

    One near zero is judged beside the largest of all, and all beside the value ``beside`` if that is larger. Numbers
    of which none is larger than ``zero`` are equal.
    """
    odd = ~np.isfinite(here) | ~np.isfinite(remake)
    if not np.array_equal(here[odd], remake[odd], equal_nan=True):
        raise _UnlikeError(f"{name} is not defined in other places")
    here, remake = (np.where(odd, 0.0, each) for each in (here, remake))
    values = np.maximum(np.abs(here), np.abs(remake))
    largest = values.max(initial=0.0)
    if largest <= zero:
        return np.zeros(here.shape)
    scale = np.maximum(values, max(NEAR_ZERO * largest, beside))
    shares: np.ndarray = np.abs(here - remake) / scale
    return shares


# --- tables ---------------------------------------------------------------------------------------


def _table(judge: _Judge, here: Path, remake: Path) -> None:
    for path in (here, remake):
        tables.read_metadata(path)  # refuses a damaged file
    if tables.read_metadata(here) != tables.read_metadata(remake):
        raise _UnlikeError("the entries of the footer differ")
    ours, rebuilt = pl.read_parquet(here), pl.read_parquet(remake)
    if ours.schema != rebuilt.schema:
        odd = {name for name, _ in set(ours.schema.items()) ^ set(rebuilt.schema.items())}
        raise _UnlikeError(f"the columns differ: {_shortened(', '.join(sorted(odd)))}")
    if ours.height != rebuilt.height:
        raise _UnlikeError(f"{ours.height} rows here, {rebuilt.height} rebuilt")
    if {"claim", "gate", "verdict"} <= {*ours.columns}:
        _gates(judge, ours, rebuilt)
    elif {"check", "measured", "bound"} <= {*ours.columns}:
        _checks(judge, ours, rebuilt)
    else:
        _columns(judge, ours, rebuilt)


def _columns(judge: _Judge, ours: pl.DataFrame, rebuilt: pl.DataFrame) -> None:
    floats = [name for name in ours.columns if ours.schema[name].is_float()]
    prose = [name for name in ours.columns if name in PROSE and ours.schema[name] == pl.String]
    statistics = _statistics(floats)
    by_row = {name for names in statistics for name in names}
    # What has to be equal first: a difference there is the better explanation.
    for name in sorted({*ours.columns} - {*prose, *floats}, key=ours.columns.index):
        _series(judge, name, ours[name], rebuilt[name])
    for name in floats:
        if name not in by_row:
            _series(judge, name, ours[name], rebuilt[name])
    for i, (here, remake) in enumerate(_rows(ours, rebuilt) if statistics else ()):
        for names in statistics:
            judge.statistic(_label(here, f"row {i}"), names, here, remake)
    for name in prose:
        for i, (here, remake) in enumerate(_rows(ours, rebuilt)):
            if here[name] != remake[name]:
                pairs = _defined(*([row[each] for each in floats] for row in (here, remake)))
                judge.text(name, here[name] or "", remake[name] or "", pairs, f", first in row {i}")


def _rows(ours: pl.DataFrame, rebuilt: pl.DataFrame) -> Iterable[tuple[Row, Row]]:
    return zip(ours.iter_rows(named=True), rebuilt.iter_rows(named=True), strict=True)


def _defined(here: Iterable[Any], remake: Iterable[Any]) -> list[tuple[float, float]]:
    return [(a, b) for a, b in zip(here, remake, strict=True) if a is not None and b is not None]


def _statistics(columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return which ``columns`` are a value with the ends of its interval: ``value, lo, hi``, ``share_lo, share_hi``."""
    found = []
    for lo in columns:
        stem, hi = lo[:-2], f"{lo[:-2]}hi"
        if lo == f"{stem}lo" and hi in columns and (not stem or stem.endswith("_")):
            owners = POINTS if stem in ("", "ci_") else (stem[:-1],)
            found.append((*[name for name in columns if name in owners][:1], lo, hi))
    return found


def _gates(judge: _Judge, ours: pl.DataFrame, rebuilt: pl.DataFrame) -> None:
    """Compare gates of claims: what turned is named; of a gate that stands, the numbers."""
    turned: dict[bool, list[str]] = {True: [], False: []}  # of the claim that was asked for; of others
    rows = []
    for here, remake in _rows(ours, rebuilt):
        for name in ("claim", "gate", "params_hash"):
            _equal(name, here[name], remake[name])
        asked, label = judge.claim in (None, here["claim"]), f"{here['claim']} {here['gate']}"
        if asked:
            rows.append((label, here, remake))
        turned[asked] += [
            f"{label} {here[name]} → {remake[name]}" for name in ("verdict", "size") if here[name] != remake[name]
        ]
    if turned[True]:
        raise _UnlikeError(f"{len(turned[True])} turned: {_some(turned[True])}")
    if judge.claim:
        judge.note = f"claim {judge.claim} alone was judged"
        if turned[False]:
            judge.note += f"; of other claims {len(turned[False])} turned: {_some(turned[False])}"
    for label, here, remake in rows:
        _gate(judge, label, here, remake)


def _gate(judge: _Judge, label: str, here: Row, remake: Row) -> None:
    interval = ("value", "lo", "hi")
    ours, rebuilt = (wording.read(row["bound"]) for row in (here, remake))
    _equal(f"{label}: words of its bound", ours.words, rebuilt.words)
    bounds = [(a.value, b.value) for a, b in zip(ours.numbers, rebuilt.numbers, strict=True)]
    for before, after in bounds:
        judge.bounded(f"{label}, bound", "bound", before, after, abs(before))
    moved = False
    if any(row[end] is not None for row in (here, remake) for end in ("lo", "hi")):
        moved = judge.statistic(label, interval, here, remake)
    else:
        bound = max((abs(before) for before, _ in bounds), default=0.0)
        judge.bounded(label, "value", here["value"], remake["value"], bound)
    same = all(here[name] == remake[name] for name in interval)
    # Which models learned, and so are measured, is chance, too. Of too few for an interval a pilot is told.
    retrained = judge.tolerance.retrained
    learned = moved or (retrained and bool(here["excluded"] or remake["excluded"]))
    pilot = retrained and here["verdict"] in UNTESTED
    pairs = [*_defined(*([row[name] for name in interval] for row in (here, remake))), *bounds]
    for name, value in here.items():
        other = remake[name]
        if value == other or name in (*interval, "bound"):
            continue
        if name in ("n", "excluded") and learned:
            judge.move(f"{label} {name} {value} → {other}")
        elif (name == "replicas_needed" and not same) or (name == "reason" and moved):
            pass  # they follow from the value and its interval
        elif name == "excluded_reason" and learned and not (value and other):
            pass  # none was left out in one of the two
        elif name == "reason" and pilot and wording.read(value).words == wording.read(other).words:
            judge.move(f"{label} (not tested)")
        elif name in PROSE:
            judge.text(f"{label}: {name}", value, other, pairs)
        else:
            _equal(f"{label}: {name}", value, other)


def _checks(judge: _Judge, ours: pl.DataFrame, rebuilt: pl.DataFrame) -> None:
    """Compare theory checks: one that turned is named; of one that stands, the numbers, beside its bound."""
    rows = [(here["check"], here, remake) for here, remake in _rows(ours, rebuilt)]
    results = ("measured", "bound", "tolerance", "passed", "detail")
    for name in ours.columns:
        if name not in results:
            _equal(name, ours[name].to_list(), rebuilt[name].to_list())
    words = {True: "passed", False: "failed"}
    turned = [
        f"{label} {words[here['passed']]} → {words[remake['passed']]}"
        for label, here, remake in rows
        if here["passed"] != remake["passed"]
    ]
    if turned:
        raise _UnlikeError(f"{len(turned)} turned: {_some(turned)}")
    for label, here, remake in rows:
        bound = abs(here["bound"])
        judge.bounded(label, "measured", here["measured"], remake["measured"], bound or here["tolerance"] or 0.0)
        for name in ("bound", "tolerance"):
            judge.bounded(f"{label}, {name}", name, here[name], remake[name], bound)
        pairs = _defined(*([row["measured"], row["bound"]] for row in (here, remake)))
        judge.text(f"{label}: detail", here["detail"], remake["detail"], pairs)


def _label(row: Row, otherwise: str) -> str:
    return " ".join(str(row[name]) for name in LABELS if row.get(name) is not None) or otherwise


def _series(judge: _Judge, name: str, here: pl.Series, remake: pl.Series) -> None:
    if isinstance(here.dtype, (pl.List, pl.Array)):
        if isinstance(here.dtype, pl.List) and not here.list.len().equals(remake.list.len()):
            raise _UnlikeError(f"{name} differs in the length of its lists")
        _series(judge, name, here.explode(), remake.explode())
    elif here.dtype.is_float():
        judge.numbers(name, here.to_numpy(), remake.to_numpy())
    else:
        _equal(name, here.to_list(), remake.to_list())


def _equal(name: str, here: Any, remake: Any) -> None:
    if here == remake:
        return
    if name == "params_hash":
        raise _UnlikeError("made with other parameters (params_hash)")
    if isinstance(here, list) and len(here) == len(remake):
        row = next(i for i, pair in enumerate(zip(here, remake, strict=True)) if pair[0] != pair[1])
        raise _UnlikeError(f"{name} differs, first in row {row}: {here[row]!r} here, {remake[row]!r} rebuilt")
    raise _UnlikeError(f"{name} differs: {_shortened(here)} here, {_shortened(remake)} rebuilt")


# --- checkpoints, JSON, pictures ------------------------------------------------------------------


def _checkpoint(judge: _Judge, here: Path, remake: Path) -> None:
    (ours, header), (rebuilt, header_rebuilt) = checkpoints.read(here), checkpoints.read(remake)
    for name in sorted({*header, *header_rebuilt}):
        _equal(name, header.get(name), header_rebuilt.get(name))
    if ours.keys() != rebuilt.keys():
        raise _UnlikeError(f"the arrays differ: {_shortened(', '.join(sorted(ours.keys() ^ rebuilt.keys())))}")
    exact = [name for name, array in ours.items() if not np.issubdtype(array.dtype, np.floating)]
    for name in exact:
        if not np.array_equal(ours[name], rebuilt[name]):
            raise _UnlikeError(f"{name} differs")
    # Some directions change nothing that a model computes (a bias of all keys) and drift freely: a
    # difference is judged beside the largest weight, not beside the weight that it is in.
    weights = {name: array.astype(np.float64) for name, array in ours.items() if name not in exact}
    largest = max((np.abs(array).max(initial=0.0) for array in weights.values()), default=0.0)
    for name, array in weights.items():
        judge.numbers(name, array, rebuilt[name].astype(np.float64), beside=largest)


def _json(judge: _Judge, here: Path, remake: Path) -> None:
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    _walk(judge, "", _parse(here), _parse(remake), pairs)
    for name, values in pairs.items():
        ours, rebuilt = np.asarray(values, dtype=np.float64).T
        judge.numbers(name, ours, rebuilt)


def _parse(path: Path) -> Any:
    """Return the JSON at ``path``, data sets first, numbered in place of altair's hashes of their rows."""
    text = path.read_text(encoding="utf-8")
    value = json.loads(text)
    if isinstance(value, dict) and "datasets" in value:
        # Numbered where the charts use them: "datasets" lists them in the order of their hashes.
        used = json.dumps({key: value[key] for key in value if key != "datasets"})
        number = {name: f"data-{i}" for i, name in enumerate(dict.fromkeys(_DATA_NAME.findall(used + text)))}
        value = json.loads(_DATA_NAME.sub(lambda hit: number[hit[0]], text))
        value = {"datasets": value.pop("datasets")} | value
    return value


def _walk(
    judge: _Judge,
    name: str,
    here: Any,
    remake: Any,
    pairs: dict[str, list[tuple[float, float]]],
    beside: Iterable[tuple[float, float]] = (),
) -> None:
    """Collect the numbers of two JSON values by path, elements of a list under one name.

    ``beside`` are the numbers in the same row.
    """
    if isinstance(here, dict) and isinstance(remake, dict):
        if here.keys() != remake.keys():
            odd = ", ".join(sorted(here.keys() ^ remake.keys()))
            raise _UnlikeError(f"{name or 'the file'} differs in its keys: {_shortened(odd)}")
        numbers = [key for key in here if _is_number(here[key]) and _is_number(remake[key])]
        floats = [key for key in numbers if isinstance(here[key], float) or isinstance(remake[key], float)]
        row = _defined(*([each[key] for key in floats] for each in (here, remake)))
        by_row = set()
        for names in _statistics(numbers):
            if {*names} & {*floats}:
                judge.statistic(_label(here, name), names, here, remake)
                by_row |= {*names}
        for key in here:
            if key not in by_row:
                _walk(judge, f"{name}.{key}".lstrip("."), here[key], remake[key], pairs, row)
    elif isinstance(here, list) and isinstance(remake, list) and len(here) == len(remake):
        for ours, rebuilt in zip(here, remake, strict=True):
            _walk(judge, name, ours, rebuilt, pairs)
    elif isinstance(here, float) or isinstance(remake, float):
        if not _is_number(here) or not _is_number(remake):
            raise _UnlikeError(f"{name} is {_shortened(here)} here, {_shortened(remake)} rebuilt")
        pairs[name].append((here, remake))
    elif isinstance(here, str) and isinstance(remake, str) and name.rpartition(".")[2] in PROSE:
        judge.text(name, here, remake, beside)
    else:
        _equal(name, here, remake)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_READERS: dict[str, Callable[[_Judge, Path, Path], None]] = {
    ".parquet": _table,
    ".safetensors": _checkpoint,
    ".json": _json,
}


def _picture(path: Path, ours: Path, rebuilt: Path, tolerance: Tolerance, recorded: str | None) -> Comparison:
    """Compare not pixels or strokes but what they show, and check that this is the recorded picture.

    Every stroke and every number in a picture is drawn from its specification and the data in it, which are compared
    by number; that the picture here is drawn from them is what `audit` finds by drawing it again.
    """
    if hashing.md5(ours / path) != recorded:
        return Comparison(str(path), DIFFERENT, "other bytes, and not the picture that dvc.lock records")
    shown = [path.with_name(f"{path.name.split('.')[0]}.{suffix}") for suffix in ("parquet", "vl.json")]
    judged = [compare(each, ours, rebuilt, tolerance) for each in shown]
    worst = min(judged, key=lambda each: STATES.index(each.state))
    by = f"other bytes; judged by its data and specification, {shown[0].name} and {shown[1].name}"
    if worst.state == IDENTICAL:
        return Comparison(str(path), WITHIN, f"{by}, which are identical: drawn by other software or hardware")
    text = f"{by}: {worst.text}" if worst.text else by
    return Comparison(str(path), worst.state, text, worst.column, worst.difference, worst.tolerance, worst.reason)


# --- words ----------------------------------------------------------------------------------------


def _array(values: Sequence[float | None]) -> np.ndarray:
    return np.array([math.nan if each is None else each for each in values])


def _overlap(here: Sequence[Any], remake: Sequence[Any]) -> bool:
    """Return whether two intervals, each a lower and an upper end, have a point in common."""
    if not all(each is not None and math.isfinite(each) for each in (*here, *remake)):
        return False
    return max(here[0], remake[0]) <= min(here[1], remake[1])


def _some(names: Sequence[str], shown: int = 3) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


def _values(values: Sequence[float | None]) -> str:
    """Return a value, with its interval if there is one: ``0.21 [-0.55, 0.73]``."""
    texts = ["none" if each is None else f"{each:.4g}" for each in values]
    return texts[0] if len(texts) == 1 else f"{' '.join(texts[:-2])} [{', '.join(texts[-2:])}]".strip()


def _apart(here: str, remake: str, around: int = 25) -> str:
    """Return two texts where they first differ."""
    pairs = enumerate(zip(here, remake, strict=False))
    first = next((i for i, (a, b) in pairs if a != b), min(len(here), len(remake)))
    start = max(0, first - around)
    cuts = [
        f"{'…' if start else ''}{text[start : first + around]}{'…' if len(text) > first + around else ''}"
        for text in (here, remake)
    ]
    return f"{cuts[0]} here, {cuts[1]} rebuilt"


def _shortened(value: Any, length: int = 60) -> str:
    text = str(value)
    return text if len(text) <= length else f"{text[:length]}…"
