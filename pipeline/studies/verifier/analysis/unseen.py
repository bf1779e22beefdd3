"""Tables 3.3, 3.5, 3.16, Figure 3.2: unseen prompts out of distribution (Li 2025, 3.2.1.5, 3.2.1.8, 3.2.1.9, 3.2.3).

Beyond the source: which part of the gain is *finding* mistakes, and which *refilling greedily*. Verifiers that know
(the ground truth), that were trained, and that guess, each with both refills. Those that guess send back about as often
as the trained one does with the same refill.

A verifier learns from strings that end with a mistake, and from right ones of the same lengths. Models hardly make
mistakes with the last signs of a string, so that it learned next to nothing of these, and is asked about them all the
same. So it stands here a second time, asked only about lengths that it learned from, and what it objects to is counted
place by place.

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
from pipeline.models.llama.verifiers import Guessing, Trained, Within, scores
from pipeline.studies.verifier import comparisons as declared
from pipeline.studies.verifier.comparisons import WITHIN
from pipeline.studies.verifier.datasets import padded
from pipeline.studies.verifier.measures import material
from pipeline.studies.verifier.measures.closers import closers_due
from pipeline.studies.verifier.measures.generation import Completions, Models, complete, ground_truth
from pipeline.studies.verifier.measures.guessing import matching_rate
from pipeline.studies.verifier.names import GROUND_TRUTH, NONE, RANDOM, STRINGS, TRAINED

EXAMPLES = 20  # mistakes of a model that are listed
TRIALS = 4  # of a rate at which to guess, each on a part of the prompts
PART = 4  # which is one in so many


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
    closers: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    objections = pl.DataFrame()
    low, high = entry.top_p
    with one_thread():
        trained = material.trained(context, models)
        samples = material.lengths_learned_from(context, models)
        learned = samples >= entry.learned * samples.sum(1, keepdims=True)
        within = Within(trained, torch.from_numpy(learned))
        sent: dict[Arm, np.ndarray] = {}
        prompts = material.strings(context, STRINGS, "unseen", models.limit)
        for top_p in entry.without:
            arm = Arm(top_p, NONE, "")
            runs = entry.repeats if top_p else 1  # the likeliest signs are the same in every run
            rows += _rows(models, arm, _complete(context, models, prompts, arm, None, runs), runs)
        for top_p in (low, high):
            for arm in _arms(top_p):
                verifier: Verifier | None = None
                if arm.verifier == TRAINED:
                    verifier = trained
                elif arm.verifier == WITHIN:
                    verifier = within
                elif arm.verifier == GROUND_TRUTH:
                    verifier = ground_truth(models.brackets)
                elif arm.verifier == RANDOM:
                    wanted = sent[replace(arm, verifier=TRAINED)]
                    verifier = _as_often(context, models, prompts, arm, wanted)
                done = _complete(context, models, prompts, arm, verifier, entry.repeats)
                rows += _rows(models, arm, done, entry.repeats)
                sent[arm] = (entry.quota - done.quota).mean(1)
                if arm.verifier == NONE or (arm.verifier == TRAINED and arm.refill == ARGMAX):
                    left += _left(models, arm, done)
                    closers += _closers(models, arm, done)
                if arm == Arm(low, TRAINED, ARGMAX):
                    examples = _examples(models, done)
                if arm == Arm(low, NONE, ""):
                    objections = _objections(context, models, trained, done, samples, learned)
        diverse = _diversity(context, models, trained, within)
    frames = {
        "unseen_runs": pl.DataFrame(rows),
        "residual_errors": pl.DataFrame(left),
        "residual_examples": pl.DataFrame(examples),
        "closers": pl.DataFrame(closers),
        "objections": objections,
        "diversity": diverse,
    }
    frames["unseen"] = _means(frames["unseen_runs"])
    return frames | {"comparisons": _compared(context, models, frames)}


def _arms(top_p: float) -> list[Arm]:
    verified = [(verifier, refill) for verifier in (TRAINED, GROUND_TRUTH, RANDOM) for refill in (ARGMAX, SAMPLE)]
    return [Arm(top_p, NONE, ""), *(Arm(top_p, *each) for each in verified), Arm(top_p, WITHIN, ARGMAX)]


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


def _as_often(context: Inputs, models: Models, prompts: material.Strings, arm: Arm, wanted_R: np.ndarray) -> Verifier:
    """Return a verifier that guesses, at a rate by which each model is sent back about as often as ``wanted``, a mean
    number for each prompt.

    What a rate comes to depends on the refill, the quota and the prompts. So it is tried on a part of the prompts.
    """
    few = prompts[0][::PART], prompts[1][::PART]

    def sent_back(rate_R: np.ndarray) -> np.ndarray:
        done = _complete(context, models, few, arm, Guessing(torch.from_numpy(rate_R)), 1, "rates")
        return np.asarray((context.entry.quota - done.quota).mean(1))

    first = wanted_R / models.brackets
    return Guessing(torch.from_numpy(matching_rate(sent_back, wanted_R, first, TRIALS)))


def _rows(models: Models, arm: Arm, done: Completions, runs: int) -> list[dict[str, Any]]:
    """Return a row for each model and run."""
    R = len(done.right)

    def by_run(values: Any) -> Any:
        return values.reshape(R, -1, runs)

    right, calls, erased = by_run(done.right), by_run(done.calls), by_run(done.erased)
    completion, exact = by_run(done.lengths - done.prompts), by_run(done.exact)
    sent, needless = np.zeros((R, runs), np.int64), np.zeros((R, runs), np.int64)
    if done.sent_back:
        replicas, rows, written = zip(*done.sent_back, strict=True)
        at = np.array(replicas), np.array(rows) % runs
        np.add.at(sent, at, 1)
        np.add.at(needless, at, language.completable(*padded(pl.Series(written), models.limit), models.brackets))
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
            "needless": int(needless[r, i]),
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
        pl.mean("calls", "erased", "completion", "backtracks", "needless"),
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


def _closers(models: Models, arm: Arm, done: Completions) -> list[dict[str, Any]]:
    """Return how many closing brackets of each kind were due behind the prompts, and how many of these went wrong."""
    rows = []
    for r in range(models.count):
        due = closers_due(done.tokens[r], done.lengths[r], models.brackets)
        due[np.arange(due.shape[1]) < done.prompts[r][:, None]] = -1
        for kind in (0, 1):
            own = due == kind
            wrong = own & (done.tokens[r] != language.CLOSE[kind])
            key = {"replica": r, "top_p": arm.top_p, "verifier": arm.verifier, "refill": arm.refill}
            rows.append(key | {"kind": kind, "due": int(own.sum()), "wrong": int(wrong.sum())})
    return rows


def _objections(
    context: Inputs,
    models: Models,
    trained: Trained,
    done: Completions,
    samples_RxT: np.ndarray,
    learned_RxT: np.ndarray,
) -> pl.DataFrame:
    """Return to what the verifier would object of what a model wrote without it, by the place of the last sign.

    Of the first completion of each prompt every prefix that is longer is asked about, up to the first mistake.
    """
    threshold, runs = context.settings.verifier.threshold, context.entry.repeats
    state, places = decoder.state_names(models.spec)[models.spec.layers], np.arange(models.limit)
    frames = []
    for r in range(models.count):
        one, own = models.one(r), material.of_model(trained, r)
        tokens, lengths, prompts = (part[r, ::runs] for part in (done.tokens, done.lengths, done.prompts))
        with torch.no_grad():
            ids = torch.from_numpy(tokens)[None]
            _, recorded = decoder.forward(one.spec, one.params, one.params["head.W"], ids, record=[state])
            right = scores(own.weights, recorded[state].flatten(1, 2)).softmax(-1)[0, :, 1].reshape(tokens.shape)
        at = language.first_errors(tokens, lengths, models.brackets)[0][:, None]
        asked = (places >= prompts[:, None]) & (places < lengths[:, None]) & ((at < 0) | (places <= at))
        row, place = np.nonzero(asked)
        each = pl.DataFrame(
            {
                "place": place,
                "wrong": at[row, 0] == place,
                "objected": right.numpy()[row, place] < threshold,
                "samples": samples_RxT[r, place + 1],
                "learned": learned_RxT[r, place + 1],
            }
        )
        by_place = each.group_by("place", "wrong", "samples", "learned").agg(pl.len().alias("n"), pl.sum("objected"))
        frames.append(by_place.sort("place", "wrong").select(pl.lit(r).alias("replica"), pl.all()))
    return pl.concat(frames)


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


def _diversity(context: Inputs, models: Models, trained: Verifier, within: Verifier) -> pl.DataFrame:
    """Return the numbers of distinct completions of fresh prompts (Table 3.5), and how many of them are right."""
    prompts, times = material.strings(context, STRINGS, "diversity", models.limit), context.entry.diversity
    low, high = context.entry.top_p
    frames = []
    known = ground_truth(models.brackets)
    verifiers: dict[str, Verifier | None] = {TRAINED: trained, WITHIN: within, GROUND_TRUTH: known, NONE: None}
    refilled = [Arm(high, verifier, ARGMAX) for verifier in (TRAINED, WITHIN, GROUND_TRUTH)]
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
            matched = (of(level, verifier, refill, "backtracks") for verifier in (RANDOM, TRAINED))
            found.add(declared.MATCHED[level, refill], *matched)
        for verifier in (TRAINED, GROUND_TRUTH, RANDOM):
            found.add(declared.REFILLING[level, verifier], of(level, verifier, SAMPLE), of(level, verifier, ARGMAX))
        calls, plain = of(level, TRAINED, ARGMAX, "calls"), of(level, NONE, "", "calls")
        cost, most = calls / plain, 1 + context.entry.quota * context.entry.stride / of(level, NONE, "", "completion")
        found.add(declared.COST[level], calls, plain)
        found.add(declared.PER_RIGHT[level], calls / (1 - ours[level]), plain / (1 - base[level]))
        found.add(declared.COST_BOUND[level], cost - most)
        back, needless = (of(level, TRAINED, ARGMAX, column) for column in ("backtracks", "needless"))
        by_guess = _over(*(of(level, RANDOM, ARGMAX, column) for column in ("needless", "backtracks")))
        found.add(declared.NEEDLESS[level], _over(needless, back))
        found.add(declared.NEEDLESS_GUESSED[level], by_guess, _over(needless, back))
        found.add(declared.WITHIN_LEFT[level], base[level], of(level, WITHIN, ARGMAX))
        found.add(declared.WITHIN_MORE[level], of(level, WITHIN, ARGMAX), ours[level])
        asked_less = of(level, WITHIN, ARGMAX, "calls") / (1 - of(level, WITHIN, ARGMAX))
        found.add(declared.WITHIN_PER_RIGHT[level], asked_less, calls / (1 - ours[level]))
        found.add(declared.WITHIN_COST[level], asked_less, plain / (1 - base[level]))
    found.add(declared.REDUCTION, reduced[declared.HIGH], reduced[declared.LOW])
    exact = frames["unseen_runs"].group_by("replica", maintain_order=True).agg(pl.col("exact").cast(pl.Float64).mean())
    found.add(declared.EXACT, exact["exact"])
    left = frames["residual_errors"].filter(top_p=low, verifier=TRAINED)
    closers = left.filter(error=language.WRONG_CLOSER)
    total = left.group_by("replica", maintain_order=True).agg(pl.sum("count", "without_quota"))
    found.add(declared.WRONG_CLOSERS, _over(closers["count"], total["count"]))
    found.add(declared.MAJORITY, _over(closers["majority"], closers["count"]))
    found.add(declared.OUT_OF_QUOTA, _over(total["without_quota"], total["count"]))
    due = {
        verifier: [frames["closers"].filter(top_p=low, verifier=verifier, kind=kind) for kind in (0, 1)]
        for verifier in (NONE, TRAINED)
    }
    rare, common = due[TRAINED]
    chance = _over(rare["due"], rare["due"] + common["due"])
    found.add(declared.MAJORITY_DUE, _over(closers["majority"], closers["count"]), chance)
    found.add(declared.RARE_KIND, *(_over(kind["wrong"], kind["due"]) for kind in due[NONE]))
    right = frames["objections"].filter(wrong=False)
    # A whole string ends in a sign of its own, which no shorter one has.
    unended = right.filter(pl.col("place") < models.limit - 1)
    for comparison, objected in ((declared.BEYOND, right), (declared.BEYOND_UNENDED, unended)):
        by_length = objected.group_by("replica", "learned", maintain_order=True)
        rates = by_length.agg(rate=pl.sum("objected") / pl.sum("n"))
        hardly, learned = (rates.filter(learned=whether).drop("learned") for whether in (False, True))
        paired = hardly.join(learned, on="replica", suffix="_learned", maintain_order="left")
        left_out, why = models.count - paired.height, "of all lengths something was learned"
        found.add(comparison, paired["rate"], paired["rate_learned"], excluded=left_out, reason=why)
    by_prompt = frames["diversity"].group_by("replica", "top_p", "verifier", maintain_order=True)
    diverse = by_prompt.agg(pl.mean("distinct", "right"))

    def completions(top_p: float, verifier: str, column: str = "distinct") -> pl.Series:
        return diverse.filter(top_p=top_p, verifier=verifier)[column]

    found.add(declared.DIVERSITY, completions(high, TRAINED), completions(high, NONE))
    found.add(declared.DIVERSITY_KNOWN, completions(high, GROUND_TRUTH), completions(high, NONE))
    found.add(declared.DIVERSITY_LOW, completions(high, TRAINED), completions(low, NONE))
    found.add(declared.WITHIN_DISTINCT, completions(high, WITHIN), completions(high, TRAINED))
    for level, top_p in levels.items():
        found.add(declared.RIGHT[level], completions(top_p, TRAINED, "right"), completions(top_p, NONE, "right"))
    found.add(declared.RIGHT_KNOWN, completions(high, GROUND_TRUTH, "right"), completions(high, NONE, "right"))
    return found.table()


def _over(one: Any, other: Any) -> Any:
    """Return the quotients; NaN where there is nothing to divide by."""
    one, other = np.asarray(one, float), np.asarray(other, float)
    return np.divide(one, other, out=np.full_like(one, np.nan), where=other > 0)
