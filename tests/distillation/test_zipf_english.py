"""The generated corpus: words, agreement, Zipf's law, blocks; and blocks of text files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import pcfg
from pipeline.languages import zipf_english as language


def test_the_words_are_different_and_few_enough() -> None:
    words = language.lexicon()
    assert len(set(words.vocabulary)) == len(words.vocabulary)
    assert len(words.vocabulary) <= language.MOST_WORDS
    assert sum(len(words.classes[name]) for name in words.classes if "_" in name and "det" not in name) > 1500
    assert words.vocabulary[language.MASK] == "<mask>" and words.vocabulary[language.PAD] == "<pad>"
    assert (language.BOS, language.EOS, language.PAD, language.MASK) == (pcfg.BOS, pcfg.EOS, pcfg.PAD, pcfg.MASK)


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
    counts = np.bincount(flat, minlength=len(words.vocabulary))[ids]
    law = 1 / np.arange(1, len(ids) + 1)
    top, rest = counts[:50], counts[50:].sum()
    expected = np.append(law[:50], law[50:].sum()) / law.sum() * counts.sum()
    assert stats.chisquare([*top, rest], expected).pvalue > 1e-3


def test_blocks_are_full_and_repeat() -> None:
    first, again = (language.blocks(stream(2, "test", "blocks"), 20, 128) for _ in range(2))
    assert first.shape == (20, 128) and (first == again).all()
    assert first.min() >= len(language.SPECIAL) and first.max() < len(language.lexicon().vocabulary)


def test_words_are_masked_by_the_law_of_definition_24() -> None:
    task = {"length": 64, "rate": 0.15, "files": None, "words": None}
    examples = language.examples(stream(2, "test", "masks"), 2000, task, held=False)
    tokens, shown, kind = (examples[name] for name in ("tokens", "shown", "kind"))
    assert tokens.shape == shown.shape == kind.shape == (2000, 65)
    assert (tokens[:, 0] == language.BOS).all() and (shown[:, 0] == language.BOS).all() and not kind[:, 0].any()
    n = 2000 * 64
    counts = np.bincount(kind[:, 1:].ravel(), minlength=4)
    expected = n * np.array([0.85, 0.15 * 0.8, 0.15 * 0.1, 0.15 * 0.1])
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    same = (kind == language.NONE) | (kind == language.KEPT)
    assert (shown[same] == tokens[same]).all() and (shown[kind == language.MASKED] == language.MASK).all()
    other = shown[kind == language.RANDOM]
    ids = len(language.lexicon().vocabulary)
    assert language.outputs(task) == ids and len(language.SPECIAL) <= other.min() and other.max() < ids
    halves = np.bincount((other - len(language.SPECIAL)) * 4 // (ids - len(language.SPECIAL)), minlength=4)
    assert stats.chisquare(halves).pvalue > 1e-3
    assert language.visible(shown, kind, False).all()
    assert (language.visible(shown, kind, True) == (kind == language.NONE)).all()


def test_text_files_make_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The cat ran. The cat, the dog!")
    blocks, vocabulary = language.read([tmp_path / "a.txt"], 4, 12)
    assert vocabulary == (*language.SPECIAL, "the", "cat", "!", ",")
    assert [vocabulary[word] for word in blocks.ravel()] == [
        "the",
        "cat",
        "<unknown>",
        "<unknown>",
        "the",
        "cat",
        ",",
        "the",
    ]
    with pytest.raises(SandglassError, match=r"cannot read the corpus .*b\.txt: No such file"):
        language.read([tmp_path / "b.txt"], 4, 12)
    with pytest.raises(SandglassError, match="less than a block of 100"):
        language.read([tmp_path / "a.txt"], 100, 12)
    with pytest.raises(SandglassError, match="a vocabulary of 8 words"):
        language.read([tmp_path / "a.txt"], 4, 8)


def test_held_out_blocks_of_a_file_are_never_drawn_for_training(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text(" ".join(f"word{i}" for i in range(200)))
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    task = {"length": 5, "rate": 0.5, "words": 300, "files": [{"path": str(path), "md5": md5}]}
    parts = [
        language.examples(stream(2, "test", part), 300, task, held=part == "held")["tokens"][:, 1:]
        for part in ("train", "held")
    ]
    train, held = (set(map(tuple, part.tolist())) for part in parts)
    assert len(train) == 36 and len(held) == 4 and not train & held  # a tenth of 40 blocks
    assert language.outputs(task) == 200 + len(language.SPECIAL)
    with pytest.raises(SandglassError, match=f"has md5 {md5}; params say {'0' * 32}"):
        language.outputs(task | {"files": [{"path": str(path), "md5": "0" * 32}]})
    with pytest.raises(SandglassError, match="is not there; params say"):
        language.outputs(task | {"files": [{"path": str(tmp_path / "d.txt"), "md5": md5}]})
