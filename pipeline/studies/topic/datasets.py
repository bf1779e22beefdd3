"""Documents of the study, with masks that are drawn once (Li 2025, sections 2.1.1 and 2.1.5.1)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.store import tables
from schemas.topic.datasets import SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Dataset, Disjoint, Overlapping

__all__ = ["SCHEMA", "generate"]


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the documents of the dataset ``key``, or the words of a corpus; its metadata name their kind.

    Documents and masks have streams of their own, so that both masking schemes mask the same documents.
    """
    if entry.kind != "disjoint":
        return CORPORA[entry.kind](entry, key, seed), {"kind": entry.content}
    return pl.concat(_split(entry, key, seed, name) for name in ("train", "dev")), {"kind": entry.kind}


def _split(entry: Disjoint, key: str, seed: int, split: str) -> pl.DataFrame:
    language = _language(entry)
    n = getattr(entry, split)
    size = entry.topics * entry.words
    rng = stream(seed, entry.study, key, split, "documents")
    common = (rng, n, entry.topics, entry.words)
    if entry.alpha is not None:
        made = language.mixed(*common, entry.alpha, entry.shortest, entry.longest)
    else:
        made = language.exact(*common, entry.chosen or 0, entry.shortest, entry.longest)
    masking = language.Masking(entry.p_mask, entry.p_keep, entry.p_random)
    columns = {
        "split": pl.Series([split] * n),
        "document": pl.Series(np.arange(n), dtype=pl.Int32),
        "topics": pl.Series([entry.topics] * n, dtype=pl.Int16),
        "words": pl.Series([entry.words] * n, dtype=pl.Int16),
        "p_mask": pl.Series([entry.p_mask] * n),
        "p_keep": pl.Series([entry.p_keep] * n),
        "p_random": pl.Series([entry.p_random] * n),
        "theta": tables.lists(made.theta.ravel().astype(np.float32), np.full(n, entry.topics)),
        "tokens": tables.lists(made.tokens.astype(np.int16), made.lengths),
    }
    ends = made.lengths.cumsum()
    within = np.arange(len(made.tokens)) - np.repeat(ends - made.lengths, made.lengths)
    owner = np.repeat(np.arange(n), made.lengths)
    # The thesis replaces by words; the released code by any id, special ones included.
    ids = {
        "thesis": np.arange(1, size + 1),
        "released": np.arange(language.vocabulary(entry.topics, entry.words, True)),
    }
    for scheme, replacements in ids.items():
        rng = stream(seed, entry.study, key, split, "masks", scheme)
        at, shown = language.masked(rng, made.tokens, made.lengths, masking, replacements)
        many = np.bincount(owner[at], minlength=n)
        columns[f"{scheme}_at"] = tables.lists(within[at].astype(np.int16), many)
        columns[f"{scheme}_shown"] = tables.lists(shown[at].astype(np.int16), many)
    return pl.DataFrame(columns)


def _language(entry: Dataset) -> Any:
    return importlib.import_module(f"pipeline.languages.{entry.language}")


# --- corpora that stand in for natural language ----------------------------------------------------------


def _laws(entry: Overlapping, key: str, seed: int) -> np.ndarray:
    """Return (T, words), the topics of the corpus, of which documents and words are datasets of their own."""
    rng = stream(seed, entry.study, key.removesuffix("-words"), "topics")
    laws: np.ndarray = _language(entry).topics(rng, entry.topics, entry.words, entry.shape, entry.exponent)
    return laws


