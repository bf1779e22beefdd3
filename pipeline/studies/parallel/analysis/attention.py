"""What attention says of stuttering (EXP-9; Li 2025, section 4.2.4, Tables 4.4 and 4.5, on the stand-in)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.models.parallel import translator
from pipeline.models.parallel.translator import Memory
from pipeline.studies.parallel import decoding
from pipeline.studies.parallel import translation_comparisons as compared
from pipeline.studies.parallel.measures import attention, readout
from pipeline.studies.parallel.measures.attention import CLASSES
from pipeline.studies.parallel.measures.readout import Sources
from pipeline.studies.parallel.names import KEPT, LARGE, PADIR, SINGLE
from pipeline.studies.parallel.translation_comparisons import CROSS, DIALS, SELF, TOP
from pipeline.training.objectives.translation import likeliest
from schemas.parallel.translation import OTHER, STUTTER, WITHIN

PART = 250  # sentences whose attention is held at once
FIRST, LAST = 1, 4  # passes of the claims


def analyse(context: Inputs) -> dict[str, Any]:
    """Return tables ``synmt_attn_pair``, ``synmt_attn_summary`` and ``comparisons``."""
    shown, summary = [], []
    known: dict[str, Sources] = {}
    with one_thread(), torch.no_grad():
        for run in context.runs():
            header = context.run_header(run)
            if run == LARGE:  # of another lexicon
                continue
            corpus = header["entry"]["dataset"]
            if corpus not in known:
                known[corpus] = readout.sources(context, corpus)
            for replica in range(header["entry"]["replicas"]):
                if str(replica) in header["diverged"]:
                    continue
                for T in context.entry.passes:
                    found = _pairs(context, run, replica, T, known[corpus])
                    summary += [{"run": run, "replica": replica, "T": T} | row for row in _summary(found)]
                    if replica == 0:
                        shown.append(_listed(found, context.entry.shown, run, T))
    table = pl.DataFrame(summary, infer_schema_length=None)
    return {"synmt_attn_pair": pl.concat(shown), "synmt_attn_summary": table, "comparisons": _compared(context, table)}


def _pairs(context: Inputs, run: str, replica: int, T: int, sources: Sources) -> attention.Pairs:
    """Return the pairs of pass ``T`` of a model; nothing is remasked or taken out."""
    model = context.model(run)
    params = {name: value[replica : replica + 1] for name, value in model.params.items()}
    spec, ids = model.spec, sources.ids
    starts = readout.starts(context, run, (len(ids), spec.positions), spec.vocabulary)
    at = f"decoder.{spec.decoder - 1}"
    wanted = [f"{at}.self.pattern", f"{at}.cross.pattern"]
    parts: list[attention.Pairs] = []
    for first in range(0, len(ids), PART):
        some = slice(first, first + PART)
        memory = translator.encode(spec, params, ids[some][None])[0]
        state = decoding.framed(starts[some], decoding.lengths(memory, 1)[0][:, 0])
        if T > 1:
            state = decoding.refine(spec, params, memory, state, T - 1).states[-1]
        (logits, where), recorded = translator.decode(
            spec, params, state[None], Memory(memory.kv, memory.hidden, None), wanted
        )
        said = likeliest(logits, where, state[None])[0].numpy()
        own, cross = (recorded[name][0].double().numpy() for name in wanted)
        found = attention.pairs(sources.lexicon, said, own, cross)
        parts.append(found._replace(idx=found.idx + first))
    idx, pos, cls = (np.concatenate([part[place] for part in parts]) for place in range(3))
    return attention.Pairs(
        idx, pos, cls, {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
    )


def _summary(found: attention.Pairs) -> Iterator[dict[str, Any]]:
    for place, name in enumerate(CLASSES):
        chosen, others = found.cls == place, found.cls == CLASSES.index(OTHER)
        for metric, values in found.values.items():
            own = values[chosen]
            yield {
                "cls": name,
                "metric": metric,
                "n": len(own),
                "mean": float(own.mean()) if len(own) else math.nan,
                "sd": float(own.std(ddof=1)) if len(own) > 1 else math.nan,
                "cohen_d_vs_other": math.nan if name == OTHER else attention.effect(own, values[others]),
            }


def _listed(found: attention.Pairs, count: int, run: str, T: int) -> pl.DataFrame:
    chosen = found.idx < count
    about = {"run": run, "T": T, "idx": found.idx[chosen], "pos": found.pos[chosen]}
    names = np.array(CLASSES)[found.cls[chosen]]
    return pl.DataFrame(about | {"cls": names} | {name: values[chosen] for name, values in found.values.items()})


def _compared(context: Inputs, table: pl.DataFrame) -> pl.DataFrame:
    measured, trained = Measurements(context, "hardly any stutter"), {*context.runs()}

    def rows(run: str, T: int, cls: str, metric: str, column: str) -> np.ndarray:
        found = table.filter(run=run, T=T, cls=cls, metric=metric).sort("replica")[column]
        return found.cast(pl.Float64).fill_null(math.nan).to_numpy()

    def add(comparison: Comparison, *samples: np.ndarray) -> None:
        """Measure on models that stutter enough to tell."""
        known = np.all([np.isfinite(sample) for sample in samples], axis=0)
        measured.add(comparison, *(sample[known] for sample in samples), excluded=int((~known).sum()))

    for alpha in DIALS:
        run = PADIR[alpha]
        if run not in trained:
            continue
        for T, effects in ((FIRST, compared.D), (LAST, compared.LATER)):
            cross, own = (rows(run, T, STUTTER, metric, "cohen_d_vs_other") for metric in (CROSS, SELF))
            add(effects[CROSS, alpha], cross)
            add(effects[SELF, alpha], own)
            add(compared.TELLS[alpha, T], np.abs(cross), np.abs(own))
        add(compared.WITHIN_WORD[alpha], rows(run, FIRST, WITHIN, CROSS, "cohen_d_vs_other"))
        add(compared.OVERLAP[alpha], *(rows(run, FIRST, cls, TOP, "mean") for cls in (STUTTER, OTHER)))
    if SINGLE in trained:
        add(compared.SINGLE_WORDS, rows(SINGLE, FIRST, STUTTER, CROSS, "cohen_d_vs_other"))
    if KEPT[0.6] in trained:
        add(compared.EXCEPTION, rows(KEPT[0.6], LAST, STUTTER, SELF, "cohen_d_vs_other"))
    return measured.table()
