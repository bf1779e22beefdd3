"""Exact laws of samplers below prompts: a tree of all that can be written, its base laws and a verifier's values (Li
2025, section 3.3.1).

A tree has the same actions at every prefix; behind an action a level may have tokens that must follow. The base model
is a language model restricted to what the tree has, normalised again. Its target is what the base model writes given
that the string is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.languages.constrained import prefix_mass
from pipeline.models.llama.decoding import Cached
from pipeline.studies.verifier.exact.tokenwise import action_level_calls, action_level_law
from pipeline.studies.verifier.exact.vgb import Tree
from schemas.verifier.vgb_dyck import ALRS, BASE, EXACT, FIRST_LEAF, LEARNED, STATIONARY, TRS, WHOLE

if TYPE_CHECKING:
    from pipeline.models.llama import decoder
    from pipeline.models.llama.verifiers import Trained

Array = NDArray[np.float64]

# Numbers that are null where a sampler may never end
COSTS = dict.fromkeys(("expected_steps", "oracle_expansions", "value_evals"), pl.Float64)


@dataclass(frozen=True)
class Trees:
    """Trees of R models below P prompts, with A actions and H levels."""

    laws: list[Tensor]  # (R, P, A^h, A) for h = 0 .. H - 1
    values: list[Tensor]  # (R, P, A^h) of the verifier, for h = 0 .. H; 1 at the root
    removed: Tensor  # (R, P) probability that the model has outside of the tree
    tokens: NDArray[np.int64]  # (P * A^H, T) what is written at each leaf, those of a prompt one after the other

    def of(self, replica: int, prompt: int) -> tuple[list[Array], list[Array], float]:
        """Return base laws, values and removed probability of a model's tree."""
        laws, values = ([level[replica, prompt].numpy() for level in levels] for levels in (self.laws, self.values))
        return laws, values, float(self.removed[replica, prompt])


def trees(
    spec: decoder.Spec,
    params: dict[str, Tensor],
    verifier: Trained,
    prompts_PxT: NDArray[np.int64],
    actions: Sequence[int],
    following: Sequence[Sequence[int]],
) -> Trees:
    """Return the trees of all models below prompts of one length. ``following`` has for each level the tokens that
    must follow its action; behind the last level there are none."""
    P, start = prompts_PxT.shape
    R, A = int(params["head.W"].shape[0]), len(actions)
    words = torch.tensor(list(actions))
    written = torch.from_numpy(prompts_PxT).expand(R, -1, -1)
    oracle = Cached(spec, params, start + sum(1 + len(tokens) for tokens in following))
    laws, values, kept = [], [torch.ones(R, P, 1).double()], torch.ones(R, P, 1).double()
    with torch.no_grad():
        logits = oracle.read(written, 1)[:, :, -1]
        for h, tokens in enumerate(following):
            p = logits.double().softmax(-1)[..., words]
            laws.append((p / p.sum(-1, keepdim=True)).view(R, P, -1, A))
            kept = (kept[..., None] * p.view(R, P, -1, A)).flatten(2)
            rows = torch.arange(P * A**h).repeat_interleave(A).expand(R, -1)
            oracle.keep(rows)
            action = words.repeat(P * A**h).expand(R, -1)
            place = torch.full_like(action, written.shape[-1])
            written = torch.cat([written[:, rows[0]], action[..., None]], -1)
            logits, states = oracle.advance(action, place, verifier.layer)
            value = verifier(states, written, place + 1, torch.zeros(1), torch.ones(1))
            values.append(value.double().view(R, P, -1))
            for token in tokens:
                kept = kept * logits.double().softmax(-1)[..., token].view(R, P, -1)
                place = place + 1
                logits, _ = oracle.advance(torch.full_like(action, token), place, None)
                written = torch.cat([written, torch.full_like(action, token)[..., None]], -1)
    return Trees(laws, values, 1 - kept.sum(-1), written[0].numpy())


def laws(
    base: list[Array], values: list[Array], right: Array, removed: float, threshold: float
) -> Iterator[dict[str, Any]]:
    """Yield rows of `schemas.verifier.vgb_dyck.Laws` for each sampler, with exact and with learned values of leaves:
    how far its law is from the target. ``right`` (A^H,) says of each leaf whether it is."""
    mass = prefix_mass(tuple(base))[-1]
    target = mass * right / (mass * right).sum()
    for kind in (EXACT, LEARNED):
        own = [*values[:-1], right if kind == EXACT else values[-1]]
        hard = [(value >= threshold).astype(float) for value in own]
        accepted = mass * own[-1]  # what is written and accepted whole
        tree = Tree(tuple(base), tuple(own))
        found: dict[str, tuple[Array, float]] = {
            BASE: (mass, 0.0),
            WHOLE: (accepted / accepted.sum(), 0.0),
            TRS: action_level_law(base, hard),
            ALRS: action_level_law(base, own),
            FIRST_LEAF: (tree.first_leaf_law(), 0.0),
            STATIONARY: (tree.leaf_law(), 0.0),
        }
        steps = tree.absorbed()[1]
        costs = _costs(base, own, hard, steps, float(accepted.sum()))
        for method, (law, stuck) in found.items():
            expansions, evaluations = costs[method]
            yield {
                "leaf_values": kind,
                "method": method,
                "p_valid": float((law * right).sum()),
                "distance": float(abs(law - target).sum() / 2 + stuck / 2),
                "fail_mass": stuck,
                "expected_steps": steps if method == FIRST_LEAF else None,
                "oracle_expansions": expansions,
                "value_evals": evaluations,
                "removed_mass": removed,
            }


def _costs(
    base: list[Array], values: list[Array], hard: list[Array], steps: float, accepted: float
) -> dict[str, tuple[float | None, float | None]]:
    """Return how many laws of a next action and how many values each sampler is expected to ask for, by its name, if
    it remembers none of them; None where it may never end, or has no rule when to. ``accepted`` is the probability
    that a whole string is."""
    costs: dict[str, tuple[float | None, float | None]] = {BASE: (float(len(base)), 0.0), STATIONARY: (None, None)}
    costs[WHOLE] = len(base) / accepted, 1 / accepted
    for method, own in ((TRS, hard), (ALRS, values)):
        # A law for each prefix that it comes to, and a value for each action that it draws.
        prefixes = 1 + sum(float(action_level_law(base[:h], own[: h + 1])[0].sum()) for h in range(1, len(base)))
        calls = action_level_calls(base, own)
        costs[method] = prefixes, calls if np.isfinite(calls) else None
    # Half of the steps stay where they are; each of the others weighs all children. Its own value it knows.
    costs[FIRST_LEAF] = steps / 2, base[0].shape[1] * steps / 2
    return costs
