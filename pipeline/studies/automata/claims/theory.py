"""Claims 1 to 6: constructions, executed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_least, at_most, below
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_max
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from schemas.claims import CORRECTED, OWN, STATED

SOURCE = "Liu 2024, section 3.4.4{}"
NONE = at_most(0.0)
LARGEST = column_max("measured")
CONSTRUCTIONS = {
    "Theorem 10": ("thm-10", ".2"),
    "Lemma 15": ("lem-15", ".3.1"),
    "Lemma 16": ("lem-16", ".3.1"),
    "Lemma 17": ("lem-17", ".3.3"),
    "Lemma 18": ("lem-18", ".3.3"),
    "Lemma 19": ("lem-19", ".3.3"),
    "Theorem 16": ("thm-16", ".3.3"),
    "Lemma 20": ("lem-20", ".3.4"),
    "Theorem 11": ("thm-11", ".3.4"),
    "Theorem 12": ("thm-12", ".4"),
}
LEDGERS = tuple(CONSTRUCTIONS)
EXCEPTIONS = {  # sizes whose printed bound is an erratum, with a row of its own
    "Theorem 10": ("mlp-width", "the MLP width"),
    "Lemma 20": ("dim|head-dim", "dimensions of embedding and heads"),
}
MENDED = "Theorem 12"  # its bound on the number of heads is that of the proof, 2S + 1, where 2S is printed
SOLVABLE = ("c2", "c3", "c4", "c5", "c6", "c7", "c8", "c2p2", "c2p3", "d6", "d8", "q8", "a4", "s4")
PRINTED = {
    "Proposition 2": ("automata-proposition-2", ".1"),
    "Lemma 11": ("automata-lemma-11", ".1"),
    "Lemma 12": ("automata-lemma-12", ".1"),
    "Theorem 10, sign": ("automata-theorem-10-sign", ".2"),
    "Theorem 10, W_V": ("automata-theorem-10-value", ".2"),
    "Theorem 10, read-out": ("automata-theorem-10-readout", ".2"),
    "Lemma 15, scale": ("automata-lemma-15", ".3.1"),
    "Lemma 20, start": ("automata-lemma-20-start", ".3.4"),
    "Lemma 21, wiring": ("automata-lemma-21", ".3.4"),
    "Theorem 12, output": ("automata-theorem-12-output", ".4"),
    "Theorem 12, pad": ("automata-theorem-12-pad", ".4"),
}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 1 to 6."""
    rows = context.theory()
    right = rows.filter(pl.col("form") != "printed")
    for name, (check, section) in CONSTRUCTIONS.items():
        source = SOURCE.format(f"{section}, {name}")
        errors = evidence.checks(right, rf"^{check}\.(.*\.)?(errors|starts)$", LARGEST)
        yield Gate(
            "1",
            f"{name}, errors",
            "token errors of an instance, largest number",
            source,
            NONE,
            *errors,
            kind=CORRECTED,
        )
        off = evidence.checks(right, rf"^{check}\.(.*\.)?deviation$", LARGEST)
        yield Gate(
            "1",
            f"{name}, deviation",
            "distance of an output from an integer, largest",
            source,
            below(1e-6),
            *off,
            kind=CORRECTED,
        )
    yield from _depths(rows)
    yield from _solvable(rows)
    for name in LEDGERS:
        check, section = CONSTRUCTIONS[name]
        ledger = rows.filter(pl.col("check").str.starts_with(f"ledger.{check}."))
        size, but = EXCEPTIONS.get(name, ("", ""))
        if size:
            ledger = ledger.filter(~pl.col("check").str.contains(rf"\.({size})$"))
        ratio = ledger.with_columns(measured=pl.col("measured") / pl.col("bound"))
        maximum = evidence.checks(ratio, "", LARGEST)
        what = f" (without {but}, whose bound is an erratum)" if but else ""
        yield Gate(
            "4",
            name,
            f"size over its claimed bound, largest ratio{what}",
            SOURCE.format(f"{section}, {name}"),
            at_most(1.0 + 1e-9),
            *maximum,
            kind=CORRECTED if name == MENDED else STATED,
        )
    for name, (erratum, section) in PRINTED.items():
        printed = rows.filter(pl.col("form") == "printed", pl.col("erratum") == erratum)
        shown: Evidence = (
            (Measured(float(printed["passed"].all())), "")
            if printed.height
            else (None, f"no check of {erratum}")
        )
        yield Gate(
            "5",
            name,
            "whether the printed form makes errors, or breaks its bound (1 if it does, else 0)",
            SOURCE.format(section),
            at_least(1.0),
            *shown,
            kind=OWN,
        )
    for gate, check in (
        ("state", r"^alg-1\.state$"),
        ("lowest value", r"^alg-1\.simpler$"),
        ("boundary", "^lem-22$"),
    ):
        kind = OWN if gate == "lowest value" else CORRECTED
        yield Gate(
            "6",
            gate,
            "inputs on which it differs from the simulator",
            SOURCE.format(".4, Algorithm 1"),
            NONE,
            *evidence.checks(rows, check, LARGEST),
            kind=kind,
        )


def _depths(rows: pl.DataFrame) -> Iterator[Gate]:
    off = rows.with_columns(measured=(pl.col("measured") - pl.col("bound")).abs())
    yield Gate(
        "2",
        "Theorem 10",
        "distance of the depth from the logarithm of the length, rounded up, largest",
        SOURCE.format(".2"),
        NONE,
        *evidence.checks(off, r"^thm-10\.depth\.", LARGEST),
    )
    for name, check, section in (
        ("Theorem 16", r"^thm-16\.depth\.", ".3.3"),
        ("Theorem 12", r"^thm-12\.depth$", ".4"),
    ):
        yield Gate(
            "2",
            name,
            "number of different depths at lengths from 8 to 64",
            SOURCE.format(section),
            at_most(1.0),
            *evidence.checks(rows, check, LARGEST),
        )


def _solvable(rows: pl.DataFrame) -> Iterator[Gate]:
    checks = [f"thm-16.{name}.errors" for name in SOLVABLE]
    built = rows.filter(pl.col("check").is_in(checks))
    yield Gate(
        "3",
        "built",
        "token errors on one of the 14 solvable groups of the tasks, largest number",
        SOURCE.format(".3.3, Theorem 16"),
        NONE,
        *evidence.reduced(built, LARGEST, "not every solvable group was tried", len(checks)),
    )
    for name in ("a5", "s5"):
        yield Gate(
            "3",
            name.upper(),
            "whether the construction is refused (1 if it is, else 0)",
            SOURCE.format(".3.3, Theorem 16"),
            at_least(1.0),
            *evidence.checks(rows, rf"^thm-16\.refused\.{name}$", LARGEST),
        )
    agree = evidence.checks(rows, r"^thm-13\.", pl.col("measured").nan_min())
    yield Gate(
        "3",
        "classification",
        "whether composition factors and derived series agree (1 if they do, else 0), smallest of all groups",
        "Liu 2024, section 3.4.1.2",
        at_least(1.0),
        *agree,
        kind=OWN,
    )
