"""What a trained log-ratio of images reads (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.languages import digits
from pipeline.models.log_ratio import resnet
from pipeline.studies.nce import inputs


class Middle(np.random.Generator):
    """Draws the middle of every interval."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def random(self, size: Any = None, *_: Any, **__: Any) -> Any:
        return np.full(size, 0.5)


@pytest.mark.parametrize(("run", "side"), [("nce-digits-diag-ence-gd", 8), ("nce-mnist-nce-ngd", 28)])
def test_images_are_read_as_in_training(loaded: params.Params, run: str, side: int) -> None:
    entry = loaded.members("runs")[run].model_dump()
    source = loaded.members("datasets")[entry["dataset"]].source
    levels = digits.LEVELS[source]
    pixels = np.random.default_rng(1).integers(0, levels, (5, side**2)).astype(np.uint8)
    encoded = inputs.encode(entry, *pixels.reshape(5, side, side))
    expected = digits.dequantised(pixels, levels, entry["logit_alpha"], Middle()).astype(np.float32)
    np.testing.assert_array_equal(encoded, expected)
    np.testing.assert_array_equal(encoded[2:3], inputs.encode(entry, pixels[2].tolist()))


def test_a_model_reads_what_was_encoded(loaded: params.Params) -> None:
    entry = loaded.members("runs")["nce-digits-full-nce-gd"].model_dump()
    spec = resnet.Spec(8, entry["widths"], entry["strides"], entry["groups"], entry["features"])
    images = inputs.checked(spec, torch.from_numpy(inputs.encode(entry, *digits.bundled()[0][:3])))
    weights = {
        name: torch.tensor(value, dtype=torch.float32)[None]
        for name, value in resnet.initial(spec, np.random.default_rng(0)).items()
    }
    log_ratio, _ = resnet.forward(spec, weights, torch.zeros(0), images[None])
    assert log_ratio.shape == (1, 3) and torch.isfinite(log_ratio).all()
    assert len(inputs.labels(entry, 1)) == 1


@pytest.mark.parametrize("given", [("[]",), ([0.5] * 64,), ([17] * 64,), ([-1] * 64,), ([0] * 64, [0] * 63), ()])
def test_what_is_no_image_is_refused(loaded: params.Params, given: tuple[Any, ...]) -> None:
    entry = loaded.members("runs")["nce-digits-full-nce-gd"].model_dump()
    with pytest.raises(SandglassError, match=r"0 to 16 as in column|nothing to encode") as caught:
        inputs.encode(entry, *given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(64,), (2, 63), (1, 8, 8)])
def test_images_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    spec = resnet.Spec(8, [4], [1], 2, 3)
    with pytest.raises(SandglassError, match=r"shape \(B, 64\)"):
        inputs.checked(spec, torch.zeros(shape))
    with pytest.raises(SandglassError, match=r"got torch\.int64"):
        inputs.checked(spec, torch.zeros((2, 64), dtype=torch.int64))
