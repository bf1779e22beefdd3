"""Beyond the source: how many triples tell an exact twin from a model, as a function of the angle between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import hmm
from pipeline.languages.hmm import Floats
from pipeline.studies.selfsup.comparisons import DETECTION_FALLS, ENDS, LEVEL, NEIGHBOURS, PAIRS_TOLD, POWER_APART
from pipeline.studies.selfsup.measures import models, slopes
from pipeline.studies.selfsup.measures.detection import Pearson, Ratio, Test, chi_squared, information
from pipeline.studies.selfsup.names import TWINS
from schemas.selfsup.hmm import PEARSON, RATIO, TESTS

MAKE: dict[str, Callable[[Floats, Floats, float], Test]] = {RATIO: Ratio, PEARSON: Pearson}


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return tables ``hmm_detection``, ``hmm_slopes`` and ``comparisons``."""
    settings = context.entry
    drawn = list(models.read(context.dataset(TWINS)).items())[: settings.instances]
    table = pl.DataFrame([row for name, model in drawn for row in told(context, name, model)])
    found, lines = Measurements(context), []
    for test in TESTS:
        own = table.filter(test=test)
        small = own.filter(pl.col("share") <= settings.fitted)
        line, each = slopes.fitted(small, "needed", against="share", group=test)
        lines.append(line)
        found.add(DETECTION_FALLS[test], each)
        by_model = own.group_by("instance_id", maintain_order=True).agg(
            (pl.col("power") - pl.col("expected")).mean().alias("apart"), pl.col("level", "pairs", "ends").mean()
        )
        found.add(POWER_APART[test], by_model["apart"].to_numpy())
        found.add(LEVEL[test], by_model["level"].to_numpy())
        found.add(PAIRS_TOLD[test, NEIGHBOURS], by_model["pairs"].to_numpy())
        found.add(PAIRS_TOLD[test, ENDS], by_model["ends"].to_numpy())
    return {"hmm_detection": table, "hmm_slopes": pl.DataFrame(lines), "comparisons": found.table()}


def told(context: Inputs, name: str, model: tuple[Floats, Floats]) -> Iterator[dict[str, Any]]:
    """Yield rows of ``hmm_detection`` of one model, for each angle and test."""
    settings = context.entry
    law, widest, curvature = hmm.joint(*model), hmm.widest_turn(*model), information(*model)
    for share in settings.shares:
        theta = share * widest
        other = hmm.joint(*hmm.twin(*model, hmm.rotation(theta)))
        for kind in TESTS:
            test = MAKE[kind](law, other, settings.alpha)
            needed = test.needed(settings.power)
            samples = int(np.ceil(needed))
            rng = stream(context.seed, context.study, context.experiment, name, f"{share:g}", kind)
            of_twin, of_model = (hmm.counts(rng, each, samples, settings.draws) for each in (other, law))
            yield {
                "instance_id": name,
                "theta": theta,
                "share": share,
                "test": kind,
                "chi2": chi_squared(other, law),
                "needed": needed,
                "law": test.near(settings.power, curvature * theta**2),
                "samples": samples,
                "draws": settings.draws,
                "expected": test.power(samples),
                "power": test.rejects(of_twin).mean(),
                "level": test.rejects(of_model).mean(),
                "pairs": Pearson(law.sum(2), other.sum(2), settings.alpha).rejects(of_twin.sum(3)).mean(),
                "ends": Pearson(law.sum(1), other.sum(1), settings.alpha).rejects(of_twin.sum(2)).mean(),
            }
