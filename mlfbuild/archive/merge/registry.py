"""Parse function registries: TVM's tables of functions by name, of which an image can have only one.

A module that was exported with ``system-lib`` has ``TVMSystemLibEntryPoint`` with the table of its functions
(``codegen_c_host.cc``, ``source_module.cc``). Merging removes the tables from the files of the modules, which are then
like those without ``system-lib``, and writes one table into a new file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mlfbuild.c_analysis import Symbols, Token, string_value, tokens
from mlfbuild.library import SYSTEM_LIBRARY
from mlfbuild.library.cgen import REGISTRY_HEADER

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
