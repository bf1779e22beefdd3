"""Claims 1 to 6 and 9: what trained models reach, how fast, and what they attend to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from pipeline.kit.verdicts import Condition, Gate, Measured
from schemas.depth.tables import CONTEXTUAL, GENERALIZATION, JUDGED, MEMORIZATION, ONE_LAYER, REASONING

LEARNED, LEARNED_IN_CONTEXT = 0.99, 0.95
NEAR_CHANCE, NEAR_CHANCE_IN_CONTEXT = 0.05, 0.1
SIGNIFICANT = 0.05
MIDDLE = 3, 2  # l and k of the middle setting; the published l is 5
RIGHT_PAIR = 0.95
UNIFORM = "L=1, uniform start"  # a control of ours: one layer that gradients reach
OUTPUTS, CONTEXT = "outputs", "context"  # what the largest score is taken of
FIGURE_2 = "Chen and Zou 2024, Figure 2 and section 6.1"
FIGURES_4_6 = "Chen and Zou 2024, Figures 4 to 6 and section 9.2"
FIGURE_7 = "Chen and Zou 2024, Figure 7 and section 9.3"
FIGURE_3 = "Chen and Zou 2024, Figure 3 and section 6.2"

Row = dict[str, Any]


def memorization(accuracy: pl.DataFrame) -> Iterator[Gate]:
    """Claim 1: one layer memorizes."""
    row = _final(accuracy, MEMORIZATION[1], JUDGED["sc"], OUTPUTS)
    yield _learned("1", "L=1", "training accuracy of one layer", row, MEMORIZATION[1])


def reasoning(accuracy: pl.DataFrame) -> Iterator[Gate]:
    """Claim 2: two layers reason, one picks an answer of the context at random."""
    row = _final(accuracy, REASONING[2], JUDGED["ic_qa"], OUTPUTS)
    yield _learned("2", "L=2", "accuracy of two layers on fresh questions", row, REASONING[2])
    for gate, run in (("L=1", REASONING[1]), (UNIFORM, ONE_LAYER["ic_qa"])):
        row = _final(accuracy, run, JUDGED["ic_qa"], CONTEXT)
        yield _guesses("2", gate, row, run, NEAR_CHANCE)


def generalization(accuracy: pl.DataFrame) -> Iterator[Gate]:
    """Claim 3: two layers classify unseen combinations of tokens, one guesses the template.

    A combination may be of one token: those of the template AAA have a gate of their own.
    """
    row = _final(accuracy, GENERALIZATION[2], JUDGED["tm"], OUTPUTS)
    yield _learned("3", "L=2", "accuracy of two layers on unseen combinations", row, GENERALIZATION[2])
    row = _final(accuracy, GENERALIZATION[2], "unseen_repetition", OUTPUTS)
    what = "accuracy of two layers on AAA of tokens seen in other templates alone"
    yield _learned("3", "L=2, one token", what, row, GENERALIZATION[2])
    for gate, run in (("L=1", GENERALIZATION[1]), (UNIFORM, ONE_LAYER["tm"])):
        row = _final(accuracy, run, JUDGED["tm"], OUTPUTS)
        chance = row["chance"] if row else None
        about = chance or 0.0
        yield Gate(
            "3",
            gate,
            f"median accuracy of one layer is within {NEAR_CHANCE} of chance, 1/templates of that split",
            FIGURE_2,
            (
                Condition("value", ">=", about - NEAR_CHANCE),
                Condition("value", "<=", about + NEAR_CHANCE),
            ),
            *_measured(row, run),
            published=_published(gate, chance),
        )


def contextual(accuracy: pl.DataFrame) -> Iterator[Gate]:
    """Claim 4: three layers generalize in context, fewer pick an answer of the context at random.

    At the published size, and at a middle setting, which takes minutes (chapter section 6).
    """
    split = JUDGED["ic_tm"]
    for prefix, scale, here in _settings(accuracy):
        row = _final(accuracy, CONTEXTUAL[3], split, OUTPUTS)
        what = f"accuracy of three layers on fresh contexts{prefix and ', l=3, k=2'}"
        gates = [_learned("4", f"{prefix}L=3", what, row, CONTEXTUAL[3], LEARNED_IN_CONTEXT, scale)]
        for gate, run in (("L=1", CONTEXTUAL[1]), (UNIFORM, ONE_LAYER["ic_tm"]), ("L=2", CONTEXTUAL[2])):
            row = _final(accuracy, run, split, CONTEXT)
            gates.append(_guesses("4", prefix + gate, row, run, NEAR_CHANCE_IN_CONTEXT, scale))
        yield from (gate if here else _elsewhere(gate) for gate in gates)


def speed(accuracy: pl.DataFrame, contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Claim 5: a fourth layer gets there sooner; at the same two settings."""
    for prefix, scale, here in _settings(accuracy):
        gate = Gate(
            "5",
            f"{prefix}L=4 over L=3",
            "median steps to 95% of four layers over those of three are below 1",
            FIGURE_7,
            (Condition("value", "<", 1.0),),
            *_compared(contrasts, "four layers against three"),
            scale_needed=scale,
        )
        yield gate if here else _elsewhere(gate)


