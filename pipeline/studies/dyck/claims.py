"""Claims 1, 2 and 5 to 10 of the Dyck study (chapter section 6; Wen et al. 2023, sections 2 and 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pipeline import verdicts
from pipeline.verdicts import Condition, Gate, Measured, within
from schemas.dyck.tables import ARMS, LINEAR, MINIMAL, MODELS, PROBE, PUBLISHED_VARIATION, STANDARD

SAMPLER_CHECKS = {"prefix-chi2": "law of prefixes", "depth-zero": "depth 0 at length 28"}
PROBE_LENGTH = 16
RANDOM_MAPS = "published-{}"  # theory check that holds the published variation of random maps of this size

OVER_RANDOM = (0.5, 1.4)
MINIMAL_BELOW = 0.5
RATIO_BELOW, RATIO_INTERVAL_BELOW = 0.25, 0.5
BETA_RATIO_BELOW = 0.5
POOLED_RANK_BELOW = -0.5

SECTION_2, SECTION_4_1, SECTION_4_2 = (f"Wen et al. 2023, section {number}" for number in ("2", "4.1", "4.2"))


def judge(context: Any) -> pl.DataFrame:
    """The claims table (`schemas.claims.Claims`) from the tables and theory rows of the study.

    What params.yaml does not list leaves a gate that is not tested, and the reason says what is missing.
    """
    theory = {row["check"]: row for row in context.theory().iter_rows(named=True)}
    variation, contrasts = context.table("variation"), context.table("contrasts")
    gates = [
        *_sampler(theory),
        *_random_attention(theory),
        *_variation(variation, context.entry.claims.variation_tolerance),
        *_over_random(contrasts, theory),
        *_minimal(variation, contrasts),
        *_balance(contrasts),
        *_accuracy(contrasts),
        *_rank(contrasts),
    ]
    return verdicts.table(gates, context.study, context.scale, context.params_hash)


# Claims 1 and 2: theory


def _sampler(theory: dict[str, Any]) -> Iterator[Gate]:
    for check, gate in SAMPLER_CHECKS.items():
        yield _theory_gate("1", gate, theory, check, SECTION_2)


def _random_attention(theory: dict[str, Any]) -> Iterator[Gate]:
    sizes = sorted(
        int(check.rpartition("-")[2]) for check in theory if check.startswith("causal-monte-carlo-")
    )
    for n in sizes or [PROBE_LENGTH]:
        yield _theory_gate("2", f"random causal maps, N={n}", theory, f"causal-monte-carlo-{n}", SECTION_4_1)
    for n in [n for n in sizes if RANDOM_MAPS.format(n) in theory]:
        published = theory[RANDOM_MAPS.format(n)]["bound"]
        yield _theory_gate(
            "2", f"published value, N={n}", theory, RANDOM_MAPS.format(n), SECTION_4_1, published
        )
        yield _theory_gate("2", f"maps without mask, N={n}", theory, f"square-{n}", SECTION_4_1)


def _theory_gate(
    claim: str, gate: str, theory: dict[str, Any], check: str, source: str, published: float | None = None
) -> Gate:
    row = theory.get(check)
    if row is None:
        return Gate(claim, gate, check, source, (), None, f"theory check {check} is not in params.yaml")
    if row["comparison"] == "within":
        conditions: tuple[Condition, ...] = within(row["bound"], row["tolerance"])
    else:
        conditions = (Condition("value", row["comparison"], row["bound"]),)
    return Gate(
        claim,
        gate,
        row["statement"],
        row["source"],
        conditions,
        Measured(row["measured"]),
        published=published,
    )


# Claims 5 to 7: variation of attention on the probe


def _variation(variation: pl.DataFrame, tolerance: float) -> Iterator[Gate]:
    for run in (STANDARD, LINEAR):
        published = PUBLISHED_VARIATION[run]
        predicate = (
            f"variation of {MODELS[run]} on D4 (last layer, no start token) is {published} ± {tolerance}"
        )
        measured, missing = _probe_variation(variation, run, start=False)
        yield Gate(
            "5",
            MODELS[run],
            predicate,
            SECTION_4_1,
            within(published, tolerance),
            measured,
            missing,
            published,
        )


def _over_random(contrasts: pl.DataFrame, theory: dict[str, Any]) -> Iterator[Gate]:
    random = theory.get(RANDOM_MAPS.format(PROBE_LENGTH))
    lowest, highest = OVER_RANDOM
    conditions = (Condition("value", ">=", lowest), Condition("value", "<=", highest))
    for run in (STANDARD, LINEAR):
        measured, missing = _contrast(
            contrasts, contrast="variation_over_random", first=run, metric=_convention(start=False)
        )
        yield Gate(
            "6",
            MODELS[run],
            f"variation of {MODELS[run]} over that of random causal maps is in [{lowest}, {highest}]",
            SECTION_4_1,
            conditions,
            measured,
            missing,
            published=PUBLISHED_VARIATION[run] / random["bound"] if random else None,
        )


def _minimal(variation: pl.DataFrame, contrasts: pl.DataFrame) -> Iterator[Gate]:
    name, other = MODELS[MINIMAL], MODELS[STANDARD]
    for start in (False, True):
        convention = f"start token {'included' if start else 'omitted'}"
        measured, missing = _probe_variation(variation, MINIMAL, start)
        yield Gate(
            "7",
            f"{name}, {convention}",
            f"variation of {name} on D4 ({convention}) is below {MINIMAL_BELOW}",
            SECTION_4_1,
            (Condition("value", "<", MINIMAL_BELOW),),
            measured,
            missing,
            published=PUBLISHED_VARIATION[MINIMAL],
        )
        measured, missing = _contrast(
            contrasts, contrast="variation_ratio", first=MINIMAL, second=STANDARD, metric=_convention(start)
        )
        yield Gate(
            "7",
            f"{name} over {other}, {convention}",
            f"variation of {name} over that of {other} ({convention}) is below {RATIO_BELOW}, "
            f"its interval below {RATIO_INTERVAL_BELOW}",
            SECTION_4_1,
            (Condition("value", "<", RATIO_BELOW), Condition("hi", "<", RATIO_INTERVAL_BELOW)),
            measured,
            missing,
            published=PUBLISHED_VARIATION[MINIMAL] / PUBLISHED_VARIATION[STANDARD],
        )


def _convention(start: bool) -> str:
    return f"variation, start token {'included' if start else 'omitted'}"


def _probe_variation(variation: pl.DataFrame, run: str, start: bool) -> tuple[Measured | None, str]:
    rows = variation.filter(
        pl.col("last_layer"), run=run, probe_split=PROBE, seq_id=0, head=0, start_included=start, causal=True
    )
    if not rows.height:
        return None, f"run {run} or probe {PROBE} is not in params.yaml"
    row = rows.row(0, named=True)
    return Measured(
        row["variation_mean"],
        row["ci_lo"],
        row["ci_hi"],
        row["n_models"],
        row["n_excluded"],
        row["excluded_reason"],
    ), ""


# Claims 8 to 10: balance and length generalisation (no numbers are published)

_BELOW_HALF = Condition("value", "<", BETA_RATIO_BELOW)
_COMPARED = {"first": ARMS["contrastive"], "second": ARMS["standard"]}


def _balance(contrasts: pl.DataFrame) -> Iterator[Gate]:
    for statistic, predicate, condition in (
        ("ratio of medians", f"contrastive over standard, is below {BETA_RATIO_BELOW}", _BELOW_HALF),
        (
            "difference of medians",
            "contrastive minus standard, has an interval below 0",
            Condition("hi", "<", 0),
        ),
    ):
        measured, missing = _contrast(contrasts, contrast="beta", statistic=statistic, **_COMPARED)
        predicate = f"median balance violation, {predicate}"
        yield Gate("8", statistic, predicate, SECTION_4_2, (condition,), measured, missing)


def _accuracy(contrasts: pl.DataFrame) -> Iterator[Gate]:
    for name in ("acc_close", "acc_thr80"):
        measured, missing = _contrast(
            contrasts, contrast="accuracy", statistic="difference of means", metric=name, **_COMPARED
        )
        predicate = f"mean {name} at length, contrastive minus standard, is positive, its interval too"
        conditions = (Condition("value", ">", 0), Condition("lo", ">", 0))
        yield Gate("9", name, predicate, SECTION_4_2, conditions, measured, missing)


def _rank(contrasts: pl.DataFrame) -> Iterator[Gate]:
    metric = "beta, acc_thr80"
    measured, missing = _contrast(
        contrasts, contrast="rank", statistic="spearman", first=ARMS["standard"], metric=metric
    )
    predicate = "Spearman(beta, acc_thr80 at length) over standard replicas is negative, its interval too"
    negative = (Condition("value", "<", 0), Condition("hi", "<", 0))
    yield Gate("10", "standard", predicate, SECTION_4_2, negative, measured, missing, scale_needed="paper")
    measured, missing = _contrast(
        contrasts, contrast="rank", statistic="spearman of both arms pooled", metric=metric, **_COMPARED
    )
    predicate = f"Spearman(beta, acc_thr80 at length) over both arms pooled is below {POOLED_RANK_BELOW}"
    strong = (Condition("value", "<", POOLED_RANK_BELOW),)
    yield Gate("10", "both arms", predicate, SECTION_4_2, strong, measured, missing)


def _contrast(contrasts: pl.DataFrame, **where: str) -> tuple[Measured | None, str]:
    rows = contrasts.filter(**where)
    if not rows.height:
        needed = " and ".join(run for run in (where.get("first"), where.get("second")) if run)
        return None, f"{needed}, or the data they are measured on, are not in params.yaml"
    row = rows.row(0, named=True)
    return Measured(
        row["value"], row["lo"], row["hi"], row["n"], row["n_excluded"], row["excluded_reason"]
    ), ""
