"""Claims 20 to 31: BERTs on masked tokens and GPT-2s on next tokens of grammars (chapter section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured, Published
from pipeline.studies.distillation.claims.common import SECTION, contrast
from pipeline.studies.distillation.names import (
    BERT,
    CHOOSERS,
    GPT,
    OTHER_PUPILS,
    OTHER_WIDER,
    OTHERS,
    PUPILS,
    SPANS,
    TEXT_PUPILS,
    WIDER,
    root_at,
)
from schemas.claims import OWN

STATEMENTS = {
    "20": "Before a masked language model learns anything of its grammar, its loss is that of guessing by frequency.",
    "21": "No masked language model is better than the best predictor.",
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
OTHERS_AT, NEXT = (
    SECTION.format("4.2.8.6, Figures 4.28 to 4.30"),
    SECTION.format("4.2.9, Figures 4.33 to 4.35"),
)
PLATEAU = 1.0524  # nats, TH-PLATEAU at a mask rate of 0.3 and equal frequencies
# Figure 4.4, right, read from the graphic: accuracy of students by horizon.
ACCURACIES = {
    "prog": (0.803, 0.921, 0.958, 0.962), "one-shot": (0.768, 0.901, 0.927, 0.953), "ce": (0.745, 0.866, 0.926, 0.927),
}  # fmt: skip
TAUGHT = {
    "prog": "progressive students", "os": "one-shot students", "ce": "students of labels",
    "one-shot": "one-shot students at the better temperature",
}  # fmt: skip
LENGTHS = tuple(
    f"the {which} of four lengths of training" for which in ("shortest", "second", "third", "longest")
)
ALLOWED = 0.02
NEEDS = "paper"  # the scale with the published sizes, which accuracies and gains in them depend on
# The shares of masked tokens on cfg3b, by what comparisons are called.
MASKS = {"cfg3b": "30 % of tokens masked", "rate15": OTHERS["rate15"], "rate45": OTHERS["rate45"]}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    yield from _teachers(context)
    yield from _students(context)
    yield from _checkpoints(context)
    yield from _features(context)
    yield from _variants(context)
    yield from _text(context)


def _teachers(context: Results) -> Iterator[Gate]:
    # At quick a single run is kept on the plateau, so fewer models than elsewhere are enough.
    measurement = evidence.one_row(
        context.table("contrasts"), "not trained at this scale", contrast="loss on the plateau"
    )
    yield Gate(
        "20",
        "cfg3b",
        "loss on the plateau, in nats",
        FASTEST,
        within(PLATEAU, 0.03),
        *measurement,
        Published(1.04),
    )
    yield Gate(
        "21",
        "cfg3b",
        "largest accuracy of a model minus that of the best predictor, in standard errors",
        SECTION.format("4.2.3"),
        at_most(3.0),
        *_excess(context),
        kind=OWN,
    )
    yield Gate(
        "23",
        "cfg3b",
        "kept checkpoints between the inflection and the largest median L_robust(3), median over teachers",
        FASTEST,
        at_most(1.0),
        *contrast(context, "checkpoints between inflection and peak"),
    )
    yield Gate(
        "25",
        "short windows",
        "median L_robust(3) at the end over its peak, median over teachers",
        FASTEST,
        at_most(0.6),
        *contrast(context, "L_robust(3), last over largest"),
        Published(5e-5 / 0.75, derivation="5e-5 / 0.75, read from the graphic"),
        size_needed=NEEDS,
    )
    yield Gate(
        "25",
        "long windows",
        "median L_close of the widest window at the end over that at the inflection, median over teachers",
        FASTEST,
        at_most(0.5),
        *contrast(context, "L_close, last over inflection"),
    )
    yield Gate(
        "26",
        "cfg3b",
        "accuracy of the probe in the middle of the fast phase over its last one, median over teachers",
        SECTION.format("4.2.8.2, Figure 4.25"),
        at_least(0.95),
        *contrast(context, "probe, middle over last"),
    )


def _excess(context: Results) -> Evidence:
    """Return by how many standard errors the best model on cfg3b exceeds the best predictor."""
    models = context.table("models").filter(pl.col("run").is_in([BERT, *PUPILS, *WIDER, *CHOOSERS]))
    best = context.table("oracle").filter(grammar="cfg3b", task="masked", quantity="acc", mask_rate=0.3)
    best = best.filter(root=root_at(context.scale, best["root"]))
    held = context.table("contrasts").filter(contrast="held-out tokens of a sentence")
    if not models.height or not best.height or not held.height:
        return None, "not trained at this scale"
    top, bound = float(models["final"].max()), float(best["value"][0])  # type: ignore[arg-type]
    count = held["value"][0] * held["n"][0]
    error = math.hypot(float(best["se"][0]), math.sqrt(bound * (1 - bound) / count))
    return Measured((top - bound) / error, None, None, models.height), ""


def _students(context: Results) -> Iterator[Gate]:
    paper = context.scale == NEEDS
    arm = "prog" if paper else "half"  # the schedule of the figure; at quick that of the appendix
    speed = "" if paper else ", at double speed,"
    for other, base in (
        ("one-shot", "one-shot ones at the better temperature"),
        ("labels", "students of labels"),
    ):
        yield Gate(
            "22",
            f"shortest horizon, {other}",
            f"mean accuracy of progressive students{speed} minus that of {base}, at the "
            "shortest length of training",
            START,
            above(0.0),
            *contrast(context, f"horizon 1, {arm} - {other}"),
            Published(0.035, derivation="0.803 - 0.768")
            if other == "one-shot"
            else Published(0.058, derivation="0.803 - 0.745"),
            size_needed=NEEDS,
        )
    yield Gate(
        "22",
        "horizons",
        f"mean gain of progressive students{speed} over one-shot ones at the shortest length of training "
        "minus that at the longest",
        START,
        above(0.0),
        *contrast(context, f"{arm}, shortest - longest"),
        Published(0.026, derivation="(0.803 - 0.768) - (0.962 - 0.953)"),
        size_needed=NEEDS,
    )
    for name, values in ACCURACIES.items():
        for place, value in enumerate(values, 1):
            yield Gate(
                "22",
                f"{name}, horizon {place}",
                f"mean accuracy of {TAUGHT[name]}, at {LENGTHS[place - 1]}",
                START,
                within(value, ALLOWED),
                *contrast(context, f"horizon {place}, {name}"),
                Published(value),
                scale_needed=NEEDS,
            )
    for place in range(1, 5):
        yield Gate(
            "28",
            f"horizon {place}",
            "mean accuracy of students that take the checkpoints in turn in half of "
            "the teacher's steps minus that of students that split their own steps equally among them, at "
            f"{LENGTHS[place - 1]}",
            SPLITS,
            at_least(0.0) if place < 3 else at_most(0.01),
            *contrast(context, f"horizon {place}, half - even"),
        )


def _checkpoints(context: Results) -> Iterator[Gate]:
    yield Gate(
        "24",
        "against one-shot",
        "mean accuracy of students of the checkpoint nearest the inflection minus that of the last one alone",
        FASTEST,
        above(0.0),
        *contrast(context, "inflection - one-shot"),
        Published(0.055, derivation="0.925 - 0.870"),
        size_needed=NEEDS,
    )
    yield Gate(
        "24",
        "against the plateau",
        "mean accuracy of students of the checkpoint nearest the inflection minus that of "
        "students of a checkpoint on the plateau",
        FASTEST,
        above(0.0),
        *contrast(context, "inflection - plateau"),
        Published(0.074, derivation="0.925 - 0.851"),
        size_needed=NEEDS,
    )
    yield Gate(
        "24",
        "the best",
        "checkpoints between the best one and that nearest the inflection, median over students",
        FASTEST,
        at_most(1.0),
        *contrast(context, "checkpoints between best and inflection"),
    )


def _features(context: Results) -> Iterator[Gate]:
    for name, measure, bar in (
        ("L_robust", "median L_robust(3)", below(0.0)), ("L_close", "median L_close of the widest window", below(0.0)),
        ("probe", "mean accuracy of the probe on the highest levels", above(0.0)),
    ):  # fmt: skip
        yield Gate(
            "27",
            name,
            f"{measure} of progressive students minus that of one-shot ones, mean over students",
            FEATURES,
            bar,
            *contrast(context, f"students' {name}, progressive - one-shot"),
        )
    yield Gate(
        "27",
        "probe, sign test",
        "share of students and high levels for which the probe reads more of a progressive "
        "student than of the one-shot one",
        FEATURES,
        above(0.5),
        *contrast(context, "students' probe, levels at which progressive ones read better"),
    )


def _text(context: Results) -> Iterator[Gate]:
    """Yield gates at the shortest horizon at which students of labels do better than the most frequent word; sooner
    there is nothing to compare."""
    table = context.table("contrasts")
    common = table.filter(contrast="most frequent word")["value"]
    learned = [
        run for run in TEXT_PUPILS
        for low in table.filter(contrast=f"{run}, ce")["lo"]
        if low is not None and len(common) and low > common[0]
    ]  # fmt: skip
    missing: Evidence = (None, "no student of labels does better than the most frequent word at this scale")
    for first, second, name, base in (
        ("prog", "os", "progressive", "one-shot"), ("os", "ce", "one-shot", "labels")
    ):  # fmt: skip
        yield Gate(
            "31",
            f"{name} and {base}",
            f"mean accuracy of {name} students minus that of {TAUGHT[second]}, on generated "
            "text, at the shortest length of training at which students of labels do better than the most frequent "
            "word",
            SECTION.format("4.2.3.2, Figure 4.9"),
            at_least(0.0),
            *(contrast(context, f"{learned[0]}, {first} - {second}") if learned else missing),
            kind=OWN,
        )


def _variants(context: Results) -> Iterator[Gate]:
    # The names have the published numbers of heads; at smaller scales students of both sizes have fewer.
    for group, size, heads in ((PUPILS, "smaller", 8), (WIDER, "larger", 16)):
        for place, run in enumerate(group, 1):
            for other in ("os", "warm"):
                tau = "temperature 0" if other == "os" else "temperature 1"
                yield Gate(
                    "29",
                    f"{heads} heads, horizon {place}, {tau}",
                    f"mean accuracy of progressive students, at double speed, minus that of one-shot ones at {tau}, of "
                    f"the {size} (published: {heads} heads) students at {LENGTHS[place - 1]}",
                    OTHERS_AT,
                    above(0.0),
                    *contrast(context, f"{run}, half - {other}"),
                )
    yield Gate(
        "29",
        "cfg3i",
        "mean accuracy of progressive students, at double speed, at the longest length of training",
        OTHERS_AT,
        within(0.75, 0.03),
        *contrast(context, f"{OTHER_PUPILS['cfg3i'][-1]}, half"),
        Published(0.75),
        scale_needed=NEEDS,
    )
    yield Gate(
        "29",
        "cfg3i, shortest horizon",
        "mean accuracy of progressive students at the shortest length of training minus that at the longest",
        OTHERS_AT,
        at_least(-0.01),
        *contrast(context, "cfg3i, smaller, half, shortest - longest"),
    )
    for size, heads, runs in (("smaller", 8, OTHER_PUPILS), ("larger", 16, OTHER_WIDER)):
        for kind, what in OTHERS.items():
            yield Gate(
                "29",
                f"{what}, {heads} heads",
                "mean accuracy of progressive students, at double speed, minus that "
                f"of one-shot ones, of the {size} (published: {heads} heads) students at the shortest length of "
                f"training, {what}",
                OTHERS_AT,
                above(0.0),
                *contrast(context, f"{runs[kind][0]}, half - os"),
            )
        for kind, what in MASKS.items():
            yield Gate(
                "29",
                f"shrinking gain, {what}, {heads} heads",
                "mean gain of progressive over one-shot students, as a "
                "share of the accuracy of these, at the shortest length of training minus that at the longest, "
                f"of {size} students, {what}",
                OTHERS_AT,
                above(0.0),
                *contrast(context, f"{kind}, {size}, relative gain, shortest - longest"),
            )
    yield Gate(
        "30",
        "levels 4 and 2",
        "gain of progressive over one-shot students, mean over horizons, on level 4 minus that on level 2",
        NEXT,
        above(0.0),
        *contrast(context, "gain, level 4 - level 2"),
    )
    yield Gate(
        "30",
        "cfg3f, level 3",
        "mean accuracy of progressive students of the longest horizon",
        NEXT,
        at_least(0.9),
        *contrast(context, "level 3, longest, half"),
        Published(0.9),
        scale_needed=NEEDS,
    )
    yield Gate(
        "30",
        "cfg3g, level 3",
        "mean accuracy of progressive students of the longest horizon",
        NEXT,
        within(0.84, 0.03),
        *contrast(context, "level 3 of cfg3g, longest, half"),
        Published(0.84),
        scale_needed=NEEDS,
    )
    yield Gate(
        "30",
        "cfg3g, gain",
        "gain of progressive over one-shot students, mean over horizons beyond the shortest",
        NEXT,
        at_most(0.02),
        *contrast(context, "level 3 of cfg3g, gain beyond the shortest"),
    )
    for spans in ("2", "3", "4"):
        yield Gate(
            "30",
            f"sizes, {SPANS[spans]}",
            "rank correlation of the number of heads with the steps to 80 % of the "
            "last accuracy, of models that learn from labels for as many steps",
            SECTION.format("4.2.9, Figure 4.31"),
            below(0.0),
            *contrast(context, f"{SPANS[spans]}, heads and t80"),
        )
    for run, spans in list(GPT.items())[:2]:
        yield Gate(
            "30",
            f"inflection, {SPANS[spans]}",
            "kept checkpoints between the inflection and the largest L_robust(3), median over teachers",
            SECTION.format("4.2.9, Figure 4.32"),
            at_most(1.0),
            *contrast(context, f"{run}, checkpoints between inflection and peak"),
        )
