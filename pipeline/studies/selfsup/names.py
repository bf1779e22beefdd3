"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

# Hidden Markov models (section 2.2): members of the dataset, runs, theory checks, experiments
PUBLISHED, TWINS, POPULATION, SAMPLED, FITTED, RANKS, PLAYED, MEANS, LEARNT_MEANS = HMMS = (
    *("selfsup-hmms-published", "selfsup-hmms-twins", "selfsup-hmms-population", "selfsup-hmms-sampled"),
    *("selfsup-hmms-fitted", "selfsup-hmms-ranks", "selfsup-hmms-played"),
    *("selfsup-hmms-means", "selfsup-hmms-learnt-means"),
)
HMM_RUNS = ("selfsup-tables-1", "selfsup-tables-2", "selfsup-tables-3")  # by case of Theorem 7
HMM_THEORY = ("selfsup-hmm-pairs", "selfsup-hmm-tensors", "selfsup-hmm-gaussian")
IDENTITY, RECOVERY, FITS, GAUSSIAN, DETECTION = (
    *("selfsup-hmm-identity", "selfsup-hmm-recovery", "selfsup-hmm-fits"),
    *("selfsup-hmm-gaussians", "selfsup-hmm-detection"),
)

# Parameters that lack one of these are refused at the start.
RUNS: tuple[str, ...] = (*HMM_RUNS,)
DATASETS: tuple[str, ...] = (*HMMS,)
THEORY: tuple[str, ...] = (*HMM_THEORY,)

SOURCE = "Liu 2024, {}"
