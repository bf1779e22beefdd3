"""DYCK-TH8: how errors travel through a Transformer layer (Wen et al. 2023, appendix C.5.1, Lemmas 5 to 8, 10 to 13).

Each inequality meets random inputs, drawn so that it is put to the test; statements that are wrong as printed
are shown failing beside the form that holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.studies.dyck.exact import pruning
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import LemmaCheck

Array = NDArray[np.float64]

M, M_A, W, M_LARGE = 4, 2, 8, 24  # of the network and the bilinear form that are pruned in Lemmas 6 and 7
CANDIDATES, PRUNED_ERROR = 12, 0.05
DIMENSION, LENGTH = 4, 6
FLOOR = 0.1  # C
LAYERS = 1  # L of Lemma 13: inputs of norm up to 4 L

ROUNDING = 1e-12
ALGEBRA = "algebra, not an experiment"  # size of a row that a computation by hand would decide as well


def check(entry: LemmaCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`; every inequality meets ``entry.draws`` random inputs."""
    lemmas = {5: _lemma_5, 6: _lemma_6, 7: _lemma_7, 8: _lemma_8, 10: _lemma_10, 11: _lemma_11, 12: _lemma_12}
    lemmas |= {13: _lemma_13}
    checks = [
        {"source": f"Wen et al. 2023, Lemma {number}"} | row
        for number, lemma in lemmas.items()
        for row in lemma(entry.draws, stream(seed, "dyck", theory_id, number))
    ]
    return theory.rows("dyck", theory_id, "Wen et al. 2023, appendix C.5.1", checks)


def _unit(matrices: Array) -> Array:
    """Return each matrix divided by its spectral norm."""
    return matrices / np.linalg.norm(matrices, 2, axis=(-2, -1), keepdims=True)


# Lemma 5


def composed_printed(first: tuple[Any, Any], second: tuple[Any, Any]) -> Any:
    """Return the bound of Lemma 5 as printed, each argument a pair (lambda, epsilon): (l2 + e1)(l1 + e2) - l1 l2."""
    return (second[0] + first[1]) * (first[0] + second[1]) - first[0] * second[0]


def composed(first: tuple[Any, Any], second: tuple[Any, Any]) -> Any:
    """Return the bound that the proof of Lemma 5 shows: l1 e2 + l2 e1 + e1 e2."""
    return (first[0] + first[1]) * (second[0] + second[1]) - first[0] * second[0]


