"""The gridworld: Algorithm 1, Lemmas 22 and 23, and Theorem 12's two layers (Liu 2024, section 3.4.4.4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions
from pipeline.languages.automata import grid_algorithm, grid_states
from pipeline.models.automata import exact
from pipeline.studies.automata.constructions import (
    SOURCE,
    THEOREM_12,
    exact_depth,
    ledger,
    refuted,
    row,
    verified,
    verified_all,
    wrong,
)
from schemas import theory

IMPROVED = "Liu 2024, section 3.4.4.4, after the proof of Theorem 12; footnotes 15, 16 and 23"
ALGORITHM = SOURCE.format(".4, Algorithm 1, Lemmas 22 and 23")
LENGTHS = (8, 16, 32, 64)


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the gridworld."""
    rng = stream(seed, "automata", theory_id)
    made = [
        *_algorithm(entry),
        *_network(rng, entry),
        *_improved(rng, entry),
        *_plane(entry),
        *_heads(entry),
        *_printed(entry),
        *_sizes(stream(seed, "automata", theory_id, "depth")),
    ]
    return theory.rows("automata", theory_id, THEOREM_12.source, made)


def words(letters: tuple[int, ...], length: int) -> np.ndarray:
    """Return all words of moves."""
    return np.array(list(itertools.product(letters, repeat=length)))


def _algorithm(entry: Any) -> Iterator[dict[str, Any]]:
    wrong_state = wrong_min = wrong_end = printed_gap = wrong_gap = wrong_which = max_first = count = 0
    for S in (1, 2, 3, 4):
        for letters, length in (((-1, 1), entry.short), ((-1, 0, 1), max(entry.short - 3, 2))):
            inputs = words(letters, length)
            states = grid_states(S, inputs)
            for moves, state in zip(inputs, states, strict=True):
                trace = grid_algorithm(S, moves)
                final = max(trace.last_min, trace.last_max)
                padded = np.concatenate([[0] * (S + 1), state])
                wrong_state += trace.state != state[-1]
                wrong_min += state[-1] != trace.z[-1] - trace.z[trace.uniq :].min()
                wrong_end += padded[final] != trace.boundary
                gap = int(trace.z[trace.last_max] - trace.z[trace.last_min])
                printed_gap, wrong_gap = printed_gap + (gap == S + 1), wrong_gap + (gap != S)
                wrong_which += min(trace.last_min, trace.last_max) != trace.uniq
                max_first += trace.last_max < trace.last_min
                count += 1
    size = f"S = 1..4, all {count} inputs of lengths up to {entry.short}, with and without moves that stay"
    metadata = {"source": ALGORITHM}
    yield row("alg-1.state", "Algorithm 1 finds the last state: exceptions", size, wrong_state, "<=", 0, **metadata)
    yield row(
        "alg-1.simpler",
        "The last state is z_T - min z from t_uniq on, without the case distinction: exceptions",
        size,
        wrong_min,
        "<=",
        0,
        **metadata,
    )
    yield row(
        "lem-22",
        "The state at t_final is the boundary that the algorithm names: exceptions",
        size,
        wrong_end,
        "<=",
        0,
        **metadata,
    )
    yield row(
        "alg-1.difference.printed",
        "Inputs on which z at t_max minus z at t_min is S + 1, as printed: number",
        size,
        printed_gap,
        "<=",
        0,
        erratum="automata-algorithm-1-difference",
        form="printed",
        **metadata,
    )
    yield row(
        "alg-1.difference.corrected",
        "z at t_max minus z at t_min is S: exceptions",
        size,
        wrong_gap,
        "<=",
        0,
        erratum="automata-algorithm-1-difference",
        form="corrected",
        **metadata,
    )
    yield row(
        "alg-1.first",
        "The earlier of t_min and t_max is t_uniq, whichever of the two it is: exceptions",
        size,
        wrong_which,
        "<=",
        0,
        erratum="automata-lemma-22",
        form="corrected",
        **metadata,
    )
    yield row(
        "alg-1.first.printed",
        "It is not always t_min, as printed: inputs on which it is t_max",
        size,
        max_first,
        ">=",
        1,
        erratum="automata-lemma-22",
        form="printed",
        **metadata,
    )


