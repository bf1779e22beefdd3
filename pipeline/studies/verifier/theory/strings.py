"""The law of balanced strings of one length, equations 3.3 and 3.4, against the process by enumeration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.languages import dyck_strings as language
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.verifier.params import StringsCheck

SOURCE = "Li 2025, Definition 3.2.1, Remark 3.2.1, equations 3.3 and 3.4"
ERRATUM = "verifier-eq-3-4"


def check(entry: StringsCheck, key: str, seed: int) -> pl.DataFrame:
    """Return what the masses of all strings of each length sum to, and how far they are from those of the
    process."""
    found: list[dict[str, Any]] = []
    for brackets in entry.brackets:
        strings = language.enumerate_strings(brackets)
        law = np.exp(language.log_probability(strings, entry.p, entry.q, brackets))
        printed = np.exp(language.log_probability(strings, entry.p, entry.q, brackets, printed=True))
        process = np.array([_by_process(row, entry.p, entry.q) for row in strings])
        apart = abs(printed / printed.sum() - law).sum() / 2
        size = f"all {len(strings)} strings of {brackets} brackets"
        common = {"size": size, "claim": "33", "erratum": ERRATUM, "part": "law"}
        found += [
            common
            | {
                "check": f"process-{brackets}",
                "form": "corrected",
                "statement": "With < the law is that of the process: largest relative difference of a string's mass",
                "measured": largest(abs(law / process - 1)),
                "comparison": "<=",
                "bound": 1e-12,
            },
            common
            | {
                "check": f"total-{brackets}",
                "form": "corrected",
                "statement": "With < the masses of all strings sum to 1",
                "measured": float(law.sum()),
                "comparison": "within",
                "bound": 1.0,
                "tolerance": 1e-12,
            },
            common
            | {
                "check": f"printed-{brackets}",
                "form": "printed",
                "statement": "With <=, as printed, the masses of all strings do not sum to 1",
                "measured": float(printed.sum()),
                "comparison": "beyond",
                "bound": 1.0,
                "tolerance": 0.01,
                "detail": f"normalised, its distance in total variation is {apart:.4f}",
            },
        ]
    return rows(entry.study, key, SOURCE, found)


def _by_process(brackets: np.ndarray, p: float, q: float) -> float:
    """Return the probability of a string as the product of the laws that the process draws from."""
    tokens = np.concatenate([[language.BEGIN], brackets])
    laws = (language.next_law(tokens[:i], len(brackets), p, q, len(brackets)) for i in range(1, len(tokens)))
    return float(np.prod([law[token] for law, token in zip(laws, brackets.tolist(), strict=True)]))
