"""Steps to the larger mode (Li 2025, Figure 4.3; EXP-3): runs of both samplers beside the lumped chains."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.languages.ising import Ints
from pipeline.studies.parallel.comparisons import ARRIVES, MASKS, REACHES, STRONG
from pipeline.studies.parallel.exact import chains, laws, simulate
from schemas.parallel.tables import GIBBS, INDEPENDENT


def analyse(context: Inputs) -> dict[str, Any]:
    """Return laws and masks as tables, ``par_hit_exact``, ``par_hit_sim``, ``par_hit_cell`` and ``comparisons``."""
    entry, found = context.entry, Measurements(context)
    exact, shown, cells = [], [], []
    listed: list[dict[str, Any]] = []
    states: list[dict[str, Any]] = []
    arrived: dict[str, list[np.ndarray]] = {masks: [] for masks in MASKS}
    independent: dict[float, np.ndarray] = {}
    target = ising.mask_of(entry.N, tuple(range(entry.c)))
    for J in entry.J:
        theta, name = ising.clique(entry.N, entry.c, J, entry.h), f"fig43-{J:g}"
        listed.append(laws.law_row(name, theta, entry.N, entry.c, J))
        states += laws.state_rows(name, theta, entry.N)
        for k in range(entry.N + 1):  # 0: independent parallel sampling
            cell = {"sampler": GIBBS if k else INDEPENDENT, "k": k, "J": J}
            mean, sd, miss = oracle(entry, J, k)
            limit = chains.strong_limit(entry.N, entry.c, k) if k else None
            exact.append(
                {"dist_id": name}
                | cell
                | {"N": entry.N, "c": entry.c, "h": entry.h, "budget": entry.budget, "mean_censored": mean, "sd": sd}
                | {"miss_prob": miss, "large_J_limit": limit}
            )
            rng = stream(context.seed, context.study, context.experiment, f"{J:g}", k)
            runs = entry.runs_gibbs if k else entry.runs_independent
            sampler = simulate.Gibbs(theta, entry.N, k) if k else simulate.Independent(theta, entry.N)
            start = simulate.all_minus(rng, entry.N, entry.c, runs)
            steps, censored = simulate.hitting(rng, sampler, start, target, entry.budget)
            shown += [
                {"dist_id": name} | cell | {"rep": r, "steps": int(steps[r]), "censored": bool(censored[r])}
                for r in range(entry.shown)
            ]
            cells.append(cell | _summary(steps, censored, mean, sd))
            reached = (~censored).astype(float)
            if not k:
                independent[J] = reached
            elif J >= STRONG and (masks := _masks(k)):
                arrived[masks].append(reached)
    for J, comparison in ARRIVES.items():
        if J in independent:
            found.add(comparison, independent[J])
        else:
            found.not_run(comparison)
    for masks, parts in arrived.items():
        if parts:
            found.add(REACHES[masks], np.concatenate(parts))
        else:
            found.not_run(REACHES[masks])
    mask_rows = [
        row
        for k in range(1, entry.N + 1)
        for row in laws.mask_rows(f"k{k}-of-{entry.N}", entry.N, ising.masks(entry.N, k))
    ]
    tables = {"par_dist": listed, "par_state_prob": states, "par_mask_scheme": mask_rows}
    tables |= {"par_hit_exact": exact, "par_hit_sim": shown, "par_hit_cell": cells}
    return {name: pl.DataFrame(rows, infer_schema_length=None) for name, rows in tables.items()} | {
        "comparisons": found.table()
    }


def oracle(entry: Any, J: float, k: int) -> tuple[float, float, float]:
    """Return mean and standard deviation of min(T, budget), and the probability not to arrive, of k-Gibbs from all -1;
    for k = 0 of independent parallel sampling."""
    c, h = entry.c, entry.h
    P = chains.lumped_gibbs(entry.N, c, k, J, h) if k else chains.lumped_independent(c, J, h)
    survival = chains.survival(P, 0, c, entry.budget)
    return *chains.censored_moments(survival), float(survival[-1])


def _masks(k: int) -> str | None:
    """Return in which comparison runs of k-Gibbs count; k = 3 lies between stuck and fast, and in none."""
    return {1: "k = 1", 2: "k = 2", 3: None, 4: "k = 4"}.get(k, "k > 4")


def _summary(steps: Ints, censored: np.ndarray, mean: float, sd: float) -> dict[str, Any]:
    se, found = sd / np.sqrt(len(steps)), float(steps.mean())
    return {
        "runs": len(steps),
        "mean": found,
        "se": float(se),
        "reached": int((~censored).sum()),
        "exact": mean,
        "off": abs(found - mean) / max(4 * se, 1.0),
    }
