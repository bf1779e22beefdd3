"""Test cases by a model of the Llama architecture from a local folder: CodeLlama-7B in the source (section 3.2.2).

None is part of this repository. Where the parameters name a folder, its model completes the prompts of Table 3.7, a
linear verifier of its states is trained as those of the stand-in, and the same decoder draws, with and without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import append_cases, test_cases
from pipeline.models.llama import folder, verifiers
from pipeline.models.llama.decoding import ARGMAX, Plan
from pipeline.studies.verifier.measures import cases, classifiers
from pipeline.studies.verifier.names import NONE, RANDOM, TRAINED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.kit.inputs import Inputs

FEWEST = 2  # samples of each kind from which a verifier learns


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return the metrics of every decoder and run; no rows where the parameters name no folder."""
    entry = context.entry
    if entry.folder is None:
        return {"pretrained_runs": None}
    where = f"params/verifier/experiments.yaml: {context.experiment}.folder: {entry.folder}"
    model = folder.read(entry.folder, where)
    if entry.layer > model.spec.layers:
        raise SandglassError(
            f"params/verifier/experiments.yaml: {context.experiment}.layer is {entry.layer}, and the model in "
            f"{entry.folder} has {model.spec.layers} layers"
        )
    return {"pretrained_runs": Experiment(context, model).rows()}


class Experiment:
    """The model, its verifier, and the decoders."""

    def __init__(self, context: Inputs, model: folder.Pretrained) -> None:
        self.context, self.entry, self.model = context, context.entry, model
        self.models = cases.CaseModels(model.spec, model.params, self.entry.cases)
        self.calls = self.entry.budget + self.entry.quota * self.entry.stride

    def rows(self) -> pl.DataFrame:
        """Return table ``pretrained_runs``."""
        trained, validation = self._trained()
        entry, rows = self.entry, []
        for top_p, temperature in entry.settings:
            plain = Plan(self.model.end, temperature, top_p)
            decoders: list[tuple[str, Plan, verifiers.Trained | verifiers.Guessing | None]] = [(NONE, plain, None)]
            for threshold in entry.thresholds:
                back = replace(plain, quota=entry.quota, stride=entry.stride, refill=ARGMAX, threshold=threshold)
                decoders += [(TRAINED, back, trained), (RANDOM, back, verifiers.Guessing())]
            for verifier, plan, judge in decoders:
                for run in range(entry.runs_of_each):
                    done = self._complete(plan, self._names(), entry.repetitions, ("names", run), judge)
                    rows.append(self._row(plan, verifier, run, done) | {"validation": validation})
        return pl.DataFrame(rows)

    def _names(self) -> list[str]:
        """Return names of three random letters that no verifier is trained on."""
        rng, found = stream(self.context.seed, self.context.study, self.context.experiment, "letters"), list[str]()
        while len(found) < self.entry.names:
            name = "".join(chr(ord("a") + letter) for letter in rng.integers(0, 26, 3).tolist())
            # None that a prompt says of something else: a keyword, or the function of the demonstrations.
            if name not in (
                *found,
                *test_cases.RESERVED,
                *test_cases.TRAINING,
                "and",
                "def",
                "del",
                "for",
                "not",
                "try",
            ):
                found.append(name)
        return found

    def _prompts(self, names: list[str]) -> list[list[int]]:
        rng = stream(self.context.seed, self.context.study, self.context.experiment, "demonstrations", *names)
        sums = [rng.integers(1, 10, (self.entry.cases, 2)).tolist() for _ in names]
        texts = [
            append_cases.prompt(name, self.entry.cases, [(i, j) for i, j in each])
            for name, each in zip(names, sums, strict=True)
        ]
        return [self.model.ids(text) for text in texts]

    def _complete(
        self,
        plan: Plan,
        names: list[str],
        repetitions: int,
        purpose: tuple[str | int, ...],
        verifier: verifiers.Trained | verifiers.Guessing | None = None,
    ) -> cases.Completed:
        rng = stream(self.context.seed, self.context.study, self.context.experiment, *purpose)
        prompts, budget = self._prompts(names), self.entry.budget
        return cases.complete(self.models, plan, prompts, budget, repetitions, rng, self.calls, verifier)

    def _texts(self, done: cases.Completed, row: int) -> tuple[list[int], str]:
        """Return a completion as tokens and as text, without the end."""
        written = done.written(0, row)
        ids = written[:-1] if written and written[-1] == self.model.end else written
        return ids, self.model.text(ids)

    def _trained(self) -> tuple[verifiers.Trained, float]:
        """Return a verifier of the states of a layer, and its validation accuracy.

        Raises SandglassError if the model writes hardly anything right, or hardly anything wrong.
        """
        entry, names = self.entry, list(test_cases.TRAINING)
        done = self._complete(Plan(self.model.end), names, entry.verifier_repetitions, ("verifier",))
        rng = stream(self.context.seed, self.context.study, self.context.experiment, "samples")
        rows, lengths, right = self._samples(done, names, rng)
        counts = int(right.sum()), int((~right).sum())
        if min(counts) < FEWEST:
            raise SandglassError(
                f"{self.context.experiment}: the model in {entry.folder} wrote {counts[0]} right and {counts[1]} wrong "
                f"prefixes, of which a verifier needs {FEWEST} each: raise verifier_repetitions"
            )
        features = cases.states(self.models, 0, entry.layer, done.tokens[0][rows], lengths)
        settings = self.context.settings.verifier.model_copy(update={"splits": 1, "share": 0.9})
        key = (self.context.study, "verifier", self.context.experiment)
        fit = classifiers.fit(settings, features, right, key, self.context.seed)
        return verifiers.Trained(entry.layer, fit.weights), float(fit.validation[0])

    def _samples(
        self, done: cases.Completed, names: list[str], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return rows, lengths of prefixes and which are right, by the rule of `cases.samples`."""
        found: list[tuple[int, int, bool]] = []
        for row in range(done.lengths.shape[1]):
            ids, text = self._texts(done, row)
            start = int(done.prompts[0, row])
            at = append_cases.first_error(names[row // done.repetitions], self.entry.cases, text)
            wrong = len(ids)
            if at >= 0:  # the first token after which the wrong letter stands
                wrong = next(n for n in range(len(ids)) if len(self.model.text(ids[: n + 1])) > min(at, len(text) - 1))
                found.append((row, start + wrong + 1, False))
            if wrong:
                found.append((row, start + 1 + int(rng.integers(wrong)), True))
        rows, lengths, right = zip(*found, strict=True) if found else ((), (), ())
        return np.array(rows, np.int64), np.array(lengths, np.int64), np.array(right, bool)

    def _row(self, plan: Plan, verifier: str, run: int, done: cases.Completed) -> dict[str, Any]:
        right: set[tuple[int, str, str]] = set()
        names = self._names()
        for row in range(done.lengths.shape[1]):
            prompt = row // done.repetitions
            listed = append_cases.cases_of(names[prompt], self.entry.cases, self._texts(done, row)[1])
            right |= {(prompt, items, item) for items, item, ok in listed if ok}
        requested = done.lengths.shape[1] * self.entry.cases
        return {
            "model": self.model.name,
            "run": run,
            "top_p": plan.top_p,
            "temperature": plan.temperature,
            "verifier": verifier,
            "threshold": plan.threshold if verifier != NONE else 0.0,
            "layer": self.entry.layer if verifier == TRAINED else -1,
            "requested": requested,
            "distinct": len(right),
            "accuracy": len(right) / requested,
            "calls": int(done.calls.sum()),
            "erased": int(done.erased.sum()),
            "backtracks": int(done.backtracks.sum()),
        }
