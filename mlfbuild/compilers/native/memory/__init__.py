"""Where each tensor is while the network runs: views, storages that share an address, and offsets in the arena.

``cgen`` packs the arena; the executor of graphs has storages of its own (``graph_executor/storage.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.compilers.native.memory.plan import Plan as Plan, plan_memory as plan_memory
    from mlfbuild.compilers.native.memory.storages import Location as Location, StorageKind as StorageKind
else:
    __getattr__ = lazy_attributes(__name__)
