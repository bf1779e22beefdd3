"""E7: HMMs that no predictor of one token tells apart, and what predictors of two tell (chapter 5.6 to 5.9)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import hmm
from pipeline.languages.hmm import Floats
from pipeline.models.masked_prediction import identifiability
from pipeline.studies.selfsup.measures import models
from pipeline.studies.selfsup.names import MEANS, PLAYED, POPULATION, PUBLISHED, RANKS, TWINS
from schemas.selfsup.hmm import CIRCULANT, FREE, HMM, ONE, OTHER, PRINTED, ROTATED, UNIT, O, T

Model = tuple[Floats, Floats]  # O and T
Pair = tuple[str, str, str, Model, Model]
CORNERS = np.array([[0.0, 1.0, 0.5], [0.0, 0.0, np.sqrt(0.75)]])  # of the triangle of three hidden states


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return all tables of the experiment."""
    settings = context.entry
    turned = models.read(context.dataset(PUBLISHED)) | models.read(context.dataset(TWINS))
    turned.pop("published-1")
    drawn = {name: turned[name] for name in list(turned)[: 1 + settings.paths]}
    return {
        "hmm_equivalence": pl.DataFrame([row for pair in pairs(context) for row in apart(*pair)]),
        "hmm_matrices": pl.concat([shown(*pair) for pair in list(pairs(context))[:2]]),
        "hmm_turns": pl.DataFrame([row for name in turned for row in along(name, turned[name], settings.angles)]),
        "hmm_paths": pl.concat([path(name, model, settings.angles) for name, model in drawn.items()]),
        "hmm_power": pl.DataFrame([power(a, t) for a in settings.stays for t in range(2, settings.highest + 1)]),
        "hmm_jacobian": pl.DataFrame(list(ranks(context))),
        "hmm_explorer": played(context),
    }


def pairs(context: Inputs) -> Iterator[Pair]:
    """Yield family, ids and parameters of every pair: the published one, exact twins, cycles with one power."""
    (first, one), (second, two) = models.read(context.dataset(PUBLISHED)).items()
    yield PRINTED, first, second, one, two
    for name, model in models.read(context.dataset(TWINS)).items():
        theta = context.entry.share * hmm.widest_turn(*model)
        yield ROTATED, name, f"{name}-turned", model, hmm.twin(*model, hmm.rotation(theta))
    population = models.read(context.dataset(POPULATION))
    name = next(name for name, (emission, _) in population.items() if emission.shape[1] == 3)
    emission = population[name][0]
    for t in context.entry.powers:
        cycle, turned = hmm.lazy_cycle(0.5), hmm.turned_cycle(0.5, t)[1]
        yield CIRCULANT, f"{name}-cycle", f"{name}-cycle-turned-{t}", (emission, cycle), (emission, turned)


def apart(family: str, one: str, two: str, first: Model, second: Model) -> Iterator[dict[str, Any]]:
    """Yield rows of ``hmm_equivalence`` of a pair, one for each task.

    Of cycles whose t-th powers agree the task of that gap is among them (Theorem 4 for t > 2).
    """
    dist_o, dist_t = hmm.distance(*first, *second)
    tasks = [*hmm.PAIR_TASKS, *hmm.TRIPLE_TASKS]
    if family == CIRCULANT:
        far = f"x{int(two.rsplit('-', 1)[1]) + 1}|x1"
        tasks += [far] if far not in tasks else []
    for task in tasks:
        difference = hmm.predictor(*first, task) - hmm.predictor(*second, task)
        yield {
            "family": family,
            "instance_a": one,
            "instance_b": two,
            "task": task,
            "tokens": 2 if task in hmm.TRIPLE_TASKS else 1,
            "max_abs_diff": np.abs(difference).max(),
            "fro_diff": np.linalg.norm(difference),
            "dist_O": float(dist_o),
            "dist_T": float(dist_t),
        }


def shown(family: str, one: str, two: str, first: Model, second: Model) -> pl.DataFrame:
    """Return rows of ``hmm_matrices`` of a pair, the twin under the relabelling that is best for O."""
    orders = np.array(list(itertools.permutations(range(first[0].shape[1]))))
    best = min(orders, key=lambda order: float(np.linalg.norm(first[0] - second[0][:, order])))
    moved = second[0][:, best], second[1][np.ix_(best, best)]
    frames = []
    for model, matrices in ((ONE, first), (OTHER, moved)):
        for letter, matrix in zip((O, T), matrices, strict=True):
            rows, columns = np.indices(matrix.shape)
            names = {"pair": one, "model": model, "matrix": letter}
            entries = {"row": rows.ravel(), "col": columns.ravel(), "value": matrix.ravel()}
            frames.append(pl.DataFrame(names | entries))
    return pl.concat(frames)


