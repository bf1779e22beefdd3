"""Claims 20 to 31: BERTs on masked tokens and GPT-2s on next tokens of grammars (chapter section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from pipeline.kit import comparisons
from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.evidence import between, gate
from pipeline.kit.intervals import Floats
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.distillation.claims.common import DIGITISED, SECTION
from pipeline.studies.distillation.comparisons import (
    ASKED,
    BEST_OFF,
    BEYOND,
    BY_TAU,
    CFG3I_END,
    CFG3I_SOON,
    COMMON,
    ENDINGS_FLAT,
    ENDINGS_HEADS,
    FLAT,
    GAIN,
    HALF_LESS_EVEN,
    LEANING,
    LESSON,
    LEVELS,
    LONG_LEFT,
    LONGEST,
    MASKS,
    NARROWING,
    NEAREST,
    ON_OTHERS,
    ON_PLATEAU,
    READ_EARLY,
    SHORT_LEFT,
    SHRINKING,
    TEXT_LABELS,
    TEXT_ORDER,
    WITHIN_REACH,
)
from pipeline.studies.distillation.names import GPT, OTHERS, SPANS, TEXT_PUPILS, root_at
from pipeline.studies.distillation.published import ACCURACIES
from schemas.claims import ANALOGUE, OWN, STATED

STATEMENTS = {
    "20": "Before a masked language model learns anything of its grammar, its loss is that of guessing by frequency.",
    "21": "Masked language models are not better than the best predictor.",
    "22": "Progressive distillation helps small masked language models, most with few steps.",
    "23": "The loss falls fastest where predictions depend most on short windows.",
    "24": "The checkpoint at which the loss falls fastest teaches best.",
    "25": "Later in training predictions depend on longer windows.",
    "26": "Non-terminals can be read from the teacher early.",
    "27": "Students that are taught progressively have features of longer windows and higher levels.",
    "28": "Short students gain from a schedule that does not depend on their length.",
    "29": "The gain persists at other temperatures, shares of masked tokens and grammars.",
    "30": "Models of the next token gain as well, more on higher levels of the grammar.",
    "31": "On a stand-in for English text progressive students do at least as well as one-shot ones, and these as "
    "students of labels.",
}
START, FASTEST = SECTION.format("4.2.3, Figure 4.4"), SECTION.format("4.2.3.1.2, Figure 4.7")
FEATURES, SPLITS = SECTION.format("4.2.3.1.2, Figure 4.8"), SECTION.format("4.2.8.6, Figure 4.27")
OTHERS_AT, NEXT = (SECTION.format("4.2.8.6, Figures 4.28 to 4.30"), SECTION.format("4.2.9, Figures 4.33 to 4.35"))
RATES = ("rate15", "rate45")
PLATEAU = 1.0524  # nats, TH-PLATEAU at a mask rate of 0.3 and equal frequencies
ALLOWED = 0.02
NEEDS = "paper"  # the scale with the published sizes, which accuracies and gains in them depend on
# Students are named by the published numbers of heads; at smaller scales those of both sizes have fewer.
HEADS = {"smaller": 8, "larger": 16}
POSITIVE, NEGATIVE = above(0.0), below(0.0)
EARLY = at_least(0.9)  # of the largest L_robust(3), which is flat about its peak


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    yield from _teachers(context)
    yield from _students(context)
    yield from _checkpoints(context)
    yield from _features(context)
    yield from _variants(context)
    yield from _next(context)
    yield from _text(context)


def _teachers(context: Results) -> Iterator[Gate]:
    printed = Published(1.04, derivation=DIGITISED)
    # The source has a plateau; that it is the loss of guessing by frequency is our theory.
    yield gate(context, "20", "cfg3b", ON_PLATEAU, within(PLATEAU, 0.03), FASTEST, published=printed, kind=OWN)
    exceeds = between(context, WITHIN_REACH, [_beyond(context)])
    yield gate(context, "21", "cfg3b", WITHIN_REACH, above(0.95), SECTION.format("4.2.3"), exceeds, kind=OWN)
    yield gate(context, "23", "cfg3b", FLAT, EARLY, FASTEST)
    printed = Published(5e-5 / 0.75, derivation=f"5e-5 / 0.75, {DIGITISED}")
    yield gate(context, "25", "short windows", SHORT_LEFT, at_most(0.6), FASTEST, published=printed, size_needed=NEEDS)
    yield gate(context, "25", "long windows", LONG_LEFT, at_most(0.5), FASTEST)
    yield gate(context, "26", "cfg3b", READ_EARLY, at_least(0.95), SECTION.format("4.2.8.2, Figure 4.25"))


def _beyond(context: Results) -> Floats | None:
    """Return by how many standard errors each model on cfg3b exceeds the best predictor; None if one is not run."""
    models = context.table("models").filter(pl.col("run").is_in(WITHIN_REACH.arms[0].runs))
    models = models.unique(["run", "arm", "model"], maintain_order=True)  # two experiments list those of some runs
    best = context.table("oracle").filter(grammar="cfg3b", task="masked", quantity="acc", mask_rate=0.3)
    asked = comparisons.read(context, [ASKED])["value"].item()
    if not models.height or not best.height or asked is None:
        return None
    best = best.filter(root=root_at(context.scale, best["root"]))
    bound, spread = float(best["value"][0]), float(best["se"][0])
    error = math.hypot(spread, math.sqrt(bound * (1 - bound) / asked))
    return (models["final"].to_numpy() - bound) / error


def _students(context: Results) -> Iterator[Gate]:
    arm = "prog" if context.scale == NEEDS else "half"  # the schedule of the figure; at quick that of the appendix
    for name, base, number in (("one-shot", "one-shot", 0.768), ("labels", "ce", 0.745)):
        printed = Published(0.803 - number, derivation=f"0.803 - {number}, {DIGITISED}")
        yield gate(
            context,
            "22",
            f"shortest horizon, {name}",
            GAIN[arm, base],
            POSITIVE,
            START,
            published=printed,
            size_needed=NEEDS,
        )
    printed = Published(0.026, derivation=f"(0.803 - 0.768) - (0.962 - 0.953), {DIGITISED}")
    yield gate(context, "22", "horizons", NARROWING[arm], POSITIVE, START, published=printed, size_needed=NEEDS)
    for (taught, place), comparison in LESSON.items():
        value = ACCURACIES[taught][place - 1]
        yield gate(
            context,
            "22",
            f"{taught}, horizon {place}",
            comparison,
            within(value, ALLOWED),
            START,
            published=Published(value, derivation=DIGITISED),
            scale_needed=NEEDS,
        )
    for place, comparison in HALF_LESS_EVEN.items():
        bar = at_least(0.0) if place < 3 else at_most(0.01)
        yield gate(context, "28", f"horizon {place}", comparison, bar, SPLITS)


def _checkpoints(context: Results) -> Iterator[Gate]:
    for name, base, derivation in (
        ("against one-shot", "one-shot", "0.925 - 0.870"),
        ("against the plateau", "plateau", "0.925 - 0.851"),
    ):
        first, second = map(float, derivation.split(" - "))
        printed = Published(round(first - second, 3), derivation=f"{derivation}, {DIGITISED}")
        yield gate(context, "24", name, NEAREST[base], POSITIVE, FASTEST, published=printed, size_needed=NEEDS)
    # Of the twelve checkpoints of the source; of a few that are far apart nearly any is near.
    yield gate(context, "24", "the best", BEST_OFF, at_most(1.0), FASTEST, scale_needed=NEEDS)


def _features(context: Results) -> Iterator[Gate]:
    for name, key, bar in (
        ("L_robust", "robust", NEGATIVE),
        ("L_close", "close", NEGATIVE),
        ("probe", "probe", POSITIVE),
    ):
        yield gate(context, "27", name, LEANING[key], bar, FEATURES)


def _variants(context: Results) -> Iterator[Gate]:
    for (size, place, arm), comparison in BY_TAU.items():
        name = f"{HEADS[size]} heads, horizon {place}, temperature {0 if arm == 'os' else 1}"
        yield gate(context, "29", name, comparison, POSITIVE, OTHERS_AT)
    yield gate(
        context, "29", "cfg3i", CFG3I_END, within(0.75, 0.03), OTHERS_AT, published=Published(0.75), scale_needed=NEEDS
    )
    yield gate(context, "29", "cfg3i, shortest horizon", CFG3I_SOON, at_least(-0.01), OTHERS_AT)
    gains = {key: ("", OTHERS[key[1]], comparison) for key, comparison in ON_OTHERS.items()}
    shrinking = {key: ("shrinking gain, ", MASKS[key[1]], comparison) for key, comparison in SHRINKING.items()}
    for (size, other), (what, words, comparison) in (*gains.items(), *shrinking.items()):
        # The figure on other shares of masked tokens is of students of 8 heads.
        kind = OWN if other in RATES and size == "larger" else STATED
        name = f"{what}{words}, {HEADS[size]} heads"
        yield gate(context, "29", name, comparison, POSITIVE, OTHERS_AT, kind=kind)


def _next(context: Results) -> Iterator[Gate]:
    yield gate(context, "30", "levels 4 and 2", LEVELS, POSITIVE, NEXT)
    for name, spans, bar, number in (
        ("cfg3f, level 3", "3", at_least(0.9), 0.9),
        ("cfg3g, level 3", "3g", within(0.84, 0.03), 0.84),
    ):
        yield gate(context, "30", name, LONGEST[spans], bar, NEXT, published=Published(number), scale_needed=NEEDS)
    yield gate(context, "30", "cfg3g, gain", BEYOND, at_most(0.02), NEXT)
    for spans, comparison in ENDINGS_HEADS.items():
        source = SECTION.format("4.2.9, Figure 4.31")
        yield gate(context, "30", f"sizes, {SPANS[spans]}", comparison, NEGATIVE, source)
    for run, comparison in ENDINGS_FLAT.items():
        source = SECTION.format("4.2.9, Figure 4.32")
        kind = STATED if GPT[run] == "3" else OWN  # the figure is of level 3
        yield gate(context, "30", f"inflection, {SPANS[GPT[run]]}", comparison, EARLY, source, kind=kind)


def _text(context: Results) -> Iterator[Gate]:
    """Yield gates at the shortest horizon at which students of labels do better than the most frequent word; sooner
    there is nothing to compare. Where there is none they are those of the longest."""
    common = comparisons.read(context, [COMMON])["value"].item()
    labels = comparisons.read(context, TEXT_LABELS.values())["lo"].to_list()
    learned = [run for run, low in zip(TEXT_LABELS, labels, strict=True) if None not in (low, common) and low > common]
    run = (learned or [TEXT_PUPILS[-1]])[0]
    for first, second, name in (("prog", "os", "progressive and one-shot"), ("os", "ce", "one-shot and labels")):
        source = SECTION.format("4.2.3.2, Figure 4.9")
        yield gate(context, "31", name, TEXT_ORDER[run, first, second], at_least(0.0), source, kind=ANALOGUE)
