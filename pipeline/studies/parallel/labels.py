"""What autoregressive models write, for others to learn from (Li 2025, section 4.2.3: distilled targets)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.streams import one_thread
from pipeline.models.parallel import translator
from pipeline.studies.parallel import datasets, decoding
from schemas.parallel.datasets import ANSWERED, SCHEMA, TEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.studies.parallel.params import Answered

__all__ = ["SCHEMA", "answers"]

PART = 1000  # sentences that are translated at once


def answers(
    entries: dict[str, Answered], seed: int, arrays: dict[str, NDArray[Any]], header: dict[str, Any]
) -> dict[str, pl.DataFrame]:
    """Return for each dataset the greedy translations of every model, of all sources but those of the test split; none
    where the teacher has no models, or nobody learns from them at this scale."""
    return {key: _answered(entry, seed, arrays, header) for key, entry in entries.items()}


def _answered(entry: Answered, seed: int, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> pl.DataFrame:
    frames = []
    lexicon, about, words = datasets.sources(entry, seed)
    kept = about["split"] != TEST
    words, about = words[kept], {name: values[kept] for name, values in about.items()}
    count = min(entry.models, len(header["lr"])) if "spec" in header else 0
    with one_thread(), torch.no_grad():
        for replica in range(count):
            spec = translator.Spec(**header["spec"])
            params = {name: torch.from_numpy(arrays[name][replica : replica + 1]) for name in translator.shapes(spec)}
            source = torch.from_numpy(lexicon.source(words))
            parts = [decoding.greedy(spec, params, part).tokens for part in source.split(PART)]
            own = about | {"replica": np.full(len(words), replica)}
            frames.append(datasets.corpus(lexicon, words, torch.cat(parts).numpy(), entry, own))
    return pl.concat(frames) if frames else SCHEMA[ANSWERED].empty()
