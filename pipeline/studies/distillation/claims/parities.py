"""Claims 8 to 15 and 18: MLPs on sparse parity."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.evidence import gate
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.distillation.claims.common import DIGITISED, SECTION
from pipeline.studies.distillation.comparisons import (
    ACCELERATED,
    AFTER_SWITCH,
    AHEAD,
    AT_SWITCH,
    BERTS_HEADS,
    BEST_INSIDE,
    CHECKPOINT,
    CORRELATED,
    CORRELATED_MORE,
    DELAY,
    EARLIER,
    EARLY_SIGNS,
    END,
    HIGHER_DEGREE,
    HOT,
    INSIDE,
    LEFT_BEHIND,
    MORE_HEADS,
    OF_CHECKED,
    PEAK,
    PEAK_SIGNS,
    SINGLE_SIGNS,
    SOFTER,
    SOFTNESS,
    TEMPERATURES,
    WARM_BEST_INSIDE,
)
from schemas.claims import OWN

R1, START = SECTION.format("4.2.2.1, Figure 4.5"), SECTION.format("4.2.2, Figure 4.4")
HIGHER = SECTION.format("4.2.7.1, Figure 4.12")
BASES = {"ce": "labels", "one-shot": "the last checkpoint"}
POSITIVE, NEGATIVE = above(0.0), below(0.0)
SAME = 1.2  # steps of a student over those of its teacher that count as "the same speed"


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for size in ACCELERATED:
        narrow = size == "narrow"  # students whose numbers the source prints
        printed = Published(1.0) if narrow else None
        name = f"{size} students"
        yield gate(context, "8", name, DELAY[size], at_most(SAME), START, published=printed, size_needed="paper")
        yield gate(context, "8", f"{name}, not much later", DELAY[size], at_most(1.6), START, kind=OWN)
        for base, words in BASES.items():
            yield gate(context, "9", f"{name}, against {words}", AHEAD[size, base], POSITIVE, START)
    for base, words in BASES.items():
        name, bar = f"narrow students of {words}", at_most(0.6)
        yield gate(context, "9", name, LEFT_BEHIND[base], bar, START, published=Published(0.5))
    for size in OF_CHECKED:
        yield from _checkpoints(context, size)
    yield from _curriculum(context)
    yield from _sizes(context)
    for size in OF_CHECKED:
        for arm, tau in TEMPERATURES.items():
            name, source = f"{size} students, temperature {tau:g}", SECTION.format("4.2.1")
            yield gate(context, "18", name, SOFTER[size, arm], within(0.0, 0.03), source)
        source = SECTION.format("4.2.7.2, Figure 4.17")
        yield gate(context, "18", f"{size} students, temperature 1", HOT[size], NEGATIVE, source, kind=OWN)
    for arm, tau in TEMPERATURES.items():
        source = SECTION.format("4.2.1")
        yield gate(context, "18", f"answers, temperature {tau:g}", SOFTNESS[arm], at_most(0.01), source, kind=OWN)


def _checkpoints(context: Results, size: str) -> Iterator[Gate]:
    names = {"middle": "in the transition", "behind": "behind it", "before": "before it"}
    bars = {"middle": at_least(0.9), "behind": at_most(0.65), "before": at_most(0.55)}
    narrow = size == "narrow"
    for arm, bar in bars.items():
        printed = Published(1.0 if arm == "middle" else 0.5) if narrow else None
        # Only the checkpoint in the transition is one from which the number depends on the published size.
        needed = "paper" if arm == "middle" else ""
        yield gate(
            context,
            "10",
            f"{size} students, {names[arm]}",
            CHECKPOINT[size, arm],
            bar,
            R1,
            published=printed,
            size_needed=needed,
        )
    for arm, name in (("behind", "difference"), ("before", "difference to before it")):
        yield gate(context, "10", f"{size} students, {name}", BEST_INSIDE[size, arm], POSITIVE, R1)
    for name, comparison, bar, printed in (
        ("before the switch", AT_SWITCH, at_most(0.07), Published(0.01, derivation=f"|0.74 - 0.75|, {DIGITISED}")),
        ("behind the switch", AFTER_SWITCH, at_least(0.1), Published(0.25, derivation=f"1.00 - 0.75, {DIGITISED}")),
    ):
        published = printed if narrow else None
        yield gate(context, "11", f"{size} students, {name}", comparison[size], bar, R1, published=published)


def _curriculum(context: Results) -> Iterator[Gate]:
    # The source speaks of single signs; with products of several of them more is found. The bar is that of the end: a
    # largest of several noisy quotients is above 1 where nothing is learned.
    yield gate(context, "12", "single signs in the transition", PEAK_SIGNS, above(1.5), R1)
    yield gate(context, "12", "single signs in the transition, by far", PEAK_SIGNS, at_least(3.0), R1, kind=OWN)
    yield gate(context, "12", "in the transition", PEAK, at_least(3.0), R1, kind=OWN)
    yield gate(context, "12", "at the end", END, at_most(1.5), R1)
    # The bar is that below which it has to be at the end; claim 10 asks what such a checkpoint teaches.
    yield gate(context, "12", "before the transition", EARLY_SIGNS, above(1.5), R1, kind=OWN)
    yield gate(context, "12", "place of the peak", INSIDE, above(0.5), R1, kind=OWN)
    yield gate(context, "13", "signs that matter, against others", CORRELATED_MORE, POSITIVE, R1)
    digitised = Published(0.095, derivation=DIGITISED)
    for name, which, bar, printed in (
        ("single signs at checkpoint 2", ("middle", True), within(0.095, 0.025), digitised),
        ("other signs at checkpoint 2", ("middle", False), at_most(0.01), None),
        ("single signs at checkpoint 3", ("behind", True), at_most(0.015), None),
    ):
        # The sizes are those of the text's rate and dimensions.
        yield gate(context, "13", name, CORRELATED[which], bar, R1, published=printed, scale_needed="paper")
    yield gate(context, "14", "single signs", SINGLE_SIGNS, NEGATIVE, HIGHER)
    # The largest SEP is of such a degree at the ordinary rate as well, so that this alone says nothing of the rate.
    yield gate(context, "14", "degree of the largest SEP", HIGHER_DEGREE, above(0.5), HIGHER, kind=OWN)
    for (size, arm), comparison in WARM_BEST_INSIDE.items():
        yield gate(context, "14", f"{size} students, {arm} the transition", comparison, POSITIVE, HIGHER)


def _sizes(context: Results) -> Iterator[Gate]:
    yield gate(context, "15", "width", EARLIER, NEGATIVE, SECTION.format("4.2.7.1, Figure 4.10"))
    groups = {"heads": "heads of one width", "hidden": "heads that share a width", "averaged": "averaged heads"}
    for group, words in groups.items():
        source = SECTION.format("4.2.7.2, Figures 4.10 and 4.13")
        yield gate(context, "15", f"Transformers, {words}", MORE_HEADS[group], NEGATIVE, source)
    yield gate(context, "15", "BERTs", BERTS_HEADS, NEGATIVE, SECTION.format("4.2.8.6, Figure 4.26"))
