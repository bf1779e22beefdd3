"""E8: O and T from predictors of two tokens, be they exact, shares of a sample, or learned by a table (Theorem 7)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import hmm
from pipeline.languages.hmm import Floats
from pipeline.models.masked_prediction import tensors
from pipeline.studies.selfsup.comparisons import FALLS, LEARNED, RECOVERED
from pipeline.studies.selfsup.measures import models, slopes
from pipeline.studies.selfsup.names import HMM_RUNS, POPULATION, SAMPLED
from pipeline.studies.selfsup.runs import samples
from schemas.selfsup.hmm import ALS, EXACT, JENNRICH, SAMPLE


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return tables ``hmm_recovery``, ``hmm_slopes``, ``hmm_learned`` and ``comparisons``."""
    found = Measurements(context)
    table = pl.concat([*population(context), *sampled(context)])
    lines = []
    for case in hmm.CASES:
        for method in (JENNRICH, ALS):
            rows = table.filter(source=SAMPLE, case=case, method=method)
            (line, each), (of_transitions, _) = (
                slopes.fitted(rows, error, case=case, group=method) for error in ("err_O", "err_T")
            )
            lines += [line, of_transitions]
            found.add(FALLS[case, method], each)
        rows = table.filter(source=SAMPLE, case=case, method=ALS, N=table["N"].max())
        found.add(RECOVERED[case], rows["err_O"].to_numpy())
    learned = tables(context)
    for case, run in zip(hmm.CASES, HMM_RUNS, strict=True):
        if run in context.runs():
            own = learned.filter(case=case)
            found.add(LEARNED[case], (own["to_shares"] / own["shares_to_law"]).to_numpy())
    return {
        "hmm_recovery": table,
        "hmm_slopes": pl.DataFrame(lines),
        "hmm_learned": learned,
        "comparisons": found.table(),
    }


def population(context: Inputs) -> list[pl.DataFrame]:
    """Return rows of ``hmm_recovery`` on exact predictors, Jennrich's algorithm alone."""
    frames = []
    for (d, k), (names, emissions, transitions) in models.by_shape(models.read(context.dataset(POPULATION))).items():
        for case in hmm.CASES:
            rng = stream(context.seed, context.study, context.experiment, "population", d, k, case)
            tensor = hmm.triple_predictor(emissions, transitions, case)
            found = tensors.recover(tensor, k, case, rng)
            frames.append(_rows(names, emissions, transitions, found, case, EXACT, 0, JENNRICH))
    return frames


def sampled(context: Inputs) -> list[pl.DataFrame]:
    """Return rows of ``hmm_recovery`` on samples, which are multinomial counts: a sample for each model and size.

    A symbol that was never shown has no conditional law, and its slice is left out, as zeros.
    """
    frames = []
    ((_, k), (names, emissions, transitions)), *_ = models.by_shape(models.read(context.dataset(SAMPLED))).items()
    laws = hmm.joint(emissions, transitions)
    for size in context.entry.samples:
        counts = np.array(
            [
                hmm.counts(stream(context.seed, context.study, context.experiment, name, size), law, size)[0]
                for name, law in zip(names, laws, strict=True)
            ]
        )
        for case in hmm.CASES:
            rng = stream(context.seed, context.study, context.experiment, "contractions", size, case)
            tensor = np.nan_to_num(hmm.given(counts, case))
            start = tensors.jennrich(tensor, k, rng)
            polished = tensors.alternating(tensor, start, context.entry.sweeps)
            for method, parts in ((JENNRICH, start), (ALS, polished)):
                found = tensors.parameters(parts, case)
                frames.append(_rows(names, emissions, transitions, found, case, SAMPLE, size, method))
    return frames


def _rows(
    names: list[str],
    emissions: Floats,
    transitions: Floats,
    found: tuple[Floats, Floats],
    case: int,
    source: str,
    size: int,
    method: str,
) -> pl.DataFrame:
    err_o, err_t = hmm.distance(emissions, transitions, *found)
    kruskal = [
        tensors.kruskal_holds(hmm.components(emission, transition, case), emission.shape[1])
        for emission, transition in zip(emissions, transitions, strict=True)
    ]
    return pl.DataFrame(
        {
            "instance_id": names,
            "d": emissions.shape[1],
            "k": emissions.shape[2],
            "case": case,
            "source": source,
            "N": pl.Series([size] * len(names), dtype=pl.Int64),
            "method": method,
            "err_O": err_o,
            "err_T": err_t,
            "sigma_O": hmm.smallest_singular(emissions),
            "sigma_T": hmm.smallest_singular(transitions),
            "kruskal_ok": kruskal,
        }
    )


def tables(context: Inputs) -> pl.DataFrame:
    """Return ``hmm_learned``: how close trained tables are to the shares of their samples, and O from both."""
    drawn = list(models.read(context.dataset(SAMPLED)).items())
    rows: list[dict[str, Any]] = []
    with one_thread():
        for run in context.runs():
            entry = context.run_header(run)["entry"]
            weights = context.model(run).params["W"].double().numpy()
            for (name, model), table in zip(drawn, weights, strict=False):
                rows.append(_learned(context, entry, name, model, table))
    return pl.DataFrame(rows)


def _learned(
    context: Inputs, entry: dict[str, Any], name: str, model: tuple[Floats, Floats], table: Floats
) -> dict[str, Any]:
    case, (d, k) = entry["case"], model[0].shape
    shares = samples(context.study, entry["dataset"], case, entry["samples"], name, *model, context.seed)[
        "held.conditional"
    ].astype(float)
    rng = stream(context.seed, context.study, context.experiment, "tables", name, case)
    both = np.array([table, shares]).reshape(2, d, d, d)
    found = tensors.recover(both, k, case, rng, sweeps=context.entry.sweeps)
    emission, transition = (np.array([part, part]) for part in model)
    errors = hmm.distance(emission, transition, found[0], found[1])[0]
    law = hmm.triple_predictor(*model, case).reshape(d, -1)
    return {
        "instance_id": name,
        "case": case,
        "samples": entry["samples"],
        "to_shares": np.linalg.norm(table - shares),
        "start": np.linalg.norm(1 / d**2 - shares),
        "shares_to_law": np.linalg.norm(shares - law),
        "err_O": errors[0],
        "err_O_shares": errors[1],
    }
