"""The table of what the page plays Algorithm 1 with."""

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
    shape: pl.List = pa.Field(dtype_kwargs={"inner": pl.Int32})
    values: pl.List = pa.Field(dtype_kwargs={"inner": pl.Float64}, description="row by row; of prompts their signs")

    class Config:
        """One row per part."""

        unique = ["kind", "part"]


SCHEMAS = {"played": Played}
