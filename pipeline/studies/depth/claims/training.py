"""Claims 1 to 6 and 9: what trained models reach, how fast, and what they attend to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition, above, at_least, at_most, below, within
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.depth.comparisons import (
    ENDED,
    FOUR_LAYERS,
    FOUR_LAYERS_PUBLISHED,
    HEADS_ACCURACY,
    HEADS_P,
    HEADS_STEPS,
    LEARNED,
    LEARNED_IN_CONTEXT,
    LIKENESS,
    RIGHT_PAIR,
    SOLVED,
)
from pipeline.studies.depth.names import (
    CONTEXT,
    CONTEXTUAL,
    CONTEXTUAL_PUBLISHED,
    FROZEN,
    GENERALIZATION,
    JUDGED,
    MEMORIZATION,
    ONE_LAYER,
    OUTPUTS,
    REASONING,
    SIZES,
    TWO_LAYERS_HEADS,
)
from schemas.claims import CORRECTED, OWN, STATED

NEAR_CHANCE, NEAR_CHANCE_IN_CONTEXT = 0.05, 0.1
SIGNIFICANT = 0.05
MIDDLE = 3, 2  # l and k of the middle setting; the published l is 5
MOST_IN_RIGHT_PAIR = 0.95
UNIFORM = "L=1, uniform start"  # a control of ours: one layer that gradients reach
MANY = ", N above the width"
PUBLISHED_START = ", published start"
FIGURE_2 = "Chen and Zou 2024, Figure 2 and section 6.1"
FIGURES_4_6 = "Chen and Zou 2024, Figures 4 to 6 and section 9.2"
FIGURE_7 = "Chen and Zou 2024, Figure 7 and section 9.3"
FIGURE_3 = "Chen and Zou 2024, Figure 3 and section 6.2"


def memorization(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 1: one layer memorizes, as many sequences as its width and many more.

    Beside it a control of ours, in which attention stays as it starts: where it memorizes as well, the classifier did
    it.
    """
    for where, run in (("", MEMORIZATION[1]), (MANY, SIZES)):
        yield _reaches(context, "1", f"L=1{where}", run, JUDGED["sc"], at_least(LEARNED))
    for where, run in (("", FROZEN[MEMORIZATION[1]]), (MANY, FROZEN[SIZES])):
        yield _reaches(context, "1", f"frozen attention{where}", run, JUDGED["sc"], below(LEARNED), OWN)


