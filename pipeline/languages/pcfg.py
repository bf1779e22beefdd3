"""Context-free grammars whose trees have all leaves at the same depth (Allen-Zhu & Li 2023; Liu 2024, section 4.2.8).

A tree has seven levels of symbols: depth 0 is {22}, then {19, 20, 21}, {16, 17, 18}, {13, 14, 15}, {10, 11, 12},
{7, 8, 9}, and the terminals {1, 2, 3} at depth 6. All rules of a symbol are equally likely. Any symbol may be the
root: a truncated grammar has shorter strings. *Levels* count from the leaves, as Figure 4.6 and section 4.2.9 do:
terminals are level 1, a level l lies at depth 7 - l, and the root 22 is level 7.

`sample` draws derivations level by level, all sentences side by side; tokens are kept *flat*, one sentence behind the
other, since padding them is left to whoever trains. Ids of tokens: 0, 1, 2 are the terminals 1, 2, 3, then BOS, EOS
(which nothing uses), PAD and MASK; tables of embeddings have 8 rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import SandglassError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

TERMINALS, BOS, EOS, PAD, MASK, IDS = 3, 3, 4, 5, 6, 8
DEPTH = 6  # of the leaves
ROOT = 22
SYMBOLS = ((22,), (19, 20, 21), (16, 17, 18), (13, 14, 15), (10, 11, 12), (7, 8, 9), (1, 2, 3))  # by depth
NONE, MASKED, RANDOM, KEPT = range(4)  # what became of a token
SHOWN_MASK, SHOWN_RANDOM = (0.8, 0.1)  # shares of the selected tokens; the rest stays as it is (section 4.2.8.4.2)
MANY = 100_000  # derivations that are enumerated at most

Rules = dict[int, tuple[tuple[int, ...], ...]]

# Figure 4.23. `cfg3b_pdcode` is cfg3b as the published code of the conference version has it, without `9: 2 1`.
LISTING = {
    "cfg3b": """
        22: 21 20 | 20 19            21: 18 16 | 16 18 17       20: 17 16 18 | 16 17      19: 16 17 18 | 17 18 16
        18: 15 14 13 | 14 13         17: 14 13 15 | 15 13 14    16: 15 13 | 13 15 14
        15: 12 11 10 | 11 12 10      14: 11 10 12 | 10 11 12    13: 11 12 | 12 11
        12: 8 9 7 | 9 7 8            11: 8 7 9 | 7 8 9          10: 7 9 8 | 9 8 7
         9: 3 2 1 | 2 1               8: 3 2 | 3 1 2             7: 3 1 | 1 2 3""",
    "cfg3i": """
        22: 19 19 20 | 21 20 19      21: 16 16 18 | 18 17       20: 17 16 17 | 18 18      19: 18 16 18 | 16 16
        18: 14 15 13 | 14 15         17: 15 15 | 15 14          16: 13 13 | 14 14
        15: 11 11 10 | 11 10 12      14: 10 10 10 | 10 10       13: 12 11 | 10 12 11
        12: 7 9 9 | 8 7              11: 7 7 7 | 7 7 8          10: 8 7 7 | 9 9
         9: 1 1 3 | 1 2               8: 1 1 | 2 2               7: 3 1 2 | 2 3 1""",
    "cfg3h": """
        22: 20 20 21 | 19 21         21: 17 17 18 | 17 18 17    20: 18 16 | 17 16         19: 16 17 | 18 17
        18: 15 13 13 | 15 14 14 | 14 15 15                      17: 13 14 | 15 13 15      16: 14 13 | 15 13
        15: 10 12 | 11 11 10         14: 10 12 12 | 10 10 | 12 12 10                      13: 12 11 | 11 10
        12: 7 9 | 8 7 | 9 8          11: 8 7 7 | 7 7 | 7 9 9    10: 8 7 9 | 9 7 | 8 8
         9: 2 1 3 | 1 3 3             8: 1 2 | 3 3 1 | 1 3       7: 2 3 2 | 1 2 3 | 1 3 1""",
    "cfg3g": """
        22: 19 20 | 20 20 19 | 20 19 21                         21: 16 16 | 16 16 18 | 18 16
        20: 16 17 | 18 18 | 16 17 17                            19: 17 17 16 | 18 17 16 | 18 16 17
        18: 15 13 | 15 15 | 14 13 15     17: 14 13 14 | 14 15 13 | 15 14                  16: 14 13 13 | 13 14 | 13 13
        15: 10 11 | 12 10 10 | 12 11     14: 11 12 | 10 11 10 | 10 10                     13: 10 12 | 11 11 11 | 11 11
        12: 7 9 | 7 8 | 9 9 9        11: 8 8 9 | 9 7 | 8 9 7    10: 8 8 8 | 7 7 7 | 7 7
         9: 2 3 3 | 2 3 | 2 1         8: 1 3 2 | 1 3 | 3 3 1     7: 2 3 1 | 1 1 | 2 2""",
    "cfg3f": """
        22: 20 21 | 20 19 21 | 21 19 19 | 20 20         21: 18 17 | 17 16 | 16 17 18 | 16 18
        20: 16 16 | 16 17 | 17 16 18                    19: 18 16 18 | 17 18 | 18 18
        18: 14 15 13 | 15 13 13 | 13 15                 17: 15 14 13 | 14 15 | 15 14
        16: 15 15 | 13 15 13 | 14 13 | 14 14            15: 10 11 11 | 11 11 10 | 10 10 | 12 12 11
        14: 10 12 | 12 10 12 | 12 11 | 10 12 12         13: 11 12 | 12 11 12 | 10 12 11
        12: 7 9 7 | 9 8 | 8 8 9     11: 8 8 | 9 7 | 9 7 7     10: 8 9 9 | 9 7 9 | 7 9 9
         9: 1 2 1 | 3 3 | 1 1        8: 3 1 1 | 1 2 | 3 3 1    7: 2 2 1 | 3 2 2 | 3 1 2 | 3 2""",
}
WITHOUT = {"cfg3b_pdcode": ("cfg3b", 9, (2, 1))}
NAMES = (*LISTING, *WITHOUT)

# Rules of a symbol, least and most; and the 25 %, 50 %, 75 % and 95 % percentiles of lengths (section 4.2.8.3).
DEGREES = {"cfg3b": (2, 2), "cfg3i": (2, 2), "cfg3h": (2, 3), "cfg3g": (3, 3), "cfg3f": (3, 4)}
QUANTILES = (0.25, 0.5, 0.75, 0.95)
PERCENTILES = {
    "cfg3b": (251, 278, 308, 342),
    "cfg3i": (276, 307, 340, 386),
    "cfg3h": (202, 238, 270, 300),
    "cfg3g": (212, 258, 294, 341),
    "cfg3f": (191, 247, 302, 364),
}


def depth(symbol: int) -> int:
    """Return the depth of a symbol in a tree, the root's being 0. Raises SandglassError if there is no such symbol.

    >>> depth(22), depth(13), depth(1)
    (0, 3, 6)
    """
    for place, symbols in enumerate(SYMBOLS):
        if symbol in symbols:
            return place
    raise SandglassError(f"no symbol {symbol!r}; a grammar has 1 to 3 and 7 to 22")


def level(symbol: int) -> int:
    """Return the level of a symbol, counted from the leaves.

    >>> level(1), level(7), level(22)
    (1, 2, 7)
    """
    return DEPTH + 1 - depth(symbol)


@dataclass(frozen=True)
class Grammar:
    """The rules of a grammar: the right-hand sides of each symbol, all equally likely."""

    name: str
    rules: Mapping[int, tuple[tuple[int, ...], ...]]

    def probability(self, symbol: int) -> float:
        """Return the probability of each rule of ``symbol``."""
        return 1 / len(self.rules[symbol])

    @cached_property
    def period(self) -> int:
        """The least common multiple of the numbers of rules: a draw below it picks each rule of any symbol equally
        often."""
        return int(np.lcm.reduce([len(each) for each in self.rules.values()]))

    @cached_property
    def packed(self) -> NDArray[np.uint32]:
        """Right-hand sides by symbol and draw (23 * period,): three bytes of symbols, 0 where there is none, then how
        many there are."""
        table = np.zeros((ROOT + 1, self.period, 4), np.uint8)
        for symbol, sides in self.rules.items():
            for draw in range(self.period):
                side = sides[draw % len(sides)]
                table[symbol, draw, : len(side)] = side
                table[symbol, draw, 3] = len(side)
        return np.ascontiguousarray(table).view(np.uint32).ravel()


def parsed(text: str) -> Rules:
    """Return the rules that a listing shows, several to a line. Raises SandglassError if it is not a listing.

    >>> parsed("8: 3 2 | 3 1 2   7: 3 1 | 1 2 3")
    {8: ((3, 2), (3, 1, 2)), 7: ((3, 1), (1, 2, 3))}
    """
    rules: dict[int, list[list[int]]] = {}
    sides: list[list[int]] = []
    for word in text.split():
        if word.endswith(":"):
            sides = rules.setdefault(int(word[:-1]), [])
            if sides:
                raise SandglassError(f"a listing of rules has symbol {word[:-1]} twice")
            sides.append([])
        elif word == "|":
            sides.append([])
        elif sides:
            sides[-1].append(int(word))
        else:
            raise SandglassError(f"a listing of rules begins with {word!r}, expected a symbol such as '22:'")
    return {symbol: tuple(map(tuple, productions)) for symbol, productions in rules.items()}


@cache
def grammar(name: str) -> Grammar:
    """Return a grammar by its name. Raises SandglassError for an unknown one, or if a fact of its structure fails."""
    if name not in NAMES:
        raise SandglassError(f"no grammar {name!r}; known: {', '.join(NAMES)}")
    base, lhs, dropped = WITHOUT.get(name, (name, 0, ()))
    rules = parsed(LISTING[base])
    if dropped:
        rules[lhs] = tuple(side for side in rules[lhs] if side != dropped)
    cfg = Grammar(name, rules)
    if broken := broken_facts(cfg):
        raise SandglassError(f"grammar {name}: {broken[0]}")
    return cfg


def broken_facts(cfg: Grammar) -> list[str]:
    """Return what a grammar has that section 4.2.8.3 does not say of it, in words; nothing if all is as said.

    Each symbol above the terminals has rules; their right-hand sides are two or three symbols of the next depth, none
    twice; a symbol has as many rules as ``DEGREES`` says; in cfg3b neighbours within a rule differ.
    """
    wrong = []
    if set(cfg.rules) != set(itertools.chain(*SYMBOLS[:-1])):
        wrong.append(f"has rules of {sorted(cfg.rules)}, expected one entry for each symbol above the terminals")
        return wrong
    least, most = DEGREES.get(cfg.name, (1, 4))
    for symbol, sides in cfg.rules.items():
        below = SYMBOLS[depth(symbol) + 1]
        if not least <= len(sides) <= most or len(set(sides)) < len(sides):
            wrong.append(f"{symbol} has the rules {sides}, expected {least} to {most} different ones")
        for side in sides:
            if len(side) not in (2, 3) or not set(side) <= set(below):
                wrong.append(f"{symbol} becomes {side}, expected two or three of {below}")
            if cfg.name == "cfg3b" and any(a == b for a, b in itertools.pairwise(side)):
                wrong.append(f"{symbol} becomes {side}, expected neighbours that differ")
    return wrong


# --- exact laws ------------------------------------------------------------------------------------------------


@cache
def length_law(name: str, root: int = ROOT) -> NDArray[np.float64]:
    """Return the probability of each length, from 0 up, of a string below ``root``: convolutions over the rules."""
    known = grammar(name)
    laws = {terminal: np.array([0.0, 1.0]) for terminal in SYMBOLS[-1]}
    for symbols in reversed(SYMBOLS[depth(root) : -1]):
        for symbol in symbols:
            parts = []
            for side in known.rules[symbol]:
                part = np.ones(1)
                for child in side:
                    part = np.convolve(part, laws[child])
                parts.append(part)
            total = np.zeros(max(map(len, parts)))
            for part in parts:
                total[: len(part)] += part * known.probability(symbol)
            laws[symbol] = total
    law = laws[root]
    law.flags.writeable = False
    return law


def quantile(law: NDArray[np.float64], q: float) -> int:
    """Return the least length at which the distribution function reaches ``q``.

    >>> quantile(np.array([0, 0.25, 0.5, 0.25]), 0.75)
    2
    """
    return int(np.searchsorted(np.cumsum(law), q - 1e-12))


def extent(name: str, root: int = ROOT) -> tuple[int, int]:
    """Return the least and the largest length of a string.

    >>> extent("cfg3b"), extent("cfg3b", 13)
    ((138, 432), (12, 18))
    """
    possible = np.flatnonzero(length_law(name, root))
    return int(possible[0]), int(possible[-1])


def token_law(name: str, root: int = ROOT) -> NDArray[np.float64]:
    """Return (3,): of all tokens of many strings, the share of each terminal."""
    known = grammar(name)
    counts = {terminal: np.eye(TERMINALS)[place] for place, terminal in enumerate(SYMBOLS[-1])}
    for symbols in reversed(SYMBOLS[depth(root) : -1]):
        for symbol in symbols:
            sides = known.rules[symbol]
            counts[symbol] = sum(counts[child] for side in sides for child in side) / len(sides)
    law: NDArray[np.float64] = counts[root] / counts[root].sum()
    return law


def derivations(name: str, root: int) -> tuple[list[tuple[int, ...]], NDArray[np.float64]]:
    """Return all strings of terminals below ``root`` with their probabilities, one for each derivation.

    Raises SandglassError if there are more than ``MANY``.
    """
    known = grammar(name)
    if (count := number_of_derivations(name, root)) > MANY:
        raise SandglassError(f"{name} below {root} has {count:.3g} derivations, more than the {MANY} that are listed")

    @cache
    def below(symbol: int) -> list[tuple[tuple[int, ...], float]]:
        if symbol <= TERMINALS:
            return [((symbol,), 1.0)]
        pairs = []
        for side in known.rules[symbol]:
            for parts in itertools.product(*map(below, side)):
                string = tuple(itertools.chain(*(part for part, _ in parts)))
                pairs.append((string, known.probability(symbol) * float(np.prod([p for _, p in parts]))))
        return pairs

    strings, chances = zip(*below(root), strict=True)
    return list(strings), np.array(chances)


def number_of_derivations(name: str, root: int = ROOT) -> int:
    """Return how many derivations a symbol has.

    >>> [number_of_derivations("cfg3b", root) for root in (13, 14, 15)]
    [512, 8192, 8192]
    """
    known = grammar(name)

    @cache
    def count(symbol: int) -> int:
        if symbol <= TERMINALS:
            return 1
        total = 0
        for side in known.rules[symbol]:
            ways = 1
            for child in side:
                ways *= count(child)
            total += ways
        return total

    return count(root)


# --- sampling ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derivations:
    """Trees of N sentences, the nodes of each depth from left to right, sentence behind sentence.

    ``symbols[i]`` are the nodes at the root's depth + i, ``arity[i]`` how many children each has; the last depth holds
    the terminals.
    """

    root: int
    symbols: list[NDArray[np.uint8]]
    arity: list[NDArray[np.uint8]]

    @cached_property
    def tokens(self) -> NDArray[np.uint8]:
        """Ids of all tokens, flat."""
        return self.symbols[-1] - np.uint8(1)

    @cached_property
    def leaves(self) -> list[NDArray[np.int64]]:
        """Number of tokens below each node, by depth as ``symbols`` has them."""
        counts = [np.ones(len(self.symbols[-1]), np.int64)]
        for arity in reversed(self.arity):
            starts = np.cumsum(arity, dtype=np.int64) - arity
            counts.append(np.add.reduceat(counts[-1], starts))
        return counts[::-1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sentence (N,)."""
        return self.leaves[0]

    def ancestors(self, at: int) -> NDArray[np.uint8]:
        """Return of each token, flat, its ancestor at depth ``at`` of a full tree; the token itself at depth 6."""
        place = at - depth(self.root)
        return np.repeat(self.symbols[place], self.leaves[place])

    @cached_property
    def boundary_levels(self) -> NDArray[np.uint8]:
        """Of each token, flat, the largest level of a symbol whose span ends with it; 1 at least."""
        levels = np.ones(len(self.tokens), np.uint8)
        for place in range(len(self.symbols) - 2, -1, -1):
            levels[np.cumsum(self.leaves[place]) - 1] = DEPTH + 1 - depth(self.root) - place
        return levels

    @cached_property
    def boundary_symbols(self) -> NDArray[np.uint8]:
        """Of each token, flat, the symbol of that level whose span ends with it."""
        symbols = self.symbols[-1].copy()
        for place in range(len(self.symbols) - 2, -1, -1):
            symbols[np.cumsum(self.leaves[place]) - 1] = self.symbols[place]
        return symbols

    def tree(self, sentence: int) -> list[tuple[int, int, int, int, int]]:
        """Return the nodes of one sentence: depth below the root, symbol, parent's number at the depth above (-1 for
        the root), first token, and the one behind the last."""
        first = sentence
        count, nodes = 1, []
        parents = [-1]
        start = int(self.lengths[:sentence].sum())
        for place, symbols in enumerate(self.symbols):
            left = 0
            for i in range(count):
                width = int(self.leaves[place][first + i])
                nodes.append((place, int(symbols[first + i]), parents[i], left, left + width))
                left += width
            if place < len(self.arity):
                own = self.arity[place][first : first + count].tolist()
                parents = [i for i, children in enumerate(own) for _ in range(children)]
                first = int(self.arity[place][:first].sum(dtype=np.int64))
                count = len(parents)
        if nodes[0][4] != int(self.lengths[sentence]) or start + nodes[0][4] > len(self.tokens):
            raise SandglassError(f"sentence {sentence} is not whole")
        return nodes


