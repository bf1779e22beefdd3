"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

FLAT, MODES = "flat", "modes"  # PAR-D2, PAR-D3: targets of Figures 4.1 and 4.2
SIZES = (1, 2, 3, 4)  # k, positions that are masked, of the four spins of both

# Samples, and models that are fitted to them
DRAWS = {FLAT: "parallel-draws-flat", MODES: "parallel-draws-modes"}
FITS = {(target, k): f"parallel-fits-{target}-{k}" for target in DRAWS for k in SIZES}

# The same for masked Transformers, by the size of their masks
SCHEME_DRAWS = "parallel-schemes"
MASKED = {k: f"parallel-masked-{k}" for k in (1, 2, 4)}

# Sets of masks that claims compare (`schemas.parallel.tables.SCHEMES`)
SETS = ("singles", "misaligned pairs", "all pairs", "aligned pairs", "all")

# Theory checks, experiments
ESTIMATION, SAMPLING, CLIQUES = "parallel-estimation", "parallel-sampling", "parallel-cliques"
MASKING, HITTING, PROPOSITIONS, DESIGN = (
    *("parallel-masking", "parallel-hitting"),
    *("parallel-propositions", "parallel-design"),
)
LEARNING = "parallel-learning"

# Parameters that lack one of these are refused at the start.
RUNS = (*FITS.values(), *MASKED.values())
DATASETS = (*DRAWS.values(), SCHEME_DRAWS)
THEORY = (ESTIMATION, SAMPLING, CLIQUES)

SOURCE = "Li 2025, {}"
