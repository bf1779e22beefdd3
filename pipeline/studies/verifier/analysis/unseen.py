"""Tables 3.3, 3.5, 3.16, Figure 3.2: unseen prompts out of distribution (Li 2025, 3.2.1.5, 3.2.1.8, 3.2.1.9, 3.2.3).

Beyond the source: which part of the gain is *finding* mistakes, and which *refilling greedily*. Verifiers that know
(the ground truth), that were trained, and that guess as often as the trained one objects, each with both refills.

What a lower top_p buys without a verifier stands beside it, down to the likeliest sign alone (as in Table 3.1).

All decoders meet the same chances: call c of run i on a prompt draws the same number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder
from pipeline.models.llama.decoding import ARGMAX, SAMPLE, Plan, Verifier, law
from pipeline.models.llama.verifiers import Guessing
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.measures import material
from pipeline.studies.verifier.measures.generation import Completions, Models, complete, ground_truth
from pipeline.studies.verifier.names import GROUND_TRUTH, NONE, RANDOM, STRINGS, TRAINED

EXAMPLES = 20  # mistakes of a model that are listed


@dataclass(frozen=True)
class Arm:
    """A decoder: top_p, the verifier and the refill (`NONE` and "" without a backtrack)."""

    top_p: float
    verifier: str
    refill: str


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return errors and queries of every decoder, what mistakes are left, and how diverse completions are."""
    models, entry = material.language_models(context), context.entry
    rows: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    low, high = entry.top_p
    with one_thread():
        trained = material.trained(context, models)
        guessing: dict[float, Verifier] = {}
        prompts = material.strings(context, STRINGS, "unseen", models.limit)
        for top_p in entry.without:
            arm = Arm(top_p, NONE, "")
            runs = entry.repeats if top_p else 1  # the likeliest signs are the same in every run
            rows += _rows(arm, _complete(context, models, prompts, arm, None, runs), runs)
        for top_p in (low, high):
            for arm in _arms(top_p):
                verifier: Verifier | None = None
                if arm.verifier == TRAINED:
                    verifier = trained
                elif arm.verifier == GROUND_TRUTH:
                    verifier = ground_truth(models.brackets)
                elif arm.verifier == RANDOM:
                    verifier = guessing[top_p]
                done = _complete(context, models, prompts, arm, verifier, entry.repeats)
                rows += _rows(arm, done, entry.repeats)
                if arm.verifier == TRAINED and arm.refill == ARGMAX:
                    guessing[top_p] = _as_often(done, entry.quota)
                    left += _left(models, arm, done)
                    if top_p == low:
                        examples = _examples(models, done)
                elif arm.verifier == NONE:
                    left += _left(models, arm, done)
        diverse = _diversity(context, models, trained)
    frames = {
        "unseen_runs": pl.DataFrame(rows),
        "residual_errors": pl.DataFrame(left),
        "residual_examples": pl.DataFrame(examples),
        "diversity": diverse,
    }
    frames["unseen"] = _means(frames["unseen_runs"])
    return frames | {"comparisons": _compared(context, models, frames)}


def _arms(top_p: float) -> list[Arm]:
    verified = [(verifier, refill) for verifier in (TRAINED, GROUND_TRUTH, RANDOM) for refill in (ARGMAX, SAMPLE)]
    return [Arm(top_p, NONE, ""), *(Arm(top_p, *each) for each in verified)]


def _complete(
    context: Inputs,
    models: Models,
    prompts: material.Strings,
    arm: Arm,
    verifier: Verifier | None,
    runs: int,
    purpose: str = "unseen",
) -> Completions:
    entry = context.entry
    plan = Plan(language.END, top_p=arm.top_p)
    calls = replace(plan, quota=entry.quota, stride=entry.stride).calls(models.limit)
    if verifier is not None:
        plan = replace(
            plan,
            quota=entry.quota,
            stride=entry.stride,
            refill=arm.refill,
            threshold=context.settings.verifier.threshold,
        )
    rng = stream(context.seed, context.study, context.experiment, purpose)
    return complete(models, plan, prompts[0][None], prompts[1][None], rng, calls, runs, verifier)


def _as_often(done: Completions, quota: int) -> Guessing:
    """Return a verifier that guesses, and objects to as large a share of drawn tokens as the trained one did.

    Of a row's calls those that refill are shown to no verifier, and they are about as many as were erased.
    """
    shown = (done.calls - done.erased).sum(1)
    return Guessing(torch.from_numpy(((quota - done.quota).sum(1) / shown).clip(0, 1)))