def sample(rng: np.random.Generator, name: str, n: int, root: int = ROOT) -> Derivations:
    """Return ``n`` derivations below ``root``, drawn exactly: every draw is an integer below a multiple of the number
    of rules of each symbol."""
    known = grammar(name)
    symbols = [np.full(n, root, np.uint8)]
    arity = []
    for _ in range(DEPTH - depth(root)):
        nodes = symbols[-1]
        draws = rng.integers(0, known.period, len(nodes), np.uint8)
        sides = known.packed[nodes.astype(np.uint16) * np.uint16(known.period) + draws]
        wide = sides.view(np.uint8).reshape(-1, 4)
        arity.append(wide[:, 3])
        below = wide[:, :3].ravel()
        symbols.append(below[below > 0])
    return Derivations(root, symbols, arity)


def strings(
    rng: np.random.Generator, name: str, n: int, root: int = ROOT
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return ids of the tokens of ``n`` sentences, flat, and their lengths (N,): `sample` without the trees, in a
    third of the time, since a symbol at depth 4 becomes its tokens in one draw."""
    if depth(root) > CHUNK:
        drawn = sample(rng, name, n, root)
        return drawn.tokens, drawn.lengths
    known = grammar(name)
    nodes, counts = np.full(n, root, np.uint8), []
    for _ in range(CHUNK - depth(root)):
        draws = rng.integers(0, known.period, len(nodes), np.uint8)
        wide = known.packed[nodes.astype(np.uint16) * np.uint16(known.period) + draws].view(np.uint8).reshape(-1, 4)
        counts.append(wide[:, 3])
        below = wide[:, :3].ravel()
        nodes = below[below > 0]
    table = _chunks(name)
    draws = rng.integers(0, table.shape[1], len(nodes), np.uint16)
    wide = table.reshape(-1, 2)[(nodes.astype(np.uint32) - SYMBOLS[CHUNK][0]) * np.uint32(table.shape[1]) + draws]
    bytes_ = wide.view(np.uint8).reshape(-1, 16)
    lengths = bytes_[:, 15].astype(np.int64)
    for arity in reversed(counts):
        lengths = np.add.reduceat(lengths, np.cumsum(arity, dtype=np.int64) - arity)
    flat = bytes_[:, : 3 ** (DEPTH - CHUNK)].ravel()
    return flat[flat > 0] - np.uint8(1), lengths


CHUNK = 4  # depth of the symbols whose tokens `strings` draws at once


@cache
def _chunks(name: str) -> NDArray[np.uint64]:
    """Return (3, period^4, 2): for each symbol at depth 4 and each draw of its rule and of those of up to three
    children, 16 bytes: nine places for terminals, 0 where there is none, and last their number."""
    known = grammar(name)
    draws = np.array(list(itertools.product(range(known.period), repeat=4)))
    table = np.zeros((len(SYMBOLS[CHUNK]), len(draws), 16), np.uint8)
    for row, symbol in zip(table, SYMBOLS[CHUNK], strict=True):
        sides = known.packed[symbol * known.period + draws[:, 0]].view(np.uint8).reshape(-1, 4)
        parts = [
            np.where(
                child[:, None] > 0,
                known.packed[child.astype(int) * known.period + draw].view(np.uint8).reshape(-1, 4),
                0,
            )
            for child, draw in zip(sides.T[:3], draws.T[1:], strict=True)
        ]
        row[:, :9] = np.concatenate([part[:, :3] for part in parts], 1)
        row[:, 15] = sum(part[:, 3] for part in parts)
    return table.view(np.uint64)


def padded(
    flat: NDArray[np.uint8], lengths: NDArray[np.int64], fill: int = PAD, first: int = BOS, width: int | None = None
) -> NDArray[np.uint8]:
    """Return (N, 1 + width): each sentence behind ``first``, ``fill`` behind its end; ``width`` is the longest if
    none is given. Raises SandglassError if a sentence is longer than that.

    >>> padded(np.array([0, 1, 2], np.uint8), np.array([1, 2])).tolist()
    [[3, 0, 5], [3, 1, 2]]
    """
    longest = int(lengths.max(initial=0))
    width = longest if width is None else width
    if longest > width:
        raise SandglassError(f"a sentence has {longest} tokens, expected at most {width}")
    ids = np.full((len(lengths), 1 + width), fill, np.uint8)
    ids[:, 0] = first
    ids[:, 1:][np.arange(width) < lengths[:, None]] = flat
    return ids


# --- masked prediction -------------------------------------------------------------------------------------------


def mask(
    rng: np.random.Generator, tokens: NDArray[np.uint8], rate: float
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return what is shown of ``tokens`` (ids of terminals, any shape), and what became of each: NONE, MASKED, RANDOM
    or KEPT (definition 24, section 4.2.8.4.2).

    Each token is selected with probability ``rate`` (to within 2^-32); of the selected, 80 % show MASK, 10 % a
    uniform terminal, which may be the same one, and 10 % stay. BOS and PAD are put around sentences behind this
    (`padded`), so they are never selected.
    """
    cut = np.array([SHOWN_MASK, *[SHOWN_RANDOM / TERMINALS] * TERMINALS, 1 - SHOWN_MASK - SHOWN_RANDOM]).cumsum()
    u = rng.integers(0, 2**32, tokens.shape, np.uint32)
    branch = np.zeros(tokens.shape, np.uint8)  # 0: MASK; 1 to 3: that terminal; 4: as it is, selected; 5: not selected
    for bound in np.minimum(np.round(rate * cut * 2**32), 2**32 - 1).astype(np.uint32):
        branch += u >= bound
    shown = _SHOWN.ravel().take(branch * np.uint8(TERMINALS) + tokens)
    return shown, _KIND.take(branch)


_KIND = np.array([MASKED, *[RANDOM] * TERMINALS, KEPT, NONE], np.uint8)
_SHOWN = np.stack(
    [np.full(TERMINALS, MASK), *np.repeat(np.arange(TERMINALS)[:, None], TERMINALS, 1), *[np.arange(TERMINALS)] * 2]
).astype(np.uint8)  # by branch and token


def masked(
    rng: np.random.Generator, name: str, root: int, n: int, rate: float
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64]]:
    """Return n sentences below ``root``: tokens, what is shown of them and what became of each, (N, T) each, padded
    behind their ends with PAD and NONE; and their lengths (N,)."""
    tokens, lengths = strings(rng, name, n, root)
    shown, kind = mask(rng, tokens, rate)
    words, seen = (padded(part, lengths)[:, 1:] for part in (tokens, shown))
    return words, seen, padded(kind, lengths, NONE, NONE)[:, 1:], lengths


