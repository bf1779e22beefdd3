"""The table of what the page plays Algorithm 1 with, and that of the sets of strings."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl

from schemas.results import Result

KINDS = ["model", "verifier", "setting", "unseen", "inducing"]


class Played(Result):
    """A tiny language model, a linear verifier of its last states, and prompts."""

    kind: pl.String = pa.Field(
        isin=KINDS,
        description="weights; settings; unseen prompts; inducing: prompts of which the next sign was a mistake",
    )
    part: pl.String = pa.Field(description="name of a weight or a setting, or number of a prompt")
    shape: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int32}, description="of the array that the values are")
    values: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="row by row; of prompts their signs")

    class Config:
        """One row per part."""

        unique = ["kind", "part"]


class StringSets(Result):
    """What the sets of balanced strings are like."""

    set: pl.String = pa.Field(unique=True, description="of the dataset")
    n: pl.Int32 = pa.Field(ge=1, description="strings, or prompts")
    mean_brackets: pl.Float64 = pa.Field(ge=1, description="of a string, or a prompt")
    kind_0: pl.Float64 = pa.Field(ge=0, le=1, description="share of opening brackets that are of kind 0")
    mean_max_depth: pl.Float64 = pa.Field(ge=1, description="most brackets that are open at once, mean")
    largest_depth: pl.Int32 = pa.Field(ge=1, description="most brackets that are open at once in any of them")
    above_bound: pl.Float64 = pa.Field(
        ge=0, le=1, description="exact probability that the law without a bound on depths goes above it"
    )


SCHEMAS = {"played": Played, "string_sets": StringSets}