def _overlapping(entry: Any, key: str, seed: int) -> pl.DataFrame:
    """Return documents of overlapping topics, or what their words are."""
    language, laws = _language(entry), _laws(entry, key, seed)
    special = language.SPECIALS + entry.stop_words
    if entry.content == "words":
        names = ["[PAD]", "[MASK]", "[CLS]", "[SEP]", *(f"stop {n + 1}" for n in range(entry.stop_words))]
        names += [f"word {n + 1}" for n in range(entry.words)]
        return _words(names, special, np.concatenate([np.zeros((entry.topics, special)), laws], axis=1))
    frames = []
    for split in ("train", "dev"):
        n = getattr(entry, split)
        made = language.overlapping(
            stream(seed, entry.study, key, split, "documents"),
            n,
            laws,
            entry.stop_words,
            entry.stop_share,
            entry.shortest,
            entry.longest,
            (entry.alpha_shortest, entry.alpha_longest),
        )
        theta = tables.lists(made.theta.ravel().astype(np.float32), np.full(n, entry.topics))
        common = {"symbols": special + entry.words, "entry": [""] * n, "text": [""] * n, "theta": theta}
        frames.append(_texts(entry, key, seed, split, common, made.tokens, made.lengths))
    return pl.concat(frames)


def _reference(entry: Any, key: str, seed: int) -> pl.DataFrame:
    """Return the paragraphs of the language reference, or what their words are.

    Of a paragraph that is longer than ``longest`` words the first are taken; those that are held out are drawn.
    """
    language = _language(entry)
    paragraphs = language.paragraphs(language.reference(entry.sha256), entry.shortest, entry.fewest, entry.stop_words)
    if entry.content == "words":
        special = language.SPECIALS + entry.stop_words
        return _words(paragraphs.vocabulary, special, np.zeros((0, len(paragraphs.vocabulary))))
    usable = [n for n, words in enumerate(paragraphs.words) if words][: entry.paragraphs]
    drawn = stream(seed, entry.study, key, "split").permutation(len(usable))
    held = {usable[n] for n in drawn[: entry.dev]}
    frames = []
    for split, own in (("train", [n for n in usable if n not in held]), ("dev", sorted(held))):
        words = [paragraphs.words[n][: entry.longest] for n in own]
        lengths = np.array([len(each) for each in words])
        tokens, lengths, _ = language.framed(np.concatenate(words), lengths, np.zeros((len(own), 0)))
        common = {
            "symbols": len(paragraphs.vocabulary),
            "entry": [paragraphs.entry[n] for n in own],
            "text": [paragraphs.text[n] for n in own],
            "theta": [[] for _ in own],
        }
        frames.append(_texts(entry, key, seed, split, common, tokens, lengths))
    return pl.concat(frames)


CORPORA = {"overlapping": _overlapping, "reference": _reference}


def _texts(
    entry: Any, key: str, seed: int, split: str, common: dict[str, Any], tokens: np.ndarray, lengths: np.ndarray
) -> pl.DataFrame:
    rng, n = stream(seed, entry.study, key, split, "masks"), len(lengths)
    probabilities = entry.p_mask, entry.p_keep, entry.p_random
    at, shown = _language(entry).masked(rng, tokens, lengths, common["symbols"], *probabilities)
    within = np.arange(len(tokens)) - np.repeat(lengths.cumsum() - lengths, lengths)
    many = np.bincount(np.repeat(np.arange(n), lengths)[at], minlength=n)
    columns = {
        "split": [split] * n,
        "document": np.arange(n),
        "symbols": [common["symbols"]] * n,
        "stop_words": [entry.stop_words] * n,
        "entry": common["entry"],
        "text": common["text"],
        "theta": common["theta"],
        "tokens": tables.lists(tokens.astype(np.int16), lengths),
        "at": tables.lists(within[at].astype(np.int16), many),
        "shown": tables.lists(shown[at].astype(np.int16), many),
    }
    dtypes: dict[str, Any] = {
        "document": pl.Int32,
        "symbols": pl.Int16,
        "stop_words": pl.Int16,
        "theta": pl.List(pl.Float32),
    }
    return pl.DataFrame(columns, schema_overrides=dtypes)


def _words(names: list[str], special: int, laws: np.ndarray) -> pl.DataFrame:
    columns = {
        "id": np.arange(len(names)),
        "word": names,
        "stop": np.arange(len(names)) < special,
        "law": laws.T.tolist(),
    }
    return pl.DataFrame(columns, schema_overrides={"id": pl.Int16, "law": pl.List(pl.Float64)})
