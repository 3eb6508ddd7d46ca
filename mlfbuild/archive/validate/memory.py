"""Rules for memory sizes: compare the metadata with the graph, the header and the code, and find faults of TVM."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping

from mlfbuild.archive.validate.codes import Finding, finding
from mlfbuild.archive.validate.schema import is_documented
from mlfbuild.archive.validate.views import ModuleView, of_each_module
from mlfbuild.c_analysis import CFile
from mlfbuild.library import OPERATOR, Module, StorageEntry, macro_prefix, sanitize_name, tensor_size
from mlfbuild.library.graph_json import ExecutorGraph, storage_bindings, storage_sizes

_NUMBER = re.compile(r"(\d{1,19})[uUlL]*", re.ASCII)
# Releases 0.11, and the builds between it and 0.12.
_GARBAGE_SIZES = re.compile(r"0\.11(?:\D|$)|0\.12\.dev")


def storage_entries(view: ModuleView) -> Iterator[Finding]:
    """Compare ids, sizes and bindings in ``memory.sids`` with the graph.

    ``MLF401`` and ``MLF402`` for sizes, ``MLF403`` for bindings, ``MLF404`` for ids that only one of the two has.
    """
    if view.graph is None or not view.module.storage:
        return
    sizes = storage_sizes(view.graph)
    counts = Counter(entry.storage_id for entry in view.module.storage)
    listed = set(counts)
    if listed != set(sizes):
        # A damaged list may differ in thousands of ids; eight show what is wrong.
        other = sorted(listed ^ set(sizes))[:8]
        yield finding("MLF404", _storage_place(view), f"storage ids {_joined(other)} are only in one of the two")
    if repeated := sorted(number for number, times in counts.items() if times > 1)[:8]:
        yield finding("MLF404", _storage_place(view), f"storage ids {_joined(repeated)} are listed more than once")
    names = storage_bindings(view.graph)
    for index, entry in enumerate(view.module.storage):
        if entry.storage_id in sizes:
            place = _entry_place(view, index, entry)
            yield from _size(view.graph, entry, sizes[entry.storage_id], place)
            yield from _binding(entry, names.get(entry.storage_id), place)


def _storage_place(view: ModuleView) -> str:
    """Return the place of the storage ids, which is ``memory`` in version 1 and in the first RFC."""
    memory = view.fields.get("memory")
    return view.place("memory.sids" if isinstance(memory, dict) and "sids" in memory else "memory")


def _entry_place(view: ModuleView, index: int, entry: StorageEntry) -> str:
    memory = view.fields.get("memory")
    if isinstance(memory, dict) and "sids" not in memory:
        return view.place(f"memory.{entry.storage_id}")
    return f"{_storage_place(view)}[{index}]"


def _joined(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _size(graph: ExecutorGraph, entry: StorageEntry, size: int, place: str) -> Iterator[Finding]:
    if entry.size == size:
        return
    message = f"storage id {entry.storage_id} has {entry.size:,} bytes but needs {size:,}"
    yield finding(wrong_size_code(graph, entry), place, message)


def wrong_size_code(graph: ExecutorGraph, entry: StorageEntry) -> str:
    """Return the code of the finding for ``entry``, whose size is wrong."""
    # TVM indexes shape and dltype, which are lists by entry, with the storage id.
    number = entry.storage_id
    of_the_bug = number < len(graph.shape) and entry.size == tensor_size(graph.dltype[number], graph.shape[number])
    return "MLF401" if of_the_bug else "MLF402"


def _binding(entry: StorageEntry, name: str | None, place: str) -> Iterator[Finding]:
    if entry.input_binding != name:
        bound = "nothing" if name is None else repr(name)
        wrong = "nothing" if entry.input_binding is None else repr(entry.input_binding)
        message = f"storage id {entry.storage_id} is bound to {wrong}, but to {bound} in the graph"
        yield finding("MLF403", place, message)


def storage_keys(view: ModuleView) -> Iterator[Finding]:
    """Find graphs without storage ids in the metadata, and storage ids without a graph.

    ``MLF202`` and ``MLF204``. Documents of TVM that no exporter followed may leave the key out.
    """
    memory = view.fields.get("memory")
    if view.module.style == OPERATOR or not isinstance(memory, dict) or "functions" not in memory:
        return
    if view.module.executor == "graph" and "sids" not in memory and not is_documented(view.fields):
        yield finding("MLF202", view.place("memory.sids"), "is missing")
    elif view.module.executor != "graph" and "sids" in memory:
        yield finding("MLF204", view.place("memory.sids"), "only modules of the graph executor have this key")


def main_entries(view: ModuleView) -> Iterator[Finding]:
    """Check ``main``: one entry per device, with enough memory for operators, inputs and outputs.

    ``MLF405`` for two entries of a device, ``MLF411`` for operators, ``MLF412`` and ``MLF413`` for inputs and outputs;
    the last one only wastes memory.
    """
    module = view.module
    for device, times in Counter(entry.device for entry in module.main).items():
        if times > 1:
            yield finding("MLF405", view.place("memory.functions.main"), f"device {device} has {times} entries")
    yield from _operators(view)
    tensors = sum(tensor.size for tensor in (*module.inputs, *module.outputs))
    # With several devices the metadata does not record which tensor is where.
    if len(module.main) != 1 or not tensors:
        return
    size = module.main[0].io_size
    place = view.place("memory.functions.main[0].io_size_bytes")
    message = f"is {size:,}, but inputs and outputs take {tensors:,}"
    if size < tensors:
        yield finding("MLF412", place, message)
    elif size > tensors:
        yield finding("MLF413", place, message)


def _operators(view: ModuleView) -> Iterator[Finding]:
    module = view.module
    total = {entry.device: 0 for entry in module.main}
    for entry in module.main:
        total[entry.device] += entry.workspace_size
    for index, function in enumerate(module.operator_functions):
        for device, size in function.workspace:
            # A device without an entry in `main` has no size to compare with.
            if size > total.get(device, size):
                place = view.place(f"memory.functions.operator_functions[{index}]")
                message = f"{function.name} needs {size:,} bytes, but the module has {total[device]:,}"
                yield finding("MLF411", place, message)


def pools(view: ModuleView) -> Iterator[Finding]:
    """Compare workspace pools of the code with the workspace of the metadata.

    ``MLF414``: firmware that reserves the size in the metadata would be too small for the pools.
    """
    known = [pool.size for pool in view.module.pools if pool.kind == "workspace" and pool.size is not None]
    workspace = sum(entry.workspace_size for entry in view.module.main)
    # Without entries in `main` the metadata states no workspace that could be too small.
    if view.module.main and sum(known) > workspace:
        place = view.place("memory.functions.main[0].workspace_size_bytes")
        yield finding("MLF414", place, f"is {workspace:,}, but the pools of the code have {sum(known):,}")


def header_macros(view: ModuleView) -> Iterator[Finding]:
    """Compare size macros of the C interface's header with the metadata.

    ``MLF406`` and ``MLF407`` for the workspace, ``MLF408`` and ``MLF409`` for tensors; ``MLF408`` is the known bug of
    TVM 0.11, which can be repaired.
    """
    if view.header is None or not view.module.main:
        return
    workspace = f"{macro_prefix(view.name)}_WORKSPACE_SIZE"
    tensors = sizes_by_macro(view.module)
    garbage = has_garbage_sizes(view.module, view.header)
    for name, text in view.header.macros:
        place = f"{view.header.path}: {name}"
        # A tensor called `workspace` has the same macro (MLF307), whose value may be that of either.
        if name == workspace and name not in tensors:
            yield from _workspace_macro(view.module, text, place)
        elif name != workspace and name in tensors:
            yield from _tensor_macro(tensors[name], text, place, garbage)


def _workspace_macro(module: Module, text: str, place: str) -> Iterator[Finding]:
    size = _NUMBER.fullmatch(text)
    if size is None:
        return
    if int(size[1]) != module.main[0].workspace_size:
        yield finding("MLF407", place, f"is {size[1]}, but {module.main[0].workspace_size} in the metadata")
    devices = sum(entry.workspace_size > 0 for entry in module.main)
    if devices > 1:
        yield finding("MLF406", place, f"covers one of {devices} devices")


def has_garbage_sizes(module: Module, header: CFile) -> bool:
    """Return whether TVM 0.11 wrote the header: by its version, or if that is unknown, because all sizes are wrong."""
    versions = [dependency.version_spec for dependency in module.external_dependencies]
    if any(versions):
        return any(_GARBAGE_SIZES.match(version) for version in versions)
    tensors = sizes_by_macro(module)
    found = [(name, text) for name, text in header.macros if name in tensors]
    # A single wrong size may have another cause; the bug of TVM 0.11 makes all of them wrong.
    return len(found) > 1 and not any(is_size(text, tensors[name]) for name, text in found)


def is_size(text: str, sizes: Collection[int]) -> bool:
    """Return whether ``text``, the value of a macro, is one of ``sizes``."""
    found = _NUMBER.fullmatch(text)
    return found is not None and int(found[1]) in sizes


def _tensor_macro(sizes: Collection[int], text: str, place: str, garbage: bool) -> Iterator[Finding]:
    if not is_size(text, sizes):
        expected = " or ".join(str(size) for size in sorted(sizes))
        message = f"is {text or 'empty'}, but {expected} in the metadata"
        yield finding("MLF408" if garbage else "MLF409", place, message)


def sizes_by_macro(module: Module) -> Mapping[str, Collection[int]]:
    """Return the sizes of tensors by macro; several tensors may have the same one."""
    sizes: dict[str, set[int]] = defaultdict(set)
    for tensor in (*module.inputs, *module.outputs):
        sizes[f"{macro_prefix(module.name)}_{sanitize_name(tensor.name).upper()}_SIZE"].add(tensor.size)
    return sizes


def tensor_sizes(view: ModuleView) -> Iterator[Finding]:
    """Compare bytes of inputs, outputs and operator buffers with shape and dtype.

    ``MLF410``. Types that TVM does not know have no size to compare (``MLF210``).
    """
    named = [(item.name, item.dtype, item.shape, item.size) for item in (*view.module.inputs, *view.module.outputs)]
    named += [(item.function, item.dtype, item.shape, item.size) for item in view.module.buffers]
    for name, dtype, shape, size in named:
        expected = None if shape is None else tensor_size(dtype, shape)
        if expected is not None and expected != size:
            message = f"{name} has {size:,} bytes, but {dtype}{list(shape or ())} takes {expected:,}"
            yield finding("MLF410", view.place("memory"), message)


RULES = of_each_module(storage_entries, storage_keys, main_entries, pools, header_macros, tensor_sizes)
