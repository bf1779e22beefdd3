"""DYCK-D1: the sampler against the exact law of Dyck prefixes (Wen et al. 2023, section 2, eqs 1-3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import chisquare

from pipeline.kit.streams import stream
from pipeline.languages import dyck
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import SamplerCheck

# The language of the paper's experiments (section 4.1), and how long the strings are that are checked.
K, DEPTH, Q = 2, 4, 0.5
P_STOP, MAX_LENGTH = 0.5, 26
SHORT, LONG = 6, 28  # all prefixes of the short length are enumerated

SOURCE = "Wen et al. 2023, section 2, eqs (1)-(3)"
ERRATUM = "dyck-eq-3"
P_VALUE = 1e-3  # a correct sampler fails a chi-squared test once in a thousand seeds
DEPTH_TOLERANCE = 0.005


def check(entry: SamplerCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`; ``entry.samples`` strings are drawn for each frequency."""
    return theory.rows("dyck", theory_id, SOURCE, _checks(entry.samples, theory_id, seed))


def _checks(samples: int, theory_id: str, seed: int) -> list[dict[str, Any]]:
    support = dyck.enumerate_prefixes(SHORT, K, DEPTH)
    log_law = dyck.log_probability(support, K, DEPTH, Q)
    literal = np.exp(dyck.literal_log_weight(support, K, DEPTH, Q))
    drawn = dyck.sample_prefixes(stream(seed, "dyck", theory_id, "prefixes"), samples, LONG, K, DEPTH, Q)
    counts = _counts(drawn[:, :SHORT], support)
    depth_law = dyck.depth_law(LONG, DEPTH, Q)
    length_law, acceptance = dyck.complete_length_law(DEPTH, Q, P_STOP, MAX_LENGTH)
    complete = dyck.sample_complete(
        stream(seed, "dyck", theory_id, "complete"), samples, K, DEPTH, Q, P_STOP, MAX_LENGTH
    )
    lengths = np.bincount((complete > 0).sum(1), minlength=MAX_LENGTH + 1)
    short, long, sampled = f"N={SHORT}, k={K}, D={DEPTH}", f"N={LONG}, k={K}, D={DEPTH}", f"{samples} samples"
    mass = dyck.literal_total_mass(LONG, K, DEPTH, Q)
    return [
        {
            "check": "prefix-count",
            "statement": "The enumeration finds every prefix: as many as the recursion over depths counts",
            "size": short,
            "measured": float(len(support)),
            "comparison": "within",
            "bound": _number_of_prefixes(SHORT),
            "tolerance": 0.0,
        },
        {
            "check": "prefix-law-total",
            "statement": "The probabilities of all prefixes of one length add up to 1",
            "size": f"{len(support)} prefixes, {short}",
            "measured": float(np.exp(log_law).sum()),
            "comparison": "within",
            "bound": 1.0,
            "tolerance": 1e-12,
            "detail": "eq. (3) with a factor 1/k per open at depth 1, as in Liu 2024 (3.20) and Li 2025 (2.39)",
            "erratum": ERRATUM,
            "form": "corrected",
        },
        {
            "check": "prefix-chi2",
            "claim": "1",
            "part": "law of prefixes",
            "statement": "Sampled prefixes follow the exact law (chi-squared test, p-value)",
            "size": f"{sampled}, {len(support)} prefixes, {short}",
            "measured": float(chisquare(counts, samples * np.exp(log_law)).pvalue),
            "comparison": ">=",
            "bound": P_VALUE,
            "detail": f"chi2 = {chisquare(counts, samples * np.exp(log_law)).statistic:.1f} "
            f"at {len(support) - 1} degrees of freedom",
            "erratum": ERRATUM,
            "form": "corrected",
        },
        {
            "check": "prefix-chi2-literal",
            "statement": "Eq. (3) as printed, normalised, is not the law of the chain in the text: the same test "
            "rejects it (p-value)",
            "size": f"{sampled}, {len(support)} prefixes, {short}",
            "measured": float(chisquare(counts, samples * literal / literal.sum()).pvalue),
            "comparison": "<=",
            "bound": P_VALUE,
            "erratum": ERRATUM,
            "form": "printed",
        },
        {
            "check": "literal-total-mass",
            "statement": "Eq. (3), which is printed up to a constant and without the factor 1/k per open at depth 1, "
            "needs one: its weights do not add up to 1",
            "size": long,
            "measured": mass,
            "comparison": "beyond",
            "bound": 1.0,
            "tolerance": 1.0,
            "detail": "the chain in the text is used",
        },
        {
            "check": "depth-zero",
            "claim": "1",
            "part": f"depth 0 at length {LONG}",
            "statement": f"The share of prefixes at depth 0 after {LONG} tokens is 1/4",
            "size": f"{sampled}, {long}",
            "measured": float((dyck.depths(drawn)[:, -1] == 0).mean()),
            "comparison": "within",
            "bound": 0.25,
            "tolerance": DEPTH_TOLERANCE,
            "detail": f"exact: {depth_law[0]:.6f}",
        },
        {
            "check": "depth-chi2",
            "statement": f"The depth after {LONG} tokens follows the exact law (chi-squared test, p-value)",
            "size": f"{sampled}, {long}",
            "measured": _p_value(np.bincount(dyck.depths(drawn)[:, -1], minlength=DEPTH + 1), depth_law),
            "comparison": ">=",
            "bound": P_VALUE,
        },
        {
            "check": "complete-length-chi2",
            "statement": "Lengths of complete strings follow the exact law after rejection (chi-squared test, p-value)",
            "source": "Wen et al. 2023, section 4.1 and D.1",
            "size": f"{sampled}, length <= {MAX_LENGTH}, k={K}, D={DEPTH}",
            "measured": _p_value(lengths, length_law),
            "comparison": ">=",
            "bound": P_VALUE,
            "detail": f"acceptance {acceptance:.4f}, mean length {length_law @ np.arange(len(length_law)):.3f}",
        },
    ]


def _counts(tokens: NDArray, support: NDArray) -> NDArray[np.int64]:
    """Count how often each row of ``support`` (in lexicographic order) occurs among ``tokens``."""
    base = (2 * K + 1) ** np.arange(support.shape[1])[::-1]
    return np.bincount(np.searchsorted(support @ base, tokens @ base), minlength=len(support))


def _p_value(counts: NDArray, law: NDArray) -> float:
    """Return the p-value of the chi-squared test; 0 where something occurred that the law excludes."""
    if counts[law == 0].any():
        return 0.0
    return float(chisquare(counts[law > 0], counts.sum() * law[law > 0]).pvalue)


def _number_of_prefixes(length: int) -> float:
    """Return the number of prefixes of this length, by recursion over depths: an open has k choices, a closer one."""
    at = np.zeros(DEPTH + 1)
    at[0] = 1
    for _ in range(length):
        at = K * np.concatenate([[0], at[:-1]]) + np.concatenate([at[1:], [0]])
    return float(at.sum())
