"""What the experiments on Dyck strings begin with: models, strings, mistakes, and verifiers trained on these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from pipeline.models.llama import verifiers
from pipeline.studies.verifier.datasets import padded
from pipeline.studies.verifier.measures import classifiers
from pipeline.studies.verifier.measures.generation import Models, states
from pipeline.studies.verifier.measures.models import averaged
from pipeline.studies.verifier.names import CORRECT, DYCK, ERROR, MISTAKES

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from pipeline.kit.inputs import Inputs

Strings = tuple["NDArray[np.int64]", "NDArray[np.int64]"]  # tokens (N, T), lengths (N,)


def language_models(context: Inputs) -> Models:
    """Return the language models of Dyck strings, with the moving average of their weights."""
    model = context.model(DYCK)
    brackets = int(context.run_header(DYCK)["entry"]["brackets"])
    return Models(model.spec, averaged(model.spec, model.params), brackets)


def strings(context: Inputs, dataset: str, name: str, width: int, replica: int = -1) -> Strings:
    """Return the strings of a set of a model, filled up to ``width``."""
    return padded(context.dataset(dataset).filter(set=name, replica=replica)["tokens"], width)


def samples(
    context: Inputs, models: Models, replica: int, sets: tuple[str, str] = (ERROR, CORRECT)
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return mistaken strings of a model and strings of the grammar: tokens, lengths, and which are right."""
    parts = [strings(context, MISTAKES, name, models.limit, replica) for name in sets]
    right = np.repeat([False, True], [len(lengths) for _, lengths in parts])
    return np.concatenate([t for t, _ in parts]), np.concatenate([n for _, n in parts]), right


def fitted(
    context: Inputs, models: Models, replica: int, splits: int | None = None
) -> tuple[classifiers.Fitted, Tensor]:
    """Return verifiers of the last state of a model, one for each split, and the states they were trained on."""
    tokens, lengths, right = samples(context, models, replica)
    features = states(models.one(replica), models.spec.layers, tokens, lengths)[0]
    names = (context.study, "verifier", MISTAKES, replica)
    settings = context.settings.verifier
    if splits is not None:
        settings = settings.model_copy(update={"splits": splits})
    return classifiers.fit(settings, features, right, names, context.seed), features


def trained(context: Inputs, models: Models) -> verifiers.Trained:
    """Return the verifier of the first split of every model, as one for all models."""
    own = [fitted(context, models, replica, 1)[0].weights for replica in range(models.count)]
    layers = [
        (torch.stack([weights[n][0][0] for weights in own]), torch.stack([weights[n][1][0] for weights in own]))
        for n in range(len(own[0]))
    ]
    return verifiers.Trained(models.spec.layers, layers)


def lengths_learned_from(context: Inputs, models: Models) -> NDArray[np.int64]:
    """Return (R, T + 1) of how many mistakes of each length the verifier of each model learned. As many right strings
    of the grammar are cut to each length."""
    found = [strings(context, MISTAKES, ERROR, models.limit, replica)[1] for replica in range(models.count)]
    return np.array([np.bincount(lengths, minlength=models.limit + 1) for lengths in found])


def of_model(verifier: verifiers.Trained, replica: int) -> verifiers.Trained:
    """Return the verifier of one model."""
    part = slice(replica, replica + 1)
    return verifiers.Trained(verifier.layer, [(W[part], b[part]) for W, b in verifier.weights])
