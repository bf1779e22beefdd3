"""One trained replica of a run as a torch module: what it predicts, and what goes on inside it."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pipeline.errors import SandglassError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Replica(nn.Module):
    """A model whose shape is ``spec`` and whose weights carry the names of its model module.

    ``model(ids)`` gives the logits (B, T, outputs) for the symbol after every position, or for the symbol at it
    where the run copies; ``model.labels`` says what each output stands for. ``ids`` (B, T) are integers below
    ``spec.inputs``: the study's numbering, 0 the start token, which every training sequence begins with;
    ``model.encode`` makes them from strings. Rows of different length are filled up at the end, with 0: models
    are causal.

    ``config`` holds what was trained, from the checkpoint: ``run``, ``replica``, ``study``, ``scale``,
    ``params_hash``, ``entry`` (its entry in params.yaml, resolved at that scale) and ``spec``.

    Parameters have no replica axis here and can be trained further; the embedding ``table``
    (inputs, width) is a buffer, frozen as in the studies.
    """

    table: Tensor

    def __init__(self, config: dict[str, Any], spec: Any, weights: dict[str, Tensor], table: Tensor) -> None:
        """``weights`` by dotted names such as ``blocks.0.attn.W_QKV``, without a replica axis."""
        super().__init__()
        self.config = config
        self.spec = spec
        self._module = importlib.import_module(
            "pipeline.models." + config["entry"]["model"].replace("/", ".")
        )
        for name, value in weights.items():
            *path, last = name.split(".")
            _submodule(self, path).register_parameter(last, nn.Parameter(value.clone()))
        self.register_buffer("table", table.clone())
        self.eval()

    @classmethod
    def load(cls, path: Path, replica: int) -> Replica:
        """The replica number ``replica`` of the checkpoint at ``path``.

        Raises SandglassError if the checkpoint is missing or damaged, or if it has no such trained replica.
        """
        from pipeline.store import checkpoints

        header = checkpoints.read(path)[1]
        try:
            entry, run = header["entry"], header["run"]
        except KeyError:
            raise SandglassError(f"checkpoint {path} does not say what was trained") from None
        module = importlib.import_module("pipeline.models." + entry["model"].replace("/", "."))
        if not hasattr(module, "forward"):
            raise SandglassError(
                f"run {run}: its model, pipeline/models/{entry['model']}.py, has no forward pass"
            )
        count = len(header.get("lr", []))  # of a grid: the replicas of its first learning rate come first
        if not count:
            raise SandglassError(
                f"run {run} has no replicas at this scale: see replicas of runs.{run} in params.yaml"
            )
        if isinstance(replica, bool) or not isinstance(replica, Integral) or not 0 <= replica < count:
            raise SandglassError(f"run {run} has replicas 0 to {count - 1}, not {replica!r}")
        if (step := header["diverged"].get(str(replica))) is not None:
            others = [r for r in range(count) if str(r) not in header["diverged"]]
            raise SandglassError(
                f"replica {replica} of run {run} diverged at step {step} and was not trained further; "
                f"trained: {', '.join(map(str, others))}"
            )
        ensemble, replica = module.load(path), int(replica)
        config = {name: header[name] for name in ("run", "study", "scale", "params_hash", "entry", "spec")}
        weights = {name: value[replica] for name, value in ensemble.params.items()}
        return cls(config | {"replica": replica}, ensemble.spec, weights, ensemble.table)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T O"]:
        """Logits for the symbol after every position.

        Raises SandglassError if ``ids`` are not (B, T) integers that the model knows.
        """
        return self.record(ids, ())[0]

    def record(
        self, ids: Int[Tensor, "B T"], names: Collection[str]
    ) -> tuple[Float[Tensor, "B T O"], dict[str, Tensor]]:
        """Logits, and the activations of these names, with B as their first axis.

        Raises SandglassError as ``forward`` does, and for a name that the model does not have (it lists them).
        """
        ids = self._checked(ids)
        weights = {name: value[None] for name, value in self.named_parameters()}
        logits, recorded = self._module.forward(self.spec, weights, self.table, ids[None], record=names)
        return logits[0], {name: value[0] for name, value in recorded.items()}

    def attention_patterns(self, ids: Int[Tensor, "B T"]) -> list[Float[Tensor, "B H T T"]]:
        """The attention of every layer: rows are queries and sum to 1, columns are keys."""
        names = [f"blocks.{layer}.attn.pattern" for layer in range(self.spec.layers)]
        recorded = self.record(ids, names)[1]
        return [recorded[name] for name in names]

    def encode(self, *strings: str) -> Int[Tensor, "B T"]:
        """What the model reads for these strings, by the study's ``inputs.encode``, on the model's device.

        Raises SandglassError for a string outside the study's alphabet or language.
        """
        return torch.from_numpy(self._inputs().encode(self.config["entry"], *strings)).to(self.table.device)

    @property
    def labels(self) -> list[str]:
        """What each output stands for."""
        return list(self._inputs().labels(self.config["entry"], self.spec.outputs))

    def _inputs(self) -> Any:
        return importlib.import_module(f"pipeline.studies.{self.config['study']}.inputs")

    def _checked(self, ids: Tensor) -> Tensor:
        if ids.ndim != 2 or ids.is_floating_point() or ids.dtype == torch.bool:
            raise SandglassError(
                f"ids must be integers of shape (B, T), got {ids.dtype} of shape {tuple(ids.shape)}"
            )
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self.spec.inputs:
            raise SandglassError(
                f"ids must be 0 to {self.spec.inputs - 1}, got {int(ids.min())} to {int(ids.max())}"
            )
        return ids.long()


def _submodule(module: nn.Module, path: list[str]) -> nn.Module:
    for name in path:
        if name not in dict(module.named_children()):
            module.add_module(name, nn.Module())
        module = module.get_submodule(name)
    return module
