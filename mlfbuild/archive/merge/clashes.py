"""Global names that two modules define: found, and where it is safe, told apart by a new name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from mlfbuild.archive.merge.parts import Part, SymbolTable, source_text
from mlfbuild.c_analysis import HEADER_SUFFIXES, OBJECT_SUFFIXES, TEXT_SUFFIXES, Symbols, string_value, tokens
from mlfbuild.library import LINKED_PARAMETERS, MODULE_CONTEXT, SYSTEM_LIBRARY, symbol_prefix

_CPLUSPLUS = ("TVM's C++ runtime looks for it by that name", "export one of them for the C runtime (crt)")
_FIXED = {
    LINKED_PARAMETERS: ("TVM's graph executor looks for it by that name", "export one of them without link-params"),
    "get_c_metadata": _CPLUSPLUS,
    MODULE_CONTEXT: _CPLUSPLUS,
}
"""Names that a runtime looks for: why they cannot be others, and what to do instead."""
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Clash:
    """A symbol that several modules define, and the file of each, by the module's number."""

    symbol: str
    files: Mapping[int, PurePosixPath]


def clashes(parts: Sequence[Part], table: SymbolTable) -> list[Clash]:
    """Return the symbols that different files of different modules define, but for the system libraries', sorted."""
    found: dict[str, dict[int, PurePosixPath]] = {}
    for number in range(len(parts)):
        for path, symbols in table.of_part[number].items():
            for symbol in symbols.defined:
                found.setdefault(symbol, {}).setdefault(number, path)
    return [
        Clash(symbol, files)
        for symbol, files in sorted(found.items())
        if symbol != SYSTEM_LIBRARY and len({(path, id(table.of_part[at][path])) for at, path in files.items()}) > 1
    ]


def resolved(
    parts: Sequence[Part], found: Sequence[Clash], table: SymbolTable
) -> tuple[list[Part], list[dict[str, str]]]:
    """Return ``parts`` without clashes, and for each part the new names that its symbols got.

    A name gets the module's, as TVM's own names have it, in every module that uses it for itself alone; one module may
    keep it. Raises ``CheckFailedError``, which names both archives and modules, the symbol and the reason, where two
    modules need the name.
    """
    clashing = sorted({number for clash in found for number in clash.files})
    usages = {number: _Usage(parts[number], table.of_part[number]) for number in clashing}
    paths = Counter(file.path for part in parts for file in part.module.codegen)
    shared = {path for path, count in paths.items() if count > 1}
    taken = {name for symbols in table.of_part for item in symbols.values() for name in item.defined | item.weak}
    renames: list[dict[str, str]] = [{} for _ in parts]
    for clash in found:
        kept: list[tuple[int, str]] = []
        for number in clash.files:
            new = new_name(clash.symbol, parts[number].module.name)
            reason = _why_kept(clash, new, usages[number], taken)
            if not reason and clash.files[number] in shared:
                reason = f"other modules share codegen/{clash.files[number]}"
            if reason:
                kept.append((number, reason))
            else:
                renames[number][_identifier(clash.symbol)] = new
                taken.add(new)
        _check_kept(clash, kept, parts)
    return [_renamed(part, renames[number]) for number, part in enumerate(parts)], renames


def _check_kept(clash: Clash, kept: Sequence[tuple[int, str]], parts: Sequence[Part]) -> None:
    if len(kept) < 2:
        return
    (first, reason), (second, _) = kept[:2]
    raise parts[first].refused(
        parts[second],
        f"both define {clash.symbol}, in codegen/{clash.files[first]} and codegen/{clash.files[second]}, and it cannot "
        f"be renamed: {reason}; {_advice(clash)}",
    )


def _advice(clash: Clash) -> str:
    if clash.symbol in _FIXED:
        return _FIXED[clash.symbol][1]
    if _has_object(clash):
        return "export one of them with the target c instead of llvm, or under another module name"
    return "export one of them again so that its functions bear its own module's name (mod_name of the partitioner)"


def _has_object(clash: Clash) -> bool:
    return any(path.suffix in OBJECT_SUFFIXES for path in clash.files.values())


def new_name(symbol: str, module: str) -> str:
    """Return the name that ``symbol`` gets: ``tvmgen_default_cmsis_nn_main_0`` becomes ``tvmgen_kws_cmsis_nn_main_0``.

    ``__tvm_main__`` becomes ``tvmgen_<module>___tvm_main__``, as TVM mangles it for the AOT executor.
    """
    plain = _identifier(symbol)
    for prefix in ("tvmgen_default_", "tvmgen_"):
        plain = plain.removeprefix(prefix)
    return f"{symbol_prefix(module)}_{plain}"


def _identifier(symbol: str) -> str:
    """Return the name in ``space::name()``."""
    return symbol.removesuffix("()").rpartition("::")[2]


# Whether a name is a module's own business ---------------------------------------------------------------------------


class _Usage:
    """How the files of one module use names."""

    def __init__(self, part: Part, symbols: Mapping[PurePosixPath, Symbols]) -> None:
        self.part = part
        self.headers: set[str] = set()  # words of header files
        self.directives: set[str] = set()
        self.strings: set[str] = set()
        self.members: set[str] = set()  # names behind . or ->
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


def _why_kept(clash: Clash, new: str, usage: _Usage, taken: Collection[str]) -> str:
    """Return why the module must keep the name, empty where nothing outside of its sources knows it."""
    name = _identifier(clash.symbol)
    module = usage.part.module.name
    prefix = symbol_prefix(module)
    reasons = {
        _FIXED[name][0] if name in _FIXED else "": name in _FIXED,
        f"it is the entry function of {module}": name in {f"{prefix}_run", f"{prefix}_get_c_metadata"},
        "it stands in a namespace": "::" in clash.symbol,
        f"an object of {module} defines or calls it": name in usage.objects,
        f"a header of {module} declares it": name in usage.headers,
        f"the graph of {module} calls it by that name": name in usage.graph,
        f"a macro of {module} names it": name in usage.directives,
        f"the code of {module} looks it up by that name": name in usage.strings,
        f"a member of a struct has that name in {module}": name in usage.members,
        f"the name {new} is taken": new in taken or new in usage.identifiers,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


# Rewriting -----------------------------------------------------------------------------------------------------------


def _renamed(part: Part, names: Mapping[str, str]) -> Part:
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
