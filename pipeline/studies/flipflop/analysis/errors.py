"""E2 to E12: where Transformers err, and what changes that (sections 3.5.2, 3.5.4, 3.5.6.2 to 3.5.6.4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain

import numpy as np
import polars as pl
from scipy import stats as scipy_stats

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import flipflop as language
from pipeline.models.flipflop import exact
from pipeline.studies.flipflop.measures import contrasts, dilution, maps, reading
from pipeline.studies.flipflop.measures.contrasts import Floats, Row, decades, resampled, share, single
from pipeline.studies.flipflop.measures.reading import OUT, Config
from pipeline.studies.flipflop.names import (
    BASE,
    EMBED,
    EMBED_HALF,
    EPOCHS,
    FACTORIAL,
    FRESH,
    GENERATIVE,
    MIXTURE,
    SHARP,
    SINE,
)

GRAMS = (5, 11, 21, 51, 201)
SHOWN = 50  # sequences on which the sharpness of attention is measured


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return errors of all models with their summaries and comparisons, and what n-grams could do."""
    final: list[Row] = []
    binned: list[Row] = []
    sharp: list[Row] = []
    with one_thread():
        configs = reading.configs(context)
        for config in configs.values():
            rows, bins = reading.final(context, config)
            final, binned = final + rows, binned + bins
            sharp += _sharpness(context, config)
        curves = pl.concat(reading.curves(context, config) for config in configs.values())
    errors = pl.DataFrame(final)
    known = Known(context, errors, curves, pl.DataFrame(sharp), configs)
    factorial, variance = _factorial(known)
    return {
        "data_stats": _data_stats(context),
        "configs": pl.DataFrame(
            [reading.described(each) for each in configs.values()], infer_schema_length=None
        ),
        "final": errors,
        "curves": curves,
        "by_distance": pl.DataFrame(binned),
        "violin": reading.violins(errors),
        "sharpness": pl.DataFrame(sharp),
        "seed_factorial": factorial,
        "seed_variance": variance,
        "ngram": pl.DataFrame(list(_ngrams(context))),
        "pareto": _pareto(errors),
        "contrasts": contrasts.table(_contrasts(known)),
    }


def _data_stats(context: Inputs) -> pl.DataFrame:
    rows = []
    for dataset in context.datasets():
        frame = context.dataset(dataset)
        for (name, length, p), part in frame.group_by("set", "length", "p_ignore", maintain_order=True):
            tokens = reading.matrix(part["tokens"])
            pairs, n, p_read = tokens.shape[1] // 2, len(tokens), (1 - float(str(p))) / 2
            counts = (tokens[:, 0::2] == language.READ).sum(1)
            expected = 1 + (pairs - 2) * p_read
            deviation = np.sqrt((pairs - 2) * p_read * (1 - p_read) / n)
            rows.append(
                {
                    "dataset": dataset, "set": name, "length": length, "p_ignore": p, "n_seq": n,
                    "n_distinct": len(np.unique(tokens, axis=0)), "n_reads": int(counts.sum()),
                    "reads_mean": counts.mean(), "reads_expected": expected,
                    "z": (counts.mean() - expected) / deviation,
                }
            )  # fmt: skip
    return pl.DataFrame(rows)


def _sharpness(context: Inputs, config: Config) -> list[Row]:
    """Return how sharp the attention of each model is on strings of the training language."""
    tokens, layers = reading.held(context, config)["val"][:SHOWN, :-1], config.entry["layers"]
    _, recorded = config.forward(tokens, maps.names(layers, maps.PATTERN, maps.INPUTS))
    patterns = maps.stacked(recorded, maps.PATTERN, layers)
    slack = dilution.slack(config, patterns, maps.stacked(recorded, maps.INPUTS, layers))
    largest = patterns.max(-1).mean((1, 2, 3, 4))
    entropy = -(patterns * np.log(patterns + 1e-12)).sum(-1).mean((1, 2, 3, 4))
    return [
        {"run": config.name, "replica": r, "max_weight": float(m), "entropy": float(max(h, 0.0))} | least
        for r, m, h, least in zip(config.replicas, largest, entropy, slack, strict=True)
    ]


