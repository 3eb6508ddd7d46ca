"""Find symbols that two modules define, and rename them if that is safe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from mlfbuild.archive.merge.parts import MergedModule, SymbolTable, source_text
from mlfbuild.c_analysis import HEADER_SUFFIXES, OBJECT_SUFFIXES, TEXT_SUFFIXES, Symbols, string_value, tokens
from mlfbuild.library import LINKED_PARAMETERS, MODULE_CONTEXT, SYSTEM_LIBRARY, symbol_prefix

_CPLUSPLUS = ("TVM's C++ runtime looks it up by that name", "export one of them for the C runtime (crt)")
_FIXED = {
    LINKED_PARAMETERS: ("TVM's graph executor looks it up by that name", "export one of them without link-params"),
    "get_c_metadata": _CPLUSPLUS,
    MODULE_CONTEXT: _CPLUSPLUS,
}
"""Symbols that a runtime looks up: the reason why they cannot be renamed, and the hint."""
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class MergeConflict:
    """A symbol that several modules define, and the file of each module, by the module's number."""

    symbol: str
    files: Mapping[int, PurePosixPath]


def conflicts(parts: Sequence[MergedModule], table: SymbolTable) -> list[MergeConflict]:
    """Return the symbols that different files of different modules define, sorted, except those of system libraries.

    Symbols of system libraries are left out, because ``registry`` merges these. A file that several modules share
    defines its symbols once, however many of them have it.
    """
    found: dict[str, dict[int, PurePosixPath]] = {}
    for number in range(len(parts)):
        for path, symbols in table.of_part[number].items():
            for symbol in symbols.defined:
                found.setdefault(symbol, {}).setdefault(number, path)
    return [
        MergeConflict(symbol, files)
        for symbol, files in sorted(found.items())
        # The table has one value for a file that modules share, so the same id means one definition that all of them
        # use.
        if symbol != SYSTEM_LIBRARY and len({(path, id(table.of_part[at][path])) for at, path in files.items()}) > 1
    ]


def resolved(
    parts: Sequence[MergedModule], found: Sequence[MergeConflict], table: SymbolTable
) -> tuple[list[MergedModule], list[dict[str, str]]]:
    """Return ``parts`` without conflicts, and the new names of the symbols of each part.

    The module's name becomes part of a symbol, as in TVM's names, in each module that uses the symbol only internally;
    one other module may keep it. Raises ``CheckFailedError``, with both modules as its place, if two modules need the
    name.
    """
    conflicting = sorted({number for conflict in found for number in conflict.files})
    usages = {number: _Usage(parts[number], table.of_part[number]) for number in conflicting}
    paths = Counter(file.path for part in parts for file in part.module.codegen)
    shared = {path for path, count in paths.items() if count > 1}
    # Names of all modules, because the new names must be unique in the image, not only in one module.
    taken = {name for symbols in table.of_part for item in symbols.values() for name in item.defined | item.weak}
    renames: list[dict[str, str]] = [{} for _ in parts]
    for conflict in found:
        kept: list[tuple[int, str]] = []
        for number in conflict.files:
            new = new_name(conflict.symbol, parts[number].module.name)
            reason = _why_kept(conflict, new, usages[number], taken)
            if not reason and conflict.files[number] in shared:
                reason = f"other modules share codegen/{conflict.files[number]}"
            if reason:
                kept.append((number, reason))
            else:
                renames[number][_identifier(conflict.symbol)] = new
                taken.add(new)
        _check_kept(conflict, kept, parts)
    return [_renamed(part, renames[number]) for number, part in enumerate(parts)], renames


def _check_kept(conflict: MergeConflict, kept: Sequence[tuple[int, str]], parts: Sequence[MergedModule]) -> None:
    if len(kept) < 2:
        return
    (first, reason), (second, _) = kept[:2]
    raise parts[first].refused(
        parts[second],
        "merge-symbol-conflict",
        f"both define {conflict.symbol}, in codegen/{conflict.files[first]} and codegen/{conflict.files[second]}, and "
        f"it cannot be renamed because {reason}",
        _hint(conflict),
    )


