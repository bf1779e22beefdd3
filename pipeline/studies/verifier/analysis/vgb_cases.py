"""VGB-TC: exact laws of samplers under the trained verifier, on the trees below prompts for test cases (section 3.3.1
of Li 2025, on the stand-in).

A tree has the digits of a first line as actions: those of its list, its value, and those of the result. The signs
between them follow. A line is right if the result is the list with the value behind it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.languages import test_cases as language
from pipeline.models.llama.verifiers import Trained
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.measures import below
from pipeline.studies.verifier.measures.cases import CaseModels, name_of
from schemas.verifier.vgb_dyck import ALRS, EXACT, FIRST_LEAF, TRS


def following(digits: int) -> list[list[int]]:
    """Return the signs behind each digit of a line with a list of ``digits``.

    >>> [language.text(signs) for signs in following(1)]
    ['] ,', ') == [', ',', '']
    """
    comma = [language.COMMA]
    listed = [comma] * (digits - 1)
    value = [language.RIGHT, language.EQUALS, language.OPEN]
    return [*listed, [language.CLOSE, language.COMMA], value, *[comma] * digits, []]


def table(context: Inputs, models: CaseModels, verifier: Trained, prompts: list[list[int]]) -> pl.DataFrame:
    """Return how far every sampler is from the target, for every model and prompt.

    Rejection by token has the threshold of claim 23: at a half these verifiers, who judge whole documents, reject all.
    """
    entry = context.entry.trees
    actions = [language.ZERO + digit for digit in range(entry.digits_drawn)]
    rows: list[dict[str, Any]] = []
    for number, prompt in enumerate(prompts[: entry.prompts]):
        name = name_of(prompt)
        begun = [language.ASSERT, *(language.ID[letter] for letter in name), language.LEFT, language.OPEN]
        start = np.array([[*prompt, *begun]], np.int64)
        trees = below.trees(models.spec, models.params, verifier, start, actions, following(entry.listed))
        written = trees.tokens[:, len(prompt) :].tolist()
        right = np.array([language.first_error(name, 1, tokens) < 0 for tokens in written], float)
        for r in range(models.count):
            base, values, removed = trees.of(r, 0)
            key = {"replica": r, "prompt_id": number, "horizon": len(base)}
            found = below.laws(base, values, right, removed, context.entry.thresholds[0])
            rows += [key | row for row in found]
    return pl.DataFrame(rows, schema_overrides=below.COSTS)


def compared(found: Measurements, table: pl.DataFrame) -> None:
    """Measure how much nearer to the target samplers are than others: of each model the mean over prompts."""
    exact = table.filter(leaf_values=EXACT).group_by("replica", "method", maintain_order=True).agg(pl.mean("distance"))

    def of(method: str) -> pl.Series:
        return exact.filter(method=method).sort("replica")["distance"]

    found.add(declared.VGB_CASES_NEARER, of(FIRST_LEAF), of(ALRS))
    found.add(declared.CASES_HARD_FARTHER, of(TRS), of(ALRS))