def _ngrams(context: Inputs) -> Iterator[Row]:
    """Yield the least error of a predictor that sees the last n tokens, averaged over all reads of a set.

    The formula follows from the definition of the language (section 3.5.3).
    """
    lengths = {reading.matrix(context.dataset("flipflop-strings")["tokens"]).shape[1]}
    for length in sorted(lengths):
        for name, p in (("val", 0.8), ("sparse", 0.98), ("dense", 0.1)):
            for n in GRAMS:
                error = exact.ngram_error(n, length, (1 - p) / 2, (1 - p) / 2)
                yield {"n": n, "set": name, "length": length, "error": error}


def _pareto(errors: pl.DataFrame) -> pl.DataFrame:
    """Return median errors of each run on both sets, and whether no other run is better on one and no worse on the
    other."""
    wide = (
        errors.filter(pl.col("set").is_in(OUT))
        .group_by("run", "family", "set", maintain_order=True)
        .agg(pl.col("error").median(), pl.len().alias("n"))
        .pivot("set", index=["run", "family", "n"], values="error")
    )
    at = wide.select(*OUT).to_numpy()
    worse = [bool(((at <= own).all(1) & (at < own).any(1)).any()) for own in at]
    return wide.with_columns(on_front=~pl.Series(worse))


class Known:
    """Errors of all models by run and set, of those that learned the training language or of all."""

    def __init__(
        self, context: Inputs, errors: pl.DataFrame, curves: pl.DataFrame, sharp: pl.DataFrame,
        configs: dict[str, Config],
    ) -> None:  # fmt: skip
        self.context, self.errors, self.curves, self.sharp, self.configs = (
            context,
            errors,
            curves,
            sharp,
            configs,
        )

    def of(self, run: str, name: str) -> Floats:
        """Return the errors of all models of a run on a set, in the order of their numbers; empty if there are none."""
        return self.errors.filter(run=run, set=name).sort("replica")["error"].to_numpy()

    def asked(self, run: str, name: str) -> int:
        """Return the reads of the set."""
        return int(self.errors.filter(run=run, set=name)["n_reads"][0])

    def learned(self, run: str) -> reading.Bools:
        """Return which models of a run learned the training language."""
        return self.of(run, "val") <= self.context.settings.learned

    def good(self, run: str, name: str) -> Floats:
        """Return the errors of the models that learned the training language."""
        return self.of(run, name)[self.learned(run)]

    def lost(self, run: str) -> int:
        """Return how many models of a run did not."""
        return int((~self.learned(run)).sum())

    def decades(self, run: str, name: str) -> Floats:
        """Return log10 of the errors."""
        found = self.of(run, name)
        return decades(found, self.asked(run, name)) if len(found) else found

    @cached_property
    def beside_mixture(self) -> str:
        """The run on the plain language that took as many steps as the mixture."""
        steps = self.configs[MIXTURE].entry["steps"]
        same = [
            run for run in (BASE, FRESH) if run in self.configs and self.configs[run].entry["steps"] == steps
        ]
        return same[0] if same else BASE


def _contrasts(known: Known) -> Iterator[Row]:
    yield from chain(
        _glitches(known), _coverage(known), _controls(known), _sharpened(known), _generative(known), _seeds(known),
        _sizes(known),
    )  # fmt: skip


