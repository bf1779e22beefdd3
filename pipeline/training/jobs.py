"""A training as it is asked for and as it stands: the job's header and data, its objective, and the trainer's state.

Imports torch, numpy and safetensors only, as the trainer does (`pipeline.training.core`).
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from pipeline.kit.streams import stream
from pipeline.store import checkpoints
from pipeline.training.fresh import Fresh

# What an optimiser remembers, and the metrics that it adds.
MOMENTS = {"adam": ("mean", "square"), "adamw": ("mean", "square"), "sgd": (), "normalised_sgd": ()}
METRICS = {"sgd": ("gradient_norm",), "normalised_sgd": ("gradient_norm", "skipped")}

SCHEDULED = "average"  # the name of the moving average whose decay is scheduled
# Gradients are copied together before they are used if parameters have fewer weights than this on average: fewer and
# longer operations then save more than the copy costs. MLPs trained with Adam, four parameters, three models side by
# side: at 2,600 weights a parameter a step takes a tenth less, at 17,500 as long, at 257,500 a sixth more.
COPIED = 2**14
# So many sets of replicas are remembered with their pieces: of many replicas that are clipped, each step has others.
JOINED = 64

# The model's forward pass with specification, parameters and table filled in: outputs and what was recorded.
Forward = Callable[..., tuple[Tensor, dict[str, Tensor]]]


class Objective(Protocol):
    """What a module of `pipeline.training.objectives` makes of the job's data: ``Objective(data, settings)``."""

    sequences: int  # examples of an epoch; 0 where every step has new ones, which ``sample`` draws (`Sampling`)
    l2: float  # lambda of an l2 term on all weights, which the trainer adds
    side_by_side: int  # at most so many replicas of a member train in one process on a CPU (`ensemble`)
    metrics: tuple[str, ...]  # what ``loss`` returns; "loss" is minimised, "regulariser" takes the l2 term
    evaluated: tuple[str, ...]  # what ``evaluate`` returns

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return the batch of a step, a leading axis R on every array.

        The arguments give for each replica its corpus, the numbers of the examples chosen from it (or new examples
        themselves, where ``sequences`` is 0), and its stream of draws.
        """

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return ``metrics`` on a batch, (R,) each. ``batch["step"]`` is the 0-based step, a number."""

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return ``evaluated`` on the arrays ``held.<name>`` of the job, (R,) each.

        It is called where the curves have a point, without gradients. ``held["corpus"]`` (R,) numbers the
        corpus of each replica.
        """


class Sampling(Objective, Protocol):
    """An objective whose examples are new at every step."""

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return (n, …) examples."""


@dataclass(frozen=True)
class Header:
    """What a job says beside its data. Lists have one entry per model, here called a replica."""

    model: str
    spec: dict[str, Any]
    objective: str
    settings: dict[str, Any]
    seed: int
    study: str
    stream: str
    corpus: list[int]
    lr: list[float]
    steps: int
    batch: int
    schedule: str
    betas: list[float]
    eps: float
    clip: float
    precision: str
    log_every: int
    optimizer: str = "adam"
    weight_decay: float = 0.0  # of AdamW
    warmup: int = 0  # steps in which the rate rises to its peak
    floor: float = 0.0  # where a cosine ends, as a share of the peak
    averages: list[float] = field(default_factory=list)  # decays of moving averages of the weights
    # One more, of a decay that changes with time: ``start``, ``before``, ``power``, ``least`` (`scheduled_decay`).
    scheduled_average: dict[str, float] | None = None
    snapshots: list[int] = field(default_factory=list)  # numbers of steps after which the weights are kept
    # Models with the same number share initial weights, and where ``orders`` says nothing else data order and draws.
    streams: list[int] | None = None  # None: 0, 1, ...
    orders: list[int] | None = None  # None: as ``streams``
    code: str = ""  # the md5 of the code that trains: what is half trained by other code is not gone on with

    @classmethod
    def grid(cls, entry: Any, seed: int, spec: dict[str, Any], settings: dict[str, Any]) -> Header:
        """Return the header of a run over several learning rates (`pipeline.params.GridRunEntry`).

        The first rate's replicas come first; all of them train on the first corpus.
        """
        count = entry.replicas * len(entry.lr)
        same = ("model", "objective", "study", "stream", "steps", "batch", "schedule", "clip", "precision")
        optional = ("weight_decay", "warmup", "floor", "averages", "snapshots")
        own = [name for name in optional if hasattr(entry, name)]
        return cls(
            **{name: getattr(entry, name) for name in (*same, "log_every", "optimizer", *own)},
            spec=spec,
            settings=settings,
            seed=seed,
            corpus=[0] * count,
            lr=[rate for rate in entry.lr for _ in range(entry.replicas)],
            streams=[r for _ in entry.lr for r in range(entry.replicas)],
            betas=entry.betas or [],
            eps=entry.eps or 0.0,
        )


