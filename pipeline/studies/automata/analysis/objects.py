"""The automata as tables: moves, observations, algebra, baselines, cascades; Algorithm 1 on one input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import automata
from pipeline.languages.automata import OBSERVED, TASKS, automaton, task
from pipeline.studies.automata.names import shown

KNOWN = (*TASKS, "s3", "abab", "memory3")
LENGTHS = (16, 40, 100)
CASCADES = ("memory3", "grid4", "grid9", "abab", "c4", "d6")
GRID = 4  # states of the gridworld on which Algorithm 1 is shown, as in Figure 3.13
BEHIND = 4  # positions behind the last boundary


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the tables of the automata themselves."""
    return {
        "automata": pl.DataFrame([_algebra(name) for name in KNOWN], infer_schema_length=None),
        "transitions": pl.DataFrame([row for name in KNOWN for row in _moves(name)]),
        "observations": pl.DataFrame([row for name in OBSERVED for row in _observed(name)]),
        "baselines": pl.DataFrame(
            [
                {
                    "task": name,
                    "name": shown(name),
                    "length": T,
                    # The last bits of a matrix product depend on the number of threads.
                    "constant": round(automata.constant_accuracy(name, T), 12),
                    "majority": round(automata.majority_accuracy(name, T), 12),
                }
                for name in (*TASKS, *OBSERVED, "s3")
                for T in LENGTHS
            ]
        ),
        "cascades": pl.DataFrame([row for name in CASCADES for row in _levels(name)]),
        "grid_trace": pl.DataFrame(list(_trace(context)), infer_schema_length=None),
    }


def _algebra(name: str) -> dict[str, Any]:
    known = automaton(name)
    elements, group = automata.semigroup(known.maps), automata.is_group(known)
    if group:
        solvable = automata.is_solvable(known.maps)
    elif elements is not None and automata.is_aperiodic(elements):
        solvable = True  # it holds no group but trivial ones
    else:
        levels = automata.cascade(known).levels
        solvable = all(automata.is_solvable(level.permutations) for level in levels)
    return {
        "automaton": name,
        "shown": automata.shown(name),
        "n_states": len(known.next),
        "n_symbols": known.next.shape[1],
        "q0": known.q0,
        "semigroup_size": None if elements is None else len(elements),
        "is_group": group,
        "solvable": solvable,
        "aperiodic": None if elements is None else automata.is_aperiodic(elements),
        "composition_factors": ", ".join(automata.factors(automata.generated(known.maps))) if group else "",
        "period": automata.period(known),
    }


def _moves(name: str) -> Iterator[dict[str, Any]]:
    known = automaton(name)
    for (state, symbol), after in np.ndenumerate(known.next):
        if after >= 0:
            yield {
                "automaton": name,
                "state": state,
                "symbol": symbol,
                "next_state": int(after),
                "state_shown": known.states[state],
                "symbol_shown": known.symbols[symbol],
            }


def _observed(name: str) -> Iterator[dict[str, Any]]:
    of = task(name)
    for state, seen in enumerate(of.observe.tolist()):
        yield {"task": name, "state": state, "state_shown": of.automaton.states[state], "observation": seen}


def _levels(name: str) -> Iterator[dict[str, Any]]:
    for i, level in enumerate(automata.cascade(automaton(name)).levels, 1):
        moves = level.permutations
        yield {
            "automaton": name,
            "level": i,
            "states": level.size,
            "start": level.start,
            "dependencies": len(level.moves),
            "permutations": len(moves),
            "resets": level.resets,
            "group_order": len(automata.generated(moves)),
            "solvable": automata.is_solvable(moves),
        }


def _trace(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield Algorithm 1 on a random input of the gridworld that goes on for some moves behind the last boundary, so
    that what is added there can be seen, as in Figure 3.13."""
    S = GRID - 1
    rng = stream(context.seed, context.study, context.experiment, "moves")
    final = last = S + context.entry.shown
    while final > last - BEHIND:
        moves = rng.choice([-1, 1], context.entry.shown)
        trace, states = automata.grid_algorithm(S, moves), automata.grid_states(S, moves[None])[0]
        final = max(trace.last_min, trace.last_max)
    for t, z in enumerate(trace.z.tolist()):
        inside = t > S
        yield {
            "states": GRID,
            "position": t,
            "move": int(moves[t - S - 1]) if inside else None,
            "prefix_sum": z,
            "state": int(states[t - S - 1]) if inside else None,
            "mark": "t_final" if t == final else "t_uniq" if t == trace.uniq else "",
        }
