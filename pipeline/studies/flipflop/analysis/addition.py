"""E17: recorded answers to additions, their sums computed again (Liu 2024, Tables 3.2 and 3.3)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.studies.flipflop.exact import recognisers as exact

# Operands, the printed answer, and what GPT-3.5 and GPT-4 said with the printed mark: right or wrong. The third answer
# of GPT-3.5 is put together from highlighted pieces of the table; Figure 3.2 prints 16111199190810090.
PRINTED = (
    ("Table 3.2", "8493", "2357", "10850", ("10850", True), ("10850", True)),
    ("Table 3.2", "84935834", "23572898", "108508732", ("108008732", False), ("108508732", True)),
    (
        "Table 3.2",
        "9991999919909993",
        "6109199190990097",
        "16101199110900090",
        ("16111199100810090", False),
        ("16101199100890090", False),
    ),
    ("Table 3.3", "4491", "8759", "13250", ("13250", True), ("13250", True)),
    ("Table 3.3", "80087394", "63457948", "143545342", ("143045342", False), ("143545342", True)),
    (
        "Table 3.3",
        "5101611078665398",
        "8969499832688802",
        "14071110911354200",
        ("1.4071110911354202e+16", False),
        ("14071110911354196", False),
    ),
)
MODELS = ("GPT-3.5", "GPT-4")


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return a row for each recorded answer: what is printed, what is true, and the sum by a flip-flop."""
    return {"addition": pl.DataFrame([_row(*entry, number) for entry in PRINTED for number in (0, 1)])}


def _row(
    table: str, a: str, b: str, answer: str, first: tuple[str, bool], second: tuple[str, bool], number: int
) -> dict[str, Any]:
    total, marked = (first, second)[number]
    truth = str(int(a) + int(b))
    return {
        "printed_in": table,
        "a": a,
        "b": b,
        "model": MODELS[number],
        "answer": total,
        "marked_right": marked,
        "right": total == truth,
        "truth": truth,
        "printed_truth": answer,
        "carried": exact.added(a, b),
    }
