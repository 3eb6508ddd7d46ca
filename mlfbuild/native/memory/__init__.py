"""Assign an address to each tensor: views, storages that share an address, and offsets in the arena.

    Graph, KernelCalls -> views, storages -> library.cgen.place -> Plan

Data: a ``Storage`` is one piece of memory with the tensors in it and the times at which its bytes are in use; a time is
the index of a node. A ``Location`` is the kind of memory and an offset. A ``Plan`` has the location of each tensor, the
size of the arena, and the offsets of scratch memory.

- ``storages`` decides which tensors share an address, ``views`` finds those that are parts of others, ``borders`` those
  that an NPU reads and writes where they are, and ``plan`` makes and compares plans. ``library.cgen`` packs storages;
  it knows only sizes and times.
- If the request has several memories, ``arenas`` gives each storage one of them, by the waits of the accesses that
  ``accesses`` estimates for its kernels.
- For the graph executor, ``graph_executor/storage.py`` assigns storage ids instead, because TVM's executors allocate
  whole buffers and know no offsets.

Two questions are decided elsewhere: ``passes/fusion`` decides what runs row by row, and a kernel's own file decides how
much scratch memory it needs and what it may overwrite. ``order`` finds an order of the nodes other than the file's. For
reports, ``curve`` finds what other sizes of the fastest memory would be worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.memory.accesses import Traffic
    from mlfbuild.native.memory.arenas import PlannedMemory, PlannedStorage, by_speed, speeds
    from mlfbuild.native.memory.borders import arena_alignment
    from mlfbuild.native.memory.curve import with_curve
    from mlfbuild.native.memory.order import better_order
    from mlfbuild.native.memory.plan import Plan, check_fits, plan_memory, use_free_memory
    from mlfbuild.native.memory.storages import Location, StorageKind
    from mlfbuild.native.memory.weights import WeightBlock, WeightPlan, WeightUse, plan_weights, weight_uses
else:
    __getattr__ = lazy_attributes(__name__)
