"""Claims tables of reference sets that were frozen by older code, as today's schema has them.

Their verdicts were given by the value alone. The reason of each names the conditions that decided it, so the verdict is
given again by the interval (`pipeline.kit.verdicts`). They do not say either whether the source prints a number or
a lower bound: it is a bound where the gate asks for at least that number.

Sets that are older than comparisons say what a gate measured in a sentence alone. ``words.yaml`` has, by study, the
sentences that mean exactly what a comparison of today measures: the same arms, quantity and statistic. Several gates of
a claim may have one sentence, so that it is known with claim and gate. What is not there asked something else.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from ruamel.yaml import YAML

from pipeline.kit import comparisons, intervals
from pipeline.kit.conditions import WHAT, Condition
from pipeline.kit.verdicts import Gate, Measured, Published
from schemas.claims import FLOOR, NOT_RUN, NUMBER, STATED, TOO_FEW, Claims

# What tables of older sets say where today's say that a gate was not run, or was measured on too few models.
_NOT_TESTED, _PILOT = "not tested at this scale", "pilot:"

_CONFIDENCE = 0.95  # of the intervals of every older set

_UNSAID = {"interval": "", "fewest": None}  # what no older set says

_CONDITION = re.compile(r"(value|lower end|upper end) \S+?(?:, not)? (<=|>=|<|>) (\S+?)(?=;|$)")
_BOUND = re.compile(r"(?:value|lower end|upper end) (<=|>=|<|>) (\S+)")
_AROUND = re.compile(r" is ([0-9.]+) ± ([0-9.]+)(%?)$")  # the end of a predicate
_AT_LEAST = re.compile(r" at least ([0-9.]+)$")  # the end of a predicate


@cache
def known_words() -> dict[tuple[str, str, str, str], str]:
    """Return the key of the comparison by study, claim, gate and the sentence that older sets have for it."""
    text = Path(__file__).with_name("words.yaml").read_text(encoding="utf-8")
    return {
        (study, claim, gate, sentence): key
        for study, claims in YAML(typ="safe").load(text).items()
        for claim, keys in claims.items()
        for key, gates in keys.items()
        for gate, said in gates.items()
        for sentence in ([said] if isinstance(said, str) else said)
    }


def upgraded(claims: pl.DataFrame) -> pl.DataFrame:
    """Return the claims table of a set with the columns of `schemas.claims.Claims`, and its verdicts."""
    older = "comparison" not in claims.columns
    if older:
        asked = claims.select("study", "claim", "gate", "predicate").iter_rows()
        keys = [known_words().get(each, "") for each in asked]
        claims = claims.with_columns(comparison=pl.Series(keys, dtype=pl.String))
    columns = Claims.to_schema().columns
    claims = claims.with_columns(
        pl.when(pl.col("verdict") != _NOT_TESTED)
        .then("verdict")
        .when(pl.col("reason").str.starts_with(_PILOT))
        .then(pl.lit(TOO_FEW))
        .otherwise(pl.lit(NOT_RUN))
        .alias("verdict"),
        pl.selectors.by_name("size", require_all=False).replace(_NOT_TESTED, NOT_RUN),
    )
    lacking = {
        name: pl.lit(value, columns[name].dtype.type) for name, value in _UNSAID.items() if name not in claims.columns
    }
    claims = claims.with_columns(**lacking)
    if older and not set(columns) <= set(claims.columns):
        rows = [_upgraded(row) for row in claims.iter_rows(named=True)]
        schema = {name: column.dtype.type for name, column in columns.items()}
        claims = pl.DataFrame(rows, schema=schema)
    # A later set, whose verdicts are given by the interval, lacks no more than what was added since.
    added = [column for name, column in columns.items() if name not in claims.columns]
    claims = claims.with_columns(
        pl.lit(None if column.nullable else "", dtype=column.dtype.type).alias(column.name) for column in added
    )
    if older:
        interval = pl.col("lo").is_not_null() & pl.col("hi").is_not_null()
        plain = pl.col("bound").map_elements(_of_value, pl.String)
        claims = claims.with_columns(bound=pl.when(interval).then(plain).otherwise("bound"))
        # On fewer models than a verdict needs today nothing that compares trained models holds or fails.
        said = claims.select("study", "comparison").iter_rows()
        fewest = pl.Series([_fewest(study, key) if key else None for study, key in said], dtype=pl.Int32)
        claims = claims.with_columns(fewest=fewest)
        few = (pl.col("n") < pl.col("fewest")) & (pl.col("verdict") != NOT_RUN)
        claims = claims.with_columns(
            verdict=pl.when(few).then(pl.lit(TOO_FEW)).otherwise("verdict"),
            reason=pl.when(few).then(pl.format("{} models; a verdict needs {}", "n", "fewest")).otherwise("reason"),
        )
    return claims.select(*columns)


@cache
def _fewest(study: str, key: str) -> int:
    """Return how many models a verdict on a comparison needs: the floor, or those that an interval of it takes."""
    statistics = {each.key: each.statistic for each in comparisons.declared(study)}
    takes = intervals.median([], _CONFIDENCE).fewest if statistics.get(key) == comparisons.MEDIAN else 0
    return max(comparisons.FLOOR, takes)


def _of_value(bound: str) -> str:
    """Return what a gate asks of value and ends of an interval as a condition on the value alone.

    A verdict is given by the whole interval, so that it is the same; of two conditions one way the stricter decides.
    """
    parts = [_BOUND.fullmatch(part) for part in bound.split(" and ")]
    strictest: dict[str, str] = {}
    for part in parts:
        if part is None:
            return bound
        relation, number = part.groups()
        stricter = min if relation.startswith("<") else max
        strictest[relation] = stricter(strictest.get(relation, number), number, key=float)
    return " and ".join(f"value {relation} {number}" for relation, number in strictest.items())


def _upgraded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the claims table with all columns of today."""
    published = row["published"]
    new: dict[str, Any] = {
        "statement": row["predicate"],
        "kind": STATED,
        "published_high": row.get("published_high"),
        "published_form": "" if published is None else _form(published, row["predicate"]),
        "derivation": "",
        "bound": row.get("bound") or "",
    }
    row = row | new | {key: row[key] for key in new.keys() & row.keys() if row[key] is not None}
    conditions = tuple(
        Condition(WHAT[what], comparison, float(bound)) for what, comparison, bound in _CONDITION.findall(row["reason"])
    )
    if len(conditions) == 1 and (around := _around(row["predicate"])):
        conditions = around  # the reason of what failed names one of both ends
    failed = not conditions and row["verdict"] == "not reproduced"  # what was measured is not defined
    measured = Measured(row["value"], row["lo"], row["hi"], row["n"]) if conditions or failed else None
    reason = row["reason"]
    gate = Gate(
        row["claim"],
        row["gate"],
        row["predicate"],
        row["source"],
        conditions,
        measured,
        reason,
        published=None if published is None else Published(published, row["published_high"], row["published_form"]),
    )
    verdict, reason = gate.verdict(row["scale"])
    if measured is None and row["reason"].startswith(_PILOT):
        verdict = TOO_FEW
    return row | {
        "bound": row["bound"] or " and ".join(condition.text for condition in conditions),
        "verdict": verdict,
        "reason": reason if conditions else row["reason"],
        "size": gate.size(row["scale"]),
        "replicas_needed": gate.replicas(row["scale"]),
    }


def _around(predicate: str) -> tuple[Condition, ...]:
    """Return the conditions of a predicate that asks for a number within a margin; none of another one.

    >>> [condition.text for condition in _around("variation of layer 2 is 7.721 ± 50%")]
    ['value >= 3.861', 'value <= 11.58']
    """
    found = _AROUND.search(predicate)
    if found is None:
        return ()
    middle, margin = float(found[1]), float(found[2])
    margin *= middle / 100 if found[3] else 1
    ends = ((">=", middle - margin), ("<=", middle + margin))
    return tuple(Condition(WHAT["value"], comparison, float(f"{end:.4g}")) for comparison, end in ends)


def _form(published: float, predicate: str) -> str:
    """Return how the source says a published number, by what the gate asks for."""
    bar = _AT_LEAST.search(predicate)
    return FLOOR if bar and float(bar[1]) == published else NUMBER
