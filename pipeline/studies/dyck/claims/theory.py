"""Claims 1, 2 and 15 to 20: the sampler, random attention, executable theory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pipeline.kit.verdicts import Condition, Gate, Measured, within
from pipeline.studies.dyck.claims.common import (
    PROBE_LENGTH,
    RANDOM_MAPS,
    SECTION_2,
    SECTION_3,
    SECTION_4_1,
)

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
    """Claim 1: the sampler draws from the exact law."""
    for check, gate in SAMPLER_CHECKS.items():
        yield _theory_gate("1", gate, theory, check, SECTION_2)


def random_attention(theory: dict[str, Any]) -> Iterator[Gate]:
    """Claim 2: what the published variation of random maps was."""
    sizes = sorted(
        int(check.rpartition("-")[2]) for check in theory if check.startswith("causal-monte-carlo-")
    )
    for n in sizes or [PROBE_LENGTH]:
        yield _theory_gate("2", f"random causal maps, N={n}", theory, f"causal-monte-carlo-{n}", SECTION_4_1)
    for n in [n for n in sizes if RANDOM_MAPS.format(n) in theory]:
        published = theory[RANDOM_MAPS.format(n)]["bound"]
        yield _theory_gate(
            "2", f"published value, N={n}", theory, RANDOM_MAPS.format(n), SECTION_4_1, published
        )
        yield _theory_gate("2", f"maps without mask, N={n}", theory, f"square-{n}", SECTION_4_1)


def _theory_gate(
    claim: str, gate: str, theory: dict[str, Any], check: str, source: str, published: float | None = None
) -> Gate:
    row = theory.get(check)
    if row is None:
        return Gate(claim, gate, check, source, (), None, f"theory check {check} is not in params.yaml")
    if row["comparison"] == "within":
        conditions: tuple[Condition, ...] = within(row["bound"], row["tolerance"])
    else:
        conditions = (Condition("value", row["comparison"], row["bound"]),)
    return Gate(
        claim,
        gate,
        row["statement"],
        row["source"],
        conditions,
        Measured(row["measured"]),
        published=published,
    )


def constructions(theory: dict[str, Any]) -> Iterator[Gate]:
    """Claims 15 to 17 and 20: solvers that are built, and broken."""
    for claim, checks in CONSTRUCTIONS.items():
        for check, gate in checks.items():
            yield _theory_gate(claim, gate, theory, check, SECTION_3)


def pruning(theory: dict[str, Any]) -> Iterator[Gate]:
    """Claim 18: pruning a random parent to a target."""
    layers = sorted(check.rpartition("-l")[2] for check in theory if check.startswith("pruning-legal-l"))
    for L in layers or ["1"]:
        yield _theory_gate("18", f"masks, L={L}", theory, f"pruning-legal-l{L}", THEOREM_2)
        gate = _theory_gate("18", f"slope, L={L}", theory, f"pruning-slope-l{L}", THEOREM_2)
        if gate.measured is not None:
            lo, hi = (theory[f"pruning-slope-{end}-l{L}"]["measured"] for end in ("low", "high"))
            gate = replace(gate, measured=replace(gate.measured, lo=lo, hi=hi))
        yield gate
    errors = [row["measured"] for check, row in theory.items() if check.startswith(PRUNED_ERROR)]
    yield Gate(
        "18",
        "error, L=1, n=16",
        f"largest error of random parents pruned with 16 candidates per weight, L=1, is at most {PRUNED_ERROR_AT_MOST}",
        THEOREM_2,
        (Condition("value", "<=", PRUNED_ERROR_AT_MOST),),
        Measured(max(errors), n=len(errors)) if errors else None,
        "" if errors else f"theory checks {PRUNED_ERROR}... are not in params.yaml",
    )


def shared_matrix(theory: dict[str, Any]) -> Iterator[Gate]:
    """Claim 19: one matrix shared by two targets."""
    for layer in range(1, 5):
        check = f"shared-identical-{layer}"
        yield _theory_gate("19", f"layer {layer} is the same", theory, check, COROLLARY_2)
        for target in (1, 2):
            check = f"shared-error-{layer}-target-{target}"
            name = f"layer {layer} shared, target {target}"
            yield _theory_gate("19", name, theory, check, COROLLARY_2)
    yield _theory_gate("19", "targets differ", theory, "shared-distance", COROLLARY_2)
