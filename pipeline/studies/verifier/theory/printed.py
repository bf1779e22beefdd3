"""Whether the printed tables of Li 2025, chapter 3, add up: claim 32, and what does not as errata.

Only printed numbers are read (`measures.published`): nothing here is measured of a model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.studies.verifier.checks import PROMPTS, ROWS, SHARED, SPREADS, WORDS, row, zero
from pipeline.studies.verifier.measures import printed, published
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.verifier.params_theory import PrintedCheck

CLAIM = "32"


def check(entry: PrintedCheck, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` that decide the parts of claim 32."""
    checks = [*_shared(), *_spreads(), *_diversity(), *_rows(), *_words(), *_prompts()]
    return theory.rows(entry.study, key, "Li 2025, section 3.2", checks)


def _shared() -> Iterator[dict[str, Any]]:
    """Yield rows on cells that stand in two tables."""
    full = {(row[0], row[1], *row[4:7], *row[7:9]) for row in published.FULL}
    lacking = [row for row in published.MAIN if row not in full]
    yield zero(
        "table-3-6",
        "Rows of Table 3.6 that Table 3.13 has not",
        f"{len(published.MAIN)} rows",
        len(lacking),
        CLAIM,
        SHARED,
        "Tables 3.6, 3.13",
    )
    apart = [abs(a - b) for a, b in zip(published.ERRORS[0.9, 4, 4], published.REFILL["Algorithm 1"], strict=True)]
    yield zero(
        "tables-3-3-3-16",
        "Errors of Algorithm 1 and their spread, Table 3.3 minus Table 3.16, larger",
        "top_p 0.9, Q = B = 4",
        largest(apart),
        CLAIM,
        SHARED,
        "Tables 3.3, 3.16",
    )
    at = {row[:7]: row[7:9] for row in published.FULL}
    best = {t: at[4, 4, 27, t, 0.95, 1.0, None] for t in (0.1, 0.5)}
    base = at[0, None, None, None, 0.95, 1.0, None]
    again = [
        (published.LAYERS[27], best[0.1]),
        (published.DEPTHS[1][1:], best[0.1]),
        (published.VERIFIERS[2][3:], best[0.1]),
        (published.VERIFIERS[5][3:], base),
        (published.BASELINE, base),
        (published.VERIFIERS[4][3:], published.RANDOM_VERIFIER),
        *(((row[2], row[3]), base if row[1] is None else best[row[1]]) for row in published.NAMES),
        *(((row[2], row[3]), best[row[1]]) for row in published.CODE_REFILL if row[0] == "argmax"),
        *(((row[5], row[6]), at[*row[:2], 27, row[4], *row[2:4], None]) for row in published.THRESHOLDS[:-1]),
    ]
    yield zero(
        "ablations",
        "Cells of Tables 3.9 to 3.12, 3.15 and 3.17 that differ from the same row of Table 3.13",
        f"{len(again)} cells",
        sum(a != b for a, b in again),
        CLAIM,
        SHARED,
        "Tables 3.9 to 3.17",
    )
    yield zero(
        "figure-3-2",
        "Mistakes of Figure 3.2 by kind minus those with the quota used up",
        "225 mistakes",
        abs(sum(published.MISTAKES.values()) - published.QUOTA_USED_UP),
        CLAIM,
        SHARED,
        "section 3.2.1.8",
    )


def _spreads() -> Iterator[dict[str, Any]]:
    """Yield rows on the five spreads of error counts: which reading five integer counts can give."""
    pairs = [*published.ERRORS.values(), published.REFILL["no argmax"]]
    size, noted = f"{len(pairs)} rows of {published.RUNS} counts", {"erratum": "verifier-standard-errors"}
    for reading in printed.READINGS:
        given = sum(printed.gives_spread(mean, spread, reading) for mean, spread in pairs)
        right = reading == printed.POPULATION
        name = reading.replace(" - ", "-").replace("(", "").replace(")", "").replace(" ", "-")
        yield row(
            f"spread-{name}",
            f"Rows of Tables 3.3 and 3.16 of which the printed spread can be a {reading}",
            size,
            given,
            ">=" if right else "<=",
            len(pairs) if right else len(pairs) - 2,
            CLAIM,
            SPREADS,
            "Tables 3.3, 3.16",
            form="corrected" if right else "printed",
            **noted,
        )


