"""Claims 9 to 21: language models of Dyck strings, verifiers of their states, and backtracking; our own 34 and 36.

Bars that the chapter sets, and the source does not state, are checks of our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.verifier import comparisons as c
from pipeline.studies.verifier.names import GROUND_TRUTH, HELD, RANDOM, SEEN, TRAINED
from schemas.claims import OWN
from schemas.verifier.vgb_dyck import EXACT, LEARNED

if TYPE_CHECKING:
    from pipeline.kit.results import Results

SECTION = "Li 2025, section {}"
TABLE = "Li 2025, Table {}"
TABLE_3_1 = {1: 0.366, 2: 0.438, 4: 0.591, 8: 0.790}
NO_PREFIXES = "no prefixes at which models make mistakes"


def learned(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 9 to 11: what the language models learned, and where they fail."""
    bar, source = at_least(context.settings.least_accuracy), SECTION.format("3.2.1.1")
    yield evidence.gate(context, "9", "closers", c.CLOSERS, bar, source, published=1.0)
    yield evidence.gate(context, "10", "prompts as in training do better", c.GAP, above(0), source)
    yield evidence.gate(context, "10", "by how much", c.GAP, at_least(0.01), source, kind=OWN)
    range_ = within((0.85 + 0.995) / 2, (0.995 - 0.85) / 2)
    unseen = Published(0.9760, derivation="1 - 240.0 / 10,000 (Table 3.3)")
    yield evidence.gate(context, "10", "out of distribution", c.OOD, range_, source, published=0.9423, kind=OWN)
    yield evidence.gate(
        context, "10", "makes mistakes, by Table 3.3", c.OOD, below(1), TABLE.format("3.3"), published=unseen
    )
    source = TABLE.format("3.3")
    yield evidence.gate(context, "11", "more with top_p 1.0", c.BY_TOP_P, above(0), source)
    ratio = Published(1.92, derivation="461.8 / 240.0")
    yield evidence.gate(context, "11", "how many times more", c.BY_TOP_P_RATIO, above(1), source, published=ratio)


