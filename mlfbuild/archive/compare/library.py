"""Compare libraries: pair modules by name, and compare all parts of a module that are part of its meaning.

Files are compared byte by byte, and differences of text files are counted in lines. The result is data, with a text
for people.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from mlfbuild.archive.compare.arrays import parameter_differences, tensor_differences
from mlfbuild.archive.compare.graphs import graph_differences
from mlfbuild.archive.compare.library_difference import LibraryComparison, LibraryDifference, by_name, change, distinct
from mlfbuild.archive.describe.readme import README
from mlfbuild.c_analysis import MAX_TEXT, TEXT_SUFFIXES
from mlfbuild.core import counted, printable, quoted, text_table
from mlfbuild.library import (
    Content,
    ExternalDependency,
    Library,
    MainMemory,
    Module,
    TracedTensor,
    UnknownField,
    all_files,
    device_name,
)

_NAMED = re.compile(r".+_lib\d+\.\w+", re.ASCII)
_TEXT_SUFFIXES = (*TEXT_SUFFIXES, ".txt", ".md", ".cmake", ".template", ".json")


def code_differences(left: Module, right: Module) -> Iterator[LibraryDifference]:
    """Yield a difference for each codegen file that is not equal in both modules.

    ``lib<n>.c`` in versions 1 and 2 is the same file as ``<module>_lib<n>.c`` in later versions.
    """
    files = {f"codegen/{file.path}": file.content for file in all_files(left)}
    others = {f"codegen/{file.path}": file.content for file in all_files(right)}
    renamed = {_unnamed(left.name, path): path for path in files if path not in others}
    paired = {
        path if path in files else renamed.get(_unnamed(right.name, path), path): content
        for path, content in others.items()
    }
    yield from file_differences(left.name, "code", files, paired)


def _unnamed(module: str, path: str) -> str:
    """Return the path of a module's file without the module's name."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + (name.removeprefix(f"{module}_") if _NAMED.fullmatch(name) else name)


def other_differences(left: Library, right: Library, ignored: str) -> Iterator[LibraryDifference]:
    """Yield a difference for each file of no module that is not equal in both, except the file ``ignored``."""
    sides = ({str(file.path): file.content for file in side.other_files} for side in (left, right))
    yield from file_differences(None, "file", *({p: c for p, c in side.items() if p != ignored} for side in sides))


def file_differences(
    module: str | None, what: str, left: Mapping[str, Content], right: Mapping[str, Content]
) -> Iterator[LibraryDifference]:
    """Yield a difference for each path with different content on the two sides."""
    found = by_name(
        (module, what), left, right, lambda file: {"size": len(file)}, partial(_content_difference, module, what)
    )
    yield from sorted(found, key=attrgetter("name"))


def _content_difference(
    module: str | None, what: str, path: str, left: Content, right: Content
) -> Iterator[LibraryDifference]:
    if left == right:
        return
    if not path.endswith(_TEXT_SUFFIXES) or max(len(left), len(right)) > MAX_TEXT:
        text = f"{change(len(left), len(right))} bytes" if len(left) != len(right) else f"different {len(left):,} bytes"
        yield LibraryDifference(module, what, path, {"size": len(left)}, {"size": len(right)}, text)
        return
    # Lines are counted, not aligned: a diff of generated sources of megabytes can take quadratic time.
    first, second = (Counter(bytes(side).splitlines()) for side in (left, right))
    gone, new = (first - second).total(), (second - first).total()
    lines = f"{gone:,} removed, {new:,} added" if gone or new else "in another order, or with other line ends"
    text = f"{change(first.total(), second.total())} lines: {lines}"
    facts = [{"size": len(side), "lines": lines.total()} for side, lines in ((left, first), (right, second))]
    yield LibraryDifference(module, what, path, facts[0], facts[1], text)


_SHOWN = 12
"""Largest number of differences of one kind in one module."""
_LONGEST_NAME = 48
"""Characters of a tensor's name: converters join the names of all layers that they fused."""


