"""Semiautomata, their inputs and their algebra (Liu 2024, chapter 3, sections 3.3, 3.4.4.3.2, 3.4.5.1.1, 3.4.5.2.1).

A semiautomaton (Q, Sigma, delta) reads sigma_1 .. sigma_T and goes through q_t = delta(q_{t-1}, sigma_t); the label of
position t is the state behind sigma_t, seen through an observation map. Tables are ``next[state, symbol]``, -1 where a
move is not allowed.

A group is a table of products with (a b)(x) = a(b(x)), so the state behind an input is (s_t ... s_1)(q_0) where s_i is
the map of sigma_i. Capital suffixes name axes of arrays: N sequences, T positions, Q states, S symbols, G elements.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sympy.combinatorics import Permutation, PermutationGroup

from pipeline.errors import SandglassError

Ints = NDArray[np.int64]
Map = tuple[int, ...]  # of states or points: x goes to map[x]

UNIFORM, BERNOULLI, VALID, ABAB1, ABAB2 = "uniform", "bernoulli", "valid", "abab1", "abab2"
LAWS = (UNIFORM, BERNOULLI, VALID, ABAB1, ABAB2)

# The 19 tasks of the depth experiment (section 3.4.5.1.1), in the order of Figures 3.15 and 3.16.
TASKS = (
    "dyck42",
    "grid4",
    "grid9",
    "c2",
    "c3",
    "c4",
    "c5",
    "c6",
    "c7",
    "c8",
    "c2p2",
    "c2p3",
    "d6",
    "d8",
    "q8",
    "a4",
    "a5",
    "s4",
    "s5",
)
# Tasks whose states are seen through a map (section 3.4.5.2.1).
OBSERVED = ("dyck48-top", "grid9-boundary", "s5-first", "c4-zero", "d8-location", "abab1", "abab2")
OTHERS = ("s3", "abab", "memory3")
SHOWN = {
    "dyck42": "Dyck (4, 2)",
    "grid4": "Grid 4",
    "grid9": "Grid 9",
    "c2p2": "C2²",
    "c2p3": "C2³",
    "dyck48-top": "Dyck (4, 8), top",
    "grid9-boundary": "Grid 9, boundary",
    "s5-first": "S5, first entry",
    "c4-zero": "C4, zero",
    "d8-location": "D8, location",
    "abab1": "abab (1)",
    "abab2": "abab (2)",
    "memory3": "Memory",
}
MOST_ELEMENTS = 2000  # of a semigroup that is enumerated


@dataclass(frozen=True)
class Automaton:
    """``next`` (Q, S) with -1 for moves that are not allowed; ``states`` and ``symbols`` are how they are shown."""

    name: str
    next: Ints
    q0: int
    states: tuple[str, ...]
    symbols: tuple[str, ...]

    @property
    def maps(self) -> list[Map]:
        """The map of each symbol on the states. Where a move is not allowed, a further state takes it, for ever."""
        n = len(self.next)
        if (self.next >= 0).all():
            return [tuple(column) for column in self.next.T.tolist()]
        return [(*(n if q < 0 else q for q in column), n) for column in self.next.T.tolist()]


@dataclass(frozen=True)
class Task:
    """An automaton, the law of its inputs, and what is seen of a state: ``observe`` (Q,) labels below ``labels``."""

    name: str
    automaton: Automaton
    law: str
    observe: Ints
    labels: int


def simulate(automaton: Automaton, tokens_NxT: Ints, q0: int | Ints | None = None) -> Ints:
    """Return the states (N, T) behind each symbol.

    Raises SandglassError for a symbol outside the alphabet, and for a move that is not allowed.
    """
    tokens_NxT = np.asarray(tokens_NxT)
    n_symbols = automaton.next.shape[1]
    if tokens_NxT.size and not (tokens_NxT.min() >= 0 and tokens_NxT.max() < n_symbols):
        wrong = tokens_NxT[(tokens_NxT < 0) | (tokens_NxT >= n_symbols)][0]
        raise SandglassError(f"{automaton.name}: symbol {wrong} is not in the alphabet 0..{n_symbols - 1}")
    state = np.full(len(tokens_NxT), automaton.q0 if q0 is None else q0, np.int64)
    states = np.empty(tokens_NxT.shape, np.int64)
    for t in range(tokens_NxT.shape[1]):
        state = automaton.next[state, tokens_NxT[:, t]]
        states[:, t] = state
    if (states < 0).any():
        n, t = np.argwhere(states < 0)[0]
        move = automaton.symbols[tokens_NxT[n, t]]
        raise SandglassError(f"{automaton.name}: symbol {move} is not allowed at position {t} of sequence {n}")
    return states


# --- the automata (section 3.4.5.1.1; Examples 1 to 6) ---------------------------------------------


def _product(moduli: Sequence[int], name: str) -> Automaton:
    """Return the direct product of counters (Definition 10); symbols are all group elements."""
    elements = list(itertools.product(*map(range, moduli)))
    rank = {e: i for i, e in enumerate(elements)}
    table = [
        [rank[tuple((x + y) % n for x, y, n in zip(a, b, moduli, strict=True))] for b in elements] for a in elements
    ]
    shown = tuple("".join(map(str, e)) for e in elements)
    return Automaton(name, np.array(table), 0, shown, shown)


def _dihedral(n: int, name: str) -> Automaton:
    """Return the reversible car on a circle of n places (Example 6), of order 2n."""
    pairs = [(s, b) for s in range(n) for b in range(2)]
    rank = {pair: i for i, pair in enumerate(pairs)}
    table = [[rank[(s + (1 - 2 * b)) % n, b], rank[s, 1 - b]] for s, b in pairs]
    return Automaton(name, np.array(table), 0, tuple(f"{s}{'+-'[b]}" for s, b in pairs), ("advance", "reverse"))


def even(permutation: Sequence[int]) -> bool:
    """Return whether the permutation is even."""
    pairs = itertools.combinations(permutation, 2)
    return sum(a > b for a, b in pairs) % 2 == 0


def generators(kind: str, n: int) -> list[Map]:
    """Return the input symbols of A_n ((1 2 i), i = 3..n) or S_n (cycle, transposition, six more).

    Footnote 28 leaves the six open: here the first others in lexicographic order, without the identity.
    """
    if kind == "a":
        cycles = []
        for i in range(2, n):
            g = list(range(n))
            g[0], g[1], g[i] = 1, i, 0
            cycles.append(tuple(g))
        return cycles
    cycle, swap = (*range(1, n), 0), (1, 0, *range(2, n))
    if n == 3:  # the chapter's substitute for S5 at small scales: with the identity, without other permutations
        return [(0, 1, 2), cycle, swap]
    rest = [p for p in itertools.permutations(range(n)) if p not in (cycle, swap, tuple(range(n)))]
    return [cycle, swap, *rest][:8]


def _permutations(kind: str, n: int, symbols: Sequence[Map], name: str) -> Automaton:
    """Return the automaton of shuffled positions: new[i] = old[g[i]]; states in lexicographic order."""
    states = [p for p in itertools.permutations(range(n)) if kind == "s" or even(p)]
    rank = {p: i for i, p in enumerate(states)}
    table = [[rank[tuple(p[i] for i in g)] for g in symbols] for p in states]
    shown = tuple("".join(str(x + 1) for x in p) for p in states)
    return Automaton(name, np.array(table), 0, shown, tuple("".join(str(x + 1) for x in g) for g in symbols))


def _quaternion(name: str) -> Automaton:
    rows = np.array([[0, 1, 2, 3], [1, 4, 3, 6], [2, 7, 4, 1], [3, 2, 5, 4]])
    table = np.concatenate([rows, (rows + 4) % 8])
    return Automaton(name, table, 0, ("1", "i", "j", "k", "-1", "-i", "-j", "-k"), ("1", "i", "j", "k"))


@functools.cache
def stacks(depth: int, kinds: int) -> tuple[tuple[int, ...], ...]:
    """Return all stacks of at most ``depth`` brackets of 1..kinds from the bottom, shortest first."""
    return tuple(s for d in range(depth + 1) for s in itertools.product(range(1, kinds + 1), repeat=d))


def _dyck(depth: int, kinds: int, name: str) -> Automaton:
    """Return bounded Dyck: symbols 0..k-1 open, k..2k-1 close; -1 where a bracket is not allowed."""
    known = stacks(depth, kinds)
    rank = {s: i for i, s in enumerate(known)}
    table = np.full((len(known), 2 * kinds), -1)
    for s, i in rank.items():
        for kind in range(1, kinds + 1):
            if len(s) < depth:
                table[i, kind - 1] = rank[(*s, kind)]
            if s and s[-1] == kind:
                table[i, kinds + kind - 1] = rank[s[:-1]]
    letters = [f"{i}" for i in range(1, kinds + 1)]
    shown = tuple("".join(map(str, s)) or "∅" for s in known)
    return Automaton(name, table, 0, shown, (*(f"({x}" for x in letters), *(f"{x})" for x in letters)))


def _grid(n: int, name: str) -> Automaton:
    table = np.array([[max(q - 1, 0), min(q + 1, n - 1)] for q in range(n)])
    return Automaton(name, table, 0, tuple(map(str, range(n))), ("L", "R"))


def _memory(n: int, name: str) -> Automaton:
    """Return the memory of n states (Definition 5): symbol 0 keeps, symbol i sets state i - 1."""
    table = np.array([[q, *range(n)] for q in range(n)])
    return Automaton(name, table, 0, tuple(map(str, range(n))), ("⊥", *(f"σ{i}" for i in range(n))))


def _abab(name: str) -> Automaton:
    table = np.array([[4, 1], [2, 4], [4, 3], [0, 4], [4, 4]])
    return Automaton(name, table, 3, ("a", "ab", "aba", "abab", "fail"), ("a", "b"))


_BUILDERS: dict[str, Callable[[str], Automaton]] = {
    **{f"c{n}": lambda name, n=n: _product([n], name) for n in range(2, 9)},  # type: ignore[misc]
    **{f"c2p{m}": lambda name, m=m: _product([2] * m, name) for m in (2, 3)},  # type: ignore[misc]
    "c2c3": lambda name: _product([2, 3], name),
    "d6": lambda name: _dihedral(3, name),
    "d8": lambda name: _dihedral(4, name),
    **{f"a{n}": lambda name, n=n: _permutations("a", n, generators("a", n), name) for n in (4, 5)},  # type: ignore[misc]
    **{f"s{n}": lambda name, n=n: _permutations("s", n, generators("s", n), name) for n in (3, 4, 5)},  # type: ignore[misc]
    "s5five": lambda name: _permutations("s", 5, generators("s", 5)[:5], name),
    "q8": _quaternion,
    "dyck42": lambda name: _dyck(4, 2, name),
    "dyck48": lambda name: _dyck(4, 8, name),
    **{f"grid{n}": lambda name, n=n: _grid(n, name) for n in range(2, 10)},  # type: ignore[misc]
    **{f"memory{n}": lambda name, n=n: _memory(n, name) for n in range(2, 5)},  # type: ignore[misc]
    "abab": _abab,
}


@functools.cache
def automaton(name: str) -> Automaton:
    """Return the automaton of this name. Raises SandglassError if there is none."""
    if name not in _BUILDERS:
        raise SandglassError(f"there is no automaton {name!r}{_nearest(name, _BUILDERS)}")
    return _BUILDERS[name](name)


@functools.cache
def task(name: str) -> Task:
    """Return the task of this name: one of `TASKS`, `OBSERVED` or `OTHERS`.

    Raises SandglassError if there is none; what follows a hyphen is the observation.
    """
    base, hyphen, seen = name.partition("-")
    if name in ("abab1", "abab2"):
        base, seen, law = "abab", "accept", name
    else:
        base = {"s5": "s5five"}.get(base, base) if hyphen else base
        law = VALID if base.startswith("dyck") else UNIFORM
    known = automaton(base)
    n = len(known.next)
    if base == "dyck42" and not seen:  # 81 classes, of which 31 occur
        codes = np.array([sum(b * 3**i for i, b in enumerate(s)) for s in stacks(4, 2)])
        return Task(name, known, law, codes, 81)
    maps: dict[str, tuple[Iterable[int], int]] = {
        "": (range(n), n),
        "top": ((s[-1] if s else 0 for s in stacks(4, 8)), 9),
        "boundary": ((int(q in (0, n - 1)) for q in range(n)), 2),
        "first": ((int(s[0]) - 1 for s in known.states if s[0].isdigit()), 5),
        "zero": ((int(q == 0) for q in range(n)), 2),
        "location": ((q // 2 for q in range(n)), 4),
        "accept": ((int(q == 3) for q in range(n)), 2),
    }
    if seen not in maps or (name not in (*TASKS, *OBSERVED, *_BUILDERS)):
        choices = [known for known in OBSERVED if known.startswith(base[:2])]
        raise SandglassError(f"automaton {base!r} has no observation {seen!r}{_nearest(name, choices or OBSERVED)}")
    values, labels = maps[seen]
    return Task(name, known, law, np.array(list(values)), labels)


def shown(name: str) -> str:
    """Return how figures call a task or an automaton."""
    return SHOWN.get(name, name.upper())


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1, 0.3)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"


# --- inputs ----------------------------------------------------------------------------------------


def sample(
    name: str, length: int, count: int, rng: np.random.Generator, p1: float = 0.5, law: str | None = None
) -> tuple[Ints, Ints]:
    """Return inputs and states, (count, length) each, of a task under its law (or ``law``).

    ``p1`` is the probability of symbol 1 under the law ``bernoulli``. Raises SandglassError for an unknown law.
    """
    of = task(name)
    law = law or of.law
    known = of.automaton
    if law not in LAWS:
        raise SandglassError(f"there is no input law {law!r}{_nearest(law, LAWS)}")
    if law == VALID:
        return _valid(known, length, count, rng)
    n_symbols = known.next.shape[1]
    if law == BERNOULLI:
        tokens = (rng.random((count, length)) < p1).astype(np.int64)
    elif law == UNIFORM:
        tokens = rng.integers(0, n_symbols, (count, length))
    else:
        tokens = np.broadcast_to(np.arange(length) % 2, (count, length)).copy()
        if law == ABAB2:
            free = rng.random(count) < 0.5
            tokens[free] = rng.integers(0, 2, (int(free.sum()), length))
    return tokens, simulate(known, tokens)


def _valid(known: Automaton, length: int, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw each symbol uniformly from those that are allowed (footnote 26)."""
    allowed = known.next >= 0
    state = np.full(count, known.q0)
    tokens, states = np.empty((count, length), np.int64), np.empty((count, length), np.int64)
    for t in range(length):
        choices = allowed[state]
        pick = np.floor(rng.random(count) * choices.sum(1)).astype(np.int64)
        tokens[:, t] = (np.cumsum(choices, 1) > pick[:, None]).argmax(1)
        state = states[:, t] = known.next[state, tokens[:, t]]
    return tokens, states


