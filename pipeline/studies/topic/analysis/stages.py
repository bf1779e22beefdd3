"""E6: which norms grow first from weights near zero (figure 2.4)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit import comparisons
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.measures import models, stages
from pipeline.studies.topic.measures.models import Group, Row

MATRICES = {"norm_k": "attn.W_K", "norm_q": "attn.W_Q", "norm_v": "attn.W_V"}
SPLIT = 400  # step between the published stages
LAG = 10  # steps over which values turn
KEPT = 5  # one step in so many is in the table of norms; the measures read every step


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the experiment."""
    with one_thread():
        groups = list(models.groups(context))
        courses = [_norms(context, group) for group in groups]
        norms = [frame.filter(pl.col("step") % KEPT == 0) for course in courses for frame in course]
        metrics = [row for group, course in zip(groups, courses, strict=True) for row in _metrics(group, course)]
        made = {
            "configs": models.configs(context, groups),
            "stage_metrics": metrics,
            "value_turns": [row for group in groups for row in _turns(context, group)],
        }
        found = _compared(context, groups, metrics)
    tables = {name: [pl.DataFrame(rows, infer_schema_length=None)] if rows else [] for name, rows in made.items()}
    return tables | {"norms": norms, "comparisons": [found]}


def _norms(context: Inputs, group: Group) -> list[pl.DataFrame]:
    """Return the norms after each step, step 0 among them, a frame for each seed."""
    curves = context.curves(group.run)
    frames = []
    for place, (seed, number) in enumerate(zip(group.seeds, group.places, strict=True)):
        start = {name: float(group.start[matrix][place].norm()) for name, matrix in MATRICES.items()}
        first = pl.DataFrame({"step": [0]} | {name: [value] for name, value in start.items()})
        rest = curves.filter(replica=number).select("step", *MATRICES)
        frame = pl.concat([first, rest], how="vertical_relaxed")
        frames.append(frame.with_columns(replica=pl.lit(seed), **{k: pl.lit(v) for k, v in group.keys.items()}))
    return frames


def _metrics(group: Group, course: list[pl.DataFrame]) -> list[Row]:
    rows = []
    for frame, seed in zip(course, group.seeds, strict=True):
        grown = {}
        for name in MATRICES:
            values = frame[name].to_numpy().astype(float)
            grown[name] = stages.growth(values[1:], values[0])
        onsets = {name: stages.onset(each, stages.ONSET) for name, each in grown.items()}
        at = onsets["norm_k"]
        here = frame.height > SPLIT
        shares = {
            name: float(frame[name][SPLIT] / frame[name].max()) if here else None for name in ("norm_k", "norm_v")
        }
        rows.append(
            group.keys
            | {
                "replica": seed,
                "s_v10": onsets["norm_v"],
                "s_k10": at,
                "s_q10": onsets["norm_q"],
                "fv_at_sk10": None if at is None else float(np.clip(grown["norm_v"][at - 1], 0.0, 1.0)),
                "k_frac_400": shares["norm_k"],
                "v_frac_400": shares["norm_v"],
            }
        )
    return rows


def _turns(context: Inputs, group: Group) -> list[Row]:
    """Return how far values turn over ten steps, where weights of both ends were kept."""
    ensemble = context.model(group.run)
    kept = group.entry["snapshots"]
    rows = []
    for step in [step for step in kept if step - LAG in kept and step > LAG]:
        for seed, number in zip(group.seeds, group.places, strict=True):
            ends = (ensemble.params[f"step{at}.attn.W_V"][number] for at in (step - LAG, step))
            rows.append(group.keys | {"replica": seed, "step": step, "cosdist_v_lag10": stages.turned(*ends)})
    return rows


def _compared(context: Inputs, groups: list[Group], metrics: list[Row]) -> pl.DataFrame:
    """Return the table of the comparisons that the experiment declares."""
    found = comparisons.Measurements(context)
    by = {(group.run, group.lr): group for group in groups}
    asked = [(*key, "fv_at_sk10", comparison) for key, comparison in declared.BEHIND.items()]
    asked += [(*declared.SETTINGS["A"], name, comparison) for name, comparison in declared.AT_400.items()]
    for run, rate, name, comparison in asked:
        own = [row[name] for row in metrics if (row["run"], row["lr"]) == (run, rate)]
        models.measure(found, comparison, by.get((run, rate)), np.array(own, float))  # null: NaN
    return found.table()
