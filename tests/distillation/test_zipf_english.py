"""The generated corpus: words, agreement, Zipf's law, blocks; and blocks of text files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import zipf_english as language


def test_the_words_are_different_and_few_enough() -> None:
    words = language.lexicon()
    assert len(set(words.vocabulary)) == len(words.vocabulary)
    assert len(words.vocabulary) <= language.MOST_WORDS
    assert sum(len(words.classes[name]) for name in words.classes if "_" in name and "det" not in name) > 1500
    assert words.vocabulary[words.special("mask")] == "<mask>"


def test_subjects_and_verbs_agree_and_sentences_end() -> None:
    words = language.lexicon()
    flat, lengths = language.sentences(stream(2, "test", "agreement"), 3000)
    assert lengths.sum() == len(flat) and lengths.min() >= 3
    member = {name: set(ids.tolist()) for name, ids in words.classes.items()}
    stop, that = next(iter(member["stop"])), next(iter(member["that"]))
    verbs = {number: member[f"verb_{number}"] | member[f"say_{number}"] for number in language.NUMBERS}
    every = verbs["sg"] | verbs["pl"]
    seen = {"sg": 0, "pl": 0}
    for sentence in np.split(flat, np.cumsum(lengths)[:-1]):
        row = sentence.tolist()
        assert row[-1] == stop and stop not in row[:-1]
        number = "sg" if row[0] in member["det_sg"] - member["det_pl"] | member["name"] else "pl"
        if row[0] in member["det_sg"] & member["det_pl"]:
            noun = next(word for word in row if word in member["noun_sg"] | member["noun_pl"])
            number = "sg" if noun in member["noun_sg"] else "pl"
        first = next(word for word in row if word in every)
        assert first in verbs[number]
        seen[number] += 1
        for at, word in enumerate(row):
            if word in member["det_sg"] | member["det_pl"] and word != that:
                noun = next(w for w in row[at:] if w in member["noun_sg"] | member["noun_pl"])
                numbers = [n for n in language.NUMBERS if word in member[f"det_{n}"]]
                assert any(noun in member[f"noun_{n}"] for n in numbers)
    assert min(seen.values()) > 1000


def test_words_of_a_class_follow_zipfs_law() -> None:
    words = language.lexicon()
    flat, _ = language.sentences(stream(2, "test", "zipf"), 20_000)
    ids = words.classes["noun_sg"]
    counts = np.bincount(flat, minlength=len(words.words))[ids]
    law = 1 / np.arange(1, len(ids) + 1)
    top, rest = counts[:50], counts[50:].sum()
    expected = np.append(law[:50], law[50:].sum()) / law.sum() * counts.sum()
    assert stats.chisquare([*top, rest], expected).pvalue > 1e-3


def test_blocks_are_full_and_repeat() -> None:
    first, again = (language.blocks(stream(2, "test", "blocks"), 20, 128) for _ in range(2))
    assert first.shape == (20, 128) and (first == again).all()
    assert first.min() >= 0 and first.max() < len(language.lexicon().words)


def test_text_files_make_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The cat ran. The cat, the dog!")
    found, vocabulary = language.read([tmp_path / "a.txt"], 4, 9)
    assert vocabulary == ("the", "cat", "!", ",", *language.SPECIAL)
    assert [vocabulary[word] for word in found.ravel()] == [
        "the", "cat", "<unknown>", "<unknown>", "the", "cat", ",", "the",
    ]  # fmt: skip
    with pytest.raises(SandglassError, match=r"cannot read the corpus .*b\.txt: No such file"):
        language.read([tmp_path / "b.txt"], 4, 9)
    with pytest.raises(SandglassError, match="less than a block of 100"):
        language.read([tmp_path / "a.txt"], 100, 9)
    with pytest.raises(SandglassError, match="a vocabulary of 5 words"):
        language.read([tmp_path / "a.txt"], 4, 5)
