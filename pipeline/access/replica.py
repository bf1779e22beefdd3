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

    A sequence model reads ``ids`` (B, T), integers below ``spec.inputs``: the study's numbering, 0 the start token,
    which every training sequence begins with. ``model(ids)`` gives logits (B, T, outputs) for the symbol after every
    position, or for the symbol at it where the run copies. Rows of different length are filled up at the end, with 0:
    models are causal. A model of another kind reads what the study's ``inputs.encode`` makes, for instance images as
    real numbers (B, D), and gives one value for each.

    ``model.encode`` makes its input, from strings or images as the study says, and ``model.labels`` says what each
    output stands for.

    ``config`` holds what was trained, from the checkpoint: ``run``, ``replica``, ``study``, ``scale``,
    ``params_hash``, ``entry`` (its entry in params/<study>/, resolved at that scale) and ``spec``.

    Parameters have no replica axis here and can be trained further; the ``table`` (of a sequence model the embedding,
    (inputs, width)) is a buffer, frozen as in the studies.
    """

    table: Tensor

    def __init__(self, config: dict[str, Any], spec: Any, weights: dict[str, Tensor], table: Tensor) -> None:
        """Take ``weights`` by dotted names such as ``blocks.0.attn.W_QKV``, without a replica axis."""
        super().__init__()
        self.config = config
        self.spec = spec
        self._module = importlib.import_module("pipeline.models." + config["entry"]["model"].replace("/", "."))
        for name, value in weights.items():
            *path, last = name.split(".")
            _submodule(self, path).register_parameter(last, nn.Parameter(value.clone()))
        self.register_buffer("table", table.clone())
        self.eval()

    @classmethod
    def load(cls, path: Path, replica: int) -> Replica:
        """Return replica number ``replica`` of the checkpoint at ``path``.

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
            raise SandglassError(f"run {run}: its model, pipeline/models/{entry['model']}.py, has no forward pass")
        count = len(header.get("lr", []))  # of a grid: the replicas of its first learning rate come first
        if not count:
            raise SandglassError(
                f"run {run} has no replicas at this scale: see its replicas in params/{header['study']}/runs.yaml"
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

    def forward(self, inputs: Int[Tensor, "B T"] | Float[Tensor, "B D"]) -> Float[Tensor, B * outputs]:
        """Return what the model gives: of a sequence model, logits for the symbol after every position.

        Raises SandglassError if ``inputs`` are not what the model reads.
        """
        return self.record(inputs, ())[0]

    def record(
        self, inputs: Int[Tensor, "B T"] | Float[Tensor, "B D"], names: Collection[str]
    ) -> tuple[Float[Tensor, B * outputs], dict[str, Tensor]]:
        """Return what ``forward`` returns, and the activations of these names, with B as their first axis.

        Raises SandglassError as ``forward`` does, and for a name that the model does not have (it lists them).
        """
        inputs = self._checked(inputs)
        weights = {name: value[None] for name, value in self.named_parameters()}
        forward = getattr(self._inputs(), "forward", self._module.forward)
        outputs, recorded = forward(self.spec, weights, self.table, inputs[None], record=names)
        return outputs[0], {name: value[0] for name, value in recorded.items()}

    def attention_patterns(self, ids: Int[Tensor, "B T"]) -> list[Float[Tensor, "B H T T"]]:
        """Return the attention of every layer: rows are queries and sum to 1, columns are keys.

        Raises SandglassError as ``forward`` does, and if the model has no attention.
        """
        if not hasattr(self.spec, "layers"):
            raise SandglassError(
                f"run {self.config['run']}: its model, {self.config['entry']['model']}, has no attention"
            )
        names = [f"blocks.{layer}.attn.pattern" for layer in range(self.spec.layers)]
        recorded = self.record(ids, names)[1]
        return [recorded[name] for name in names]

    def encode(self, *items: Any) -> Int[Tensor, "B T"] | Float[Tensor, "B D"]:
        """Return what the model reads for these strings or images, by the study's ``inputs.encode``, on its device.

        Raises SandglassError for what is no input of the run: it says what is, or that there is no such way.
        """
        encode = getattr(self._inputs(), "encode", None)
        if encode is None:
            raise SandglassError(
                f"study {self.config['study']} has no encode: give its models rows of dataset "
                f"{self.config['entry'].get('dataset')}"
            )
        return torch.from_numpy(encode(self.config["entry"], *items)).to(self.table.device)

    @property
    def labels(self) -> list[str]:
        """Return what each output stands for."""
        of_study = getattr(self._inputs(), "outputs", None)
        # A model that reads and gives the same symbols says their number once.
        count = of_study(self.spec) if of_study else getattr(self.spec, "outputs", getattr(self.spec, "symbols", 1))
        return list(self._inputs().labels(self.config["entry"], count))

    def _inputs(self) -> Any:
        return importlib.import_module(f"pipeline.studies.{self.config['study']}.inputs")

    def _checked(self, ids: Tensor) -> Tensor:
        """Return ``ids`` as the model reads them; a study whose models are no sequence models checks its own inputs."""
        if checked := getattr(self._inputs(), "checked", None):
            inputs: Tensor = checked(self.spec, ids)
            return inputs
        if ids.ndim != 2 or ids.is_floating_point() or ids.dtype == torch.bool:
            raise SandglassError(f"ids must be integers of shape (B, T), got {ids.dtype} of shape {tuple(ids.shape)}")
        count = getattr(self.spec, "inputs", getattr(self.spec, "symbols", 0))
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < count:
            raise SandglassError(f"ids must be 0 to {count - 1}, got {int(ids.min())} to {int(ids.max())}")
        return ids.long()


def _submodule(module: nn.Module, path: list[str]) -> nn.Module:
    for name in path:
        if name not in dict(module.named_children()):
            module.add_module(name, nn.Module())
        module = module.get_submodule(name)
    return module
