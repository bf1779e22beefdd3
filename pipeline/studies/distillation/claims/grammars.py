"""Claims 1, 2 and 7, and one of our own, 33: the grammars, and attention with weights written down."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.distillation.claims.common import SECTION
from pipeline.studies.distillation.names import LENGTHS, ORACLE, SELECTION
from schemas.claims import OWN

STATEMENTS = {
    "1": "The lengths of strings are those of the complete grammars.",
    "2": "The grammars have the structure that is said of them, and samples are theirs.",
    "7": "Attention can select the support of a parity, or leave that to its MLP.",
    "33": "No model can predict masked tokens of cfg3b as well as the published ones do.",
}
LENGTHS_OF = SECTION.format("4.2.8.3")
PROPOSITIONS = SECTION.format("4.2.7.2.1, Propositions {}")
NONE = at_most(0.0)


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    yield from _lengths(context)
    yield from _propositions(context)
    yield from _best(context)


def _lengths(context: Results) -> Iterator[Gate]:
    stats = context.table("pcfg_length_stats")
    off = (pl.col("exact") - pl.col("published")).abs()
    named = stats.drop_nulls("published")
    measurement = evidence.reduced(
        named.select(off.alias("off")), column_max("off"), "no table of lengths", least=20
    )
    yield Gate(
        "1",
        "percentiles",
        "largest distance of 20 exact percentiles from the published ones, in tokens",
        LENGTHS_OF,
        at_most(3.0),
        *measurement,
    )
    other = stats.filter(grammar="cfg3b_pdcode").select("quantity", "exact")
    published = named.filter(grammar="cfg3b").select("quantity", "published")
    both = other.join(published, on="quantity").select(off.alias("off"))
    yield Gate(
        "1",
        "the published code",
        "smallest distance of percentiles of the grammar in the published code from "
        "those printed for cfg3b, in tokens",
        LENGTHS_OF,
        above(15.0),
        *evidence.reduced(both, column_min("off"), "no table of lengths", least=4),
        kind=OWN,
    )
    theory = context.theory().filter(theory=LENGTHS)
    counts = pl.col("measured").sum()
    yield Gate(
        "2",
        "structure",
        "number of exceptions from what is said of the rules of the five grammars",
        LENGTHS_OF,
        NONE,
        *evidence.checks(theory, r"^structure\.cfg3[a-z]$", counts),
    )
    yield Gate(
        "2",
        "samples",
        "largest distance of the mean length of sampled strings from the exact one, in standard errors",
        LENGTHS_OF,
        at_most(4.0),
        *evidence.checks(theory, r"^sampled\.", column_max("measured")),
        kind=OWN,
    )
    yield Gate(
        "2",
        "derivations",
        "number of sampled strings that are no strings of their grammar",
        LENGTHS_OF,
        NONE,
        *evidence.checks(theory, r"^parsed\.", counts),
        kind=OWN,
    )


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
    failed, missing = evidence.failures(context.theory(), SELECTION)
    yield Gate(
        "7",
        "lemmas",
        "number of checks of Lemmas 10 and 11 and of both propositions that do not hold",
        PROPOSITIONS.format("9 and 10"),
        NONE,
        failed,
        missing,
        kind=OWN,
    )


def _best(context: Results) -> Iterator[Gate]:
    source = SECTION.format("4.2.3.1, Figures 4.4 and 4.7")
    theory = context.theory().filter(theory=ORACLE)
    for what, measure in (
        ("accuracy", "published accuracy, less the error of reading it, minus the best possible on cfg3b"),
        (
            "loss",
            "least possible loss on cfg3b minus the published one, with the error of reading it, in nats",
        ),
    ):
        yield Gate(
            "33",
            what,
            measure,
            source,
            above(0.0),
            *evidence.checks(theory, rf"^{what}\.printed$", column_min("measured")),
            kind=OWN,
        )
    failed, missing = evidence.failures(context.theory(), ORACLE)
    yield Gate(
        "33",
        "checks",
        "number of checks of the best predictors that do not hold",
        source,
        NONE,
        failed,
        missing,
        kind=OWN,
    )
    table = context.table("oracle").filter(root=22, grammar="cfg3b_pdcode", quantity="acc")
    yield Gate(
        "33",
        "the published code",
        "best accuracy on the grammar of the published code, smaller of two",
        source,
        at_least(0.97),
        *evidence.reduced(table, column_min("value"), "not measured", least=2),
        kind=OWN,
    )
