"""What Algorithm 1 gains on test cases of the stand-in's settings 1 and 2, which were tried before setting 3.

Setting 3 was chosen with results on setting 2 in view; the chapter wants all of them side by side.
"""

from __future__ import annotations

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.verifier.analysis.cases import Experiment
from pipeline.studies.verifier.names import OTHER_SETTINGS

ARM = ["top_p", "temperature", "verifier", "threshold"]


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return the accuracy of the compared decoders for every setting that has models at this scale."""
    frames = []
    for setting, (run, dataset) in OTHER_SETTINGS.items():
        if run not in context.runs():
            continue
        with one_thread():
            experiment = Experiment(context, run, dataset)
            experiment.choose()
            experiment.train([(experiment.last, 1, False)])
            experiment.decode(list(experiment.compared()))
        means = experiment.means(ARM)
        top_p, temperature = experiment.best
        chosen = (pl.col("top_p") == top_p) & (pl.col("temperature") == temperature)
        frames.append(means.select(pl.lit(setting).alias("setting"), pl.all(), chosen.alias("chosen")))
    return {"code_robustness": pl.concat(frames) if frames else None}
