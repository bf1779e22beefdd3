"""Claims 26 and 27: training in two stages."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import at_least, at_most, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.topic.claims.common import SECTION, contrast
from pipeline.studies.topic.names import STAGES_A, STAGES_B, STAGES_C, STAGES_N
from schemas.claims import OWN

FIGURE = SECTION.format("2.1.6.1, Figure 2.4")
SETTINGS = (("A", STAGES_A, "0.003"), ("B", STAGES_B, "0.001"), ("C", STAGES_C, "5"), ("D", STAGES_C, "3"))


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    behind = "share of their growth that values have behind them where keys have a tenth of theirs"
    for name, run, rate in SETTINGS:
        measurement = contrast(context, f"fv_at_sk10, least {run} {rate}")
        yield Gate(
            "26", f"setting {name}", f"{behind}, lowest of the seeds", FIGURE, at_least(0.35), *measurement
        )
    yield Gate(
        "26",
        "negative control",
        f"{behind}, with common settings, highest of the seeds",
        FIGURE,
        below(0.35),
        *contrast(context, f"fv_at_sk10, largest {STAGES_N} 0.01"),
        kind=OWN,
    )
    yield Gate(
        "26",
        "setting A, keys at step 400",
        "norm of keys over their largest, highest of the seeds",
        FIGURE,
        at_most(0.1),
        *contrast(context, f"k_frac_400, largest {STAGES_A} 0.003"),
    )
    yield Gate(
        "26",
        "setting A, values at step 400",
        "norm of values over their largest, lowest of the seeds",
        FIGURE,
        at_least(0.75),
        *contrast(context, f"v_frac_400, least {STAGES_A} 0.003"),
    )
