"""Why trained Transformers err: where the last layer looks at wrong answers and at right ones (not in the source)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import torch

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.comparisons import OUT
from pipeline.studies.flipflop.measures import interventions, reading
from pipeline.studies.flipflop.measures.reading import Config, Floats, Row
from pipeline.studies.flipflop.names import BASE, PLAIN

MOST = {"sparse": 1000, "dense": 400}  # sequences of each set that are searched
MODELS = 50  # of a run that are taken apart
ENTRIES = 2**27  # of attention weights at once


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return what is found at the wrong and at the right answers of each model on each set, and comparisons."""
    rows: list[Row] = []
    with one_thread():
        for config in reading.configs(context).values():
            if config.entry["symbols"] == 2 and config.entry["position"] in PLAIN:
                rows += _taken_apart(context, config)
    table = pl.DataFrame(rows, infer_schema_length=None)
    return {"autopsy": table, "comparisons": _compared(context, table)}


def _taken_apart(context: Inputs, config: Config) -> Iterator[Row]:
    """Yield a row for each model and set; what there is no answer of is null."""
    sets, replicas = reading.held(context, config), config.replicas[:MODELS]
    own = reading.own_error(context, config, lambda tokens: config.answers(tokens)[0] != language.reads(tokens).target)
    good = reading.learned(own, context.settings)
    params = {name: value[replicas] for name, value in config.ensemble.params.items() if not name.startswith("step")}
    each = len(replicas) * config.entry["heads"] * config.entry["length"] ** 2
    for name in OUT:
        tokens = sets[name][: MOST[name]]
        with torch.inference_mode():
            parts = [
                interventions.seen(config.ensemble.spec, params, part)
                for part in np.array_split(tokens, -(-len(tokens) * each // ENTRIES))
            ]
        wrong, patched, votes, on_write = (
            np.concatenate([getattr(part, field) for part in parts], 1)
            for field in ("wrong", "patched_wrong", "votes", "on_write")
        )
        for i, replica in enumerate(replicas):
            at = wrong[i]
            yield {
                "run": config.name,
                "replica": replica,
                "set": name,
                "learned": bool(good[i]),
                "n_wrong": int(at.sum()),
                "n_right": int((~at).sum()),
                "mended": _mean(~patched[i][at]),
                "kept": _mean(~patched[i][~at]),
                "votes_wrong": _mean(votes[i][at]),
                "votes_right": _mean(votes[i][~at]),
                "on_write_wrong": _mean(on_write[i][at]),
                "on_write_right": _mean(on_write[i][~at]),
            }


def _mean(values: Floats | reading.Bools) -> float | None:
    return float(values.mean()) if len(values) else None


def _compared(context: Inputs, table: pl.DataFrame) -> pl.DataFrame:
    """Compare models of the baseline that learned and err, each by its means over answers."""
    found = Measurements(context, reading.UNTRAINED)
    for name in OUT:
        every = table.filter(run=BASE, set=name)
        rows = every.filter("learned", pl.col("n_wrong") > 0, pl.col("n_right") > 0)
        for comparison, *columns in (
            (comparisons.MENDED[name], "mended"),
            (comparisons.KEPT[name], "kept"),
            (comparisons.VOTES[name], "votes_wrong", "votes_right"),
            (comparisons.ON_WRITE[name], "on_write_wrong", "on_write_right"),
        ):
            samples = [rows[column].to_numpy() for column in columns]
            lost = every.height - rows.height
            found.add(comparison, *samples, excluded=lost, reason="the model did not learn, or makes no error")
    return found.table()
