"""The grammars are those of the source: structure, lengths, and what is left of a task by its marginals alone.

Liu 2024, section 4.2.8.3 and Figure 4.23.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import judged, row
from pipeline.languages import pcfg
from pipeline.studies.distillation.constructions import LIU, UNPUBLISHED
from pipeline.studies.distillation.exact import inside
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.distillation.params import Lengths

HERE = LIU.format("8.3")
NEAR, FAR = (3, 15)  # tokens: a sample of a few thousand sentences strays as far as the first, another grammar farther
ERRORS = 4  # standard errors


def check(entry: Lengths, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on structure, lengths (TH-LEN) and the plateau (TH-PLATEAU)."""
    rng = stream(seed, entry.study, key)
    made = [
        *judged("2", "structure", _structure()),
        *judged("1", "percentiles", _percentiles()),
        *judged("2", "samples", _sampled(entry, rng)),
        *judged("2", "derivations", _parsed(entry, seed, key)),
        *judged("20", "closed form", _plateau(entry, rng)),
    ]
    return theory.rows(entry.study, key, HERE, made)


def _structure() -> Iterator[dict[str, Any]]:
    for name, (least, most) in pcfg.DEGREES.items():
        broken = pcfg.broken_facts(pcfg.grammar(name))
        rules = f"{least} rules" if least == most else f"{least} to {most} rules"
        more = ", and neighbours in a rule differ" if name == "cfg3b" else ""
        count = sum(1 for _ in pcfg.nodes_of(name))
        yield row(
            f"structure.{name}",
            f"Each symbol has {rules}, of two or three symbols of the next level{more}: exceptions",
            f"{count} rules",
            len(broken),
            "<=",
            0,
            detail="; ".join(broken),
        )
    lost = pcfg.grammar("cfg3b_pdcode").rules
    less = sum(len(sides) for sides in pcfg.grammar("cfg3b").rules.values()) - sum(map(len, lost.values()))
    yield row(
        "structure.cfg3b-pdcode",
        "The grammar of the published code lacks rules of cfg3b: how many",
        f"symbol 9 becomes {' or '.join(str(side) for side in lost[9])}",
        less,
        "within",
        1,
        tolerance=0.0,
        source=UNPUBLISHED,
        part="the published code",
    )


def _percentiles() -> Iterator[dict[str, Any]]:
    for name, published in pcfg.PERCENTILES.items():
        law = pcfg.length_law(name)
        exact = [pcfg.quantile(law, q) for q in pcfg.QUANTILES]
        yield row(
            f"percentiles.{name}",
            "The published percentiles of lengths are those of the exact law: largest difference",
            "25, 50, 75 and 95 %",
            largest(np.abs(np.array(exact) - published)),
            "<=",
            NEAR,
            detail=f"exact {exact}, published {list(published)}",
        )
    exact = [pcfg.quantile(pcfg.length_law("cfg3b_pdcode"), q) for q in pcfg.QUANTILES]
    yield row(
        "percentiles.cfg3b-pdcode",
        "Of the grammar in the published code they are others: smallest difference",
        "25, 50, 75 and 95 %",
        smallest(np.abs(np.array(exact) - pcfg.PERCENTILES["cfg3b"])),
        ">=",
        FAR + 1,
        source=UNPUBLISHED,
        detail=f"exact {exact}",
        part="the published code",
    )
    tails = {name: float(pcfg.length_law(name)[513:].sum()) for name in pcfg.PERCENTILES}
    yield row(
        "longest",
        "Strings of more than 512 tokens: largest probability",
        "five grammars",
        largest(tails.values()),
        "<=",
        1e-5,
        source=UNPUBLISHED,
        part="longest strings",
        detail=", ".join(f"{name} up to {pcfg.extent(name)[1]} tokens" for name in tails),
    )


def _sampled(entry: Lengths, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for name in pcfg.NAMES:
        law = pcfg.length_law(name)
        at = np.arange(len(law))
        mean = float(at @ law)
        sd = math.sqrt(float((at - mean) ** 2 @ law))
        _, lengths = pcfg.strings(rng, name, entry.sentences)
        yield row(
            f"sampled.{name.replace('_', '-')}",
            "The mean length of sampled strings is the exact one: difference in standard errors",
            f"{entry.sentences} strings",
            abs(lengths.mean() - mean) / (sd / math.sqrt(len(lengths))),
            "<=",
            ERRORS,
            source=UNPUBLISHED,
            detail=f"exact {mean:.2f}, standard deviation {sd:.2f}",
        )


def _parsed(entry: Lengths, seed: int, key: str) -> Iterator[dict[str, Any]]:
    rng = stream(seed, entry.study, key, "parsed")
    for name in pcfg.NAMES:
        tokens, lengths = pcfg.strings(rng, name, entry.parsed)
        probabilities = inside.string_probabilities(name, pcfg.ROOT, pcfg.padded(tokens, lengths)[:, 1:], lengths)
        yield row(
            f"parsed.{name.replace('_', '-')}",
            "Sampled strings are strings of the grammar, by its inside probabilities: how many are not",
            f"{entry.parsed} strings",
            int((probabilities == 0).sum()),
            "<=",
            0,
            source=UNPUBLISHED,
        )


def _plateau(entry: Lengths, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    marginals = pcfg.token_law("cfg3b")
    yield row(
        "plateau.uniform",
        "Terminals of cfg3b are equally frequent: largest distance from 1/3",
        "exact",
        largest(np.abs(marginals - 1 / 3)),
        "<=",
        1e-12,
        source=UNPUBLISHED,
    )
    loss, accuracy = inside.plateau(marginals)
    third = np.array([2 / 3, 1 / 6, 1 / 6])
    form = 0.8 * math.log(3) - 0.2 * float(third @ np.log(third))
    yield row(
        "plateau.loss",
        "Without context the loss of masked prediction is 0.8 ln 3 + 0.2 H(2/3, 1/6, 1/6): difference",
        f"cfg3b: {form:.4f} nats",
        abs(loss - form),
        "<=",
        1e-12,
        source=UNPUBLISHED,
    )
    yield row(
        "plateau.published",
        "Figure 4.7 shows a plateau of about 1.04 nats, as read from the graphic: difference",
        f"closed form {loss:.4f}",
        abs(loss - 1.04),
        "<=",
        0.02,
        source="Liu 2024, Figure 4.7",
    )
    yield row(
        "plateau.accuracy",
        "and the accuracy is 0.4: difference",
        "cfg3b",
        abs(accuracy - 0.4),
        "<=",
        1e-12,
        source=UNPUBLISHED,
    )
    for name in ("cfg3b", "cfg3f"):
        tokens, _ = pcfg.strings(rng, name, max(20, entry.sentences // 10))
        shown, kind = pcfg.mask(rng, tokens, entry.rate)
        chosen = kind != pcfg.NONE
        law = pcfg.token_law(name)
        given = inside.channel(1.0) * law
        given /= np.maximum(given.sum(1, keepdims=True), 1e-300)
        losses = -np.log(given[shown[chosen], tokens[chosen]])
        # Tokens of a sentence hang together little once most are hidden by the mask: counted as if they did not.
        error = float(losses.std()) / math.sqrt(len(losses))
        loss = inside.plateau(law)[0]
        yield row(
            f"plateau.sampled-{name}",
            "On masked strings the predictor without context has that loss: difference in standard errors",
            f"{len(losses)} selected tokens",
            abs(float(losses.mean()) - loss) / error,
            "<=",
            ERRORS,
            source=UNPUBLISHED,
            detail=f"closed form {loss:.4f} nats",
        )
