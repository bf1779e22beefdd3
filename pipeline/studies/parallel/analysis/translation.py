"""Parallel decoding against decoding word by word on SYNMT (EXP-8; Li 2025, section 4.2.3)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import synmt
from pipeline.models.parallel import translator
from pipeline.studies.parallel import decoding
from pipeline.studies.parallel import translation_comparisons as compared
from pipeline.studies.parallel.measures import published, readout
from pipeline.studies.parallel.measures.readout import Sources
from pipeline.studies.parallel.names import ALPHAS, AR, CORPORA, DIAL, PADIR, TAUGHT
from pipeline.studies.parallel.translation_comparisons import BLEU, LENGTH, PASSES, STUTTER, VALID
from schemas.parallel.datasets import TEST
from schemas.parallel.translation import (
    CLEANED,
    HYP_RULE,
    MODELS,
    NO_TEACHER,
    ORACLE,
    PARALLEL,
    RAW,
    REMASKED,
    REMASKED_LATE,
    TAKEN_OUT,
    WORD,
)

BEAMED = (PADIR[0.0], PADIR[DIAL])  # runs whose lengths are searched as well
SHARES = ("valid_rate", "len_acc")
REFINED = 4  # T at which stutter is remasked, and lengths are searched


def analyse(context: Inputs) -> dict[str, Any]:
    """Return the tables ``synmt_*`` of EXP-8, ``par_published`` and ``comparisons``."""
    about, metrics, outputs = [], [], []
    known: dict[str, Sources] = {}
    with one_thread(), torch.no_grad():
        for run in context.runs():
            entry = context.run_header(run)["entry"]
            corpus = CORPORA[1.0] if run == TAUGHT else entry["dataset"]
            if corpus not in known:
                known[corpus] = readout.sources(context, corpus)
            own = _Run(context, run, known[corpus])
            about.append(own.about())
            for replica in range(entry["replicas"]):
                if str(replica) not in context.run_header(run)["diverged"]:
                    found, said = own.translated(replica)
                    metrics += found
                    outputs += said
    table = pl.DataFrame(metrics, infer_schema_length=None)
    return {
        "synmt_run": pl.DataFrame(about),
        "synmt_metric": table,
        "synmt_output": pl.DataFrame(outputs, infer_schema_length=None),
        "synmt_tc": pl.DataFrame(list(_losses(context, table)), infer_schema_length=None),
        "synmt_weights": pl.DataFrame(list(_weights(context)), schema=_WEIGHTS),
        "par_published": pl.DataFrame(list(published.rows()), infer_schema_length=None),
        "comparisons": _compared(context, table),
    }


_WEIGHTS = pl.Schema(
    {"run": pl.String(), "name": pl.String(), "heads": pl.Int32(), "shape": pl.List(pl.Int32), "numbers": pl.String()}
)


class _Run:
    """The models of a run, and the sentences that they translate."""

    def __init__(self, context: Inputs, run: str, sources: Sources) -> None:
        self.context, self.run, self.sources = context, run, sources
        self.entry = context.run_header(run)["entry"]
        self.model = context.model(run)

    def about(self) -> dict[str, Any]:
        """Return a row of `schemas.parallel.translation.Run`."""
        last = self.context.curves(self.run)
        final = last.filter(pl.col("step") == pl.col("step").max())["loss"].drop_nulls().to_numpy().mean()
        sizes = [int(np.prod(shape)) for shape in translator.shapes(self.model.spec).values()]
        learned = 1.0 if self.run == TAUGHT else self.sources.alpha
        return {
            "run": self.run,
            "kind": WORD if self.entry["causal"] else PARALLEL,
            "alpha": learned,
            "tested": self.sources.alpha,
            "distill": MODELS if self.run == TAUGHT else NO_TEACHER if learned else ORACLE,
            "stages": self.entry["stages"],
            "unmask": self.entry["unmask"],
            "pos_att": self.entry["positional"],
            "init": self.entry["start"],
            "hyp_rule": HYP_RULE,
            "steps": self.entry["steps"],
            "params": sum(sizes),
            "models": self.entry["replicas"],
            "final_loss": float(final),
        }

    def translated(self, replica: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return rows of `schemas.parallel.translation.Metric` and, of the first model, of `Output`."""
        metrics, outputs = [], []
        for T, beams, post, said, passes, before in self._ways(replica):
            how = {"run": self.run, "T": T, "B_l": beams, "post": post}
            numbers = self.sources.test.metrics(
                said.numpy(), passes.numpy(), self.context.settings.confidence, before.numpy()
            )
            metrics.append(how | {"replica": replica} | numbers)
            if replica == 0:
                outputs += [how | row for row in self._shown(said.numpy(), passes.numpy())]
        return metrics, outputs

    def _ways(self, replica: int) -> Iterator[tuple[int, int, str, torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Yield T, lengths that are tried, what is done about stutter, translations, passes, and translations before
        tokens are taken out."""
        params = {name: value[replica : replica + 1] for name, value in self.model.params.items()}
        spec, ids = self.model.spec, self.sources.ids
        if spec.causal:
            said, passes = decoding.greedy(spec, params, ids)
            yield 0, 1, RAW, said, passes, said
            return
        memory = translator.encode(spec, params, ids[None])[0]
        start = readout.starts(self.context, self.run, (len(ids), spec.positions), spec.vocabulary)
        framed = decoding.framed(start, decoding.lengths(memory, 1)[0][:, 0])
        wanted = self.context.entry.passes
        found = decoding.refine(spec, params, memory, framed, max(wanted))
        for T in wanted:
            yield T, 1, RAW, found.states[T - 1], found.passes(T), found.states[T - 1]
        if REFINED in wanted:
            last = found.states[REFINED - 1]
            yield REFINED, 1, TAKEN_OUT, decoding.deduplicated(last), found.passes(REFINED), last
            for post, first in ((REMASKED, 1), (REMASKED_LATE, 2)):
                remasked = decoding.refine(spec, params, memory, framed, REFINED, remask=first)
                last, passes = remasked.states[-1], remasked.passes(REFINED)
                yield REFINED, 1, post, last, passes, last
                if post == REMASKED:
                    yield REFINED, 1, CLEANED, decoding.deduplicated(last), passes, last
            if self.run in BEAMED:
                beam = self.context.entry.beam
                said, passes = decoding.with_beam(spec, params, memory, start, REFINED, beam)
                yield REFINED, beam, RAW, said, passes, said

    def _shown(self, said: np.ndarray, passes: np.ndarray) -> Iterator[dict[str, Any]]:
        own = self.sources.test.sentences(said)
        for i in range(min(self.context.entry.shown, len(said))):
            words = self.sources.words[i]
            yield {
                "idx": i,
                "src": words[words >= 0].tolist(),
                "hyp": said[i][said[i] != synmt.PAD].tolist(),
                "passes": int(passes[i]),
                "log_p_true": float(own.log_p[i]) if np.isfinite(own.log_p[i]) else None,
                "valid": bool(own.valid[i]),
                "exact": bool(own.exact[i]),
                "len_ok": bool(own.len_ok[i]),
                "stutter": int(own.stutter[i]),
                "n_tok": int(own.n_tok[i]),
            }


def _values(table: pl.DataFrame, run: str, column: str, T: int, post: str = RAW) -> np.ndarray:
    """Return what was measured of the models of a run, in their order; shares in per cent."""
    rows = table.filter(run=run, T=T, B_l=1, post=post).sort("replica")
    return rows[column].to_numpy() * (100 if column in SHARES else 1)


def _compared(context: Inputs, table: pl.DataFrame) -> pl.DataFrame:
    measured, trained = Measurements(context, "diverged"), {*context.runs()}
    columns = {VALID: "valid_rate", STUTTER: "stutter_per_100", BLEU: "bleu"}

    def add(comparison: Comparison, *samples: tuple[str, str, int]) -> None:
        """Measure on (run, column, T) of each arm, paired by the number of the model."""
        if all(run in trained for run, _, _ in samples):
            values = [_values(table, *sample) for sample in samples]
            lost = max(context.run_header(run)["entry"]["replicas"] for run, _, _ in samples) - min(map(len, values))
            measured.add(comparison, *values, excluded=lost)

    valid, stutter = columns[VALID], columns[STUTTER]
    for alpha in ALPHAS:
        add(compared.WORD_VALID[alpha], (AR[alpha], valid, 0))
        add(compared.WORD_STUTTER[alpha], (AR[alpha], stutter, 0))
        add(compared.PARALLEL_VALID[alpha], (PADIR[alpha], valid, 1))
        add(compared.WORD_PASSES[alpha], (AR[alpha], "passes_mean", 0))
        add(compared.FEWER_PASSES[alpha], (AR[alpha], "passes_mean", 0), (PADIR[alpha], "passes_mean", REFINED))
        for T in PASSES:
            add(compared.GAP[alpha, T], (AR[alpha], valid, 0), (PADIR[alpha], valid, T))
            if (alpha, T) in compared.TWICE and {PADIR[alpha], AR[alpha]} <= trained:
                twice = 2 * _values(table, AR[alpha], stutter, 0)
                measured.add(compared.TWICE[alpha, T], _values(table, PADIR[alpha], stutter, T), twice)
    for (low, high), comparison in compared.RISE.items():
        if {AR[low], AR[high], PADIR[low], PADIR[high]} <= trained:
            gaps = [_values(table, AR[a], valid, 0) - _values(table, PADIR[a], valid, REFINED) for a in (high, low)]
            measured.add(comparison, *gaps)
        else:
            measured.not_run(comparison)
    for (few, many), comparison in compared.REFINED.items():
        add(comparison, (PADIR[DIAL], valid, many), (PADIR[DIAL], valid, few))
    for (run, post, measure), comparison in compared.WITHOUT_STUTTER.items():
        if run in trained:
            column = "len_acc" if measure == LENGTH else columns[measure]
            measured.add(comparison, *(_values(table, run, column, REFINED, each) for each in (post, RAW)))
    add(compared.CALMED, (PADIR[DIAL], stutter, REFINED), (PADIR[DIAL], stutter, 1))
    for T in PASSES:
        add(compared.FULL_STUTTER[T], (PADIR[1.0], stutter, T))
        add(compared.STAGES[T], (PADIR[DIAL], valid, T), (compared.ONE_STAGE, valid, T))
        for measure, column in columns.items():
            add(compared.MASKED[measure, T], (PADIR[DIAL], column, T), (compared.KEPT[0.6], column, T))
    add(compared.DISTILLED, (PADIR[0.0], valid, 1), (PADIR[1.0], valid, 1))
    add(compared.TAUGHT_BY, (TAUGHT, valid, 1), (PADIR[1.0], valid, 1))
    add(compared.POSITIONAL, (PADIR[DIAL], valid, REFINED), (compared.NO_POSITION, valid, REFINED))
    return measured.table()


def _losses(context: Inputs, table: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows of `schemas.parallel.translation.Loss`."""
    trained = {*context.runs()}
    for alpha in ALPHAS:
        rows = context.dataset(CORPORA[alpha]).filter(split=TEST).head(context.entry.sentences)
        tokens = sum(len(ids) - 1 for ids in rows["tgt"].to_list())
        about = {
            "alpha": alpha,
            "sentences": rows.height,
            **{name: rows[name].mean() for name in ("tc_nats", "h_nats", "tv_prod")},
            "bayes_valid": rows["alike"].cast(pl.Float64).mean(),
            "bayes_stutter": 100 * rows["stutter"].sum() / tokens,
        }
        for T in context.entry.passes:
            lost: dict[str, float | None] = {"lost": None, "lo": None, "hi": None, "n": 0}
            if {AR[alpha], PADIR[alpha]} <= trained:
                word, own = _values(table, AR[alpha], "valid_rate", 0), _values(table, PADIR[alpha], "valid_rate", T)
                if len(word) == len(own):
                    found = intervals.mean_difference(word, own, context.settings.confidence, paired=True)
                    lost = {"lost": found.value / 100, "lo": found.lo / 100, "hi": found.hi / 100, "n": found.n}
            yield about | {"T": T} | lost


def _weights(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield the weights of the first model that decodes in parallel at alpha = 1/2, for the page."""
    if PADIR[DIAL] not in context.runs():
        return
    model = context.model(PADIR[DIAL])
    for name in translator.shapes(model.spec):
        value = model.params[name]
        half = value[0].numpy().astype("<f2")
        numbers = base64.b64encode(half.tobytes()).decode()
        about = {"run": PADIR[DIAL], "name": name, "heads": model.spec.heads, "shape": list(half.shape)}
        yield about | {"numbers": numbers}
