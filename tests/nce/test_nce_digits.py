"""Images of digits, the noise fitted to them, the log-ratio network and the noise-contrastive losses."""

from __future__ import annotations

import dataclasses
import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.errors import SandglassError
from pipeline.languages import digits
from pipeline.models.log_ratio import resnet
from pipeline.store import checkpoints
from pipeline.training.objectives import noise_contrastive as contrastive
from pipeline.training.objectives.noise_contrastive import contrast, ence, nce, shifted_mean

SMALL = resnet.Spec(side=8, widths=[4, 8], strides=[1, 2], groups=2, features=3)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def params(spec: resnet.Spec, replicas: int, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Random in every entry, so that no term of the model can hide behind a 0 or a 1."""
    starts = [resnet.initial(spec, rng(r)) for r in range(replicas)]
    moved = [{name: value + 0.1 * rng(9).normal(size=value.shape) for name, value in one.items()} for one in starts]
    return {name: torch.tensor(np.stack([one[name] for one in moved]), dtype=dtype) for name in starts[0]}


# --- images ----------------------------------------------------------------------------------------------


def test_the_bundled_digits_are_those_of_the_uci_test_set() -> None:
    pixels, labels = digits.bundled()
    assert pixels.shape == (1797, 64) and pixels.dtype == np.uint8 and pixels.max() == 16
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert pixels[0].sum() == 294 and pixels.sum(dtype=int) == 561718


def test_dequantised_pixels_are_uniform_within_their_level_and_give_it_back() -> None:
    pixels = rng().integers(0, 17, (2000, 4)).astype(np.uint8)
    images = digits.dequantised(pixels, 17, 0.01, rng(1))
    unit = (1 / (1 + np.exp(-images)) - 0.01) / 0.98 * 17
    assert np.array_equal(np.floor(unit + 1e-12), pixels)
    assert abs((unit - pixels).mean() - 0.5) < 0.01 and abs((unit - pixels).std() - 12**-0.5) < 0.01
    edges = digits.dequantised(np.array([[0, 16]], np.uint8), 17, 0.01, rng())
    assert np.abs(edges).max() <= math.log(0.99 / 0.01)


def test_a_seed_splits_and_dequantises_its_own_way_and_every_image_is_used_once() -> None:
    pixels = np.repeat(np.arange(40, dtype=np.uint8)[:, None] % 17, 2, axis=1)
    pixels[:, 1] = np.arange(40) // 17
    parts = np.full(40, "any")

    def levels(images: np.ndarray) -> list[tuple[int, ...]]:
        return [tuple(row) for row in np.floor((1 / (1 + np.exp(-images)) - 0.01) / 0.98 * 17 + 1e-12).astype(int)]

    train, test = digits.corpus(pixels, parts, 10, 17, 0.01, rng(1))
    assert (len(train), len(test)) == (30, 10)
    assert sorted(levels(train) + levels(test)) == sorted(map(tuple, pixels.tolist()))
    again, other = (digits.corpus(pixels, parts, 10, 17, 0.01, rng(seed))[0] for seed in (1, 2))
    assert np.array_equal(train, again) and levels(train) != levels(other)
    assert not set(train.flat) & set(other.flat)  # no pixel is dequantised as before
    given = np.where(np.arange(40) < 25, "train", "test")
    train, test = digits.corpus(pixels, given, 10, 17, 0.01, rng(1))
    assert levels(train) == list(map(tuple, pixels[:25].tolist())) and len(test) == 15


def test_the_noise_has_the_moments_of_the_images() -> None:
    images = rng().normal(size=(300, 3)) @ np.array([[1, 0.5, 0], [0, 1, 2.0], [0, 0, 0.3]]) + 5
    full, diag = digits.fit(images, "full"), digits.fit(images, "diag")
    covariance = np.cov(images, rowvar=False) + 1e-4 * np.eye(3)
    np.testing.assert_allclose(full.covariance, covariance, rtol=1e-12)
    np.testing.assert_allclose(diag.covariance, np.diag(np.diag(covariance)), rtol=1e-12)
    for noise in (full, diag):
        np.testing.assert_allclose(noise.factor @ noise.factor.T, noise.covariance, atol=1e-12)
        np.testing.assert_array_equal(noise.mean, images.mean(0))
        drawn = digits.sample(noise.mean, noise.factor, 40_000, rng(1))
        np.testing.assert_allclose(drawn.mean(0), noise.mean, atol=0.05)
        np.testing.assert_allclose(np.cov(drawn, rowvar=False), noise.covariance, atol=0.12)
    with pytest.raises(ValueError, match="no noise 'copula'"):
        digits.fit(images, "copula")


# --- MNIST's files ----------------------------------------------------------------------------------------


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_mnist(folder: Path, **changes: np.ndarray) -> Path:
    """Files like MNIST's with 6 and 4 images of 4 x 4; ``train_labels=...`` and the like change one of them."""
    for part, n in (("train", 6), ("test", 4)):
        images = changes.get(f"{part}_images", rng(n).integers(0, 256, (n, 4, 4)).astype(np.uint8))
        labels = changes.get(f"{part}_labels", (np.arange(n) % 10).astype(np.uint8))
        for name, array in zip(digits.MNIST_FILES[part], (images, labels), strict=True):
            (folder / name).write_bytes(idx(array))
    return folder


def test_mnist_is_read_gzipped_or_not(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    plain = digits.mnist(tmp_path, "train")
    for path in list(tmp_path.iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = digits.mnist(tmp_path, "train")
    assert plain[0].shape == (6, 16) and plain[1].tolist() == [0, 1, 2, 3, 4, 5]
    assert all(np.array_equal(a, b) for a, b in zip(plain, packed, strict=True))
    assert np.array_equal(plain[0][2], rng(6).integers(0, 256, (6, 4, 4)).astype(np.uint8)[2].reshape(-1))


GOOD = idx(np.zeros((2, 3), np.uint8))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not an IDX file"),
        (b"<!DOCTYPE html>", "not an IDX file"),
        (bytes([0, 0, 13]) + GOOD[3:], "not an IDX file"),  # floats
        (bytes([0, 0, 8, 0]), "not an IDX file"),
        (GOOD[:9], "not an IDX file"),
        (GOOD[:-1], "says that it holds 6 values, and holds 5"),
        (GOOD + b"x", "says that it holds 6 values, and holds 7"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(content)
    with pytest.raises(SandglassError, match=told) as caught:
        digits.read_idx(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", [3, 30])
def test_a_damaged_archive_is_named(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(GOOD)[:cut])
    with pytest.raises(SandglassError, match=r"idx3-ubyte\.gz: cannot be read"):
        digits.read_idx(path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"train_labels": np.zeros(5, np.uint8)}, "one label for each of 6 images"),
        ({"train_labels": np.full(6, 10, np.uint8)}, "labels 0 to 9, got 10"),
        ({"train_images": np.zeros((6, 4, 3), np.uint8)}, "square images"),
        ({"train_images": np.zeros((6, 16), np.uint8)}, "square images"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(SandglassError, match=told):
        digits.mnist(write_mnist(tmp_path, **changes), "train")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (write_mnist(tmp_path) / digits.MNIST_FILES["test"][1]).unlink()
    with pytest.raises(SandglassError, match=r"neither t10k-labels-idx1-ubyte nor t10k-labels-idx1-ubyte\.gz"):
        digits.mnist(tmp_path, "test")


# --- the network ------------------------------------------------------------------------------------------


class Reference(nn.Module):
    """One model in PyTorch's own layers, weights by name."""

    def __init__(self, spec: resnet.Spec, weights: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.spec, self.weights = spec, weights

    def conv(self, name: str, x: torch.Tensor, stride: int = 1) -> torch.Tensor:
        W = self.weights[f"{name}.W"]
        layer = nn.Conv2d(W.shape[1], W.shape[0], W.shape[2], stride, padding=W.shape[2] // 2).double()
        layer.weight.data, bias = W, self.weights.get(f"{name}.b")
        assert layer.bias is not None
        layer.bias.data = torch.zeros(W.shape[0]).double() if bias is None else bias
        return layer(x)

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        layer = nn.GroupNorm(self.spec.groups, x.shape[1]).double()
        layer.weight.data, layer.bias.data = self.weights[f"{name}.w"], self.weights[f"{name}.b"]
        return layer(x)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        h = self.conv("stem", images.view(-1, 1, self.spec.side, self.spec.side))
        for layer, stride in enumerate(self.spec.strides):
            at = f"blocks.{layer}"
            u = self.norm(f"{at}.norm1", self.conv(f"{at}.conv1", h, stride)).relu()
            u = self.norm(f"{at}.norm2", self.conv(f"{at}.conv2", u))
            h = ((self.conv(f"{at}.shortcut", h, stride) if f"{at}.shortcut.W" in self.weights else h) + u).relu()
        f = h.mean((2, 3)) @ self.weights["linear.W"] + self.weights["linear.b"]
        A, b, c = (self.weights[f"head.{name}"] for name in "Abc")
        W = A @ A.T + 1e-3 * torch.eye(len(A)).double()
        return torch.stack([-row @ W @ row - b @ row - c for row in f])


def test_every_replica_is_the_network_that_the_chapter_describes() -> None:
    weights, images = params(SMALL, 3), torch.from_numpy(rng(5).normal(size=(3, 7, 64)))
    outputs, _ = resnet.forward(SMALL, weights, torch.zeros(0), images)
    for r in range(3):
        reference = Reference(SMALL, {name: value[r] for name, value in weights.items()})
        torch.testing.assert_close(outputs[r], reference(images[r]), atol=1e-10, rtol=1e-10)


def test_the_log_ratio_is_a_function_of_one_image() -> None:
    weights, images = params(SMALL, 2), torch.from_numpy(rng(5).normal(size=(2, 6, 64)))
    together, _ = resnet.forward(SMALL, weights, torch.zeros(0), images)
    for i in range(6):
        alone, _ = resnet.forward(SMALL, weights, torch.zeros(0), images[:, i : i + 1])
        torch.testing.assert_close(alone[:, 0], together[:, i], atol=1e-12, rtol=1e-12)


def test_at_first_all_replicas_see_a_log_ratio_near_zero() -> None:
    start = resnet.initial(SMALL, rng())
    assert {name: value.shape for name, value in start.items()} == resnet.shapes(SMALL)
    np.testing.assert_array_equal(start["head.A"], 0.1 * np.eye(3))
    assert not start["head.b"].any() and start["head.c"] == 0
    assert (
        np.abs(start["blocks.1.conv1.W"]).max() <= 1 / math.sqrt(4 * 9) < 1.1 * np.abs(start["blocks.1.conv1.W"]).max()
    )
    weights = {name: torch.tensor(value)[None] for name, value in start.items()}
    g, recorded = resnet.forward(SMALL, weights, torch.zeros(0), torch.zeros(1, 1, 64).double(), record=["features"])
    f = recorded["features"]
    assert f.shape == (1, 1, 3)
    torch.testing.assert_close(g, -(0.01 + 1e-3) * f.square().sum(-1))
    with pytest.raises(SandglassError, match="no activation pattern"):
        resnet.forward(SMALL, weights, torch.zeros(0), torch.zeros(1, 1, 64).double(), record=["pattern"])


def test_a_checkpoint_that_does_not_fit_its_header_is_refused(tmp_path: Path) -> None:
    arrays = {name: value.numpy() for name, value in params(SMALL, 2, torch.float32).items()}
    header, path = {"spec": dataclasses.asdict(SMALL)}, tmp_path / "model.safetensors"
    checkpoints.write(path, arrays | {"table": np.ones((2, 65, 64), np.float32)}, header)
    ensemble = resnet.load(path)
    assert ensemble.spec == SMALL and ensemble.params["head.c"].shape == (2,) and ensemble.table.shape == (2, 65, 64)
    arrays["linear.W"] = arrays["linear.W"][:, :-1]
    checkpoints.write(path, arrays | {"table": np.ones((2, 65, 64), np.float32)}, header)
    with pytest.raises(SandglassError, match=r"linear\.W has shape \(7, 3\), its header says \(8, 3\)"):
        resnet.load(path)


# --- the losses -------------------------------------------------------------------------------------------


def test_losses_are_those_of_the_definitions() -> None:
    x, y = torch.from_numpy(rng(1).normal(size=(2, 5))), torch.from_numpy(rng(2).normal(size=(2, 9)))
    by_hand = (torch.log(1 + torch.exp(-x)).mean(-1) + torch.log(1 + torch.exp(y)).mean(-1)) / 2
    torch.testing.assert_close(contrast(nce, x, y), by_hand)
    torch.testing.assert_close(contrast(ence, x, y), (torch.exp(-x / 2).mean(-1) + torch.exp(y / 2).mean(-1)) / 2)
    zero = torch.zeros(1, 4).double()
    assert contrast(nce, zero, zero).item() == pytest.approx(math.log(2), abs=1e-15)
    assert contrast(ence, zero, zero).item() == 1
    far = torch.full((1, 4), 1e5)
    assert contrast(nce, -far, far).item() == 1e5 and contrast(nce, far, -far).item() == 0


def test_the_shifted_mean_is_the_mean_and_its_sum_does_not_overflow() -> None:
    values = torch.from_numpy(rng().uniform(-50, 50, (20, 100))).requires_grad_()
    torch.testing.assert_close(shifted_mean(values), values.mean(-1), atol=1e-12, rtol=0)
    (gradient,) = torch.autograd.grad(shifted_mean(values).sum(), values)
    torch.testing.assert_close(gradient, torch.full_like(values, 0.01))
    huge = torch.full((1, 10), 3e38)
    assert torch.isinf(huge.sum()) and shifted_mean(huge).item() == pytest.approx(3e38)


def objective(clip: float | None, loss: str = "ence", corpora: int = 2) -> contrastive.Objective:
    draw = rng(3)
    data = {"train": draw.normal(size=(corpora, 10, 4)).astype(np.float32)}
    data |= {"noise.mean": 100.0 * np.arange(1, corpora + 1, dtype=np.float32)[:, None] * np.ones((1, 4), np.float32)}
    data |= {"noise.factor": np.stack([np.eye(4, dtype=np.float32)] * corpora)}
    return contrastive.Objective(data, {"loss": loss, "clip": clip, "noise": 3})


def through(images: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """A "model" whose log-ratio is the first pixel."""
    return images[..., 0], {}


def test_clipped_log_ratios_have_no_gradient_and_nothing_else_changes() -> None:
    g = torch.tensor([[[-30.0], [1.0], [2.0], [-3.0], [25.0]]])
    plain, clipped, open_end = (objective(clip) for clip in (None, 20.0, math.inf))
    batch = {"images": g.requires_grad_()}
    (gradient,) = torch.autograd.grad(clipped.loss(through, batch)["loss"].sum(), g)
    assert ((gradient != 0).flatten() == torch.tensor([False, True, True, True, False])).all()
    free, same = plain.loss(through, batch)["loss"], open_end.loss(through, batch)["loss"]
    assert torch.equal(free, same)
    assert torch.equal(torch.autograd.grad(free, g)[0], torch.autograd.grad(same, g)[0])
    stuck = clipped.loss(through, {"images": torch.full((1, 5, 1), -1e4)})["loss"].item()
    assert stuck == pytest.approx((math.exp(10) + math.exp(-10)) / 2)  # 11013: where training freezes


def test_a_batch_has_the_chosen_images_and_fresh_noise_of_the_same_seed() -> None:
    task, chosen = objective(None), [np.array([3, 1]), np.array([0, 9])]
    batch = task.collate([1, 0], chosen, [lambda: rng(1), lambda: rng(2)])["images"]
    assert batch.shape == (2, 5, 4) and batch.dtype == np.float32
    np.testing.assert_array_equal(batch[0, :2], task.data["train"][1, [3, 1]])
    assert abs(batch[0, 2:] - 200).max() < 6 and abs(batch[1, 2:] - 100).max() < 6
    again = task.collate([1, 0], chosen, [lambda: rng(1), lambda: rng(5)])["images"]
    assert np.array_equal(batch[0], again[0]) and not np.array_equal(batch[1, 2:], again[1, 2:])


def test_accuracy_counts_images_on_the_right_side_of_zero() -> None:
    g = torch.tensor([[[1.0], [-1.0], [-1.0], [-2.0], [3.0]]])  # two images, three draws of noise
    assert objective(None).loss(through, {"images": g})["accuracy"].item() == pytest.approx(3 / 5)


def test_evaluation_is_on_the_corpus_of_each_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = {"train": 7, "noise": 7, "test": 3, "test_noise": 3}
    held = {name: torch.from_numpy(10 * rng(n).normal(size=(2, n, 4))) for name, n in shapes.items()}
    held["noise"] = held["noise"] * 1.7
    task = objective(20.0)
    evaluations = {}
    for chunk in (2, 256):
        monkeypatch.setattr(contrastive, "CHUNK", chunk)
        evaluations[chunk] = task.evaluate(through, held | {"corpus": torch.tensor([1, 0, 1])})
    for name in task.evaluated:
        torch.testing.assert_close(evaluations[2][name], evaluations[256][name])
    for r, corpus in enumerate((1, 0, 1)):
        x, y, tx, ty = (held[name][corpus, :, 0] for name in shapes)
        cut = [g.clamp(-20, 20) for g in (x, y, tx, ty)]
        expected = {
            "train_loss": (torch.exp(-cut[0] / 2).mean() + torch.exp(cut[1] / 2).mean()) / 2,
            "test_loss": (torch.exp(-cut[2] / 2).mean() + torch.exp(cut[3] / 2).mean()) / 2,
            "train_nce_loss": (torch.log1p(torch.exp(-x)).mean() + torch.log1p(torch.exp(y)).mean()) / 2,
            "clip_fraction": (torch.cat([x, y]).abs() > 20).double().mean(),
        }
        for name, value in expected.items():
            assert evaluations[2][name][r].item() == pytest.approx(value.item()), name
    assert evaluations[2]["clip_fraction"].max() > 0
    assert not objective(None).evaluate(through, held | {"corpus": torch.tensor([0])})["clip_fraction"].any()
