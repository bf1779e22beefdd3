"""What attention says of stuttering before any training: the control of EXP-9.

A translator that was never trained has a tied output: positions that show the same token come from hidden states that
resemble each other, and so do their queries. What of stutter is already there says nothing of what training missed.
Targets have their true lengths, as these models know none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import synmt
from pipeline.models.parallel import translator
from pipeline.models.parallel.translator import Memory
from pipeline.studies.parallel import decoding
from pipeline.studies.parallel.controls import NEVER
from pipeline.studies.parallel.measures import attention, readout
from pipeline.studies.parallel.measures.readout import Sources
from pipeline.studies.parallel.names import CORPORA, DIAL
from pipeline.training.objectives.translation import likeliest, noised
from schemas.parallel.translation import OTHER


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return table ``synmt_attn_summary`` of models of the same shape and law of initial weights."""
    sources = readout.sources(context, CORPORA[DIAL])
    with one_thread(), torch.no_grad():
        rows = [row for replica in range(context.entry.replicas) for row in _model(context, replica, sources)]
    return {"synmt_attn_summary": pl.DataFrame(rows, infer_schema_length=None)}


def _model(context: Inputs, replica: int, sources: Sources) -> Iterator[dict[str, Any]]:
    lexicon, n = sources.lexicon, len(sources.ids)
    spec = translator.Spec(
        vocabulary=lexicon.vocabulary,
        positions=int(sources.test.reference.shape[1]),
        causal=False,
        positional=True,
        **context.entry.shape.model_dump(),
    )
    rng = stream(context.seed, context.study, context.experiment, str(replica))
    initial = translator.initial(spec, rng)
    params = {name: torch.from_numpy(value.astype(np.float32))[None] for name, value in initial.items()}
    start = noised(rng, (n, spec.positions), {"start": "random", "vocabulary": spec.vocabulary})
    memory = translator.encode(spec, params, sources.ids[None])[0]
    lengths = torch.from_numpy(synmt.lengths(lexicon, sources.words))
    begun = decoding.framed(torch.from_numpy(start), lengths)
    last = f"decoder.{spec.decoder - 1}"
    wanted = [f"{last}.self.pattern", f"{last}.cross.pattern"]
    for T in context.entry.passes:
        state = decoding.refine(spec, params, memory, begun, T - 1).states[-1] if T > 1 else begun
        (logits, where), recorded = translator.decode(
            spec, params, state[None], Memory(memory.kv, memory.hidden, None), wanted
        )
        said = likeliest(logits, where, state[None])[0].numpy()
        own, cross = (recorded[name][0].double().numpy() for name in wanted)
        found = attention.pairs(lexicon, said, own, cross)
        for place, name in enumerate(attention.CLASSES):
            chosen, others = found.cls == place, found.cls == attention.CLASSES.index(OTHER)
            for metric, values in found.values.items():
                effect = None if name == OTHER else attention.effect(values[chosen], values[others])
                yield {
                    "run": NEVER,
                    "replica": replica,
                    "T": T,
                    "cls": name,
                    "metric": metric,
                    "mean": float(values[chosen].mean()) if chosen.any() else None,
                    "sd": float(values[chosen].std(ddof=1)) if chosen.sum() > 1 else None,
                    "n": int(chosen.sum()),
                    "cohen_d_vs_other": effect if effect is not None and np.isfinite(effect) else None,
                }