def counted(length: int, ones: int, count: int, rng: np.random.Generator) -> Ints:
    """Return inputs (count, length) of zeros with exactly ``ones`` ones at uniform positions."""
    tokens = np.broadcast_to((np.arange(length) < ones).astype(np.int64), (count, length))
    return rng.permuted(tokens, axis=1)


def every_input(n_symbols: int, length: int) -> Ints:
    """Return all words of ``length`` over 0..n_symbols-1."""
    return np.array(list(itertools.product(range(n_symbols), repeat=length)), np.int64)


def label_law(name: str, length: int) -> NDArray[np.float64]:
    """Return the exact distribution (T, labels) of the label of each position, by the chain of states."""
    of = task(name)
    if of.law == ABAB1:
        return _labels_of(of, _deterministic(of, length))
    if of.law == ABAB2:
        return (_labels_of(of, _deterministic(of, length)) + _labels_of(of, _chain(of, length))) / 2
    return _labels_of(of, _chain(of, length))


def constant_accuracy(name: str, length: int) -> float:
    """Return the accuracy of the best predictor that says one label at each position, whatever the input."""
    return float(label_law(name, length).max(1).mean())


def majority_accuracy(name: str, length: int) -> float:
    """Return the accuracy of the best predictor that says one label at all positions."""
    return float(label_law(name, length).mean(0).max())


