"""Sandglass: a data-versioned pipeline that reproduces the sandbox studies of how Transformers learn.

Results from Python: ``pipeline.load_table("dyck", "variation")`` is a polars frame,
``pipeline.load_run("dyck-standard", replica=3)`` a torch module; see `pipeline.access`.
"""

import importlib
from typing import TYPE_CHECKING

from pipeline import arithmetic

arithmetic.settle()  # before numpy and torch are loaded

__all__ = ("list_runs", "list_tables", "load_run", "load_table")

if TYPE_CHECKING:
    from pipeline import access as access
    from pipeline.access import list_runs, list_tables, load_run, load_table
else:

    def __getattr__(name: str) -> object:
        """Return `pipeline.access` or a function of it, imported only now: every step imports this package."""
        if name != "access" and name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        access = importlib.import_module("pipeline.access")
        return access if name == "access" else getattr(access, name)
