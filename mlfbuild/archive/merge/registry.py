"""Function registries: TVM's tables of functions by name, of which an image can have only one.

A module that was exported with ``system-lib`` has ``TVMSystemLibEntryPoint`` with the table of its functions
(``codegen_c_host.cc``, ``source_module.cc``). Merging removes the tables from the files of the modules, which are then
like those without ``system-lib``, and writes one table into a new file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from mlfbuild.archive.merge.parts import MergedModule, SymbolTable, source_bytes, source_text
from mlfbuild.c_analysis import OBJECT_SUFFIXES, Symbols, Token, string_value, tokens
from mlfbuild.library import LINKED_PARAMETERS, MERGED_SYSTEM_LIBRARY, STANDALONE_CRT, SYSTEM_LIBRARY, CodegenFile
from mlfbuild.library.cgen import LICENCE, REGISTRY_HEADER, registry_source


@dataclass(frozen=True)
class SystemLibrary:
    """A file with a system library, and the numbers of the parts that have the file."""

    file: CodegenFile
    owners: tuple[int, ...]
    registry: RegistryTable | None
    """``None`` if the file does not have TVM's form."""


Registered = tuple[SystemLibrary, "RegistryTable"]
"""A file with a system library of TVM's form, and its table."""


def system_libraries(parts: Sequence[MergedModule], table: SymbolTable) -> list[SystemLibrary]:
    """Return the system libraries of ``parts``."""
    found: dict[tuple[PurePosixPath, int], list[int]] = {}
    for number in range(len(parts)):
        for path, symbols in table.of_part[number].items():
            if SYSTEM_LIBRARY in symbols.defined:
                found.setdefault((path, id(symbols)), []).append(number)
    libraries = []
    for (path, _), owners in found.items():
        file = next(file for file in parts[owners[0]].module.codegen if file.path == path)
        libraries.append(SystemLibrary(file, tuple(owners), _registry(file, parts, owners, table)))
    return libraries


def _registry(
    file: CodegenFile, parts: Sequence[MergedModule], owners: Sequence[int], table: SymbolTable
) -> RegistryTable | None:
    if file.path.suffix not in OBJECT_SUFFIXES:
        return parse_registry(source_text(file, parts[owners[0]].archive))
    symbols = table.of_part[owners[0]]
    others = [item for path, item in symbols.items() if path != file.path]
    if symbols[file.path].weak - {name for item in others for name in item.weak | item.defined}:
        return None  # the object has symbols that other objects of the module need
    return parse_object_registry(file.data, symbols[file.path])


def check_system_libraries(
    libraries: Sequence[SystemLibrary], parts: Sequence[MergedModule], table: SymbolTable
) -> None:
    """Check that the system libraries can be merged, and are for the same C runtime as the other modules.

    Raises ``CheckFailedError``, with both modules as its place.
    """
    if len(libraries) > 1:
        _check_form(libraries, parts)
    _check_releases(libraries, parts)
    if len(libraries) > 1:
        _check_linked_parameters(libraries, parts, table)


def _check_form(libraries: Sequence[SystemLibrary], parts: Sequence[MergedModule]) -> None:
    for library in libraries:
        if library.registry is None:
            other = next(other for other in libraries if other is not library)
            again = "with the target c instead of llvm" if library.file.path.suffix in OBJECT_SUFFIXES else "again"
            raise parts[library.owners[0]].refused(
                parts[other.owners[-1]],
                "merge-system-library-form",
                f"both define {SYSTEM_LIBRARY}, and codegen/{library.file.path} of the first does not have the form "
                "that TVM writes, so the two tables of functions cannot be merged",
                f"export it {again}, or without system-lib",
            )


def _check_linked_parameters(
    libraries: Sequence[SystemLibrary], parts: Sequence[MergedModule], table: SymbolTable
) -> None:
    graphs = [number for library in libraries for number in library.owners if parts[number].module.executor == "graph"]
    for number in sorted(set(graphs)):
        if table.defines(number, LINKED_PARAMETERS):
            for other in sorted(set(graphs) - {number}):
                raise parts[number].refused(
                    parts[other],
                    "merge-linked-parameters",
                    "the first has linked parameters, and the second would use them too, because TVM's graph executor "
                    f"gets them by storage id from {LINKED_PARAMETERS}",
                    "export the first without link-params, or for the aot executor",
                )


def _check_releases(libraries: Sequence[SystemLibrary], parts: Sequence[MergedModule]) -> None:
    old = next((library for library in libraries if library.registry and library.registry.count_bytes == 1), None)
    if old is None:
        return
    first = parts[old.owners[0]]
    hint = "export both with the same release of TVM"
    for library in libraries:
        if library.registry is not None and library.registry.count_bytes != 1:
            raise first.refused(
                parts[library.owners[-1]],
                "merge-system-library-releases",
                "the first has the system library of TVM 0.8 or before, the second that of a later release, and no C "
                "runtime reads both",
                hint,
            )
    for part in parts:
        dependencies = part.module.external_dependencies
        version = next((each.version_spec for each in dependencies if each.short_name == STANDALONE_CRT), None)
        if version is not None and part.archive != first.archive:
            raise first.refused(
                part,
                "merge-system-library-releases",
                "the first has the system library of TVM 0.8 or before, and the second requires the C runtime of TVM "
                f"{version} ({STANDALONE_CRT}), which does not read it",
                hint,
            )