def _network(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for S in range(1, 6):
        inputs = words((-1, 1), entry.short)
        built = exact.grid_network(S, entry.short)
        what = f"Theorem 12 with {S + 1} states"
        yield from verified(THEOREM_12, f"s{S}", what, built, inputs + 1, grid_states(S, inputs), True)
    for S in (2, 4):
        inputs = words((-1, 0, 1), max(entry.short - 3, 2))
        instances = [
            (exact.grid_network(S, inputs.shape[1], q0), inputs + 1, grid_states(S, inputs, q0)) for q0 in range(S + 1)
        ]
        what = "Theorem 12 from every state, with moves that stay"
        size = f"S = {S}, all {len(inputs)} inputs of length {inputs.shape[1]}"
        yield from verified_all(THEOREM_12, f"s{S}.starts", what, instances, size)
    for S in (3, 8):
        inputs = rng.integers(-1, 2, (max(entry.sequences // 4, 2), entry.length))
        built = exact.grid_network(S, entry.length)
        yield from verified(
            THEOREM_12, f"s{S}.long", f"Theorem 12 with {S + 1} states", built, inputs + 1, grid_states(S, inputs)
        )
        # It is stated with 2S heads, an erratum: the bound of the network is that of the proof, 2S + 1. Of the width no
        # constant is printed: that of the network is its own.
        yield from ledger(THEOREM_12, f"s{S}", f"Theorem 12 with {S + 1} states", built, apart=["heads", "mlp_width"])
    inputs = rng.integers(-1, 2, (4, 100))
    for precision, dtype in (("single", np.float32), ("double", np.float64)):
        share = wrong(exact.grid_network(3, 100), inputs + 1, grid_states(3, inputs), dtype)[0] / inputs.size
        enough = precision == "double"
        yield row(
            f"thm-12.{precision}",
            f"{precision.title()} precision is {'' if enough else 'not '}enough for scores of "
            "order T³ log T: share of wrong tokens",
            "S = 3, T = 100",
            share,
            "<=" if enough else ">=",
            0.0 if enough else 0.01,
        )


def _improved(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows on the source's second MLP, with the least of the windows by pooling or by pairs, and on sines."""
    forms: dict[str, tuple[str, dict[str, Any]]] = {
        "pairs": ("the least window pair by pair, in O(log S) layers", {"least": "pairs"}),
        "pool": ("a pooling layer", {"least": "pool"}),
        "sines": ("sines", {"periodic": True}),
        "both": ("a pooling layer and sines", {"least": "pool", "periodic": True}),
    }
    for name, (with_what, form) in forms.items():
        instances = []
        for S in range(1, 6):
            for letters, length in (((-1, 1), entry.short - 1), ((-1, 0, 1), max(entry.short - 4, 2))):
                inputs = words(letters, length)
                instances.append((exact.grid_network(S, length, **form), inputs + 1, grid_states(S, inputs)))
        size = f"S = 1..5, all inputs of lengths {entry.short - 1} and, with moves that stay, {length}"
        what = f"Theorem 12 with {with_what}"
        yield from verified_all(THEOREM_12, f"{name}.all", what, instances, size, source=IMPROVED)
        for S in (3, 8):
            inputs = rng.integers(-1, 2, (max(entry.sequences // 4, 2), entry.length))
            built, states = exact.grid_network(S, entry.length, **form), grid_states(S, inputs)
            shown = f"{what}, {S + 1} states"
            yield from verified(THEOREM_12, f"{name}.s{S}", shown, built, inputs + 1, states, source=IMPROVED)
    inputs, S = words((-1, 1), min(entry.short, 8)), 3
    centre = exact.grid_network(S, inputs.shape[1], least="pool", matched="centre")
    yield refuted(
        "thm-12.unmatched.printed",
        "Theorem 12 with a pooling layer that leaves out those heads alone which select t",
        centre,
        inputs + 1,
        grid_states(S, inputs),
        IMPROVED,
        "automata-theorem-12-unmatched",
    )
    yield from _improved_sizes()


def _improved_sizes() -> Iterator[dict[str, Any]]:
    """Yield the rows on depth and width of these forms."""
    states, metadata = (2, 4, 8, 16, 32), {"erratum": "automata-theorem-12-pooling", "source": IMPROVED}
    shown = f"S = {', '.join(map(str, states))}"

    def layers(least: str) -> list[int]:
        """Return the hidden layers of the second MLP."""
        return [len(exact.grid_network(S, 16, least=least).network.layers[1].mlp) - 1 for S in states]

    pooled, pairs = layers("pool"), layers("pairs")
    yield row(
        "thm-12.pool.depth.printed",
        "O(S) layers with max pooling, as the theorem says, would be more than the O(log S) without it: S over the "
        "hidden layers without it, at the largest S",
        shown,
        states[-1] / pairs[-1],
        ">=",
        1.001,
        form="printed",
        **metadata,
    )
    yield row(
        "thm-12.pool.depth.corrected",
        "With pooling the second MLP has O(1) hidden layers: different depths",
        shown,
        len(set(pooled)),
        "within",
        1,
        tolerance=0.0,
        form="corrected",
        detail=f"{pooled[0]} hidden layers",
        **metadata,
    )
    yield row(
        "thm-12.pairs.depth",
        "Without it, 3 + ⌈log(S + 1)⌉ hidden layers: depths that differ from that",
        shown,
        sum(depth != 3 + math.ceil(math.log2(S + 1)) for S, depth in zip(states, pairs, strict=True)),
        "<=",
        0,
        source=IMPROVED,
        detail=f"hidden layers {', '.join(map(str, pairs))}",
    )
    for sines in (True, False):
        widths = [exact.grid_network(3, T, periodic=sines).network.sizes["mlp_width"] for T in LENGTHS]
        yield row(
            f"thm-12.width.{'sines' if sines else 'relu'}",
            f"MLP width {'with sines stays as it is' if sines else 'grows with the length'}: different widths",
            f"S = 3, T = {', '.join(map(str, LENGTHS))}",
            len(set(widths)),
            "within",
            1 if sines else len(LENGTHS),
            tolerance=0.0,
            source=IMPROVED,
            detail=f"widths {', '.join(map(str, widths))}",
        )
    both = [exact.grid_network(S, 64, least="pool", periodic=True).network.sizes["mlp_width"] / S for S in states]
    yield row(
        "thm-12.both.width",
        "With pooling and sines the MLP width is O(S): largest width over S",
        shown,
        largest(both),
        "<=",
        8,
        source=IMPROVED,
    )
    norms = [exact.grid_network(3, T).network.sizes["norm"] for T in (64, 128)]
    yield row(
        "thm-12.norm",
        "Weights grow as a power of the length: logarithm of their growth when it doubles",
        "S = 3, T = 64, 128",
        math.log2(norms[1] / norms[0]),
        "<=",
        2,
        source=THEOREM_12.source,
    )
    circle, metadata = (np.pi * np.arange(-16, 17) / 32, {"erratum": "automata-footnote-23", "source": IMPROVED})
    points = np.stack([np.cos(circle), np.sin(circle)], 1)
    off = np.linalg.svd(points - points.mean(0), compute_uv=False)[1] / math.sqrt(len(points))
    yield row(
        "thm-12.sines.printed",
        "A width of 1 (footnote 23) does not do: the outputs of one unit lie on a line, and the points of the circle "
        "are off every line by at least (root mean square)",
        "T' = 16",
        off,
        ">=",
        0.01,
        form="printed",
        **metadata,
    )
    yield row(
        "thm-12.sines.corrected",
        "Two sines do, as the text behind the proof says: hidden units of the first MLP",
        "T' = 16",
        len(exact.grid_network(3, 13, periodic=True).network.layers[0].mlp[0][1]),
        "within",
        2,
        tolerance=0.0,
        form="corrected",
        **metadata,
    )


def _plane(entry: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows on the gridworld in the plane, one network of two beside each other (Example 5, Lemma 17)."""
    inputs = np.array(list(itertools.product(range(4), repeat=min(entry.short, 5))))
    across, up = np.array([-1, 1, 0, 0]), np.array([0, 0, -1, 1])
    one = exact.grid_network(2, inputs.shape[1])
    built = exact.side_by_side(one, one, lambda tokens: (across[tokens] + 1, up[tokens] + 1), 3)
    states = 3 * grid_states(2, across[inputs]) + grid_states(2, up[inputs])
    what = "Two copies side by side walk in a plane of 3 × 3 states (Example 5, Lemma 17)"
    yield from verified(THEOREM_12, "plane", what, built, inputs, states, True)
    yield row(
        "thm-12.plane.heads",
        "Its heads are twice those of one copy",
        "3 × 3 states",
        built.network.sizes["heads"],
        "within",
        2 * one.network.sizes["heads"],
        tolerance=0.0,
    )


def _heads(entry: Any) -> Iterator[dict[str, Any]]:
    """Yield what the heads of the second layer select: Lemma 23, and heads whose value is not there."""
    matched_wrong = unmatched = at_t = off_center = increasing = 0
    broken = 0.0  # NaN once an output is
    for S in (2, 4):
        inputs = words((-1, 1), entry.short)
        built = exact.grid_network(S, entry.short)
        outputs = exact.head_outputs(built, S, built.network(built.embed(inputs + 1)))
        broken += exceptions(False, outputs)
        n = S + entry.short
        gamma = np.array([math.log(2 * n), *np.log(2 * n - np.arange(1, n + 1))])
        z = np.concatenate(
            [np.zeros((len(inputs), 1), int), np.cumsum(np.concatenate([np.full((len(inputs), S), -1), inputs], 1), 1)],
            1,
        )
        for t in range(S + 1, n + 1):
            for s in range(2 * S + 1):
                visits = z[:, : t + 1] == (z[:, t] + s - S)[:, None]
                last = t - visits[:, ::-1].argmax(1)
                values = outputs[:, t, s]
                has = visits.any(1)
                matched_wrong += int((np.abs(values - gamma[last])[has] > 1e-6).sum())
                unmatched += int((~has).sum())
                at_t += int((np.abs(values - gamma[t])[~has] < 1e-6).sum())
                inner = s + 1 if s < S else s - 1
                off_center += int((np.abs(values - outputs[:, t, inner])[~has] > 1e-6).sum()) if s != S else 0
                if s != S:
                    increasing += int((values < outputs[:, t, inner] - 1e-6).sum())
    size = f"S = 2, 4, all inputs of length {entry.short}"
    yield row(
        "thm-12.heads.matched",
        "A head whose value was reached selects its last visit: exceptions",
        size,
        matched_wrong + broken,
        "<=",
        0,
    )
    yield row(
        "lem-23",
        "Positions get earlier away from the present value: exceptions",
        size,
        increasing + broken,
        "<=",
        0,
        source=ALGORITHM,
    )
    metadata = {"erratum": "automata-theorem-12-unmatched"}
    yield row(
        "thm-12.heads.printed",
        "A head whose value was not reached does not always select t: how often not",
        size,
        unmatched - at_t + broken,
        ">=",
        1,
        form="printed",
        detail=f"{unmatched} such heads",
        **metadata,
    )
    yield row(
        "thm-12.heads.corrected",
        "It selects what its neighbour towards the centre does: exceptions",
        size,
        off_center + broken,
        "<=",
        0,
        form="corrected",
        **metadata,
    )


def _printed(entry: Any) -> Iterator[dict[str, Any]]:
    length = min(entry.short, 8)
    inputs = words((-1, 1), length)
    for S in (2, 4):
        states = grid_states(S, inputs)
        built, bad = exact.grid_network(S, length), exact.grid_network(S, length, padded_position=False)
        errors, _ = wrong(bad, inputs + 1, states)
        metadata = {"erratum": "automata-theorem-12-pad"}
        yield row(
            f"thm-12.pad.printed.s{S}",
            "With position 0 for the pad it outscores every key with z = 0: share of wrong tokens",
            f"S = {S}, all inputs of length {length}",
            errors / inputs.size,
            ">=",
            0.01,
            form="printed",
            **metadata,
        )
        yield row(
            f"thm-12.pad.corrected.s{S}",
            "With position log 2T' for the pad: token errors",
            f"S = {S}, all inputs of length {length}",
            wrong(built, inputs + 1, states)[0],
            "<=",
            0,
            form="corrected",
            **metadata,
        )
        rows = built.network(built.embed(inputs + 1))[:, -length:]
        outputs, _ = exact.rounded(rows[..., -1])
        heads = exact.head_outputs(built, S, rows)
        s = np.clip(S - outputs, 0, S)
        low, high = (np.take_along_axis(heads, (s + k)[..., None], -1)[..., 0] for k in (0, S))
        printed = np.where(low < high, S - s, 2 * S + 1 - s)  # B: the lower end was visited last
        metadata = {"erratum": "automata-theorem-12-output"}
        share = exceptions(False, rows) + min(
            float((printed != states).mean()), float((np.where(low > high, S - s, 2 * S + 1 - s) != states).mean())
        )
        yield row(
            f"thm-12.output.printed.s{S}",
            "With 2S + 1 - s for one of the two boundaries, whichever it is: share of wrong tokens",
            f"S = {S}, all inputs of length {length}",
            share,
            ">=",
            0.01,
            form="printed",
            **metadata,
        )
        yield row(
            f"thm-12.output.corrected.s{S}",
            "With S - s for both: share of wrong tokens",
            f"S = {S}, all inputs of length {length}",
            exceptions(outputs != states, rows) / inputs.size,
            "<=",
            0,
            form="corrected",
            **metadata,
        )
    gap = {T: 1 - math.cos(math.pi / (2 * T)) for T in (8, 100)}
    metadata = {"erratum": "automata-theorem-12-gap"}
    yield row(
        "thm-12.gap.printed",
        "The nearest keys that do not match lose less than the printed π²/8T'²: largest loss over it",
        "T' = 8, 100",
        max(g / (math.pi**2 / (8 * T**2)) for T, g in gap.items()),
        "<=",
        1 - 1e-9,
        form="printed",
        **metadata,
    )
    yield row(
        "thm-12.gap.corrected",
        "They lose 1 - cos(π/2T') >= 1/T'²: smallest ratio",
        "T' = 8, 100",
        min(g * T**2 for T, g in gap.items()),
        ">=",
        1,
        form="corrected",
        **metadata,
    )


def _sizes(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    depths = []
    for T in LENGTHS:
        inputs = rng.integers(-1, 2, (4, T))
        depths.append(exact_depth(exact.grid_network(3, T), inputs + 1, grid_states(3, inputs)))
    yield row(
        "thm-12.depth",
        "Depth of networks that make no error does not depend on the length: different depths",
        f"T = {', '.join(map(str, LENGTHS))}, 4 inputs each",
        math.nan if any(map(math.isnan, depths)) else len(set(depths)),
        "<=",
        1,
        claim="2",
        part="Theorem 12",
    )
    for S in (2, 8):
        sizes = exact.grid_network(S, 16).network.sizes
        metadata = {"erratum": "automata-theorem-12-heads"}
        yield row(
            f"thm-12.heads.s{S}",
            "There is a head for each of 2S + 1 shifts, not for 2S",
            f"S = {S}",
            sizes["heads"],
            "within",
            2 * S + 1,
            tolerance=0.0,
            form="corrected",
            **metadata,
        )
    yield row(
        "thm-12.heads.bound",
        "2S heads, as printed, leave out a shift: heads over 2S",
        "S = 2",
        exact.grid_network(2, 16).network.sizes["heads"] / 4,
        ">=",
        1.01,
        form="printed",
        erratum="automata-theorem-12-heads",
    )
    narrow = exact.window(26, 8, 16, 7, 24)
    yield row(
        "thm-12.window",
        "The window is found by three hidden layers of O(S) units, without 2^O(S) units or O(log S) "
        "layers: hidden units over S",
        "S = 8",
        max(len(b) for _, b in narrow[:-1]) / 8,
        "<=",
        8,
    )
