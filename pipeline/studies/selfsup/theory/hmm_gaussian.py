"""Posteriors and predictors of conditionally Gaussian HMMs (Liu 2024, Lemmas 7, 8, Theorems 8, 9; chapter 5.12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import row
from pipeline.languages import gaussian_hmm, hmm
from pipeline.languages.hmm import Floats
from pipeline.models.masked_prediction import gaussian
from pipeline.studies.selfsup.names import SOURCE
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.selfsup.params import HmmGaussian

LEMMA_7, LEMMA_8, THEOREM_8, THEOREM_9 = (SOURCE.format(at) for at in ("Lemma 7", "Lemma 8", "Theorem 8", "Theorem 9"))
Drawn = list[tuple[Floats, Floats]]
FALSE = "selfsup-theorem-8-middle"


def check(entry: HmmGaussian, key: str, seed: int) -> pl.DataFrame:
    """Return rows on the mirror image of means, what fixes a posterior, and recovery from triples and densities."""
    found: list[dict[str, Any]] = []
    for d, k in entry.shapes:
        rng = stream(seed, entry.study, key, d, k)
        models = [
            gaussian_hmm.draw(rng, d, k, power=2, offset=0.02, least_singular=entry.least_singular)
            for _ in range(entry.draws)
        ]
        points = 2 * rng.standard_normal((d, entry.points))
        name, size = f"{d}-{k}", f"d = {d}, k = {k}, {entry.draws} models, {entry.points} points"
        found += [*_mirror(models, points, name, size), *_posteriors(models, points, name, size, rng)]
        found += [*_triples(models, name, size, rng), *_density(models, name, size, rng)]
        if d > k:
            found += _further(models, points, name, size, rng)
    rng = stream(seed, entry.study, key, "printed")
    found += [*_printed(rng, entry), *_middle(rng, entry)]
    return rows(entry.study, key, LEMMA_7, found)


# --- Lemmas 7 and 8 ------------------------------------------------------------------------------------


def _mirror(models: Drawn, points: Floats, name: str, size: str) -> Iterator[dict[str, Any]]:
    same, norms, shifts, sums, predicted = [], [], [], [], []
    for means, transition in models:
        reflection, _ = gaussian_hmm.householder(means)
        other = reflection @ means
        same.append(np.abs(gaussian_hmm.posterior(other, points) - gaussian_hmm.posterior(means, points)).max())
        norms.append(np.abs(np.linalg.norm(other, axis=0) - 1).max())
        shifts.append(np.abs((other - means) - (other - means)[:, :1]).max())
        moved = np.linalg.pinv(other) @ means @ transition
        sums.append(np.abs(moved.sum(0) + 1).max())
        predicted.append(
            np.abs(
                gaussian_hmm.predictor(other, moved, points) - gaussian_hmm.predictor(means, transition, points)
            ).max()
        )
    part = {"claim": "8", "part": "the mirror image"}
    yield part | row(
        f"mirror-posterior-{name}", "H M has the posterior of M: largest difference", size, max(same), "<=", 1e-12
    )
    yield part | row(f"mirror-norms-{name}", "Its means have norm 1: largest difference", size, max(norms), "<=", 1e-12)
    yield part | row(
        f"mirror-shift-{name}", "H M - M moves all means alike: largest difference", size, max(shifts), "<=", 1e-12
    )
    source = {"source": SOURCE.format("Eq. 2.58")}
    yield (
        part
        | source
        | row(
            f"mirror-predictor-{name}",
            "With T~ = pinv(H M) M T it has the predictor of x2 from x1: largest difference",
            size,
            max(predicted),
            "<=",
            1e-12,
        )
    )
    yield (
        part
        | source
        | row(f"mirror-sums-{name}", "Columns of that T~ sum to -1: largest difference", size, max(sums), "<=", 1e-10)
    )


def _posteriors(
    models: Drawn, points: Floats, name: str, size: str, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Yield rows on Lemma 8: a linear map between posteriors, for permuted, perturbed and other means."""
    relabelled, perturbed, independent = [], [], []
    for means, _ in models:
        k = means.shape[1]
        phi = gaussian_hmm.posterior(means, points)
        order = rng.permutation(k)
        near = means + 0.05 * rng.standard_normal(means.shape)
        far = rng.standard_normal(means.shape)
        near, far = near / np.linalg.norm(near, axis=0), far / np.linalg.norm(far, axis=0)
        relabelled.append(_unexplained(phi, gaussian_hmm.posterior(means[:, order], points)))
        perturbed.append(_unexplained(phi, gaussian_hmm.posterior(near, points)))
        independent.append(_unexplained(phi, gaussian_hmm.posterior(far, points)))
    words = "Least squares phi = R phi~, largest residual where phi~ is of "
    part = {"claim": "8", "part": "linear maps of posteriors", "source": LEMMA_8}
    yield part | row(f"linear-relabelled-{name}", f"{words}permuted means: largest", size, max(relabelled), "<=", 1e-12)
    yield part | row(
        f"linear-perturbed-{name}", f"{words}means that differ by 5 %: smallest", size, min(perturbed), ">=", 1e-3
    )
    yield part | row(f"linear-independent-{name}", f"{words}other means: smallest", size, min(independent), ">=", 1e-2)


