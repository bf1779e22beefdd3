"""DATA-ERR: what language models of Dyck strings get wrong out of distribution (Li 2025, sections 3.2.1.2 and 3.2.1.3).

Each model completes prompts, which are the same for all of them, until it has made enough mistakes. A string ends with
its first wrong sign. Beside it are strings of the grammar, cut to the same lengths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder
from pipeline.models.llama.decoding import Plan
from pipeline.studies.verifier import datasets
from pipeline.studies.verifier.measures import generation
from pipeline.studies.verifier.measures.models import averaged
from pipeline.studies.verifier.names import CORRECT, ERROR, HELD_CORRECT, HELD_ERROR
from schemas.verifier.datasets import SCHEMA

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.studies.verifier.params import Mistakes

__all__ = ["SCHEMA", "answers"]

PART = 1000  # prompts that are completed between two looks at how many mistakes there are
FEWEST = 8  # mistakes, for training and for what is held out


def answers(
    entries: dict[str, Mistakes], seed: int, arrays: dict[str, NDArray[Any]], header: dict[str, Any]
) -> dict[str, pl.DataFrame]:
    """Return for each dataset the sets `ERROR`, `CORRECT`, and the same of further prompts, of every model.

    Raises SandglassError if a model makes hardly any mistakes.
    """
    tables = {}
    for key, entry in entries.items():
        frames = []
        if "spec" in header:
            spec = decoder.Spec(**header["spec"])
            models = generation.Models(spec, averaged(spec, arrays), entry.brackets)
            with one_thread():
                for replica in range(models.count):
                    tokens, lengths = _mistakes(entry, key, seed, models.one(replica), replica)
                    frames += _sets(entry, key, seed, replica, tokens, lengths)
        tables[key] = pl.concat(frames) if frames else SCHEMA.empty()
    return tables


def _mistakes(
    entry: Mistakes, key: str, seed: int, model: generation.Models, replica: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the mistaken strings of a model, which end with the mistake: tokens (N, T), lengths (N,).

    Raises SandglassError if it makes hardly any on all prompts that may be tried.
    """
    wanted, plan = entry.mistakes + entry.held, Plan(language.END, top_p=entry.top_p)
    tokens, lengths = np.zeros((0, model.limit), np.int64), np.zeros(0, np.int64)
    for start in range(0, entry.most, PART):
        rng, n = stream(seed, entry.study, key, "prompts", start), min(PART, entry.most - start)
        whole = language.sample(rng, n, entry.brackets, entry.p, entry.q, entry.max_depth).astype(np.int64)
        cut = rng.integers(entry.cut[0], entry.cut[1] + 1, n) + 1
        rng = stream(seed, entry.study, key, "draws", start, replica)
        done = generation.complete(model, plan, whole[None], cut[None], rng, model.limit)
        at, _ = language.first_errors(done.tokens[0], done.lengths[0], entry.brackets)
        wrong = at >= 0
        tokens = np.concatenate([tokens, done.tokens[0][wrong]])
        lengths = np.concatenate([lengths, at[wrong].astype(np.int64) + 1])
        if len(lengths) >= wanted:
            break
    if len(lengths) < FEWEST:
        raise SandglassError(
            f"datasets.{key}: model {replica} made {len(lengths)} mistakes on {entry.most} prompts, too few to learn "
            "from: raise 'most', or train smaller models"
        )
    return tokens[:wanted], lengths[:wanted]


def _sets(
    entry: Mistakes, key: str, seed: int, replica: int, tokens: NDArray[np.int64], lengths: NDArray[np.int64]
) -> list[pl.DataFrame]:
    """Return the sets of one model; where it made too few mistakes, both parts are smaller alike."""
    split = max(2, round(len(lengths) * entry.mistakes / (entry.mistakes + entry.held)))
    frames = []
    for wrong, right, part in ((ERROR, CORRECT, slice(0, split)), (HELD_ERROR, HELD_CORRECT, slice(split, None))):
        ends = lengths[part]
        rng = stream(seed, entry.study, key, right, replica)
        grammar = language.sample(rng, len(ends), entry.brackets, entry.p, entry.q, entry.max_depth)
        frames.append(datasets.frame(wrong, entry.brackets, tokens[part].astype(np.int8), ends, replica))
        frames.append(datasets.frame(right, entry.brackets, grammar, ends, replica))
    return frames
