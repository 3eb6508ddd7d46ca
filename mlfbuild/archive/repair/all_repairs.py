"""Correct the errors of known exporter bugs: the repairs, and their application in order.

A repair is a function from a module to the repaired module and the list of its ``Repair`` objects, each with the code
of the finding of ``validate`` that it removes, the place of the key in the archive that was read, and the values before
and after. A repair must have one right answer that follows from the archive itself; ``_REPAIRERS`` lists them in the
order in which they run.

The bugs, and what their right answer follows from:

- Storage ids of graphs (MLF401 to MLF403): TVM's exporter looks up shape and dtype of a storage id with the id instead
  of an entry that uses it, and the binding with the number of an entry instead of a node (``_build_sid_map``).
  Executors use the graph and ignore both; the graph has the right values.
- ``io_size_bytes`` (MLF412, MLF413): TVM adds intermediate results of some networks to the bytes of inputs and outputs.
  The sum of the tensors is right. Modules with several devices stay as they are.
- Sizes of tensors in the header of the C interface (MLF408): TVM 0.11 wrote arbitrary numbers. The metadata has them.
- Functions that a source declares twice with different parameters (MLF702), which no compiler accepts. The definition
  has the right ones; ``c_analysis.repeated_declarations`` describes the exporters that write them.
- External dependencies that a module names more than once (MLF806): one entry is enough.
- Dates of exports (MLF206): TVM writes local time and marks it as UTC.

The time zone of a date is not in the metadata, but the members of a tar file have their times in UTC. The exporter
writes ``metadata.json`` right after it has taken the date, and the other files after it. If the times show this order,
the difference of date and time is the time zone. For example, the date ``14:00:00`` and a ``metadata.json`` of
``12:00:01 UTC`` prove UTC+02:00, because zones are multiples of a quarter of an hour and ``_LATE`` seconds are allowed
for writing. An archive that was packed again rarely proves it; its date is then a ``DateInDoubt``.

Other findings need a decision or another export, and stay as they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial

from mlfbuild.archive.interface.signature import header_file
from mlfbuild.archive.paths import METADATA
from mlfbuild.archive.validate.memory import has_garbage_sizes, is_size, sizes_by_macro, wrong_size_code
from mlfbuild.archive.validate.metadata import DATE_FORMAT, is_local_time, parsed_date
from mlfbuild.c_analysis import MAX_TEXT, read_c_file, tokens, without_repeated_declarations
from mlfbuild.core import InputFileError, counted, shown
from mlfbuild.library import (
    OPERATOR,
    CodegenFile,
    ExternalDependency,
    Library,
    Module,
    StorageEntry,
    macro_prefix,
    repeated_in,
)
from mlfbuild.library.graph_json import ExecutorGraph, parse_graph, storage_bindings, storage_sizes
from mlfbuild.library.metadata import FORMATS

_QUARTER = 15 * 60  # seconds; all time zones are multiples
_WEST, _EAST = -12 * 3600, 14 * 3600
_EARLY, _LATE = 2, 60  # seconds from the date to the time of metadata.json; measured: 0 to 1
_OTHERS_EARLY = 60  # seconds that another file of the exporter may be older than metadata.json
_OLDER_FOLDERS = ("runtime/", "templates/", "dependencies/")  # copied, with times of their own


@dataclass(frozen=True)
class DateInDoubt:
    """A date that stays as it is."""

    place: str
    reason: str


def with_date_in_utc(library: Library, module: Module, times: Mapping[str, int]) -> tuple[Module, list[Repair]]:
    """Return ``module`` with dates in UTC where ``times``, of the members by path, prove their time zone (MLF206)."""
    offset = _offset(module, times) if is_local_time(module) else None
    date = parsed_date(module.export_datetime)
    if offset is None or date is None:
        return module, []
    new = (date - timedelta(seconds=offset)).strftime(DATE_FORMAT)
    found = repair(
        "MLF206",
        key_place(library, module, "export_datetime"),
        f"{module.export_datetime}, local time",
        f"{new}, UTC (the times of the members prove the zone UTC{_shown_offset(offset)})",
    )
    return replace(module, export_datetime=new, export_utc=True), [found]


def dates_in_doubt(library: Library, times: Mapping[str, int]) -> tuple[DateInDoubt, ...]:
    """Return the dates in local time that ``times`` do not prove."""
    unproved = (module for module in library.modules if is_local_time(module) and _offset(module, times) is None)
    return tuple(
        DateInDoubt(key_place(library, module, "export_datetime"), _reason(module, times)) for module in unproved
    )


def _offset(module: Module, times: Mapping[str, int]) -> int | None:
    """Return the offset of the exporter's time zone in seconds, or ``None`` if it is not proved."""
    date, written = parsed_date(module.export_datetime), times.get(METADATA)
    # In the last year of datetime, subtracting an offset could leave its range.
    if date is None or written is None or date.year == datetime.max.year:
        return None
    # The date is local time read as UTC: the difference is the zone's offset, less the seconds until the file was
    # written.
    difference = int(date.timestamp()) - written
    # To the nearest quarter of an hour, because writing the file takes some seconds.
    offset = round(difference / _QUARTER) * _QUARTER
    if not _WEST <= offset <= _EAST or not -_EARLY <= offset - difference <= _LATE:
        return None
    # TVM copies these folders with the times that the files have in its installation.
    others = (time for path, time in times.items() if not path.startswith(_OLDER_FOLDERS))
    return offset if min(others) >= written - _OTHERS_EARLY else None