def reasoning(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 2: two layers reason, one picks an answer of the context at random.

    One layer from the construction is not judged: no gradient passes from its query to the context (EXP-1's findings).
    """
    yield _reaches(context, "2", "L=2", REASONING[2], JUDGED["ic_qa"], at_least(LEARNED))
    yield _most_starts(context, "2", "L=2", REASONING[2])
    yield _guesses(context, "2", UNIFORM, ONE_LAYER["ic_qa"], JUDGED["ic_qa"], CONTEXT, NEAR_CHANCE, OWN)


def generalization(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 3: two layers classify unseen combinations of tokens; one layer guesses at best.

    A combination may be of one token: those of the template AAA have a gate of their own. Of tokens that training never
    showed the source says nothing; its construction (Theorem 5) is right on them.
    """
    run = GENERALIZATION[2]
    yield _reaches(context, "3", "L=2", run, JUDGED["tm"], at_least(LEARNED))
    yield _most_starts(context, "3", "L=2", run)
    yield _reaches(context, "3", "L=2, one token", run, "unseen_repetition", at_least(LEARNED), OWN)
    yield _reaches(context, "3", "L=2, unseen tokens", run, "unseen_token", at_least(LEARNED), OWN)
    # Its average over all sequences is that of a guess (Theorem 4): what it gains on some it loses on others.
    yield _guesses(context, "3", UNIFORM, ONE_LAYER["tm"], JUDGED["tm"], OUTPUTS, NEAR_CHANCE, OWN)


def contextual(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 4: three layers generalize in context; fewer pick an answer of the context at random.

    There are gates at the published size, and at a middle setting, which takes minutes (chapter section 6). The start
    of the source is a classifier in [0, 1); a smaller one is our form.
    """
    split, solved = JUDGED["ic_tm"], at_least(LEARNED_IN_CONTEXT)
    for prefix, here in _settings(context):
        gates = []
        for start, kind, depths in (("", CORRECTED, CONTEXTUAL), (PUBLISHED_START, STATED, CONTEXTUAL_PUBLISHED)):
            three, two = (f"{prefix}L={layers}{start}" for layers in (3, 2))
            gates += [
                _reaches(context, "4", three, depths[3], split, solved, kind),
                _guesses(context, "4", two, depths[2], split, CONTEXT, NEAR_CHANCE_IN_CONTEXT, kind),
                _most_starts(context, "4", three, depths[3]),
            ]
        for gate, run in ((f"{prefix}L=2, 2l heads", TWO_LAYERS_HEADS), (prefix + UNIFORM, ONE_LAYER["ic_tm"])):
            gates.append(_guesses(context, "4", gate, run, split, CONTEXT, NEAR_CHANCE_IN_CONTEXT, OWN))
        yield from (gate if here else _elsewhere(gate) for gate in gates)


def speed(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 5: four layers get to 95% sooner than three, from both starts.

    There are gates at the published size, and at the middle setting.
    """
    for prefix, here in _settings(context):
        for start, kind, comparison in (("", CORRECTED, FOUR_LAYERS), (PUBLISHED_START, STATED, FOUR_LAYERS_PUBLISHED)):
            name = f"{prefix}L=4 over L=3{start}"
            gate = evidence.gate(context, "5", name, comparison, below(1.0), FIGURE_7, kind=kind)
            yield gate if here else _elsewhere(gate)


def _settings(context: Results) -> Iterator[tuple[str, bool]]:
    """Yield the prefix of the gates of a setting, and whether runs here have it."""
    runs = [*CONTEXTUAL.values(), *CONTEXTUAL_PUBLISHED.values()]
    rows = context.table("runs").filter(pl.col("run").is_in(runs))
    unknown, middle = not rows.height, MIDDLE in rows.select("l", "k").rows()
    yield "middle setting, ", unknown or middle
    yield "", unknown or not middle


def _elsewhere(gate: Gate) -> Gate:
    """Return ``gate`` without its measurement, because the runs have the other setting."""
    missing = "the runs at this scale have the other setting of l and k"
    return replace(gate, measured=None, missing=missing)


def heads(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 6: heads make memorization faster, and change nothing else.

    The source says that more heads memorize "more easily", and that they have no "significant impact" elsewhere. A
    test of significance is not in it: this one is of the specification of this study (chapter section 6).
    """
    yield evidence.gate(context, "6", "SC, steps", HEADS_STEPS, below(0.0), FIGURES_4_6)
    yield evidence.gate(context, "6", "SC, p", HEADS_P, below(SIGNIFICANT), FIGURES_4_6, kind=OWN)
    labels = {"ic_qa": "IC-QA", "tm": "TM"}
    unchanged = within(0.0, context.settings.close)
    for (task, setting), comparison in HEADS_ACCURACY.items():
        name = f"{labels[task]}, accuracy, heads {setting}"
        yield evidence.gate(context, "6", name, comparison, unchanged, FIGURES_4_6)


def attention(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 9: the query of reasoning models attends to the right pair, in their last layer; and of
    our own claim 10: on templates attention becomes more like the construction (DEP-A1)."""
    yield evidence.gate(context, "9", "layer 2", RIGHT_PAIR, at_least(MOST_IN_RIGHT_PAIR), FIGURE_3)
    for layer, comparison in LIKENESS.items():
        yield evidence.gate(context, "10", f"templates, layer {layer}", comparison, above(0.0), FIGURE_3, kind=OWN)


def _reaches(
    context: Results, claim: str, gate: str, run: str, split: str, bar: tuple[Condition, ...], kind: str = STATED
) -> Gate:
    return evidence.gate(context, claim, gate, ENDED[run, split, OUTPUTS], bar, FIGURE_2, kind=kind)


def _most_starts(context: Results, claim: str, gate: str, run: str) -> Gate:
    """Return the gate that more than half of all starts solve the task, whatever the median says of the others."""
    return evidence.gate(context, claim, f"{gate}, share", SOLVED[run], above(0.5), FIGURE_2, kind=OWN)


def _guesses(
    context: Results, claim: str, gate: str, run: str, split: str, among: str, margin: float, kind: str
) -> Gate:
    """Return the gate that accuracy is at most that of a guess plus a margin.

    A run that is not trained has no bar: a guess is that of the task as it is at this scale.
    """
    chance = context.table("accuracy").filter(run=run, split=split, among=among)["chance"]
    bar = at_most(chance[0] + margin) if len(chance) else ()
    return evidence.gate(context, claim, gate, ENDED[run, split, among], bar, FIGURE_2, kind=kind)
