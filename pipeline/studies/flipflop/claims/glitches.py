"""Claims 1 to 7, 14 to 16 and 24, who errs, where, and how differently."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.claims.common import SECTION
from pipeline.studies.flipflop.names import BASE, GENERATIVE, MIDDLE
from schemas.claims import OWN, STATED

R1, R2 = SECTION.format("3.5.2, R1"), SECTION.format("3.5.2, R2")
FIGURE, NGRAMS = SECTION.format("3.5.6.2, Figure 3.28"), SECTION.format("3.5.3")
# Of canonical models that fit, and err, the source prints no share: it says that Transformers do, and that they succeed
# "sometimes" at extrapolation. Most is what that asks for; the shares that we expected are checks of our own.
MOST, FITTING, ERRING = 0.5, 0.8, 0.9
# A factor by which errors have to vary; the drawing of 6,000 reads alone makes errors of 0.03 vary by 1.08.
VARIES = 2.0


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    gate = partial(evidence.gate, context)
    every = Published(1.0, derivation="100 of 100 models")
    yield gate("1", "models without error", comparisons.LSTM_CLEAN, above(0.5), R2, published=every)
    yield gate("1", "published length and rate", comparisons.LSTM_LONG_CLEAN, above(0.5), R2)
    longer = comparisons.LSTM_LONGER_CLEAN
    yield gate("1", "longer strings", longer, above(0.5), "our extension", kind=OWN)
    yield gate("2", "canonical model", comparisons.FITTED, above(MOST), R1)
    yield gate("2", "canonical model, nearly all", comparisons.FITTED, at_least(FITTING), R1, kind=OWN)
    yield gate("2", "middle-sized model", comparisons.MIDDLE_FITTED, above(MOST), R1)
    for run, name in ((BASE, "canonical model"), (MIDDLE, "middle-sized model")):
        yield gate("3", name, comparisons.GLITCHES[run], above(MOST), R1)
        yield gate("3", f"{name}, nearly all", comparisons.GLITCHES[run], at_least(ERRING), R1, kind=OWN)
    for name in ("dense", "sparse"):
        # Strings of 64 tokens hold no dependency that those of training do not: of sparse ones the longer speak.
        scale = "paper" if name == "sparse" else "quick"
        yield gate("4", name, comparisons.ERROR[name], above(0.0), NGRAMS, scale_needed=scale)
        yield gate("4", f"{name}, middle-sized model", comparisons.MIDDLE_ERROR[name], above(0.0), NGRAMS)
        yield gate("6", name, comparisons.SPREAD[name], at_least(VARIES), R1, kind=OWN)
    yield _gap(context)
    yield gate("7", "canonical model", comparisons.UNSTEADY, at_least(0.5), SECTION.format("3.5.6.2"))
    yield gate("14", "configurations", comparisons.ERRING, above(0.5), SECTION.format("3.5.4"))
    for seed, comparison in comparisons.SEED_RATIO.items():
        yield gate("15", f"{seed} seeds, variance", comparison, above(0.0), FIGURE)
    yield gate("16", "near the floor", comparisons.EXCESS, at_most(0.01), FIGURE, kind=OWN)
    yield gate("16", "training language", comparisons.GENERATIVE_ERROR, at_most(0.01), FIGURE)
    yield gate("16", "glitches", comparisons.GLITCHES[GENERATIVE], above(MOST), FIGURE)
    table = context.table("ngram")
    # Below the error of 21 tokens on sparse strings lies every model that learned: that they do says little.
    for name, n, bar, kind in (("dense", 11, above, STATED), ("sparse", 21, below, OWN)):
        for error in table.filter(set=name, n=n)["error"]:
            yield gate("24", name, comparisons.ERROR[name], bar(float(error)), f"{NGRAMS}, {n}-gram", kind=kind)


def _gap(context: Results) -> Gate:
    """Return the gate of claim 5: canonical Transformers against LSTMs, of those that learned."""
    models = context.table("final").filter(set="dense")
    arms = [models.filter(run=arm.runs[0]) for arm in comparisons.GAP.arms]
    learned = [arm.filter("learned")["error"] if arm.height else None for arm in arms]
    lost = sum(arm.filter(~pl.col("learned")).height for arm in arms)
    found = evidence.between(context, comparisons.GAP, learned, lost, "the model did not learn")
    return evidence.gate(context, "5", "dense", comparisons.GAP, above(0.0), R2, found)
