"""Read the code of a module: the functions in C sources, and the symbols of compiled objects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import PurePosixPath

from mlfbuild.c_analysis import (
    CXX_SUFFIXES,
    OBJECT_SUFFIXES,
    SOURCE_SUFFIXES,
    Symbols,
    c_symbols,
    object_symbols,
    tokens,
)
from mlfbuild.core import CheckFailedError, printable
from mlfbuild.executor.runtime import provided_names
from mlfbuild.library import CodegenFile, Module, known_library, requirements_of

# TVM writes each head on one line that starts with its type. Calls are indented, so they cannot match.
_FUNCTION = re.compile(r"^(?:TVM_DLL\s+)?int32_t\s+(\w+)\s*\([^;{]*\)\s*\{", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TVM_NAME = re.compile(r"\b((?:TVM[A-Z][a-z]|tvmgen_)\w*)\s*\(")
"""A call or declaration of a function of the runtime, or of one that TVM generated."""
_BEFORE_CALLS = frozenset({"return", "else", "do", "case"})
"""Words that can precede a call; a name after any other word is a declaration."""
_DRIVERS = "TVMDevice"
"""The prefix of driver functions, which firmware for the device defines."""


class Kernels:
    """The C and C++ sources and the compiled objects of a module; each is read on first use.

    Contents stay in memory as long as this object, so make one for each module and use it for all questions about it.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.sources = tuple(file for file in module.codegen if file.path.suffix in SOURCE_SUFFIXES)
        self.objects = tuple(file for file in module.codegen if file.path.suffix in OBJECT_SUFFIXES)

    @property
    def files(self) -> tuple[CodegenFile, ...]:
        """The files to link."""
        return (*self.sources, *self.objects)

    @cached_property
    def texts(self) -> Mapping[PurePosixPath, str]:
        """The sources by path."""
        return {file.path: bytes(file.content).decode(errors="replace") for file in self.sources}

    @cached_property
    def symbols(self) -> Mapping[PurePosixPath, Symbols]:
        """The symbols of each object by path; raises ``InputFileError`` for one that is damaged."""
        return {
            file.path: object_symbols(file.data, f"{self.module.name}: codegen/{file.path}") for file in self.objects
        }

    def functions(self) -> Iterator[tuple[str | None, str]]:
        """Yield (name, text) of each function in the sources that has the form that TVM writes.

        For the text before the first function of a file, the name is ``None``.
        """
        for text in self.texts.values():
            found = list(_FUNCTION.finditer(text))
            starts = [each.start() for each in found]
            yield None, text[: starts[0] if starts else len(text)]
            ends = [*starts[1:], len(text)]
            yield from ((each[1], text[each.start() : end]) for each, end in zip(found, ends, strict=False))

    def defines(self, name: str) -> bool:
        """Return whether a source or an object defines the global symbol ``name``.

        Weak definitions count. Raises ``InputFileError`` for a damaged object.
        """
        # The cheap search first: `_defined` reads every token of every source.
        return name in self._functions or name in self._defined

    @cached_property
    def _functions(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.functions() if name is not None)

    @cached_property
    def _defined(self) -> frozenset[str]:
        return frozenset[str]().union(*(each.defined | each.weak for each in self._all_symbols))

    @cached_property
    def _all_symbols(self) -> tuple[Symbols, ...]:
        """The symbols of all files; slow, because it reads every token."""
        found = (c_symbols(text, cplusplus=path.suffix in CXX_SUFFIXES) for path, text in self.texts.items())
        return (*found, *self.symbols.values())

    def require(self, name: str, caller: str) -> None:
        """Raise ``CheckFailedError`` if no file of the module defines ``name``, which ``caller`` calls.

        ``caller`` is for the message. A ``name`` that is not a C identifier is never defined. Raises ``InputFileError``
        for a damaged object.
        """
        if not _IDENTIFIER.fullmatch(name) or not self.defines(name):
            raise CheckFailedError(
                "function-not-defined",
                place=self.module.name,
                reason=f"{caller} calls {printable(name)}, which no code in the archive defines",
                hint="use an archive that contains all generated code",
            )

    def require_called(self) -> None:
        """Raise ``CheckFailedError`` if code calls a function of TVM that neither it nor the runtime defines.

        Functions of device drivers and of required libraries are left out, because the firmware defines them. Raises
        ``InputFileError`` for a damaged object.
        """
        for path, name in (*self._calls_of_sources(), *self._calls_of_objects()):
            if name not in provided_names() and not name.startswith(self._others) and not self._is_known(name):
                raise CheckFailedError(
                    "runtime-function-not-defined",
                    place=self.module.name,
                    reason=f"codegen/{path} calls {printable(name)}, which neither the archive nor mlfbuild's runtime "
                    "defines",
                    hint="export it for TVM's C runtime (crt) with unpacked-api or direct calls",
                )

    @cached_property
    def _others(self) -> tuple[str, ...]:
        """The prefixes of functions of drivers and of the libraries that the code requires."""
        known = (known_library(requirement.name) for requirement in requirements_of(self.module))
        return (_DRIVERS, *(prefix for each in known if each is not None for prefix in each.functions))

    def _is_known(self, name: str) -> bool:
        """Return whether a file defines ``name`` as a local or global symbol, or as a macro."""
        # Some generated files define a function of the runtime as a macro, which no symbol shows.
        macro = re.compile(rf"#\s*define\s+{re.escape(name)}\b")
        return (
            self.defines(name)
            or self._in_device_code(name)
            or any(name in each.local for each in self._all_symbols)
            or any(macro.search(text) for text in self.texts.values())
        )

    def _in_device_code(self, name: str) -> bool:
        """Return whether code for another device mentions ``name``; its objects need not be readable here."""
        return any(name.encode() in file.data for file in self.module.device_files)

    def _calls_of_sources(self) -> Iterator[tuple[PurePosixPath, str]]:
        for path, text in self.texts.items():
            # Most sources call only what the runtime provides, and then their tokens need not be read.
            names = set(_TVM_NAME.findall(text)) - provided_names().keys() - self._functions
            if not names:
                continue
            # They may be mere declarations, or words in comments.
            words = [token for token in tokens(text) if token.kind in {"identifier", "punctuation", "number"}]
            for before, word, behind in zip(words, words[1:], words[2:], strict=False):
                is_call = before.kind != "identifier" or before.text in _BEFORE_CALLS
                if is_call and word.text in names and behind.text == "(":
                    yield path, word.text

    def _calls_of_objects(self) -> Iterator[tuple[PurePosixPath, str]]:
        for path, found in self.symbols.items():
            yield from ((path, name) for name in sorted(found.declared) if name.startswith(("TVM", "tvmgen_")))
