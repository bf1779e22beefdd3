"""Which monomials of the input a model's answer correlates with after each kept step (Liu 2024, section 4.2.2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import parity
from pipeline.models.distillation import mlp, transformer
from pipeline.studies.distillation.measures.kept import Kept

NUMBERS = 2**22  # hidden values that are held at once: blocks above 32 MiB the system zeroes at every step
DEGREES = (1, 2, 3)

Task = tuple[int, int, int]  # d, k, depth


def probabilities(kept: Kept, step: int, bits: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return p (models, n, classes) after a kept step on strings (n, d); models are numbered replica by replica."""
    weights = kept.weights(step)
    if kept.module is transformer:
        return transformer.behind(kept.spec, weights, bits, NUMBERS).softmax(-1).double().numpy()
    size = max(1, NUMBERS // (kept.spec.width * kept.spec.side * kept.entry["replicas"]))
    parts = []
    for start in range(0, len(bits), size):
        x = torch.from_numpy(parity.signs(bits[start : start + size]))
        logits = mlp.forward(kept.spec, weights, torch.zeros(1, 1), x[None, None])[0]
        parts.append(logits.softmax(-1).flatten(0, 1))
    return torch.cat(parts, 1).double().numpy()


def features(task: Task) -> dict[str, list[int]]:
    """Return the places of each parity that matters for class 0, by name: ``support``, or ``T1``, ``T2``, ``T4``."""
    _, k, depth = task
    if depth == 1:
        return {"support": list(range(k))}
    return {f"T{node}": parity.node_places(node, k) for node in parity.leaf_nodes(0, depth)}


def softness(
    context: Inputs, run: str, task: Task, steps: dict[int, int], temperatures: list[float]
) -> NDArray[np.float64]:
    """Return (temperatures, models): the probability that a teacher's answer at a temperature has beside its top class,
    mean over strings; each model of ``steps`` after its step."""
    kept, bits = Kept(context, run), _strings(context, task[0])
    shares = np.empty((len(temperatures), len(steps)))
    for place, (model, step) in enumerate(steps.items()):
        with np.errstate(divide="ignore"):
            logits = np.log(probabilities(kept, step, bits)[model])
        for row, tau in enumerate(temperatures):
            raised = np.exp((logits - logits.max(-1, keepdims=True)) / tau)
            shares[row, place] = 1 - (1 / raised.sum(-1)).mean()
    return shares


def _strings(context: Inputs, d: int) -> NDArray[np.uint8]:
    rng = stream(context.seed, context.study, "correlations", d)
    return parity.sample(rng, (context.entry.correlated,), d)


def tables(context: Inputs, run: str, task: Task) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return correlations of degree 1 one by one, and for each degree and feature their summary with SEP.

    Off-support monomials of degree 1 are all there are; of higher degrees the experiment's number is drawn once.
    """
    d, k, depth = task
    degrees = [degree for degree in DEGREES if degree <= k]
    kept = Kept(context, run)
    bits = _strings(context, d)
    groups = features(task)
    everything = sorted(place for places in groups.values() for place in places)
    rng = stream(context.seed, context.study, "monomials", d, k, depth)
    others = {r: parity.other_monomials(rng, everything, d, r, context.entry.others) for r in degrees}
    inside = {(name, r): parity.support_monomials(places, r) for name, places in groups.items() for r in degrees}
    chi_outside = {r: parity.characters(bits, monomials) for r, monomials in others.items()}
    chi_inside = {key: parity.characters(bits, monomials) for key, monomials in inside.items()}
    single: list[dict[str, Any]] = []
    summary: list[dict[str, Any]] = []
    for step in kept.steps:
        p = probabilities(kept, step, bits)[..., 0]
        off = {r: parity.correlations(p, chi_outside[r]) for r in degrees}
        for (name, r), monomials in inside.items():
            own = parity.correlations(p, chi_inside[name, r])
            separations = parity.separation(own, off[r])
            for model in range(len(p)):
                summary.append(
                    {
                        "run": run,
                        "model": model,
                        "step": step,
                        "degree": r,
                        "feature": name,
                        "inside": float(np.median(own[model])),
                        "least_inside": float(own[model].min()),
                        "outside": float(off[r][model].mean()),
                        "outside_q95": float(np.quantile(off[r][model], 0.95)),
                        "separation": float(separations[model]),
                    }
                )
                if r == 1:
                    single += [
                        {
                            "run": run,
                            "model": model,
                            "step": step,
                            "feature": name,
                            "place": place,
                            "correlation": float(value),
                        }
                        for (place,), value in zip(monomials, own[model], strict=True)
                    ]
        single += [
            {"run": run, "model": model, "step": step, "feature": "rest", "place": place, "correlation": float(value)}
            for model in range(len(p))
            for (place,), value in zip(others[1], off[1][model], strict=True)
        ]
    return pl.DataFrame(single), pl.DataFrame(summary)