def _settings(accuracy: pl.DataFrame) -> Iterator[tuple[str, str, bool]]:
    """What gates of a setting are called, the scale that they need, and whether the runs here have that setting."""
    row = _final(accuracy, CONTEXTUAL[3], JUDGED["ic_tm"], OUTPUTS)
    middle = row is not None and (row["l"], row["k"]) == MIDDLE
    yield "middle setting, ", "quick", row is None or middle
    yield "", "paper", row is None or not middle


def _elsewhere(gate: Gate) -> Gate:
    """``gate`` where the runs have the other setting."""
    missing = "the runs at this scale have the other setting of l and k"
    return replace(gate, measured=None, missing=missing)


def heads(contrasts: pl.DataFrame, close: float) -> Iterator[Gate]:
    """Claim 6: heads make memorization faster, and change nothing else."""
    name = "heads of one layer"
    predicate = "Spearman's correlation of heads and steps to 95% is negative"
    fewer = (Condition("value", "<", 0.0),)
    yield Gate("6", "SC, steps", predicate, FIGURES_4_6, fewer, *_compared(contrasts, name))
    predicate = f"the p-value of that correlation, 1 where it is not negative, is below {SIGNIFICANT}"
    significant = (Condition("value", "<", SIGNIFICANT),)
    yield Gate("6", "SC, p", predicate, FIGURES_4_6, significant, *_compared(contrasts, name, "p"))
    for label, task in (("IC-QA", "ic_qa"), ("TM", "tm")):
        yield Gate(
            "6",
            f"{label}, accuracy",
            f"no setting of heads changes the median final accuracy on {label} by more than {close}",
            FIGURES_4_6,
            (Condition("value", "<=", close),),
            *_compared(contrasts, f"heads of two layers, {task}"),
        )


def attention(agreement: pl.DataFrame) -> Iterator[Gate]:
    """Claim 9: in the last layer of reasoning models the query attends to the right pair."""
    run = REASONING[2]
    shares = agreement.filter(pl.col("last_layer"), run=run, head=0)["right_example"].drop_nulls().to_list()
    yield Gate(
        "9",
        "layer 2",
        "median share of fresh questions whose largest key, its own pair aside, lies in the right pair is at least "
        f"{RIGHT_PAIR}",
        FIGURE_3,
        (Condition("value", ">=", RIGHT_PAIR),),
        Measured(pl.Series(shares, dtype=pl.Float64).median(), n=len(shares)) if shares else None,  # type: ignore[arg-type]
        "" if shares else _not_there(run),
    )


def _final(accuracy: pl.DataFrame, run: str, split: str, among: str) -> Row | None:
    rows = accuracy.filter(run=run, split=split, among=among)
    return rows.row(0, named=True) if rows.height else None


def _measured(row: Row | None, run: str) -> tuple[Measured | None, str]:
    if row is None:
        return None, _not_there(run)
    lost = row["n_diverged"]
    return Measured(row["value"], row["lo"], row["hi"], row["n"], lost, "diverged" if lost else ""), ""


def _not_there(run: str) -> str:
    return f"{run} is not in params.yaml, or trains nothing at this scale"


def _learned(
    claim: str, gate: str, what: str, row: Row | None, run: str, bound: float = LEARNED, scale: str = "quick"
) -> Gate:
    predicate, enough = f"median {what} is at least {bound}", (Condition("value", ">=", bound),)
    measured, missing = _measured(row, run)
    return Gate(claim, gate, predicate, FIGURE_2, enough, measured, missing, 1.0, scale)


def _guesses(claim: str, gate: str, row: Row | None, run: str, margin: float, scale: str = "quick") -> Gate:
    """At most chance among the k answers of the context, and a margin."""
    chance = row["chance"] if row else None
    layers = "one layer" if "L=1" in gate else "two layers"
    predicate = f"median accuracy of {layers} among the context's k answers is at most 1/k + {margin}"
    conditions = (Condition("value", "<=", (chance or 0.0) + margin),)
    measured, missing = _measured(row, run)
    published = _published(gate, chance)
    return Gate(claim, gate, predicate, FIGURE_2, conditions, measured, missing, published, scale)


def _published(gate: str, chance: float | None) -> float | None:
    """Chance, but for our own control."""
    return None if gate.endswith(UNIFORM) else chance


def _compared(contrasts: pl.DataFrame, name: str, column: str = "value") -> tuple[Measured | None, str]:
    """A contrast, or its p-value against a value that is not negative; or None, and what is missing."""
    rows = contrasts.filter(contrast=name)
    if not rows.height:
        return None, f"{name}: its runs are not in params.yaml, or train nothing at this scale"
    row = rows.row(0, named=True)
    if row[column] is None or row["value"] is None:
        return None, f"{name}: not defined, {row['n_censored']} of {row['n']} models never got to 95%"
    lost = row["n_diverged"]
    lo, hi = (row["lo"], row["hi"]) if column == "value" else (None, None)
    value = 1.0 if column == "p" and row["value"] >= 0 else row[column]
    return Measured(value, lo, hi, row["n"], lost, "diverged" if lost else ""), ""
