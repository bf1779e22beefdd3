"""Two builds of one artifact: identical, equal within tolerance, or different.

Text, keys, counts and token ids must be equal; measured numbers may differ in their last bits, which
another processor, another number of threads or a GPU changes in training and evaluation.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.audit import hashing
from pipeline.errors import SandglassError
from pipeline.store import checkpoints, tables

IDENTICAL, WITHIN, DIFFERENT, NOT_COMPARED = "identical", "within tolerance", "different", "not compared"
STATES = (DIFFERENT, NOT_COMPARED, WITHIN, IDENTICAL)  # worst first


@dataclass(frozen=True)
class Tolerance:
    """The largest difference, as a share of a value, at which it counts as the same number."""

    share: float
    reason: str


ROUNDING = Tolerance(
    1e-5,
    "the same models were evaluated; another processor or thread count changes the last bits of single "
    "precision (measured over all tables of dyck with and without AVX: up to 8e-7)",
)
TRAINING = Tolerance(
    0.05,
    "training was repeated; on another processor rounding grows with every step (measured over 1,200 steps of "
    "dyck-standard with and without AVX: the median loss parts by 0.3 %, a single replica's by 2 %)",
)
# A value near zero is the difference of larger ones: it is judged by this share of the column's largest.
NEAR_ZERO = 1e-3

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")
_DATA_NAME = re.compile(r"\bdata-[0-9a-f]{32}\b")  # altair names a data set by a hash of its rows


@dataclass(frozen=True)
class Comparison:
    """``difference`` is the largest in any ``column``, as a share of the value (of a checkpoint: of the largest)."""

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
    path: Path, ours: Path, rebuilt: Path, tolerance: Tolerance, recorded: str | None = None
) -> Comparison:
    """Compare the artifact ``path``, as it lies below the folder ``ours``, with that made again below ``rebuilt``.

    ``recorded`` is its md5 in dvc.lock: a picture that differs is judged by its data only if it is the
    picture that was recorded.
    """
    here, remake = ours / path, rebuilt / path
    if not here.is_file():
        return Comparison(str(path), NOT_COMPARED, "not here: there is nothing to compare with")
    if here.read_bytes() == remake.read_bytes():
        return Comparison(str(path), IDENTICAL)
    try:
        if path.suffix in (".svg", ".png"):
            return _picture(path, ours, rebuilt, tolerance, recorded)
        return _judge(path, _READERS[path.suffix](here, remake), tolerance)
    except (_UnlikeError, SandglassError) as error:
        return Comparison(str(path), DIFFERENT, str(error))
    except KeyError:
        return Comparison(str(path), DIFFERENT, "other bytes (a file of this kind is compared by bytes only)")
    except (ValueError, OSError, pl.exceptions.PolarsError) as error:
        return Comparison(str(path), DIFFERENT, f"cannot be read: {' '.join(str(error).split())}")


Shares = Iterator[tuple[str, float]]  # columns, each with its largest difference as a share of the value


def _judge(path: Path, shares: Shares, tolerance: Tolerance) -> Comparison:
    column, worst = max(shares, key=lambda share: share[1], default=("", 0.0))
    state = WITHIN if worst <= tolerance.share else DIFFERENT
    text = "" if worst else "the same values in other bytes"
    return Comparison(str(path), state, text, column, worst, tolerance.share, tolerance.reason)


def _share(name: str, here: np.ndarray, remake: np.ndarray, beside: float | None = None) -> float:
    """Return the largest difference, as a share of the value that it is in, or of the value ``beside``."""
    if here.shape != remake.shape:
        raise _UnlikeError(f"{name} has the shape {here.shape} here, {remake.shape} rebuilt")
    odd = ~np.isfinite(here) | ~np.isfinite(remake)
    if not np.array_equal(here[odd], remake[odd], equal_nan=True):
        raise _UnlikeError(f"{name} is not defined in other places")
    here, remake = here[~odd], remake[~odd]
    if np.array_equal(here, remake):
        return 0.0
    values = np.maximum(np.abs(here), np.abs(remake))
    return float(np.max(np.abs(here - remake) / (beside or np.maximum(values, NEAR_ZERO * values.max()))))


def _table(here: Path, remake: Path) -> Shares:
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
    # What has to be equal first: a difference there is the better explanation.
    for name in sorted(ours.columns, key=lambda name: ours.schema[name].is_float()):
        yield from _series(name, ours[name], rebuilt[name])


def _series(name: str, here: pl.Series, remake: pl.Series) -> Shares:
    if isinstance(here.dtype, (pl.List, pl.Array)):
        if isinstance(here.dtype, pl.List) and not here.list.len().equals(remake.list.len()):
            raise _UnlikeError(f"{name} differs in the length of its lists")
        yield from _series(name, here.explode(), remake.explode())
    elif here.dtype.is_float():
        yield name, _share(name, here.to_numpy(), remake.to_numpy())
    elif name == "reason":  # of a verdict: its numbers stand, unrounded, in columns of their own
        _equal(name, *([_NUMBER.sub("#", text) for text in each] for each in (here, remake)))
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


def _checkpoint(here: Path, remake: Path) -> Shares:
    (ours, header), (rebuilt, header_rebuilt) = checkpoints.read(here), checkpoints.read(remake)
    for name in sorted({*header, *header_rebuilt}):
        _equal(name, header.get(name), header_rebuilt.get(name))
    if ours.keys() != rebuilt.keys():
        raise _UnlikeError(
            f"the arrays differ: {_shortened(', '.join(sorted(ours.keys() ^ rebuilt.keys())))}"
        )
    exact = [name for name, array in ours.items() if not np.issubdtype(array.dtype, np.floating)]
    for name in exact:
        if not np.array_equal(ours[name], rebuilt[name]):
            raise _UnlikeError(f"{name} differs")
    # Some directions change nothing that a model computes (a bias of all keys) and drift freely: a
    # difference is judged beside the largest weight, not beside the weight that it is in.
    weights = {name: array.astype(np.float64) for name, array in ours.items() if name not in exact}
    largest = max((np.abs(array).max(initial=0.0) for array in weights.values()), default=0.0)
    for name, array in weights.items():
        yield name, _share(name, array, rebuilt[name].astype(np.float64), beside=largest)


def _json(here: Path, remake: Path) -> Shares:
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    _walk("", _parse(here), _parse(remake), pairs)
    for name, values in pairs.items():
        ours, rebuilt = np.asarray(values, dtype=np.float64).T
        yield name, _share(name, ours, rebuilt)


def _parse(path: Path) -> Any:
    """Return the JSON at ``path``, data sets numbered in place of altair's hashes of their rows."""
    text = path.read_text(encoding="utf-8")
    value = json.loads(text)
    if isinstance(value, dict) and "datasets" in value:
        # Numbered where the charts use them: "datasets" lists them in the order of their hashes.
        used = json.dumps({key: value[key] for key in value if key != "datasets"})
        number = {name: f"data-{i}" for i, name in enumerate(dict.fromkeys(_DATA_NAME.findall(used + text)))}
        value = json.loads(_DATA_NAME.sub(lambda hit: number[hit[0]], text))
    return value


