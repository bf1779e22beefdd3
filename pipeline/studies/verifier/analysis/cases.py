"""The analogues on documents of test cases of Tables 3.6, 3.9 to 3.13, 3.15 and 3.17 (Li 2025, section 3.2.2).

They are no numbers of CodeLlama. All decoders meet the same chances: call c of a completion draws the same number.

Decoders that claims 23 and 26 compare (`Experiment.compared`) are taken by as many runs as in the source, the others by
fewer: with a single run of each the noise of decoding was larger than what a trained verifier gains over a random one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import test_cases as language
from pipeline.models.llama import verifiers
from pipeline.models.llama.decoding import ARGMAX, SAMPLE, Plan, Verifier
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.analysis import vgb_cases
from pipeline.studies.verifier.comparisons import OFTEN
from pipeline.studies.verifier.measures import cases, classifiers
from pipeline.studies.verifier.measures.cases import CaseModels, Completed, Score
from pipeline.studies.verifier.measures.guessing import matching_rate
from pipeline.studies.verifier.names import (
    CASE_MODELS,
    CASES,
    GROUND_TRUTH,
    NAMES,
    NONE,
    RANDOM,
    RESERVED,
    TRAINED,
    TRAINING,
)

SAMPLES = 2  # completions of a prompt that are listed
TRIALS = 3  # of a rate at which to guess
COLD = 0.4  # the low temperature of claim 22
LINE_SECONDS = 30.0  # between two lines that say how far it is


Wanted = tuple[int, int, bool]  # a verifier: layer, depth, whether of the ends of lines alone


@dataclass(frozen=True)
class Arm:
    """A decoder. A trained verifier learned from the state of ``layer`` and is shown that of ``read``: the same, but in
    the ablation of a mismatch; ``depth`` counts its linear layers."""

    top_p: float
    temperature: float
    verifier: str = NONE
    threshold: float = 0.0
    quota: int = 0
    stride: int = 0
    refill: str = ""
    layer: int = -1
    depth: int = 0
    read: int = -1
    candidates: int = 0
    reserved: bool = False


BLIND: dict[str, Any] = {"layer": -1, "depth": 0, "read": -1}  # verifiers that read no state


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the metrics of every decoder and run, how they grow with queries, how good verifiers are, and samples."""
    with one_thread():
        experiment = Experiment(context, CASE_MODELS, CASES)
        experiment.choose()
        experiment.train(experiment.verifiers())
        experiment.decode([*experiment.compared(), *experiment.others()])
        verifier = experiment.trained[experiment.last, 1, False]
        trees = vgb_cases.table(context, experiment.models, verifier, experiment.prompts[NAMES])
    frames = experiment.frames() | {"vgb_cases": trees}
    return frames | {"comparisons": compared(context, frames, experiment.best)}