def visible(ids: NDArray[np.uint8], kind: NDArray[np.uint8], hide_masked: bool) -> NDArray[np.bool_]:
    """Return which positions may be attended to: all but PAD, and with ``hide_masked``, as the published code has it
    but the text does not, all that were not selected. ``ids`` and ``kind`` have the same shape."""
    present: NDArray[np.bool_] = ids != PAD
    return present & (kind == NONE) if hide_masked else present


# --- next tokens -------------------------------------------------------------------------------------------------


def ends(boundary_levels: NDArray[np.uint8], at: int) -> NDArray[np.bool_]:
    """Return C^(l): which tokens are the last one of the span of a symbol of level ``at`` (section 4.2.9); at level 1
    all are. Raises SandglassError if there is no such level."""
    if not 1 <= at <= DEPTH + 1:
        raise SandglassError(f"no level {at}; levels are 1 (terminals) to {DEPTH + 1} (root)")
    endings: NDArray[np.bool_] = boundary_levels >= at
    return endings


def nodes_of(name: str) -> Iterator[tuple[int, int, tuple[int, ...], float]]:
    """Yield every rule: left-hand side, its number among those of that symbol, right-hand side, probability."""
    known = grammar(name)
    for symbol in sorted(known.rules, reverse=True):
        for place, side in enumerate(known.rules[symbol]):
            yield symbol, place, side, known.probability(symbol)


