"""Storage ids of graphs: sizes and bindings.

TVM's exporter looks up shape and dtype of a storage id with the id instead of an entry that uses it, and the binding
with the number of an entry instead of a node (``_build_sid_map``). Executors use the graph and ignore both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlfbuild.archive.repair.repairs import Repair, key_place, repair, with_each_module
from mlfbuild.archive.validate.memory import wrong_size_code
from mlfbuild.core import InputFileError, counted
from mlfbuild.library import Library, Module, StorageEntry
from mlfbuild.library.graph_json import ExecutorGraph, parse_graph, storage_bindings, storage_sizes


def with_true_storage(library: Library) -> tuple[Library, tuple[Repair, ...]]:
    """Return ``library`` with size and binding of each storage id as in the graph (MLF401 to MLF403)."""

    def correct(module: Module) -> tuple[Module, list[Repair]]:
        graph = _graph(module)
        if graph is None:
            return module, []
        storage = _true_storage(module, graph)
        repairs: list[Repair] = []
        for index, new in enumerate(storage):
            repairs += _changes(module.storage[index], new, graph, _entry_place(library, module, index))
        return replace(module, storage=storage), repairs

    return with_each_module(library, correct)


def _graph(module: Module) -> ExecutorGraph | None:
    """Return the graph if it is valid and the metadata has storage ids."""
    if module.graph_json is None or not module.storage:
        return None
    try:
        return parse_graph(bytes(module.graph_json), "graph")
    except InputFileError:
        return None  # validate reports it (MLF501)


def _true_storage(module: Module, graph: ExecutorGraph) -> tuple[StorageEntry, ...]:
    """Return the storage ids as the graph has them; those that the graph does not have stay as they are."""
    sizes, bindings = storage_sizes(graph), storage_bindings(graph)
    return tuple(
        replace(entry, size=sizes[number], input_binding=bindings.get(number))
        if (number := entry.storage_id) in sizes
        else entry
        for entry in module.storage
    )


def _changes(old: StorageEntry, new: StorageEntry, graph: ExecutorGraph, place: str) -> Iterator[Repair]:
    if old.size != new.size:
        yield repair(wrong_size_code(graph, old), place, counted(old.size, "byte"), counted(new.size, "byte"))
    if old.input_binding != new.input_binding:
        yield repair("MLF403", place, _bound(old), _bound(new))


def _bound(entry: StorageEntry) -> str:
    return "bound to nothing" if entry.input_binding is None else f"bound to {entry.input_binding}"


def _entry_place(library: Library, module: Module, index: int) -> str:
    return key_place(library, module, f"memory[{index}]" if library.version == 1 else f"memory.sids[{index}]")
