"""Tables 3.1, 3.2 and 3.4: backtracking where models are about to make a mistake (Li 2025, 3.2.1.3, 3.2.1.4, 3.2.1.7).

A prefix is a mistaken string without its last sign. Everything is measured on the prefixes that the verifiers were
trained on, as in the source, and on further ones. Prompts may be erased up to their first sign: else a backtrack at
such a prefix would change nothing.

Beyond the source: in the largest cell of Table 3.2 a verifier that guesses, and sends back as often as the trained one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import dyck_strings as language
from pipeline.models.llama.decoding import ARGMAX, SAMPLE, Plan, Verifier
from pipeline.models.llama.verifiers import Guessing, Trained
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.measures import material
from pipeline.studies.verifier.measures.generation import Completions, Models, complete
from pipeline.studies.verifier.measures.guessing import matching_rate
from pipeline.studies.verifier.names import ERROR, HELD, HELD_ERROR, MISTAKES, SEEN

SETS = {SEEN: ERROR, HELD: HELD_ERROR}
GREEDY, NUCLEUS, WITH_IT = "greedy", "nucleus", "with_it"
TRIALS = 4  # of a rate at which to guess


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return how often prefixes are completed rightly, by every decoder, and whether backtracks were necessary."""
    models = material.language_models(context)
    tables: dict[str, list[dict[str, Any]]] = {"forced": [], "algorithm_1": [], "necessity": [], "guessed": []}
    with one_thread():
        verifier = material.trained(context, models)
        for replica in range(models.count):
            for name, dataset in SETS.items():
                tokens, lengths = material.strings(context, MISTAKES, dataset, models.limit, replica)
                prefixes = Prefixes(context, models.one(replica), replica, name, tokens, lengths - 1)
                tables["forced"] += prefixes.forced()
                for one, other in prefixes.algorithm_1(material.of_model(verifier, replica)):
                    tables["algorithm_1"].append(one)
                    tables["necessity"].append(other)
                tables["guessed"].append(prefixes.guessed(tables["algorithm_1"][-1]))
    frames = {name: pl.DataFrame(rows) for name, rows in tables.items()}
    return frames | {"comparisons": _compared(context, frames)}


