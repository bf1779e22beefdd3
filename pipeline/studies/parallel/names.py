"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

FLAT, MODES = "flat", "modes"  # PAR-D2, PAR-D3: targets of Figures 4.1 and 4.2
SIZES = (1, 2, 3, 4)  # k, positions that are masked, of the four spins of both

# Samples, and models that are fitted to them
DRAWS = {FLAT: "parallel-draws-flat", MODES: "parallel-draws-modes"}
FITS = {(target, k): f"parallel-fits-{target}-{k}" for target in DRAWS for k in SIZES}

# Corpora by alpha, and translators
ALPHAS = (0.0, 0.25, 0.5, 1.0)
CORPORA = {alpha: f"parallel-synmt-{100 * alpha:.0f}" for alpha in ALPHAS}
SINGLE_CORPUS, LARGE_CORPUS, ANSWERS = "parallel-synmt-50-single", "parallel-synmt-large", "parallel-answers"
AR = {alpha: f"parallel-ar-{100 * alpha:.0f}" for alpha in ALPHAS}
PADIR = {alpha: f"parallel-padir-{100 * alpha:.0f}" for alpha in ALPHAS}
DIAL = 0.5  # alpha of all ablations
KEPT = {unmask: f"parallel-padir-50-u{100 * unmask:.0f}" for unmask in (0.0, 0.5, 0.6, 0.85)}
ONE_STAGE, NO_POSITION, MASKED_START, SINGLE, LARGE, TAUGHT = (
    *("parallel-padir-50-one-stage", "parallel-padir-50-no-position", "parallel-padir-50-mask"),
    *("parallel-padir-50-single", "parallel-padir-large", "parallel-taught"),
)

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
TRANSLATION, ATTENTION, LEARNING = "parallel-translation", "parallel-attention", "parallel-learning"

# Parameters that lack one of these are refused at the start.
TRANSLATORS = (
    *(*AR.values(), *PADIR.values(), *KEPT.values()),
    *(ONE_STAGE, NO_POSITION, MASKED_START, SINGLE, LARGE, TAUGHT),
)
RUNS = (*FITS.values(), *MASKED.values(), *TRANSLATORS)
DATASETS = (*DRAWS.values(), SCHEME_DRAWS, *CORPORA.values(), SINGLE_CORPUS, LARGE_CORPUS, ANSWERS)
THEORY = (ESTIMATION, SAMPLING, CLIQUES)

SOURCE = "Li 2025, {}"
