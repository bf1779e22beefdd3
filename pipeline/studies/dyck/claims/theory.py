"""Claims 1, 2 and 15 to 20: the sampler, random attention, executable theory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_most, defined
from pipeline.kit.evidence import check_gate
from pipeline.kit.extremes import column_max
from pipeline.kit.verdicts import Gate
from pipeline.studies.dyck.claims.common import RANDOM_MAPS, SECTION_2, SECTION_3, SECTION_4_1
from schemas.claims import OWN, STATED

RANDOM_SIZES = (15, 16, 17, 19, 20)  # the probes with and without their last or start token
PUBLISHED_SIZES = (16, 19)
SAMPLER_CHECKS = {"prefix-chi2": "law of prefixes", "depth-zero": "depth 0 at length 28"}
# Claims on the executable theory: claim -> theory check -> gate.
CONSTRUCTIONS = {
    "15": {
        f"exact-k{k}-d{depth}-sigma{sigma}": f"k={k}, D={depth}, sigma={sigma}"
        for k, depth in ((2, 4), (3, 4), (2, 8))
        for sigma in ("0", "0.5", "1")
    }
    | {f"exact-variation-sigma{sigma}": f"variation, sigma={sigma}" for sigma in ("1", "2")},
    "16": {
        f"{check}-k{k}-d{depth}": f"{gate}, k={k}, D={depth}"
        for check, gate in (("symbols", "first layer"), ("stacks", "decoded stacks"))
        for k, depth in ((2, 4), (3, 8))
    }
    | {"repeated-without-start": "no start token"},
    "17": {"pumped-balanced": "balanced", "pumped-decay-delta1": "decay, delta=1"}
    | {
        f"broken-delta{delta}-length450": f"acc_close at 450, delta={delta}"
        for delta in (0.02, 0.05, 0.1, 0.2)
    },
    "20": {"vanishing-rate": "N times distance"},
}
PRUNED_ERROR = "pruning-error-l1-n16-seed"  # theory checks, one per random parent (DYCK-TH6)
PRUNED_ERROR_AT_MOST = 2e-3
THEOREM_2, COROLLARY_2 = "Wen et al. 2023, Theorem 2", "Wen et al. 2023, Corollary 2"


def sampler(theory: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates of claim 1: the sampler draws from the exact law."""
    for check, gate in SAMPLER_CHECKS.items():
        yield check_gate(theory, "1", gate, check, SECTION_2, kind=OWN)


def random_attention(theory: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates of claim 2: what the published variation of random maps was."""
    for n in RANDOM_SIZES:
        name = f"random causal maps, N={n}"
        yield check_gate(theory, "2", name, f"causal-monte-carlo-{n}", SECTION_4_1, kind=OWN)
    for n in PUBLISHED_SIZES:
        check = RANDOM_MAPS.format(n)
        published = theory[check]["bound"] if check in theory else None
        yield check_gate(theory, "2", f"published value, N={n}", check, SECTION_4_1, published)
        most = f"most matrices, N={n}"
        yield check_gate(theory, "2", most, f"published-most-{n}", SECTION_4_1, kind=OWN)
        yield check_gate(theory, "2", f"maps without mask, N={n}", f"square-{n}", SECTION_4_1, kind=OWN)


def constructions(theory: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates of claims 15 to 17 and 20: solvers that are built, and broken."""
    for claim, checks in CONSTRUCTIONS.items():
        for check, gate in checks.items():
            kind = OWN if check.startswith("exact-variation") else STATED  # the paper gives no such numbers
            yield check_gate(theory, claim, gate, check, SECTION_3, kind=kind)


def pruning(theory: dict[str, Any], rows: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 18: pruning a random parent to a target; ``rows`` are all theory checks."""
    layers = sorted(
        {match[1] for check in theory if (match := re.match(r"pruning-(?:legal|slope)-l(\d+)$", check))}
    )
    for L in layers or ["1"]:
        yield check_gate(theory, "18", f"masks, L={L}", f"pruning-legal-l{L}", THEOREM_2, kind=OWN)
        yield _slope(theory, L)
    measured, missing = evidence.checks(rows, f"^{PRUNED_ERROR}", column_max("measured"))
    parents = sum(check.startswith(PRUNED_ERROR) for check in theory)
    yield Gate(
        "18",
        "error, L=1, n=16",
        "error of random parents pruned with 16 candidates per weight, L=1, largest",
        THEOREM_2,
        at_most(PRUNED_ERROR_AT_MOST),
        replace(measured, n=parents) if measured else None,
        missing,
    )


def _slope(theory: dict[str, Any], L: str) -> Gate:
    """Return the gate of a slope, with its interval; a slope without one, or with one of NaN, is no measurement."""
    gate = check_gate(theory, "18", f"slope, L={L}", f"pruning-slope-l{L}", THEOREM_2)
    ends = [f"pruning-slope-{end}-l{L}" for end in ("low", "high")]
    if absent := [check for check in ends if check not in theory]:
        return replace(gate, measured=None, missing=gate.missing or f"no theory check is named {absent[0]}")
    if gate.measured is None:
        return gate
    lo, hi = (theory[check]["measured"] for check in ends)
    value = gate.measured.value if all(map(defined, (lo, hi))) else None
    return replace(gate, measured=replace(gate.measured, value=value, lo=lo, hi=hi))


def shared_matrix(theory: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates of claim 19: one matrix shared by two targets."""
    for layer in range(1, 5):
        check = f"shared-identical-{layer}"
        yield check_gate(theory, "19", f"layer {layer} is the same", check, COROLLARY_2)
        for target in (1, 2):
            check = f"shared-error-{layer}-target-{target}"
            name = f"layer {layer} shared, target {target}"
            yield check_gate(theory, "19", name, check, COROLLARY_2)
    yield check_gate(theory, "19", "targets differ", "shared-distance", COROLLARY_2)
