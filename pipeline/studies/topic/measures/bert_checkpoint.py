"""Encoders that were trained elsewhere, read from files of BERT's format (Li 2025, section 2.1.5.4).

Such a model is a file ``model.safetensors``, a file ``tokenizer.json``, and a file ``config.json``: in a folder, or in
a zip archive inside an installed Python package, of which no code is imported. Files are taken only if their SHA-256 is
the one that the parameters name. Weights are numbers in safetensors; nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.models.topic import encoder

WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
INSTALL = "pip install --no-deps -r requirements-pretrained.txt"

# Names in a checkpoint of BERT -> ours; its linear maps act from the left, ours from the right.
EMBEDDINGS = {
    "embed.W": "embeddings.word_embeddings.weight",
    "embed.P": "embeddings.position_embeddings.weight",
    "embed.W_type": "embeddings.token_type_embeddings.weight",
    "embed.ln.w": "embeddings.LayerNorm.weight",
    "embed.ln.b": "embeddings.LayerNorm.bias",
}
LINEAR = {
    "attn.{}_Q": "attention.self.query",
    "attn.{}_K": "attention.self.key",
    "attn.{}_V": "attention.self.value",
    "attn.{}_O": "attention.output.dense",
    "mlp.{}_in": "intermediate.dense",
    "mlp.{}_out": "output.dense",
}
PIECE = "##"  # begins a token that goes on with a word
NORMS = {"ln1": "attention.output.LayerNorm", "ln2": "output.LayerNorm"}
# What its attention and MLP may be, as far as `config.json` says.
SUPPORTED = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}


class Pretrained(NamedTuple):
    """An encoder that was trained elsewhere: its shape, its weights with a replica axis of 1, and its tokenizer."""

    model: encoder.Ensemble
    tokenizer: Any

    def ids(self, text: str, longest: int) -> np.ndarray:
        """Return the ids of a text between the special ids of its tokenizer, cut to ``longest`` of them."""
        ids = self.tokenizer.encode(text).ids
        return np.array(ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]], np.int64)

    def whole(self, ids: np.ndarray) -> np.ndarray:
        """Return at which positions an id is a whole word, and no piece of one that the tokenizer cuts."""
        goes_on = np.array([self.tokenizer.id_to_token(int(n)).startswith(PIECE) for n in ids] + [False])
        return ~goes_on[:-1] & ~goes_on[1:]


def read(entry: Any, where: str) -> Pretrained:
    """Return the encoder that ``entry`` names: ``folder``, or ``package`` and ``archive``; ``weights`` and
    ``tokenizer``, SHA-256 of these files. ``where`` names the entry in messages.

    Raises SandglassError if a file or a package is missing, a file is another one, or the model is of another form.
    """
    files = _folder(entry.folder, where) if entry.folder is not None else _package(entry, where)
    config = json.loads(files(CONFIG))
    for name, value in SUPPORTED.items():
        if (setting := config.get(name, value)) != value:
            raise SandglassError(f"{where}: {CONFIG} says {name} {setting!r}; expected {value!r}")
    weights, text = files(WEIGHTS), files(TOKENIZER)
    for name, content, expected in ((WEIGHTS, weights, entry.weights), (TOKENIZER, text, entry.tokenizer)):
        if (digest := hashlib.sha256(content).hexdigest()) != expected:
            raise SandglassError(f"{where}: {name} has the SHA-256 {digest}, expected {expected}")
    try:
        arrays = load(weights)
    except SafetensorError as error:
        raise SandglassError(f"{where}: {WEIGHTS} cannot be read: {error}") from None
    spec = specification(config)
    params = renamed(arrays, spec, where)
    try:
        tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(text.decode())
    except ImportError:
        raise SandglassError(f"{where}: the package tokenizers is not installed: {INSTALL}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    header = {"weights": entry.weights, "tokenizer": entry.tokenizer}
    return Pretrained(encoder.Ensemble(spec, params, torch.zeros(0), header), tokenizer)


def specification(config: dict[str, Any]) -> encoder.Spec:
    """Return the shape of a model from its ``config.json``."""
    std = float(config.get("initializer_range", 0.02))
    return encoder.Spec(
        symbols=config["vocab_size"],
        positions=config["max_position_embeddings"],
        types=config["type_vocab_size"],
        width=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        ffn=config["intermediate_size"],
        eps=float(config["layer_norm_eps"]),
        std=std,
        std_attention=std,
    )


def renamed(arrays: dict[str, np.ndarray], spec: encoder.Spec, where: str) -> dict[str, Tensor]:
    """Return the arrays of a checkpoint of BERT under our names, float32, with a replica axis of 1.

    They may stand below ``bert.``, as where a head was trained; heads and poolers are left out.

    Raises SandglassError if one is missing or has another shape than the configuration says.
    """
    theirs = {name.removeprefix("bert."): array for name, array in arrays.items()}
    params = {}
    for name, shape in encoder.trunk(spec).items():
        source, turned = _source(name)
        if source not in theirs:
            raise SandglassError(f"{where}: {WEIGHTS} has no array {source}: it is no encoder of BERT's format")
        array = theirs[source].T if turned else theirs[source]
        if array.shape != shape:
            raise SandglassError(f"{where}: {source} has shape {theirs[source].shape}, {CONFIG} says {shape}")
        params[name] = torch.from_numpy(np.ascontiguousarray(array, np.float32))[None]
    return params


def _source(name: str) -> tuple[str, bool]:
    """Return the name of one of our arrays in a checkpoint of BERT, and whether it is to be transposed."""
    if name in EMBEDDINGS:
        return EMBEDDINGS[name], False
    _, layer, part, kind = name.split(".")
    at = f"encoder.layer.{layer}"
    if part in NORMS:
        return f"{at}.{NORMS[part]}.{'weight' if kind == 'w' else 'bias'}", False
    letter, which = kind.split("_")
    return f"{at}.{LINEAR[f'{part}.{{}}_{which}']}.{'weight' if letter == 'W' else 'bias'}", letter == "W"


def _folder(folder: str, where: str) -> Callable[[str], bytes]:
    def content(name: str) -> bytes:
        path = Path(folder) / name
        if not path.is_file():
            raise SandglassError(f"{where}: there is no file {path}")
        return path.read_bytes()

    return content


def _package(entry: Any, where: str) -> Callable[[str], bytes]:
    try:
        distribution = importlib.metadata.distribution(entry.package)
    except importlib.metadata.PackageNotFoundError:
        raise SandglassError(f"{where}: the package {entry.package} is not installed: {INSTALL}") from None
    path = Path(str(distribution.locate_file(entry.archive)))
    if not path.is_file():
        raise SandglassError(f"{where}: the package {entry.package} {distribution.version} has no {entry.archive}")

    def content(name: str) -> bytes:
        try:
            with zipfile.ZipFile(path) as archive:
                return archive.read(name)
        except (KeyError, zipfile.BadZipFile) as error:
            raise SandglassError(f"{where}: {entry.archive}: {error}") from None

    return content