class Prefixes:
    """The prefixes of one model."""

    def __init__(
        self,
        context: Inputs,
        model: Models,
        replica: int,
        name: str,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
    ) -> None:
        self.context, self.model = context, model
        self.key = {"replica": replica, "prefixes": name}
        self.tokens, self.lengths = tokens, lengths
        entry = context.entry
        self.calls = model.limit + max(entry.quotas) * max(entry.strides)
        self.plan = Plan(language.END, top_p=entry.top_p)

    def forced(self) -> list[dict[str, Any]]:
        """Return the rows of Table 3.1: signs are erased once, refilled or not, and nucleus sampling goes on."""
        rows = [(0, "none", self._right(self.tokens, self.lengths, self.plan))]
        rows.append((0, GREEDY, self._right(self.tokens, self.lengths, replace(self.plan, temperature=0.0))))
        for stride in self.context.entry.forced:
            cut = np.maximum(self.lengths - stride, 1)
            refilled = self._refilled(cut)
            rows.append((stride, ARGMAX, self._right(refilled, self.lengths, self.plan)))
            rows.append((stride, SAMPLE, self._right(self.tokens, cut, self.plan)))
        return [
            self.key | {"stride": stride, "refill": refill, "n": len(right), "accuracy": right.mean()}
            for stride, refill, right in rows
        ]

    def _refilled(self, cut: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the strings with the likeliest signs behind ``cut``."""
        plan = Plan(-1, temperature=0.0)  # no sign ends it: a string that ends too early is wrong whatever follows
        done = self._complete(self.tokens, cut, plan)
        return np.where(np.arange(self.tokens.shape[1]) < self.lengths[:, None], done.tokens[0], 0)

    def algorithm_1(self, verifier: Trained) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield for each quota and stride the rows of Tables 3.2 and 3.4."""
        entry = self.context.entry
        for quota in entry.quotas:
            for stride in entry.strides:
                done = self._complete(self.tokens, self.lengths, self._going_back(quota, stride), verifier)
                key = self.key | {"quota": quota, "stride": stride}
                row = {
                    "n": len(self.lengths),
                    "accuracy": done.right.mean(),
                    "calls": done.calls.mean(),
                    "erased": done.erased.mean(),
                    "backtracks": len(done.sent_back),
                    "exact": done.exact.all(),
                }
                yield key | row, key | self._necessity(done)

    def guessed(self, cell: dict[str, Any]) -> dict[str, Any]:
        """Return what a verifier makes of a cell that guesses, at a rate which sends back as often as in its row."""
        quota, stride = cell["quota"], cell["stride"]
        plan = self._going_back(quota, stride)

        def guess(rate: NDArray[np.float64], *purpose: str) -> Completions:
            return self._complete(self.tokens, self.lengths, plan, Guessing(torch.from_numpy(rate)), *purpose)

        def sent_back(rate: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray((quota - guess(rate, "rates").quota).mean(1))

        wanted = np.array([cell["backtracks"] / cell["n"]])
        rate = matching_rate(sent_back, wanted, wanted / self.model.brackets, TRIALS)
        done = guess(rate)
        return self.key | {
            "quota": quota,
            "stride": stride,
            "rate": rate[0],
            "n": cell["n"],
            "accuracy": done.right.mean(),
            "backtracks": len(done.sent_back),
        }

    def _going_back(self, quota: int, stride: int) -> Plan:
        threshold = self.context.settings.verifier.threshold
        return replace(self.plan, quota=quota, stride=stride, reach=None, threshold=threshold)

    def _necessity(self, done: Completions) -> dict[str, Any]:
        """Return what becomes of strings that the verifier objected to when they go on without a backtrack.

        Beside it stands what Algorithm 1 made of the same strings: these are not all prefixes. One that can no longer
        be completed shows that the verifier was right, and is never completed without it; one that is whole and right
        is done. `valid` counts the others, of which both can come.
        """
        triggers = [written for _, _, written in done.sent_back]
        width, n = self.model.limit, len(triggers)
        lengths = np.array([len(each) for each in triggers], np.int64)
        tokens = np.zeros((n, width), np.int64)
        for row, written in zip(tokens, triggers, strict=True):
            row[: len(written)] = written
        valid = language.completable(tokens, lengths, self.model.brackets) if n else np.zeros(0, bool)
        whole = valid & (lengths == width)
        going = valid & ~whole
        found: dict[str, Any] = {"triggers": n, "valid": int(going.sum()), "whole": int(whole.sum())}
        ends = {WITH_IT: done.right[0, [row for _, row, _ in done.sent_back]]}
        for name, plan in ((NUCLEUS, self.plan), (GREEDY, replace(self.plan, temperature=0.0))):
            ends[name] = whole.copy()
            if going.any():
                ends[name][going] = self._right(tokens[going], lengths[going], plan)
        for name, right in ends.items():
            found |= {name: right.mean() if n else None, f"{name}_valid": right[going].mean() if going.any() else None}
        return found

    def _right(self, tokens: NDArray[np.int64], lengths: NDArray[np.int64], plan: Plan) -> NDArray[np.bool_]:
        """Return which strings are completed rightly; one that is no prefix any more never is."""
        right = language.completable(tokens, lengths, self.model.brackets)
        if right.any():
            right[right] = self._complete(tokens[right], lengths[right], plan).right[0]
        return right

    def _complete(
        self,
        tokens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        plan: Plan,
        verifier: Verifier | None = None,
        *purpose: str,
    ) -> Completions:
        names = (self.context.study, self.context.experiment, *map(str, self.key.values()), *purpose)
        rng = stream(self.context.seed, *names)
        return complete(self.model, plan, tokens[None], lengths[None], rng, self.calls, verifier=verifier)


def _compared(context: Inputs, frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    found, entry = Measurements(context), context.entry
    for name in SETS:
        forced = frames["forced"].filter(prefixes=name)
        cells = frames["algorithm_1"].filter(prefixes=name)
        base = forced.filter(refill="none")["accuracy"]
        by_stride = {B: forced.filter(stride=B, refill=ARGMAX)["accuracy"] for B in entry.forced}
        cell = {
            (Q, B): cells.filter(quota=Q, stride=B)["accuracy"].to_numpy() for Q in entry.quotas for B in entry.strides
        }
        found.add(declared.FORCED[name], by_stride[max(entry.forced)], base)
        steps = [by_stride[b] - by_stride[a] for a, b in zip(entry.forced, entry.forced[1:], strict=False)]
        found.add(declared.FORCED_STEPS[name], np.min(steps, 0))
        found.add(declared.LARGEST_CELL[name], cell[max(entry.quotas), max(entry.strides)], base)
        found.add(declared.EVERY_CELL[name], np.min([values - base.to_numpy() for values in cell.values()], 0))
        greedy = forced.filter(refill=GREEDY)["accuracy"].to_numpy()
        found.add(declared.OVER_GREEDY_CELLS[name], np.min([values - greedy for values in cell.values()], 0))
        guessed = frames["guessed"].filter(prefixes=name)
        trained = cells.filter(quota=max(entry.quotas), stride=max(entry.strides))
        found.add(declared.GUESSED_CELL[name], guessed["accuracy"], base)
        found.add(declared.OVER_GUESS[name], trained["accuracy"], guessed["accuracy"])
        found.add(declared.GUESS_MATCHED[name], guessed["backtracks"], trained["backtracks"])
        means = [[np.mean([cell[Q, B] for B in entry.strides], 0) for Q in entry.quotas]]
        means.append([np.mean([cell[Q, B] for Q in entry.quotas], 0) for B in entry.strides])
        grown = [b - a for line in means for a, b in itertools.pairwise(line)]
        found.add(declared.CELL_STEPS[name], np.min(grown, 0))
        both = cells.join(frames["necessity"], on=["replica", "prefixes", "quota", "stride"], maintain_order="left")
        for comparison, valid, ours in (
            (declared.UNNECESSARY[name], "", "accuracy"),
            (declared.UNNECESSARY_PAIRED[name], "", WITH_IT),
            (declared.UNNECESSARY_VALID[name], "_valid", f"{WITH_IT}_valid"),
        ):
            without = both.with_columns(best=pl.max_horizontal(NUCLEUS + valid, GREEDY + valid) - pl.col(ours))
            largest = without.group_by("replica", maintain_order=True).agg(pl.col("best").max())
            found.add(comparison, largest["best"].fill_null(np.nan))
    return found.table()