class Experiment:
    """The models, their verifiers, and what came of their completions."""

    def __init__(self, context: Inputs, run: str, dataset: str) -> None:
        self.context, self.entry, self.dataset = context, context.entry, dataset
        model, header = context.model(run), context.run_header(run)
        self.models = CaseModels(model.spec, model.params, int(header["entry"]["corpus"]["cases"]))
        self.last = self.models.spec.layers
        sets = context.dataset(dataset)
        self.prompts = {which: sets.filter(set=which)["tokens"].to_list() for which in (NAMES, RESERVED, TRAINING)}
        quota, stride = self.entry.further or (0, 0)
        self.calls = self.entry.budget + max(quota, self.entry.quota) * max(stride, self.entry.stride)
        self.trained: dict[tuple[int, int, bool], verifiers.Trained] = {}
        self.best: tuple[float, float] = (self.entry.main[0], self.entry.main[1])  # top_p and temperature (`choose`)
        self.validation: list[dict[str, Any]] = []
        self.quality: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        self.cumulative: list[dict[str, Any]] = []
        self.samples: list[dict[str, Any]] = []

    def choose(self) -> None:
        """Find the top_p and temperature that are best without a verifier, by the mean over models on names that are
        not tested: those for which verifiers are trained."""
        found: dict[tuple[float, float], list[float]] = {}
        for top_p in self.entry.top_p:
            for temperature in self.entry.temperatures:
                plan = Plan(language.END, temperature, top_p)
                done = self._complete(plan, TRAINING, self.entry.repetitions, ("validation",), self.calls)
                found[top_p, temperature] = [
                    cases.score(self.models, done, replica).accuracy for replica in range(self.models.count)
                ]
        self.best = max(found, key=lambda setting: float(np.mean(found[setting])))
        self.validation = [
            {"replica": r, "top_p": p, "temperature": T, "accuracy": value, "chosen": (p, T) == self.best}
            for (p, T), values in found.items()
            for r, value in enumerate(values)
        ]

    def verifiers(self) -> list[Wanted]:
        """Return what verifiers are trained: layer, depth, and whether on the ends of lines alone."""
        wanted = [(self.last, 1, False), (self.last, 1, True)]
        wanted += [(layer, 1, False) for layer in self.entry.layers if layer != self.last]
        return wanted + [(self.last, depth, False) for depth in self.entry.depths]

    def train(self, wanted: Collection[Wanted]) -> None:
        """Train verifiers on completions of prompts for names of their own."""
        done = self._complete(
            Plan(language.END), TRAINING, self.entry.verifier_repetitions, ("verifiers",), self.entry.budget
        )
        for layer, depth, blocks in wanted:
            fits = []
            for replica in range(self.models.count):
                names = (self.context.study, "verifier", self.dataset, replica, str(blocks))
                rng = stream(self.context.seed, *names, "samples")
                tokens, lengths, right = cases.samples(self.models, done, replica, rng, blocks)
                features = cases.states(self.models, replica, layer, tokens, lengths)
                settings = self.context.settings.verifier.model_copy(update={"splits": 1, "share": 0.9})
                fit = classifiers.fit(settings, features, right, names, self.context.seed, depth)
                fits.append(fit.weights)
                self.quality.append(
                    {
                        "replica": replica,
                        "layer": layer,
                        "depth": depth,
                        "block": blocks,
                        "n_train": fit.n_train,
                        "n_validation": fit.n_validation,
                        "right": right.mean(),
                        "validation": fit.validation[0],
                    }
                )
            self.trained[layer, depth, blocks] = verifiers.Trained(
                layer,
                [
                    (torch.cat([own[n][0] for own in fits]), torch.cat([own[n][1] for own in fits]))
                    for n in range(depth)
                ],
            )

    def means(self, arm: Sequence[str]) -> pl.DataFrame:
        """Return mean accuracy and calls over the runs of each model (``replica``), by the fields of its decoder."""
        by = pl.DataFrame(self.rows).group_by("replica", *arm, maintain_order=True)
        return by.agg(pl.len().alias("runs"), pl.mean("accuracy", "calls"))

    def ours(self, setting: Sequence[float], threshold: float) -> Arm:
        """Return Algorithm 1 with a linear verifier of the last state, at a top_p and temperature."""
        entry, last, (top_p, temperature) = self.entry, self.last, setting
        return Arm(top_p, temperature, TRAINED, threshold, entry.quota, entry.stride, ARGMAX, last, 1, last)

    def compared(self) -> Iterator[tuple[Arm, int]]:
        """Yield the decoders of claims 23 and 26, each with its number of runs."""
        entry, careful = self.entry, self.entry.thresholds[0]
        for top_p, temperature in dict.fromkeys(map(tuple, [*entry.settings, self.best])):
            yield Arm(top_p, temperature), entry.runs_compared
            yield self.ours((top_p, temperature), careful), entry.runs_compared
        for verifier in (GROUND_TRUTH, RANDOM, OFTEN):
            yield replace(self.ours(entry.main, careful), verifier=verifier, **BLIND), entry.runs_compared

    def others(self) -> Iterator[tuple[Arm, int]]:
        """Yield all other decoders, each with its number of runs."""
        for arm in dict.fromkeys(self._others()):
            if arm not in dict(self.compared()):
                yield arm, self.entry.runs_others

    def _others(self) -> Iterator[Arm]:
        entry, main = self.entry, Arm(*self.entry.main)
        careful, *bold = entry.thresholds
        yield Arm(0.0, 1.0)
        for top_p in entry.top_p:
            for temperature in entry.temperatures:
                yield Arm(top_p, temperature)
        for setting in entry.settings:
            for threshold in bold:
                yield self.ours(setting, threshold)
        first = self.ours(entry.main, careful)
        for threshold in entry.thresholds:
            yield replace(first, threshold=threshold, refill=SAMPLE)
            yield replace(first, threshold=threshold, reserved=True)
        yield replace(main, reserved=True)
        if entry.further:
            quota, stride = entry.further
            yield replace(first, verifier=GROUND_TRUTH, quota=quota, **BLIND)
            yield replace(first, quota=quota)
            yield replace(first, stride=stride)
        for layer in entry.layers:
            if layer != self.last:
                yield replace(first, layer=layer, read=layer)
                yield replace(first, layer=layer, read=self.last)
        for depth in entry.depths:
            yield replace(first, depth=depth)
        for candidates in entry.candidates:
            yield replace(main, verifier=TRAINED, layer=self.last, depth=1, read=self.last, candidates=candidates)

    def decode(self, arms: Sequence[tuple[Arm, int]]) -> None:
        """Complete the prompts by every decoder, as often as it has runs."""
        total, done, said = sum(runs for _, runs in arms), 0, time.monotonic()
        for number, (arm, runs) in enumerate(arms):
            plan = Plan(language.END, arm.temperature, arm.top_p)
            verifier = self._verifier(arm)
            if arm.quota:
                plan = replace(plan, quota=arm.quota, stride=arm.stride, refill=arm.refill, threshold=arm.threshold)
            which = RESERVED if arm.reserved else NAMES
            for run in range(runs):
                written = self._complete(
                    plan, which, self.entry.repetitions, (which, run), self.calls, verifier, arm.candidates
                )
                for replica in range(self.models.count):
                    self._keep(arm, number, replica, run, cases.score(self.models, written, replica))
                if run == 0 and arm == replace(Arm(*self.entry.main), reserved=arm.reserved):
                    self._list(written, arm.reserved)
                done += 1
                if time.monotonic() - said > LINE_SECONDS:
                    said = time.monotonic()
                    print(f"{self.context.experiment}: {done}/{total} runs of decoders", file=sys.stderr, flush=True)

    def _verifier(self, arm: Arm) -> Verifier | None:
        if arm.verifier == GROUND_TRUTH:
            return cases.ground_truth(self.models.cases)
        if arm.verifier == RANDOM:
            return verifiers.Guessing()
        if arm.verifier == OFTEN:
            return self._as_often(arm)
        if arm.verifier == NONE:
            return None
        return replace(self.trained[arm.layer, arm.depth, arm.candidates > 0], layer=arm.read)

    def _as_often(self, arm: Arm) -> Verifier:
        """Return a verifier that guesses, at a rate by which each model is sent back about as often as by the trained
        one with the same plan, which was decoded before."""
        trained = self.ours((arm.top_p, arm.temperature), arm.threshold)
        own = pl.DataFrame(self.rows).filter(**{name: getattr(trained, name) for name in trained.__dataclass_fields__})
        wanted = own.group_by("replica").agg(pl.mean("backtracks")).sort("replica")["backtracks"].to_numpy()
        plan = Plan(
            language.END,
            arm.temperature,
            arm.top_p,
            quota=arm.quota,
            stride=arm.stride,
            refill=arm.refill,
            threshold=arm.threshold,
        )

        def sent_back(rate: np.ndarray) -> np.ndarray:
            guessing = verifiers.Guessing(torch.from_numpy(rate))
            done = self._complete(plan, NAMES, self.entry.repetitions, (NAMES, "rates"), self.calls, guessing)
            return np.array([cases.score(self.models, done, r).backtracks for r in range(self.models.count)], float)

        first = wanted / (self.entry.budget * len(self.prompts[NAMES]) * self.entry.repetitions)
        return verifiers.Guessing(torch.from_numpy(matching_rate(sent_back, wanted, first, TRIALS)))

    def _complete(
        self,
        plan: Plan,
        which: str,
        repetitions: int,
        purpose: tuple[str | int, ...],
        calls: int,
        verifier: Verifier | None = None,
        candidates: int = 0,
    ) -> Completed:
        rng = stream(self.context.seed, self.context.study, self.context.experiment, *purpose)
        return cases.complete(
            self.models, plan, self.prompts[which], self.entry.budget, repetitions, rng, calls, verifier, candidates
        )

    def _keep(self, arm: Arm, number: int, replica: int, run: int, found: Score) -> None:
        key = {"config": number, "replica": replica, "run": run}
        self.rows.append(
            key
            | {"source": "syn_tc"}
            | {name: getattr(arm, name) for name in arm.__dataclass_fields__}
            | {
                "requested": found.requested,
                "distinct": found.distinct,
                "accuracy": found.accuracy,
                "calls": found.calls,
                "erased": found.erased,
                "generated": found.generated,
                "right": found.right,
                "backtracks": found.backtracks,
            }
        )
        self.cumulative += [
            key | {"completion": n, "calls": calls, "distinct": distinct}
            for n, (calls, distinct) in enumerate(found.cumulative)
        ]

    def _list(self, done: Completed, reserved: bool) -> None:
        """Keep the first completions of two prompts by the first model (Tables 3.7, 3.8 and 3.14)."""
        for prompt in range(2):
            for n in range(min(SAMPLES, done.repetitions)):
                row = prompt * done.repetitions + n
                start, written = int(done.prompts[0, row]), done.written(0, row)
                name = cases.name_of(done.tokens[0, row, :start])
                at = language.first_error(name, self.models.cases, written)
                self.samples.append(
                    {
                        "reserved": reserved,
                        "name": name,
                        "completion": n,
                        "prompt": language.text(done.tokens[0, row, :start].tolist()),
                        "written": language.text(written if at < 0 else written[:at]),
                        "from_its_first_error": "" if at < 0 else language.text(written[at:]),
                    }
                )

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the tables but the comparisons."""
        size = sum(int(value[0].numel()) for name, value in self.models.params.items() if "." in name)
        curves = self.context.curves(CASE_MODELS)  # of the models that are reported one by one
        ends = curves.filter(pl.col("step") == pl.col("step").max()).sort("replica")
        model_card = ends.select("replica", "loss_held", parameters=pl.lit(size))
        return {
            "code_models": model_card,
            "code_runs": pl.DataFrame(self.rows),
            "code_cumulative": pl.DataFrame(self.cumulative),
            "code_validation": pl.DataFrame(self.validation),
            "code_verifiers": pl.DataFrame(self.quality),
            "code_samples": pl.DataFrame(self.samples),
        }


def compared(context: Inputs, frames: dict[str, pl.DataFrame], best: Sequence[float]) -> pl.DataFrame:
    """Return the comparisons of the experiment: of each model the mean over its runs. ``best`` are the top_p and
    temperature that are best without a verifier."""
    entry, found = context.entry, Measurements(context)
    means = (
        frames["code_runs"]
        .group_by("replica", "config", maintain_order=True)
        .agg(
            pl.col(
                "top_p",
                "temperature",
                "verifier",
                "threshold",
                "quota",
                "stride",
                "refill",
                "layer",
                "depth",
                "read",
                "candidates",
                "reserved",
            ).first(),
            pl.mean("accuracy", "calls", "distinct", "backtracks"),
            right=pl.mean("right") / pl.first("requested"),
        )
    )
    main = dict(zip(("top_p", "temperature"), entry.main, strict=True))
    careful, *bold = entry.thresholds
    last = int(frames["code_runs"]["layer"].to_numpy().max())

    def of(column: str = "accuracy", **where: Any) -> np.ndarray:
        plain: dict[str, Any] = {"verifier": NONE, "candidates": 0, "reserved": False}
        rows = means.filter(**(plain | where)).sort("replica")
        if rows.height != rows["replica"].n_unique():
            raise AssertionError(f"{where} is not one decoder")
        return rows[column].to_numpy()

    def ours(column: str = "accuracy", **where: Any) -> np.ndarray:
        usual = {
            "verifier": TRAINED,
            "threshold": careful,
            "quota": entry.quota,
            "stride": entry.stride,
            "refill": ARGMAX,
            "layer": last,
            "depth": 1,
            "read": last,
        }
        return of(column, **(main | usual | where))

    found.add(declared.CODE_GREEDY, of(top_p=0.0))
    found.add(declared.CODE_GREEDY_FEWER, of(**main), of(top_p=0.0))
    at_one = [of(top_p=1.0, temperature=temperature) for temperature in entry.temperatures]
    found.add(declared.CODE_TOO_HOT, np.max(at_one, 0), at_one[-1])
    low = {"top_p": entry.main[0], "temperature": COLD}
    found.add(declared.CODE_TOO_COLD, of(**main), of(**low))
    settings = [{"top_p": top_p, "temperature": temperature} for top_p, temperature in entry.settings]
    gains = [ours(**where) - of(**where) for where in settings]
    found.add(declared.CODE_POOLED, np.mean(gains, 0))
    pairs = [(of("config", **where), ours("config", **where)) for where in settings]
    equal = [at_equal_queries(frames, int(plain[0]), int(own[0])) for plain, own in pairs]
    found.add(declared.CODE_EQUAL, np.mean(equal, 0))
    calls = [(ours("calls", **where), of("calls", **where)) for where in settings]
    found.add(declared.CODE_MORE_QUERIES, *(np.mean(each, 0) for each in zip(*calls, strict=True)))
    rates = [
        (ours("distinct", **where) / ours("calls", **where), of("distinct", **where) / of("calls", **where))
        for where in settings
    ]
    found.add(declared.CODE_RATE, *(np.mean(each, 0) for each in zip(*rates, strict=True)))
    at_best: dict[str, Any] = dict(zip(("top_p", "temperature"), best, strict=True))
    found.add(declared.CODE_BEST, ours(**at_best), of(**at_best))
    if bold:
        careful_gains = [ours(**where) - ours(**where, threshold=bold[0]) for where in settings]
        found.add(declared.CODE_CAREFUL, np.mean(careful_gains, 0))
        found.add(declared.CODE_REFILL_BOLD, ours(threshold=bold[0]), ours(threshold=bold[0], refill=SAMPLE))
    else:
        found.not_run(declared.CODE_CAREFUL)
        found.not_run(declared.CODE_REFILL_BOLD)
    found.add(declared.CODE_HOTTEST, gains[-1])
    blocks = {n: {"verifier": TRAINED, "candidates": n} for n in entry.candidates}
    few, middle, many = (blocks[n] for n in entry.candidates)
    found.add(declared.CODE_BLOCK_COST[2], of("calls", **middle), of("calls", **few))
    found.add(declared.CODE_BLOCK_COST[4], of("calls", **many), of("calls", **middle))
    found.add(declared.CODE_BLOCK_ACCURACY, of(**many), of(**few))
    rate = ours("distinct") / ours("calls")
    for n in (4, 8):
        found.add(declared.CODE_PER_QUERY[n], rate, of("distinct", **blocks[n]) / of("calls", **blocks[n]))
    truth, chance = ours(verifier=GROUND_TRUTH, **BLIND), ours(verifier=RANDOM, **BLIND)
    found.add(declared.CODE_TRUTH, truth, ours())
    found.add(declared.CODE_KNOWS, ours(), chance)
    found.add(declared.CODE_CHANCE, chance, of(**main))
    found.add(declared.CODE_OFTEN, ours(), ours(verifier=OFTEN, **BLIND))
    found.add(declared.CODE_OFTEN_RIGHT, ours("right"), ours("right", verifier=OFTEN, **BLIND))
    found.add(declared.CODE_OFTEN_MATCHED, ours("backtracks", verifier=OFTEN, **BLIND), ours("backtracks"))
    if entry.depths:
        found.add(declared.CODE_DEPTH, ours(), np.max([ours(depth=depth) for depth in entry.depths], 0))
        quality = frames["code_verifiers"].filter(layer=last, block=False)
        by_depth = [quality.filter(depth=d).sort("replica")["validation"].to_numpy() for d in (1, *entry.depths)]
        found.add(declared.CODE_DEPTH_VALIDATION, np.max(by_depth, 0) - np.min(by_depth, 0))
    else:
        found.not_run(declared.CODE_DEPTH)
        found.not_run(declared.CODE_DEPTH_VALIDATION)
    drop = of(**main) - of(**main, reserved=True)
    found.add(declared.CODE_DROP, drop, ours() - ours(reserved=True))
    found.add(declared.CODE_REFILL, ours(), ours(refill=SAMPLE))
    vgb_cases.compared(found, frames["vgb_cases"])
    return found.table()


def at_equal_queries(frames: dict[str, pl.DataFrame], plain: int, ours: int) -> np.ndarray:
    """Return (R,) how much larger a share of the cases asked for the decoder ``ours`` finds than ``plain``, by as many
    queries: those of whichever asks fewer, run by run. Between two repetitions of all prompts numbers are interpolated.
    """
    asked = int(frames["code_runs"]["requested"][0])
    curves = frames["code_cumulative"].filter(pl.col("config").is_in([plain, ours])).sort("completion")
    rows = []
    for (replica, _), run in curves.group_by("replica", "run", maintain_order=True):
        (x, y), (x_plain, y_plain) = (
            (np.append(0, own["calls"].to_numpy()), np.append(0, own["distinct"].to_numpy()))
            for own in (run.filter(config=ours), run.filter(config=plain))
        )
        at = min(x[-1], x_plain[-1])
        gain = (np.interp(at, x, y) - np.interp(at, x_plain, y_plain)) / asked
        rows.append({"replica": replica, "gain": gain})
    means = pl.DataFrame(rows).group_by("replica").agg(pl.mean("gain")).sort("replica")
    return means["gain"].to_numpy()
