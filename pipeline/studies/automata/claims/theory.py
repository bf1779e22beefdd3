"""Claims 1 to 6: constructions, executed."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.evidence import Part
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from schemas.claims import CORRECTED, OWN

SOURCE = "Liu 2024, section 3.4.4{}"
SECTIONS = {  # of the constructions
    "Theorem 10": ".2",
    "Lemma 15": ".3.1",
    "Lemma 16": ".3.1",
    "Lemma 17": ".3.3",
    "Lemma 18": ".3.3",
    "Lemma 19": ".3.3",
    "Theorem 16": ".3.3",
    "Lemma 20": ".3.4",
    "Theorem 11": ".3.4",
    "Theorem 12": ".4",
}
LEFT_OUT = {  # sizes of which no bound holds as printed, each with a row of its own, or of which none is printed
    "Theorem 10": "the MLP width, whose bound is an erratum",
    "Lemma 16": "the norm, whose bound is an erratum",
    "Lemma 20": "dimensions of embedding and heads, whose bounds are errata",
    "Theorem 11": "the dimension of heads, whose bound presumes an erratum",
    "Theorem 12": "the number of heads, whose bound is an erratum, and the MLP width, of which no constant is printed",
}
PRINTED = {  # printed forms that claim 5 names
    "Proposition 2": ".1",
    "Lemma 11": ".1",
    "Lemma 12": ".1",
    "Theorem 10, sign": ".2",
    "Theorem 10, W_V": ".2",
    "Theorem 10, read-out": ".2",
    "Lemma 15, scale": ".3.1",
    "Lemma 20, start": ".3.4",
    "Lemma 21, wiring": ".3.4",
    "Theorem 12, output": ".4",
    "Theorem 12, pad": ".4",
}
BUILT = SOURCE.format(".3.3, Theorem 16")


def _sizes(name: str) -> str:
    return "sizes within their claimed bounds" + (f", without {LEFT_OUT[name]}" if name in LEFT_OUT else "")


PARTS = {
    "1": {
        f"{name}, {part}": Part(what, SOURCE.format(f"{section}, {name}"), CORRECTED)
        for name, section in SECTIONS.items()
        for part, what in (("errors", "no token error"), ("deviation", "outputs are integers"))
    },
    "2": {
        "Theorem 10": Part("a depth that is the logarithm of the length, without an error", SOURCE.format(".2")),
        "Theorem 16": Part("one depth at lengths from 8 to 64, without an error", SOURCE.format(".3.3")),
        "Theorem 12": Part("one depth at lengths from 8 to 64, without an error", SOURCE.format(".4")),
    },
    "3": {
        "built": Part("no token error on all short inputs of a solvable group", BUILT),
        # Theorem 16 is about solvable groups; that what was built here refuses others is a property of our code.
        "A5": Part("the construction is refused", BUILT, OWN),
        "S5": Part("the construction is refused", BUILT, OWN),
        "classification": Part("composition factors and derived series agree", "Liu 2024, section 3.4.1.2", OWN),
    },
    "4": {name: Part(_sizes(name), SOURCE.format(f"{section}, {name}")) for name, section in SECTIONS.items()},
    "5": {
        name: Part("the printed form makes errors, or breaks its bound", SOURCE.format(section), OWN)
        for name, section in PRINTED.items()
    },
}
ALGORITHM = {
    "state": ("alg-1.state", CORRECTED),
    "lowest value": ("alg-1.simpler", OWN),
    "boundary": ("lem-22", CORRECTED),
}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 1 to 6."""
    rows = context.theory()
    for claim, parts in PARTS.items():
        yield from evidence.part_gates(rows, claim, parts)
    by_check = {row["check"]: row for row in rows.iter_rows(named=True)}
    for name, (check, kind) in ALGORITHM.items():
        yield evidence.check_gate(by_check, "6", name, check, SOURCE.format(".4, Algorithm 1"), kind=kind)
