"""The weights of a run after each kept step."""

from __future__ import annotations

from typing import Any

import torch

from pipeline.kit.inputs import Inputs
from pipeline.models.distillation import mlp, transformer


class Kept:
    """The weights of a run after each kept step. ``names``: of its models side by side, as its curves have them."""

    def __init__(self, context: Inputs, run: str) -> None:
        loaded = context.model(run)
        self.entry = context.run_header(run)["entry"]
        self.module: Any = mlp if self.entry["model"].endswith("mlp") else transformer
        self.spec, self.params = loaded.spec, loaded.params
        steps = {name.split(".")[0] for name in self.params if name.startswith("step")}
        self.steps = [*sorted(int(name[4:]) for name in steps), self.entry["steps"]]

    def weights(self, step: int) -> dict[str, torch.Tensor]:
        """Return the weights of all models after a kept step."""
        prefix = "" if step == self.entry["steps"] else f"step{step}."
        return {name: self.params[prefix + name] for name in self.module.shapes(self.spec)}
