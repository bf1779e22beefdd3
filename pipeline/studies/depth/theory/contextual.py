"""DEP-T6: three layers find the example with the query's template (Chen and Zou 2024, Theorem 6, section 15)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth import constructions
from schemas import theory

SMALL_K, SMALL_L = 2, 2  # examples and length of templates where every context is asked
SMALL = 3, 2  # tokens and answers there
THEOREM_6 = "Chen and Zou 2024, Theorem 6 and section 15"
COPY, SCALE, ROWS = (f"depth-theorem-6-{name}" for name in ("copy", "scale", "rows"))


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Theorem 6.

    Inputs are every context of a small size, and ``entry.inputs`` random ones of templates of each of
    ``entry.lengths``, with at most ``entry.examples`` examples.
    """
    ids, labels = every_context(SMALL_K, SMALL_L, *SMALL)
    size = f"k={SMALL_K}, l={SMALL_L}, {SMALL[0]} tokens, {SMALL[1]} answers, every context"
    checks = [_solved("parse-copy-match-all", size, SMALL_K, SMALL_L, SMALL, ids, labels)]
    tokens = (entry.tokens, entry.tokens)
    for length in entry.lengths:
        most = min(entry.examples, len(tasks.templates(length)))
        for k in sorted({2, most}):
            sample = _sample(entry, k, length, theory_id, seed)
            size = f"k={k}, l={length}, {entry.tokens} tokens and answers"
            name = f"parse-copy-match-{length}-{k}"
            checks.append(_solved(name, size, k, length, tokens, sample.ids_NxT, sample.label_N))
    checks += _errata(entry, theory_id, seed)
    return theory.rows("depth", theory_id, THEOREM_6, checks)


def every_context(k: int, l: int, tokens: int, answers: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all contexts of k examples with every query of one of their templates, and the answers.

    The source is section 4.4. The query may be an example's sequence again.
    """
    filled = [constructions.substitutions(template, tokens) for template in tasks.templates(l)]
    ids, labels = [], []
    for chosen in itertools.permutations(range(len(filled)), k):
        for given in itertools.permutations(range(tokens + 1, tokens + 1 + answers), k):
            for examples in itertools.product(*(filled[i] for i in chosen)):
                context = [*itertools.chain(*([*row, a] for row, a in zip(examples, given, strict=True)))]
                for template, answer in zip(chosen, given, strict=True):
                    ids += [[*context, *query] for query in filled[template]]
                    labels += [answer] * len(filled[template])
    return np.array(ids), np.array(labels)


def _sample(entry: Any, k: int, length: int, theory_id: str, seed: int) -> tasks.Sample:
    rng = stream(seed, "depth", theory_id, "contexts", length, k)
    return tasks.contextual(rng, entry.inputs, k, length, entry.tokens, entry.tokens)


def _solved(
    name: str, size: str, k: int, length: int, tokens: tuple[int, int], ids: NDArray, labels: NDArray
) -> dict[str, Any]:
    built = constructions.contextual_generalizer(k, length, *tokens)
    outputs, _ = built.run(ids)
    return {
        "check": name,
        "statement": "Three layers of 1, 1 and 2l heads, as built, give the answer of the example with the query's "
        "template: share right",
        "size": f"{size}, {len(ids)} inputs",
        "measured": constructions.accuracy(outputs, labels),
        "comparison": ">=",
        "bound": 1.0,
        "detail": f"d'={built.spec.width}, smallest margin {constructions.margin(outputs, labels).min():.3g}",
        "claim": "7",
        "part": "T6",
    }


def _errata(entry: Any, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    length = min(max(entry.lengths), 3)
    k = min(entry.examples, len(tasks.templates(length)))
    sample = _sample(entry, k, length, theory_id, seed)
    size = f"k={k}, l={length}, {entry.tokens} tokens and answers, {entry.inputs} inputs"

    def run(form: str) -> NDArray[np.float64]:
        built = constructions.contextual_generalizer(k, length, entry.tokens, entry.tokens, form)
        return built.run(sample.ids_NxT)[0]

    def right(outputs: NDArray[np.float64]) -> float:
        return constructions.accuracy(outputs, sample.label_N)

    corrected = run("corrected")
    shares = (
        (
            "copy",
            COPY,
            "The printed pattern of the second layer brings no answer to the last column, where the right one then "
            "ties with all that are absent: share right",
            "With every answer brought to the last column the right one stays alone: share right",
        ),
        (
            "rows",
            ROWS,
            "The third layer's M_i stand in the last l of l + 2 spare rows, two too low, and miss templates that "
            "differ in the first tokens: share right",
            "In the first l rows, where the first layer writes the template, they miss none: share right",
        ),
    )
    for name, erratum, *statements in shares:
        forms = (("printed", run(name), "beyond"), ("corrected", corrected, "within"))
        for (form, outputs, comparison), statement in zip(forms, statements, strict=True):
            yield {
                "check": f"{name}-{form}",
                "statement": statement,
                "size": size,
                "measured": right(outputs),
                "comparison": comparison,
                "bound": 1.0,
                "tolerance": 0.0,
                "erratum": erratum,
                "form": form,
            }
    wrong = sample.candidates_NxK != sample.label_N[:, None]
    for form, outputs in (("printed", run("scale")), ("corrected", corrected)):
        left = np.take_along_axis(outputs[0], sample.candidates_NxK, 1)[wrong]
        yield {
            "check": f"scale-{form}",
            "statement": "With V = -I in the third layer a wrong answer is not taken away at least once (gamma >= 1): "
            "what is left of it, at most"
            if form == "printed"
            else "With V = -2l (l + 2) I on the answer rows it is: what is left of it, at most, beyond 0",
            "size": size,
            "measured": largest(left, 0.0),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": 0.0,
            "detail": f"smallest gamma {1 - left.max():.3g}, share right {right(outputs):.3g}",
            "erratum": SCALE,
            "form": form,
        }
