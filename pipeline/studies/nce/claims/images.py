"""Claim 15: with images, normalised gradients are faster (Figure 4.3, an ordering: no values are published)."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.conditions import above, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.nce.claims.common import SOURCE
from pipeline.studies.nce.comparisons import EVERY_SEED, FASTER, SETTINGS
from pipeline.studies.nce.names import DIGITS, IMAGE_NAMES, LOSS_NAMES
from schemas.claims import ANALOGUE, OWN, STATED
from schemas.nce.tables import AREA, EARLY, FINAL_TEST


def faster(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 15: NGD trains faster than GD, each at its best step size.

    The area under the training loss is smaller in most seeds and, as the loss early in training, on average. Whether
    the test loss is lower in the end, which is not claimed, has gates of its own. Small digits stand in for MNIST.
    """
    source = SOURCE.format("Figure 4.3")
    measures = (("mean area", AREA), ("early loss", EARLY), ("last test loss", FINAL_TEST))
    for setting in SETTINGS:
        dataset, noise, loss = setting
        where = f"{IMAGE_NAMES[dataset]}, {noise} noise, {LOSS_NAMES[loss]}"
        stated = ANALOGUE if dataset == DIGITS else STATED
        yield evidence.gate(context, "15", f"{where}: area", EVERY_SEED[setting], above(0.5), source, kind=stated)
        for name, quantity in measures:
            comparison, kind = FASTER[*setting, quantity], OWN if quantity == FINAL_TEST else stated
            yield evidence.gate(context, "15", f"{where}: {name}", comparison, below(0), source, kind=kind)