def _hint(conflict: MergeConflict) -> str:
    if conflict.symbol in _FIXED:
        return _FIXED[conflict.symbol][1]
    if any(path.suffix in OBJECT_SUFFIXES for path in conflict.files.values()):
        return "export one of them with the target c instead of llvm, or under another module name"
    return "export one of them again with its module's name in its functions (mod_name of the partitioner)"


def new_name(symbol: str, module: str) -> str:
    """Return the new name of ``symbol``: ``tvmgen_default_cmsis_nn_main_0`` becomes ``tvmgen_kws_cmsis_nn_main_0``.

    ``__tvm_main__`` becomes ``tvmgen_<module>___tvm_main__``, TVM's name for it with the AOT executor.
    """
    plain = _identifier(symbol)
    for prefix in ("tvmgen_default_", "tvmgen_"):
        plain = plain.removeprefix(prefix)
    return f"{symbol_prefix(module)}_{plain}"


def _identifier(symbol: str) -> str:
    """Return the name in ``space::name()``."""
    return symbol.removesuffix("()").rpartition("::")[2]


# Whether a module uses a name only internally -------------------------------------------------------------------------


class _Usage:
    """The uses of names in the files of one module."""

    def __init__(self, part: MergedModule, symbols: Mapping[PurePosixPath, Symbols]) -> None:
        self.part = part
        self.headers: set[str] = set()  # words of header files
        self.directives: set[str] = set()
        self.strings: set[str] = set()
        self.members: set[str] = set()  # names after . or ->
        self.identifiers: set[str] = set()
        for file in part.of_kind(*TEXT_SUFFIXES):
            self._read(source_text(file, part.archive), header=file.path.suffix in HEADER_SUFFIXES)
        objects = [symbols[file.path] for file in part.of_kind(*OBJECT_SUFFIXES)]
        self.objects = {name for item in objects for name in item.defined | item.weak | item.declared}
        graph = part.module.graph_json
        self.graph = set(_WORD.findall(bytes(graph).decode("latin-1"))) if graph is not None else set()

    def _read(self, text: str, *, header: bool) -> None:
        last = ""
        for token in tokens(text):
            if token.kind == "identifier":
                self.identifiers.add(token.text)
                if header:
                    self.headers.add(token.text)
                if last in {".", "->"}:
                    self.members.add(token.text)
            elif token.kind == "directive":
                self.directives.update(_WORD.findall(token.text))
            elif token.kind == "string":
                self.strings.update(_WORD.findall(string_value(token.text)))
            last = token.text


def _why_kept(conflict: MergeConflict, new: str, usage: _Usage, taken: Collection[str]) -> str:
    """Return the reason why the module must keep the name; empty if only its sources use the name."""
    name = _identifier(conflict.symbol)
    module = usage.part.module.name
    prefix = symbol_prefix(module)
    reasons = {
        _FIXED[name][0] if name in _FIXED else "": name in _FIXED,
        f"it is the entry function of {module}": name in {f"{prefix}_run", f"{prefix}_get_c_metadata"},
        "it is in a namespace": "::" in conflict.symbol,
        f"an object of {module} defines or calls it": name in usage.objects,
        f"a header of {module} declares it": name in usage.headers,
        f"the graph of {module} calls it by that name": name in usage.graph,
        f"a macro of {module} uses it": name in usage.directives,
        f"the code of {module} looks it up by that name": name in usage.strings,
        f"a member of a struct has that name in {module}": name in usage.members,
        f"the name {new} is taken": new in taken or new in usage.identifiers,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


# Rewriting -----------------------------------------------------------------------------------------------------------


def _renamed(part: MergedModule, names: Mapping[str, str]) -> MergedModule:
    if not names:
        return part

    part = part.with_sources(lambda text: "".join(_pieces(text, names)))
    functions = tuple(
        replace(function, name=names.get(function.name, function.name)) for function in part.module.operator_functions
    )
    return replace(part, module=replace(part.module, operator_functions=functions))


def _pieces(text: str, names: Mapping[str, str]) -> Iterator[str]:
    at = 0
    for token in tokens(text):
        if token.kind == "identifier" and token.text in names:
            yield text[at : token.offset]
            yield names[token.text]
            at = token.end
    yield text[at:]