def _glitches(known: Known) -> Iterator[Row]:
    context, lost = known.context, known.lost(BASE)
    yield from share(context, "fitted base", known.learned(BASE))
    errs = {name: known.good(BASE, name) for name in OUT}
    yield from share(context, "glitches base", (errs["dense"] > 0) | (errs["sparse"] > 0), lost)
    for name in OUT:
        yield from resampled(context, f"{name} median base", stats.median, errs[name], excluded=lost)
        yield from single(f"{name} tail base", contrasts.spread(errs[name]), len(errs[name]), lost)
    yield from share(context, "unsteady base", _unsteady(known), lost)
    clean = 0
    for run, config in known.configs.items():
        if config.entry["family"] != "data":
            clean += all((known.of(run, name) == 0).all() and len(known.of(run, name)) > 2 for name in OUT)
    yield from single("configurations without error", float(clean), len(known.configs))


def _unsteady(known: Known) -> list[bool]:
    """Return for each trained model whether its error rose by more than two standard errors between checkpoints, on
    one of the sets and after it had learned the training language."""
    found = []
    for r in np.flatnonzero(known.learned(BASE)):
        curves = known.curves.filter(run=BASE, replica=int(r)).sort("step")
        val = curves.filter(set="val")["error"].to_numpy()
        first = int(np.flatnonzero(val <= known.context.settings.learned)[:1].sum())
        rose = False
        for name in OUT:
            errors = curves.filter(set=name)["error"].to_numpy()[first:]
            online = known.configs[BASE].entry["online"]
            reads = (
                online
                * known.asked(BASE, name)
                / len(known.context.dataset("flipflop-strings").filter(set=name))
            )
            best = np.minimum.accumulate(errors)
            deviation = np.sqrt((errors * (1 - errors) + best * (1 - best)) / reads)
            rose |= bool((errors - best > 2 * deviation + 1e-12).any())
        found.append(rose)
    return found


def _coverage(known: Known) -> Iterator[Row]:
    context, plain = known.context, known.beside_mixture

    def tenfold(mixture: Floats, other: Floats, axis: int = -1) -> Floats:
        return 0.1 * np.median(other, axis=axis) - np.median(mixture, axis=axis)

    for name in OUT:
        mixture, other = known.of(MIXTURE, name), known.of(plain, name)
        yield from resampled(context, f"{name} tenfold mixture", tenfold, mixture, other)
        yield from resampled(context, f"{name} median mixture", stats.median, mixture)
        for run in (FRESH, EPOCHS):
            label = run.removeprefix("flipflop-")
            pair = known.decades(run, name), known.decades(BASE, name)
            yield from resampled(context, f"{name} {label} - base", stats.median_difference, *pair)
        pair = known.decades(MIXTURE, name), known.decades(FRESH, name)
        yield from resampled(context, f"{name} mixture - fresh", stats.median_difference, *pair)
    parts = [known.of(MIXTURE, name) for name in ("mix", *OUT)]
    yield from share(context, "mixture without error", np.all([part == 0 for part in parts], axis=0))