def _diversity() -> Iterator[dict[str, Any]]:
    """Yield rows on Table 3.5, whose values are means of numbers from 1 to 10 over 100 prompts."""
    where, size = (CLAIM, SPREADS, "Table 3.5, section 3.2.1.9"), f"{published.DIVERSITY_PROMPTS} prompts"
    n, noted = published.DIVERSITY_PROMPTS, {"erratum": "verifier-table-3-5"}
    most = [
        (spread, printed.largest_spread(mean, 1, published.COMPLETED)) for mean, spread in published.DIVERSITY.values()
    ]
    yield row(
        "diversity-error",
        "Printed spread over the largest standard error that such numbers can have, smallest",
        size,
        smallest(spread / (std / math.sqrt(n - 1)) for spread, std in most),
        ">=",
        1.01,
        *where,
        form="printed",
        **noted,
    )
    yield row(
        "diversity-deviation",
        "Printed spread over the largest standard deviation that they can have, largest",
        size,
        largest(spread / std for spread, std in most),
        "<=",
        1,
        *where,
        form="corrected",
        **noted,
    )


def _rows() -> Iterator[dict[str, Any]]:
    """Yield rows on what stands in the wrong row, or under the wrong setting."""
    at = {row[:7]: row[7:9] for row in published.FULL}
    last, before = published.THRESHOLDS[-1], published.THRESHOLDS[-2]
    where = (CLAIM, ROWS, "Tables 3.10, 3.13")
    noted = {"erratum": "verifier-table-3-10-row"}
    yield row(
        "table-3-10-last",
        "The last two rows of Table 3.10 have one setting, threshold 0.1, and differ by",
        "Q = 4, B = 10",
        before[5] - last[5],
        ">=",
        0.001,
        *where,
        form="printed",
        **noted,
    )
    yield zero(
        "table-3-10-half",
        "The last row is that of threshold 0.5 in Table 3.13: difference",
        "Q = 4, B = 10",
        abs(last[5] - at[4, 10, 27, 0.5, 1.0, 1.0, None][0]),
        *where,
        form="corrected",
        **noted,
    )
    wide = published.VERIFIERS[-1][3:]
    yield zero(
        "table-3-12-last",
        "The last row of Table 3.12 (caption: top_p 0.95) is that of top_p 1.0 in Table 3.13: difference",
        "Q = 4, B = 10",
        largest(abs(a - b) for a, b in zip(wide, at[4, 10, 27, 0.1, 1.0, 1.0, None], strict=True)),
        CLAIM,
        ROWS,
        "Tables 3.12, 3.13",
        erratum="verifier-table-3-12-row",
        form="printed",
    )
    noted = {"erratum": "verifier-table-3-9-row"}
    where = (CLAIM, ROWS, "Tables 3.9, 3.13")
    other = at[4, 4, 31, 0.5, 0.95, 1.0, None]
    yield zero(
        "table-3-9-layer-31",
        "Layer 31 of Table 3.9 is its row of threshold 0.5 in Table 3.13, layer 27 that of 0.1: difference",
        "layers 27, 31",
        largest(abs(a - b) for a, b in zip(published.LAYERS[31], other, strict=True)),
        *where,
        form="printed",
        **noted,
    )
    flips = printed.by_layer()
    yield row(
        "layers-at-one-threshold",
        "At one threshold the order of the layers depends on it: product of differences at 0.1 and 0.5",
        "layers 27, 31",
        flips[0.1] * flips[0.5],
        "<=",
        -1e-6,
        *where,
        form="corrected",
        detail="; ".join(f"threshold {t:g}: {difference:+.3f}" for t, difference in flips.items()),
        **noted,
    )


