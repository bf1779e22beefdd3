"""Grids of Propositions 4.1.4 and 4.1.5 and of Corollary 4.1.1 (Li 2025, section 4.1.4.2; EXP-4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.studies.parallel.exact import propositions, simulate
from pipeline.studies.parallel.exact.propositions import Clique
from schemas.parallel.tables import REACH, SEPARATION, STUCK

LONGEST = 1000  # steps of a cell that is run as well


def analyse(context: Inputs) -> dict[str, Any]:
    """Return the table ``par_prop_cell``."""
    made = {REACH: _reach(context), STUCK: _stuck(context), SEPARATION: _separated(context)}
    rows = []
    for check, cells in made.items():
        for cell, found in enumerate(cells):
            margin = found["exact_prob"] - found["bound_prob"]
            passed = not found["applicable"] or margin >= -1e-12
            rows.append({"check_id": check, "cell": cell} | found | {"margin": margin, "passed": passed})
    return {"par_prop_cell": pl.DataFrame(rows, infer_schema_length=None)}


def _about(model: Clique, k: int, delta: float, M: int = 0) -> dict[str, Any]:
    return {"c": model.c, "N": model.N, "k": k, "J0": model.J0, "h_G": model.h_G, "delta": delta, "M": M}


def _reach(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield the cells of Proposition 4.1.4; some that are short, spread over the grid, are run as well."""
    entry, cells = context.entry, []
    for c, more, J0, h_G in product(entry.reach_c, entry.reach_more, entry.reach_J0, entry.reach_h_G):
        model = Clique(c, c + more, J0, h_G)
        for k in range(c, c + more + 1):
            P, rate = model.gibbs(k), propositions.reach_rate(model, k)
            for delta in entry.reach_delta:
                T = propositions.reach_steps(model, k, delta)
                cells.append(
                    (
                        model,
                        _about(model, k, delta)
                        | {
                            "rate": rate,
                            "T": T,
                            "exact_T": propositions.steps_needed(P, delta),
                            "exact_prob": 1 - propositions.misses(P, T),
                            "bound_prob": 1 - delta,
                            "one_step": float(P[:, c].min()),
                            "applicable": True,
                            "mc_prob": None,
                            "mc_runs": None,
                        },
                    )
                )
    short = [i for i, (_, row) in enumerate(cells) if row["T"] <= LONGEST]
    chosen = {short[i] for i in np.linspace(0, len(short) - 1, entry.simulated).astype(int).tolist()}
    for i, (model, row) in enumerate(cells):
        if i in chosen:
            rng = stream(context.seed, context.study, context.experiment, REACH, i)
            row |= {"mc_prob": _arrivals(rng, model, row["k"], row["T"], entry.trials), "mc_runs": entry.trials}
        yield row


def _arrivals(rng: np.random.Generator, model: Clique, k: int, steps: int, runs: int) -> float:
    """Return the share of runs of k-Gibbs that are in R_1 within so many steps, from all -1."""
    fields = np.where(np.arange(model.N) < model.c, model.h, 0.0)
    sampler = simulate.Gibbs(ising.clique(model.N, model.c, model.J, fields), model.N, k)
    target = ising.mask_of(model.N, tuple(range(model.c)))
    start = simulate.all_minus(rng, model.N, model.c, runs)
    return float((~simulate.hitting(rng, sampler, start, target, steps)[1]).mean())


def _stuck(context: Inputs) -> Iterator[dict[str, Any]]:
    entry = context.entry
    for c, J0, delta in product(entry.stuck_c, entry.stuck_J0, entry.stuck_delta):
        model = Clique(c, c, J0, entry.stuck_h_G)
        rate = propositions.stuck_rate(c, J0)
        T = propositions.stuck_steps(rate, delta)
        yield _about(model, 0, delta) | {
            "rate": rate,
            "T": T,
            "exact_T": propositions.stays_for(model, delta),
            "exact_prob": propositions.stuck_stay(model, T) if T else 1.0,
            "bound_prob": 1 - delta,
            "one_step": None,
            "applicable": T >= 1,
            "mc_prob": None,
            "mc_runs": None,
        }


def _separated(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield the cells of Corollary 4.1.1: both events have probability 1 - delta / 2, so that the smaller counts."""
    entry = context.entry
    for cell in entry.separations:
        c, J0, h_G = propositions.separating(cell.delta, cell.M)
        slow = propositions.avoids_mode(Clique(c, c, J0, h_G), cell.M)
        for times in entry.times:
            model = Clique(c, c * times, J0, h_G)
            k = propositions.fewest_masked(model.N, c, cell.delta)
            one = propositions.one_step(model, k)
            yield _about(model, k, cell.delta, cell.M) | {
                "rate": propositions.reach_rate(model, k),
                "T": 1,
                "exact_T": None,
                "exact_prob": min(one, slow),
                "bound_prob": 1 - cell.delta / 2,
                "one_step": one,
                "applicable": True,
                "mc_prob": None,
                "mc_runs": None,
            }
