"""Claims 1, 2 and 15 to 20: the sampler, random attention, executable theory.

Theory checks say which claim they decide, and as which part of it: a gate for each part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.conditions import at_most
from pipeline.kit.evidence import check_gate, largest
from pipeline.kit.verdicts import Gate
from schemas.claims import CORRECTED, OWN, STATED


@dataclass(frozen=True)
class Statement:
    """What parts have in common whose names begin alike: ``first layer, k=2, D=4`` and ``first layer, k=3, D=8``.

    ``quoted`` parts have a number that the paper prints as their bound; ``sloped`` ones have an interval, whose ends
    are two more rows of the same group.
    """

    kind: str = STATED
    quoted: bool = False
    sloped: bool = False


# By claim, how the names of its parts begin. The paper gives no numbers for what is our own check.
STATEMENTS = {
    "1": {"law of prefixes": Statement(OWN), "depth 0 at length": Statement(OWN)},
    "2": {
        "random causal maps": Statement(OWN),
        "published value": Statement(CORRECTED, quoted=True),  # footnote 11 has square matrices, which vary less
        "most matrices": Statement(OWN),
        "maps without mask": Statement(OWN),
    },
    "15": {"k=": Statement(CORRECTED), "variation, sigma=": Statement(OWN)},
    "16": {"first layer": Statement(CORRECTED), "decoded stacks": Statement(CORRECTED), "no start token": Statement()},
    "17": {"balanced": Statement(), "decay": Statement(), "acc_close at": Statement()},
    "18": {"error, L=1": Statement(CORRECTED), "masks": Statement(OWN), "slope": Statement(CORRECTED, sloped=True)},
    "19": {"targets differ": Statement(), "layer": Statement()},
    "20": {"N times distance": Statement(OWN)},  # the source has the limit, the rate is ours
}


def gates(theory: pl.DataFrame) -> Iterator[Gate]:
    """Yield a gate for each part of these claims.

    Raises SandglassError if a claim has no check, or a check belongs to a part that is not one of `STATEMENTS`.
    """
    checks = {row["check"]: row for row in theory.iter_rows(named=True)}
    for claim, statements in STATEMENTS.items():
        rows = theory.filter(claim=claim)
        if not rows.height:
            raise SandglassError(f"claim {claim}: no theory check belongs to it")
        for part in rows["part"].unique(maintain_order=True).to_list():
            about = [statement for beginning, statement in statements.items() if part.startswith(beginning)]
            if len(about) != 1:
                raise SandglassError(f"claim {claim}: theory checks belong to a part {part!r}, which no gate judges")
            yield _gate(theory, checks, claim, part, about[0])


def _gate(theory: pl.DataFrame, checks: dict[str, dict[str, Any]], claim: str, part: str, about: Statement) -> Gate:
    """Return the gate of one part. Where several instances of one statement were checked, their largest decides."""
    rows = theory.filter(claim=claim, part=part)
    row = rows.row(0, named=True)
    gate = check_gate(
        checks, claim, part, row["check"], row["source"], row["bound"] if about.quoted else None, about.kind
    )
    if rows.height > 1:
        measured, _ = largest(rows, "measured", "")
        found = replace(measured, n=rows.height) if measured else None
        return replace(gate, measured=found, conditions=at_most(rows["bound"].min()))  # type: ignore[arg-type]
    if about.sloped and gate.measured is not None:
        lo, hi = (
            theory.filter(group=f"{end} end of the {row['group']}")["measured"].item() for end in ("lower", "upper")
        )
        return replace(gate, measured=replace(gate.measured, lo=lo, hi=hi))
    return gate