def _reason(module: Module, times: Mapping[str, int]) -> str:
    written = times.get(METADATA)
    packed = f", of {_shown_time(written)}," if written is not None else ""
    return (
        f"{module.export_datetime} is local time of an unknown time zone: the times of the members{packed} "
        "are not those of the export"
    )


def _shown_time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime(DATE_FORMAT)
    except (ValueError, OverflowError, OSError):
        # Times in a tar header may be beyond the years that datetime knows.
        return f"{seconds} s"


def _shown_offset(seconds: int) -> str:
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}"


@dataclass(frozen=True)
class Repair:
    """One change; texts may contain names from the archive, and have no control characters."""

    code: str
    """The finding of ``validate`` that the repair removes."""
    place: str
    """In the form of the places of findings."""
    before: str
    after: str


def repair(code: str, place: str, before: object, after: object) -> Repair:
    """Return a repair whose texts can be printed.

    Control characters of names in the archive are replaced, because terminals would interpret them. Numbers become
    text as they are.
    """
    return Repair(code, shown(place), shown(before), shown(after))


def key_place(library: Library, module: Module, key: str) -> str:
    """Return the place of ``key`` below the object of ``module`` in the metadata.

    For example, ``metadata.json: modules.kws.memory.sids[0]``; without ``modules.kws`` for operators and before
    version 7.
    """
    # An operator has its keys at the top level in version 7 as well.
    inside = FORMATS[library.version].modules and module.style != OPERATOR
    return f"{METADATA}: modules.{module.name}.{key}" if inside else f"{METADATA}: {key}"


def with_true_storage(library: Library, module: Module) -> tuple[Module, list[Repair]]:
    """Return ``module`` with size and binding of each storage id as in the graph (MLF401 to MLF403)."""
    graph = _graph(module)
    if graph is None:
        return module, []
    storage = _true_storage(module, graph)
    repairs: list[Repair] = []
    for index, new in enumerate(storage):
        key = f"memory[{index}]" if library.version == 1 else f"memory.sids[{index}]"
        repairs += _changes(module.storage[index], new, graph, key_place(library, module, key))
    return replace(module, storage=storage), repairs


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
        # Bindings and sizes are replaced even if they are right; `_changes` then finds no difference and reports
        # nothing.
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


def with_true_io_size(library: Library, module: Module) -> tuple[Module, list[Repair]]:
    """Return ``module`` with ``io_size_bytes`` as the sum of inputs and outputs (MLF412 and MLF413).

    Modules with several devices stay as they are, because the metadata does not record which tensor is where.
    """
    size = sum(tensor.size for tensor in (*module.inputs, *module.outputs))
    # The sum is only comparable if all tensors are known and on one device.
    known = bool(module.inputs and module.outputs and len(module.main) == 1)
    if not known or (old := module.main[0].io_size) == size:
        return module, []
    place = key_place(library, module, "memory.functions.main[0].io_size_bytes")
    found = repair("MLF412" if old < size else "MLF413", place, counted(old, "byte"), counted(size, "byte"))
    return replace(module, main=(replace(module.main[0], io_size=size),)), [found]


_SIZE = re.compile(r"^([ \t]*#[ \t]*define[ \t]+(\w+)).*", re.MULTILINE)


