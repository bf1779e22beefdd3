"""What answers of a teacher take, said before they are made: bytes of memory, and the least time.

Answers to a step are those to all that is asked of its inputs: a class (two bytes), or at a temperature above 0 a
probability (four bytes) for each class. At the published sizes of masked sentences a step of 512 asks about 42,335
tokens, so that 16,000 steps of the arms of Figures 4.4 and 4.28 would take 136 GiB.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import torch

from pipeline.languages import pcfg

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.studies.distillation.params import Run, Taught

HARD, REAL = 2, 4  # bytes of a class, and of a probability or a weight
TRIED = 1024  # rows of the matrices whose product says how fast a device is


def asked(entry: Taught) -> float:
    """Return how many tokens or strings a step of a student asks for, on average."""
    if entry.kind == "taught_strings":
        return float(entry.batch)
    if entry.kind == "taught_blocks":
        return entry.batch * entry.length * entry.rate
    if entry.rate is not None:
        return entry.batch * mean_length(entry.grammar, entry.root) * entry.rate
    assert entry.level is not None
    return entry.batch * mean_spans(entry.grammar, entry.root, entry.level)


def mean_length(grammar: str, root: int) -> float:
    """Return the mean number of tokens of a string.

    >>> round(mean_length("cfg3b", 22), 3)
    275.625
    """
    return float(sum(length * share for length, share in enumerate(pcfg.length_law(grammar, root))))


def mean_spans(grammar: str, root: int, level: int) -> float:
    """Return the mean number of symbols of a level in a derivation, each of which ends with a token that is asked for.

    >>> round(mean_spans("cfg3b", 22, 1), 3), mean_spans("cfg3b", 22, 6)
    (275.625, 2.0)
    """
    known, depth = pcfg.grammar(grammar), pcfg.DEPTH + 1 - level
    counts = dict.fromkeys(pcfg.SYMBOLS[depth], 1.0)
    for symbols in reversed(pcfg.SYMBOLS[pcfg.depth(root) : depth]):
        for symbol in symbols:
            sides = known.rules[symbol]
            counts[symbol] = sum(counts[child] for side in sides for child in side) / len(sides)
    return counts[root]


def answer_bytes(entry: Taught) -> float:
    """Return how many bytes the answers to all students of an entry take: those of one-hot targets and of soft ones."""
    classes = 2**entry.depth if entry.kind == "taught_strings" else 8 if entry.kind == "taught_sentences" else 1
    each = [classes * REAL if arm.tau else HARD for arm in entry.arms.values() if arm.schedule != "labels"]
    return entry.replicas * entry.side * entry.steps * asked(entry) * sum(each)


def of_answers(entry: Taught) -> str:
    """Return what the answers of an entry take, in words."""
    size = answer_bytes(entry)
    taken = "would take, had they not been asked while students train" if entry.answered_during_training else "take"
    return (
        f"{asked(entry):,.0f} answers a step, {entry.steps:,} steps; the answers of all students {taken}: {said(size)}"
    )


def of_training(entry: Run, settings: dict[str, Any], data: dict[str, NDArray[np.generic]]) -> str:
    """Return what students of a streamed dataset take beside their own training: bytes, products, and the least time,
    which is that of the products at the speed of a large one on this device."""
    C, P = data["weights"].shape
    tokens = entry.batch * data["held.x"].shape[1]
    plans = [
        {(place, own % entry.side, a, b) for own, plan in enumerate(each) for place, a, b in plan}
        for each in settings["plans"]
    ]
    passes = sum(b - a for each in plans for _, _, a, b in each)
    flops = 2.0 * P * tokens * passes
    speed = device_speed()
    return (
        f"{C} checkpoints of {P:,} weights, {said(C * P * REAL)} on the device; {passes / entry.steps:.1f} passes of a "
        f"teacher in each of {entry.steps:,} steps, {flops:.1e} products and sums: at least {flops / speed / 3600:.2g} "
        f"hours at {speed:.1e} a second"
    )


def device_speed() -> float:
    """Return how many products and sums of single precision this device makes in a second, of two large matrices."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.ones(TRIED, TRIED, device=device)
    spent = math.inf
    for _ in range(3):
        start = time.monotonic()
        (x @ x)[0, 0].item()
        spent = min(spent, time.monotonic() - start)
    return 2.0 * TRIED**3 / spent


def said(size: float) -> str:
    """Return a number of bytes in words.

    >>> said(3 * 2**20), said(149_000_000_000)
    ('3.0 MiB', '138.8 GiB')
    """
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
