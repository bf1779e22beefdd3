"""What Li 2025 prints of WMT, Tables 4.1 to 4.5. Nothing here is compared with the stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DIRECTIONS = ("DE-EN", "EN-DE", "RO-EN", "EN-RO", "ZH-EN", "EN-ZH")
AR, FOUR, TEN = "AR", "PaDIR 5/4", "PaDIR 5/10"

SACREBLEU = {  # B1; EN-ZH of PaDIR 5/4 is 32.59 in B2 as well
    AR: (33.50, 29.54, 34.89, 29.75, 27.59, 33.94),
    FOUR: (33.49, 28.61, 33.98, 28.98, 26.47, 32.59),
    TEN: (33.63, 28.58, 33.99, 28.97, 26.54, 32.68),
}
BLEU = {  # B2, of several implementations
    "DisCo AR": (31.71, 28.60, 34.46, 34.16, 24.65, 35.01),
    "CMLM 5/4": (30.75, 26.73, 33.02, 33.67, 22.57, 33.58),
    "CMLM 5/10": (31.24, 27.39, 33.67, 33.33, 23.76, 34.24),
    "DisCo Easy-First 5/3-6": (31.31, 27.34, 33.25, 33.22, 23.83, 34.63),
    "SUNDAE stochastic 16/4": (32.10, 27.94),
    "SUNDAE stochastic 16/10": (32.29, 28.33),
    FOUR: (34.17, 29.49, 34.55, 29.57, 27.18, 32.59),
    TEN: (34.33, 29.48, 34.57, 29.56, 27.25, 32.60),
}
BLEURT = {  # B3
    AR: (73.55, 74.97, 67.23, 71.76, 68.14, 65.71),
    FOUR: (71.26, 72.08, 65.90, 70.23, 65.16, 63.95),
    TEN: (71.82, 73.28, 66.09, 70.49, 66.19, 64.30),
}
CLASSES = ("stutter", "not stutter")
SELF = {  # B4: value and standard deviation, of stutter and of other neighbours
    "min": ((0.0004, 0.0007), (0.0005, 0.0007)),
    "avg": ((0.032, 0.023), (0.033, 0.025)),
    "max": ((0.16, 0.11), (0.17, 0.12)),
    "top-1": ((0.20, None), (0.17, None)),
    "top-2": ((0.39, None), (0.37, None)),
}
CROSS = {  # B5
    "TV min": ((0.06, 0.05), (0.11, 0.10)),
    "TV avg": ((0.13, 0.09), (0.23, 0.14)),
    "TV max": ((0.23, 0.15), (0.35, 0.18)),
    "cosine min": ((0.01, 0.01), (0.04, 0.08)),
    "cosine avg": ((0.10, 0.06), (0.20, 0.11)),
    "cosine max": ((0.25, 0.11), (0.38, 0.12)),
    "overlap k=1": ((0.57, None), (0.40, None)),
    "overlap k=2": ((0.89, None), (0.81, None)),
}


def rows() -> Iterator[dict[str, Any]]:
    """Yield rows of `schemas.parallel.translation.Published`."""
    scores = (("B1", SACREBLEU, "SacreBLEU", "4.1"), ("B2", BLEU, "BLEU", "4.2"), ("B3", BLEURT, "BLEURT", "4.3"))
    for table, cells, unit, number in scores:
        for row, values in cells.items():
            for col, value in zip(DIRECTIONS, values, strict=False):
                about = {"table": table, "row": row, "col": col, "unit": unit, "source_ref": f"Li 2025, Table {number}"}
                yield about | {"value": value, "sd": None}
    for table, attention, number in (("B4", SELF, "4.4"), ("B5", CROSS, "4.5")):
        for col, pair in attention.items():
            for row, (value, sd) in zip(CLASSES, pair, strict=True):
                unit = "share" if col.startswith(("top", "overlap")) else "attention or distance"
                about = {"table": table, "row": row, "col": col, "unit": unit, "source_ref": f"Li 2025, Table {number}"}
                yield about | {"value": value, "sd": sd}
