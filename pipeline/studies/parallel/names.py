"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

FLAT, MODES = "flat", "modes"  # PAR-D2, PAR-D3: targets of Figures 4.1 and 4.2
SIZES = (1, 2, 3, 4)  # k, positions that are masked, of the four spins of both

# Samples, and models that are fitted to them
DRAWS = {FLAT: "parallel-draws-flat", MODES: "parallel-draws-modes"}
FITS = {(target, k): f"parallel-fits-{target}-{k}" for target in DRAWS for k in SIZES}

# Theory checks, experiments
ESTIMATION, SAMPLING, CLIQUES = "parallel-estimation", "parallel-sampling", "parallel-cliques"
MASKING, HITTING, PROPOSITIONS, DESIGN = (
    *("parallel-masking", "parallel-hitting"),
    *("parallel-propositions", "parallel-design"),
)

# Parameters that lack one of these are refused at the start.
RUNS = tuple(FITS.values())
DATASETS = tuple(DRAWS.values())
THEORY = (ESTIMATION, SAMPLING, CLIQUES)

SOURCE = "Li 2025, {}"
