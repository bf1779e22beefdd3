"""A residual convolutional network for the log-ratio of two image densities, with a leading replica axis.

    g(x) = -f(x)^T W f(x) - b^T f(x) - c,     W = A A^T + 1e-3 I

(Liu 2024, section 4.1.6, after Rhodes et al. 2020), f the network and W, b, c trained with it. With ResNet-18's
widths and strides f is the thesis's model for MNIST; the stand-in for small images is three blocks wide 16, 32, 64.
f is a 3 x 3 convolution, residual blocks

    u = GN(conv(relu(GN(conv_stride(h)))));     h' = relu(shortcut(h) + u)

with a 1 x 1 convolution as shortcut where the shape changes, the mean over all pixels, and a linear map. GN is group
normalisation: the log-ratio must be a function of one image, so nothing may be shared within a batch.

R models side by side are one network of R groups: their channels stand next to each other. Names and shapes of
parameters, without the replica axis (i, o channels in and out of a block):

``stem.W`` (o, 1, 3, 3), ``stem.b`` (o,)
``blocks.{l}.conv1.W`` (o, i, 3, 3), ``blocks.{l}.conv2.W`` (o, o, 3, 3), ``blocks.{l}.shortcut.W`` (o, i, 1, 1)
``blocks.{l}.norm1.w, .b`` and ``blocks.{l}.norm2.w, .b`` (o,)
``linear.W`` (o, features), ``linear.b`` (features,)
``head.A`` (features, features), ``head.b`` (features,), ``head.c`` ()

``forward`` can record ``features``, f(x) as (R, B, features).

The frozen ``table`` (seeds, 1 + D, D) of a checkpoint is the noise q of each seed, which makes log q + g an
unnormalised log-density: its mean, then the lower triangular factor of its covariance.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints

if TYPE_CHECKING:
    from jaxtyping import Float

SMALLEST_EIGENVALUE = 1e-3  # of W
HEAD_INIT = 0.1  # A = 0.1 I at first, b = c = 0: a log-ratio near 0, noise and data alike


@dataclass(frozen=True)
class Spec:
    """The shape of a model: images of ``side`` x ``side`` pixels; ``widths`` and ``strides`` of the blocks, the
    first width also that of the convolution before them; ``groups`` of each normalisation; ``features`` of f."""

    side: int
    widths: list[int]
    strides: list[int]
    groups: int
    features: int


Ensemble = checkpoints.Ensemble[Spec]


def _blocks(spec: Spec) -> Iterator[tuple[str, int, int, int]]:
    """Yield the name, channels in and out, and stride of each block."""
    before = [spec.widths[0], *spec.widths]
    for layer, (width, stride) in enumerate(zip(spec.widths, spec.strides, strict=True)):
        yield f"blocks.{layer}", before[layer], width, stride


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every trained parameter of one model, in the order they are initialised."""
    first, last, features = spec.widths[0], spec.widths[-1], spec.features
    parameters: dict[str, tuple[int, ...]] = {"stem.W": (first, 1, 3, 3), "stem.b": (first,)}
    for at, i, o, stride in _blocks(spec):
        parameters |= {f"{at}.conv1.W": (o, i, 3, 3), f"{at}.norm1.w": (o,), f"{at}.norm1.b": (o,)}
        parameters |= {f"{at}.conv2.W": (o, o, 3, 3), f"{at}.norm2.w": (o,), f"{at}.norm2.b": (o,)}
        if _reshapes(i, o, stride):
            parameters[f"{at}.shortcut.W"] = (o, i, 1, 1)
    parameters |= {"linear.W": (last, features), "linear.b": (features,)}
    return parameters | {"head.A": (features, features), "head.b": (features,), "head.c": ()}