def without_registries(parts: Sequence[MergedModule], libraries: Sequence[Registered]) -> list[MergedModule]:
    """Return ``parts`` without the registries of ``libraries``, and without files that contained only a registry."""
    rests: dict[tuple[int, PurePosixPath], CodegenFile | None] = {}
    for library, registry in libraries:
        rest = None if registry.rest_is_empty else CodegenFile(library.file.path, source_bytes(registry.rest))
        rests |= {(number, library.file.path): rest for number in library.owners}

    def cut(number: int, part: MergedModule) -> MergedModule:
        rest = part.with_codegen(lambda file: rests.get((number, file.path), file))
        return _with_numbered_objects(rest) if number in without_object else rest

    without_object = {number for number, path in rests if path.suffix in OBJECT_SUFFIXES}
    return [cut(number, part) for number, part in enumerate(parts)]


def _with_numbered_objects(part: MergedModule) -> MergedModule:
    """Return ``part`` with its objects ``<module>_lib<n>.o`` numbered from 0 in each folder, after one was removed."""
    # A gap in the numbers would look like a lost file (MLF102).
    name = re.compile(rf"{re.escape(part.module.name)}_lib([0-9]{{1,9}})\.o", re.ASCII)
    numbered = [(int(found[1]), file) for file in part.module.codegen if (found := name.fullmatch(file.path.name))]
    numbered.sort(key=lambda pair: (str(pair[1].path.parent), pair[0]))
    paths: dict[PurePosixPath, PurePosixPath] = {}
    for _, group in groupby(numbered, lambda pair: pair[1].path.parent):
        paths |= {
            file.path: file.path.with_name(f"{part.module.name}_lib{number}{file.path.suffix}")
            for number, (_, file) in enumerate(group)
        }
    return part.with_codegen(lambda file: CodegenFile(paths.get(file.path, file.path), file.content))


def with_merged_library(
    parts: Sequence[MergedModule], libraries: Sequence[Registered], renames: Sequence[Mapping[str, str]]
) -> list[MergedModule]:
    """Return ``parts`` with one system library, in a file that all owners of ``libraries`` share.

    ``renames`` has the new names of C functions of each part.
    """
    functions: dict[str, str] = {}
    for library, registry in libraries:
        for name, function in registry.functions:
            new = next(
                (renames[number][function] for number in library.owners if function in renames[number]), function
            )
            # Most functions are registered under their own names, and follow a renaming; a name that was chosen stays.
            key = new if name == function else name
            if functions.setdefault(key, new) != new:
                others = (item for item, table in libraries if item is not library and key in dict(table.functions))
                other = next(others, library)
                raise parts[other.owners[0]].refused(
                    parts[library.owners[-1]],
                    "merge-function-twice",
                    f"both register a function {key}",
                    "export one of them again under another module name",
                )
    owners = sorted({number for library, _ in libraries for number in library.owners})
    first, table = libraries[0]
    # The number of functions is a field of one or two bytes before their names.
    limit = 256**table.count_bytes - 1
    if len(functions) > limit:
        raise parts[first.owners[0]].refused(
            parts[libraries[-1][0].owners[-1]],
            "merge-too-many-functions",
            f"all archives together register {len(functions):,} functions, but a system library of their release of "
            f"TVM holds at most {limit:,}",
            "merge fewer archives",
        )
    source = registry_source(functions.items(), table.count_bytes, [parts[number].module.name for number in owners])
    merged = CodegenFile(
        first.file.path.parent.parent / "src" / MERGED_SYSTEM_LIBRARY, source_bytes(f"{LICENCE}{source}")
    )
    return [part.with_added(merged) if number in owners else part for number, part in enumerate(parts)]


_HELPERS = "__aeabi_"  # functions of the compiler's runtime library for Arm
_ARRAY = "static TVMBackendPackedCFunc _tvm_func_array [ ] = {"
_REGISTRY = "} ; static const TVMFuncRegistry _tvm_func_registry = {"
_MODULE = ", _tvm_func_array , } ; static const TVMModule _tvm_system_lib = { & _tvm_func_registry , } ;"
_ENTRY = f"const TVMModule * {SYSTEM_LIBRARY} ( void ) {{ return & _tvm_system_lib ; }}"


@dataclass(frozen=True)
class RegistryTable:
    """The function registry in one file."""

    functions: tuple[tuple[str, str], ...]
    """(registered name, C function)."""
    count_bytes: int
    """Size of the number of functions before the names: 1 byte up to TVM 0.8, 2 bytes since."""
    rest: str
    """The file's text without the table."""

    @property
    def rest_is_empty(self) -> bool:
        """Whether the file contains only the table."""
        return next(tokens(self.rest), None) is None


