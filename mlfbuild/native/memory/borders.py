"""Put the tensors at the border of an NPU to where its command streams read and write them.

A command stream has the addresses of its inputs and outputs as offsets in the working memory, which Vela planned for
all calls of the network together. If the calls share one such memory and a tensor is in it at that offset, nothing is
copied. The core's operators then read and write the working memory between calls.

Vela's plan is not trusted, and the order of the nodes may be another one. A tensor is in the working memory only if

1. it is in the arena, alone or with its RESHAPEs, and all calls have it at one offset, a multiple of 16 bytes;
2. no call writes its bytes as long as they are needed: neither a command (``EthosU.stores``), nor the copy of another
   input;
3. no other such tensor needs these bytes at the same time. Only during a call may an output replace an input.

All others are copied at the call, such as those in the caller's buffers.

For example, a working memory of 100 bytes, and a call, an operator of the core, and another call::

    node 0   call   x -> a      a at 40, 20 bytes        [0, 100) in use
    node 1   ABS    a -> b      b at 0, 20 bytes         [0, 60)
    node 2   call   b -> y                               [0, 100)

``a`` and ``b`` cost nothing. Scratch memory of ABS can begin at byte 60: a buffer is in use from its beginning, so that
the gap between ``b`` and ``a`` remains unused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from mlfbuild.library.cgen import ALIGNMENT, CACHE_LINE, Span, aligned
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.ops import EthosU
from mlfbuild.native.memory.storages import Storage, StorageKind


def arena_alignment(graph: Graph) -> int:
    """Return the bytes to a multiple of which arenas of ``graph`` are aligned, and their sizes rounded up.

    After a call of an NPU, the driver invalidates lines of the data cache. None may have bytes of another variable,
    which an interrupt may have written meanwhile.
    """
    return CACHE_LINE if any(isinstance(node.operator, EthosU) for node in graph.nodes) else ALIGNMENT


@dataclass(frozen=True)
class _Border:
    """A storage and its bytes in the working memory."""

    storage: Storage
    start: int
    end: int
    begins: int
    """The node after which its bytes are needed."""

    def overlaps(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end

    def meets(self, other: _Border) -> bool:
        """Return whether both need common bytes at the same time."""
        return (
            self.overlaps(other.start, other.end)
            and self.begins < other.storage.last
            and other.begins < self.storage.last
        )


def share_working_memory(graph: Graph, storages: dict[str, Storage], apart: Collection[int]) -> dict[int, str]:
    """Move tensors at the border of an NPU into one storage, the working memory of the calls that are not in ``apart``.

    Call it when lifetimes are known, and before outputs overwrite inputs. Returns, for each of these calls, the name of
    a tensor of that storage; empty if no tensor can be there.
    """
    calls = {
        at: node.operator
        for at, node in enumerate(graph.nodes)
        if isinstance(node.operator, EthosU) and at not in apart
    }
    placed: list[_Border] = []
    for border in _borders(graph, storages, calls):
        if not _is_written(graph, storages, calls, border) and not any(border.meets(other) for other in placed):
            placed.append(border)
    if not placed:
        return {}
    whole = Storage(StorageKind.ARENA, 0, [Span(operator.scratch, at, at) for at, operator in calls.items()])
    whole.last = max(calls)
    for border in placed:
        storage = border.storage
        # A span begins with the storage.
        storage.spans = [replace(span, size=border.start + span.size) for span in storage.spans]
        whole.offsets.update(dict.fromkeys(storage.names, border.start))
        whole.absorb(storage, storages)
    whole.spans.sort(key=lambda span: span.first)
    return dict.fromkeys(calls, whole.names[0])


def _offsets(graph: Graph, at: int, operator: EthosU) -> Iterator[tuple[str, int]]:
    """Yield the tensors of the call ``at`` and their offsets in the working memory."""
    node = graph.nodes[at]
    yield from zip((str(name) for name in node.inputs), operator.input_offsets, strict=True)
    yield from zip(node.outputs, operator.output_offsets, strict=True)


def _borders(graph: Graph, storages: Mapping[str, Storage], calls: Mapping[int, EthosU]) -> Iterator[_Border]:
    """Yield the storages that can be in the working memory of ``calls``, apart from the bytes of others."""
    found: dict[int, set[int]] = {}
    unique: dict[int, Storage] = {}
    for at, operator in calls.items():
        for name, offset in _offsets(graph, at, operator):
            found.setdefault(id(storages[name]), set()).add(offset)
            unique[id(storages[name])] = storages[name]
    for key, storage in unique.items():
        start, *others = found[key]
        # A storage with views has tensors at several offsets.
        if storage.area is StorageKind.ARENA and not storage.offsets and not others and not start % ALIGNMENT:
            first = storage.spans[0].first
            # A call may replace an input by an output. Other writers need both, and the caller writes before node 0.
            by_call = first in calls and any(name in graph.nodes[first].outputs for name in storage.names)
            yield _Border(storage, start, start + aligned(storage.spans[0].size), first if by_call else first - 1)


def _is_written(graph: Graph, storages: Mapping[str, Storage], calls: Mapping[int, EthosU], border: _Border) -> bool:
    """Return whether a call writes the bytes of ``border`` between its writer and its last reader."""
    for at, operator in calls.items():
        if not border.begins < at <= border.storage.last:
            continue
        if at < border.storage.last and any(border.overlaps(*each) for each in operator.stores):
            return True
        inputs = graph.nodes[at].inputs
        for name, offset in zip(map(str, inputs), operator.input_offsets, strict=True):
            if storages[name] is not border.storage and border.overlaps(offset, offset + graph.tensor(name).size):
                return True
    return False