def _words() -> Iterator[dict[str, Any]]:
    """Yield rows on sentences of captions and text that the tables contradict, and on some that they bear
    out."""
    lowest = min(published.LAYERS.values())[0]
    yield row(
        "any-layer",
        "Lowest accuracy of a layer in Table 3.9 minus the baseline, above which the text sees every layer",
        f"{len(published.LAYERS)} layers",
        lowest - published.BASELINE[0],
        "<=",
        -0.001,
        CLAIM,
        WORDS,
        "section 3.2.2.6, Table 3.9",
        erratum="verifier-table-3-9-layers",
        form="printed",
    )
    pairs, noted = printed.by_threshold(), {"erratum": "verifier-table-3-10-settings"}
    where = (CLAIM, WORDS, "Tables 3.10, 3.13")
    yield row(
        "all-settings",
        "Accuracy at threshold 0.1 minus that at 0.5 in Table 3.13, smallest of all settings",
        f"{len(pairs)} settings",
        smallest(pairs.values()),
        "<=",
        -0.001,
        *where,
        form="printed",
        **noted,
    )
    own = printed.by_threshold(27)
    yield row(
        "settings-of-layer-27",
        "The same of layer 27, which Table 3.10 shows",
        f"{len(own)} settings",
        smallest(own.values()),
        ">=",
        0,
        *where,
        form="corrected",
        **noted,
    )
    where = (CLAIM, WORDS, "section 3.2.2.1, Table 3.13")
    noted = {"erratum": "verifier-most-calls"}
    rows = [row for row in published.FULL if row[0] > 0]
    yield row(
        "most-calls",
        "Most calls of Algorithm 1 in Table 3.13; the text allows 38400, but for block best-of-n",
        f"{len(rows)} rows",
        printed.most_calls(),
        ">=",
        published.MOST_CALLS + 1,
        *where,
        form="printed",
        **noted,
    )
    over = largest(row[9] - published.MOST_CALLS - published.COMPLETIONS * row[0] * row[1] for row in rows)
    yield row(
        "calls-with-erased",
        "Calls minus 38400 and the 100 Q B tokens that can be erased as well, largest",
        f"{len(rows)} rows",
        over,
        "<=",
        0,
        *where,
        form="corrected",
        **noted,
    )
    where = (CLAIM, WORDS, "section 3.2.1.1, Table 3.3")
    implied = 1 - published.ERRORS[0.9, 0, 0][0] / published.PROMPTS
    yield row(
        "out-of-distribution",
        "Accuracy out of distribution by Table 3.3 minus that of the text, in standard errors",
        f"nucleus 0.9, {published.PROMPTS} prompts",
        (implied - published.OOD_ACCURACY) / math.sqrt(implied * (1 - implied) / published.PROMPTS),
        ">=",
        4,
        *where,
        erratum="verifier-ood-accuracy",
        form="printed",
    )
    slopes, shown = printed.per_call(), {(4, 4, 27, 0.1), (4, 10, 27, 0.1)}
    holds = {
        "table-3-6-groups": (
            "Accuracy of Algorithm 1 minus the best other in each group of Table 3.6, smallest",
            smallest(printed.groups()),
            "Table 3.6",
        ),
        "table-3-4-below": (
            "Accuracy in Table 3.2 minus that without backtracking in Table 3.4, smallest",
            smallest(printed.unaided().values()),
            "Tables 3.2, 3.4",
        ),
        "table-3-2-steps": (
            "What a larger Q or B adds to the accuracy of Table 3.2, smallest",
            smallest(printed.steps()),
            "Table 3.2",
        ),
        "table-3-15-baseline": (
            "What names out of distribution cost the baseline in Table 3.15 over its spread, minus 1",
            printed.drops()["baseline"] - 1,
            "caption of Table 3.15",
        ),
        "figure-3-3": (
            "Distinct right test cases per call in rows of Table 3.6 minus those of the baseline, smallest",
            smallest(value for row, value in slopes.items() if row[:4] in shown),
            "Figure 3.3",
        ),
    }
    for name, (words, value, source) in holds.items():
        yield row(name, words, "all rows", value, ">=", 0, CLAIM, WORDS, source)
    yield row(
        "per-call-below",
        "Rows of Algorithm 1 in Table 3.13 with fewer distinct right test cases per call than the baseline",
        f"{len(slopes)} rows",
        sum(value < 0 for value in slopes.values()),
        "<=",
        1,
        CLAIM,
        WORDS,
        "Figure 3.3, Table 3.13",
        detail="; ".join(f"layer {row[2]}, threshold {row[3]:g}" for row, value in slopes.items() if value < 0),
    )


def _prompts() -> Iterator[dict[str, Any]]:
    """Yield rows on how many prompts accuracies can be shares of: not of the 441 strings of the text."""
    tables = {
        "3-1": ([*published.FORCED.values(), published.GREEDY], 347, "Table 3.1"),
        "3-2": (list(published.BACKTRACKED.values()), 164, "Table 3.2"),
    }
    for name, (values, fewest, source) in tables.items():
        size = f"{len(values)} accuracies"
        where = (CLAIM, PROMPTS, source)
        yield row(
            f"fewest-prompts-{name}",
            f"Fewest prompts of which all accuracies of {source} are shares",
            size,
            printed.fewest_prompts(values),
            "within",
            fewest,
            *where,
            tolerance=0.0,
        )
        misses = sum(not printed.is_share(value, published.COLLECTED) for value in values)
        yield row(
            f"of-441-{name}",
            f"Accuracies of {source} that are no shares of 441, the strings that were collected",
            size,
            misses,
            ">=",
            1,
            *where,
        )
    yield row(
        "mistakes-of-figure-3-2",
        "Mistakes of Figure 3.2 over the most that one run of Algorithm 1 can have by Table 3.3",
        "225 mistakes",
        published.QUOTA_USED_UP / printed.most_errors(),
        ">=",
        1,
        CLAIM,
        PROMPTS,
        "section 3.2.1.8, Table 3.3",
        detail="so Figure 3.2 is of other prompts or settings, which the source does not name",
    )
