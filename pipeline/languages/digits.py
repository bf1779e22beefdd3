"""Images of handwritten digits as continuous vectors, and Gaussians fitted to them as noise.

Two sources of pixels: the 1797 images of 8 x 8 that come with scikit-learn (levels 0..16), and MNIST (28 x 28,
levels 0..255) from files that the user has. Integers become reals in two steps, as in Rhodes et al. 2020 ("TRE",
section 4.3 and their release, data_handlers/mnist.py): dequantised, x' = (x + u) / levels with u uniform on [0, 1),
then y = logit(a + (1 - 2a) x'), which has no edges that a Gaussian could not have.

The noise of the study is a Gaussian with the mean of the training images and either their covariance (``full``) or
its diagonal alone (``diag``, deliberately worse).
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import SandglassError

if TYPE_CHECKING:
    from jaxtyping import Float, UInt8

LEVELS = {"bundled": 17, "mnist": 256}  # values that a pixel may take

RIDGE = 1e-4  # added to the variances of ``full``: pixels that never vary leave the covariance singular

# What MNIST calls its files; with .gz as they are distributed, or without.
MNIST_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_UNSIGNED_BYTE = 0x08  # type code of the IDX format


def bundled() -> tuple[UInt8[np.ndarray, "n 64"], UInt8[np.ndarray, " n"]]:
    """Return pixels (1797, 64), 0 to 16 and row by row, and labels (1797,) of scikit-learn's digits.

    They are the test part of the UCI set of Alpaydin and Kaynak (1998); the file is part of scikit-learn.
    """
    # Takes two seconds to import, and only the dataset step needs it.
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images.astype(np.uint8), labels.astype(np.uint8)


def mnist(folder: Path, part: str) -> tuple[UInt8[np.ndarray, "n d"], UInt8[np.ndarray, " n"]]:
    """Return pixels (n, d), 0 to 255 and row by row, and labels (n,) of a ``part`` of MNIST.

    The parts are ``train`` and ``test``.

    Raises SandglassError, naming the file, if one is missing or is not what it should be.
    """
    paths = [_idx_path(folder, name) for name in MNIST_FILES[part]]
    images, labels = (read_idx(path) for path in paths)
    if images.ndim != 3 or images.shape[1] != images.shape[2]:
        raise SandglassError(f"{paths[0]}: expected square images, got an array of shape {images.shape}")
    if labels.shape != images.shape[:1]:
        raise SandglassError(f"{paths[1]}: expected one label for each of {len(images)} images, got {labels.shape}")
    if labels.size and labels.max() > 9:
        raise SandglassError(f"{paths[1]}: expected labels 0 to 9, got {labels.max()}")
    return images.reshape(len(images), -1), labels


def _idx_path(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise SandglassError(f"{folder} holds neither {name} nor {name}.gz, files of MNIST")


def read_idx(path: Path) -> UInt8[np.ndarray, ...]:
    """Return the array in an IDX file of unsigned bytes, gzipped or not.

    The file holds two zero bytes, the type, the number of axes, their sizes as big-endian 32-bit integers,
    and the values.

    Raises SandglassError if the file is damaged, or holds more or fewer values than it says.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise SandglassError(f"{path}: cannot be read ({error}); fetch MNIST again") from None
    axes = content[3] if len(content) > 3 else 0
    start = 4 + 4 * axes
    if content[:3] != bytes([0, 0, _UNSIGNED_BYTE]) or not axes or len(content) < start:
        raise SandglassError(f"{path}: is not an IDX file of unsigned bytes")
    shape = struct.unpack(f">{axes}I", content[4:start])
    if len(content) - start != math.prod(shape):
        raise SandglassError(
            f"{path}: says that it holds {math.prod(shape)} values, and holds {len(content) - start}; fetch MNIST again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def dequantised(
    pixels: UInt8[np.ndarray, "n d"], levels: int, alpha: float, rng: np.random.Generator
) -> Float[np.ndarray, "n d"]:
    """Return logit(a + (1 - 2a)(x + u) / levels) with a = ``alpha`` and u uniform on [0, 1), float64.

    ``levels`` is the largest x plus one.

    >>> middle = dequantised(np.array([[8]], np.uint8), 17, 0.01, np.random.default_rng(0))
    >>> bool(abs(middle[0, 0]) < 0.12)
    True
    """
    unit = (pixels + rng.random(pixels.shape)) / levels
    inside = alpha + (1 - 2 * alpha) * unit
    return np.log(inside) - np.log1p(-inside)


def corpus(
    pixels: UInt8[np.ndarray, "n d"],
    parts: np.ndarray,
    held_out: int,
    levels: int,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "train d"], Float[np.ndarray, "test d"]]:
    """Return the dequantised training and test images of one seed.

    Where a source has no parts of its own (``parts`` (n,) says ``any``), the images are permuted and split,
    ``held_out`` of them for the test.
    """
    order = rng.permutation(len(pixels))
    images = dequantised(pixels, levels, alpha, rng)
    split = parts[0] == "any"
    test = order[len(order) - held_out :] if split else np.flatnonzero(parts == "test")
    train = order[: len(order) - held_out] if split else np.flatnonzero(parts == "train")
    return images[train], images[test]


@dataclass(frozen=True)
class Gaussian:
    """N(mean, covariance) over images of d pixels; ``factor`` is lower triangular, factor factor^T = covariance."""

    mean: Float[np.ndarray, " d"]
    covariance: Float[np.ndarray, "d d"]
    factor: Float[np.ndarray, "d d"]


def fit(images: Float[np.ndarray, "n d"], kind: str) -> Gaussian:
    """Return the noise fitted to ``images``, a Gaussian with their mean.

    As ``full`` it has their covariance (divisor n - 1) + 1e-4 I, as ``diag`` the diagonal of that alone.

    Raises ValueError for another kind.
    """
    if kind not in ("full", "diag"):
        raise ValueError(f"no noise {kind!r}; known: full, diag")
    centred = images - images.mean(0)
    # Not np.cov: the last bits of a BLAS product depend on the number of threads.
    products = np.einsum("ni,nj->ij", centred, centred)
    covariance = products / (len(images) - 1) + RIDGE * np.eye(images.shape[1])
    if kind == "diag":
        covariance = np.diag(np.diag(covariance))
    return Gaussian(images.mean(0), covariance, np.linalg.cholesky(covariance))


def sample(
    mean: Float[np.ndarray, " d"], factor: Float[np.ndarray, "d d"], n: int, rng: np.random.Generator
) -> Float[np.ndarray, "n d"]:
    """Return ``n`` draws from N(mean, factor factor^T), in the type of ``mean``."""
    return mean + rng.standard_normal((n, len(mean)), dtype=mean.dtype) @ factor.T