def with_true_size_macros(_: Library, module: Module) -> tuple[Module, list[Repair]]:
    """Return ``module`` with the sizes of the metadata in a header that TVM 0.11 wrote (MLF408)."""
    file = header_file(module) if module.main else None
    if file is None or len(file.content) > MAX_TEXT:
        return module, []
    new, repairs = _corrected(module, file)
    return replace(module, codegen=tuple(new if each is file else each for each in module.codegen)), repairs


def _corrected(module: Module, file: CodegenFile) -> tuple[CodegenFile, list[Repair]]:
    # Latin-1 maps each byte to a character and back, so the rest of the header stays as it is in any encoding.
    text = file.data.decode("latin-1")
    header = read_c_file(f"codegen/{file.path}", tokens(text))
    values: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in header.macros:
        values[name].append(value)
    repairs: list[Repair] = []
    right: dict[str, int] = {}
    for name, sizes in sizes_by_macro(module).items() if has_garbage_sizes(module, header) else ():
        # The workspace has a macro of this form, and two tensors may share one: neither has one right value.
        if name == f"{macro_prefix(module.name)}_WORKSPACE_SIZE" or len(values[name]) != 1 or len(sizes) != 1:
            continue
        if not is_size(values[name][0], sizes):
            (right[name],) = sizes
            repairs.append(repair("MLF408", f"{header.path}: {name}", values[name][0] or "empty", right[name]))
    # In one pass, so that a macro whose name contains another one is not changed.
    text = _SIZE.sub(lambda found: f"{found[1]} {right[found[2]]}" if found[2] in right else found[0], text)
    return CodegenFile(file.path, text.encode("latin-1")) if repairs else file, repairs


def with_one_declaration(_: Library, module: Module) -> tuple[Module, list[Repair]]:
    """Return ``module`` with the real declaration in place of each contradicting one (MLF702)."""
    repairs: list[Repair] = []

    def corrected(file: CodegenFile) -> CodegenFile:
        found = repeated_in(file)
        for each in found:
            place = f"codegen/{file.path}:{each.line}: {each.name}"
            repairs.append(repair("MLF702", place, f"({', '.join(each.superfluous)})", f"({', '.join(each.real)})"))
        if not found:
            return file
        return CodegenFile(file.path, without_repeated_declarations(file.data.decode("latin-1")).encode("latin-1"))

    return replace(module, codegen=tuple(map(corrected, module.codegen))), repairs


def with_each_dependency_once(library: Library, module: Module) -> tuple[Module, list[Repair]]:
    """Return ``module`` with each external dependency once per module (MLF806)."""
    repairs: list[Repair] = []
    seen: set[ExternalDependency] = set()
    for index, entry in enumerate(module.external_dependencies):
        if entry in seen:
            place = key_place(library, module, f"external_dependencies[{index}]")
            repairs.append(repair("MLF806", place, f"{entry.short_name}, as before", "removed"))
        seen.add(entry)
    # The first entry stays, in its place, as builds use it.
    return replace(module, external_dependencies=tuple(dict.fromkeys(module.external_dependencies))), repairs


_Repairer = Callable[[Library, Module], tuple[Module, list[Repair]]]

_REPAIRERS: tuple[_Repairer, ...] = (
    with_true_storage, with_true_io_size, with_true_size_macros, with_one_declaration, with_each_dependency_once,
)  # fmt: skip


@dataclass(frozen=True)
class RepairedLibrary:
    """A repaired library, the repairs in order, and the dates whose time zone is unknown."""

    library: Library
    repairs: tuple[Repair, ...]
    in_doubt: tuple[DateInDoubt, ...]


def repaired(library: Library, times: Mapping[str, int]) -> RepairedLibrary:
    """Return ``library`` with every repair that applies; ``times`` are those of the archive's members by path.

    Times are seconds since 1970. Native libraries need no repair.

    ``in_doubt`` of the result has the dates that are still in local time because ``times`` do not prove their zone.
    Findings of ``validate`` without a repair stay as they are.
    """
    repairs: list[Repair] = []
    in_doubt = dates_in_doubt(library, times)
    # Dates are last, and apart from the others, because they also need the times of the members.
    in_utc: _Repairer = partial(with_date_in_utc, times=times)
    for repairer in (*_REPAIRERS, in_utc):
        corrected = [repairer(library, module) for module in library.modules]
        library = replace(library, modules=tuple(module for module, _ in corrected))
        # A file that modules share is listed once.
        repairs += dict.fromkeys(each for _, found in corrected for each in found)
    return RepairedLibrary(library, tuple(repairs), in_doubt)
