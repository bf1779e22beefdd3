"""Numbers of Tables 2.3 to 2.5 (Li 2025, section 2.1.5.4 and 2.1.6.2), of models and texts that nobody measured here.

They stand in a table of their own: none of our models is one of these, so no row of ours lies among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

THRESHOLDS = (0.0005, 0.001, 0.002)
MEASURES = ("cosine", "dot product", "attention")

# Model -> for each threshold the ratios of cosines, dot products and attention.
RATIOS = {
    "Table 2.3": {
        "Bert": ((1.21, 1.19, 1.32), (1.13, 1.15, 1.28), (1.11, 1.13, 1.22)),
        "Albert": ((5.64, 6.29, 1.33), (4.18, 3.74, 1.28), (3.24, 2.93, 1.22)),
        "Bart": ((2.80, 2.67, 1.35), (1.95, 1.92, 1.31), (1.63, 1.62, 1.23)),
        "Electra": ((5.98, 5.37, 2.14), (7.70, 7.35, 2.09), (7.46, 8.08, 1.95)),
        "Roberta": ((6.44, 6.81, 1.40), (5.73, 6.31, 1.31), (5.24, 5.30, 1.22)),
        "Bert, random": ((1.00080, 1.00063, 0.99943), (0.99974, 1.00036, 0.99996), (1.00016, 1.00027, 1.00007)),
    },
    "Table 2.4": {
        "Bert": ((1.14, 1.04, 1.23), (0.97, 1.05, 1.17), (0.99, 0.93, 1.13)),
        "Albert": ((4.15, 3.06, 1.23), (3.09, 3.04, 1.17), (1.54, 1.44, 1.11)),
        "Bart": ((2.51, 1.76, 1.27), (1.63, 1.12, 1.20), (1.06, 0.85, 1.11)),
        "Electra": ((5.28, 3.99, 1.70), (5.56, 5.57, 1.58), (6.39, 5.61, 1.48)),
        "Roberta": ((4.39, 5.01, 1.19), (5.20, 4.25, 1.15), (4.71, 4.15, 1.12)),
        "Bert, random": ((0.99814, 0.99957, 1.00009), (0.99820, 1.00167, 1.00013), (0.99964, 0.99928, 0.99978)),
    },
}

# Pairs -> attention and cosine of same-topic pairs, and of as many of the most frequent companions (Bert).
PAIRS = {
    105: (0.00659, 0.468, 0.00751, 0.316),
    435: (0.00621, 0.461, 0.00695, 0.311),
    1711: (0.00597, 0.425, 0.00677, 0.323),
}
GROUPS, PRINTED = ("same_topic", "top_cooccur"), ("attention", "cosine")


def rows() -> Iterator[dict[str, Any]]:
    """Yield a row of table ``published_kinship`` for every number."""
    for item, models in RATIOS.items():
        for model, by_threshold in models.items():
            for threshold, ratios in zip(THRESHOLDS, by_threshold, strict=True):
                for measure, value in zip(MEASURES, ratios, strict=True):
                    yield {
                        "item": item,
                        "model": model,
                        "threshold": threshold,
                        "n_pairs": None,
                        "group": "ratio",
                        "measure": measure,
                        "value": value,
                    }
    for (many, values), threshold in zip(PAIRS.items(), THRESHOLDS, strict=True):
        cells = zip(((group, measure) for group in GROUPS for measure in PRINTED), values, strict=True)
        for (group, measure), value in cells:
            yield {
                "item": "Table 2.5",
                "model": "Bert",
                "threshold": threshold,
                "n_pairs": many,
                "group": group,
                "measure": measure,
                "value": value,
            }
