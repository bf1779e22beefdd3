"""Drawing text from language models, many prompts and many models at once, with a verifier that sends it back.

One loop serves all decoders of Li 2025, chapter 3: plain, tempered, nucleus and greedy sampling, tokenwise rejection
(Definition 3.1.5), tokenwise rejection with backtracking (Algorithm 1, section 3.2) and its refills, and, with stops
between the blocks, block best-of-n (`best_of_blocks`, section 3.2.2.5).

Every row has its own prompt, length, quota and count of queries. Keys and values of what a row has read lie in one
cache; how much of it counts is one number of the row, its length. To erase is to lower that number: what lies behind is
masked, and overwritten as the row goes on. Positions are the row's own. What a query costs is counted exactly: one for
each token that is drawn, greedy refills included, verifiers not (Definition 3.1.6):

    calls = final length - prompt + erased

A row draws from numbers of its own, one for each of its calls, so that it is the same in any company.

Two other studies ask language models, and not through this module. The stand-ins of study flipflop give one token
behind each prompt, of which the logits are compared: one forward pass, and nothing to go on from. The scratchpads of
study automata answer behind every symbol of their input, so that every second token is given and each of the others is
the likeliest: that is no completion of a prompt. They keep keys and values themselves, in a loop of five lines
(`pipeline.models.automata.gpt.decode`); to take that loop from them would make all that was trained with their module
stale. A verifier for either would take an `Oracle` of theirs, three methods, and nothing here.

Shapes: R models, B rows of each, T places, V symbols, d channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.models.llama import decoder

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

ARGMAX, SAMPLE, RELEASED = REFILLS = ("argmax", "sample", "released")
TIGHT = 0.6  # share of rows that go on, below which the others are put aside
ROOM = 8  # places by which the cache of keys and values grows


@dataclass(frozen=True)
class Plan:
    """How tokens are drawn, and what a verifier may send back.

    ``temperature`` divides logits first; 0 takes the likeliest token. Then the likeliest tokens are kept, each whose
    forerunners together have at most ``top_p``: the one that crosses it is kept (0: the likeliest alone; 1: all).

    Algorithm 1: a token is rejected where the verifier's probability of being right is below ``threshold``. Then the
    last ``stride`` tokens are erased (fewer where ``reach`` tokens of the prompt are all that may go with them; None:
    all of it but its first), as long as the ``quota`` lasts, and refilled:

    ``argmax``    as many tokens as were erased, each the likeliest, unless the string ends (lines 9 to 12);
    ``sample``    drawn as all others (the ablation of section 3.2.3);
    ``released``  the likeliest while fewer tokens have been written since the prompt than were ever erased, which is
                  what the authors' release does: far from the prompt it refills nothing.

    What is refilled with the likeliest token is not shown to the verifier unless ``verify_in_refill``. A row that has
    drawn ``most_calls`` and not ended fails (None: no bound; a quota is one).
    """

    end: int
    temperature: float = 1.0
    top_p: float = 1.0
    quota: int = 0
    stride: int = 0
    refill: str = ARGMAX
    threshold: float = 0.5
    reach: int | None = 0
    verify_in_refill: bool = False
    most_calls: int | None = None

    def __post_init__(self) -> None:
        """Raise SandglassError for a setting that cannot be."""
        if not 0 <= self.top_p <= 1:
            raise SandglassError(f"top_p is {self.top_p}: expected a number from 0 (the likeliest) to 1 (all)")
        if not self.temperature >= 0:
            raise SandglassError(f"temperature is {self.temperature}: expected 0 (the likeliest) or more")
        if self.refill not in REFILLS:
            raise SandglassError(f"refill is {self.refill!r}: expected one of {', '.join(REFILLS)}")
        if self.quota < 0 or self.stride < 0 or (self.quota > 0) != (self.stride > 0):
            raise SandglassError(
                f"quota is {self.quota} and stride {self.stride}: expected two positive numbers, or 0 and 0"
            )

    def calls(self, tokens: int) -> int:
        """Return how many calls a row of so many new tokens makes at most."""
        bound = tokens + self.quota * self.stride
        return bound if self.most_calls is None else min(bound, self.most_calls)


def tokenwise_rejection(plan: Plan, most_calls: int) -> Plan:
    """Return Definition 3.1.5: draw a token until the verifier accepts it, and fail after so many calls."""
    return replace(plan, quota=most_calls, stride=1, refill=SAMPLE, most_calls=most_calls)


class Verifier(Protocol):
    """Says how likely it is that what a row has written is right."""

    @property
    def layer(self) -> int | None:
        """Return the layer of the state that it reads (`decoder.state_names`); None for none."""

    def __call__(
        self,
        states_RxBxD: Tensor | None,
        tokens_RxBxT: Int[Tensor, "R B T"],
        lengths_RxB: Int[Tensor, "R B"],
        chances_RxB: Float[Tensor, "R B"],
        asked_RxB: Bool[Tensor, "R B"],
        /,
    ) -> Float[Tensor, "R B"]:
        """Return a probability for each row that is ``asked``; ``chances`` are uniform, for verifiers that guess."""


class Oracle(Protocol):
    """What tokens are drawn from (Definition 3.1.1)."""

    def read(self, tokens_RxBxT: Int[Tensor, "R B T"], repeats: int) -> Float[Tensor, "R B T V"]:
        """Read prompts, and return the logits behind each place; rows come ``repeats`` times one after the other."""

    def advance(
        self, tokens_RxB: Int[Tensor, "R B"], at_RxB: Int[Tensor, "R B"], layer: int | None
    ) -> tuple[Float[Tensor, "R B V"], Tensor | None]:
        """Read a token of each row at its place; return the logits behind it, and its state in a layer."""

    def keep(self, columns_RxB: Int[Tensor, "R B"]) -> None:
        """Go on with these rows of each model, which may repeat."""


class Cached:
    """Models as an oracle. Keys and values of what rows have read: for each layer a tensor (2, R, B, H, T, d/H).

    It grows by `ROOM` places at a time. Attention waits for memory most of the time, and reads rows that lie one behind
    the other up to twice as fast as rows with much unused room between them.
    """

    def __init__(self, spec: decoder.Spec, params: dict[str, Tensor], places: int) -> None:
        self.spec, self.params, self.places = spec, params, places
        self.cache: list[Tensor] = []
        like = params["head.W"]
        self._cos, self._sin = decoder.rotation(places, spec.width // spec.heads, like.dtype, like.device, spec.base)
        self._place = torch.arange(places, device=like.device)

    def read(self, tokens_RxBxT: Tensor, repeats: int) -> Tensor:
        """See `Oracle`. What lies behind the end of a shorter prompt is never looked at."""
        pairs: list[tuple[Tensor, Tensor]] = []
        logits, _ = decoder.forward(self.spec, self.params, self.params["head.W"], tokens_RxBxT, keys_and_values=pairs)
        self.cache = [torch.stack(pair).repeat_interleave(repeats, 2) for pair in pairs]
        return logits.repeat_interleave(repeats, 1)

    def _grow(self, used: int) -> None:
        """Have room for so many places and, where it has to be made, for some more."""
        missing = used - self.cache[0].shape[-2]
        if missing > 0:
            more = min(max(missing, ROOM), self.places - self.cache[0].shape[-2])
            self.cache = [F.pad(part, (0, 0, 0, more)) for part in self.cache]

    def advance(self, tokens_RxB: Tensor, at_RxB: Tensor, layer: int | None) -> tuple[Tensor, Tensor | None]:
        """See `Oracle`."""
        spec, params = self.spec, self.params
        R, B = tokens_RxB.shape
        H, A = spec.heads, spec.width // spec.heads
        number = torch.arange(R, device=tokens_RxB.device)[:, None] * spec.symbols + tokens_RxB
        x_RxBxD = F.embedding(number, params["embed.W"].reshape(-1, spec.width))
        states = [x_RxBxD] if layer == 0 else []
        cos, sin = self._cos[at_RxB][:, :, None, None], self._sin[at_RxB][:, :, None, None]
        here = at_RxB[..., None, None, None].expand(2, R, B, H, 1, A)
        first, last = at_RxB.aminmax()
        used = int(last) + 1  # behind it no row has anything to look at
        self._grow(used)
        mask = None
        if int(first) < int(last):
            behind = self._place[:used] > at_RxB[..., None]
            mask = torch.zeros(behind.shape, dtype=x_RxBxD.dtype, device=behind.device).masked_fill_(behind, -torch.inf)
            mask = mask.view(R * B, 1, 1, used)
        for n in range(spec.layers):
            at = f"blocks.{n}"
            qkv = torch.bmm(decoder.normalised(x_RxBxD, params[f"{at}.ln1.w"], spec.eps), params[f"{at}.attn.W_QKV"])
            qkv = qkv.view(R, B, 3, H, A)
            q, k = decoder.rotated(qkv[:, :, :2], cos, sin).unbind(2)
            self.cache[n].scatter_(4, here, torch.stack([k, qkv[:, :, 2]])[..., None, :])
            keys, values = self.cache[n][..., :used, :].flatten(1, 2)
            mixed = F.scaled_dot_product_attention(q.reshape(R * B, H, 1, A), keys, values, attn_mask=mask)
            x_RxBxD = decoder.after_attention(spec, params, at, x_RxBxD, mixed.reshape(R, B, spec.width))
            if layer == n + 1 < spec.layers:
                states.append(x_RxBxD)
        x_RxBxD = decoder.normalised(x_RxBxD, params["ln.w"], spec.eps)
        if layer == spec.layers:
            states.append(x_RxBxD)
        return torch.bmm(x_RxBxD, params["head.W"]), states[0] if states else None

    def keep(self, columns_RxB: Tensor) -> None:
        """See `Oracle`."""
        models = torch.arange(len(columns_RxB), device=columns_RxB.device)[:, None]
        self.cache = [part[:, models, columns_RxB] for part in self.cache]


@dataclass
class Rows:
    """What rows wrote; all (R, B) unless said otherwise."""

    tokens: Int[Tensor, "R B T"]  # prompt and completion; what lies behind the length means nothing
    lengths: Int[Tensor, "R B"]
    prompts: Int[Tensor, "R B"]  # lengths
    calls: Int[Tensor, "R B"]
    erased: Int[Tensor, "R B"]
    quota: Int[Tensor, "R B"]  # what is left
    ended: Bool[Tensor, "R B"]  # by the end sign, or by the limit of its length; else it failed

    def columns(self, columns_RxB: Int[Tensor, "R B"]) -> Rows:
        """Return these rows of each model."""
        models = torch.arange(len(columns_RxB), device=columns_RxB.device)[:, None]
        return Rows(*(getattr(self, name)[models, columns_RxB] for name in self.__dataclass_fields__))

    def put(self, columns_RxB: Int[Tensor, "R B"], rows: Rows) -> None:
        """Overwrite these rows of each model."""
        models = torch.arange(len(columns_RxB), device=columns_RxB.device)[:, None]
        for name in self.__dataclass_fields__:
            getattr(self, name)[models, columns_RxB] = getattr(rows, name)


@dataclass
class Backtracks:
    """Where verifiers sent rows back, in no order that means anything: what was written before it was erased."""

    replica: Int[Tensor, " K"]
    row: Int[Tensor, " K"]
    tokens: Int[Tensor, "K T"]
    lengths: Int[Tensor, " K"]


def decode(
    oracle: Oracle,
    plan: Plan,
    prompts_RxBxT: Int[Tensor, "R B T"],
    lengths_RxB: Int[Tensor, "R B"],
    limits_RxB: Int[Tensor, "R B"],
    draws_RxBxC: Float[Tensor, "R B C"],
    verifier: Verifier | None = None,
    chances_RxBxC: Float[Tensor, "R B C"] | None = None,
) -> tuple[Rows, Backtracks]:
    """Complete prompts until their ``end``, or the length of ``limits``, both of which count the prompt.

    ``draws`` are uniform numbers, one for each call of a row (`Plan.calls`), and decide its tokens; there may be a
    multiple of the prompts' rows: then each prompt is completed as many times, and read once. ``chances`` are further
    ones, for verifiers that guess.

    Raises SandglassError if shapes do not fit, or the plan has a quota and there is no verifier.
    """
    rows, repeats = _start(plan, prompts_RxBxT, lengths_RxB, limits_RxB, draws_RxBxC)
    if (plan.quota > 0) != (verifier is not None):
        raise SandglassError("a quota of backtracks and a verifier belong together: give both, or neither")
    limits = limits_RxB.repeat_interleave(repeats, 1)
    logits = _read(oracle, prompts_RxBxT, lengths_RxB, repeats, rows)
    machine = _Machine(oracle, plan, verifier, rows, limits, logits, draws_RxBxC, chances_RxBxC)
    machine.run()
    return machine.rows, machine.backtracks()


def _read(oracle: Oracle, prompts: Tensor, lengths: Tensor, repeats: int, rows: Rows) -> Tensor:
    """Return the logits behind all places of the prompts, with room for those of what is to come."""
    longest = int(lengths.max())
    return F.pad(oracle.read(prompts[..., :longest], repeats), (0, 0, 0, rows.tokens.shape[-1] - longest))


def _start(
    plan: Plan, prompts: Tensor, lengths: Tensor, limits: Tensor, draws: Tensor, calls: int | None = None
) -> tuple[Rows, int]:
    """Return rows at their prompts, and how often each prompt is completed."""
    R, B, T = prompts.shape
    if lengths.shape != (R, B) or limits.shape != (R, B) or draws.shape[0] != R or draws.shape[1] % B:
        raise SandglassError(
            f"prompts {tuple(prompts.shape)}, lengths {tuple(lengths.shape)}, limits {tuple(limits.shape)} and draws "
            f"{tuple(draws.shape)} do not fit"
        )
    if bool((lengths < 1).any()) or bool((lengths > T).any()) or bool((lengths >= limits).any()):
        raise SandglassError("prompts must have at least one token and be shorter than their limits")
    most = int((limits - lengths).max())
    if plan.stride > int(limits.max()):
        raise SandglassError(f"stride is {plan.stride}, longer than any string ({int(limits.max())} tokens)")
    if draws.shape[2] < (calls := plan.calls(most) if calls is None else calls):
        raise SandglassError(f"{draws.shape[2]} draws for each row, and it may make {calls} calls")
    repeats = draws.shape[1] // B
    tokens = F.pad(prompts, (0, int(limits.max()) - T)) if int(limits.max()) > T else prompts
    tokens, lengths = (part.repeat_interleave(repeats, 1) for part in (tokens, lengths))
    zero = torch.zeros_like(lengths)
    return Rows(tokens.clone(), lengths.clone(), lengths, zero, zero.clone(), zero + plan.quota, zero > 0), repeats


def best_of_blocks(
    oracle: Oracle,
    plan: Plan,
    prompts_RxBxT: Int[Tensor, "R B T"],
    lengths_RxB: Int[Tensor, "R B"],
    limits_RxB: Int[Tensor, "R B"],
    draws_RxBxC: Float[Tensor, "R B C"],
    verifier: Verifier,
    stop: int,
    blocks: int,
    candidates: int,
) -> Rows:
    """Complete prompts block by block (Li 2025, sections 3.2.2.5 and 3.2.2.6): of each block draw ``candidates``, up to
    ``stop``, the end or the limit, and go on from the one that the verifier gives the highest probability.

    ``draws`` has n rows in turn for each completion, one for each candidate, with numbers for ``blocks`` times
    the longest completion. A completion is over after so many blocks, or with the end. Tokens of all candidates count
    as calls, those of candidates that were not chosen as erased.

    Raises SandglassError if shapes do not fit, or the plan has a quota.
    """
    most = blocks * int((limits_RxB - lengths_RxB).max())
    if plan.quota or candidates < 1 or draws_RxBxC.shape[1] % (candidates * lengths_RxB.shape[1]):
        raise SandglassError(
            f"block best-of-n takes a plan without a quota and {candidates} rows of draws for each completion, got a "
            f"quota of {plan.quota} and {draws_RxBxC.shape[1]} rows"
        )
    rows, repeats = _start(plan, prompts_RxBxT, lengths_RxB, limits_RxB, draws_RxBxC, most)
    limits = limits_RxB.repeat_interleave(repeats, 1)
    logits = _read(oracle, prompts_RxBxT, lengths_RxB, repeats, rows)
    groups = torch.arange(limits.shape[1], device=limits.device).expand_as(limits)
    groups = groups.reshape(len(limits), -1, candidates)
    models = torch.arange(len(limits), device=limits.device)[:, None]
    chances = torch.zeros_like(draws_RxBxC[..., 0])
    used = torch.zeros_like(limits)  # numbers that a candidate's row has taken from its draws
    for _ in range(blocks):
        before, already = rows.lengths.clone(), rows.ended.clone()
        going = ~rows.ended
        states: Tensor | None = None
        while bool(going.any()):
            chance = draws_RxBxC.gather(2, used[..., None])[..., 0]
            drawn = draw(_last(logits, rows), chance, plan)
            used += going.long()
            place, written = _append(rows, going, drawn)
            rows.ended |= going & ((drawn == plan.end) | (rows.lengths >= limits))
            new, state = oracle.advance(written, place, verifier.layer)
            _put(logits, place, new)
            if state is not None:
                states = state if states is None else torch.where(going[..., None], state, states)
            going = going & ~rows.ended & (drawn != stop)
        if bool(already.all()):
            break
        right = verifier(states, rows.tokens, rows.lengths, chances, ~already)
        best = groups.gather(2, right.view(groups.shape).argmax(-1, keepdim=True)).expand_as(groups).flatten(1)
        grown = rows.lengths - before
        of_all = grown.view(groups.shape).sum(-1, keepdim=True).expand_as(groups).flatten(1)
        calls, erased = rows.calls - grown + of_all, rows.erased + of_all - grown[models, best]
        rows = replace(rows.columns(best), calls=calls, erased=erased)
        logits = logits[models, best]
        oracle.keep(best)
    return rows.columns(groups[..., 0])


def _last(logits: Tensor, rows: Rows) -> Float[Tensor, "R B V"]:
    """Return the logits behind what each row has written."""
    at = (rows.lengths - 1)[..., None, None].expand(-1, -1, 1, logits.shape[-1])
    return logits.gather(2, at)[:, :, 0]


def _append(rows: Rows, going: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
    """Append a token to each row that is ``going``; return the place and the token that each row is to read: one
    behind its end, or again its last, where it is not."""
    place = rows.lengths.clamp(max=rows.tokens.shape[-1] - 1)
    written = torch.where(going, drawn, rows.tokens.gather(2, place[..., None])[..., 0])
    rows.tokens.scatter_(2, place[..., None], written[..., None])
    rows.lengths += going.long()
    rows.calls += going.long()
    return place, written


def _put(logits: Tensor, place: Tensor, new: Tensor) -> None:
    """Keep the logits behind the token that each row has read."""
    logits.scatter_(2, place[..., None, None].expand(-1, -1, 1, new.shape[-1]), new[:, :, None])


class _Machine:
    """The loop: each pass draws one token for every row that goes on, and reads it."""

    def __init__(
        self,
        oracle: Oracle,
        plan: Plan,
        verifier: Verifier | None,
        rows: Rows,
        limits: Tensor,
        logits: Tensor,
        draws: Tensor,
        chances: Tensor | None,
    ) -> None:
        self.oracle, self.plan, self.verifier = oracle, plan, verifier
        self.rows = rows
        self.logits, self.limits, self.draws, self.chances = logits, limits, draws, chances
        self._sent_back: list[Backtracks] = []

    def backtracks(self) -> Backtracks:
        """Return where rows were sent back."""
        width = self.rows.tokens.shape[-1]
        empty = torch.zeros(0, dtype=torch.long, device=self.rows.tokens.device)
        parts = [Backtracks(empty, empty, empty.view(0, 1).expand(0, width), empty), *self._sent_back]
        names = Backtracks.__dataclass_fields__
        return Backtracks(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

    def run(self) -> None:
        """Draw until all rows have ended or failed."""
        plan, R = self.plan, len(self.rows.lengths)
        columns = torch.arange(self.rows.lengths.shape[1], device=self.rows.lengths.device).expand(R, -1)
        models = torch.arange(R, device=columns.device)[:, None]
        at, limits = self.rows.columns(columns), self.limits
        draws, chances, logits = self.draws, self.chances, self.logits
        floor = at.prompts * 0 + 1 if plan.reach is None else (at.prompts - plan.reach).clamp(min=1)
        going = ~at.ended
        refill = torch.zeros_like(at.calls)
        layer = self.verifier.layer if self.verifier else None
        while bool(going.any()):
            last = _last(logits, at)
            greedy = refill > 0
            if plan.refill == RELEASED:
                greedy = at.lengths - at.prompts < at.erased
            chance = draws.gather(2, at.calls.clamp(max=draws.shape[2] - 1)[..., None])[..., 0]
            drawn = torch.where(greedy, last.argmax(-1), draw(last, chance, plan))
            place, written = _append(at, going, drawn)
            refill = (refill - going.long()).clamp(min=0)
            at.ended |= going & ((drawn == plan.end) | (at.lengths >= limits))
            checked = going & (at.quota > 0)
            if not plan.verify_in_refill:
                checked &= ~greedy
            if bool((checked | (going & ~at.ended)).any()):
                new, states = self.oracle.advance(written, place, layer)
                _put(logits, place, new)
            if self.verifier is not None and bool(checked.any()):
                guesses = torch.zeros_like(draws[..., 0])
                if chances is not None:
                    guesses = chances.gather(2, (at.calls - 1).clamp(min=0)[..., None])[..., 0]
                right = self.verifier(states, at.tokens, at.lengths, guesses, checked)
                back = (at.lengths - floor).clamp(max=plan.stride)
                sent = checked & (right < plan.threshold) & (back > 0)
                self._log(sent, columns, at)
                back = torch.where(sent, back, torch.zeros_like(back))
                at.lengths -= back
                at.erased += back
                at.quota -= sent.long()
                at.ended &= ~sent
                if plan.refill == ARGMAX:
                    refill = torch.where(sent, back, refill)
            going = going & ~at.ended
            if plan.most_calls is not None:
                going &= at.calls < plan.most_calls
            count = int(going.sum(1).max())
            if 0 < count <= TIGHT * going.shape[1]:
                self.rows.put(columns, at)
                chosen = (~going).to(torch.uint8).argsort(dim=1, stable=True)[:, :count]
                columns, at = columns[models, chosen], at.columns(chosen)
                limits, draws, logits, floor = (part[models, chosen] for part in (limits, draws, logits, floor))
                chances = None if chances is None else chances[models, chosen]
                going, refill = going[models, chosen], refill[models, chosen]
                self.oracle.keep(chosen)
        self.rows.put(columns, at)

    def _log(self, sent: Tensor, columns: Tensor, at: Rows) -> None:
        replica, column = sent.nonzero(as_tuple=True)
        if len(replica):
            self._sent_back.append(
                Backtracks(replica, columns[replica, column], at.tokens[replica, column], at.lengths[replica, column])
            )


def law(logits: Float[Tensor, "... V"], plan: Plan) -> Float[Tensor, "... V"]:
    """Return the probabilities that a plan draws from, in float64."""
    logits = logits.double()
    if plan.temperature == 0 or plan.top_p == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).double()
    p = (logits / plan.temperature).softmax(-1)
    if plan.top_p == 1:
        return p
    ordered, places = p.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1) - ordered
    kept = torch.zeros_like(p).scatter(-1, places, ordered * (before <= plan.top_p))
    return kept / kept.sum(-1, keepdim=True)


def draw(logits: Float[Tensor, "... V"], chance: Tensor, plan: Plan) -> Tensor:
    """Return the token whose share of [0, 1), in the order of the vocabulary, ``chance`` falls into."""
    if plan.temperature == 0 or plan.top_p == 0:
        return logits.argmax(-1)
    p = law(logits, plan)
    passed = (p.cumsum(-1) <= chance.double()[..., None]).sum(-1)
    last = p.shape[-1] - 1 - (p > 0).flip(-1).to(torch.uint8).argmax(-1)  # rounding may leave a rest above the sum
    return torch.minimum(passed, last)
