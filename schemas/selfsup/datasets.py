"""Datasets of the study, a model for each kind."""

from __future__ import annotations

from schemas.selfsup.diffusions import PairTable, Trajectories
from schemas.selfsup.hmm import HmmParam

HMMS, GAUSSIAN_HMMS = "hmms", "gaussian_hmms"
TRAJECTORIES, PAIRS = "trajectories", "pairs"

SCHEMA = {HMMS: HmmParam, GAUSSIAN_HMMS: HmmParam, TRAJECTORIES: Trajectories, PAIRS: PairTable}
