"""E2 to E12: where Transformers err, and what changes that (sections 3.5.2, 3.5.4, 3.5.6.2 to 3.5.6.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import numpy as np
import polars as pl
from scipy.special import log_softmax

from pipeline.kit import intervals
from pipeline.kit.comparisons import FLOOR, Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.comparisons import OUT
from pipeline.studies.flipflop.exact import recognisers as exact
from pipeline.studies.flipflop.measures import dilution, factorial, maps, reading
from pipeline.studies.flipflop.measures.reading import Config, Floats, Row
from pipeline.studies.flipflop.names import (
    BASE,
    EMBED_HALF,
    FACTORIAL,
    FRESH,
    GENERATIVE,
    MIDDLE,
    MIDDLE_MIXTURE,
    MIXTURE,
    OPTIMISERS,
    SHARP,
    SINE,
    SIZES,
)

GRAMS = (5, 11, 21, 51, 201)
SHOWN = 50  # sequences on which the sharpness of attention is measured
PARTS = ("data seed", "model seed", "rest")
FLOORED = "half of the models that these are held against make no error there: there is nothing to reduce"
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
    parts = (_glitches, _seeds, _generative, _coverage, _sizes, _controls, _sharpened, _optimisers, _middle)
    for compare in parts:
        compare(known)
    return {
        "data_stats": _data_stats(context),
        "configs": pl.DataFrame([reading.described(each) for each in configs.values()], infer_schema_length=None),
        "final": errors,
        "curves": curves,
        "by_distance": pl.DataFrame(binned) if binned else None,
        "violin": reading.violins(errors),
        "sharpness": pl.DataFrame(sharp),
        "scatter": reading.scatter(errors),
        "seed_factorial": errors.filter(pl.col("set").is_in(OUT), run=FACTORIAL).select(
            "data_seed", "model_seed", "learned", "set", "error", "n_err", "n_reads"
        ),
        "seed_variance": _variances(known),
        "ngram": pl.DataFrame(list(_ngrams(context))),
        "pareto": _pareto(errors),
        "comparisons": known.found.table(),
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
                    "dataset": dataset,
                    "set": name,
                    "length": length,
                    "p_ignore": p,
                    "n_seq": n,
                    "n_distinct": len(np.unique(tokens, axis=0)),
                    "n_reads": int(counts.sum()),
                    "reads_mean": counts.mean(),
                    "reads_expected": expected,
                    "z": (counts.mean() - expected) / deviation,
                }
            )
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


def _pareto(errors: pl.DataFrame) -> pl.DataFrame | None:
    """Return median errors of each run on both sets, over the models that learned, and whether no other run is
    better on one and no worse on the other."""
    if not errors["learned"].any():
        return None
    wide = (
        errors.filter("learned", pl.col("set").is_in(OUT))
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
        self,
        context: Inputs,
        errors: pl.DataFrame,
        curves: pl.DataFrame,
        sharp: pl.DataFrame,
        configs: dict[str, Config],
    ) -> None:
        self.context, self.errors, self.curves, self.sharp = context, errors, curves, sharp
        self.configs = configs
        self.found = Measurements(context, reading.UNTRAINED)

    def _rows(self, run: str, name: str) -> pl.DataFrame:
        return self.errors.filter(run=run, set=name).sort("replica")

    def of(self, run: str, name: str) -> Floats:
        """Return the errors of all models of a run on a set, in the order of their numbers; empty if there are none."""
        return self._rows(run, name)["error"].to_numpy()

    def wrong(self, run: str, *names: str) -> Floats:
        """Return how many wrong answers each model gives on several sets together."""
        return np.sum([self._rows(run, name)["n_err"].to_numpy() for name in names], 0).astype(float)

    def read_count(self, run: str, name: str) -> int:
        """Return the reads of the set."""
        return int(self._rows(run, name)["n_reads"][0])

    def learned(self, run: str) -> reading.Bools:
        """Return which models of a run learned the training language."""
        return self._rows(run, "val")["learned"].to_numpy()

    def lost(self, *runs: str) -> int:
        """Return how many models of runs did not."""
        return sum(int((~self.learned(run)).sum()) for run in runs)

    def good(self, run: str, name: str) -> Floats:
        """Return the errors of the models that learned the training language."""
        return self.of(run, name)[self.learned(run)]

    def decades(self, run: str, name: str) -> Floats:
        """Return log10 of the errors of all models."""
        errors = self.of(run, name)
        return reading.decades(errors, self.read_count(run, name)) if len(errors) else errors

    def good_decades(self, run: str, name: str) -> Floats:
        """Return log10 of the errors of the models that learned the training language."""
        return self.decades(run, name)[self.learned(run)]

    def compare(self, comparison: Comparison, own: Floats, other: Floats, lost: int, beside: tuple[str, str]) -> None:
        """Measure a comparison of log errors, unless most models of a run that learned make no error on a set, which
        ``beside`` names: half an error among the reads of a set is no error that something could reduce."""
        errors = self.good(*beside)
        if len(errors) and np.median(errors) == 0:
            none = np.empty(0)
            self.found.add(comparison, none, none, excluded=lost + len(other), reason=FLOORED)
        else:
            self.found.add(comparison, own, other, excluded=lost)

    def weights(self, run: str) -> Floats:
        """Return the mean largest weight of attention of all models of a run."""
        return self.sharp.filter(run=run).sort("replica")["max_weight"].to_numpy()

    def paired(self, run: str, values: Callable[[str], Floats]) -> tuple[Floats, Floats, int]:
        """Return values of the models of a run and of the baseline's models of equal number, which share initial
        weights and data, where both learned the training language, and how many pairs did not."""
        if run not in self.configs:
            return np.empty(0), np.empty(0), 0
        own, base = self.configs[run].replicas, self.configs[BASE].replicas
        _, here, there = np.intersect1d(own, base, return_indices=True)
        both = self.learned(run)[here] & self.learned(BASE)[there]
        return values(run)[here][both], values(BASE)[there][both], int((~both).sum())

    @cached_property
    def beside_mixture(self) -> str:
        """The run on the plain language that took as many steps as the mixture."""
        steps = self.configs[MIXTURE].entry["steps"]
        same = [run for run in (BASE, FRESH) if run in self.configs and self.configs[run].entry["steps"] == steps]
        return same[0] if same else BASE


def halved(known: Iterable[tuple[str, Floats]]) -> tuple[str, slice]:
    """Return the run with the least median among models of even number, and which models are then judged: the others,
    on which the choice has no bearing; an empty name where not two runs have enough models in each half."""
    enough = {run: values for run, values in known if len(values[1::2]) >= FLOOR}
    best = min(enough, key=lambda run: float(np.median(enough[run][::2]))) if len(enough) > 1 else ""
    return best, slice(1, None, 2) if best else slice(0)


def _glitches(known: Known) -> None:
    found, confidence, lost = known.found, known.context.settings.confidence, known.lost(BASE)
    found.put(comparisons.FITTED, intervals.share(known.learned(BASE), confidence))
    for run, comparison in comparisons.GLITCHES.items():
        wrong = known.wrong(run, *OUT)
        found.add(comparison, wrong[known.learned(run)], excluded=known.lost(run))
    for name in OUT:
        errors = known.good(BASE, name)
        found.add(comparisons.ERROR[name], errors, excluded=lost)
        some = intervals.jackknife(spread, errors[errors > 0], confidence=confidence, log=True)
        out = lost + int((errors == 0).sum())
        found.put(comparisons.SPREAD[name], some, out, "the model did not learn, or makes no error")
    found.add(comparisons.UNSTEADY, _rises(known), excluded=lost)
    # The factorial repeats seeds of the baseline; others saw what the sets have.
    others = [run for run, each in known.configs.items() if each.entry["family"] not in ("data", "seeds", "middle")]
    judged = [run for run in others if known.learned(run).sum() >= FLOOR]
    erring = [float((known.wrong(run, *OUT)[known.learned(run)] > 0).sum()) for run in judged]
    left_out = len(others) - len(judged)
    found.add(comparisons.ERRING, erring, excluded=left_out, reason=f"fewer than {FLOOR} models learned")


def spread(errors: Floats) -> float:
    """Return 10 to the standard deviation of log10 of the errors.

    >>> round(spread(np.array([0.01, 0.1, 1.0])), 6)
    10.0
    """
    return float(10 ** np.log10(errors).std(ddof=1)) if len(errors) > 1 else np.nan


def _rises(known: Known) -> Floats:
    """Return, for each trained model, on how many sets its error rose by more than two standard errors between
    checkpoints after it had learned the training language."""
    rises = []
    for at in np.flatnonzero(known.learned(BASE)):
        curves = known.curves.filter(run=BASE, replica=known.configs[BASE].replicas[at]).sort("step")
        val = curves.filter(set="val")["error"].to_numpy()
        fitted = np.flatnonzero(reading.learned(val, known.context.settings))
        # The curves are measured on part of a set: where they never show that it has learned, nothing counts as a rise.
        first = int(fitted[0]) if len(fitted) else len(val)
        rose = 0
        for name in OUT:
            errors = curves.filter(set=name)["error"].to_numpy()[first:]
            if not len(errors):
                continue
            online = known.configs[BASE].entry["online"]
            reads = (
                online * known.read_count(BASE, name) / len(known.context.dataset("flipflop-strings").filter(set=name))
            )
            best = np.minimum.accumulate(errors)
            deviation = np.sqrt((errors * (1 - errors) + best * (1 - best)) / reads)
            rose += bool((errors - best > 2 * deviation + 1e-12).any())
        rises.append(rose)
    return np.array(rises, float)


def _coverage(known: Known) -> None:
    if MIXTURE not in known.configs:
        return
    found, plain = known.found, known.beside_mixture
    for name in OUT:
        pair = known.decades(MIXTURE, name), known.good_decades(plain, name)
        known.compare(comparisons.REMOVED[name], *pair, known.lost(plain), (plain, name))
    for (run, name, beside), comparison in comparisons.MORE.items():
        other = known.decades(MIXTURE, name) if beside == "mixture" else known.good_decades(BASE, name)
        lost = known.lost(run) if beside == "mixture" else known.lost(run, BASE)
        known.compare(comparison, known.good_decades(run, name), other, lost, (BASE, name))
    found.add(comparisons.MIXTURE_CLEAN, known.wrong(MIXTURE, "mix", *OUT))
    rivals: dict[str, list[Floats]] = {}
    for run, config in known.configs.items():
        if config.entry["family"] not in ("data", "seeds", "middle"):  # the factorial repeats seeds of the baseline
            rivals.setdefault(config.entry["family"], []).append(known.wrong(run, *OUT) == 0)
    enough = [flags for parts in rivals.values() if len(flags := np.concatenate(parts)) >= FLOOR]
    best = max(enough, key=np.mean, default=np.empty(0))
    own, confidence = known.wrong(MIXTURE, *OUT) == 0, known.context.settings.confidence
    found.put(comparisons.MIXTURE_LEAD, intervals.share_difference(own, best, confidence))


def _sizes(known: Known) -> None:
    """Correlate errors with depth, width and heads, over as many models of the baseline as of the other sizes."""
    for (name, field), comparison in comparisons.SIZE.items():
        runs = [run for run in SIZES[field][1] if run in known.configs]
        if len(runs) < 2:
            known.found.not_run(comparison)
            continue
        most = max(len(known.of(run, name)) for run in runs)
        line = [(known.configs[run].entry[field], known.good_decades(run, name)[:most]) for run in (BASE, *runs)]
        line = [(size, values) for size, values in line if len(values)]
        if len(line) < 3:
            line = []
        sizes = np.concatenate([np.empty(0), *(np.full(len(values), size) for size, values in line)])
        errors = np.concatenate([np.empty(0), *(values for _, values in line)])
        known.found.add(comparison, sizes, errors, excluded=known.lost(BASE, *runs))


def _controls(known: Known) -> None:
    found, base = known.found, known.good(BASE, "dense")
    lost = known.lost(BASE, SINE)
    found.add(comparisons.POSITIONS["sinusoidal"], base, known.good(SINE, "dense"), excluded=lost)
    if len([run for run in comparisons.FIXED if run in known.configs]) < 2:
        found.not_run(comparisons.POSITIONS["best of three"])
    else:
        best, kept = halved((run, known.good(run, "dense")) for run in comparisons.FIXED)
        pair = base[kept], known.good(best, "dense")[kept]
        found.add(comparisons.POSITIONS["best of three"], *pair, excluded=known.lost(BASE, best) if best else 0)
    own, other, lost = known.paired(EMBED_HALF, lambda run: known.decades(run, "sparse"))
    known.compare(comparisons.DROPPED, own, other, lost, (BASE, "sparse"))
    wrong = known.wrong(EMBED_HALF, "sparse")[known.learned(EMBED_HALF)]
    found.add(comparisons.DROPPED_CLEAN, wrong, excluded=known.lost(EMBED_HALF))


def _optimisers(known: Known) -> None:
    settings = [run for run in OPTIMISERS if run in known.configs]
    # Where most models do not learn the training language their errors elsewhere say nothing of extrapolation.
    trained = [run for run in settings if known.learned(run).mean() > 0.5 and known.learned(BASE).any()]
    moved = [
        max(abs(np.median(known.good_decades(run, name)) - np.median(known.good_decades(BASE, name))) for name in OUT)
        for run in trained
    ]
    left_out = len(settings) - len(trained)
    known.found.add(comparisons.OPTIMISED, moved, excluded=left_out, reason="most models did not learn")


def _sharpened(known: Known) -> None:
    found = known.found
    for kind, run in SHARP.items():
        for name in OUT:
            own, base, lost = known.paired(run, lambda each, name=name: known.decades(each, name))  # type: ignore[misc]
            known.compare(comparisons.PENALISED[kind, name], own, base, lost, (BASE, name))
        own, base, lost = known.paired(run, known.weights)
        found.add(comparisons.SHARPER[kind], own, base, excluded=lost)
    every = [run for run, config in known.configs.items() if config.entry["family"] == "sharpen"]
    heavy = [run for run in every if known.configs[run].entry["sharpen"]["weight"] >= HEAVY]
    pairs = {run: known.paired(run, known.weights)[:2] for run in heavy}
    rises = [float((own - base).mean()) for own, base in pairs.values() if len(own) >= FLOOR]
    left_out = len(heavy) - len(rises)
    found.add(comparisons.ALL_SHARPER, rises, excluded=left_out, reason=f"fewer than {FLOOR} pairs learned")
    if len(every) < 2:
        found.not_run(comparisons.BEST_PENALTY)
        return
    errors = {run: known.paired(run, lambda each: known.decades(each, "sparse")) for run in every}
    best, kept = halved((run, own - base) for run, (own, base, _) in errors.items())
    own, base, lost = errors.get(best, (np.empty(0), np.empty(0), 0))
    known.compare(comparisons.BEST_PENALTY, own[kept], base[kept], lost, (BASE, "sparse"))


def _middle(known: Known) -> None:
    """Compare the middle-sized models with each other; those of the mixture count whether or not they learned."""
    if MIDDLE not in known.configs:
        return
    known.found.put(
        comparisons.MIDDLE_FITTED, intervals.share(known.learned(MIDDLE), known.context.settings.confidence)
    )
    for name, comparison in comparisons.MIDDLE_ERROR.items():
        known.found.add(comparison, known.good(MIDDLE, name), excluded=known.lost(MIDDLE))
    for (run, name), comparison in comparisons.MIDDLE_CHANGED.items():
        other = known.good_decades(MIDDLE, name)
        mixed = run == MIDDLE_MIXTURE
        own = known.decades(run, name) if mixed else known.good_decades(run, name)
        lost = known.lost(MIDDLE) if mixed else known.lost(run, MIDDLE)
        known.compare(comparison, own, other, lost, (MIDDLE, name))


def _generative(known: Known) -> None:
    if GENERATIVE in known.configs:
        known.found.add(comparisons.EXCESS, _excess(known))
        known.found.add(comparisons.GENERATIVE_ERROR, known.of(GENERATIVE, "val"))


def _excess(known: Known) -> Floats:
    """Return by how much the cross-entropy of each model of all next tokens exceeds its least possible value, as a
    share of that value, on held-out strings of the training language.

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
    excess: Floats = np.concatenate(above, 1).mean(1)
    return excess