def comparison_text(comparison: LibraryComparison, left: str, right: str, *, verbose: bool = False) -> str:
    """Return ``comparison`` as lines for people, the last one without a line end.

    ``left`` and ``right`` are the names of the two archives. If there are many differences of one kind, only the first
    ones are shown, unless ``verbose``.
    """
    return "\n".join(_lines(comparison, left, right, verbose))


def _lines(comparison: LibraryComparison, left: str, right: str, verbose: bool) -> Iterator[str]:
    if comparison.equal:
        yield f"{left} and {right} have the same meaning"
    else:
        yield f"{left} -> {right}: {counted(len(comparison.differences), 'difference')}"
    for module, group in groupby(comparison.differences, key=lambda difference: difference.module):
        if module is not None:
            yield ""
            yield f"module {printable(module)}"
        kinds = {what: list(same) for what, same in groupby(group, key=lambda difference: difference.what)}
        counted_only = set() if verbose else {"code", "operator"} if "tensor" in kinds else {"code"}
        yield text_table(
            [row for what, same in kinds.items() for row in _rows(what, same, verbose, counted_only)], indent=2
        )
    if comparison.notes:
        yield ""
        yield "notes"
        yield from (f"  {printable(note)}" for note in comparison.notes)


def _rows(
    what: str, differences: Sequence[LibraryDifference], verbose: bool, counted_only: set[str]
) -> Iterator[tuple[str, str]]:
    if what in counted_only:
        yield what, f"{counted(len(differences), 'file' if what == 'code' else 'C function')} (-v lists them)"
        return
    shown = differences if verbose or len(differences) <= _SHOWN + 1 else differences[:_SHOWN]
    for difference in shown:
        name = difference.name
        if what == "tensor" and not verbose and len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}..."
        yield what, f"{name}: {difference.text}" if name else difference.text
    if len(shown) < len(differences):
        yield what, f"and {len(differences) - len(shown):,} more (-v shows all)"


_VALUE = 60
"""Largest number of characters of an unknown field's value in a text."""
_Value = TypeVar("_Value")
_Part: TypeAlias = Callable[[Module, Module], Iterator[LibraryDifference]]


def compare(a: Library, b: Library) -> LibraryComparison:
    """Return the differences of ``b`` from ``a``.

    Modules are paired by name. Information that only one of them has is not counted as a difference; for example, older
    versions of the format do not record shapes. Raises ``InputFileError`` if a graph or a parameter is invalid.

    For example, a model that was compiled again with other weights differs in ``parameter`` or ``code``::

        comparison = compare(open_archive(old), open_archive(new))
        [(each.what, each.name) for each in comparison.differences]
    """
    sides = [{module.name: module for module in library.modules} for library in (a, b)]
    pairs = [(sides[0][name], sides[1][name]) for name in sides[0] if name in sides[1]]
    missing = sorted(
        by_name((None, "module"), sides[0], sides[1], attrgetter("name"), lambda *_: ()),
        key=attrgetter("name"),
    )
    differences = [*missing, *other_differences(a, b, README), *_unknown(None, a.unknown, b.unknown)]
    for left, right in pairs:
        for part in _PARTS:
            differences += part(left, right)
    versions = [f"version of the format: {a.version} -> {b.version}"] if a.version != b.version else []
    notes = [*versions, *(note for pair in pairs for note in _notes(*pair))]
    return LibraryComparison(tuple(differences), tuple(notes))


# Parts of a module ---------------------------------------------------------------------------------------------------


def _single(
    what: str,
    value_of: Callable[[Module], Any],
    word_of: Callable[[Any], object] = lambda value: value or None,
    *,
    optional: bool = False,
) -> _Part:
    """Return a part that compares one value; if it is ``optional``, an empty one is unknown and makes no difference."""

    def differences(left: Module, right: Module) -> Iterator[LibraryDifference]:
        first, second = value_of(left), value_of(right)
        if first != second and (not optional or (first and second)):
            yield LibraryDifference(left.name, what, "", first, second, change(word_of(first), word_of(second)))

    return differences


