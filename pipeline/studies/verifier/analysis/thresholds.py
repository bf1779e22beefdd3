"""What a lower threshold gains, for two numbers of test cases in a prompt (Li 2025, Table 3.10, on the stand-in).

The source explains its gain by the quota: a high threshold uses it up long before a completion ends. So the gain should
grow with the number of cases.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.analysis.cases import Experiment
from pipeline.studies.verifier.names import CASE_MODELS, CASE_MODELS_TWICE, CASES, CASES_TWICE

ARM = ("top_p", "temperature", "threshold")


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return the accuracy of Algorithm 1 at both thresholds, for each number of cases, and what the lower one gains."""
    found = Measurements(context)
    if CASE_MODELS_TWICE not in context.runs():
        found.not_run(declared.CAREFUL_TWICE)
        found.not_run(declared.CAREFUL_GROWS)
        return {"code_thresholds": None, "comparisons": found.table()}
    gains, frames = [], []
    for run, dataset in ((CASE_MODELS, CASES), (CASE_MODELS_TWICE, CASES_TWICE)):
        with one_thread():
            experiment = Experiment(context, run, dataset)
            experiment.train([(experiment.last, 1, False)])
            arms = [
                experiment.ours(setting, threshold)
                for setting in context.entry.settings
                for threshold in context.entry.thresholds
            ]
            experiment.decode([(arm, context.entry.runs_compared) for arm in arms])
        means = experiment.means(ARM)
        frames.append(means.select(pl.lit(experiment.models.cases).alias("cases"), pl.all()))
        gains.append(_gains(means, *context.entry.thresholds))
    found.add(declared.CAREFUL_TWICE, gains[1])
    found.add(declared.CAREFUL_GROWS, gains[1], gains[0])
    return {"code_thresholds": pl.concat(frames), "comparisons": found.table()}


def _gains(means: pl.DataFrame, low: float, high: float) -> np.ndarray:
    """Return (R,) what the lower threshold gains, the mean over settings."""
    by = means.pivot("threshold", index=["replica", "top_p", "temperature"], values="accuracy")
    gain = by.with_columns(gain=pl.col(str(low)) - pl.col(str(high)))
    return gain.group_by("replica").agg(pl.mean("gain")).sort("replica")["gain"].to_numpy()
