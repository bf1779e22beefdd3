"""Decoders of one prompt, one model and no cache, line by line as the thesis prints them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from pipeline.models.llama import decoder
from pipeline.models.llama.decoding import Plan

Next = Callable[[list[int]], torch.Tensor]  # from what is written to logits
Value = Callable[[list[int], int], float]  # from what is written, and the number of the call, to a probability


def model(spec: decoder.Spec, params: dict[str, torch.Tensor], replica: int) -> Next:
    """Return a model of the ensemble, which reads all of its string for each token."""
    own = {name: value[replica : replica + 1] for name, value in params.items()}

    def logits(written: list[int]) -> torch.Tensor:
        return decoder.forward(spec, own, own["head.W"], torch.tensor([[written]]))[0][0, 0, -1]

    return logits


def likeliest(logits: torch.Tensor) -> int:
    return int(logits.argmax())


def sample(logits: torch.Tensor, plan: Plan, chance: float) -> int:
    """Temperature, then the likeliest tokens, each whose forerunners have at most top_p; then by ``chance``."""
    if plan.temperature == 0:
        return likeliest(logits)
    p = (logits.double() / plan.temperature).softmax(0).tolist()
    kept, before = {}, 0.0
    for token in sorted(range(len(p)), key=lambda token: -p[token]):
        if before <= plan.top_p or plan.top_p == 1:
            kept[token] = p[token]
        before += p[token]
    if plan.top_p == 0:
        return likeliest(logits)
    total, passed = sum(kept.values()), 0.0
    for token in sorted(kept):
        passed += kept[token] / total
        if chance < passed:
            return token
    return max(kept)


@dataclass
class Result:
    tokens: list[int]
    calls: int = 0
    erased: int = 0
    quota: int = 0
    failed: bool = False
    backtracks: list[list[int]] = field(default_factory=list)


def algorithm_1(oracle: Next, judge: Value, plan: Plan, x: list[int], limit: int, draws: list[float]) -> Result:
    """Algorithm 1 (section 3.2) on the prompt x; ``limit`` tokens with the prompt take the place of D."""
    s: list[int] = []
    keep = 1 if plan.reach is None else max(1, len(x) - plan.reach)
    xs, Q, B = list(x), plan.quota, plan.stride
    out = Result(xs)

    def ended() -> bool:
        return len(xs) >= limit or (len(xs) > 0 and out.calls > 0 and xs[-1] == plan.end)

    while not ended():
        if plan.most_calls is not None and out.calls >= plan.most_calls:
            out.failed = True
            break
        logits = oracle(xs)
        greedy = plan.refill == "released" and len(xs) - len(x) < out.erased
        s = [likeliest(logits) if greedy else sample(logits, plan, draws[out.calls])]
        xs.append(s[0])
        out.calls += 1
        if greedy and not plan.verify_in_refill:
            continue
        while Q > 0 and judge(xs, out.calls) < plan.threshold:
            b = min(B, len(xs) - keep)
            if b == 0:
                break
            out.backtracks.append(list(xs))
            del xs[-b:]
            Q -= 1
            out.erased += b
            checked = False
            if plan.refill == "argmax":
                for _ in range(b):
                    if plan.most_calls is not None and out.calls >= plan.most_calls:
                        break
                    xs.append(likeliest(oracle(xs)))
                    out.calls += 1
                    if plan.verify_in_refill:
                        checked = True
                        if Q > 0 and judge(xs, out.calls) < plan.threshold:
                            break
                        checked = False
                    if ended():
                        break
            if not checked:
                break
    out.quota = Q
    return out


def tokenwise_rejection(
    oracle: Next, judge: Value, plan: Plan, x: list[int], limit: int, draws: list[float], most: int
) -> Result:
    """Definition 3.1.5: at each prefix draw until the verifier accepts."""
    out = Result(list(x))
    while len(out.tokens) < limit and (out.calls == 0 or out.tokens[-1] != plan.end):
        while True:
            if out.calls >= most:
                out.failed = True
                return out
            token = sample(oracle(out.tokens), plan, draws[out.calls])
            out.calls += 1
            if judge([*out.tokens, token], out.calls) >= plan.threshold:
                break
            out.erased += 1
        out.tokens.append(token)
    return out


def best_of_blocks(
    oracle: Next, judge: Value, plan: Plan, x: list[int], limit: int, draws: list[list[float]], stop: int, blocks: int
) -> Result:
    """Block best-of-n: of each block n candidates, the one of highest probability is kept (section 3.2.2.5)."""
    out, used = Result(list(x)), [0] * len(draws)
    for _ in range(blocks):
        if len(out.tokens) >= limit or (out.calls and out.tokens[-1] == plan.end):
            break
        candidates = []
        for n, own in enumerate(draws):
            xs = list(out.tokens)
            while True:
                xs.append(sample(oracle(xs), plan, own[used[n]]))
                used[n] += 1
                if xs[-1] in (stop, plan.end) or len(xs) >= limit:
                    break
            candidates.append(xs)
        new = sum(len(xs) - len(out.tokens) for xs in candidates)
        best = max(candidates, key=lambda xs: judge(xs, 0))
        out.calls += new
        out.erased += new - (len(best) - len(out.tokens))
        out.tokens = best
    return out
