"""Wall-clock time of translations one at a time: parallel decoding against decoding word by word (PAR-E6).

Random weights of the shape of params/parallel/runs.yaml take as long as trained ones: the time word by word is that of
a target of the true length, by proportion where one ends early, and all four parallel passes are made. A time is no
result, so no table has it: `make bench` keeps median and 99th percentile of one torch thread in RESULTS.md, and
``python benchmarks/translation.py`` prints them alone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from pipeline.kit.streams import stream
from pipeline.languages import synmt
from pipeline.models.parallel import translator
from pipeline.studies.parallel import decoding

SENTENCES, PASSES, WARM = 200, 4, 10
PARALLEL, BY_WORD = "parallel", "word by word"
PERCENTILES = {"median": 50, "99th percentile": 99}
LEXICON = synmt.Lexicon(1)


def weights(spec: translator.Spec) -> dict[str, torch.Tensor]:
    """Random weights, of one replica."""
    drawn = translator.initial(spec, stream(0, "benchmark", str(spec.causal)))
    return {name: torch.tensor(value[None], dtype=torch.float32) for name, value in drawn.items()}


def measure() -> dict[str, dict[str, float]]:
    """Return milliseconds by percentile and way, both ways on the same sentences."""
    words = synmt.sample_words(stream(0, "benchmark"), SENTENCES + WARM, LEXICON, 5, 10)
    source, lengths = torch.from_numpy(LEXICON.source(words)), torch.from_numpy(synmt.lengths(LEXICON, words))
    specs = [translator.Spec(LEXICON.vocabulary, 64, 4, 256, 2, 2, 22, causal, True, 0) for causal in (True, False)]
    models = [(spec, weights(spec)) for spec in specs]
    took: dict[str, list[float]] = {BY_WORD: [], PARALLEL: []}
    for i in range(SENTENCES + WARM):
        ids = source[i : i + 1, : int((source[i] != synmt.PAD).sum())]
        # Sentence by sentence in turn: what else slows the machine slows both.
        for name, (spec, params) in zip(took, models, strict=True):
            share, start = 1.0, time.perf_counter()
            with torch.no_grad():
                if spec.causal:
                    written = decoding.greedy(spec, params, ids, most=int(lengths[i])).passes
                    share = float(lengths[i] / written[0])
                else:
                    memory = translator.encode(spec, params, ids[None])[0]
                    state = decoding.framed(torch.randint(5, 69, (1, 22)), lengths[i : i + 1])
                    for _ in range(PASSES):
                        decoding.refine(spec, params, memory, state, 1)
            if i >= WARM:
                took[name].append(1000 * share * (time.perf_counter() - start))
    return {
        name: {way: float(np.percentile(values, q)) for way, values in took.items()} for name, q in PERCENTILES.items()
    }


def main() -> None:
    """Print both times and how many times as long word by word takes."""
    torch.set_num_threads(1)
    for name, took in measure().items():
        quotient = took[BY_WORD] / took[PARALLEL]
        print(f"{name}: {took[BY_WORD]:.2f} ms {BY_WORD}, {took[PARALLEL]:.2f} ms in {PASSES} passes, {quotient:.2f}")


if __name__ == "__main__":
    main()
