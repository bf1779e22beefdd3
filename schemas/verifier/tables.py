"""Result tables of the study; those of theory and of published numbers are in modules of their own."""

from __future__ import annotations

from schemas.comparisons import Comparisons
from schemas.verifier import code, dyck, played, theory_tables, vgb_dyck

SCHEMAS = (
    {"comparisons": Comparisons}
    | dyck.SCHEMAS
    | code.SCHEMAS
    | vgb_dyck.SCHEMAS
    | played.SCHEMAS
    | theory_tables.SCHEMAS
)
