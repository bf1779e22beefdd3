"""Claim 23: numbers that the text prints, computed."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured, within
from pipeline.studies.flipflop.claims.common import SECTION, at_most


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates; none of them depends on what was trained."""
    for gate, predicate, value, printed in _numbers():
        yield Gate(
            "23", gate, predicate, SECTION.format("3.5.6.2"), within(printed, 0.005 * printed),
            Measured(float(value)), "", printed,
        )  # fmt: skip
    for n, reads in ((10**3, 3567), (10**5, 353875)):
        deviation = (reads - n * (1 + 254 * 0.01)) / sqrt(n * 254 * 0.01 * 0.99)
        yield Gate(
            "23", f"{reads} reads", f"reads of {n} strings of FFL(0.98): distance from the mean in standard deviations",
            SECTION.format("3.5.6.2"), at_most(2.0), Measured(abs(deviation)), "",
        )  # fmt: skip


def decoder_parameters(layers: int, width: int, length: int = 512, symbols: int = 5) -> int:
    """Return the trained numbers of a decoder of section 3.5.2.

    >>> decoder_parameters(6, 512)
    19170309
    """
    block = 12 * width**2 + 9 * width
    return layers * block + 2 * width + (symbols + length) * width + symbols * width + symbols


def lstm_parameters(width: int, symbols: int = 5) -> int:
    """Return the trained numbers of an LSTM with as wide an embedding, as torch counts them (two biases).

    >>> lstm_parameters(128)
    133381
    """
    return symbols * width + 8 * width**2 + 8 * width + width * symbols + symbols


def _numbers() -> Iterator[tuple[str, str, int, float]]:
    """Yield gate, what is counted, our number, and the printed one."""
    yield "canonical decoder", "trained numbers of 6 layers of width 512", decoder_parameters(6, 512), 19.2e6
    yield "largest decoder", "trained numbers of 8 layers of width 1024", decoder_parameters(8, 1024), 101e6
    yield "LSTM", "trained numbers of an LSTM of width 128", lstm_parameters(128), 133e3
    yield "tokens", "steps times batch times length", 10_000 * 16 * 512, 81_920_000
    yield "models", "500 baselines and 25 of each of 405 configurations", 500 + 25 * 405, 10_625
