"""From held-out sets to training jobs; training sequences are made at every step (Liu 2024, section 3.5.6.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import SandglassError
from pipeline.languages import flipflop as language
from pipeline.training.jobs import Header
from schemas.flipflop.datasets import SCHEMA as DATASET_SCHEMA
from schemas.flipflop.datasets import matrix

if TYPE_CHECKING:
    import polars as pl

    from pipeline.studies.flipflop.params import Run, StoryRun, StringRun

__all__ = ["DATASET_SCHEMA", "prepare"]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, held-out data and an empty embedding table of the training job of one member of a run.

    Raises SandglassError if the dataset is of another task, number of symbols or length than the run.
    """
    if entry.task == "stories":
        return _stories(entry, frame, seed)
    own = (entry.task, entry.symbols, entry.length)
    variants = sorted(set(frame.select("task", "symbols", "length").iter_rows()))
    if own not in variants:
        raise SandglassError(
            f"dataset {entry.dataset} has no {entry.task} of {entry.symbols} symbols and {entry.length} tokens; it "
            f"has (task, symbols, tokens): {', '.join(map(str, variants))}"
        )
    frame = frame.filter(length=entry.length)
    names = frame["set"].unique(maintain_order=True).to_list()
    data = {f"held.{name}": matrix(frame.filter(set=name).head(entry.online)["tokens"]) for name in names}
    header = Header.grid(entry, seed, _spec(entry), _settings(entry, names, seed))
    count, k = len(header.corpus), entry.data_seeds
    if k:
        grid = range(count)
        header = replace(header, streams=[i % k for i in grid], orders=[i // k % k for i in grid])
    if entry.epochs > 1:
        header = replace(header, corpus=list(header.streams or []))
    return header, data, np.zeros((1, 1), np.float32)


def _stories(entry: StoryRun, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return the same of models that read stories; the dataset's strings, told in the source's words, are held out."""
    held = [language.words_of(language.story_text(tokens, language.PUBLISHED)) for tokens in frame["tokens"].to_list()]
    ids = np.full((len(held), max(map(len, held))), -1, np.int16)
    for row, story in zip(ids, held, strict=True):
        row[: len(story)] = story
    words = len(language.WORDS)
    spec = {
        "layers": entry.layers,
        "heads": entry.heads,
        "width": entry.width,
        "position": entry.position,
        "activation": "gelu",
        "t_max": ids.shape[1],
        "inputs": words,
        "outputs": words,
    }
    settings = {"lengths": entry.lengths, "p_ignore": entry.p_ignore}
    return Header.grid(entry, seed, spec, settings), {"held.ids": ids}, np.zeros((1, 1), np.float32)


def _settings(entry: StringRun, names: list[str], seed: int) -> dict[str, Any]:
    sharpen = None
    if entry.sharpen is not None and entry.layers is not None:
        sharpen = entry.sharpen.model_dump()
        sharpen["layers"] = entry.layers if entry.sharpen.layers == "all" else 1
    shares = [[p] if entry.task == "automaton" else list(language.halves(p)) for p in entry.train]
    return {
        "task": entry.task,
        "length": entry.length,
        "shares": shares,
        "symbols": entry.symbols,
        "loss": entry.loss,
        "sequences": entry.steps * entry.batch // entry.epochs if entry.epochs > 1 else 0,
        "pool": [seed, entry.study, entry.stream, entry.batch] if entry.epochs > 1 else None,
        "dropout": entry.dropout.model_dump(),
        "sharpen": sharpen,
        "steps": entry.steps,
        "held": names,
    }


def _spec(entry: StringRun) -> dict[str, Any]:
    automaton = entry.task == "automaton"
    ends = {
        "inputs": 3 if automaton else language.DATA + entry.symbols,
        "outputs": 2 if automaton else language.DATA + entry.symbols,
    }
    if entry.model == "automata/lstm":
        return {"embed": entry.embed, "width": entry.width} | ends
    if entry.position == "linear":
        return {"width": entry.width, "scale": entry.length} | ends
    shape = {name: getattr(entry, name) for name in ("layers", "heads", "width", "position", "activation")}
    return shape | {"t_max": entry.length} | ends
