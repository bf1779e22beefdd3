"""Claim 23: numbers that the text prints, computed."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from pipeline.kit.conditions import at_most, within
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from pipeline.studies.flipflop.claims.common import SECTION
from schemas.claims import OWN


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates; none of them depends on what was trained."""
    for gate, measure, section, value, printed, unit in _numbers():
        yield Gate(
            "23", gate, measure, SECTION.format(section), within(printed, unit / 2), Measured(float(value)), "", printed
        )
    yield Gate(
        "23",
        "models",
        "remainder of trained models besides 500 baselines, in sets of 25",
        SECTION.format("3.5.4"),
        at_most(0.0),
        Measured(float((10_625 - 500) % 25)),
        "",
        kind=OWN,
    )
    for n, reads in ((10**3, 3567), (10**5, 353875)):
        deviation = (reads - n * (1 + 254 * 0.01)) / sqrt(n * 254 * 0.01 * 0.99)
        yield Gate(
            "23",
            f"{reads} reads",
            f"standard deviations between the reads of {n} strings of FFL(0.98) and their mean",
            SECTION.format("3.5.6.2"),
            at_most(2.0),
            Measured(abs(deviation)),
            "",
        )


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


def _numbers() -> Iterator[tuple[str, str, str, int, float, float]]:
    """Yield gate, what is counted, section, our number, the printed one, and the unit to which that is rounded (0: not
    at all)."""
    yield (
        "canonical decoder",
        "trained numbers of 6 layers of width 512",
        "3.5.2",
        decoder_parameters(6, 512),
        19e6,
        1e6,
    )
    size = decoder_parameters(8, 1024)
    yield ("largest decoder", "trained numbers of 8 layers of width 1024", "3.5.6.2, Figure 3.27", size, 101e6, 1e6)
    yield "LSTM", "trained numbers of an LSTM of width 128", "3.5.6.2", lstm_parameters(128), 133e3, 1e3
    yield "tokens", "steps times batch times length", "3.5.6.2", 10_000 * 16 * 512, 81_920_000, 0
