"""AdamW beside which a moving average of the weights is kept, whose decay changes as training goes on.

The trainer's own averages have a constant decay. That of Block et al. (2024), which Li 2025 (section 3.2.1.1) names,
keeps at 0-based step t the share

    0.999 for t < 100,    1 - max((t + 1)^-0.67, 0.001) from then on

of the average. An objective imports this module, and its run names the optimizer `NAME` with one average of decay 1,
which the trainer keeps, stores and resumes, and never changes itself.
The numbers stand in the settings: ``average.start``, ``.before``, ``.power``, ``.least``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.training import jobs, optimisers

if TYPE_CHECKING:
    from torch import Tensor

    from pipeline.training.jobs import Header, State

NAME = "adamw_averaged"
KEPT = 1.0  # the decay that a header says: the trainer leaves the average as it is
PREFIX = "average1."  # of its arrays in a checkpoint


def decay(settings: dict[str, Any], step: int) -> float:
    """Return the share that the average keeps at a 0-based step.

    >>> released = {"start": 100, "before": 0.999, "power": 0.67, "least": 0.001}
    >>> [round(decay(released, step), 4) for step in (0, 99, 100, 2999, 100_000)]
    [0.999, 0.999, 0.9546, 0.9953, 0.999]
    """
    if step < settings["start"]:
        return float(settings["before"])
    return float(1 - max((step + 1) ** -settings["power"], settings["least"]))


def _update(header: Header, state: State, gradient: Tensor, lr_Rx1: Tensor) -> None:
    """Apply one update of AdamW, and move the average towards the weights."""
    optimisers.UPDATES["adamw"](header, state, gradient, lr_Rx1)
    (average,) = state.averages.values()
    average.lerp_(state.flat, 1 - decay(header.settings["average"], state.step))


jobs.MOMENTS[NAME] = jobs.MOMENTS["adamw"]
optimisers.UPDATES[NAME] = _update
