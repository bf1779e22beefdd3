"""What translators are given to translate, and where their decoding starts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import synmt
from pipeline.studies.parallel.datasets import longest
from pipeline.studies.parallel.measures.translation import Test
from pipeline.training.objectives.translation import noised
from schemas.parallel.datasets import TEST, padded


class Sources(NamedTuple):
    """Test sentences of a corpus with dial ``alpha``: ``words`` (N, L), ``ids`` (N, S) that an encoder reads, and what
    their translations are tested against."""

    alpha: float
    lexicon: synmt.Lexicon
    words: np.ndarray
    ids: torch.Tensor
    test: Test


def sources(context: Inputs, dataset: str) -> Sources:
    """Return as many test sentences of a corpus as the experiment asks for."""
    whole = context.dataset(dataset)
    rows = whole.filter(split=TEST).head(context.entry.sentences)
    words, alpha, first = padded(rows["src"], synmt.NONE), float(rows["alpha"][0]), float(rows["first_register"][0])
    lexicon = synmt.Lexicon(int(rows["blocks"][0]), bool(rows["doubles"][0]))
    size = longest(int(np.max(whole["n_words"].to_numpy())))
    learned, support = (synmt.law(lexicon, words, each, first, size) for each in (alpha, 1.0))
    test = Test(learned, support, padded(rows["tgt"], synmt.PAD, size))
    return Sources(alpha, lexicon, words, torch.from_numpy(lexicon.source(words)), test)


def starts(context: Inputs, run: str, shape: tuple[int, ...], vocabulary: int) -> torch.Tensor:
    """Return (N, P) what stands where decoding starts, the same for all models of one vocabulary."""
    rng = stream(context.seed, context.study, "decoding", "start")
    settings = {"start": context.run_header(run)["entry"]["start"], "vocabulary": vocabulary}
    return torch.from_numpy(noised(rng, shape, settings))
