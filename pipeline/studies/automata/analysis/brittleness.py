"""EXP-OODP, EXP-OODC, EXP-LEN and EXP-COVER: other probabilities, counts and lengths than in training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy import stats as scipy_stats

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.automata.measures import contrasts
from pipeline.studies.automata.measures.arms import Arm, arms, sequences
from pipeline.studies.automata.measures.contrasts import Floats, contrast, difference
from pipeline.studies.automata.names import C2, DYCK

SEEN = (1, 1000)  # how often a count must have occurred, m
BOTH, ALONE = "position and count", "count alone"


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return accuracy on shifted inputs, what coverage of counts predicts, and the contrasts that claims need."""
    with one_thread():
        known = arms(context, [*C2.values(), *DYCK.values()])
        rows: dict[str, list[dict[str, Any]]] = {"ood_p": [], "ood_count": [], "length_gen": []}
        for arm in known.values():
            for table, split, by in (
                ("ood_p", "probability", "p1"),
                ("ood_count", "count", "ones"),
                ("length_gen", "length", "length"),
            ):
                rows[table] += _probed(context, arm, split, by)
    frames = {name: contrasts.table(records) for name, records in rows.items()}
    learned = {name: _learned(context, known, frame) for name, frame in frames.items()}
    coverage = _coverage(context, known)
    comparisons = [
        *_probability(context, learned["ood_p"]),
        *_counts(context, learned["ood_count"]),
        *_lengths(context, learned["length_gen"]),
        *_covered(context, learned["ood_p"], coverage),
    ]
    return frames | {
        "coverage": contrasts.table(coverage),
        "contrasts": contrasts.compared(
            row | _left_out(context, known, row["contrast"]) for row in comparisons
        ),
    }


def _solves(context: Inputs, arm: Arm) -> list[int]:
    """Return the models that are right on inputs like those of training: elsewhere, others may just lack training."""
    return [
        r for r, held in zip(arm.replicas, arm.validation, strict=True) if held >= context.settings.solved
    ]


def _learned(context: Inputs, known: dict[str, Arm], frame: pl.DataFrame | None) -> pl.DataFrame | None:
    if frame is None or not frame.height:
        return None
    kept = [
        frame.filter(pl.col("replica").is_in(_solves(context, arm)), run=run) for run, arm in known.items()
    ]
    return pl.concat(kept)


def _left_out(context: Inputs, known: dict[str, Arm], contrast: str) -> dict[str, Any]:
    """Return how many models of the arm that a contrast is about are left out, and why."""
    for arm in known.values():
        if contrast.startswith(f"{arm.task.name} {arm.arm} ") or (
            contrast.startswith("coverage") and (arm.task.name, arm.arm) == ("c2", "gpt")
        ):
            count = len(arm.replicas) - len(_solves(context, arm))
            if count:
                return {
                    "n_excluded": count,
                    "excluded_reason": f"below {context.settings.solved:g} on inputs like those of training",
                }
    return {}


def _probed(context: Inputs, arm: Arm, split: str, by: str) -> Iterator[dict[str, Any]]:
    frame = sequences(context, arm, split)
    trained = {"trained": int(sequences(context, arm)["length"][0])} if by == "length" else {}
    for (value,), part in frame.group_by(by, maintain_order=True):
        accuracy, _ = arm.accuracy(part)
        for replica, each in zip(arm.replicas, accuracy, strict=True):
            yield (
                arm.row_keys()
                | trained
                | {"replica": replica, by: value, "accuracy": each, "sequences": part.height}
            )


def _coverage(context: Inputs, known: dict[str, Arm]) -> list[dict[str, Any]]:
    """Return the accuracy of a count shortcut that guesses parities of counts that training showed too rarely.

    After N sequences at p = 1/2, the pair (t, c) was seen N C(t, c) 2^-t times on average (chapter 4.11).
    """
    arm = known.get(C2["gpt"])
    if arm is None:
        return []
    T = int(sequences(context, arm)["length"][0])
    N = int(arm.entry["batch"] * arm.entry["steps"])
    t, c = np.arange(1, T + 1)[:, None], np.arange(T + 1)[None]
    often = N * scipy_stats.binom.pmf(c, t, 0.5)
    rows = []
    for variant in (BOTH, ALONE):
        shown = often if variant == BOTH else np.broadcast_to(often.sum(0), often.shape)
        for seen in SEEN:
            unknown = shown < seen
            for p1 in sequences(context, arm, "probability")["p1"].unique().sort().to_list():
                guessed = (scipy_stats.binom.pmf(c, t, p1) * unknown).sum(1)
                rows.append(
                    {
                        "variant": variant,
                        "sequences": N,
                        "seen": seen,
                        "p1": p1,
                        "predicted": float(1 - guessed.mean() / 2),
                    }
                )
    return rows


