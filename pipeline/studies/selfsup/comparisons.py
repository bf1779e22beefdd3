"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`)."""

from __future__ import annotations

from pipeline.kit.comparisons import MEAN, Arm, Comparison, Declared
from pipeline.studies.selfsup.names import ACCURACY, LABELS

DECLARED = Declared()

# Whether models learn their task is the question, so that all of them count.
LEARNS = {
    run: DECLARED(
        Comparison(
            f"accuracy of {run}", "share of next tokens that are predicted", MEAN, ACCURACY, (Arm(label, run),),
            learned=False, span=(0.0, 1.0),
        )
    )
    for run, label in LABELS.items()
}  # fmt: skip
