"""E2 to E12: where Transformers err, and what changes that (sections 3.5.2, 3.5.4, 3.5.6.2 to 3.5.6.4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain

import numpy as np
import polars as pl
from scipy import stats as scipy_stats
from scipy.special import log_softmax

from pipeline.kit import stats
from pipeline.kit.extremes import largest, smallest
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import flipflop as language
from pipeline.models.flipflop import exact
from pipeline.studies.flipflop.measures import contrasts, dilution, maps, reading
from pipeline.studies.flipflop.measures.contrasts import Floats, Row, decades, resampled, share, single
from pipeline.studies.flipflop.measures.reading import OUT, Config
from pipeline.studies.flipflop.names import (
    ALIBI,
    BASE,
    EMBED,
    EMBED_HALF,
    EPOCHS,
    EPOCHS_10,
    FACTORIAL,
    FRESH,
    FRESH_10,
    GENERATIVE,
    MIXTURE,
    NO_POSITIONS,
    SHARP,
    SINE,
)

GRAMS = (5, 11, 21, 51, 201)
ENOUGH = 3  # models of a configuration of which it can be said that all of them err, or none
SHOWN = 50  # sequences on which the sharpness of attention is measured
HEAVY = 0.1  # weight of a penalty from which on claim 13 expects sharper attention


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
        "scatter": reading.scatter(errors),
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

    def read_count(self, run: str, name: str) -> int:
        """Return the reads of the set."""
        return int(self.errors.filter(run=run, set=name)["n_reads"][0])

    def learned(self, run: str) -> reading.Bools:
        """Return which models of a run learned the training language."""
        return self.of(run, "val") <= self.context.settings.learned

    def good(self, run: str, name: str) -> Floats:
        """Return the errors of the models that learned the training language."""
        return self.of(run, name)[self.learned(run)]

    def without_error(self, run: str, *names: str) -> reading.Bools:
        """Return which models of a run make no error on sets: those named, or the sparse and the dense one."""
        clean: reading.Bools = np.all([self.of(run, name) == 0 for name in names or OUT], axis=0)
        return clean

    def paired(self, run: str, name: str) -> tuple[Floats, int]:
        """Return the changes of log errors from the baseline's model of equal number, which shares initial weights and
        data, where both learned the training language, and how many pairs did not."""
        own, base = self.configs[run].replicas, self.configs[BASE].replicas
        _, here, partners = np.intersect1d(own, base, return_indices=True)
        both = self.learned(run)[here] & self.learned(BASE)[partners]
        changes = self.decades(run, name)[here] - self.decades(BASE, name)[partners]
        return changes[both], int((~both).sum())

    def risen(self, run: str) -> Floats:
        """Return by how much the mean largest weight of attention exceeds that of the baseline's model of equal
        number."""
        own, base = (self.sharp.filter(run=each).select("replica", "max_weight") for each in (run, BASE))
        both = own.join(base, on="replica", suffix="_base", maintain_order="left")
        return (both["max_weight"] - both["max_weight_base"]).to_numpy()

    def lost(self, run: str) -> int:
        """Return how many models of a run did not."""
        return int((~self.learned(run)).sum())

    def decades(self, run: str, name: str) -> Floats:
        """Return log10 of the errors."""
        errors = self.of(run, name)
        return decades(errors, self.read_count(run, name)) if len(errors) else errors

    @cached_property
    def beside_mixture(self) -> str:
        """The run on the plain language that took as many steps as the mixture."""
        steps = self.configs[MIXTURE].entry["steps"]
        same = [
            run for run in (BASE, FRESH) if run in self.configs and self.configs[run].entry["steps"] == steps
        ]
        return same[0] if same else BASE


def chosen(values: dict[str, Floats]) -> tuple[str, Floats]:
    """Return the run with the least median among models of even number, and the values of its other models, on which
    the choice has no bearing; an empty name where there are not two runs with three models in each half."""
    enough = {run: own for run, own in values.items() if len(own[1::2]) >= ENOUGH}
    if len(enough) < 2:
        return "", np.empty(0)
    best = min(enough, key=lambda run: float(np.median(enough[run][::2])))
    return best, enough[best][1::2]


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
    judged = [
        run for run, config in known.configs.items()
        if config.entry["family"] != "data" and len(config.replicas) >= ENOUGH
    ]  # fmt: skip
    clean = [run for run in judged if known.without_error(run).all()]
    if judged:
        yield from single("configurations without error", float(len(clean)), len(judged))


def _unsteady(known: Known) -> list[bool]:
    """Return for each trained model whether its error rose by more than two standard errors between checkpoints, on
    one of the sets and after it had learned the training language."""
    rises = []
    for at in np.flatnonzero(known.learned(BASE)):
        curves = known.curves.filter(run=BASE, replica=known.configs[BASE].replicas[at]).sort("step")
        val = curves.filter(set="val")["error"].to_numpy()
        fitted = np.flatnonzero(val <= known.context.settings.learned)
        # The curves are measured on part of a set: where they never show that it has learned, nothing counts as a rise.
        first = int(fitted[0]) if len(fitted) else len(val)
        rose = False
        for name in OUT:
            errors = curves.filter(set=name)["error"].to_numpy()[first:]
            if not len(errors):
                continue
            online = known.configs[BASE].entry["online"]
            reads = (
                online
                * known.read_count(BASE, name)
                / len(known.context.dataset("flipflop-strings").filter(set=name))
            )
            best = np.minimum.accumulate(errors)
            deviation = np.sqrt((errors * (1 - errors) + best * (1 - best)) / reads)
            rose |= bool((errors - best > 2 * deviation + 1e-12).any())
        rises.append(rose)
    return rises


def _coverage(known: Known) -> Iterator[Row]:
    context, plain = known.context, known.beside_mixture
    more = [run for run in (FRESH, EPOCHS, FRESH_10, EPOCHS_10) if run in known.configs]

    def tenfold(mixture: Floats, other: Floats, axis: int = -1) -> Floats:
        return 0.1 * np.median(other, axis=axis) - np.median(mixture, axis=axis)

    for name in OUT:
        mixture, other = known.of(MIXTURE, name), known.of(plain, name)
        yield from resampled(context, f"{name} tenfold mixture", tenfold, mixture, other)
        yield from resampled(context, f"{name} median mixture", stats.median, mixture)
        for run in more:
            label = run.removeprefix("flipflop-")
            for against, words in ((BASE, "base"), (MIXTURE, "mixture")):
                pair = known.decades(run, name), known.decades(against, name)
                yield from resampled(context, f"{name} {label} - {words}", stats.median_difference, *pair)
        pair = known.decades(MIXTURE, name), known.decades(plain, name)
        yield from resampled(context, f"{name} mixture - plain", stats.median_difference, *pair)
    parts = [known.of(MIXTURE, name) for name in ("mix", *OUT)]
    yield from share(context, "mixture without error", np.all([part == 0 for part in parts], axis=0))
    rivals: dict[str, list[Floats]] = {}
    for run, config in known.configs.items():
        if config.entry["family"] not in (
            "data",
            "seeds",
        ):  # the factorial repeats seeds of the baseline's kind
            rivals.setdefault(config.entry["family"], []).append(known.without_error(run).astype(float))
    shares = [flags for parts in rivals.values() if len(flags := np.concatenate(parts)) >= ENOUGH]

    def lead(mixture: Floats, *others: Floats, axis: int = -1) -> Floats:
        return np.mean(mixture, axis=axis) - np.max([np.mean(each, axis=axis) for each in others], axis=0)

    if shares and MIXTURE in known.configs:
        own = known.without_error(MIXTURE).astype(float)
        yield from resampled(context, "mixture without error, lead", lead, own, *shares)


def _controls(known: Known) -> Iterator[Row]:
    context, lost = known.context, known.lost(BASE)
    base = known.good(BASE, "dense")
    fixed = [run for run in (SINE, ALIBI, NO_POSITIONS) if run in known.configs]
    for run in fixed:
        label = f"dense base - {run.removeprefix('flipflop-')}"
        pair = base, known.good(run, "dense")
        yield from resampled(context, label, stats.median_difference, *pair, excluded=lost + known.lost(run))
    best, other = chosen({run: known.good(run, "dense") for run in fixed})
    if best:
        pair = base[1::2], other
        yield from resampled(context, "dense base - best positions", stats.median_difference, *pair)
    for run in (EMBED, EMBED_HALF):
        if run in known.configs:
            for name in OUT:
                pair = known.decades(run, name), known.decades(BASE, name)
                label = f"{name} {run.removeprefix('flipflop-')} - base"
                yield from resampled(context, label, stats.median_difference, *pair)
    if EMBED_HALF in known.configs:
        yield from share(context, "emb05 without error", known.without_error(EMBED_HALF, "sparse"))
    settings = [run for run, config in known.configs.items() if config.entry["family"] == "optimiser"]
    # Where most models do not learn the training language their errors elsewhere say nothing of extrapolation.
    trained = [run for run in settings if known.learned(run).mean() > 0.5]
    moved = [
        abs(float(np.median(known.decades(run, name)) - np.median(known.decades(BASE, name))))
        for run in trained
        for name in OUT
    ]
    if moved:
        few = min(len(known.of(run, "val")) for run in trained)
        yield from single("optimiser, largest change", largest(moved), few, len(settings) - len(trained))


def _sharpened(known: Known) -> Iterator[Row]:
    context = known.context
    for kind, run in SHARP.items():
        if run not in known.configs:
            continue
        for name in OUT:
            changed, lost = known.paired(run, name)
            yield from resampled(context, f"{name} {kind}, paired", stats.median, changed, excluded=lost)
        yield from resampled(context, f"max weight {kind}", stats.mean, known.risen(run))
    every = [run for run, config in known.configs.items() if config.entry["family"] == "sharpen"]
    heavy = [run for run in every if known.configs[run].entry["sharpen"]["weight"] >= HEAVY]
    if heavy:
        rises = [known.risen(run).mean() for run in heavy]
        yield from single("max weight, least rise", smallest(rises), len(heavy))
    best, other = chosen({run: known.paired(run, "sparse")[0] for run in every})
    if best:
        yield from resampled(context, "sparse best sharpening, paired", stats.median, other)
        taken = known.configs[best].entry["sharpen"]
        alike = [known.configs[run].entry["sharpen"] for run in every]
        grid = sorted({each["weight"] for each in alike if each["kind"] == taken["kind"]})
        place = grid.index(taken["weight"])
        yield from single(
            "best sharpening, places to an end", float(min(place, len(grid) - 1 - place)), len(every)
        )


def _generative(known: Known) -> Iterator[Row]:
    context = known.context
    if GENERATIVE not in known.configs:
        return
    excess, errors = _excess(known)
    yield from resampled(context, "generative excess", stats.mean, excess)
    yield from single("generative, errors above the floor", smallest(excess / errors), len(excess))
    yield from resampled(context, "generative val", stats.median, known.of(GENERATIVE, "val"))
    errs = [known.good(GENERATIVE, name) > 0 for name in OUT]
    yield from share(context, "generative glitches", errs[0] | errs[1], known.lost(GENERATIVE))


def _excess(known: Known) -> tuple[Floats, Floats]:
    """Return by how much the cross-entropy of each model of all next tokens exceeds its least possible value, as a
    share of that value, on held-out strings of the training language, and the standard error of this.

    The least value of a string is its own surprise under the language, of which the floor is the expectation: against
    it, what strings happen to be drawn cancels.
    """
    config = known.configs[GENERATIVE]
    p_write, p_read = map(float, language.halves(config.entry["train"][0]))
    tokens = reading.held(known.context, config)["val"]
    floor = exact.generative_floor(config.entry["length"], p_write, p_read)
    above = []
    for part in np.array_split(tokens, -(-tokens.size // reading.CHUNK)):
        log_p = log_softmax(config.forward(part[:, :-1])[0].double().numpy(), axis=-1)
        total = np.take_along_axis(log_p, part[None, :, 1:, None].astype(np.int64), -1)[..., 0].sum(-1)
        above.append((language.log_probability(part, p_write, p_read) - total) / (part.shape[1] - 1) / floor)
    excess = np.concatenate(above, 1)
    return excess.mean(1), excess.std(1, ddof=1) / np.sqrt(excess.shape[1])


def _factorial(known: Known) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return errors by data seed and model seed, and what each adds to the variance of log errors."""
    rows = known.errors.filter(pl.col("set").is_in(OUT), run=FACTORIAL)
    table = rows.select("data_seed", "model_seed", "set", "error", "n_err", "n_reads")
    variances = []
    for name in OUT:
        values = _square(known, name)
        parts = contrasts.components(values, known.context.settings.confidence)
        named = zip(("data seed", "model seed", "rest"), contrasts.two_way(values), parts, strict=True)
        for source, part, (component, ratio, lo, hi) in named:
            variances.append(
                {
                    "set": name, "part": source, "share": part, "component": component, "ratio": ratio, "lo": lo,
                    "hi": hi, "n": len(values),
                }
            )  # fmt: skip
    return table, pl.DataFrame(variances).fill_nan(None)


def _square(known: Known, name: str) -> Floats:
    rows = known.errors.filter(run=FACTORIAL, set=name).sort("data_seed", "model_seed")
    values = decades(rows["error"].to_numpy(), known.read_count(FACTORIAL, name))
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
