"""Claims 22 to 29 and 35 by their analogues on documents of test cases: directions alone, never numbers of
CodeLlama.

In a pilot claims 25, 28 and 29 showed no stable effect on the stand-in: they are reported as they come out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, within
from pipeline.studies.verifier import comparisons as c
from schemas.claims import ANALOGUE, OWN

if TYPE_CHECKING:
    from pipeline.kit.results import Results
    from pipeline.kit.verdicts import Gate

TABLE = "Li 2025, Table {}, by the stand-in"


def decoders(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 22 to 29 and 35."""
    stated = partial(evidence.gate, context, kind=ANALOGUE)
    source, bar = TABLE.format("3.13"), context.settings.greedy
    yield stated("22", "greedy gives fewer", c.CODE_GREEDY_FEWER, above(0), source)
    # Repetitions of one completion can give no more than one in ten: a check.
    yield evidence.gate(context, "22", "greedy repeats itself", c.CODE_GREEDY, at_most(bar), source, kind=OWN)
    yield stated("22", "too hot", c.CODE_TOO_HOT, at_least(0.05), source)
    yield stated("22", "too cold", c.CODE_TOO_COLD, above(0), source)
    source = TABLE.format("3.6")
    yield stated("23", "five settings", c.CODE_POOLED, above(0), source)
    source = TABLE.format("3.13")
    for n, cost in c.CODE_BLOCK_COST.items():  # nearly by construction: each candidate is drawn
        name = f"queries from {n} to {2 * n}"
        yield evidence.gate(context, "24", name, cost, at_least(1.5), source, kind=OWN)
    yield stated("24", "more candidates are no better", c.CODE_BLOCK_ACCURACY, at_most(0), source)
    for n, comparison in c.CODE_PER_QUERY.items():
        yield stated("24", f"per query, n = {n}", comparison, above(1), source)
    yield stated("25", "five settings", c.CODE_CAREFUL, above(0), TABLE.format("3.10"))
    growing = "Li 2025, section 3.2.2.6, by the stand-in"
    yield evidence.gate(
        context, "25", "twice as many cases", c.CAREFUL_TWICE, above(0), growing, kind=OWN, scale_needed="long"
    )
    yield evidence.gate(
        context, "25", "grows with cases", c.CAREFUL_GROWS, above(0), growing, kind=OWN, scale_needed="long"
    )
    source = TABLE.format("3.12")
    yield stated("26", "ground truth", c.CODE_TRUTH, above(0), source)
    yield stated("26", "trained", c.CODE_KNOWS, above(0), source)
    for name, comparison, bar in (
        ("trained, by as many backtracks", c.CODE_OFTEN, above(0)),
        ("right ones, by as many backtracks", c.CODE_OFTEN_RIGHT, above(0)),
        ("as many backtracks", c.CODE_OFTEN_MATCHED, within(1, 0.15)),
    ):
        yield evidence.gate(context, "26", name, comparison, bar, source, kind=OWN)
    yield stated("26", "random is no better", c.CODE_CHANCE, within(0, 0.05), source)
    source = TABLE.format("3.11")
    yield stated("27", "linear is enough", c.CODE_DEPTH, at_least(-0.03), source)
    yield evidence.gate(context, "27", "as accurate", c.CODE_DEPTH_VALIDATION, at_most(0.03), source, kind=OWN)
    yield stated("28", "smaller loss", c.CODE_DROP, above(0), TABLE.format("3.15"))
    source = TABLE.format("3.17")
    yield stated("29", "threshold 0.1", c.CODE_REFILL, above(0), source)
    yield stated("29", "threshold 0.5", c.CODE_REFILL_BOLD, above(0), source)
    source = "Li 2025, section 3.2.2.3, by the stand-in"
    yield stated("35", "by as many queries", c.CODE_EQUAL, above(0), source)
    yield stated("35", "per query", c.CODE_RATE, above(1), source)
