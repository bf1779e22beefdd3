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

# Diffusions (section 2.1): datasets, runs by m, theory checks, experiments
OU_PATHS, LOGCOSH = DIFFUSIONS = ("selfsup-ou-paths", "selfsup-logcosh-pairs")
LOGCOSH_RUNS = {m: f"selfsup-logcosh-{m}" for m in (1000, 4000, 16000, 64000, 1000000)}
DIFFUSION_THEORY = ("selfsup-diffusion-ratios", "selfsup-diffusion-mixing")
BOUNDS, KERNELS, SPAN, NETWORK, CLOSENESS = (
    *("selfsup-diffusion-bounds", "selfsup-diffusion-recovery", "selfsup-diffusion-span"),
    *("selfsup-diffusion-network", "selfsup-diffusion-closeness"),
)

# Parameters that lack one of these are refused at the start.
RUNS: tuple[str, ...] = (*HMM_RUNS, *LOGCOSH_RUNS.values())
DATASETS: tuple[str, ...] = (*HMMS, *DIFFUSIONS)
THEORY: tuple[str, ...] = (*HMM_THEORY, *DIFFUSION_THEORY)

SOURCE = "Liu 2024, {}"