def _controls(known: Known) -> Iterator[Row]:
    context, lost = known.context, known.lost(BASE)
    base = known.good(BASE, "dense")
    if SINE in known.configs:
        pair = base, known.good(SINE, "dense")
        yield from resampled(
            context, "dense base - sin", stats.median_difference, *pair, excluded=lost + known.lost(SINE)
        )
    for run in (EMBED, EMBED_HALF):
        if run in known.configs:
            for name in OUT:
                pair = known.decades(run, name), known.decades(BASE, name)
                label = f"{name} {run.removeprefix('flipflop-')} - base"
                yield from resampled(context, label, stats.median_difference, *pair)
    moved = [
        abs(float(np.median(known.decades(run, name)) - np.median(known.decades(BASE, name))))
        for run, config in known.configs.items()
        if config.entry["family"] == "optimiser"
        for name in OUT
    ]
    if moved:
        yield from single("optimiser, largest change", max(moved), len(moved) // 2)


def _sharpened(known: Known) -> Iterator[Row]:
    context = known.context
    for kind, run in SHARP.items():
        if run not in known.configs:
            continue
        n = min(len(known.of(run, "dense")), len(known.of(BASE, "dense")))
        both = known.learned(run)[:n] & known.learned(BASE)[:n]
        for name in OUT:
            # Models of equal number share initial weights and data.
            changed = known.decades(run, name)[:n] - known.decades(BASE, name)[:n]
            label = f"{name} {kind}, paired"
            yield from resampled(context, label, stats.median, changed[both], excluded=int((~both).sum()))
        weights = [
            known.sharp.filter(run=each).sort("replica")["max_weight"].to_numpy()[:n] for each in (run, BASE)
        ]
        yield from resampled(context, f"max weight {kind}", stats.mean_difference, *weights, paired=True)


def _generative(known: Known) -> Iterator[Row]:
    context = known.context
    if GENERATIVE not in known.configs:
        return
    entry = known.configs[GENERATIVE].entry
    floor = exact.generative_floor(entry["length"], *[(1 - entry["train"][0]) / 2] * 2)
    last = known.curves.filter(run=GENERATIVE, set="val", step=entry["steps"])["cross_entropy"].to_numpy()
    yield from resampled(context, "generative excess", stats.mean, last / floor - 1)
    yield from resampled(context, "generative val", stats.median, known.of(GENERATIVE, "val"))
    errs = [known.good(GENERATIVE, name) > 0 for name in OUT]
    yield from share(context, "generative glitches", errs[0] | errs[1], known.lost(GENERATIVE))


def _factorial(known: Known) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return errors by data seed and model seed, and the shares of variance of each with intervals from resampling
    both seeds."""
    rows = known.errors.filter(pl.col("set").is_in(OUT), run=FACTORIAL)
    table = rows.select("data_seed", "model_seed", "set", "error", "n_err", "n_reads")
    found = []
    for name in OUT:
        values = _square(known, name)
        k = len(values)
        rng = stream(known.context.seed, known.context.study, "factorial", name)
        draws = rng.integers(k, size=(known.context.settings.resamples, 2, k))
        shares = np.array([contrasts.two_way(values[np.ix_(a, b)]) for a, b in draws])
        point = contrasts.two_way(values)
        for i, source in enumerate(("data seed", "model seed", "rest")):
            lo, hi = stats.percentiles(shares[:, i], known.context.settings.confidence)
            found.append({"set": name, "part": source, "share": point[i], "lo": lo, "hi": hi, "n": k})
    return table, pl.DataFrame(found).fill_nan(None)


def _square(known: Known, name: str) -> Floats:
    rows = known.errors.filter(run=FACTORIAL, set=name).sort("data_seed", "model_seed")
    values = decades(rows["error"].to_numpy(), known.asked(FACTORIAL, name))
    k = known.configs[FACTORIAL].entry["data_seeds"]
    return values.reshape(k, k)


def _seeds(known: Known) -> Iterator[Row]:
    values = _square(known, "dense")
    for label, axis in (("data", 1), ("model", 0)):
        means = values.mean(axis)
        yield from single(f"dense {label} seeds, decades", float(means.max() - means.min()), len(values))


def _sizes(known: Known) -> Iterator[Row]:
    """Yield what correlation tests say of depth, width and heads together, with Holm's correction."""
    sized = [
        run for run, config in known.configs.items() if config.entry["family"] in ("scale_size", "baseline")
    ]
    for name in OUT:
        p_values = []
        for field in ("layers", "width", "heads"):
            others = [other for other in ("layers", "width", "heads") if other != field]
            base = known.configs[BASE].entry
            line = [run for run in sized if all(known.configs[run].entry[o] == base[o] for o in others)]
            xs = np.concatenate(
                [np.full(len(known.of(run, name)), known.configs[run].entry[field]) for run in line]
            )
            ys = np.concatenate([known.decades(run, name) for run in line])
            if len(line) > 2 and np.ptp(ys) > 0:
                p_values.append(float(scipy_stats.spearmanr(xs, ys).pvalue))
        if len(p_values) == 3:
            yield from single(f"{name} size, p value", contrasts.holm(p_values), len(sized))