def _square(known: Known, name: str) -> Floats:
    """Return log errors by data seed and model seed, of the initial weights that learned with every order of data."""
    rows = known.errors.filter(run=FACTORIAL, set=name).sort("data_seed", "model_seed")
    k = known.configs[FACTORIAL].entry["data_seeds"]
    values = reading.decades(rows["error"].to_numpy(), known.read_count(FACTORIAL, name)).reshape(k, k)
    return values[:, rows["learned"].to_numpy().reshape(k, k).all(0)]


def _variances(known: Known) -> pl.DataFrame | None:
    """Return the table ``seed_variance``; None without a factorial."""
    if FACTORIAL not in known.configs:
        return None
    return pl.DataFrame([row for name in OUT for row in _variance(known, name)]).fill_nan(None)


def _variance(known: Known, name: str) -> Iterator[Row]:
    """Yield what each seed adds to the variance of log errors, where models learned."""
    values = _square(known, name)
    parts = factorial.components(values, known.context.settings.confidence)
    shares = factorial.two_way(values) if values.size else (np.nan,) * 3
    for source, share, (component, ratio) in zip(PARTS, shares, parts, strict=True):
        yield {
            "set": name,
            "part": source,
            "share": share,
            "component": component,
            "ratio": ratio.value,
            "lo": ratio.lo,
            "hi": ratio.hi,
            "interval": ratio.kind,
            "n": ratio.n,
        }


def _seeds(known: Known) -> None:
    if FACTORIAL not in known.configs:
        return
    values = _square(known, "dense")
    k = known.configs[FACTORIAL].entry["data_seeds"]
    parts = factorial.components(values, known.context.settings.confidence)
    for (_, found), comparison in zip(parts, comparisons.SEED_RATIO.values(), strict=False):
        known.found.put(comparison, found, k - values.shape[1], "initial weights with which a model did not learn")