def classifiers(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 12 and 20: verifiers of states, and how states lie."""
    source = SECTION.format("3.2.1.2")
    yield evidence.gate(context, "12", "better than a guess", c.VALIDATION, above(0.5), source, published=0.93)
    yield evidence.gate(context, "12", "validation", c.VALIDATION, at_least(0.88), source, kind=OWN)
    yield evidence.gate(context, "12", "further prompts", c.VALIDATION_HELD, at_least(0.88), source, kind=OWN)
    yield evidence.gate(context, "12", "beyond the last token", c.EXCESS, above(0), source, kind=OWN)
    name = "beyond a model that was never trained"
    yield evidence.gate(context, "12", name, c.EXCESS_UNTRAINED, above(0), source, kind=OWN)
    source = SECTION.format("3.2.1.6")
    yield evidence.gate(context, "20", "nearest neighbours", c.NEAREST, at_least(0.9), source, kind=OWN)
    yield evidence.gate(context, "20", "two clusters", c.TIGHTER, above(0), source)
    for name, comparison in (
        ("nearest neighbours, beyond a model that was never trained", c.NEAREST_UNTRAINED),
        ("two clusters, beyond a model that was never trained", c.TIGHTER_UNTRAINED),
        ("two clusters, as many of each last sign", c.TIGHTER_MATCHED),
    ):
        yield evidence.gate(context, "20", name, comparison, above(0), source, kind=OWN)


def prefixes(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 13, 14 and 17; on the prefixes that verifiers were trained on, as published, and on
    further ones. How much is gained is the chapter's bar, that something is gained the source's statement."""
    for name, words in ((SEEN, ""), (HELD, ", further prefixes")):
        kind: dict[str, Any] = {} if name == SEEN else {"kind": OWN}
        first: dict[str, Any] = {"published": Published(0.459, derivation="0.790 - 0.331")} if name == SEEN else {}
        largest: dict[str, Any] = {"published": Published(0.590, derivation="0.921 - 0.331")} if name == SEEN else {}
        source, gain = TABLE.format("3.1"), c.FORCED[name]
        yield evidence.gate(context, "13", f"eight signs{words}", gain, above(0), source, **kind, **first)
        yield evidence.gate(context, "13", f"by how much{words}", gain, at_least(0.25), source, kind=OWN)
        yield evidence.gate(
            context, "13", f"no stride loses{words}", c.FORCED_STEPS[name], at_least(-0.03), source, **kind
        )
        source, cell = TABLE.format("3.2"), c.LARGEST_CELL[name]
        yield evidence.gate(context, "14", f"largest cell{words}", cell, above(0), source, **kind, **largest)
        yield evidence.gate(context, "14", f"by how much{words}", cell, at_least(0.10), source, kind=OWN)
        yield evidence.gate(context, "14", f"every cell{words}", c.EVERY_CELL[name], above(0), source, **kind)
        yield evidence.gate(
            context, "14", f"rows and columns{words}", c.CELL_STEPS[name], at_least(-0.02), source, **kind
        )
        likeliest = c.OVER_GREEDY_CELLS[name]
        yield evidence.gate(context, "14", f"over the likeliest signs{words}", likeliest, above(0), source, kind=OWN)
        for part, comparison, bar in (
            ("over a guess", c.OVER_GUESS[name], above(0)),
            ("a guess gains nothing", c.GUESSED_CELL[name], at_most(0)),
            ("as many backtracks by a guess", c.GUESS_MATCHED[name], within(1, 0.15)),
        ):
            yield evidence.gate(context, "14", f"{part}{words}", comparison, bar, source, kind=OWN)
        source = TABLE.format("3.4")
        yield evidence.gate(context, "17", f"no cell without it{words}", c.UNNECESSARY[name], below(0), source, **kind)
        for part, comparison in (
            ("the same strings", c.UNNECESSARY_PAIRED[name]),
            ("strings that can be completed", c.UNNECESSARY_VALID[name]),
        ):
            yield evidence.gate(context, "17", f"{part}{words}", comparison, below(0), source, kind=OWN)
        yield from _backtracks(context.table("algorithm_1").filter(prefixes=name), words, source)
    yield from _as_printed(context)


def _backtracks(cells: pl.DataFrame, words: str, source: str) -> Iterator[Gate]:
    """Yield the gates of claim 17 on how often the verifier sent prefixes back, over all models and cells."""
    most = (pl.col("backtracks") - pl.col("quota") * pl.col("n")).max()
    measure = "largest number of backtracks, less the quota times the prefixes"
    found = evidence.reduced(cells, most, NO_PREFIXES)
    yield Gate("17", f"within the quota{words}", measure, source, at_most(0), *found, kind=OWN)
    grown = pl.col("backtracks").diff().over("replica", "stride", order_by="quota").min()
    measure = "smallest growth of the number of backtracks from one quota to the next"
    found = evidence.reduced(cells, grown, NO_PREFIXES)
    # The same numbers are drawn whatever the quota, so that a larger one goes at least as far: a check of the decoder.
    yield Gate("17", f"more with a larger quota{words}", measure, source, at_least(0), *found, kind=OWN)


def _as_printed(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 13 and 14 on the printed numbers themselves, which are those of the published size."""
    forced = context.table("forced").filter(prefixes=SEEN, refill="argmax")
    printed = pl.col("stride").replace_strict(TABLE_3_1, default=None, return_dtype=pl.Float64)
    apart = (pl.mean("accuracy").over("stride") - printed).abs().max()
    measure = "largest distance of the mean accuracy at a stride from the printed one"
    found = evidence.reduced(forced, apart, NO_PREFIXES)
    yield Gate(
        "13",
        "each stride as printed",
        measure,
        TABLE.format("3.1"),
        at_most(0.15),
        *found,
        kind=OWN,
        scale_needed="paper",
    )
    cell = context.table("algorithm_1").filter(prefixes=SEEN, quota=4, stride=6)
    found = evidence.reduced(cell, pl.mean("accuracy"), NO_PREFIXES)
    measure = "mean accuracy at Q = 4, B = 6"
    yield Gate(
        "14",
        "as large as printed",
        measure,
        TABLE.format("3.2"),
        at_least(0.70),
        *found,
        kind=OWN,
        scale_needed="paper",
    )


def unseen(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 15, 16, 18, 19 and 21."""
    source = TABLE.format("3.3")
    bars = {c.LOW: 0.90, c.HIGH: 0.75}  # the chapter's; the source says that there are fewer
    printed = {
        c.LOW: Published(0.7475, derivation="179.4 / 240.0"),
        c.HIGH: Published(0.433, derivation="200.0 / 461.8"),
    }
    for p, bar in bars.items():
        left, name = c.ERRORS_LEFT[p], f"mistakes left, top_p {p}"
        yield evidence.gate(context, "15", name, left, below(1), source, published=printed[p])
        yield evidence.gate(context, "15", f"by how much, top_p {p}", left, at_most(bar), source, kind=OWN)
        likeliest = c.OVER_GREEDY[p]
        yield evidence.gate(
            context, "15", f"fewer than the likeliest signs, top_p {p}", likeliest, above(0), source, kind=OWN
        )
    yield evidence.gate(context, "15", "more at top_p 1.0", c.REDUCTION, above(0), source)
    source = TABLE.format("3.16")
    more = Published(0.00664, derivation="(245.8 - 179.4) / 10,000")
    yield evidence.gate(context, "16", "top_p 0.9", c.NO_ARGMAX[c.LOW], above(0), source, published=more)
    ratio = c.NO_ARGMAX_RATIO[c.LOW]
    yield evidence.gate(context, "16", "how many times more", ratio, above(1), source, kind=OWN)
    yield evidence.gate(context, "16", "top_p 1.0", c.NO_ARGMAX[c.HIGH], above(0), source, kind=OWN)
    near = Published(1.024, derivation="245.8 / 240.0")
    yield evidence.gate(
        context,
        "16",
        "no better than no backtracks",
        c.NO_ARGMAX_BASE[c.LOW],
        within(1.0, 0.1),
        source,
        published=near,
        scale_needed="paper",
    )
    source = SECTION.format("3.2.1.8")
    modal = Published(0.987, derivation="222 / 225")
    yield evidence.gate(context, "18", "wrong closers", c.WRONG_CLOSERS, above(0.5), source, published=modal)
    yield evidence.gate(context, "18", "of the majority", c.MAJORITY, at_least(0.5), source)
    due = "of the majority, more than by the brackets that are due"
    yield evidence.gate(context, "18", due, c.MAJORITY_DUE, above(0), source, kind=OWN)
    harder = "the minority kind goes wrong more often where it is due"
    yield evidence.gate(context, "18", harder, c.RARE_KIND, above(1), source, kind=OWN)
    yield evidence.gate(
        context, "18", "quota used up", c.OUT_OF_QUOTA, at_least(0.9), source, published=1.0, scale_needed="paper"
    )
    source = TABLE.format("3.5")
    same = Published(-0.32, derivation="5.52 - 5.84")
    yield evidence.gate(context, "19", "as many", c.DIVERSITY, within(0, 1.0), source, published=same)
    more = Published(0.05, derivation="5.52 - 5.47")
    yield evidence.gate(context, "19", "than at top_p 0.9", c.DIVERSITY_LOW, at_least(-0.5), source, published=more)
    for p, right in c.RIGHT.items():
        yield evidence.gate(context, "19", f"distinct right ones, top_p {p}", right, above(0), source, kind=OWN)
    yield evidence.gate(
        context, "19", "distinct right ones by the ground truth", c.RIGHT_KNOWN, above(0), source, kind=OWN
    )
    source = SECTION.format("3.2")
    for p, queries in c.PER_RIGHT.items():
        yield evidence.gate(context, "21", f"fewer for a right completion, top_p {p}", queries, below(1), source)
    source = SECTION.format("3.2.1")
    for p, bound in c.COST_BOUND.items():
        name = f"within quota and stride, top_p {p}"
        yield evidence.gate(context, "21", name, bound, at_most(0), source, kind=OWN)
    yield evidence.gate(context, "21", "exact counts", c.EXACT, at_least(1), source, kind=OWN)


def factorial(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 34: which part of the gain is finding mistakes, and which refilling greedily."""
    source = "no source: beyond " + TABLE.format("3.16")
    for p, comparison in c.BY_CHANCE.items():
        name = f"going back at random, top_p {p}"
        yield evidence.gate(context, "34", name, comparison, above(0), source, kind=OWN)
    for (p, refill), comparison in c.FINDING.items():
        name = f"finding, {refill} refill, top_p {p}"
        yield evidence.gate(context, "34", name, comparison, above(0), source, kind=OWN)
    for (p, verifier), comparison in c.REFILLING.items():
        if verifier in (TRAINED, GROUND_TRUTH, RANDOM):
            name = f"refilling, {verifier}, top_p {p}"
            yield evidence.gate(context, "34", name, comparison, above(0), source, kind=OWN)
    for (p, refill), comparison in c.MATCHED.items():
        name = f"as many backtracks, {refill} refill, top_p {p}"
        yield evidence.gate(context, "34", name, comparison, within(1, 0.15), source, kind=OWN)


def objections(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 36: what the trained verifier objects to, and what it does where it learned."""
    source = "no source: beyond " + TABLE.format("3.3")
    for p, comparison in c.NEEDLESS.items():
        yield evidence.gate(
            context, "36", f"sent back though right, top_p {p}", comparison, above(0.5), source, kind=OWN
        )
    for p, comparison in c.NEEDLESS_GUESSED.items():  # most prefixes are right, and most that a guess objects to
        name = f"sent back though right, less than by a guess, top_p {p}"
        yield evidence.gate(context, "36", name, comparison, above(0), source, kind=OWN)
    name = "lengths from which it hardly learned"
    yield evidence.gate(context, "36", name, c.BEYOND, above(0), source, kind=OWN)
    yield evidence.gate(context, "36", f"{name}, not whole", c.BEYOND_UNENDED, above(0), source, kind=OWN)
    for p in (c.LOW, c.HIGH):
        for name, comparison, bar in (
            ("mistakes taken away where it learned", c.WITHIN_LEFT[p], above(0)),
            ("mistakes taken away elsewhere", c.WITHIN_MORE[p], above(0)),
            ("fewer queries for a right completion where it learned", c.WITHIN_PER_RIGHT[p], below(1)),
            ("fewer queries than no backtracks", c.WITHIN_COST[p], below(1)),
        ):
            yield evidence.gate(context, "36", f"{name}, top_p {p}", comparison, bar, source, kind=OWN)
    name = "more distinct completions where it learned, top_p 1.0"
    yield evidence.gate(context, "36", name, c.WITHIN_DISTINCT, above(0), source, kind=OWN)


def walks(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 30 and 31: Algorithm 2 on the language models, in exact laws."""
    source = SECTION.format("3.3.1")
    yield evidence.gate(context, "30", "nearer than rejection", c.VGB_NEARER, below(0), source)
    name = "nearer than rejection, the verifier at leaves"
    yield evidence.gate(context, "30", name, c.VGB_NEARER_LEARNED, below(0), source, kind=OWN)
    for name, identity in (("stationary law", c.VGB_EXACT), ("always balanced", c.VGB_VALID)):  # checks of the walk
        yield evidence.gate(context, "30", name, identity, at_most(1e-9), source, kind=OWN)
    for kind, words in ((EXACT, "told the truth at leaves"), (LEARNED, "the verifier at leaves")):
        yield evidence.gate(
            context, "30", f"nearer than no verifier, {words}", c.VGB_BASE[kind], below(0), source, kind=OWN
        )
        name = f"rejection nearer than no verifier, {words}"
        yield evidence.gate(context, "30", name, c.ALRS_BASE[kind], below(0), source, kind=OWN)
    name = "nearer than rejection of whole strings, the verifier at leaves"
    yield evidence.gate(context, "30", name, c.WHOLE_LEARNED, below(0), source, kind=OWN)
    name = "as few laws as rejection of whole strings"
    yield evidence.gate(context, "30", name, c.WHOLE_COST, at_most(1), source, kind=OWN)
    yield evidence.gate(context, "31", "thresholds distort most", c.HARD_FARTHER, above(0), source)
    source = "Li 2025, section 3.3.1, by the stand-in"
    yield evidence.gate(context, "30", "test cases", c.VGB_CASES_NEARER, below(0), source, kind=OWN)
    yield evidence.gate(context, "31", "test cases", c.CASES_HARD_FARTHER, above(0), source, kind=OWN)
