"""Passes rewrite a graph into one that computes the same outputs with less; each is a pure function of a graph.

``pipeline`` has those that every network goes through, in their order. ``fusion`` then decides which operators run
together, row by row, by the ``costs`` that it estimates.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.compilers.native.passes.fusion import fuse
    from mlfbuild.compilers.native.passes.pipeline import run_passes

__all__ = ["fuse", "run_passes"]

_HOMES = {"fusion": ("fuse",), "pipeline": ("run_passes",)}

if not TYPE_CHECKING:  # or every name would be known to type checkers

    def __getattr__(name: str) -> object:
        """Import the module that has ``name`` when it is first asked for."""
        for home, names in _HOMES.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
