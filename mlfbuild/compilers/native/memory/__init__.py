"""Where each tensor is while the network runs: views, storages that share an address, and offsets in the arena.

``cgen`` packs the arena; the executor of graphs has storages of its own (``graph_executor/storage.py``).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.compilers.native.memory.plan import Plan, plan_memory
    from mlfbuild.compilers.native.memory.storages import Location, StorageKind

__all__ = ["Location", "Plan", "StorageKind", "plan_memory"]

_HOMES = {
    "plan": (
        "Plan",
        "plan_memory",
    ),
    "storages": (
        "StorageKind",
        "Location",
    ),
}

if not TYPE_CHECKING:  # or every name would be known to type checkers

    def __getattr__(name: str) -> object:
        """Import the module that has ``name`` when it is first asked for."""
        for home, names in _HOMES.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