def _lemma_5(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    first, second = (4.0, 0.1), (1.0, 0.3)  # multiplication by 4 and by 1, approximated by 4.1 and 1.3
    error = (first[0] + first[1]) * (second[0] + second[1]) - first[0] * second[0]
    # Random linear maps: g1, g2, and what approximates them.
    g1, g2, d1, d2 = (_unit(rng.normal(size=(draws, DIMENSION, DIMENSION))) for _ in range(4))
    l1, l2, e1, e2 = rng.exponential(size=(4, draws))
    f1, f2 = (
        scale[:, None, None] * g + e[:, None, None] * d for scale, g, e, d in ((l1, g1, e1, d1), (l2, g2, e2, d2))
    )
    random = np.linalg.norm(f2 @ f1 - (l1 * l2)[:, None, None] * (g2 @ g1), 2, axis=(1, 2))
    metadata = {"erratum": "dyck-lemma-5"}
    return [
        metadata
        | {
            "check": "lemma-5-printed",
            "statement": "The bound (l2 + e1)(l1 + e2) - l1 l2 as printed is exceeded, in either order of "
            "composition, by numbers: error over bound",
            "size": f"{ALGEBRA}: l1=4, e1=0.1, l2=1, e2=0.3",
            "measured": error / composed_printed(first, second),
            "comparison": ">=",
            "bound": 1.1,
            "detail": "the proof arrives at l1 e2 + l2 e1 + e1 e2, which is the other form",
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-5-corrected",
            "statement": "If f1, f2 approximate g1, g2, |g1(x)| <= l1 |x| and g2 is l2-Lipschitz, the error of "
            "f2(f1(x)) is at most (l1 + e1)(l2 + e2) - l1 l2: largest error over bound",
            "size": f"{draws} pairs of linear maps, d={DIMENSION}",
            "measured": float((random / composed((l1, e1), (l2, e2))).max()),
            "comparison": "<=",
            "bound": 1 + ROUNDING,
            "form": "corrected",
        },
    ]


# Lemmas 6 and 7


def _mask(rng: np.random.Generator) -> pruning.Mask:
    """Return a parent layer of which nothing is kept yet."""
    shape = pruning.Shape(M, M_A, W, 1, CANDIDATES, M_LARGE)
    return pruning.Mask(pruning.Parent(shape, int(rng.integers(2**32)), ("dyck", "lemmas")), 0)


def _multiply(left: NDArray[np.float64], right: NDArray[np.float64]) -> bool:
    """Return whether the product of two arrays exists."""
    try:
        left @ right
    except ValueError:
        return False
    return True


def _lemma_6(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    mask = _mask(rng)
    target = {"W_1": _unit(rng.normal(size=(W, M))), "W_2": _unit(rng.normal(size=(M, W)))}
    mask.network(target["W_1"], target["W_2"], np.arange(M))
    x = pruning.random_inputs(M, draws, 1, rng)
    outputs = pruning.network(mask.pruned(), pruning.padded(x, M_LARGE))
    error = outputs - pruning.padded(pruning.network(target, x), M_LARGE)
    metadata = {"erratum": "dyck-lemma-6"}
    return [
        metadata
        | {
            "check": "lemma-6-printed",
            "statement": "W_1 as printed, of size 4m x w, multiplies neither m nor 4m entries: products that exist",
            "size": f"{ALGEBRA}: shapes with m={M}, w={W}",
            "measured": float(sum(_multiply(np.ones((4 * M, W)), np.ones(n)) for n in (M, 4 * M))),
            "comparison": "<=",
            "bound": 0.0,
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-6-corrected",
            "statement": "With W_1 of size w x m, a pruned 4-layer network approximates g (printed: itself, f): "
            "largest |f~(x) - g(x)| / |x|",
            "size": f"m={M}, w={W}, n={CANDIDATES}, {draws} inputs",
            "measured": float((pruning.largest_column(error) / pruning.largest_column(x)).max()),
            "comparison": "<=",
            "bound": PRUNED_ERROR,
            "form": "corrected",
        },
    ]


def _lemma_7(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    mask = _mask(rng)
    form = _unit(rng.normal(size=(M, M)))
    mask.bilinear(form)
    left = mask.pruned()
    product = (left["W_K"].T @ left["W_Q"]).toarray()
    x, y = (pruning.random_inputs(M, draws, 1, rng)[..., 0] for _ in range(2))
    target = np.pad(form, (0, M_LARGE - M))
    error = np.abs(
        np.einsum("id,ij,jd->d", *(pruning.padded(x, M_LARGE), product - target, pruning.padded(y, M_LARGE)))
    )
    norm = np.sqrt(np.maximum((x**2).sum(0), (y**2).sum(0)))
    metadata = {"erratum": "dyck-lemma-7"}
    return [
        metadata
        | {
            "check": "lemma-7-printed",
            "statement": "W as printed, in R^m, leaves X'WX without a meaning: products that exist",
            "size": f"{ALGEBRA}: shapes with m={M}",
            "measured": float(_multiply(np.ones((M, 1)), y[:, :2])),
            "comparison": "<=",
            "bound": 0.0,
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-7-corrected",
            "statement": "For W of size m x m two pruned matrices give X'WX: largest error of an entry over |X|^2",
            "size": f"m={M}, n={CANDIDATES}, {draws} pairs of columns",
            "measured": float((error / norm**2).max()),
            "comparison": "<=",
            "bound": PRUNED_ERROR,
            "form": "corrected",
        },
    ]


# Lemma 8


def softmax(x: Array) -> Array:
    """Return the softmax of ``x`` along the last axis."""
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _lemma_8(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    epsilon = rng.uniform(1e-3, 1, (draws, 1))
    x = rng.normal(size=(draws, DIMENSION)) * rng.exponential(size=(draws, 1))
    y = x + epsilon * rng.choice([-1, 1], (draws, DIMENSION))  # corners move a softmax the most
    moved = np.abs(softmax(x) - softmax(y)).sum(1)
    return [
        {
            "check": "lemma-8",
            "statement": "sum |softmax(x) - softmax(y)| <= exp(2e) - 1 where no entry differs by more than e: "
            "largest ratio of the two sides",
            "size": f"{draws} pairs, d={DIMENSION}, e up to 1",
            "measured": float((moved / np.expm1(2 * epsilon[:, 0])).max()),
            "comparison": "<=",
            "bound": 1.0,
        }
    ]


# Lemmas 10 to 12


def _lemma_10(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    x = rng.normal(size=(DIMENSION, draws)) * FLOOR
    y = x + rng.normal(size=x.shape) * FLOOR * 10.0 ** rng.uniform(-4, 1, draws)
    moved = np.linalg.norm(pruning.layer_norm(x, FLOOR) - pruning.layer_norm(y, FLOOR), axis=0)
    ratio = float((moved / np.linalg.norm(x - y, axis=0)).max() * FLOOR)
    size = f"{draws} pairs about the sphere of radius C, m={DIMENSION}, C={FLOOR}"
    return [
        {
            "check": "lemma-10",
            "statement": "LN_C is Lipschitz with constant 2/C: largest ratio, times C",
            "size": size,
            "measured": ratio,
            "comparison": "<=",
            "bound": 2.0,
        },
        {
            "check": "lemma-10-sharp",
            "statement": "LN_C is a projection to a ball and even Lipschitz with constant 1/C: largest ratio, times C",
            "size": size,
            "measured": ratio,
            "comparison": "<=",
            "bound": 1 + ROUNDING * 1e4,
            "detail": "at distances of 1e-4 C rounding is 1e-12 of the ratio",
        },
    ]


def _lemma_11(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    P, Q = (_unit(rng.normal(size=(draws, DIMENSION, DIMENSION))) for _ in range(2))
    x = rng.normal(size=(draws, DIMENSION, LENGTH))
    logits = np.swapaxes(x, 1, 2) @ Q @ x
    noise = rng.normal(size=(2, *logits.shape)) * 10.0 ** rng.uniform(-3, 0, (2, draws, 1, 1))
    sigma, A = (np.swapaxes(softmax(np.swapaxes(part, 1, 2)), 1, 2) for part in (logits, logits + noise[0]))
    B = P @ x + noise[1][:, :DIMENSION]
    e1 = np.abs(A - sigma).sum(1).max(1)
    px, e2 = (np.linalg.norm(part, axis=1).max(1) for part in (P @ x, B - P @ x))
    bound = e1 * px + e2
    before, after = (np.swapaxes(part, 0, 1) for part in (P @ x @ sigma, B @ A))
    plain = pruning.largest_column(after - before)
    normal = pruning.largest_column(pruning.layer_norm(after, FLOOR) - pruning.layer_norm(before, FLOOR))
    size = f"{draws} draws, d={DIMENSION}, N={LENGTH}, C={FLOOR}"
    return [
        {
            "check": "lemma-11-values",
            "statement": "|BA - Px softmax(x'Qx)| <= e1 |Px| + e2 in the 1,2-norm: largest ratio of the two sides",
            "size": size,
            "measured": float((plain / bound).max()),
            "comparison": "<=",
            "bound": 1 + ROUNDING,
        },
        {
            "check": "lemma-11-normal",
            "statement": "After LN_C the bound is 2/C times that: largest ratio of the two sides",
            "size": size,
            "measured": float((normal * FLOOR / 2 / bound).max()),
            "comparison": "<=",
            "bound": 1 + ROUNDING,
        },
    ]


def _lemma_12(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    x = rng.normal(size=(DIMENSION, draws)) * 10.0 ** rng.uniform(-3, 1, draws)
    wide = pruning.layer_norm(pruning.padded(x - x.mean(0), 3 * DIMENSION), FLOOR)
    return [
        {
            "check": "lemma-12",
            "statement": "LN_C([Px; 0]) = [LN_C(x); 0]: largest difference of an entry",
            "size": f"{draws} vectors, d={DIMENSION}, d'={3 * DIMENSION}, C={FLOOR}",
            "measured": float(np.abs(wide - pruning.padded(pruning.layer_norm(x, FLOOR), len(wide))).max()),
            "comparison": "<=",
            "bound": ROUNDING,
        }
    ]


# Lemma 13


def lipschitz_by_proof(moved: float) -> float:
    """Return, for L = 1, the constant, times C, that Lemma 11 gives where the softmax moves by ``moved``
    times epsilon and values have norms of at most 4."""
    return 2 * (moved * 4 + 1)


def _lemma_13(draws: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    ratios = []
    for _ in range(draws // 100):
        layer = {name: _unit(rng.normal(size=(DIMENSION, DIMENSION))) for name in ("W_V", "W_K", "W_Q")}
        x = 4 * LAYERS * pruning.random_inputs(DIMENSION, 100, LENGTH, rng)
        y = x + rng.normal(size=x.shape) * 10.0 ** rng.uniform(-5, -1, (100, 1))
        y *= np.minimum(1, 4 * LAYERS / np.sqrt((y**2).sum(0)))
        moved = pruning.attend(layer, x, FLOOR) - pruning.attend(layer, y, FLOOR)
        ratios.append(largest(pruning.largest_column(moved) / pruning.largest_column(x - y)))
    metadata = {"erratum": "dyck-lemma-13", "size": f"{ALGEBRA}: the steps of the proof with L={LAYERS}"}
    return [
        {
            "check": "lemma-13",
            "statement": "The attention module is Lipschitz with constant 200 L^2 / C on |X| <= 4L: largest ratio",
            "size": f"{draws // 100} modules, 100 pairs each, m={DIMENSION}, N={LENGTH}, L={LAYERS}, C={FLOOR}",
            "measured": largest(ratios),
            "comparison": "<=",
            "bound": 200 * LAYERS**2 / FLOOR,
            "detail": "a bound that is far from what random modules do",
        },
        metadata
        | {
            "check": "lemma-13-proof-printed",
            "statement": "The steps of the proof do not reach the constant 200: logits that differ by 16 L e give, "
            "by Lemmas 8 and 11, 2 (64 L x 4 L + 1) e / C (L^2 / C is the unit)",
            "measured": lipschitz_by_proof(64.0),
            "comparison": ">=",
            "bound": 200.0,
            "form": "printed",
        },
        metadata
        | {
            "check": "lemma-13-proof-corrected",
            "statement": "As e goes to 0 logits differ by 8 L e and exp(16 L e) - 1 is 16 L e, which proves the "
            "constant: 2 (16 L x 4 L + 1) e / C (L^2 / C is the unit)",
            "measured": lipschitz_by_proof(16.0),
            "comparison": "<=",
            "bound": 200.0,
            "form": "corrected",
        },
    ]
