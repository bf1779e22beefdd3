"""The tables of exact laws below prompts of Dyck strings and of test cases (VGB-DYCK, VGB-TC)."""

from __future__ import annotations

import pandera.polars as pa
import polars as pl

from schemas.results import Result

EXACT, LEARNED = LEAVES = ["exact", "learned"]
BASE, WHOLE, TRS, ALRS, FIRST_LEAF, STATIONARY = METHODS = ["base", "whole", "trs", "alrs", "vgb_first", "vgb_stat"]


class Laws(Result):
    """How far each sampler's law is from what a model writes given that the string is right."""

    replica: pl.Int32 = pa.Field(ge=0)
    prompt_id: pl.Int32 = pa.Field(ge=0, description="number of the prompt, from 0")
    horizon: pl.Int32 = pa.Field(ge=1, description="actions that are left, H")
    leaf_values: pl.String = pa.Field(isin=LEAVES, description="of whole strings: whether right, or the verifier's")
    method: pl.String = pa.Field(
        isin=METHODS,
        description="the model; rejection of whole strings, by token (trs) or by action (alrs); first or stationary "
        "leaf of the walk",
    )
    p_valid: pl.Float64 = pa.Field(ge=0, le=1 + 1e-9, description="probability of a right string")
    distance: pl.Float64 = pa.Field(ge=0, le=1 + 1e-9, description="total variation to the target; half of what fails")
    fail_mass: pl.Float64 = pa.Field(ge=0, le=1 + 1e-9, description="probability that every action is rejected")
    expected_steps: pl.Float64 = pa.Field(ge=0, nullable=True, description="of the walk to its first leaf")
    oracle_expansions: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="expected number of laws of a next action that are asked for, none remembered"
    )
    value_evals: pl.Float64 = pa.Field(
        ge=0, nullable=True, description="expected number of values asked for; null where it may never end"
    )
    removed_mass: pl.Float64 = pa.Field(ge=-1e-6, le=1, description="that the model has outside of the tree")

    class Config:
        """One row per model, prompt, horizon, values and method."""

        unique = ["replica", "prompt_id", "horizon", "leaf_values", "method"]


class VgbDyck(Laws):
    """Below unseen prompts of balanced strings: actions are brackets."""


class VgbCases(Laws):
    """Below prompts for test cases: actions are the digits of a line."""


SCHEMAS = {"vgb_dyck": VgbDyck, "vgb_cases": VgbCases}