class TrainingJob:
    """A job file, opened: header, model module, objective and frozen embedding table."""

    def __init__(self, path: Path) -> None:
        data, header = checkpoints.read(path)
        self.path = path
        self.folder = path.parent / "chunks"  # where its chunks are left
        self.digest = hashlib.sha256(path.read_bytes()).hexdigest()
        self.header = Header(**header)
        self.table = data.pop("table")
        self.model = importlib.import_module("pipeline.models." + self.header.model.replace("/", "."))
        self.spec = self.model.Spec(**self.header.spec)
        self.shapes: dict[str, tuple[int, ...]] = self.model.shapes(self.spec)
        self.given = _taken(data, "initial.")
        self.held = _taken(data, "held.")
        objective = importlib.import_module(f"pipeline.training.objectives.{self.header.objective}")
        self.objective: Objective = objective.Objective(data, self.header.settings)
        self.averaged = (*self.objective.metrics, *METRICS.get(self.header.optimizer, ()))
        self.metrics = (*self.averaged, *self.objective.evaluated)
        self._orders: dict[int, tuple[int, np.ndarray]] = {}
        self._fresh: dict[int, Fresh] = {}

    def rng(self, replica: int, *purpose: str | int) -> np.random.Generator:
        """Return a named stream of a replica: of its initial weights (``init``), data order or objective's draws."""
        header, which = self.header, self._order(replica) if purpose[0] != "init" else self._start(replica)
        return stream(header.seed, header.study, header.stream, "replica", which, *purpose)

    def _start(self, replica: int) -> int:
        return self.header.streams[replica] if self.header.streams is not None else replica

    def _order(self, replica: int) -> int:
        return self.header.orders[replica] if self.header.orders is not None else self._start(replica)

    def batch(self, replicas: list[int], step: int) -> dict[str, np.ndarray]:
        """Return the batch that the replicas see at ``step``: a pure function of its arguments."""
        corpora = [self.header.corpus[r] for r in replicas]
        chosen = [self._selection(r, step) for r in replicas]
        rngs = [functools.partial(self.rng, r, "objective", step) for r in replicas]
        return self.objective.collate(corpora, chosen, rngs)

    def _selection(self, replica: int, step: int) -> np.ndarray:
        n, size, which = self.objective.sequences, self.header.batch, self._order(replica)
        if not n:
            if which not in self._fresh:
                objective = cast(Sampling, self.objective)
                rng = functools.partial(self.rng, replica, "fresh")
                self._fresh[which] = Fresh(objective.sample, rng, size)
            return self._fresh[which].at(step)
        epoch, index = divmod(step, math.ceil(n / size))
        if self._orders.get(which, (-1,))[0] != epoch:
            self._orders[which] = (epoch, self.rng(replica, "order", epoch).permutation(n))
        return self._orders[which][1][index * size : (index + 1) * size]

    def initial(self, replicas: list[int]) -> Tensor:
        """Return the flat initial weights (R, P), float32."""
        rows = []
        for r in replicas:
            values = self.model.initial(self.spec, self.rng(r, "init")) | self.given
            rows.append(np.concatenate([values[name].reshape(-1) for name in self.shapes]))
        return torch.from_numpy(np.stack(rows)).to(torch.float32)

    def unflatten(self, flat_RxP: Tensor) -> dict[str, Tensor]:
        """Return views of the flat weights by name, each with the leading replica axis."""
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        parts = flat_RxP.split(sizes, dim=-1)
        named = zip(self.shapes.items(), parts, strict=True)
        return {name: part.view(-1, *shape) for (name, shape), part in named}


