"""From masked documents to training jobs (Li 2025, section 2.1.5)."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.training.jobs import Header
from schemas.topic import datasets as documents
from schemas.topic.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.topic.params import Encoder, OneLayer, Reader, Run

__all__ = ["DATASET_SCHEMA", "prepare"]

Data = dict[str, np.ndarray]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, Data, np.ndarray]:
    """Return header, data and what is frozen of the training job of one member of a run.

    Models are ordered by learning rate, cell and seed. Those of one seed share initial weights and the order of data,
    in all cells, rates and runs of one stream.
    """
    if entry.kind == "encoder":
        return _encoder(entry, frame, seed)
    if entry.kind == "reader":
        return _reader(entry, frame, seed)
    return _disjoint(entry, frame, seed)


def _disjoint(entry: OneLayer, frame: pl.DataFrame, seed: int) -> tuple[Header, Data, np.ndarray]:
    topics, words = (int(frame[name][0]) for name in ("topics", "words"))
    symbols = _language(entry).vocabulary(topics, words, entry.masking == "released")
    uniform = entry.attention == "uniform"
    data = _arrays(entry, frame.filter(split="train"), uniform)
    held = _arrays(entry, frame.filter(split="dev").head(entry.online), uniform)
    return _header(entry, seed, symbols), _joined(data, held), _frozen(entry, frame)


def _header(entry: OneLayer | Reader, seed: int, symbols: int) -> Header:
    spec = {
        "symbols": symbols,
        "width": symbols if entry.width is None else entry.width,
        "embedding": entry.embedding,
        "attention": entry.attention,
        "values": entry.values,
        "bias": entry.bias,
        "std": entry.std,
        "std_embedding": entry.std if entry.std_embedding is None else entry.std_embedding,
    }
    cells = [cell.model_dump() for cell in entry.cells.values()]
    many, rates, seeds = len(entry.cells), len(entry.lr), range(entry.replicas)
    return replace(
        Header.grid(entry, seed, spec, {"cells": cells, "uniform": entry.attention == "uniform"}),
        lr=[rate for rate in entry.lr for _ in range(many * entry.replicas)],
        corpus=[cell for _ in range(rates) for cell in range(many) for _ in seeds],
        streams=[own for _ in range(rates * many) for own in seeds],
    )


def _joined(data: Data, held: Data) -> Data:
    """Return the data of a job; of those to train on, where the questions of each document begin."""
    first = np.searchsorted(data.pop("document"), np.arange(len(data["counts"]) + 1))
    return data | {"first": first} | {f"held.{name}": array for name, array in held.items()}


def _arrays(entry: OneLayer, frame: pl.DataFrame, uniform: bool) -> Data:
    questions = documents.questions(frame, entry.masking)
    return _small(_language(entry).by_document(questions) if uniform else questions)


def _small(questions: Any) -> Data:
    """Return the arrays of `pipeline.languages.topic.Questions`; counts are of at most 255 tokens."""
    return {
        "counts": questions.counts.astype(np.uint8),
        "document": questions.document,
        "shown": questions.shown.astype(np.uint8 if questions.counts.shape[1] <= 256 else np.int16),
        "labels": questions.labels.astype(np.uint8),
    }


def _frozen(entry: Any, frame: pl.DataFrame) -> np.ndarray:
    """Return the frozen value matrix or the frozen bias of the head; nothing where neither is frozen."""
    language = _language(entry)
    settings = (int(frame["topics"][0]), int(frame["words"][0]), documents.masking(frame))
    symbols = language.vocabulary(*settings[:2], entry.masking == "released")
    weights = np.zeros((1, 1))
    if entry.bias == "frozen":
        weights = language.prediction_bias(*settings)
    elif entry.frozen_values == "block":
        weights = language.block_values(*settings)
    elif entry.frozen_values == "diagonal":
        weights = language.diagonal_values(*settings)
    elif entry.frozen_values is not None:
        weights = np.diag([0.0] + [entry.frozen_values] * (settings[0] * settings[1]))
    if weights.shape != (1, 1):
        more = symbols - len(weights)  # special ids of the released code
        weights = np.pad(weights, [(0, more)] * weights.ndim)
    return weights.astype(np.float32)


def _language(entry: Any) -> Any:
    return importlib.import_module(f"pipeline.languages.{entry.language}")


# --- corpora that stand in for natural language ----------------------------------------------------------


def _reader(entry: Reader, frame: pl.DataFrame, seed: int) -> tuple[Header, Data, np.ndarray]:
    """Return the job of models of one layer that read documents between special ids."""
    language, symbols = _language(entry), int(frame["symbols"][0])
    held = frame.filter(split="dev").head(entry.online)
    data, unseen = (
        _small(language.questions(*documents.texts(part), *documents.text_masks(part), symbols))
        for part in (frame.filter(split="train"), held)
    )
    return _header(entry, seed, symbols), _joined(data, unseen), np.zeros((1, 1), np.float32)


def _encoder(entry: Encoder, frame: pl.DataFrame, seed: int) -> tuple[Header, Data, np.ndarray]:
    """Return the job of encoders. Masks of held-out documents are those of the dataset."""
    language, symbols = _language(entry), int(frame["symbols"][0])
    longest = int(frame["tokens"].list.len().max())  # type: ignore[arg-type]
    spec = {
        "symbols": symbols,
        "positions": longest,
        "types": 1,
        "width": entry.width,
        "layers": entry.layers,
        "heads": entry.heads,
        "ffn": entry.ffn,
        "eps": entry.ln_eps,
        "std": entry.std,
        "std_attention": entry.std_attention,
    }
    settings = {
        "p_mask": entry.p_mask,
        "p_keep": entry.p_keep,
        "p_random": entry.p_random,
        "symbols": symbols,
        "first_word": language.SPECIALS,
        "mask": language.MASK,
        "layers": entry.layers,
    }
    train, held = frame.filter(split="train"), frame.filter(split="dev").head(entry.online)
    tokens, lengths = documents.texts(train)
    own, lengths_held = documents.texts(held)
    at, shown = documents.text_masks(held)
    data = {
        "tokens": _padded(tokens, lengths, longest, language.PAD),
        "lengths": lengths.astype(np.int16),
        "held.tokens": _padded(shown, lengths_held, longest, language.PAD),
        "held.lengths": lengths_held.astype(np.int16),
        "held.places": np.flatnonzero(_padded(at, lengths_held, longest, 0)),
        "held.labels": own[at],
    }
    return Header.grid(entry, seed, spec, settings), data, np.zeros((1, 1), np.float32)


def _padded(flat: np.ndarray, lengths: np.ndarray, longest: int, pad: int) -> np.ndarray:
    tokens = np.full((len(lengths), longest), pad, np.int16)
    tokens[np.arange(longest) < lengths[:, None]] = flat
    return tokens