def _chain(of: Task, length: int) -> NDArray[np.float64]:
    table = of.automaton.next
    allowed = table >= 0
    weight = allowed / allowed.sum(1, keepdims=True)
    law: NDArray[np.float64] = np.zeros(len(table))
    laws = []
    law[of.automaton.q0] = 1
    for _ in range(length):
        flow = (law[:, None] * weight)[allowed]
        law = np.bincount(table[allowed], flow, minlength=len(table)).astype(np.float64)
        laws.append(law)
    return np.stack(laws)


def _deterministic(of: Task, length: int) -> NDArray[np.float64]:
    states = simulate(of.automaton, np.arange(length)[None] % 2)[0]
    return np.eye(len(of.automaton.next))[states]


def _labels_of(of: Task, law_TxQ: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = law_TxQ @ np.eye(of.labels)[of.observe]
    return shares


# --- algebra ---------------------------------------------------------------------------------------


def compose(after: Map, first: Map) -> Map:
    """Return x -> after(first(x))."""
    return tuple(after[x] for x in first)


def semigroup(maps: Sequence[Map], most: int = MOST_ELEMENTS) -> list[Map] | None:
    """Return all maps that words of symbols make (the transformation semigroup); None if there are more than
    ``most``."""
    elements = dict.fromkeys(maps)
    queue = list(elements)
    for element in queue:
        for generator in maps:
            new = compose(generator, element)
            if new not in elements:
                if len(elements) >= most:
                    return None
                elements[new] = None
                queue.append(new)
    return list(elements)


def is_aperiodic(elements: Iterable[Map]) -> bool:
    """Return whether every element x has x^n = x^(n+1) for some n: the semigroup holds no group but trivial ones."""
    for element in elements:
        power, seen = element, []
        while power not in seen:
            seen.append(power)
            power = compose(element, power)
        if power != seen[-1]:
            return False
    return True


def period(known: Automaton) -> int:
    """Return the greatest common divisor of the lengths of all closed walks from the states that q0 reaches."""
    distance, queue, divisor = {known.q0: 0}, [known.q0], 0
    for q in queue:
        for new in known.next[q][known.next[q] >= 0].tolist():
            if new not in distance:
                distance[new] = distance[q] + 1
                queue.append(new)
            divisor = math.gcd(divisor, distance[q] + 1 - distance[new])
    return divisor


@dataclass(frozen=True)
class Group:
    """``elements`` are permutations of points, the identity first; ``mul`` (G, G) is a b = a after b."""

    elements: tuple[Map, ...]
    mul: Ints
    inverse: Ints

    def __len__(self) -> int:
        return len(self.elements)

    @property
    def index(self) -> dict[Map, int]:
        """The place of each element."""
        return {element: i for i, element in enumerate(self.elements)}

    def subgroup(self, members: Iterable[int]) -> Group:
        """Return the group of these elements."""
        return group_of([self.elements[i] for i in members])

    def normal_closure(self, members: Iterable[int]) -> frozenset[int]:
        """Return the smallest normal subgroup with these elements."""
        everyone = np.arange(len(self))
        conjugates = {int(x) for m in members for x in self.mul[self.mul[everyone, m], self.inverse[everyone]]}
        closure, queue = {0}, [0]
        for x in queue:
            for y in self.mul[x, sorted(conjugates)].tolist():
                if y not in closure:
                    closure.add(y)
                    queue.append(y)
        return frozenset(closure)

    def maximal_normal(self) -> frozenset[int]:
        """Return a maximal normal subgroup other than the group itself: one element added at a time."""
        subgroup = frozenset([0])
        grown = True
        while grown:
            grown = False
            for x in range(len(self)):
                if x not in subgroup and len(larger := self.normal_closure({*subgroup, x})) < len(self):
                    subgroup, grown = larger, True
                    break
        return subgroup

    def orders(self) -> dict[int, int]:
        """Return how many elements there are of each order."""
        counts: dict[int, int] = {}
        for x in range(len(self)):
            power, order = x, 1
            while power:
                power, order = int(self.mul[power, x]), order + 1
            counts[order] = counts.get(order, 0) + 1
        return dict(sorted(counts.items()))


def group_of(members: Iterable[Map]) -> Group:
    """Return the group of a closed set of permutations."""
    elements = tuple(sorted(members))
    place = {element: i for i, element in enumerate(elements)}
    array = np.array(elements)
    products = array[:, array].reshape(-1, array.shape[1])  # element a at the points of b
    mul = np.array([place[tuple(p)] for p in products.tolist()]).reshape(len(elements), -1)
    return Group(elements, mul, (mul == 0).argmax(1))


def generated(maps: Sequence[Map]) -> Group:
    """Return the group that these permutations generate. Raises SandglassError for a map that is none."""
    for each in maps:
        if sorted(each) != list(range(len(each))):
            raise SandglassError(f"{each} is not a permutation of 0..{len(each) - 1}")
    identity = tuple(range(len(maps[0])))
    elements = semigroup([identity, *maps])
    if elements is None:
        raise SandglassError(f"the group has more than {MOST_ELEMENTS} elements")
    return group_of(elements)


def is_group(known: Automaton) -> bool:
    """Return whether every symbol permutes the states."""
    return all(sorted(each) == list(range(len(each))) for each in known.maps)


def is_solvable(maps: Sequence[Map]) -> bool:
    """Return whether the permutations generate a solvable group, by the derived series (sympy)."""
    return bool(PermutationGroup([Permutation(list(each)) for each in maps]).is_solvable)


def factors(group: Group) -> list[str]:
    """Return the composition factors, from the top (Theorem 14): C_p, or A5, or what else is simple."""
    if len(group) == 1:
        return []
    normal = group.maximal_normal()
    order = len(group) // len(normal)
    prime = all(order % d for d in range(2, int(order**0.5) + 1))
    name = f"C{order}" if prime else "A5" if order == 60 else f"simple of order {order}"
    return [name, *factors(group.subgroup(normal))]


# --- Krohn-Rhodes: the hole cascade (Theorem 15, Lemma 21) -----------------------------------------


@dataclass(frozen=True)
class Level:
    """A component: it has ``size`` states, starts in ``start``, and on each dependency (states of the levels above,
    symbol) does what ``moves`` says, a map of its states that is a bijection or constant."""

    size: int
    start: int
    moves: dict[tuple[tuple[int, ...], int], Map]

    @property
    def permutations(self) -> list[Map]:
        """The bijections among the moves, each once; the identity if there is no other."""
        bijections = {m for m in self.moves.values() if len(set(m)) == self.size}
        return sorted(bijections) or [tuple(range(self.size))]

    @property
    def resets(self) -> int:
        """How many states a constant move sets."""
        return len({m[0] for m in self.moves.values() if len(set(m)) == 1 < self.size})


@dataclass(frozen=True)
class Cascade:
    """Levels of permutation-reset components, and the state that each tuple of their states stands for."""

    levels: tuple[Level, ...]
    readout: dict[tuple[int, ...], int]

    def simulate(self, tokens_NxT: Ints, same_position: bool = False) -> Ints:
        """Return states (N, T). With ``same_position`` a level sees the others' states behind the symbol, not before
        it: the wiring that Lemma 21 prints; -1 where a level then has no move, or the tuple stands for no state."""
        states = np.empty(tokens_NxT.shape, np.int64)
        for n, word in enumerate(tokens_NxT.tolist()):
            state: tuple[int, ...] | None = tuple(level.start for level in self.levels)
            for t, symbol in enumerate(word):
                state = None if state is None else self._step(state, symbol, same_position)
                states[n, t] = -1 if state is None else self.readout.get(state, -1)
        return states

    def _step(self, state: tuple[int, ...], symbol: int, same_position: bool) -> tuple[int, ...] | None:
        new: tuple[int, ...] = ()
        for i, level in enumerate(self.levels):
            move = level.moves.get(((new if same_position else state)[:i], symbol))
            if move is None:
                return None
            new = (*new, move[state[i]])
        return new


def cascade(known: Automaton, q0: int | None = None) -> Cascade:
    """Return |Q| - 1 permutation-reset levels of sizes |Q|, .., 2 that do what the automaton does.

    Levels 1..i keep a set P_i of |Q| - i states with the state in it; level i stores which element of P_{i-1}, in
    order, is left out. On a symbol, the set that is left moves along; where two of its elements meet, the smallest
    element that nothing goes to is left out next. Raises SandglassError for an automaton with moves that are not
    allowed.
    """
    if (known.next < 0).any():
        raise SandglassError(f"{known.name}: a cascade needs a move for every state and symbol")
    n, q0 = len(known.next), known.q0 if q0 is None else q0
    maps = known.maps
    start: list[int] = []
    left = list(range(n))
    for _ in range(n - 1):
        hole = next(i for i, q in enumerate(left) if q != q0)
        start.append(hole)
        left.pop(hole)
    moves: list[dict[tuple[tuple[int, ...], int], Map]] = [{} for _ in range(n - 1)]
    seen, queue, readout = {tuple(start)}, [tuple(start)], {}
    for state in queue:
        kept = list(range(n))
        for hole in state:
            kept.pop(hole)
        readout[state] = kept[0]
        for symbol, move in enumerate(maps):
            before, after, new = list(range(n)), list(range(n)), tuple[int, ...]()
            for i, hole in enumerate(state):
                u = tuple(after.index(move[q]) if move[q] in after else 0 for q in before)
                if len(set(u)) < len(u):
                    gap = min(set(range(len(after))) - set(u))
                    u = (gap,) * len(u)
                moves[i][state[:i], symbol] = u
                new = (*new, u[hole])
                before.pop(hole)
                after.pop(u[hole])
            if new not in seen:
                seen.add(new)
                queue.append(new)
    levels = tuple(Level(n - i, start[i], moves[i]) for i in range(n - 1))
    return Cascade(levels, readout)


# --- the gridworld (section 3.4.4.4) ---------------------------------------------------------------


@dataclass(frozen=True)
class GridTrace:
    """What Algorithm 1 sees on one input: prefix sums ``z`` behind the padding, and the positions that it finds."""

    z: Ints
    uniq: int
    last_min: int
    last_max: int
    boundary: int
    state: int


def grid_algorithm(S: int, moves_T: Ints) -> GridTrace:
    """Run Algorithm 1 on moves -1, 0, +1 from state 0 of 0..S; S pads of -1, and z_0 = 0 counted."""
    z = np.concatenate([[0], np.cumsum(np.concatenate([np.full(S, -1), moves_T]))])
    uniq = next(t for t in range(len(z) - 1, -1, -1) if len(set(z[t:].tolist())) == S + 1)
    tail = z[uniq:]
    last_min = uniq + int(np.flatnonzero(tail == tail.min())[-1])
    last_max = uniq + int(np.flatnonzero(tail == tail.max())[-1])
    boundary = 0 if last_min > last_max else S
    return GridTrace(z, uniq, last_min, last_max, boundary, int(z[-1] - z[max(last_min, last_max)] + boundary))


def grid_states(S: int, moves_NxT: Ints, q0: int = 0) -> Ints:
    """Return the states (N, T) of the gridworld 0..S for moves -1, 0, +1."""
    q, states = np.full(len(moves_NxT), q0), np.empty(moves_NxT.shape, np.int64)
    for t in range(moves_NxT.shape[1]):
        q = states[:, t] = np.clip(q + moves_NxT[:, t], 0, S)
    return states