def along(name: str, model: Model, angles: int) -> Iterator[dict[str, Any]]:
    """Yield rows of ``hmm_turns``: a model turned by angles from 0 to a third of a turn, where it is relabelled."""
    widest = hmm.widest_turn(*model)
    for theta in np.linspace(0, 2 * np.pi / 3, angles):
        other = hmm.twin(*model, hmm.rotation(theta))
        far = {
            task: np.abs(hmm.predictor(*model, task) - hmm.predictor(*other, task)).max()
            for task in (*hmm.PAIR_TASKS, *hmm.TRIPLE_TASKS)
        }
        dist_o, dist_t = hmm.distance(*model, *other)
        yield {
            "instance_id": name,
            "theta": theta,
            "widest": widest,
            "min_entry": min(part.min() for part in other),
            "pair_diff": max(far[task] for task in hmm.PAIR_TASKS),
            "triple_diff": min(far[task] for task in hmm.TRIPLE_TASKS),
            "dist_O": float(dist_o),
            "dist_T": float(dist_t),
        }


def path(name: str, model: Model, angles: int) -> pl.DataFrame:
    """Return rows of ``hmm_paths``: the posterior of each symbol along a whole turn."""
    theta = np.linspace(0, 2 * np.pi, 3 * angles - 2)
    emission, transition = hmm.twin(*model, hmm.rotation(theta))
    places = CORNERS @ hmm.posterior(emission)  # (angles, 2, d)
    valid = np.minimum(emission.min((1, 2)), transition.min((1, 2))) >= 0
    d = emission.shape[1]
    return pl.DataFrame(
        {
            "instance_id": name,
            "theta": np.repeat(theta, d),
            "symbol": np.tile(np.arange(1, d + 1), len(theta)),
            "u": places[:, 0].ravel(),
            "v": places[:, 1].ravel(),
            "valid": np.repeat(valid, d),
        }
    )


def power(stay: float, t: int) -> dict[str, Any]:
    """Return a row of ``hmm_power``."""
    cycle = hmm.lazy_cycle(stay)
    turn, turned = hmm.turned_cycle(stay, t)
    theta = 2 * np.pi / t
    first = np.array([1 + np.cos(theta + np.pi / 3), 1 - np.cos(theta), 1 + np.cos(theta - np.pi / 3)]) / 3
    return {
        "a": stay,
        "t": t,
        "min_entry": turned.min(),
        "max_power_diff": np.abs(np.linalg.matrix_power(turned, t) - np.linalg.matrix_power(cycle, t)).max(),
        "commutator": np.abs(turn @ cycle - cycle @ turn).max(),
        "dist_T": np.abs(turned - cycle).max(),
        "dist_T_relabel": hmm.relabelled_distance(cycle, turned),
        "closed_form_err": np.abs(turned[0] - first).max() if stay == 0.5 else None,
    }


def ranks(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield rows of ``hmm_jacobian``: HMMs of five shapes and the published one, under each task; G-HMMs."""
    printed = models.read(context.dataset(PUBLISHED))
    discrete = models.read(context.dataset(RANKS)) | {"published-0": printed["published-0"]}
    for name, model in discrete.items():
        d, k = model[0].shape
        for task in identifiability.TASKS:
            found = identifiability.hmm_rank(*model, task)
            yield _rank(name, HMM, task, (d, k), found, identifiability.hmm_deficit(k, task))
    for name, (means, transition) in models.read(context.dataset(MEANS)).items():
        rng = stream(context.seed, context.study, context.experiment, "points", name)
        points = 2 * rng.standard_normal((len(means), context.entry.points))
        for space, known in ((UNIT, True), (FREE, False)):
            found = identifiability.gaussian_rank(means, transition, points, known_norms=known)
            yield _rank(name, space, identifiability.PAIR, means.shape, found, 0)


def _rank(
    name: str, space: str, task: str, shape: tuple[int, ...], found: identifiability.Rank, predicted: int
) -> dict[str, Any]:
    return {
        "instance_id": name,
        "model": space,
        "task": task,
        "d": shape[0],
        "k": shape[1],
        "n_param": found.parameters,
        "rank": found.rank,
        "deficit": found.deficit,
        "predicted": predicted,
        "s_ratio": found.seen,
        "s_next": found.unseen,
    }


def played(context: Inputs) -> pl.DataFrame:
    """Return ``hmm_explorer``: the models that the page turns."""
    frame = context.dataset(PLAYED).filter(pl.col("matrix").is_in([O, T]))
    return frame.select("instance_id", "matrix", "row", "col", "value")