def _npu(facts: dict[str, Any] | None) -> str | None:
    """Return what of an NPU two archives are compared by, for people."""
    if facts is None:
        return None
    cycles = f"{facts['estimate']['cycles']:,} cycles estimated by {facts['compiler']}"
    return f"{facts['accelerator']} ({facts['memory_mode']}, {cycles})"


def _target_devices(left: Module, right: Module) -> Iterator[LibraryDifference]:
    for old, new in zip(left.targets, right.targets, strict=False):
        if old.device != new.device and None not in (old.device, new.device):
            yield LibraryDifference(
                left.name, "target", "device", old.device, new.device, change(old.device, new.device)
            )


def _tensors(left: Module, right: Module) -> Iterator[LibraryDifference]:
    yield from tensor_differences(left.name, "input", left.inputs, right.inputs)
    yield from tensor_differences(left.name, "output", left.outputs, right.outputs)


def _memory(left: Module, right: Module) -> Iterator[LibraryDifference]:
    if not left.main or not right.main:
        return  # version 1 does not record it
    figures = [_figures(module.main) | {"state": module.state_size} for module in (left, right)]
    for name in sorted({*figures[0], *figures[1]}):
        first, second = (side.get(name) for side in figures)
        if first != second:
            known = first is not None and second is not None
            text = change(first, second) if known else f"{_only(first)}: {(first or second or 0):,}"
            yield LibraryDifference(left.name, "memory", name, first, second, f"{text} bytes")


def _figures(entries: tuple[MainMemory, ...]) -> dict[str, int]:
    return _numbered(
        (f"{what} on {device_name(entry.device)}", size)
        for entry in entries
        for what, size in (
            ("workspace", entry.workspace_size),
            ("constants", entry.constants_size),
            ("inputs and outputs", entry.io_size),
        )
    )


