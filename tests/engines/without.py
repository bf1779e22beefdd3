"""Lets a process go on as if some of the packages that are installed were not, even to who asks for their versions."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from typing import Any


class _Without:
    """A finder of modules that does not find some."""

    def __init__(self, finder: Any, modules: Collection[str], packages: Collection[str]) -> None:
        self.finder, self.modules, self.packages = finder, modules, packages

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        hidden = name.partition(".")[0] in self.modules
        return None if hidden else self.finder.find_spec(name, path, target)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        find = getattr(self.finder, "find_distributions", None)
        return find(context) if find and context.name not in self.packages else ()


def hide(modules: Collection[str], packages: Collection[str]) -> None:
    """Hide ``modules`` (names without dots) from imports, and ``packages`` from `importlib.metadata`."""
    sys.meta_path[:] = [_Without(finder, modules, packages) for finder in sys.meta_path]