def parse_registry(text: str) -> RegistryTable | None:
    """Return the table in the C source ``text``, or ``None`` if it does not have exactly TVM's form.

    Other text inside the table makes the result ``None``, because it would be lost.
    """
    words = list(tokens(text))
    start = next(
        (at for at, token in enumerate(words) if token.kind == "directive" and REGISTRY_HEADER in token.text), None
    )
    return None if start is None else _Parser(text, words, start).registry()


def parse_object_registry(data: bytes, symbols: Symbols) -> RegistryTable | None:
    """Return the table in an object file that contains only a table (``TVMMetadataMod`` of TVM's LLVM code generator).

    Such an object references the functions of its table, defines one symbol, and has one string with the number and the
    names of these functions. Returns ``None`` for other objects, and for tables of TVM 0.8.
    """
    wanted = {name for name in symbols.declared if not name.startswith(_HELPERS)}
    if symbols.defined != {SYSTEM_LIBRARY} or not 0 < len(wanted) < 1 << 16:
        return None
    longest = max(len(name) for name in wanted)
    for count in re.finditer(re.escape(len(wanted).to_bytes(2, "little")), data):
        names = _names_at(data, count.end(), wanted, longest)
        if len(names) == len(wanted):
            return RegistryTable(tuple((name, name) for name in names), 2, "")
    return None


def _names_at(data: bytes, at: int, wanted: Collection[str], longest: int) -> list[str]:
    """Return the different names of ``wanted`` in the sequence of NUL-terminated names at ``at``."""
    names: dict[str, None] = {}
    while (end := data.find(b"\0", at, at + longest + 1)) > at:
        name = data[at:end].decode("latin-1")
        if name not in wanted or name in names:
            break
        names[name] = None
        at = end + 1
    return list(names)


class _Parser:
    def __init__(self, text: str, words: Sequence[Token], start: int) -> None:
        self._text = text
        self._start = words[start].offset
        # Lines before each prototype make it extern "C" for C++.
        self._words = [token for token in words[start + 1 :] if not _is_cplusplus_only(token)]
        self._at = 0

    def registry(self) -> RegistryTable | None:
        self._skip_prototypes()
        if not self._take(_ARRAY):
            return None
        functions = self._functions()
        if not self._take(_REGISTRY):
            return None
        names = self._names(len(functions))
        if names is None or not self._take(_MODULE) or not self._take(_ENTRY):
            return None
        end = self._words[self._at - 1].end
        rest = self._text[: self._start] + self._text[end:].removeprefix("\n")
        return RegistryTable(tuple(zip(names[1], functions, strict=True)), names[0], rest)

    def _take(self, expected: str) -> bool:
        """Skip the tokens ``expected``; returns whether they came next."""
        wanted = expected.split()
        found = [token.text for token in self._words[self._at : self._at + len(wanted)]]
        self._at += len(wanted)
        return found == wanted

    def _text_at(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._words[at].text if at < len(self._words) else ""

    def _skip_prototypes(self) -> None:
        """Skip any number of ``TVM_DLL int32_t name(...);``."""
        while True:
            at = self._at
            if (self._text_at(), self._text_at(1)) == ("extern", '"C"'):
                at += 2
            texts = [token.text for token in self._words[at : at + 4]]
            if texts[:2] != ["TVM_DLL", "int32_t"] or texts[3:] != ["("]:
                return
            while at < len(self._words) and self._words[at].text not in {";", "{"}:
                at += 1
            if at == len(self._words) or self._words[at].text != ";":
                return
            self._at = at + 1

    def _functions(self) -> list[str]:
        """Return the names in any number of ``(TVMBackendPackedCFunc)name,``."""
        names: list[str] = []
        while [self._text_at(ahead) for ahead in (0, 1, 2, 4)] == ["(", "TVMBackendPackedCFunc", ")", ","]:
            if self._words[self._at + 3].kind != "identifier":
                break
            names.append(self._text_at(3))
            self._at += 5
        return names

    def _names(self, count: int) -> tuple[int, list[str]] | None:
        """Return the width of the count and the names in the next string, or ``None`` if it does not have ``count``."""
        literals: list[str] = []
        while self._text_at().startswith('"'):
            literals.append(string_value(self._text_at()))
            self._at += 1
        value = "".join(literals)
        # A count of one byte, as in TVM 0.8, cannot pass for two: the second would be a letter, and the count far too
        # large.
        for width in (2, 1):
            names = value[width:].split("\0")
            number = int.from_bytes(value[:width].encode("latin-1", "replace"), "little")
            if number == count and len(names) == count + 1 and names[-1] == "" and all(names[:-1]):
                return width, names[:-1]
        return None


def _is_cplusplus_only(token: Token) -> bool:
    return token.kind == "directive" and token.text.split() in (["#ifdef", "__cplusplus"], ["#endif"])
