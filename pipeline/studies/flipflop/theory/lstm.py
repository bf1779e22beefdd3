"""An LSTM of two units with weights by hand processes flip-flop language (Liu 2024, section 3.5.1.2; chapter 5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pipeline.kit.extremes import smallest
from pipeline.kit.streams import one_thread, stream
from pipeline.kit.theory_rows import exceptions, row
from pipeline.languages import flipflop as language
from pipeline.models.automata import lstm
from pipeline.studies.flipflop.constructions import CONTROL, SOURCE, judged
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.flipflop.params import Theory

HERE = SOURCE.format(".1.2")
SATURATION = 20.0
THETA = math.tanh(1.0)  # of a cell at 1, what the unit shows
LAWS = {"0.8": (0.1, 0.1), "0.98": (0.01, 0.01), "0.1": (0.45, 0.45)}


def weights(saturation: float = SATURATION) -> tuple[lstm.Spec, dict[str, Tensor]]:
    """Return shape and weights: unit 0 is on behind a write, unit 1 holds the bit that was written, as -1 or 1.

    The gates of unit 1 are open exactly where unit 0 was on one step before. Outputs are the two units as they are.
    """
    spec, K = lstm.Spec(embed=5, width=2, inputs=5, outputs=2), saturation
    made = {name: torch.zeros(1, *shape, dtype=torch.float64) for name, shape in lstm.shapes(spec).items()}
    made["embed.W"][0], made["head.W"][0] = torch.eye(5), torch.eye(2)
    i_0, i_1, f_0, f_1, g_0, g_1, o_0, o_1 = range(8)
    bias, inputs, hidden = made["cell.b"][0], made["cell.W_in"][0], made["cell.W_hh"][0]
    bias[[i_0, f_0, o_0, o_1]] = torch.tensor([K, -K, K, K], dtype=torch.float64)
    inputs[language.WRITE, g_0] = K
    bias[i_1], bias[f_1] = -K, K
    hidden[0, i_1], hidden[0, f_1] = 2 * K / THETA, -2 * K / THETA
    inputs[language.DATA, g_1], inputs[language.DATA + 1, g_1] = -K, K
    return spec, made


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the LSTM."""
    with one_thread():
        made = list(judged("LSTM by hand", _rows(entry, stream(seed, entry.study, key))))
    return theory.rows(entry.study, key, HERE, made)


def _rows(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    margins = []
    cases: list[tuple[tuple[str, ...], np.ndarray]] = [
        ((f"all-{length}",), language.enumerate_strings(length)) for length in range(4, entry.short + 1, 2)
    ]
    for length in entry.lengths:  # all laws side by side: a pass takes as long as its strings are
        drawn = [language.sample(rng, entry.draws, length, *law) for law in LAWS.values()]
        cases.append((tuple(f"ffl-{name}.{length}" for name in LAWS), np.concatenate(drawn)))
    for names, tokens in cases:
        memory = memory_values(tokens, *weights())
        read = tokens[:, :-1] == language.READ
        wrong = (memory[:, :-1] > 0) != (tokens[:, 1:] == language.DATA + 1)
        margins.append(np.abs(memory[:, :-1][read]).min())
        for name, part in zip(names, np.split(np.arange(len(tokens)), len(names)), strict=True):
            yield row(
                f"lstm.{name}",
                "The LSTM with weights by hand says the bit behind every read: errors",
                f"{len(part)} strings of {tokens.shape[1]} tokens, {read[part].sum()} reads",
                exceptions(wrong[part][read[part]], memory[part]),
                "<=",
                0,
            )
    yield row(
        "lstm.margin",
        "At every read the memory unit is away from 0 by at least",
        "all strings above",
        smallest(margins),
        ">=",
        0.7615,
    )
    tokens = language.sample(rng, 8 * entry.draws, entry.lengths[0], *LAWS["0.8"])
    blunt = memory_values(tokens, *weights(1.0))
    read = tokens[:, :-1] == language.READ
    yield row(
        "lstm.blunt",
        "With gates that hardly saturate (K = 1) it forgets: errors",
        f"{len(tokens)} strings of {tokens.shape[1]} tokens, {read.sum()} reads",
        exceptions(((blunt[:, :-1] > 0) != (tokens[:, 1:] == language.DATA + 1))[read], blunt),
        ">=",
        1,
        source=CONTROL,
    )


def memory_values(tokens_NxT: np.ndarray, spec: lstm.Spec, params: dict[str, Tensor]) -> np.ndarray:
    """Return (N, T): the memory unit behind each token; its sign is the bit."""
    ids = torch.from_numpy(tokens_NxT.astype(np.int64))[None]
    with torch.no_grad():
        outputs, _ = lstm.forward(spec, params, params["embed.W"][0], ids)
    return outputs[0, ..., 1].numpy()