def _walk(name: str, here: Any, remake: Any, pairs: dict[str, list[tuple[float, float]]]) -> None:
    """Collect the numbers of two JSON values by path, elements of a list under one name."""
    if isinstance(here, dict) and isinstance(remake, dict):
        if here.keys() != remake.keys():
            odd = ", ".join(sorted(here.keys() ^ remake.keys()))
            raise _UnlikeError(f"{name or 'the file'} differs in its keys: {_shortened(odd)}")
        for key in here:
            _walk(f"{name}.{key}".lstrip("."), here[key], remake[key], pairs)
    elif isinstance(here, list) and isinstance(remake, list) and len(here) == len(remake):
        for ours, rebuilt in zip(here, remake, strict=True):
            _walk(name, ours, rebuilt, pairs)
    elif isinstance(here, float) or isinstance(remake, float):
        if not isinstance(here, (int, float)) or not isinstance(remake, (int, float)):
            raise _UnlikeError(f"{name} is {_shortened(here)} here, {_shortened(remake)} rebuilt")
        pairs[name].append((here, remake))
    else:
        _equal(name, here, remake)


_READERS: dict[str, Callable[[Path, Path], Shares]] = {
    ".parquet": _table,
    ".safetensors": _checkpoint,
    ".json": _json,
}


def _picture(path: Path, ours: Path, rebuilt: Path, tolerance: Tolerance, recorded: str | None) -> Comparison:
    """Compare not pixels or strokes but what they show, and check that this is the recorded picture."""
    if hashing.md5(ours / path) != recorded:
        return Comparison(str(path), DIFFERENT, "other bytes, and not the picture that dvc.lock records")
    shown = [path.with_name(f"{path.name.split('.')[0]}.{suffix}") for suffix in ("parquet", "vl.json")]
    judged = [compare(each, ours, rebuilt, tolerance) for each in shown]
    worst = min(judged, key=lambda each: STATES.index(each.state))
    by = f"other bytes; judged by its data and specification, {shown[0].name} and {shown[1].name}"
    if worst.state == IDENTICAL:
        return Comparison(
            str(path), WITHIN, f"{by}, which are identical: drawn by other software or hardware"
        )
    text = f"{by}: {worst.text}" if worst.text else by
    return Comparison(
        str(path), worst.state, text, worst.column, worst.difference, worst.tolerance, worst.reason
    )


def _shortened(value: Any, length: int = 60) -> str:
    text = str(value)
    return text if len(text) <= length else f"{text[:length]}…"