def _taken(data: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Remove the arrays whose name starts with ``prefix`` from ``data``; return them by name without it."""
    return {name.removeprefix(prefix): data.pop(name) for name in list(data) if name.startswith(prefix)}


@dataclass
class Views:
    """The memory of weights, moments and gradient as a step reads and writes it, laid out once for all steps.

    A piece is a contiguous part of one replica that is updated as a whole, so that what becomes of a weight does not
    depend on how many replicas train side by side. A replica is one piece, to which its gradients are copied; or, of
    large parameters, one piece a parameter (`COPIED`).
    """

    leaves: dict[str, Tensor]  # (R, *shape) each, the weights by which the loss is differentiated
    weights: list[list[Tensor]]  # of each replica its pieces
    moments: list[dict[str, list[Tensor]]]  # of each replica by name, piece by piece
    gradient: Tensor | None  # (R, P), where gradients are copied together
    gradients: list[Tensor]  # views of that, as the leaves; none where gradients stay where they are
    _joined: dict[tuple[int, ...], tuple[list[Tensor], dict[str, list[Tensor]]]] = field(default_factory=dict)

    @classmethod
    def of(cls, job: TrainingJob, state: State) -> Views:
        """Return the views of a state; they stay right while it is changed in place."""
        flat = state.flat.detach()
        leaves = {name: view.detach().requires_grad_() for name, view in job.unflatten(flat).items()}
        replicas, size = flat.shape
        together = size < COPIED * len(leaves) or flat.is_cuda

        def pieces(tensor: Tensor) -> list[list[Tensor]]:
            if together:
                return [[row] for row in tensor.unbind()]
            return [[part[r] for part in job.unflatten(tensor).values()] for r in range(replicas)]

        parts = {name: pieces(moment) for name, moment in state.moments.items()}
        moments = [{name: rows[r] for name, rows in parts.items()} for r in range(replicas)]
        gradient = torch.empty_like(flat) if together else None
        gradients = [] if gradient is None else list(job.unflatten(gradient).values())
        return cls(leaves, pieces(flat), moments, gradient, gradients)

    def pieces(self, gradients: Sequence[Tensor]) -> list[list[Tensor]]:
        """Return the gradients by the leaves as each replica's pieces; those are to be read only."""
        if self.gradient is not None:
            torch._foreach_copy_(self.gradients, list(gradients))
            return [[row] for row in self.gradient.unbind()]
        rows = [gradient.contiguous().unbind() for gradient in gradients]
        return [list(row) for row in zip(*rows, strict=True)]

    def joined(self, replicas: tuple[int, ...]) -> tuple[list[Tensor], dict[str, list[Tensor]]]:
        """Return the pieces of the weights and of each moment of some replicas, one replica behind the other."""
        if replicas not in self._joined:
            if len(self._joined) == JOINED:
                self._joined.clear()
            names = self.moments[0]
            moments = {name: [piece for r in replicas for piece in self.moments[r][name]] for name in names}
            self._joined[replicas] = [piece for r in replicas for piece in self.weights[r]], moments
        return self._joined[replicas]


@dataclass
class State:
    """Everything that training carries from step to step."""

    flat: Tensor  # (R, P) weights, changed in place
    moments: dict[str, Tensor]  # (R, P) each, of the optimiser: `MOMENTS`
    averages: dict[str, Tensor]  # (R, P) each, of the weights: `decays`
    snapshots: dict[str, Tensor]  # (R, P) each, weights after steps that are to be kept: `snapshot_name`
    diverged_at: Tensor  # (R,) int64, -1 while the replica is finite
    step: int
    curves: dict[str, list[Tensor]]  # metric -> one (R,) tensor per logged step
    sums: dict[str, Tensor]  # (R,) each, of the metrics that are averaged, over the steps since the last point
    _views: Views | None = field(init=False, default=None, repr=False)

    @classmethod
    def fresh(cls, job: TrainingJob, flat: Tensor) -> State:
        """Return the state before the first step, at the weights ``flat``."""
        never = torch.full((flat.shape[0],), -1, dtype=torch.int64, device=flat.device)
        moments = {name: torch.zeros_like(flat) for name in MOMENTS[job.header.optimizer]}
        averages = {name: flat.clone() for name in decays(job.header, 0)}
        snapshots = {snapshot_name(0): flat.clone()} if 0 in job.header.snapshots else {}
        curves: dict[str, list[Tensor]] = {metric: [] for metric in job.metrics}
        sums = {metric: flat.new_zeros(flat.shape[0]) for metric in job.averaged}
        return cls(flat, moments, averages, snapshots, never, 0, curves, sums)

    def views(self, job: TrainingJob) -> Views:
        """Return the views that steps work on, which are made at the first call."""
        if self._views is None:
            self._views = Views.of(job, self)
        return self._views


def decays(header: Header, step: int) -> dict[str, float]:
    """Return the share that each moving average of the weights keeps at a 0-based step, by its name.

    The name is ``average0.9`` where the share is always 0.9, and ``average`` where it is scheduled. Arrays of a
    checkpoint are ``average0.9.<parameter>`` and ``average.<parameter>``.
    """
    kept = {average_name(decay): decay for decay in header.averages}
    if header.scheduled_average is not None:
        kept[SCHEDULED] = scheduled_decay(header.scheduled_average, step)
    return kept


def average_name(decay: float) -> str:
    """Return the name of the moving average of the weights with this decay: ``average0.9``."""
    return f"average{decay:g}"


def scheduled_decay(schedule: dict[str, float], step: int) -> float:
    """Return the share that the scheduled average keeps at a 0-based step t.

    It is ``before`` for t < ``start`` and 1 - max((t + 1)^-power, least) from then on, as Block et al. (2024) have it,
    whom Li 2025 (section 3.2.1.1) names.

    >>> released = {"start": 100, "before": 0.999, "power": 0.67, "least": 0.001}
    >>> [round(scheduled_decay(released, step), 4) for step in (0, 99, 100, 2999, 100_000)]
    [0.999, 0.999, 0.9546, 0.9953, 0.999]
    """
    if step < schedule["start"]:
        return float(schedule["before"])
    return float(1 - max((step + 1) ** -schedule["power"], schedule["least"]))


def snapshot_name(step: int) -> str:
    """Return the name of the weights after so many steps: ``step100``.

    Arrays of a checkpoint are ``step100.<parameter>``; those after 0 steps are the initial weights.
    """
    return f"step{step}"
