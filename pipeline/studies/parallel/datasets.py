"""Samples of Ising models, each with one mask of every size (Li 2025, Figures 4.1 and 4.2; PAR-D2, PAR-D3), and the
translation corpus SYNMT (PAR-D10).

Those with several sets of masks are made by `pipeline.studies.parallel.scheme_datasets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import ising, synmt
from pipeline.store import tables
from pipeline.studies.parallel import scheme_datasets
from schemas.parallel.datasets import CORPUS, SAMPLES, SCHEMA, SCHEME_DRAWS, TEST, TRAIN, VALID

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.studies.parallel.params import Corpus, Dataset, Draws

__all__ = ["SCHEMA", "generate"]

ROOM = 10**7  # tokens of pairs of outcomes that are compared at once


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the dataset ``key`` and the metadata of its file, its kind."""
    if entry.kind == "schemes":
        return scheme_datasets.generate(entry, key, seed), {"kind": SCHEME_DRAWS}
    if entry.kind == "samples":
        return _samples(entry, key, seed), {"kind": SAMPLES}
    return _corpus(entry, seed), {"kind": CORPUS}


def _samples(entry: Draws, key: str, seed: int) -> pl.DataFrame:
    """Return how often each state came with each mask.

    All sizes of masks have the same states: what differs between them is what is masked.
    """
    N, law = entry.N, ising.law(ising.clique(entry.N, entry.N, entry.J), entry.N)
    frames = []
    for n in entry.n:
        for repetition in range(entry.repetitions):
            states = ising.counts(stream(seed, entry.study, key, n, repetition), law, n, 1)
            for k in range(1, N + 1):
                rng = stream(seed, entry.study, key, n, repetition, "masks", k)
                frames.append(_frame(ising.masked_counts(rng, states, k, N)[0], n, repetition, k, N, entry.J))
    return pl.concat(frames)


def _frame(counts_MxS: NDArray[np.int64], n: int, repetition: int, k: int, N: int, J: float) -> pl.DataFrame:
    mask, state = np.nonzero(counts_MxS)
    columns = {
        "spins": np.full(len(mask), N, np.int8),
        "J": np.full(len(mask), J),
        "n": np.full(len(mask), n, np.int32),
        "repetition": np.full(len(mask), repetition, np.int32),
        "k": np.full(len(mask), k, np.int8),
        "mask": np.array(ising.masks(N, k), np.int16)[mask],
        "state": state.astype(np.int16),
        "count": counts_MxS[mask, state].astype(np.int32),
    }
    return pl.DataFrame(columns)


def samples(frame: pl.DataFrame, k: int) -> tuple[dict[tuple[int, int], NDArray[np.int64]], int, float]:
    """Return the counts (M, S) of masks of ``k`` by sample, (n, repetition) in the order of the frame; spins, and J.

    Raises ValueError if the frame has none.
    """
    rows = frame.filter(k=k)
    if not rows.height:
        raise ValueError(f"a dataset without masks of {k} positions")
    N, J = int(rows["spins"][0]), float(rows["J"][0])
    place = {mask: i for i, mask in enumerate(ising.masks(N, k))}
    found: dict[tuple[int, int], NDArray[np.int64]] = {}
    for (n, repetition), own in rows.group_by("n", "repetition", maintain_order=True):
        counts = np.zeros((len(place), 2**N), np.int64)
        at = [place[mask] for mask in own["mask"].to_list()]
        counts[at, own["state"].to_numpy()] = own["count"].to_numpy()
        found[int(str(n)), int(str(repetition))] = counts
    return found, N, J


def _corpus(entry: Corpus, seed: int) -> pl.DataFrame:
    """Return sentences of all splits; the same numbers decide what is drawn at each alpha."""
    lexicon, about, words = sources(entry, seed)
    z, j = synmt.draw(stream(seed, entry.study, entry.stream, "latents"), words, entry.alpha, entry.first_register)
    tokens = synmt.translate(lexicon, words, z, j, longest(entry.longest))
    return corpus(lexicon, words, tokens, entry, about | {"replica": -1, "z": z, "j": j})


def sources(entry: Corpus, seed: int) -> tuple[synmt.Lexicon, dict[str, Any], NDArray[np.int64]]:
    """Return the lexicon, split and idx of each sentence, and sentences (N, L): the same for entries of one stream."""
    sizes = {TRAIN: entry.train, VALID: entry.valid, TEST: entry.test}
    lexicon = synmt.Lexicon(entry.blocks, entry.doubles)
    rng = stream(seed, entry.study, entry.stream, "sources")
    words = synmt.sample_words(rng, sum(sizes.values()), lexicon, entry.shortest, entry.longest)
    split = np.repeat(list(sizes), list(sizes.values()))
    return lexicon, {"split": split, "idx": np.concatenate([np.arange(size) for size in sizes.values()])}, words


def longest(words: int) -> int:
    """Return the tokens of the longest translation of so many words: two each, the particle, and the end."""
    return 2 * words + 2


def corpus(
    lexicon: synmt.Lexicon,
    words_NxL: NDArray[np.int64],
    tokens_NxT: NDArray[np.int64],
    entry: Corpus,
    about: dict[str, Any],
) -> pl.DataFrame:
    """Return `schemas.parallel.datasets.Corpus` with what the law says of each source; ``about`` has its split, idx,
    replica, z and j."""
    logs, parts = [], []
    outcomes = synmt.REGISTERS * (words_NxL.shape[1] + 1)
    size = max(1, ROOM // (outcomes**2 * tokens_NxT.shape[1]))
    for start in range(0, len(words_NxL), size):
        some = slice(start, start + size)
        law = synmt.law(lexicon, words_NxL[some], entry.alpha, entry.first_register, tokens_NxT.shape[1])
        found = synmt.dependence(law)
        logs.append(synmt.log_probability(law, tokens_NxT[some]))
        said = np.isfinite(synmt.log_probability(law, found.likeliest))
        parts.append((found.total, found.entropy, found.apart, said, synmt.stutters(found.likeliest).sum(1)))
    total, entropy, apart, said, stutter = (np.concatenate(part) for part in zip(*parts, strict=True))
    log_p = np.concatenate(logs)
    columns = (
        {"z": None, "j": None}
        | about
        | {
            "alpha": entry.alpha,
            "first_register": entry.first_register,
            "blocks": lexicon.blocks,
            "doubles": lexicon.doubles,
            "src": tables.lists(words_NxL[words_NxL >= 0].astype(np.int16), (words_NxL >= 0).sum(1)),
            "tgt": tables.lists(tokens_NxT[tokens_NxT != synmt.PAD].astype(np.int16), (tokens_NxT != synmt.PAD).sum(1)),
            "n_words": (words_NxL >= 0).sum(1),
            "log_p": np.where(np.isfinite(log_p), np.minimum(log_p, 0.0), np.nan),
            "tc_nats": total,
            "h_nats": entropy,
            "tv_prod": apart,
            "alike": said,
            "stutter": stutter,
        }
    )
    return tables.conform([pl.DataFrame(columns)], SCHEMA[CORPUS])
