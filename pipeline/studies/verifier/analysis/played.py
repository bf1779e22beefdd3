"""What the page needs to play Algorithm 1: a tiny language model, a linear verifier of its states, and prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import one_thread
from pipeline.models.llama import decoder
from pipeline.studies.verifier.measures import classifiers, material
from pipeline.studies.verifier.measures.generation import Models, states
from pipeline.studies.verifier.measures.models import averaged
from pipeline.studies.verifier.names import CORRECT, ERROR, HELD_ERROR, STRINGS, TINY, TINY_MISTAKES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pipeline.kit.inputs import Inputs

MODEL, VERIFIER, SETTING, UNSEEN, INDUCING = "model", "verifier", "setting", "unseen", "inducing"


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the weights of the model and of its verifier, the settings that the page begins with, and prompts."""
    entry, found = context.entry, context.model(TINY)
    models = Models(found.spec, averaged(found.spec, found.params), int(context.run_header(TINY)["entry"]["brackets"]))
    with one_thread():
        fit = _verifier(context, models)
    parts = {name: models.params[name][0].numpy() for name in decoder.shapes(models.spec)}
    (weights, biases), threshold = fit.weights[0], context.settings.verifier.threshold
    rows = [_row(MODEL, name, values) for name, values in parts.items()]
    rows += [_row(VERIFIER, "W", weights[0].numpy()), _row(VERIFIER, "b", biases[0].numpy())]
    settings = {
        "layers": models.spec.layers,
        "heads": models.spec.heads,
        "brackets": models.brackets,
        "top_p": entry.top_p,
        "quota": entry.quota,
        "stride": entry.stride,
        "threshold": threshold,
        "validation": fit.validation[0],
    }
    rows += [_row(SETTING, name, [value]) for name, value in settings.items()]
    for kind, prompts in ((UNSEEN, _prompts(context, STRINGS, UNSEEN, -1, 0)), (INDUCING, _inducing(context))):
        rows += [_row(kind, str(n), prompt) for n, prompt in zip(range(entry.prompts), prompts, strict=False)]
    return {"played": pl.DataFrame(rows)}


def _verifier(context: Inputs, models: Models) -> classifiers.Fitted:
    """Train a verifier on what the model gets wrong, as those of the other models."""
    parts = [material.strings(context, TINY_MISTAKES, name, models.limit, 0) for name in (ERROR, CORRECT)]
    tokens, lengths = (np.concatenate([part[n] for part in parts]) for n in range(2))
    right = np.repeat([False, True], [len(own) for _, own in parts])
    features = states(models, models.spec.layers, tokens, lengths)[0]
    settings = context.settings.verifier.model_copy(update={"splits": 1})
    return classifiers.fit(settings, features, right, (context.study, "verifier", TINY_MISTAKES), context.seed)


def _inducing(context: Inputs) -> Iterator[list[int]]:
    """Yield further mistakes of the model without their wrong last sign."""
    return _prompts(context, TINY_MISTAKES, HELD_ERROR, 0, 1)


def _prompts(context: Inputs, dataset: str, name: str, replica: int, dropped: int) -> Iterator[list[int]]:
    for tokens in context.dataset(dataset).filter(set=name, replica=replica)["tokens"].to_list():
        yield tokens[: len(tokens) - dropped]


def _row(kind: str, part: str, array: ArrayLike) -> dict[str, Any]:
    values = np.asarray(array, float)
    # Nine digits tell any two float32 apart.
    return {
        "kind": kind,
        "part": part,
        "shape": list(values.shape),
        "values": [float(f"{value:.9g}") for value in values.ravel()],
    }
