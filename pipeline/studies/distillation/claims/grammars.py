"""Claims 1, 2 and 7, and one of our own, 33: the grammars, and attention with weights written down."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_least, at_most, below
from pipeline.kit.evidence import Part
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.distillation.claims.common import SECTION
from schemas.claims import OWN

STATEMENTS = {
    "1": "The lengths of strings are those of the complete grammars.",
    "2": "The grammars have the structure that is said of them, and samples are theirs.",
    "7": "Attention can select the support of a parity, or leave that to its MLP.",
    "33": "No model can predict masked tokens of cfg3b as well as the published ones do.",
}
LENGTHS_OF = SECTION.format("4.2.8.3")
PROPOSITIONS = SECTION.format("4.2.7.2.1, Propositions {}")
BEST = SECTION.format("4.2.3.1, Figures 4.4 and 4.7")
NONE = at_most(0.0)
SHOWN = ("accuracy", "loss")  # parts of claim 33 that are one check each, which is shown with its value
PARTS = {
    "1": {
        "percentiles": Part("exact percentiles against the published ones", LENGTHS_OF),
        "the published code": Part("percentiles of the published code's grammar are others", LENGTHS_OF, OWN),
        "longest strings": Part("hardly any string has more than 512 tokens", LENGTHS_OF, OWN),
    },
    "2": {
        "structure": Part("what is said of the rules of the five grammars", LENGTHS_OF),
        "the published code": Part("the grammar of the published code lacks a rule", LENGTHS_OF, OWN),
        "samples": Part("mean lengths of sampled strings against the exact ones", LENGTHS_OF, OWN),
        "derivations": Part("sampled strings are strings of their grammar", LENGTHS_OF, OWN),
    },
    "7": {"lemmas": Part("Lemmas 10 and 11 and both propositions", PROPOSITIONS.format("9 and 10"), OWN)},
    "20": {"closed form": Part("loss and accuracy without context", BEST, OWN)},
    "33": {"checks": Part("best predictors, and the grammar of the published code", BEST, OWN)},
}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    theory = context.theory()
    for claim, parts in PARTS.items():
        yield from evidence.part_gates(theory.filter(~pl.col("part").is_in(SHOWN)), claim, parts)
    shown = {row["part"]: row for row in theory.filter(claim="33").iter_rows(named=True)}
    for part in SHOWN:
        yield evidence.check_gate(shown, "33", part, part, BEST, kind=OWN)
    yield from _propositions(context)
    yield from _best(context)


def _propositions(context: Results) -> Iterator[Gate]:
    built = context.table("constructions")
    sharp = built.filter(pl.col("prop") == 9, pl.col("c") >= pl.col("threshold_c"))
    yield Gate(
        "7",
        "selection",
        "largest error of attention that selects the support, from its threshold on",
        PROPOSITIONS.format(9),
        at_most(1e-9),
        *evidence.reduced(sharp, column_max("max_err"), "not built"),
    )
    width = (pl.col("hidden1") - 4 * (pl.col("k") + 1)).abs().alias("off")
    yield Gate(
        "7",
        "its width",
        "largest difference of the number of hidden units from 4 (k + 1)",
        PROPOSITIONS.format(9),
        NONE,
        *evidence.reduced(built.filter(prop=9).select(width), column_max("off"), "not built"),
    )
    blunt = built.filter(prop=9, c=1.0)
    yield Gate(
        "7",
        "blunt",
        "largest accuracy with c = 1",
        PROPOSITIONS.format(9),
        below(0.9),
        *evidence.reduced(blunt, column_max("accuracy"), "not built"),
        kind=OWN,
    )
    yield Gate(
        "7",
        "no selection",
        "largest error of uniform attention before a table of the support",
        PROPOSITIONS.format(10),
        at_most(1e-9),
        *evidence.reduced(built.filter(prop=10), column_max("max_err"), "not built"),
    )


def _best(context: Results) -> Iterator[Gate]:
    table = context.table("oracle").filter(root=22, grammar="cfg3b_pdcode", quantity="acc")
    yield Gate(
        "33",
        "the published code",
        "best accuracy on the grammar of the published code, smaller of two",
        BEST,
        at_least(0.97),
        *evidence.reduced(table, column_min("value"), "not measured", least=2),
        kind=OWN,
    )
