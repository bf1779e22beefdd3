"""Masked Transformers under several sets of masks, beside how fast block dynamics with these masks mix.

A model's law is the stationary law of block dynamics whose steps are the model's conditional laws: what it would
generate if it were sampled with the masks of its training. The support has 16 states, so that nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.languages import ising
from pipeline.languages.ising import Floats
from pipeline.models.ising import transformer
from pipeline.studies.parallel import comparisons
from pipeline.studies.parallel.comparisons import ALONE, CONSTANT, EVERY, ONLY_PAIRS, OVER_MODES, TRACE
from pipeline.studies.parallel.exact import chains, estimation, laws, modes, schemes
from pipeline.studies.parallel.names import MASKED, SCHEME_DRAWS
from pipeline.studies.parallel.scheme_runs import Sample, contexts, samples
from pipeline.training.jobs import snapshot_name
from schemas.parallel.datasets import RANDOM, TWO_PAIRS
from schemas.parallel.tables import ALIGNED, MISALIGNED

COLUMN = {CONSTANT: "C", OVER_MODES: "modes", TRACE: "tr_gamma", ALONE: "alone"}


def analyse(context: Inputs) -> dict[str, Any]:
    """Return the random laws as tables, ``par_scheme_model``, ``par_scheme`` and ``comparisons``."""
    drawn = context.dataset(SCHEME_DRAWS)
    exact: dict[tuple[str, str], _Exact] = {}
    rows: list[dict[str, Any]] = []
    for k, run in MASKED.items():
        chosen = [sample for sample, _ in samples(drawn, k)]
        ensemble = context.model(run)
        trained = conditionals(ensemble, ensemble.params, k)
        start = f"{snapshot_name(0)}."
        begun = {name: ensemble.params[start + name] for name in transformer.shapes(ensemble.spec)}
        untrained = conditionals(ensemble, begun, k)
        for sample, after, before in zip(chosen, trained, untrained, strict=True):
            place = sample.law, sample.scheme
            if place not in exact:
                exact[place] = _Exact(sample)
            rows.append(exact[place].row(sample, k, after, before))
    models = pl.DataFrame(rows, infer_schema_length=None)
    cells = _cells(models, list(exact.values()))
    found = Measurements(context)
    _compare(found, models.join(cells, on=["law", "scheme", "k", "n"]))
    drawn_laws = {each.sample.law: each.sample for each in exact.values() if each.sample.family == RANDOM}
    N = schemes.N
    listed = [laws.law_row(name, sample.theta, N, 0, sample.strength) for name, sample in drawn_laws.items()]
    states = [row for name, sample in drawn_laws.items() for row in laws.state_rows(name, sample.theta, N)]
    tables = {"par_dist": pl.DataFrame(listed), "par_state_prob": pl.DataFrame(states), "par_scheme_model": models}
    return tables | {"par_scheme": cells.drop("alone"), "comparisons": found.table()}


def conditionals(ensemble: transformer.Ensemble, params: dict[str, torch.Tensor], k: int) -> Floats:
    """Return (R, C, J) what each model says of the states that fit each context, in double precision."""
    states, _, _ = contexts(k)
    asked = torch.arange(len(states))[:, None] * ensemble.spec.outputs + torch.from_numpy(states)
    own = {name: params[name].double() for name in transformer.shapes(ensemble.spec)}
    replicas = len(own["head.W"])
    with torch.no_grad():
        logits, _ = transformer.forward(ensemble.spec, own, ensemble.table, asked.reshape(1, -1).expand(replicas, -1))
    found: Floats = logits.view(replicas, *states.shape).softmax(-1).numpy()
    return found


class _Exact:
    """A law under a set of masks: what is known of it, and how far a model is from it."""

    def __init__(self, sample: Sample) -> None:
        self.sample, self.p = sample, ising.law(sample.theta, schemes.N)
        scheme, phi = estimation.fixed(schemes.N, sample.masks), ising.statistics(schemes.N)
        self.relaxation, self.slow = modes.relaxation(self.p, scheme)
        fisher = estimation.information(self.p, phi, estimation.uniform(schemes.N, schemes.N))
        gamma = np.linalg.inv(estimation.information(self.p, phi, scheme))
        self.tr_gamma, self.tr_ratio = float(np.trace(gamma)), float(np.trace(gamma @ fisher))
        k = len(ising.positions(schemes.N, sample.masks[0]))
        self.states, of_mask, _ = contexts(k)
        own = np.isin(np.array(ising.masks(schemes.N, k)), sample.masks)
        self.weights: Floats = (own / own.sum())[of_mask]
        seen = self.weights * self.p[self.states].sum(1)
        self.rarest = float(seen[self.weights > 0].min())

    def row(self, sample: Sample, k: int, after: Floats, before: Floats) -> dict[str, Any]:
        """Return the row of a model (C, J) after and before training."""
        law, begun = (self._law(each) for each in (after, before))
        seen = self.p[self.states]
        true = seen / seen.sum(1, keepdims=True)
        conditional = (self.weights * seen.sum(1)) @ chains.divergence(true, after)
        return {
            "law": sample.law,
            "scheme": sample.scheme,
            "k": k,
            "n": sample.n,
            "repetition": sample.repetition,
            "kl": float(chains.divergence(self.p, law)),
            "kl_conditional": float(conditional),
            "kl_untrained": float(chains.divergence(self.p, begun)),
            "slow": float(sample.n * ((law - self.p) @ self.slow) ** 2),
        }

    def _law(self, model: Floats) -> Floats:
        P = modes.learned_chain(model[None], self.states, self.weights)
        return modes.stationary(P)[0]


def _cells(models: pl.DataFrame, exact: list[_Exact]) -> pl.DataFrame:
    """Return a row for each law, set of masks and sample size; ``alone`` is C without couplings."""
    known = [
        {
            "law": each.sample.law,
            "family": each.sample.family,
            "strength": each.sample.strength,
            "scheme": each.sample.scheme,
            "C": float(each.relaxation[-1]),
            "modes": float(each.relaxation.sum()),
            "tr_gamma": each.tr_gamma,
            "tr_ratio": each.tr_ratio,
            "rarest": each.rarest,
        }
        for each in exact
    ]
    scaled = 2 * pl.col("n") * pl.col("kl")
    by_cell = models.group_by("law", "scheme", "k", "n", maintain_order=True).agg(
        models=pl.len(), scaled_kl=scaled.mean(), scaled_se=scaled.std() / pl.len().sqrt(), slow=pl.col("slow").mean()
    )
    return by_cell.join(pl.DataFrame(known), on=["law", "scheme"], maintain_order="left").with_columns(
        predicted=pl.col("k") * pl.col("n"), rarest=pl.col("rarest") * pl.col("n"), alone=schemes.N / pl.col("k")
    )


def _compare(found: Measurements, models: pl.DataFrame) -> None:
    """Measure all comparisons; ``models`` has a row for each model, with what is exact of its cell."""
    n = int(models.filter(k=2)["n"].item(0))
    logs = models.with_columns(error=pl.col("kl").log())
    same = logs.filter(n=n)

    def mean(rows: pl.DataFrame, **where: Any) -> Floats:
        means = rows.filter(**where).group_by("repetition").agg(pl.col("error").mean()).sort("repetition")
        return means["error"].to_numpy()

    pairs = same.filter(family=TWO_PAIRS)
    for (first, second), comparison in comparisons.SAME_SIZE.items():
        found.add(comparison, mean(pairs, scheme=first), mean(pairs, scheme=second))
    for (first, second), comparison in comparisons.MORE.items():
        found.add(comparison, mean(same, scheme=first), mean(same, scheme=second))
    as_many = logs.filter(predicted=2 * n)
    for (first, second), comparison in comparisons.AS_MANY.items():
        found.add(comparison, mean(as_many, scheme=first), mean(as_many, scheme=second))
    of_sets = {EVERY: same, ONLY_PAIRS: same.filter(k=2)}
    for (predictor, sets), comparison in comparisons.FOLLOWS.items():
        found.add(comparison, list(_follows(of_sets[sets], COLUMN[predictor])))
    for (*arms, sets), comparison in comparisons.AHEAD.items():
        found.add(comparison, *(list(_follows(of_sets[sets], COLUMN[predictor])) for predictor in arms))
    for which, comparison in comparisons.BY_COUPLING.items():
        strong = pl.col("strength") >= comparisons.STRONG_PAIR
        chosen = pairs.filter(strong if which == comparisons.COUPLED else ~strong)
        if chosen.is_empty():
            found.not_run(comparison)
        else:
            found.add(comparison, mean(chosen, scheme=MISALIGNED), mean(chosen, scheme=ALIGNED))
    mixing = same.filter(pl.col("k") < schemes.N).with_columns(
        expected=2 * pl.col("n") * pl.col("kl") / pl.col("modes"), slowest=pl.col("slow") / pl.col("C")
    )
    seen = mixing.filter(pl.col("rarest") >= comparisons.SEEN_OFTEN)
    for cells, rows in zip(comparisons.SHOWN, (mixing, seen), strict=True):
        whole = rows.group_by("repetition").agg(pl.col("expected", "slowest").mean()).sort("repetition")
        found.add(comparisons.EXPECTED[cells], whole["expected"].to_numpy())
        found.add(comparisons.SLOWEST[cells], whole["slowest"].to_numpy())
    middle = seen.select("law", "scheme", "C").unique()["C"].median()
    for half, comparison in comparisons.HALVES.items():
        rows = seen.filter(pl.col("C") <= middle if half == comparisons.FASTER else pl.col("C") > middle)
        whole = rows.group_by("repetition").agg(pl.col("expected").mean()).sort("repetition")
        found.add(comparison, whole["expected"].to_numpy())
    found.add(comparisons.UNTRAINED, (models["kl_untrained"] / models["kl"]).to_numpy())


def _follows(models: pl.DataFrame, column: str) -> Iterator[float]:
    """Yield for each repetition the correlation of logarithms of error and ``column``, both less their law's mean."""
    both = [pl.col("error"), pl.col(column).log().alias("by")]
    centred = models.select("repetition", "law", *both).with_columns(
        pl.col("error", "by") - pl.col("error", "by").mean().over("repetition", "law")
    )
    for _, rows in centred.sort("repetition").group_by("repetition", maintain_order=True):
        yield float(np.corrcoef(rows["error"].to_numpy(), rows["by"].to_numpy())[0, 1])
