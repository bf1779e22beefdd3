"""E-D0: what the language models of Dyck strings learned (Li 2025, section 3.2.1.1)."""

from __future__ import annotations

import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder
from pipeline.models.llama.decoding import Plan
from pipeline.studies.verifier.comparisons import CLOSERS, GAP, OOD
from pipeline.studies.verifier.datasets import padded
from pipeline.studies.verifier.measures import material, models
from pipeline.studies.verifier.measures.generation import complete
from pipeline.studies.verifier.names import DYCK, STRINGS
from pipeline.studies.verifier.runs import HELD

PROMPTS = ("prompts_id", "unseen")  # as in training, out of distribution


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return how accurate every model is on closers, with its last weights and their average, and on prompts."""
    frame, model = context.dataset(STRINGS), context.model(DYCK)
    spec, found = model.spec, Measurements(context)
    brackets = int(frame["brackets"][0])
    strings = {name: padded(frame.filter(set=name)["tokens"], brackets + 2)[0] for name in HELD}
    size = sum(int(model.params[name][0].numel()) for name in decoder.shapes(spec))
    completed = {}
    with one_thread():
        drawn = material.language_models(context)
        for name in PROMPTS:
            tokens, lengths = material.strings(context, STRINGS, name, drawn.limit)
            rng = stream(context.seed, context.study, context.experiment, name)
            plan = Plan(language.END, top_p=context.entry.top_p)
            completed[name] = complete(drawn, plan, tokens[None], lengths[None], rng, drawn.limit).right.mean(1)
        rows = []
        for weights, params in (("last", model.params), ("average", drawn.params)):
            values = {name: models.accuracy_on_closers(spec, params, strings[name]) for name in HELD}
            rows += [
                {
                    "replica": r,
                    "weights": weights,
                    "parameters": size,
                    "closers_id": values["id"][r],
                    "closers_ood": values["ood"][r],
                    "completed_id": completed["prompts_id"][r] if weights == "average" else None,
                    "completed_ood": completed["unseen"][r] if weights == "average" else None,
                }
                for r in range(drawn.count)
            ]
    found.add(CLOSERS, values["id"])
    found.add(OOD, completed["unseen"])
    found.add(GAP, completed["prompts_id"], completed["unseen"])
    return {"models": pl.DataFrame(rows), "comparisons": found.table()}