def _by(frame: pl.DataFrame | None, column: str, **where: Any) -> dict[Any, Floats]:
    """Return accuracy of the models by a column, in the order of replicas."""
    if frame is None or not frame.height:
        return {}
    rows = frame.filter(**where).sort(column, "replica")
    return {key: part["accuracy"].to_numpy() for (key,), part in rows.group_by(column, maintain_order=True)}


def _probability(context: Inputs, frame: pl.DataFrame | None) -> Iterator[dict[str, Any]]:
    for arm in C2:
        accuracies = _by(frame, "p1", arm=arm)
        if accuracies:
            yield contrast(context, f"c2 {arm} p=0.5", stats.mean, accuracies[0.5])
            yield difference(context, f"c2 {arm} p=0.5 - p=0.95", accuracies[0.5], accuracies[0.95])
            yield difference(context, f"c2 {arm} p=0.05 - p=0.95", accuracies[0.05], accuracies[0.95])
            means = {p: each.mean() for p, each in accuracies.items()}
            worst = min(means, key=means.__getitem__)
            yield {
                "contrast": f"c2 {arm} worst p",
                "value": worst,
                "lo": None,
                "hi": None,
                "n": len(accuracies[0.5]),
            }


def _counts(context: Inputs, frame: pl.DataFrame | None) -> Iterator[dict[str, Any]]:
    for arm in C2:
        accuracies = _by(frame, "ones", arm=arm)
        if accuracies:
            T = max(accuracies)
            low = np.mean([accuracies[c] for c in accuracies if c < T / 4], axis=0)
            high = np.mean([accuracies[c] for c in accuracies if c > 3 * T / 4], axis=0)
            middle = np.mean([accuracies[c] for c in accuracies if T / 4 <= c <= 3 * T / 4], axis=0)
            yield difference(context, f"c2 {arm} low - high counts", low, high)
            yield difference(context, f"c2 {arm} middle - outer counts", middle, (low + high) / 2)


def _lengths(context: Inputs, frame: pl.DataFrame | None) -> Iterator[dict[str, Any]]:
    if frame is None or not frame.height:
        return
    T = int(frame["trained"][0])
    for task, names in (("c2", C2), ("dyck42", DYCK)):
        plain = _by(frame, "length", task=task, arm="gpt")
        for arm in names:
            accuracies = _by(frame, "length", task=task, arm=arm)
            if not {T, 2 * T} <= accuracies.keys():
                continue
            yield contrast(context, f"{task} {arm} T", stats.mean, accuracies[T])
            yield contrast(context, f"{task} {arm} 2T", stats.mean, accuracies[2 * T])
            yield difference(context, f"{task} {arm} T - 2T", accuracies[T], accuracies[2 * T])
            beyond = [accuracies[length].mean() for length in sorted(accuracies) if length >= T]
            falls = float(np.max(np.diff(beyond))) if len(beyond) > 1 else np.nan
            yield {
                "contrast": f"{task} {arm} largest rise beyond T",
                "value": falls,
                "lo": None,
                "hi": None,
                "n": len(accuracies[T]),
            }
            if arm != "gpt" and plain:
                yield difference(context, f"{task} {arm} - gpt at 2T", accuracies[2 * T], plain[2 * T])


def _covered(
    context: Inputs, frame: pl.DataFrame | None, coverage: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield how well each variant of the predictor goes with the learned curve (Pearson's correlation over p)."""
    accuracies = _by(frame, "p1", arm="gpt")
    for variant in (BOTH, ALONE):
        for seen in SEEN:
            rows = {
                row["p1"]: row["predicted"]
                for row in coverage
                if (row["variant"], row["seen"]) == (variant, seen)
            }
            if not rows or not accuracies:
                continue
            predicted = np.array([rows[p] for p in accuracies])
            models = np.array(list(accuracies.values()))  # (p, R)

            def correlation(
                sample: Floats, axis: int = -1, predicted: Floats = predicted, models: Floats = models
            ) -> Floats:
                """Of the mean curve over the models that ``sample`` picks."""
                picks = np.asarray(sample, int)
                curves = (
                    models[:, picks].mean(-1) if axis in (-1, picks.ndim - 1) else models[:, picks].mean(1)
                )
                x = predicted - predicted.mean()
                y = curves - curves.mean(0)
                scale = np.sqrt((x**2).sum() * (y**2).sum(0))
                with np.errstate(invalid="ignore"):
                    return np.asarray(np.tensordot(x, y, (0, 0)) / np.where(scale > 0, scale, np.nan))

            index = np.arange(models.shape[1], dtype=float)
            yield contrast(context, f"coverage {variant}, m={seen}", correlation, index)
