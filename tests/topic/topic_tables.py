"""Tables of comparisons in which every gate of the study holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

from pipeline.kit.comparisons import SHARE, Comparison, frame, not_run, row
from pipeline.kit.intervals import EXACT, Interval
from pipeline.store import tables
from pipeline.studies.topic import comparisons as declared
from schemas.topic.tables import SCHEMAS

BLOCKS = {"same_word": 0.00759, "same_topic_diff_word": 0.0108, "diff_topic": 0.00689}  # of every row, printed
DIAGONAL = {"same_word": 0.09, "same_topic_diff_word": 0.0018, "diff_topic": 0.0026}
LONG = [declared.EVEN[run, "sq"] for run in declared.LONG.values()]
RATIOS = {  # of stand-ins, by who is measured and what
    ("NLM-0", declared.DEBIASED): 1.0,
    ("NLM-0", declared.RAW): 1.05,
    ("NLM-0", declared.OUTPUT): 1.0,
    ("NLM-1", declared.DEBIASED): 4.0,
    ("NLM-2", declared.DEBIASED): 1.5,
    ("NLM-3", declared.DEBIASED): 1.2,
    ("NLM-3", declared.OUTPUT): 2.5,
}
HOLD: dict[Comparison, float] = {  # the value of each that is no share of models
    **dict.fromkeys(declared.EVEN.values(), 0.11),
    **dict.fromkeys(LONG, 0.75),
    **dict.fromkeys(declared.COLUMNS.values(), 0.95),
    declared.COLUMNS["topic-joint-adam", "ce"]: 0.2,
    **dict.fromkeys(declared.MOVED.values(), 5.0),
    **dict.fromkeys(declared.BLOCK_LEAD.values(), 9.0),
    **{each: 0.0055 if "uniform" in name else 0.0065 for name, each in declared.BLOCK_MEAN.items()},
    **{
        each: {"square": 16.0, "other": -0.2}[what] if run == declared.RELEASED_EXAMPLE else 100.0
        for (run, what), each in declared.EXAMPLE.items()
    },
    declared.INITIAL: 0.0006,
    **dict(zip(declared.DIAGONAL.values(), (2.0, 1.1, 1.1, 2.0), strict=True)),
    **dict.fromkeys(
        (*declared.FROZEN_COST.values(), *declared.PENALTY_COST.values(), *declared.ALONE_COST.values()), 0.01
    ),
    declared.SELF_MATCHED: 0.3,
    declared.THEOREM_SUMS["block_sum_same"]: 1.13,
    declared.THEOREM_SUMS["block_sum_diff"]: 0.0,
    **{each: -0.002 if name == "Adam, rate 0.03" else 0.002 for name, each in declared.CAPTION.items()},
    **dict.fromkeys(declared.RIGHT.values(), 0.0035),
    **{comparison: BLOCKS[kind] for (kind, _), comparison in declared.SHIFTED.items()},
    **{comparison: DIAGONAL[kind] for (kind, _), comparison in declared.SIZES.items()},
    **{
        comparison: 0.3 if kin.what == "difference" else RATIOS[kin.model, kin.measure]
        for kin, comparison in declared.KINSHIP.items()
    },
    **dict.fromkeys(declared.COMPANIONS.values(), 0.05),
    **{comparison: 1.0 if own.model == declared.RANDOM else 1.3 for own, comparison in declared.QUOTIENTS.items()},
    **dict.fromkeys(declared.FALLS.values(), -0.05),
    **{
        comparison: 0.05 if what == "cosine" else -0.002
        for (_, what, _), comparison in declared.OVER_COMPANIONS.items()
    },
}


def comparisons(
    found: Mapping[Comparison, Interval] = MappingProxyType({}), experiments: tuple[str, ...] = ()
) -> pl.DataFrame:
    """All comparisons as measured on ten models, with what was ``found``, else with what their gates ask for; those
    alone of ``experiments``, where these are named, and the others not run."""
    rows = []
    for each in declared.DECLARED:
        if experiments and each.experiment not in experiments:
            rows.append(not_run(each, 0.95))
            continue
        value = 1.0 if each.statistic == SHARE else HOLD[each]
        lo, hi = (0.7, 1.0) if each.statistic == SHARE else (value - 1e-6, value + 1e-6)
        rows.append(row(each, found.get(each, Interval(value, lo, hi, EXACT, 10, 6)), 0.95))
    return tables.conform([frame(rows)], SCHEMAS["comparisons"], scale="paper", params_hash="0" * 32)