def _unexplained(phi: Floats, other: Floats) -> float:
    """Return the largest residual of phi = R phi~ with the best R."""
    fitted = np.linalg.lstsq(other.T, phi.T, rcond=None)[0].T
    return float(np.abs(phi - fitted @ other).max())


def _further(models: Drawn, points: Floats, name: str, size: str, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on Lemma 7 for d > k: a sphere of means has one posterior, unless the span of means is fixed as well.

    M - v 1' has the posterior of M and norms 1 where |v|^2 = 2 mu_i . v, the same for all i: v = s n + r u, n normal to
    the means' affine hull at distance h, u orthogonal to all means, and s^2 + r^2 = 2 s h.
    """
    same, apart, span = [], [], []
    for means, _ in models:
        _, normal = gaussian_hmm.householder(means)
        height = normal @ means[:, 0]
        outside = np.linalg.svd(means)[0][:, means.shape[1]]
        angle = rng.uniform(0.5, 2.5)  # not near 0 or pi, where v is 0 or that of H
        move = height * ((1 + np.cos(angle)) * normal + np.sin(angle) * outside)
        other = means - move[:, None]
        assert np.allclose(np.linalg.norm(other, axis=0), 1)
        same.append(np.abs(gaussian_hmm.posterior(other, points) - gaussian_hmm.posterior(means, points)).max())
        reflection, _ = gaussian_hmm.householder(means)
        apart.append(min(np.linalg.norm(other - each) for each in (means, reflection @ means)))
        span.append(np.linalg.matrix_rank(np.hstack([means, other]), tol=1e-8) - means.shape[1])
    note: dict[str, Any] = {"erratum": "selfsup-lemma-7", "source": LEMMA_7}
    yield note | row(
        f"wider-printed-{name}",
        "For d > k other means than M and H M, of norm 1 and rank k, have the posterior of M: "
        "largest difference of posteriors",
        size,
        max(same),
        "<=",
        1e-12,
        form="printed",
        detail=f"Frobenius distance from the closer of M and H M at least {min(apart):.2g}",
    )
    yield note | row(
        f"wider-corrected-{name}",
        "They leave the span of M, which an equal predictor does not allow: fewest further dimensions",
        size,
        min(span),
        ">=",
        1,
        form="corrected",
    )


# --- Theorems 8 and 9 ----------------------------------------------------------------------------------


def _triples(models: Drawn, name: str, size: str, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    errors: dict[int, list[float]] = {case: [] for case in hmm.CASES}
    for means, transition in models:
        d, k = means.shape

        def oracle(points: Floats, means: Floats = means, transition: Floats = transition) -> Floats:
            return gaussian_hmm.triple_predictor(means, transition, points, 2)

        points = rng.standard_normal((d, k))
        for case in (1, 3):
            predictions = gaussian_hmm.triple_predictor(means, transition, points, case)
            found = gaussian.recover_from_end(predictions, points, case, rng)
            errors[case].append(max(map(float, hmm.distance(means, transition, found[0], found[1]))))
        candidates = gaussian.recover_from_middle(oracle, d, k, rng)
        first = candidates[0]  # that with sums of rows nearest to 1: the truth is not asked
        errors[2].append(max(map(float, hmm.distance(means, transition, first.means, first.transition))))
    for case, words in (
        (1, "from its first token, with signs resolved"),
        (2, "from its middle token, by the one of two candidates whose T is closer to stochastic"),
        (3, "from its last token, with signs resolved"),
    ):
        yield row(
            f"triple-{case}-{name}",
            f"M and T are recovered from predictors of two tokens of a triple {words}: largest error",
            size,
            max(errors[case]),
            "<=",
            1e-8,
            source=THEOREM_8,
            claim="20",
            part="recovery from triples",
        )


def _density(models: Drawn, name: str, size: str, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    errors = []
    for means, transition in models:
        first, second = rng.standard_normal((2, *means.shape))
        found = gaussian.transition_from_density(*gaussian.densities(means, transition, first, second))
        errors.append(np.abs(found - transition).max())
    yield row(
        f"density-{name}",
        "T is recovered from p(x2 | x1) at k pairs of points: largest error",
        size,
        max(errors),
        "<=",
        1e-8,
        source=SOURCE.format("Theorem 9, Eq. 2.78, 2.79"),
        claim="8",
        part="recovery from densities",
    )


def _printed(rng: np.random.Generator, entry: HmmGaussian) -> Iterator[dict[str, Any]]:
    """Yield rows on printed formulas that do not hold as they stand."""
    d = k = 3
    means, transition = gaussian_hmm.draw(rng, d, k, power=2, offset=0.02, least_singular=entry.least_singular)
    size = "d = k = 3"
    ones, inverse = np.ones(k), np.linalg.inv(means)
    note: dict[str, Any] = {"erratum": "selfsup-lemma-7-unit", "source": SOURCE.format("Lemma 7, end of its proof")}
    printed = ones @ inverse.T @ inverse.T @ ones
    length = np.linalg.norm(inverse.T @ ones)
    yield note | row(
        "unit-printed",
        "v / sqrt(1' M^-T M^-T 1) is no unit vector: its squared length",
        size,
        length**2 / printed,
        "beyond",
        1,
        tolerance=0.01,
        form="printed",
    )
    yield note | row(
        "unit-corrected",
        "With 1' M^-1 M^-T 1, as in the lemma, it is: its squared length",
        size,
        length**2 / (ones @ inverse @ inverse.T @ ones),
        "within",
        1,
        tolerance=1e-12,
        form="corrected",
    )
    points = rng.standard_normal((d, k))
    weights = np.einsum("dn,nab->dab", points, gaussian_hmm.triple_predictor(means, transition, points, 2))
    pair = np.einsum("ai,bi->iab", means @ transition.T, means @ transition)
    phi = gaussian_hmm.posterior(means, points)
    note = {"erratum": "selfsup-eq-2-76", "source": SOURCE.format("Eq. 2.76")}
    for form, first in (("printed", points @ phi.T @ transition.T), ("corrected", points @ phi.T)):
        apart = np.abs(np.einsum("di,iab->dab", first, pair) - weights).max()
        words = "X Phi' T'" if form == "printed" else "X Phi'"
        yield note | row(
            f"middle-{form}",
            f"Of the middle token, A = {words} gives the tensor: largest difference",
            size,
            apart,
            *((">=", 1e-3) if form == "printed" else ("<=", 1e-12)),
            form=form,
        )
    signs = np.array([1.0, -1.0, 1.0])
    weights = np.einsum("dn,nab->dab", points, gaussian_hmm.triple_predictor(means, transition, points, 1))
    parts = points @ (transition @ phi).T, means * signs, means @ transition * signs
    note = {"erratum": "selfsup-theorem-8-sign", "source": SOURCE.format("Theorem 8, case 1")}
    yield note | row(
        "sign-printed",
        "A mean and its image with the other sign give the same tensor and norms: largest difference",
        size,
        np.abs(hmm.assembled(*parts) - weights).max(),
        "<=",
        1e-14,
        form="printed",
    )
    apart = np.abs(gaussian_hmm.posterior(means * signs, points) - phi).max()
    yield note | row(
        "sign-corrected",
        "The posterior tells the sign: difference of posteriors",
        size,
        apart,
        ">=",
        0.01,
        form="corrected",
    )


def _middle(rng: np.random.Generator, entry: HmmGaussian) -> Iterator[dict[str, Any]]:
    """Yield rows on Theorem 8 for the middle token: where M'M has rows of one sum, H M and 2/k 11' - T fit as well.

    Columns of M T and M T' are known up to a common factor alone; the factor -1 is that of the mirror image, which the
    proof excludes by Theorem 5, where there is no factor.
    """
    shown = SOURCE.format("Theorem 8, case 2")
    note: dict[str, Any] = {"erratum": FALSE, "source": shown}
    cases: list[tuple[str, str, Drawn]] = [
        ("two-states", "any two means", [_two_means(rng, entry) for _ in range(entry.draws)]),
        ("orthonormal", "orthonormal means, entries of T up to 2/k", [_orthonormal(rng) for _ in range(entry.draws)]),
    ]
    for name, which, models in cases:
        same, apart, other_tasks = [], [], []
        for means, transition in models:
            other, moved = gaussian.mirrored(means, transition)
            gaussian_hmm.check(other, moved)  # Assumptions 5, 8 and 9
            points = 2 * rng.standard_normal((len(means), entry.points))
            differences = [
                np.abs(
                    gaussian_hmm.triple_predictor(means, transition, points, case)
                    - gaussian_hmm.triple_predictor(other, moved, points, case)
                ).max()
                for case in hmm.CASES
            ]
            same.append(differences[1])
            other_tasks.append(min(differences[0], differences[2]))
            apart.append(float(hmm.distance(means, transition, other, moved)[0]))
        size = f"{which}, {len(models)} models, {entry.points} points"
        yield note | row(
            f"middle-alike-{name}",
            "Two models that meet all assumptions predict the outer tokens from the middle one "
            "alike: largest difference",
            size,
            max(same),
            "<=",
            1e-12,
            form="printed",
            detail=f"Frobenius distance of means, under the best relabelling, at least {min(apart):.2g}",
        )
        yield note | row(
            f"middle-told-{name}",
            "Predictions from the first or the last token tell them apart: smallest largest difference",
            size,
            min(other_tasks),
            ">=",
            1e-3,
            form="corrected",
        )
    generic = [
        gaussian_hmm.draw(rng, 4, 3, power=2, offset=0.02, least_singular=entry.least_singular)
        for _ in range(entry.draws)
    ]
    wrong = [np.abs(gaussian.mirrored(*model)[1].sum(1) - 1).max() for model in generic]
    yield note | row(
        "middle-generic",
        "Of other means the second model's T has rows that do not sum to 1: smallest largest difference",
        f"d = 4, k = 3, {len(generic)} models",
        min(wrong),
        ">=",
        1e-3,
        form="corrected",
    )


def _two_means(rng: np.random.Generator, entry: HmmGaussian) -> tuple[Floats, Floats]:
    return gaussian_hmm.draw(rng, 4, 2, power=2, offset=0.02, least_singular=entry.least_singular)


def _orthonormal(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return three orthonormal means in four dimensions and a T without an entry above 2/3."""
    means = np.linalg.qr(rng.standard_normal((4, 3)))[0]
    while True:
        transition = hmm.sinkhorn(rng.random((3, 3)) + 0.3)
        if transition.max() < 2 / 3 and np.linalg.matrix_rank(transition, tol=1e-3) == 3:
            return means, transition
