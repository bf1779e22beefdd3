"""Steps of a descent too long to be walked, from its modified equation (Hairer, Lubich & Wanner 2006, chapter IX)."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from pipeline.languages.exponential_families import mean_optimum
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import Array
from schemas.nce.tables import GD

RELATIVE, ABSOLUTE = 1e-9, 1e-11  # tolerances of the integration
FOREVER = 1e30
NEAR = 1e-5  # of the difference quotient along the direction of Newton's method


def steps(loss: str, optimizer: str, mean: float, eta: float, radius: float) -> float:
    """Return after how many steps of size ``eta`` from tau_q the distance to tau_* is ``radius``; NaN if never.

    A step x + eta f(x) lies on the flow of f - eta/2 f' f, up to terms of order eta^2. f is -gradient for GD, and then
    f' f = Hessian gradient; for Newton's method it is minus the Newton step, and f' f a central difference.
    """
    problem, optimum = log_ratio.mean_problem(loss, mean), mean_optimum(mean)[0, 0]

    def newton(delta: Array) -> Array:
        at = delta[None, None]
        step: Array = -np.linalg.solve(problem.hessian(at)[0, 0], problem.gradient(at)[0, 0])
        return step

    def field(_: float, delta: Array) -> Array:
        at = delta[None, None]
        if optimizer == GD:
            gradient = problem.gradient(at)[0, 0]
            return -gradient - eta / 2 * (problem.hessian(at)[0, 0] @ gradient)
        direction = newton(delta)
        shift = NEAR / np.linalg.norm(direction) * direction
        turn = (newton(delta + shift) - newton(delta - shift)) * (np.linalg.norm(direction) / (2 * NEAR))
        return direction - eta / 2 * turn

    def arrived(_: float, delta: Array) -> float:
        return float(np.linalg.norm(delta - optimum)) - radius

    arrived.terminal = True  # type: ignore[attr-defined]
    solution = solve_ivp(
        field, (0.0, FOREVER), np.zeros(2), method="LSODA", events=arrived, rtol=RELATIVE, atol=ABSOLUTE
    )
    return float(solution.t_events[0][0]) / eta if len(solution.t_events[0]) else float("nan")
