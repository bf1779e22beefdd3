"""Models of the Llama architecture that were trained elsewhere, from a local folder as CodeLlama's are kept.

The folder holds ``config.json``, weights as ``model.safetensors`` or in parts that ``model.safetensors.index.json``
lists, and ``tokenizer.json``. Nothing is unpickled, and no code of the folder is run. What is read becomes one model of
`pipeline.models.llama.decoder`, in float32, so that `pipeline.models.llama.decoding` draws from it as from any other.

Keys and values that several heads share are repeated for each of them: the same numbers, in a larger cache.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.models.llama import decoder

CONFIG, WEIGHTS, PARTS, TOKENIZER = "config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"
INSTALL = "pip install --no-deps -c requirements-pretrained.txt tokenizers"
# What `config.json` may say of what the decoder does in one way only; a key that is missing says the same.
SUPPORTED: dict[str, Any] = {
    "model_type": "llama",
    "hidden_act": "silu",
    "rope_scaling": None,
    "attention_bias": False,
    "mlp_bias": False,
}


@dataclass(frozen=True)
class Pretrained:
    """A model that was trained elsewhere: its shape, its weights with a replica axis of 1, and its tokenizer."""

    name: str
    spec: decoder.Spec
    params: dict[str, Tensor]
    tokenizer: Any
    end: int  # the token that ends a text

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text, behind what begins one."""
        return list(self.tokenizer.encode(text).ids)

    def text(self, ids: list[int]) -> str:
        """Return tokens as text."""
        return str(self.tokenizer.decode(ids))


def read(folder: str, where: str) -> Pretrained:
    """Return the model in ``folder``; ``where`` names the parameter in messages.

    Raises SandglassError if a file or the package tokenizers is missing, a file is damaged, or the model is of another
    architecture or shape than it says.
    """
    path = Path(folder)
    config = _json(path / CONFIG, where)
    spec, shared = specification(config, where)
    params = renamed(_weights(path, where), spec, shared, bool(config.get("tie_word_embeddings", False)), where)
    end = config.get("eos_token_id")
    if not isinstance(end, int) or not 0 <= end < spec.symbols:
        raise SandglassError(f"{where}: {CONFIG} says eos_token_id {end!r}; expected one of {spec.symbols} tokens")
    if not (path / TOKENIZER).is_file():
        raise SandglassError(f"{where}: there is no file {path / TOKENIZER}")
    try:
        tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(path / TOKENIZER))
    except ImportError:
        raise SandglassError(f"{where}: the package tokenizers is not installed: {INSTALL}") from None
    except Exception as error:  # what that package raises has no class of its own
        raise SandglassError(f"{where}: {TOKENIZER} cannot be read: {' '.join(str(error).split())}") from None
    return Pretrained(path.name, spec, params, tokenizer, end)


def specification(config: dict[str, Any], where: str) -> tuple[decoder.Spec, int]:
    """Return the shape of a model from its ``config.json``, and how many heads share keys and values.

    Raises SandglassError for what the decoder does not do.
    """
    for name, value in SUPPORTED.items():
        if (setting := config.get(name, value)) != value:
            raise SandglassError(f"{where}: {CONFIG} says {name} {setting!r}; expected {value!r}")
    try:
        heads, width = int(config["num_attention_heads"]), int(config["hidden_size"])
        groups = int(config.get("num_key_value_heads") or heads)
        rotary = config.get("rope_parameters") or {}  # where newer versions keep it
        spec = decoder.Spec(
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            width=width,
            inner=int(config["intermediate_size"]),
            symbols=int(config["vocab_size"]),
            eps=float(config["rms_norm_eps"]),
            base=float(config.get("rope_theta") or rotary.get("rope_theta") or decoder.BASE),
        )
    except KeyError as error:
        raise SandglassError(f"{where}: {CONFIG} does not say {error.args[0]}") from None
    except (TypeError, ValueError) as error:
        raise SandglassError(f"{where}: {CONFIG} says what is no number: {error}") from None
    if width % (2 * heads) or int(config.get("head_dim") or width // heads) * heads != width or heads % groups:
        raise SandglassError(
            f"{where}: {heads} heads, {groups} of keys, do not fit a width of {width} as this decoder has them"
        )
    return spec, heads // groups


def renamed(theirs: dict[str, Tensor], spec: decoder.Spec, shared: int, tied: bool, where: str) -> dict[str, Tensor]:
    """Return weights under our names, float32, with a replica axis of 1: their linear maps act from the left.

    Raises SandglassError if one is missing or of another shape than the configuration says.
    """
    d, f, A = spec.width, spec.inner, spec.width // spec.heads

    def of(name: str, *shape: int) -> Tensor:
        if name not in theirs:
            raise SandglassError(f"{where}: there are no weights {name}: this is no model of the Llama architecture")
        if tuple(theirs[name].shape) != shape:
            raise SandglassError(f"{where}: {name} has shape {tuple(theirs[name].shape)}, {CONFIG} says {shape}")
        return theirs[name].float()

    def of_heads(name: str) -> Tensor:
        """Return keys or values (d, d), those that heads share once for each of them."""
        groups = of(name, d // shared, d).view(-1, A, d)
        return groups.repeat_interleave(shared, 0).reshape(d, d)

    params = {"embed.W": of("model.embed_tokens.weight", spec.symbols, d)}
    for layer in range(spec.layers):
        at, their = f"blocks.{layer}", f"model.layers.{layer}"
        params[f"{at}.ln1.w"] = of(f"{their}.input_layernorm.weight", d)
        qkv = [of(f"{their}.self_attn.q_proj.weight", d, d)]
        qkv += [of_heads(f"{their}.self_attn.{part}_proj.weight") for part in ("k", "v")]
        params[f"{at}.attn.W_QKV"] = torch.cat(qkv).T
        params[f"{at}.attn.W_O"] = of(f"{their}.self_attn.o_proj.weight", d, d).T
        params[f"{at}.ln2.w"] = of(f"{their}.post_attention_layernorm.weight", d)
        params[f"{at}.mlp.W_in"] = torch.cat([of(f"{their}.mlp.{part}_proj.weight", f, d) for part in ("gate", "up")]).T
        params[f"{at}.mlp.W_out"] = of(f"{their}.mlp.down_proj.weight", d, f).T
    params["ln.w"] = of("model.norm.weight", d)
    head = "model.embed_tokens.weight" if tied else "lm_head.weight"
    params["head.W"] = of(head, spec.symbols, d).T
    return {name: params[name].contiguous()[None] for name in decoder.shapes(spec)}


def _weights(path: Path, where: str) -> dict[str, Tensor]:
    """Return all arrays of the folder."""
    names = [WEIGHTS]
    if (path / PARTS).is_file():
        listed = _json(path / PARTS, where).get("weight_map")
        if not isinstance(listed, dict) or not listed:
            raise SandglassError(f"{where}: {PARTS} lists no weights")
        names = sorted({Path(str(name)).name for name in listed.values()})  # never outside of the folder
    found: dict[str, Tensor] = {}
    for name in names:
        if not (path / name).is_file():
            raise SandglassError(f"{where}: there is no file {path / name}")
        try:
            found |= load_file(path / name)
        except (SafetensorError, OSError) as error:
            raise SandglassError(f"{where}: {path / name} cannot be read: {error}") from None
    return found


def _json(path: Path, where: str) -> dict[str, Any]:
    if not path.is_file():
        raise SandglassError(f"{where}: there is no file {path}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SandglassError(f"{where}: {path} is no JSON object")
    return found