# --- n-grams -----------------------------------------------------------------------------------------------------


def window(place_N: NDArray[np.int64], n: int, lengths_N: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    """Return (N, width): the positions from 0 of n-gram(i) around ``place_N``, clipped to each sentence (definition
    25).

    Raises SandglassError if a place lies outside its sentence.
    """
    if ((place_N < 0) | (place_N >= lengths_N)).any():
        raise SandglassError("an n-gram window lies around a position outside its sentence")
    at = np.arange(width)
    left, right = place_N - -(-(n - 1) // 2), place_N + (n - 1) // 2
    positions: NDArray[np.bool_] = (at >= left[:, None]) & (at <= right[:, None]) & (at < lengths_N[:, None])
    return positions


def total_variation(p: NDArray[np.floating[Any]], q: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return half of the sum of absolute differences along the last axis."""
    distances: NDArray[np.float64] = np.abs(p - q).sum(-1) / 2
    return distances


# --- what models are asked ---------------------------------------------------------------------------------------


def outputs(task: Mapping[str, Any]) -> int:
    """Return the number of ids."""
    return IDS


def examples(rng: np.random.Generator, n: int, task: Mapping[str, Any], held: bool) -> dict[str, NDArray[np.uint8]]:
    """Return n sentences behind BOS (n, 1 + longest), padded to the longest that there can be: as they are, ``tokens``,
    as they are ``shown``, and the ``kind`` of what became of each token (`mask`); without ``rate`` they are shown as
    they are, and 1 marks the ends of spans of ``level`` (`ends`).

    ``task``: ``grammar``, ``root``, ``rate`` and ``level``. Sentences are drawn fresh, ``held`` ones by the same law.
    """
    name, root, rate = task["grammar"], task["root"], task["rate"]
    longest = extent(name, root)[1]
    if rate is not None:
        tokens, lengths = strings(rng, name, n, root)
        shown, kind = mask(rng, tokens, rate)
        words, seen = (padded(part, lengths, width=longest) for part in (tokens, shown))
        return {"tokens": words, "shown": seen, "kind": padded(kind, lengths, NONE, NONE, longest)}
    drawn = sample(rng, name, n, root)
    words = padded(drawn.tokens, drawn.lengths, width=longest)
    last = ends(drawn.boundary_levels, task["level"]).astype(np.uint8)
    return {"tokens": words, "shown": words, "kind": padded(last, drawn.lengths, 0, 0, longest)}
