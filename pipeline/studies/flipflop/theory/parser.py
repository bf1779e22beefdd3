"""Proposition 3: two layers of one head process flip-flop language (Liu 2024, section 3.5.7.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions, row
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.constructions import CONTROL, ERRATUM, OWN, SOURCE, judged, share
from pipeline.studies.flipflop.exact import recognisers as exact
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.flipflop.params import Theory

HERE = SOURCE.format(".7.1, Proposition 3")
LAWS = {"0": (0.5, 0.5), "0.1": (0.45, 0.45), "0.8": (0.1, 0.1), "0.98": (0.01, 0.01), "1": (0.0, 0.0)}
HORIZON = 64  # of the checks of longer strings
LONG = 64  # length from which a fifth of the sharpness is enough


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Proposition 3."""
    rng = stream(seed, entry.study, key)
    made = [*_all(entry), *_random(entry, rng), *_longer(entry, rng), *_printed(entry, rng), *_precision(entry, rng)]
    return theory.rows(entry.study, key, HERE, judged("Proposition 3", made))


def read(known: exact.Parser, tokens_NxT: np.ndarray, **how: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, at all reads, whether the parser is wrong, its output's distance from the bit, and the same before it is
    rounded."""
    out, raw = known(tokens_NxT, **how)
    at = tokens_NxT[:, :-1] == language.READ
    bits = tokens_NxT[:, 1:].astype(int)[at] - language.DATA
    answers = out[:, :-1][at]
    return (answers > 0.5) != bits, np.abs(answers - bits), np.abs(raw[:, :-1][at] - bits)


def _size(tokens: np.ndarray, every: bool = False) -> str:
    n, length = tokens.shape
    return f"{'all ' if every else ''}{n} strings of {length} tokens, {(tokens[:, :-1] == language.READ).sum()} reads"


def _all(entry: Theory) -> Iterator[dict[str, Any]]:
    for length in range(4, entry.short + 1, 2):
        tokens = language.enumerate_strings(length)
        wrong, off, raw = read(exact.parser(length), tokens)
        size = _size(tokens, True)
        yield row(
            f"prop-3.all-{length}.errors",
            "Proposition 3 reads every string: errors",
            size,
            exceptions(wrong, off),
            "<=",
            0,
        )
        yield row(
            f"prop-3.all-{length}.rounded",
            "What it says is a bit: largest distance from it",
            size,
            largest(off),
            "<=",
            1e-9,
        )
        yield row(
            f"prop-3.all-{length}.soft",
            "Before rounding, attention leaves the bit within an eighth, which the threshold removes: largest distance",
            size,
            largest(raw),
            "<=",
            0.125,
        )


def _random(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for length in entry.lengths:
        factors = (1.0, 0.2, 0.1)
        raws, wrongs, offs = ({factor: list[np.ndarray]() for factor in factors} for _ in range(3))
        for name, law in LAWS.items():
            tokens = language.sample(rng, entry.draws, length, *law)
            for factor in factors:
                wrong, off, raw = read(exact.parser(length, sharpness=factor), tokens)
                raws[factor].append(raw)
                wrongs[factor].append(wrong)
                offs[factor].append(off)
                if factor == 1:
                    yield row(
                        f"prop-3.{length}.ffl-{name}.errors",
                        f"Proposition 3 reads FFL({name}): errors",
                        _size(tokens),
                        exceptions(wrong, off),
                        "<=",
                        0,
                    )
        size = f"{len(LAWS)} x {entry.draws} strings of {length} tokens"
        yield row(
            f"prop-3.{length}.soft",
            "Before rounding, attention is off by about 1/(8T): largest distance times 8T",
            size,
            8 * length * largest(*raws[1.0]),
            "within",
            1,
            tolerance=0.05,
            source=OWN,
        )
        if length >= LONG:  # shorter strings leave the flag too blunt
            yield row(
                f"prop-3.{length}.fifth",
                "A fifth of the sharpness is still enough: errors",
                size,
                exceptions(np.concatenate(wrongs[0.2]), *offs[0.2]),
                "<=",
                0,
                source=OWN,
                detail=f"attention is off by up to {largest(*raws[0.2]):.3g}",
            )
        yield row(
            f"prop-3.{length}.tenth",
            "A tenth of the sharpness is not: share of reads that are wrong",
            size,
            share(np.concatenate(wrongs[0.1]), *offs[0.1]),
            ">=",
            0.25,
            source=CONTROL,
        )
        again = exact.parser(length)
        pair = [known(tokens)[0] for known in (again, again.with_residual())]
        at = tokens == language.READ
        yield row(
            f"prop-3.{length}.residual",
            "A residual connection around the second layer as well, as the statement has "
            "it, changes nothing at reads: largest difference",
            size,
            largest(np.abs(pair[0] - pair[1])[at]),
            "<=",
            0,
        )


def _longer(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield what becomes of the parser beyond the length that it was made for, with attention to one place."""
    for factor in (2, 4):
        length = factor * HORIZON
        tokens = language.sample(rng, 4 * entry.draws, length, *LAWS["0.98"])
        size = _size(tokens)
        wrong, off, _ = read(exact.parser(HORIZON), tokens, hard=True)
        yield row(
            f"prop-3.longer-{length}.errors",
            f"With C = T = {HORIZON} it fails on longer strings, even where "
            "attention is hard: share of reads that are wrong",
            size,
            share(wrong, off),
            ">=",
            0.1,
            source=CONTROL,
        )
        at = np.arange(1, length + 1)
        written = np.where(tokens == language.WRITE, at + 1, 0)
        behind = at - np.maximum.accumulate(written, axis=1)
        known = exact.parser(HORIZON)
        hits = _attends_write(known, tokens, np.maximum.accumulate(written, axis=1))
        query = tokens == language.READ
        yield row(
            f"prop-3.longer-{length}.where",
            "It looks away from the last write exactly where that is more than C "
            "places behind: reads at which this is not so",
            size,
            exceptions((hits == (behind > HORIZON))[query], known.flags(tokens, hard=True)),
            "<=",
            0,
            source=OWN,
        )
        mended, off, _ = read(exact.parser(HORIZON, reach=1 + length / HORIZON), tokens, hard=True)
        yield row(
            f"prop-3.longer-{length}.mended",
            "A weight of 1 + L/C on the flag makes it right up to length L: errors",
            size,
            exceptions(mended, off),
            "<=",
            0,
            source=OWN,
        )


def _attends_write(known: exact.Parser, tokens: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return (N, T): whether the second layer's largest score is at ``target`` (places from 1)."""
    positions = []
    second = known.blocks[1]
    for start in range(0, len(tokens), exact.ROWS):
        f_1 = known.flags(tokens[start : start + exact.ROWS], hard=True)
        scores = (f_1 @ second.Q) @ (f_1 @ second.K).swapaxes(-1, -2)
        scores += np.triu(np.full(scores.shape[-2:], -np.inf), 1)
        positions.append(scores.argmax(-1) + 1)
    hits: np.ndarray = np.concatenate(positions) == target
    return hits


def _printed(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the forms that the text prints, beside those that hold."""
    length = entry.lengths[0]
    tokens = np.concatenate([language.sample(rng, entry.draws, length, *law) for law in LAWS.values()])
    size = _size(tokens)
    right, off, _ = read(exact.parser(length), tokens)

    def both(erratum: str, printed: str, corrected: str, **form: Any) -> Iterator[dict[str, Any]]:
        how = form.pop("how", {})
        bad, output, _ = read(exact.parser(length, **form), tokens, **how)
        metadata = {"erratum": ERRATUM.format(erratum)}
        first = int(np.flatnonzero(bad)[0]) if bad.any() else -1
        where = np.argwhere(tokens[:, :-1] == language.READ)[first] if first >= 0 else None
        shown = ""
        if where is not None:
            string = " ".join("wri01"[token] for token in tokens[where[0], max(0, where[1] - 12) : where[1] + 1])
            shown = f"the first wrong answer is behind '{string}', at token {where[1] + 1} of its string"
        yield row(
            f"{erratum}.printed",
            f"{printed}: share of reads that are wrong",
            size,
            share(bad, output),
            ">=",
            0.01,
            form="printed",
            detail=shown,
            **metadata,
        )
        yield row(
            f"{erratum}.corrected",
            f"{corrected}: errors",
            size,
            exceptions(right, off),
            "<=",
            0,
            form="corrected",
            **metadata,
        )

    yield from both(
        "proposition-3-scores",
        "Scores of the second layer with the prefactor c/T of the display's middle line",
        "With c, as in its last line and as the weights say",
        prefactor=1 / length,
    )
    yield from both(
        "equation-3.6",
        "Attention over all positions, as equation 3.6 and the display of f write it",
        "Attention over earlier positions alone",
        how={"causal": False},
    )
    yield _shapes()
    mended, output, _ = read(exact.parser(length, horizon=4 * length, sharpness=1.0), tokens)
    other, bad_output, _ = read(exact.parser(length, horizon=4 * length, printed_key=True), tokens)
    yield row(
        "prop-3.constant.key-t",
        "The text sets C = T, where both forms of the key are one. With C = 4T, the key "
        "3c/2T reads wrongly: share of reads",
        size,
        share(other, bad_output),
        ">=",
        0.01,
        source=CONTROL,
    )
    yield row(
        "prop-3.constant.key-c",
        "With C = 4T, the key 3c/2C reads rightly: errors",
        size,
        exceptions(mended, output),
        "<=",
        0,
        source=OWN,
    )
    for form, comparison, bound in (("printed", ">=", 1e-5), ("corrected", "<=", 1e-12)):
        known = exact.parser(length, printed_threshold=form == "printed")
        flags = known.flags(tokens)[..., 6]
        true = tokens == language.WRITE
        true[:, 1:] |= tokens[:, :-1] == language.WRITE
        how = "as printed, of slope 1/2Δ" if form == "printed" else "of slope 1/Δ"
        yield row(
            f"lemma-12.flag.{form}",
            f"Behind the threshold of Lemma 12, {how}, the flag of the first layer is a bit: largest distance",
            size,
            largest(np.abs(flags - true)),
            comparison,
            bound,
            form=form,
            part="Lemma 12, as printed" if form == "printed" else "Lemma 12",
            erratum=ERRATUM.format("lemma-12"),
        )


def _shapes() -> dict[str, Any]:
    """Return the row that the product of equation 3.6, as printed, does not exist."""
    T, d, k = 8, 7, 2
    x, softmax, V, C = np.ones((T, d)), np.ones((T, T)), np.ones((d, k)), np.ones((k, d))
    try:
        _ = V @ softmax @ x @ V @ C
        fits = 1
    except ValueError:
        fits = 0
    return row(
        "equation-3.6.product",
        "The leading W_V of equation 3.6 fits what stands behind it: 1 if it does",
        f"T = {T}, d = {d}, k = {k}",
        fits,
        "<=",
        0,
        form="printed",
        erratum=ERRATUM.format("equation-3.6"),
    )


def _precision(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    length = entry.lengths[-1]
    tokens = language.sample(rng, entry.draws, length, *LAWS["0.8"])
    wrong, off, _ = read(exact.parser(length), tokens, dtype=np.float32)
    yield row(
        "prop-3.float32",
        "In single precision it reads as well: errors",
        _size(tokens),
        exceptions(wrong, off),
        "<=",
        0,
        source=OWN,
    )
    key = exact.parser(length).blocks[1].K[5, 1]
    keys = torch.tensor(key) * torch.arange(1, length + 1) / length
    apart = len(keys.to(torch.bfloat16).unique())
    yield row(
        "prop-3.bfloat16",
        "In bfloat16 positions can no longer be told apart: different keys, of T",
        f"T = {length}",
        apart,
        "<=",
        length - 1 if length > 256 else length,
        source=OWN,
        detail=f"{apart} of {length}",
    )