def _properties(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    changed = [key for key in {**first, **second} if first.get(key) != second.get(key)]
    return ", ".join(f"{key.replace('_', ' ')} {change(first.get(key), second.get(key))}" for key in changed)


def _named(
    what: str,
    values: Callable[[Module], Iterable[tuple[str, Mapping[Any, Any]]]],
    text: Callable[[Mapping[Any, Any], Mapping[Any, Any]], str] = _properties,
) -> _Part:
    """Return a part that compares named things, each of them a mapping of its properties."""

    def differences(left: Module, right: Module) -> Iterator[LibraryDifference]:
        for name, first, second in _entries(_numbered(values(left)), _numbered(values(right))):
            words = _only(first) if first is None or second is None else text(first, second)
            yield LibraryDifference(left.name, what, name, first, second, words)

    return differences


def _workspaces(first: Mapping[int, int], second: Mapping[int, int]) -> str:
    return f"workspace {change(max(first.values(), default=0), max(second.values(), default=0))} bytes"


def _entries(left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield name and both values if they differ; a missing value is ``None``."""
    for name in [*left, *(name for name in right if name not in left)]:
        if left.get(name) != right.get(name):
            yield name, left.get(name), right.get(name)


def _numbered(values: Iterable[tuple[str, _Value]]) -> dict[str, _Value]:
    """Return a mapping of names to values; the second value of the same name is ``<name>#2``."""
    pairs = list(values)
    return dict(zip(distinct(name for name, _ in pairs), (value for _, value in pairs), strict=True))


def _only(first: object) -> str:
    return "only in the second" if first is None else "only in the first"


def _buffers(module: Module) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an operator's arguments by function and position."""
    places: Counter[str] = Counter()
    for buffer in module.buffers:
        values = asdict(buffer)
        function = values.pop("function")
        yield f"{function}[{places[function]}]", {**values, "shape": list(buffer.shape)}
        places[function] += 1


def _traced(traced: TracedTensor) -> dict[str, Any]:
    values = {**asdict(traced.tensor), "operator": traced.operator, "function": traced.function}
    return {**values, "shape": list(traced.tensor.shape or ())}


_traced_tensors = _named("traced tensor", lambda m: [(t.tensor.name, _traced(t)) for t in m.trace])


def _trace(left: Module, right: Module) -> Iterator[LibraryDifference]:
    if left.trace and right.trace:  # otherwise it is unknown for one of them
        yield from _traced_tensors(left, right)


def _tflm(left: Module, right: Module) -> Iterator[LibraryDifference]:
    if left.tflm and right.tflm and left.tflm != right.tflm:
        text = change(f"TensorFlow Lite Micro of {left.tflm}", right.tflm)
        yield LibraryDifference(left.name, "numbers", "", left.tflm, right.tflm, text)


def _extensions(left: Module, right: Module) -> Iterator[LibraryDifference]:
    for name in sorted({*left.extensions, *right.extensions}):
        before, after = left.extensions.get(name), right.extensions.get(name)
        if before != after or type(before) is not type(after):
            words = [None if value is None else quoted(str(value)) for value in (before, after)]
            yield LibraryDifference(left.name, "extension", name, before, after, change(*words))


def _dependency(item: ExternalDependency) -> dict[str, Any]:
    known = {key: getattr(item, key) for key in ("short_name", "url", "url_type", "version_spec")}
    return {**known, **{field.place[1:]: field.value for field in item.unknown}}


def _unknown(
    module: str | None, left: Iterable[UnknownField], right: Iterable[UnknownField]
) -> Iterator[LibraryDifference]:
    """Yield the differences in fields that the format does not define; long values are cut in the text."""
    for place, first, second in _entries(*({field.place: field.value for field in side} for side in (left, right))):
        short = [value if len(value) <= _VALUE else f"{value[:_VALUE]}..." for value in (first, second) if value]
        text = change(*short) if len(short) == 2 else _only(first)
        yield LibraryDifference(module, "unknown field", place, first, second, text)


_storage_ids = _named("storage", lambda m: [(f"id {entry.storage_id}", asdict(entry)) for entry in m.storage])


def _storage(left: Module, right: Module) -> Iterator[LibraryDifference]:
    if (left.graph_json is None) == (right.graph_json is None):  # otherwise the graph is the difference
        yield from _storage_ids(left, right)


_PARTS: tuple[_Part, ...] = (
    _single("style", attrgetter("style")),
    _single("executor", attrgetter("executor")),
    _single("interface", attrgetter("interface"), optional=True),
    _single("target", lambda m: sorted(target.text.strip() for target in m.targets), " and ".join),
    _target_devices,
    _tensors,
    _named("argument", _buffers),
    _single("device", lambda m: list(m.devices), lambda names: ", ".join(names) or None),
    _single("npu", lambda m: None if m.npu is None else asdict(m.npu), _npu),
    _named("context", lambda m: [(f"{c.device_type} {c.device_id}", asdict(c)) for c in m.contexts]),
    _memory,
    _named("pool", lambda m: [(pool.name, asdict(pool)) for pool in m.pools]),
    _storage,
    _named("operator", lambda m: [(f.name, dict(f.workspace)) for f in m.operator_functions], _workspaces),
    _trace,
    _single("hook", attrgetter("hook"), lambda hook: "called before each operator" if hook else None),
    _tflm,
    _extensions,
    graph_differences,
    lambda left, right: parameter_differences(left.name, left.params, right.params),
    code_differences,
    _named("dependency", lambda m: [(item.short_name, _dependency(item)) for item in m.external_dependencies]),
    lambda left, right: _unknown(left.name, left.unknown, right.unknown),
)


# Notes ---------------------------------------------------------------------------------------------------------------


def _notes(left: Module, right: Module) -> Iterator[str]:
    for what, first, second in (
        ("exported", left.export_datetime, right.export_datetime),
        ("SHA-256 of the model file", left.model_id, right.model_id),
    ):
        if first != second and first and second:
            yield f"{left.name}: {what} {first} -> {second}"
    if left.source_text != right.source_text:
        yield f"{left.name}: the text of the program before code generation differs"
    if left.tir != right.tir:
        yield f"{left.name}: the text of the operator before code generation differs"
    for what, key in (("the inputs", "inputs"), ("the outputs", "outputs"), ("memory sizes", "main")):
        if bool(getattr(left, key)) != bool(getattr(right, key)):
            yield f"{left.name}: {what} are known only in the {'first' if getattr(left, key) else 'second'}"
