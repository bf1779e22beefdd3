"""SYNMT: the corpus with its dial, by hand, by enumeration, and against the chapter's numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import synmt
from pipeline.languages.synmt import EOS, PAD, PART
from pipeline.store import tables
from pipeline.studies.parallel import datasets
from pipeline.studies.parallel.params import Corpus
from schemas.parallel.datasets import CORPUS, SCHEMA, TEST, TRAIN, padded

LEXICON = synmt.Lexicon(1)
REGISTER, SIZE = 0.6, 22
ENTRY = Corpus(
    study="parallel",
    language="synmt",
    kind="synmt",
    alpha=0.5,
    first_register=REGISTER,
    stream="test-synmt",
    blocks=1,
    doubles=True,
    shortest=3,
    longest=6,
    train=60,
    valid=10,
    test=20,
)


def sentences(*words: list[int]) -> np.ndarray:
    found = np.full((len(words), max(map(len, words))), synmt.NONE)
    for own, row in zip(words, found, strict=True):
        row[: len(own)] = own
    return found


def by_hand(words: list[int], z: int, j: int) -> list[int]:
    """The translation as chapter 3.9 says it, word by word: an implementation of its own."""
    order, i = list(words), 0
    while i < len(order) - 1:
        if order[i] % 24 in (0, 3, 8, 11, 18) and order[i + 1] % 24 in (1, 4, 9, 12, 20):
            order[i], order[i + 1] = order[i + 1], order[i]
            i += 2
        else:
            i += 1
    said = []
    for place, word in enumerate(order):
        if place == j:
            said.append(PART)
        if word < 8:
            said.append(5 + word)
        elif word < 18:
            said.append(13 + 2 * (word - 8) + z)
        else:
            said += [33 + 2 * (word - 18), 34 + 2 * (word - 18)]
    return [*said, *([PART] if j == len(order) else []), EOS]


def test_lexicon() -> None:
    assert (LEXICON.words, LEXICON.vocabulary) == (24, 69)
    target = LEXICON.table[LEXICON.table >= 0]
    assert set(target) == set(range(5, 45))
    assert LEXICON.source(sentences([0, 23]))[0].tolist() == [synmt.LEN, 45, 68]
    assert synmt.Lexicon(21).words == 504


def test_example() -> None:
    # 0 before 1 swaps; 8 is sensitive to the register; 18 has two tokens
    words = sentences([0, 1, 8, 18])
    said = [synmt.translate(LEXICON, words, np.array([z]), np.array([j]), 8)[0].tolist() for z, j in ((0, 0), (1, 4))]
    assert said == [[PART, 6, 5, 13, 33, 34, EOS, PAD], [6, 5, 14, 33, 34, PART, EOS, PAD]]
    assert synmt.lengths(LEXICON, words).tolist() == [7]


def test_words_of_one_token_each() -> None:
    """Without words of two tokens, those have the first of both; all else is as it was."""
    single, words = synmt.Lexicon(1, doubles=False), sentences([0, 1, 8, 18])
    said = synmt.translate(single, words, np.array([1]), np.array([4]), 8)[0].tolist()
    assert said == [6, 5, 14, 33, PART, EOS, PAD, PAD]
    assert synmt.lengths(single, words).tolist() == [6]
    assert single.vocabulary == LEXICON.vocabulary
    assert np.array_equal(single.table[:18], LEXICON.table[:18])
    assert np.array_equal(single.table[:, :, 0], LEXICON.table[:, :, 0]) and (single.table[:, :, 1] == synmt.NONE).all()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 23), min_size=1, max_size=7), st.floats(0, 1))
def test_law(words: list[int], alpha: float) -> None:
    """Against an enumeration by dictionaries: probabilities, total correlation, distance, likeliest tokens."""
    law = synmt.law(LEXICON, sentences(words), alpha, REGISTER, SIZE)
    exact: dict[tuple[int, ...], float] = defaultdict(float)
    exact[tuple(by_hand(words, 0, 0))] += 1 - alpha
    for z, j in itertools.product((0, 1), range(len(words) + 1)):
        exact[tuple(by_hand(words, z, j))] += alpha * (REGISTER, 1 - REGISTER)[z] / (len(words) + 1)
    exact = {said: p for said, p in exact.items() if p > 0}
    for said, p in exact.items():
        row = np.array([[*said, *[PAD] * (SIZE - len(said))]])
        assert synmt.log_probability(law, row)[0] == pytest.approx(math.log(p), abs=1e-9)
        assert len(said) == synmt.lengths(LEXICON, sentences(words))[0]
    marginals: list[dict[int, float]] = [defaultdict(float) for _ in range(len(next(iter(exact))))]
    for said, p in exact.items():
        for place, token in enumerate(said):
            marginals[place][token] += p
    entropy = -sum(p * math.log(p) for p in exact.values())
    total = -sum(p * math.log(p) for marginal in marginals for p in marginal.values()) - entropy
    product = {said: math.prod(marginals[i][t] for i, t in enumerate(said)) for said in exact}
    found = synmt.dependence(law)
    assert found.entropy[0] == pytest.approx(entropy, abs=1e-9)
    assert found.total[0] == pytest.approx(total, abs=1e-8)
    assert found.apart[0] == pytest.approx(sum(max(0, p - product[y]) for y, p in exact.items()), abs=1e-9)
    for place, marginal in enumerate(marginals):
        assert marginal[int(found.likeliest[0, place])] == pytest.approx(max(marginal.values()), abs=1e-9)


def test_samples_follow_the_law() -> None:
    words = np.repeat(sentences([0, 9, 20, 3]), 40000, 0)
    law = synmt.law(LEXICON, words[:1], 0.7, REGISTER, 8)
    z, j = synmt.draw(stream(1, "test"), words, 0.7, REGISTER)
    seen = Counter(map(bytes, synmt.translate(LEXICON, words, z, j, 8)))
    expected = {bytes(said): p for said, p in zip(law.tokens[0], law.p[0], strict=True)}
    assert set(seen) <= set(expected)
    chi = sum((seen[said] - 40000 * p) ** 2 / (40000 * p) for said, p in expected.items())
    assert chi < 30  # of 9 degrees of freedom


def test_dials_are_nested() -> None:
    words = synmt.sample_words(stream(2, "test"), 500, LEXICON, 5, 10)
    some, more = (np.stack(synmt.draw(stream(3, "test"), words, alpha, REGISTER)) for alpha in (0.5, 1.0))
    drawn = some.any(0)
    assert (some[:, drawn] == more[:, drawn]).all() and 0.2 < drawn.mean() < 0.5


def test_sentences() -> None:
    words = synmt.sample_words(stream(4, "test"), 3000, LEXICON, 5, 10)
    counts = (words >= 0).sum(1)
    assert len(np.unique(words, axis=0)) == 3000 and (counts.min(), counts.max()) == (5, 10)
    order = synmt.reordered(words)
    assert not ((order[:, 1:] == order[:, :-1]) & (order[:, 1:] >= 0)).any()
    assert (np.sort(order, 1) == np.sort(words, 1)).all()
    assert np.abs(np.bincount(counts)[5:] / 3000 - 1 / 6).max() < 0.03


@pytest.mark.parametrize(
    ("alpha", "total", "entropy"), [(0.0, 0, 0), (0.25, 3.92, 1.16), (0.5, 5.78, 1.93), (1.0, 6.52, 2.75)]
)
def test_numbers_of_the_chapter(alpha: float, total: float, entropy: float) -> None:
    """[num] Mean total correlation and entropy, length, and the best guess of each position (claims 26, 37)."""
    words = synmt.sample_words(stream(5, "test"), 1000, LEXICON, 5, 10)
    law = synmt.law(LEXICON, words, alpha, REGISTER, SIZE)
    found = synmt.dependence(law)
    assert found.total.mean() == pytest.approx(total, abs=0.12)
    assert found.entropy.mean() == pytest.approx(entropy, abs=0.05)
    assert synmt.lengths(LEXICON, words).mean() == pytest.approx(11.4, abs=0.15)
    support = synmt.law(LEXICON, words, 1.0, REGISTER, SIZE)
    valid = np.isfinite(synmt.log_probability(support, found.likeliest))
    stutter = 100 * synmt.stutters(found.likeliest).sum() / (found.likeliest > EOS).sum()
    assert valid.mean() == (alpha <= 0.5)
    assert stutter == pytest.approx(11.85 if alpha == 1 else 0, abs=0.7)


def test_dataset() -> None:
    frame, metadata = datasets.generate(ENTRY, "key", 7)
    assert metadata == {"kind": CORPUS} and Counter(frame["split"]) == {"train": 60, "valid": 10, "test": 20}
    SCHEMA[CORPUS].validate(frame)
    again = datasets.generate(ENTRY.model_copy(update={"alpha": 1.0}), "other", 7)[0]
    assert again["src"].equals(frame["src"]) and not again["tgt"].equals(frame["tgt"])
    train, test = (set(map(tuple, frame.filter(split=split)["src"].to_list())) for split in (TRAIN, TEST))
    assert not train & test
    law = synmt.law(LEXICON, padded(frame["src"], synmt.NONE), 0.5, REGISTER, 14)
    assert np.allclose(synmt.log_probability(law, padded(frame["tgt"], PAD, 14)), frame["log_p"].to_numpy())


@pytest.mark.parametrize(
    ("column", "value"), [("tgt", [5, 6, EOS]), ("src", [0, 24, 1]), ("src", [3, 3, 1]), ("z", 1), ("n_words", 2)]
)
def test_a_wrong_row_is_found(column: str, value: object, tmp_path: object) -> None:
    frame, metadata = datasets.generate(ENTRY, "key", 7)
    # the first sentence with a word that is sensitive to the register, and z = 0
    row = next(i for i, r in enumerate(frame.rows(named=True)) if r["z"] == 0 and any(8 <= w < 18 for w in r["src"]))
    changed = [value if i == row else each for i, each in enumerate(frame[column].to_list())]
    broken = frame.with_columns(pl.Series(column, changed, dtype=frame[column].dtype))
    with pytest.raises(SandglassError, match="words are of the lexicon"):
        tables.write(broken, tmp_path / "x.parquet", SCHEMA, metadata)  # type: ignore[operator]


@pytest.mark.parametrize("alpha", [-0.1, 1.5, math.nan])
def test_alpha_outside(alpha: float) -> None:
    with pytest.raises(ValueError, match=r"expected 0 to 1, got"):
        synmt.law(LEXICON, sentences([1, 2]), alpha, REGISTER, 8)
    with pytest.raises(ValueError, match="alpha"):
        Corpus(**ENTRY.model_dump() | {"alpha": alpha})


@pytest.mark.parametrize(
    ("words", "message"),
    [([3, 24], "a word 24 at place 1, outside the lexicon: its 24 words are 0 to 23"), ([], "at least one word")],
)
def test_words_outside(words: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        synmt.law(LEXICON, sentences(words or [-1]), 1.0, REGISTER, 8)


def test_shortest_above_longest() -> None:
    with pytest.raises(ValueError, match="shortest 7 is more than longest 6"):
        Corpus(**ENTRY.model_dump() | {"shortest": 7})
