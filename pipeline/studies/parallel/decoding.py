"""How `pipeline.models.parallel.translator` is read out: refinement in parallel, with a beam of lengths, or greedily.

Li 2025, section 4.2.2.1 and Eq. 4.9; chapter 3.8. Everything here is of one replica: parameters have a leading axis
of 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.languages.synmt import BOS, EOS, LEN, PAD
from pipeline.models.parallel import translator
from pipeline.models.parallel.translator import EPS, Memory, Spec
from pipeline.training.objectives.translation import likeliest

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Params = dict[str, Tensor]


class Refined(NamedTuple):
    """What T passes give of B sentences: ``states`` (T, B, P), ``log_p`` (T, B), the sum of the log probabilities of
    the tokens of that state in the pass that gave it, `EOS` among them, and ``changed`` (T, B), whether the pass
    changed a token. Where one did not, no more are made, and all later states are the same."""

    states: Int[Tensor, "T B P"]
    log_p: Float[Tensor, "T B"]
    changed: Tensor

    def passes(self, T: int) -> Int[Tensor, " B"]:
        """Return how many of at most ``T`` passes a sentence takes: up to the first that changes nothing."""
        found: Tensor = (1 + self.changed[:T].long().cumprod(0).sum(0)).clamp(max=T)
        return found


class Translated(NamedTuple):
    """``tokens`` (B, P), `EOS` last and `PAD` behind it, and how many ``passes`` (B,) of the decoder they took."""

    tokens: Int[Tensor, "B P"]
    passes: Int[Tensor, " B"]


def framed(start_BxP: Tensor, lengths_B: Tensor) -> Int[Tensor, "B P"]:
    """Return ``start`` with `EOS` as the last of so many tokens and `PAD` behind it."""
    place = torch.arange(start_BxP.shape[1])
    ended = torch.where(place < lengths_B[:, None] - 1, start_BxP, PAD)
    return torch.where(place == lengths_B[:, None] - 1, EOS, ended)


def refine(
    spec: Spec, params: Params, memory: Memory, start: Int[Tensor, "B P"], passes: int, *, remask: int = 0
) -> Refined:
    """Return ``passes`` refinements of ``start``, which `framed` gave its lengths.

    From pass ``remask`` on (0: never) a token equal to the one before it takes its value in the state that the pass
    read, unless the pass is the last. What a pass changed is told by what it said, before anything is remasked: a
    sentence whose stutter is undone in every pass has not come to rest.
    """
    state, active = start, torch.arange(len(start))
    states, logs, changes = [], [], []
    log_p = torch.zeros(len(start))
    kv, hidden = memory.kv, memory.hidden
    for done in range(passes):
        new, changed = state.clone(), torch.zeros(len(start), dtype=torch.bool)
        if len(active):
            read = state[active]
            longest = int((read != PAD).sum(1).max())
            read = read[:, :longest]
            (logits, at), _ = translator.decode(spec, params, read[None], Memory(kv, hidden, None))
            said = likeliest(logits, at, read[None])[0]
            own = logits.log_softmax(-1)[0].gather(1, said.flatten()[at[0]][:, None])[:, 0]
            sums = torch.zeros(len(read)).index_add_(0, at[0] // longest, own)
            log_p = log_p.index_copy(0, active, sums)
            going = (said != read).any(1)
            if 0 < remask <= done + 1 < passes:
                said = _remasked(said, read)
            new[active, :longest] = said
            changed[active] = going
            if not going.all():
                active, kv, hidden = active[going], [_chosen(each, going, spec.heads) for each in kv], hidden[going]
        state = new
        states.append(state)
        logs.append(log_p)
        changes.append(changed)
    return Refined(torch.stack(states), torch.stack(logs), torch.stack(changes))


def _chosen(kv: Tensor, which: Tensor, heads: int) -> Tensor:
    """Return keys and values (2, B H, S, C) of some sentences, numbered or marked."""
    return kv.view(2, -1, heads, *kv.shape[2:])[:, which].flatten(1, 2)


def _remasked(said: Tensor, before: Tensor) -> Tensor:
    stutter = torch.zeros_like(said, dtype=torch.bool)
    stutter[:, 1:] = (said[:, 1:] == said[:, :-1]) & (said[:, 1:] > EOS)
    return torch.where(stutter, before, said)


def deduplicated(tokens_BxP: Tensor) -> Int[Tensor, "B P"]:
    """Return sentences without tokens that repeat the one before them."""
    keep = torch.ones_like(tokens_BxP, dtype=torch.bool)
    keep[:, 1:] = (tokens_BxP[:, 1:] != tokens_BxP[:, :-1]) & (tokens_BxP[:, 1:] != PAD)
    order = (~keep).to(torch.uint8).argsort(dim=1, stable=True)
    return torch.where(keep.gather(1, order), tokens_BxP.gather(1, order), PAD)


def lengths(memory: Memory, beams: int) -> tuple[Int[Tensor, "B L"], Float[Tensor, "B L"]]:
    """Return the likeliest lengths of targets and their log probabilities; the shortest is 2, a token and `EOS`."""
    assert memory.lengths is not None
    logs = memory.lengths[0].log_softmax(-1)
    logs, at = logs[:, 2:].topk(beams)
    return at + 2, logs


def with_beam(
    spec: Spec, params: Params, memory: Memory, start: Int[Tensor, "B P"], passes: int, beams: int
) -> Translated:
    """Return the best of ``beams`` lengths: by the sum of the log probabilities of tokens in the last pass, and of the
    length. ``start`` is what stands where a token is to come, before lengths are known."""
    B = len(start)
    sizes, logs = lengths(memory, beams)
    each = torch.arange(B).repeat_interleave(beams)
    many = Memory([_chosen(kv, each, spec.heads) for kv in memory.kv], memory.hidden[each], None)
    framed_start = framed(start.repeat_interleave(beams, 0), sizes.flatten())
    found = refine(spec, params, many, framed_start, passes)
    best = (found.log_p[-1].view(B, beams) + logs).argmax(1) + torch.arange(B) * beams
    return Translated(found.states[-1][best], found.passes(passes)[best])


def greedy(spec: Spec, params: Params, source: Int[Tensor, "B S"], most: int | None = None) -> Translated:
    """Return the likeliest token behind all those before it, one by one, until `EOS`, ``most`` tokens or the model's
    positions.

    Keys and values of tokens before are kept, and sentences that have ended are left out.
    """
    memory = translator.encode(spec, params, source[None])[0]
    own = {name: value[0] for name, value in params.items()}
    B, H = len(source), spec.heads
    tokens = torch.full((B, spec.positions), PAD)
    active, read = torch.arange(B), torch.full((B,), BOS)
    kv = [each.view(2, B, H, *each.shape[2:]).transpose(0, 1) for each in memory.kv]
    blocked = translator.low_scores(memory.hidden, H, own["embed.E"]).view(B, H, 1, -1)
    past: list[dict[str, Tensor]] = [{} for _ in range(spec.decoder)]
    last = (spec.positions if most is None else most) - 1
    for t in range(last + 1):
        x = own["embed.E"][read]
        bias = torch.zeros(1)
        if spec.buckets:
            places = translator.relative_buckets(torch.arange(t + 1) - t, spec.buckets, both=False)
            bias = own["target.bias"][:, None, places]
        else:
            x = x + own["target.P"][t]
        for layer in range(spec.decoder):
            at, kept = f"decoder.{layer}", past[layer]
            q, k, v = (_normed(x, own[f"{at}.self.g"]) @ own[f"{at}.self.W_QKV"]).view(len(x), 3, H, 1, -1).unbind(1)
            kept["k"], kept["v"] = (_grown(kept, name, new) for name, new in (("k", k), ("v", v)))
            x = x + _read(
                (q @ kept["k"].transpose(-1, -2)) / math.sqrt(q.shape[-1]) + bias, kept["v"], own[f"{at}.self.W_O"]
            )
            if spec.positional:
                v = (_normed(x, own[f"{at}.position.g"]) @ own[f"{at}.position.W_V"]).view(len(x), H, 1, -1)
                kept["p"] = _grown(kept, "p", v)
                P = own["position.P"][: t + 1]
                q, k = (
                    (F.rms_norm(P, P.shape[-1:], None, EPS) @ own[f"{at}.position.W_QK"])
                    .view(t + 1, 2, H, -1)
                    .permute(1, 2, 0, 3)
                )
                scores = (q[:, -1:] @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
                x = x + _read(scores.expand(len(x), -1, -1, -1), kept["p"], own[f"{at}.position.W_O"])
            q = (_normed(x, own[f"{at}.cross.g"]) @ own[f"{at}.cross.W_Q"]).view(len(x), H, 1, -1)
            k, v = kv[layer].unbind(1)
            x = x + _read((q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1]) + blocked, v, own[f"{at}.cross.W_O"])
            x = x + (_normed(x, own[f"{at}.mlp.g"]) @ own[f"{at}.mlp.W_in"]).relu() @ own[f"{at}.mlp.W_out"]
        logits = _normed(x, own["decoder.g"]) @ own["embed.E"].T / math.sqrt(spec.width)
        logits[:, [PAD, BOS, LEN]] = -math.inf
        read = logits.argmax(-1) if t < last else torch.full((len(x),), EOS)
        tokens[active, t] = read
        going = read != EOS
        if not going.any():
            break
        if not going.all():
            active, read, blocked = active[going], read[going], blocked[going]
            kv = [each[going] for each in kv]
            past = [{name: value[going] for name, value in kept.items()} for kept in past]
    return Translated(tokens, (tokens != PAD).sum(1))


def _normed(x: Tensor, gain: Tensor) -> Tensor:
    return translator.norm(x[None], gain[None])[0]


def _grown(kept: dict[str, Tensor], name: str, new: Tensor) -> Tensor:
    return torch.cat((kept[name], new), 2) if name in kept else new


def _read(scores: Tensor, v: Tensor, out: Tensor) -> Tensor:
    return (scores.softmax(-1) @ v).flatten(1) @ out
