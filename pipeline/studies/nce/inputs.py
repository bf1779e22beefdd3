"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import SandglassError
from pipeline.languages import digits
from pipeline.studies.nce.names import DIGITS, MNIST

if TYPE_CHECKING:
    from torch import Tensor

SOURCES = {DIGITS: "bundled", MNIST: "mnist"}


def encode(entry: dict[str, Any], *images: ArrayLike) -> NDArray[np.float32]:
    """Return what the model of a run reads for images of D pixels, (B, D).

    The pixels are integers, row by row or flat.

    In training a pixel lies anywhere within its level (`pipeline.languages.digits.dequantised`), here in the middle.

    Raises SandglassError for what is no image of the run's dataset, strings for instance.

    >>> encode({"dataset": "nce-digits", "logit_alpha": 0.01}, [[0, 8], [16, 8]]).astype(float).round(2).tolist()
    [[-3.21, 0.0, 3.21, 0.0]]
    """
    levels = digits.LEVELS[SOURCES[entry["dataset"]]]
    if not images:
        raise SandglassError("nothing to encode: give one image or more")
    flat = [np.asarray(image).reshape(-1) for image in images]
    sizes = {len(pixels) for pixels in flat}
    integers = all(np.issubdtype(pixels.dtype, np.integer) for pixels in flat)
    if not integers or len(sizes) > 1 or any(((p < 0) | (p >= levels)).any() for p in flat):
        shown = ", ".join(repr(image) if isinstance(image, str) else "an array" for image in images[:3])
        raise SandglassError(
            f"cannot encode {shown}: models of this run read images of one size, with pixels from 0 to {levels - 1} as "
            f"in column 'pixels' of dataset {entry['dataset']}"
        )
    inside = entry["logit_alpha"] + (1 - 2 * entry["logit_alpha"]) * (np.stack(flat) + 0.5) / levels
    return (np.log(inside) - np.log1p(-inside)).astype(np.float32)


def checked(spec: Any, images: Tensor) -> Tensor:
    """Return ``images`` as a model of the shape ``spec`` reads them. Raises SandglassError if they are not (B, D)."""
    if images.ndim != 2 or images.shape[1] != spec.side**2 or not images.is_floating_point():
        raise SandglassError(
            f"images must be real numbers of shape (B, {spec.side**2}), as encode gives them, "
            f"got {images.dtype} of shape {tuple(images.shape)}"
        )
    return images


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for: a model of this study has one, which is no symbol.

    >>> labels({}, 1)
    ['log-ratio of the densities of images and noise']
    """
    return ["log-ratio of the densities of images and noise"]
