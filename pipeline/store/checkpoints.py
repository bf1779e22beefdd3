"""The one door to safetensors files: arrays and a JSON header under one checksum, written atomically.

Imports numpy and safetensors, and torch where tensors are asked for, so that the training core can use it on a bare
machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as decode
from safetensors.numpy import save as encode

from pipeline.errors import SandglassError

if TYPE_CHECKING:
    from torch import Tensor

S = TypeVar("S")

# The digest of the file with this in its place: it covers every other byte.
_BLANK = "0" * 64
_PIECE = 1 << 20


@dataclass(frozen=True)
class Ensemble(Generic[S]):
    """R trained models of the shape ``spec``: ``params`` with a leading replica axis, the ``table`` of frozen
    embeddings (empty where embeddings are trained), and the checkpoint's ``header``."""

    spec: S
    params: dict[str, Tensor]
    table: Tensor
    header: dict[str, Any]


def write(path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write ``arrays`` and ``header`` (anything JSON holds); the same content gives the same bytes."""
    metadata = {"header": json.dumps(header, sort_keys=True), "sha256": _BLANK}
    # One key: safetensors writes several in an order that is not fixed.
    blank = encode(
        {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())},
        {"sandglass": json.dumps(metadata, sort_keys=True)},
    )
    content = blank.replace(_BLANK.encode(), hashlib.sha256(blank).hexdigest().encode(), 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the header of the file at ``path``.

    Raises SandglassError if it is missing or has lost or changed a single bit.
    """
    with _told(path):
        content = path.read_bytes()
        return decode(content), _checked(io.BytesIO(content))


def header(path: Path) -> dict[str, Any]:
    """Return the header alone; the arrays are read for the checksum, piece by piece, and not held.

    Raises SandglassError if the file is missing or has lost or changed a single bit.
    """
    with _told(path), path.open("rb") as file:
        return _checked(file)


def load(path: Path, spec_class: Callable[..., S], shapes: Callable[[S], Mapping[str, tuple[int, ...]]]) -> Ensemble[S]:
    """Return the ensemble in the checkpoint of a run.

    ``spec_class`` takes the header's ``spec`` as keywords; ``shapes`` says which arrays such a model has.

    Raises SandglassError if the file is missing, damaged, or does not fit its own header.
    """
    import torch

    arrays, header = read(path)
    spec = spec_class(**header["spec"])
    check_shapes(path, arrays, shapes(spec))
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return Ensemble(spec, tensors, tensors.pop("table"), header)


def check_shapes(path: Path, arrays: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Compare the arrays of the checkpoint at ``path`` with the shapes of a model's parameters.

    Raises SandglassError for a parameter that is missing, or whose shape behind the replica axis is another.
    """
    for name, shape in shapes.items():
        if name not in arrays or arrays[name].shape[1:] != shape:
            stored_shape = arrays[name].shape[1:] if name in arrays else "nothing"
            raise SandglassError(f"checkpoint {path}: {name} has shape {stored_shape}, its header says {shape}")


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    if not path.is_file():
        raise SandglassError(f"checkpoint {path} is missing; make it with: snakemake {path}")
    try:
        yield
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise SandglassError(
            f"checkpoint {path} is truncated or damaged ({reason}); delete it and run snakemake again"
        ) from None


def _checked(file: BinaryIO) -> dict[str, Any]:
    """Return the header of an open file, read to its end, whose checksum matches."""
    size = file.read(8)
    length = int.from_bytes(size, "little")
    if length > file.seek(0, os.SEEK_END):  # a damaged length can be more than there is memory
        raise ValueError("its header is longer than the file")
    file.seek(len(size))
    head = file.read(length)
    metadata = json.loads(json.loads(head)["__metadata__"]["sandglass"])
    digest = hashlib.sha256(size + head.replace(metadata["sha256"].encode(), _BLANK.encode(), 1))
    while piece := file.read(_PIECE):
        digest.update(piece)
    if digest.hexdigest() != metadata["sha256"]:
        raise ValueError("its checksum does not match")
    return dict(json.loads(metadata["header"]))