def _rows(arm: Arm, done: Completions, runs: int) -> list[dict[str, Any]]:
    """Return a row for each model and run."""
    R = len(done.right)

    def by_run(values: Any) -> Any:
        return values.reshape(R, -1, runs)

    right, calls, erased = by_run(done.right), by_run(done.calls), by_run(done.erased)
    completion, exact = by_run(done.lengths - done.prompts), by_run(done.exact)
    sent = np.zeros((R, runs), np.int64)
    for replica, row, _ in done.sent_back:
        sent[replica, row % runs] += 1
    return [
        {
            "replica": r,
            "top_p": arm.top_p,
            "verifier": arm.verifier,
            "refill": arm.refill,
            "run": i,
            "n": right.shape[1],
            "errors": int((~right[r, :, i]).sum()),
            "calls": calls[r, :, i].mean(),
            "erased": erased[r, :, i].mean(),
            "completion": completion[r, :, i].mean(),
            "backtracks": int(sent[r, i]),
            "exact": bool(exact[r, :, i].all()),
        }
        for r in range(R)
        for i in range(runs)
    ]


def _means(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the mean over runs of each model and decoder, with the spread as the source prints it (population)."""
    return runs.group_by("replica", "top_p", "verifier", "refill", maintain_order=True).agg(
        pl.len().alias("runs").cast(pl.Int32),
        pl.col("n").first(),
        pl.mean("errors"),
        pl.std("errors", ddof=0).alias("errors_std"),
        (pl.std("errors", ddof=1) / pl.len().sqrt()).alias("errors_se"),
        pl.mean("calls", "erased", "completion", "backtracks"),
    )


def _left(models: Models, arm: Arm, done: Completions) -> list[dict[str, Any]]:
    """Return how many mistakes of each kind are left, and how many of them are closers of the majority's kind."""
    rows = []
    for r in range(models.count):
        at, kind = language.first_errors(done.tokens[r], done.lengths[r], models.brackets)
        # A completion that is a prefix at its full length has no end.
        kind = np.where((kind < 0) & ~done.right[r], language.ERRORS.index(language.END_INCORRECT), kind)
        sign = done.tokens[r][np.arange(len(at)), np.maximum(at, 0)]
        for k, error in enumerate(language.ERRORS):
            own = kind == k
            rows.append(
                {
                    "replica": r,
                    "top_p": arm.top_p,
                    "verifier": arm.verifier,
                    "refill": arm.refill,
                    "error": error,
                    "count": int(own.sum()),
                    "majority": int((own & (sign == language.CLOSE[1])).sum()),
                    "without_quota": int((own & (done.quota[r] == 0)).sum()),
                }
            )
    return rows


def _examples(models: Models, done: Completions) -> list[dict[str, Any]]:
    """Return the first mistakes of every model as Figure 3.2 lists them."""
    rows = []
    for r in range(models.count):
        at, kind = language.first_errors(done.tokens[r], done.lengths[r], models.brackets)
        chosen = np.flatnonzero(at >= 0)[:EXAMPLES]
        if not len(chosen):
            continue
        one = models.one(r)
        ids = torch.from_numpy(done.tokens[r][chosen])[None, :, :-1]
        with torch.no_grad():
            logits, _ = decoder.forward(one.spec, one.params, one.params["head.W"], ids)
        for place, row in enumerate(chosen.tolist()):
            where = int(at[row])
            p = law(logits[0, place, where - 1], Plan(language.END))
            sign, best = int(done.tokens[r][row, where]), int(p.argmax())
            rows.append(
                {
                    "replica": r,
                    "row": row,
                    "error": language.ERRORS[kind[row]],
                    "prefix": language.text(done.tokens[r][row, :where]),
                    "sign": language.SIGNS[sign],
                    "probability": float(p[sign]),
                    "likeliest": language.SIGNS[best],
                    "its_probability": float(p[best]),
                    "quota_left": int(done.quota[r, row]),
                }
            )
    return rows


def _diversity(context: Inputs, models: Models, trained: Verifier) -> pl.DataFrame:
    """Return the numbers of distinct completions of fresh prompts (Table 3.5), and how many of them are right."""
    prompts, times = material.strings(context, STRINGS, "diversity", models.limit), context.entry.diversity
    low, high = context.entry.top_p
    frames = []
    verifiers: dict[str, Verifier | None] = {TRAINED: trained, GROUND_TRUTH: ground_truth(models.brackets), NONE: None}
    refilled = [Arm(high, verifier, ARGMAX) for verifier in (TRAINED, GROUND_TRUTH)]
    plain = [Arm(top_p, NONE, "") for top_p in (*context.entry.without, low, high)]
    for arm in (*refilled, Arm(low, TRAINED, ARGMAX), *plain):
        verifier = verifiers[arm.verifier]
        done = _complete(context, models, prompts, arm, verifier, times, "diversity")
        R, N = models.count, len(prompts[1])
        used = np.where(np.arange(done.tokens.shape[-1]) < done.lengths[..., None], done.tokens, -1)
        by_prompt = used.reshape(R, N, times, -1)
        right = done.right.reshape(R, N, times)
        found = [np.unique(by_prompt[r, n], axis=0, return_index=True) for r in range(R) for n in range(N)]
        frames.append(
            pl.DataFrame(
                {
                    "replica": np.repeat(np.arange(R), N),
                    "prompt_id": np.tile(np.arange(N), R),
                    "top_p": arm.top_p,
                    "verifier": arm.verifier,
                    "distinct": [len(strings) for strings, _ in found],
                    "right": [int(right[n // N, n % N][first].sum()) for n, (_, first) in enumerate(found)],
                }
            )
        )
    return pl.concat(frames)


def _compared(context: Inputs, models: Models, frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    found, table = Measurements(context), frames["unseen"]
    low, high = context.entry.top_p
    levels = {declared.LOW: low, declared.HIGH: high}

    def at(top_p: float, verifier: str, refill: str, column: str = "errors") -> Any:
        rows = table.filter(top_p=top_p, verifier=verifier, refill=refill)
        return rows[column].to_numpy() / (rows["n"].to_numpy() if column == "errors" else 1)

    def of(level: str, verifier: str, refill: str, column: str = "errors") -> Any:
        return at(levels[level], verifier, refill, column)

    greedy = at(0.0, NONE, "")
    base = {level: of(level, NONE, "") for level in levels}
    ours = {level: of(level, TRAINED, ARGMAX) for level in levels}
    found.add(declared.BY_TOP_P, base[declared.HIGH], base[declared.LOW])
    found.add(declared.BY_TOP_P_RATIO, base[declared.HIGH], base[declared.LOW])
    reduced = {level: 1 - _over(ours[level], base[level]) for level in levels}
    for level in levels:
        found.add(declared.ERRORS_LEFT[level], ours[level], base[level])
        found.add(declared.OVER_GREEDY[level], greedy, ours[level])
        found.add(declared.BY_CHANCE[level], base[level], of(level, RANDOM, ARGMAX))
        found.add(declared.NO_ARGMAX[level], of(level, TRAINED, SAMPLE), ours[level])
        found.add(declared.NO_ARGMAX_RATIO[level], of(level, TRAINED, SAMPLE), ours[level])
        found.add(declared.NO_ARGMAX_BASE[level], of(level, TRAINED, SAMPLE), base[level])
        for refill in (ARGMAX, SAMPLE):
            found.add(declared.FINDING[level, refill], of(level, RANDOM, refill), of(level, TRAINED, refill))
            found.add(declared.KNOWING[level, refill], of(level, TRAINED, refill), of(level, GROUND_TRUTH, refill))
        for verifier in (TRAINED, GROUND_TRUTH, RANDOM):
            found.add(declared.REFILLING[level, verifier], of(level, verifier, SAMPLE), of(level, verifier, ARGMAX))
        found.add(
            declared.MATCHED[level], of(level, RANDOM, ARGMAX, "backtracks"), of(level, TRAINED, ARGMAX, "backtracks")
        )
        calls, plain = of(level, TRAINED, ARGMAX, "calls"), of(level, NONE, "", "calls")
        cost, most = calls / plain, 1 + context.entry.quota * context.entry.stride / of(level, NONE, "", "completion")
        found.add(declared.COST[level], calls, plain)
        found.add(declared.PER_RIGHT[level], calls / (1 - ours[level]), plain / (1 - base[level]))
        found.add(declared.COST_BOUND[level], cost - most)
    found.add(declared.REDUCTION, reduced[declared.HIGH], reduced[declared.LOW])
    exact = frames["unseen_runs"].group_by("replica", maintain_order=True).agg(pl.col("exact").cast(pl.Float64).mean())
    found.add(declared.EXACT, exact["exact"])
    left = frames["residual_errors"].filter(top_p=low, verifier=TRAINED)
    closers = left.filter(error=language.WRONG_CLOSER)
    total = left.group_by("replica", maintain_order=True).agg(pl.sum("count", "without_quota"))
    found.add(declared.WRONG_CLOSERS, _over(closers["count"], total["count"]))
    found.add(declared.MAJORITY, _over(closers["majority"], closers["count"]))
    found.add(declared.OUT_OF_QUOTA, _over(total["without_quota"], total["count"]))
    by_prompt = frames["diversity"].group_by("replica", "top_p", "verifier", maintain_order=True)
    diverse = by_prompt.agg(pl.mean("distinct", "right"))

    def completions(top_p: float, verifier: str, column: str = "distinct") -> pl.Series:
        return diverse.filter(top_p=top_p, verifier=verifier)[column]

    found.add(declared.DIVERSITY, completions(high, TRAINED), completions(high, NONE))
    found.add(declared.DIVERSITY_KNOWN, completions(high, GROUND_TRUTH), completions(high, NONE))
    found.add(declared.DIVERSITY_LOW, completions(high, TRAINED), completions(low, NONE))
    for level, top_p in levels.items():
        found.add(declared.RIGHT[level], completions(top_p, TRAINED, "right"), completions(top_p, NONE, "right"))
    found.add(declared.RIGHT_KNOWN, completions(high, GROUND_TRUTH, "right"), completions(high, NONE, "right"))
    return found.table()


def _over(one: Any, other: Any) -> Any:
    """Return the quotients; NaN where there is nothing to divide by."""
    one, other = np.asarray(one, float), np.asarray(other, float)
    return np.divide(one, other, out=np.full_like(one, np.nan), where=other > 0)