def _reshapes(i: int, o: int, stride: int) -> bool:
    return i != o or stride != 1


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw the weights of one model before training, in float64.

    Convolutions and the linear map, with their biases, are uniform within 1/sqrt(fan-in) (PyTorch's default);
    normalisation is 1 and 0; A = 0.1 I, b = c = 0.
    """
    values: dict[str, np.ndarray] = {}
    for name, shape in shapes(spec).items():
        if name.startswith("head"):
            values[name] = HEAD_INIT * np.eye(spec.features) if name == "head.A" else np.zeros(shape)
        elif ".norm" in name:
            values[name] = np.full(shape, float(name.endswith("w")))
        else:
            values[name] = rng.uniform(-1, 1, shape) / math.sqrt(_fan_in(spec, name, shape))
    return values


def _fan_in(spec: Spec, name: str, shape: tuple[int, ...]) -> int:
    if name.startswith("linear"):
        return spec.widths[-1]
    return 9 if name == "stem.b" else math.prod(shape[1:])


def forward(
    spec: Spec, params: dict[str, Tensor], table: Tensor, images: Float[Tensor, "R B D"], record: Collection[str] = ()
) -> tuple[Float[Tensor, "R B"], dict[str, Tensor]]:
    """Return the log-ratio g of every image (D = side^2 pixels, row by row), and what is recorded.

    ``table`` is not used.

    Raises SandglassError for a name to record that the model does not have.
    """
    if unknown := set(record) - {"features"}:
        raise SandglassError(f"no activation {', '.join(sorted(unknown))}; there is: features")
    R, B, _ = images.shape
    h_BxRCxSxS = images.transpose(0, 1).reshape(B, R, spec.side, spec.side)
    if images.device.type == "cpu":  # a tenth faster there
        h_BxRCxSxS = h_BxRCxSxS.contiguous(memory_format=torch.channels_last)
    h_BxRCxSxS = _conv(params["stem.W"], h_BxRCxSxS, 1, params["stem.b"])
    for at, i, o, stride in _blocks(spec):
        u_BxRCxSxS = _conv(params[f"{at}.conv1.W"], h_BxRCxSxS, stride)
        u_BxRCxSxS = F.relu(_group_norm(spec, params, f"{at}.norm1", u_BxRCxSxS))
        u_BxRCxSxS = _conv(params[f"{at}.conv2.W"], u_BxRCxSxS, 1)
        u_BxRCxSxS = _group_norm(spec, params, f"{at}.norm2", u_BxRCxSxS)
        if _reshapes(i, o, stride):
            h_BxRCxSxS = _shortcut(params[f"{at}.shortcut.W"], h_BxRCxSxS, stride)
        h_BxRCxSxS = F.relu(h_BxRCxSxS + u_BxRCxSxS)
    pooled_RxBxC = h_BxRCxSxS.mean((2, 3)).view(B, R, -1).transpose(0, 1)
    f_RxBxF = torch.baddbmm(params["linear.b"][:, None], pooled_RxBxC, params["linear.W"])
    squares_RxB = torch.matmul(f_RxBxF, params["head.A"]).square().sum(-1)  # f^T A A^T f
    squares_RxB = squares_RxB + SMALLEST_EIGENVALUE * f_RxBxF.square().sum(-1)
    linear_RxB = torch.matmul(f_RxBxF, params["head.b"][..., None])[..., 0] + params["head.c"][:, None]
    return -squares_RxB - linear_RxB, {"features": f_RxBxF} if record else {}


def _conv(
    W_RxOxIxKxK: Tensor, x_BxRIxSxS: Tensor, stride: int, b_RxO: Tensor | None = None
) -> Float[Tensor, "B RO S S"]:
    """Convolve each replica's own channels, with as much padding as keeps the side at stride 1."""
    R, kernel = W_RxOxIxKxK.shape[0], W_RxOxIxKxK.shape[-1]
    bias = None if b_RxO is None else b_RxO.reshape(-1)
    return F.conv2d(x_BxRIxSxS, W_RxOxIxKxK.flatten(0, 1), bias, stride, padding=kernel // 2, groups=R)


def _shortcut(W_RxOxIx1x1: Tensor, x_BxRIxSxS: Tensor, stride: int) -> Float[Tensor, "B RO S S"]:
    """Map the channels of every ``stride``-th pixel: a 1 x 1 convolution, as a matrix product, which is faster."""
    R, width, before = W_RxOxIx1x1.shape[:3]
    pixels_BxSxSxRI = x_BxRIxSxS[..., ::stride, ::stride].permute(0, 2, 3, 1)
    B, S = pixels_BxSxSxRI.shape[:2]
    mapped_RxNxO = torch.bmm(
        pixels_BxSxSxRI.reshape(B * S * S, R, before).transpose(0, 1), W_RxOxIx1x1.flatten(2).transpose(1, 2)
    )
    return mapped_RxNxO.transpose(0, 1).reshape(B, S, S, R * width).permute(0, 3, 1, 2)


def _group_norm(spec: Spec, params: dict[str, Tensor], name: str, x_BxRCxSxS: Tensor) -> Tensor:
    w_RxC, b_RxC = params[f"{name}.w"], params[f"{name}.b"]
    return F.group_norm(x_BxRCxSxS, len(w_RxC) * spec.groups, w_RxC.reshape(-1), b_RxC.reshape(-1))


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
