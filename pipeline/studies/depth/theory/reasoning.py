"""DEP-T3, T9: copy and match, once and several times (Chen and Zou 2024, Theorem 3, section 13.2, and section 7)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth import constructions
from pipeline.studies.depth.constructions import Model
from schemas import theory

SMALL_K, SMALL = 2, 3  # pairs, and questions and answers, where every context is asked every question
CHAIN, ENTITIES = 3, 5  # links and entities where every chain is followed in every order

THEOREM_3 = "Chen and Zou 2024, Theorem 3 and section 13.2"
SECTION_7 = "Chen and Zou 2024, section 7"


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Theorem 3 and section 7.

    Inputs are ``entry.inputs`` random contexts of each of ``entry.examples`` pairs, and of two chains for
    each of ``entry.hops``, over ``entry.tokens`` tokens.
    """
    checks = [*_one_hop(entry, theory_id, seed), *_several_hops(entry, theory_id, seed)]
    return theory.rows("depth", theory_id, THEOREM_3, checks)


def every_question(k: int, questions: int, answers: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all contexts of k pairs with every question of theirs, and the answers (section 4.2)."""
    ids, labels = [], []
    for keys in itertools.permutations(range(questions), k):
        for given in itertools.permutations(range(questions + 1, questions + 1 + answers), k):
            context = [token for pair in zip(keys, given, strict=True) for token in (pair[0], questions, pair[1])]
            for question, answer in zip(keys, given, strict=True):
                ids.append([*context, question, questions])
                labels.append(answer)
    return np.array(ids), np.array(labels)


def every_chain(links: int, entities: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all chains of ``links`` pairs, in all orders of the pairs, asked from the start.

    Labels are the ends.
    """
    ids, labels = [], []
    for chain in itertools.permutations(range(entities), links + 1):
        pairs = [(first, entities, second) for first, second in itertools.pairwise(chain)]
        for order in itertools.permutations(pairs):
            ids.append([*itertools.chain(*order), chain[0], entities])
            labels.append(chain[-1])
    return np.array(ids), np.array(labels)


def solved(name: str, statement: str, size: str, built: Model, ids: NDArray, labels: NDArray) -> dict[str, Any]:
    """Return a row on the share of inputs that ``built`` gets right, which is to be exactly 1."""
    outputs, _ = built.run(ids)
    return {
        "check": name,
        "statement": f"{statement}: share right",
        "size": f"{size}, {len(ids)} inputs",
        "measured": constructions.accuracy(outputs, labels),
        "comparison": ">=",
        "bound": 1.0,
        "detail": f"{built.spec.layers} layers, d'={built.spec.width}, "
        f"smallest margin {constructions.margin(outputs, labels).min():.3g}",
    }


def _one_hop(entry: Any, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    ids, labels = every_question(SMALL_K, SMALL, SMALL)
    small = constructions.reasoner(SMALL_K, SMALL, SMALL)
    statement = "Two layers of one head, as built, answer the last question"
    size = f"k={SMALL_K}, {SMALL} questions, {SMALL} answers, every context"
    decides = {"claim": "7", "part": "T3"}
    yield solved("copy-match-all", statement, size, small, ids, labels) | decides
    columns = constructions.last_columns(small, ids)[0]
    expected = np.zeros((len(ids), 2 * SMALL + 1))
    expected[np.arange(len(ids)), ids[:, -2]] = expected[:, SMALL] = 6
    expected[np.arange(len(ids)), labels] = 3
    yield {
        "check": "copy-match-column",
        "statement": "The last column is [6 q; 6; 3 a], as printed: largest difference",
        "size": size,
        "measured": np.abs(columns[:, : 2 * SMALL + 1] - expected).max(),
        "comparison": "<=",
        "bound": 0.0,
    }
    for k in entry.examples:
        rng = stream(seed, "depth", theory_id, "questions", k)
        sample = tasks.question_answering(rng, entry.inputs, k, entry.tokens, entry.tokens)
        built = constructions.reasoner(k, entry.tokens, entry.tokens)
        size = f"k={k}, {entry.tokens} questions and answers"
        yield solved(f"copy-match-{k}", statement, size, built, sample.ids_NxT, sample.label_N) | decides


def _several_hops(entry: Any, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    ids, labels = every_chain(CHAIN, ENTITIES)
    for merged in (False, True):
        description, suffix = (
            ("One layer that copies, then one that matches and copies at once for each hop, follow", "-merged")
            if merged
            else ("Copying and matching once for each hop, two layers each, follow", "")
        )
        statement, metadata = f"{description} a chain to its end", {"source": SECTION_7}
        if not merged:  # the paper counts two layers for each hop
            metadata |= {"claim": "7", "part": "T9"}
        small = constructions.chain_reasoner(CHAIN, CHAIN, ENTITIES, merged)
        size = f"{CHAIN} hops, {ENTITIES} entities, every chain in every order"
        yield solved(f"nested-all{suffix}", statement, size, small, ids, labels) | metadata
        for hops in entry.hops:
            rng = stream(seed, "depth", theory_id, "chains", hops)
            sample = tasks.nested(rng, entry.inputs, hops, max(entry.hops), 2, entry.tokens)
            built = constructions.chain_reasoner(2 * max(entry.hops), hops, entry.tokens, merged)
            size = f"{hops} hop{'s' if hops > 1 else ''} among 2 chains of {max(entry.hops)} links"
            name = f"nested-{hops}{suffix}"
            yield solved(name, statement, size, built, sample.ids_NxT, sample.label_N) | metadata
