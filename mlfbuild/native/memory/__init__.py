"""Assign an address to each tensor: views, storages that share an address, and offsets in the arena.

``cgen`` packs the arena. For the graph executor, ``graph_executor/storage.py`` assigns storage ids instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.memory.plan import Plan, plan_memory, use_free_memory
    from mlfbuild.native.memory.storages import Location, StorageKind
else:
    __getattr__ = lazy_attributes(__name__)
