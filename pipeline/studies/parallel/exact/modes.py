"""The modes of block dynamics, and what its masks can teach a model (beyond the source).

What is said of a model without restrictions holds for one that can be every law, or every conditional law of every
masked row. To first order in the errors both are the same: the stationary law of block dynamics with learned
conditional laws errs by g with (I - P) g = e, where e is the mean error of the conditional laws' logarithms, and so
does the maximum of the pseudolikelihood, whose second derivatives are the Dirichlet form of P.
"""

from __future__ import annotations

import numpy as np

from pipeline.languages.ising import Floats
from pipeline.studies.parallel.exact import chains
from pipeline.studies.parallel.exact.estimation import Scheme


def relaxation(p_S: Floats, masked: Scheme) -> tuple[Floats, Floats]:
    """Return 1 / (1 - lambda) of all modes but the constant one, ascending, and the slowest of them as a function (S,).

    The function has mean 0 and variance 1 under ``p_S``. The largest number is the Poincare constant C. Of a model
    without restrictions that saw n samples they are n times the variance along each mode, so that their sum over 2 n is
    the expected divergence of its law from the true one, where n is large.
    """
    A = chains.symmetrised(chains.block_dynamics(p_S, masked), p_S)
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return 1 / (1 - values[:-1]), vectors[:, -2] / np.sqrt(p_S)


def stationary(P_RxSxS: Floats) -> Floats:
    """Return (R, S) the laws that chains leave as they are, each chain with one such law."""
    R, S, _ = P_RxSxS.shape
    system = np.concatenate([np.eye(S) - P_RxSxS.swapaxes(1, 2), np.ones((R, 1, S))], 1)
    right = np.concatenate([np.zeros(S), [1.0]])
    laws: Floats = np.linalg.solve(system.swapaxes(1, 2) @ system, (system.swapaxes(1, 2) @ right)[..., None])[..., 0]
    return np.maximum(laws, 0.0) / np.maximum(laws, 0.0).sum(1, keepdims=True)


def learned_chain(conditionals_RxCxJ: Floats, states_CxJ: np.ndarray, weights_C: Floats) -> Floats:
    """Return (R, S, S) block dynamics whose steps are conditional laws that models say, one for each context.

    ``states_CxJ`` are the states that fit each context, ``weights_C`` the probability of its mask.
    """
    states = int(states_CxJ.max()) + 1
    P = np.zeros((len(conditionals_RxCxJ), states, states))
    for c, fits in enumerate(states_CxJ):
        P[:, fits[:, None], fits[None, :]] += weights_C[c] * conditionals_RxCxJ[:, c, None, :]
    return P
