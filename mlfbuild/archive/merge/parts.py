"""The modules of all archives to merge, each with the archive that it comes from, and what they share in one image.

``__tvm_module_ctx`` is the pointer to the module in code for TVM's C++ runtime. The loader sets the variable once for a
shared library (``runtime::symbol::tvm_module_ctx``), and each source that calls packed functions by name defines it
(``CodeGenCHost::InitGlobalContext``). In one image the definitions must be the same variable.

If archives have kernel headers of two versions of mlfbuild, each module gets a separate folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from mlfbuild.c_analysis import (
    CXX_SUFFIXES,
    LINKED_SUFFIXES,
    OBJECT_SUFFIXES,
    SOURCE_SUFFIXES,
    Symbols,
    Token,
    c_symbols,
    object_symbols,
    tokens,
)
from mlfbuild.core import CheckFailedError
from mlfbuild.library import (
    KERNEL_FOLDER,
    MODULE_CONTEXT,
    CodegenFile,
    Content,
    Module,
    is_kernel_header,
    sanitize_name,
)

MAX_TEXT = 64 * 1024 * 1024
"""Largest source, in bytes, that is searched for symbols."""


@dataclass(frozen=True)
class MergedModule:
    """A module, and the name of its archive."""

    archive: str
    module: Module

    @property
    def shown(self) -> str:
        """The module and its archive, for errors."""
        return f"module {self.module.name} of {self.archive}"

    def of_kind(self, *suffixes: str) -> list[CodegenFile]:
        """Return the module's generated files that have one of ``suffixes``."""
        return [file for file in self.module.codegen if file.path.suffix in suffixes]

    def with_codegen(self, change: Callable[[CodegenFile], CodegenFile | None]) -> MergedModule:
        """Return the part with ``change`` applied to each generated file; ``None`` removes the file.

        ``change`` must return the same file for the same input, because modules may share files.
        """
        files = (change(file) for file in self.module.codegen)
        return replace(self, module=replace(self.module, codegen=tuple(file for file in files if file is not None)))

    def with_added(self, file: CodegenFile) -> MergedModule:
        """Return this part with the further generated ``file``."""
        return replace(self, module=replace(self.module, codegen=(*self.module.codegen, file)))

    def with_sources(self, edit: Callable[[str], str]) -> MergedModule:
        """Return the part with ``edit`` applied to the text of each C and C++ file; see ``source_text``."""

        def change(file: CodegenFile) -> CodegenFile:
            if file.path.suffix not in SOURCE_SUFFIXES:
                return file
            text = source_text(file, self.archive)
            new = edit(text)
            return file if new == text else CodegenFile(file.path, source_bytes(new))

        return self.with_codegen(change)

    def refused(self, other: MergedModule, code: str, reason: str, hint: str) -> CheckFailedError:
        """Return the error for this part and ``other``, which cannot be in the same archive."""
        return CheckFailedError(code, place=f"{self.shown} and {other.shown}", reason=reason, hint=hint)


def source_text(file: CodegenFile, archive: str) -> str:
    """Return a source file as text with one character per byte; raises ``CheckFailedError`` if it is too large.

    Latin-1 maps each byte to one character and back, so ``source_bytes`` restores every byte that an edit did not
    touch, whatever the encoding of the comments in it.
    """
    if len(file.content) > MAX_TEXT:
        raise CheckFailedError(
            "merge-source-too-large",
            place=f"{archive}: codegen/{file.path}",
            reason=f"is larger than {MAX_TEXT >> 20} MiB, too large to search it for conflicting names",
            hint="export the model again without link-params",
        )
    return file.data.decode("latin-1")


def source_bytes(text: str) -> bytes:
    """Return the bytes of a text from ``source_text``, which may have been edited."""
    return text.encode("latin-1")


class SymbolTable:
    """The symbols of each source and object of all parts, by path.

    A file that several modules share is read once and has the same value in all of them, and files of the table
    ``earlier`` are not read again.
    """

    def __init__(self, parts: Sequence[MergedModule], earlier: SymbolTable | None = None) -> None:
        # A list for each path instead of a dict by content: contents that are read from a file cannot be hashed.
        self.known: dict[PurePosixPath, list[tuple[Content, Symbols]]] = earlier.known if earlier else {}
        self.of_part = [
            {file.path: self._of_file(file, part.archive) for file in part.of_kind(*LINKED_SUFFIXES)} for part in parts
        ]

    def defines(self, number: int, symbol: str) -> bool:
        """Return whether a file of the part ``number`` defines ``symbol``."""
        return any(symbol in symbols.defined for symbols in self.of_part[number].values())

    def _of_file(self, file: CodegenFile, archive: str) -> Symbols:
        same_path = self.known.setdefault(file.path, [])
        for content, symbols in same_path:
            if content == file.content:
                return symbols
        same_path.append((file.content, _symbols(file, archive)))
        return same_path[-1][1]


def _symbols(file: CodegenFile, archive: str) -> Symbols:
    if file.path.suffix in OBJECT_SUFFIXES:
        return object_symbols(file.data, f"{archive}: codegen/{file.path}")
    return c_symbols(source_text(file, archive), cplusplus=file.path.suffix in CXX_SUFFIXES)


_WEAK = "__attribute__((weak)) "
_WEAKENED = re.compile(rf"{re.escape(_WEAK)}(?=void\s{{0,9}}\*\s{{0,9}}{MODULE_CONTEXT}\b)")


def with_one_context(parts: Sequence[MergedModule], table: SymbolTable) -> list[MergedModule]:
    """Return ``parts`` with the variable weak in all sources, so that the linker keeps one definition.

    The parts do not change if at most one of them defines it.
    """
    # A single definition needs no attribute, so archives of one module keep their sources.
    defining = {number for number in range(len(parts)) if table.defines(number, MODULE_CONTEXT)}
    if len(defining) < 2:
        return list(parts)
    return [
        part.with_sources(lambda text: "".join(_weakened(text))) if number in defining else part
        for number, part in enumerate(parts)
    ]


def with_strong_context(part: MergedModule) -> MergedModule:
    """Return ``part``, the only module of an image, with the variable as it was before ``with_one_context``."""
    return part.with_sources(lambda text: _WEAKENED.sub("", text))


def _weakened(text: str) -> Iterator[str]:
    """Yield ``text`` with the attribute before each ``void* __tvm_module_ctx`` that precedes a value or ``;``."""
    at = 0
    before: list[Token] = []  # the last four tokens
    for token in tokens(text):
        # Four tokens, because `extern` or `static` precedes the three of the declaration.
        words = [item.text for item in before[-4:]]
        declared = token.text in {"=", ";"} and words[-3:] == ["void", "*", MODULE_CONTEXT]
        # `extern` defines nothing, and a static variable is another one in each file.
        if declared and words[0] not in {"extern", "static"}:
            # Before `void`, which is the third token from the end, so that the attribute applies to the whole
            # declaration.
            yield text[at : before[-3].offset]
            yield _WEAK
            at = before[-3].offset
        before = [*before[-3:], token]
    yield text[at:]


def with_own_kernels(parts: Sequence[MergedModule]) -> list[MergedModule]:
    """Return ``parts`` so that no kernel header has two contents.

    If two modules have different headers of one name, the folder becomes ``mlfbuild_<module>`` in all modules that have
    it, and their sources include it by that name. Equal headers stay in the folder that the modules share.
    """
    contents: dict[PurePosixPath, Content] = {}
    # A folder with one clashing header moves as a whole: kernels include each other by the folder's name.
    clashing = {
        file.path.parent
        for part in parts
        for file in _kernels(part)
        if contents.setdefault(file.path, file.content) != file.content
    }
    taken = {path.parent.name for path in contents}
    return [_renamed(part, clashing, taken) for part in parts]


def _kernels(part: MergedModule) -> list[CodegenFile]:
    return [file for file in part.module.codegen if is_kernel_header(file.path)]


def _renamed(part: MergedModule, clashing: set[PurePosixPath], taken: set[str]) -> MergedModule:
    folders = {file.path.parent for file in _kernels(part)} & clashing
    return _moved_to(part, {folder: _new_name(part.module.name, taken) for folder in sorted(folders)})


def with_usual_kernels(part: MergedModule) -> MergedModule:
    """Return ``part``, the only module of an archive, with its kernels in the folder that such archives have."""
    folders = {file.path.parent for file in _kernels(part)}
    own = {folder for folder in folders if folder.name.startswith(f"{KERNEL_FOLDER}_")}
    # Two renamed folders with one parent cannot both get the usual name.
    alone = own == folders and len({folder.parent for folder in own}) == len(own)
    return _moved_to(part, dict.fromkeys(own, KERNEL_FOLDER) if alone else {})


def _moved_to(part: MergedModule, names: Mapping[PurePosixPath, str]) -> MergedModule:
    """Return ``part`` with folders of kernels renamed, and included by the new names."""
    if not names:
        return part

    def edit(text: str) -> str:
        for folder, name in names.items():
            # Quoted includes only, at the beginning of a line: kernels are in a folder next to the sources.
            text = re.sub(rf'^(\s*#\s*include\s*"){folder.name}/', rf"\g<1>{name}/", text, flags=re.MULTILINE)
        return text

    def moved(file: CodegenFile) -> CodegenFile:
        folder = file.path.parent
        path = folder.with_name(names.get(folder, folder.name)) / file.path.name
        return CodegenFile(path, file.content)

    return part.with_sources(edit).with_codegen(moved)


def _new_name(module: str, taken: set[str]) -> str:
    """Return a folder name for ``module`` that is not ``taken``, and take it."""
    first = f"{KERNEL_FOLDER}_{sanitize_name(module).lower()}"
    # Two modules can have one name in C, such as a-b and a_b.
    # One candidate more than names that may be taken, so that one is free.
    names = (first, *(f"{first}_{number}" for number in range(2, len(taken) + 3)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name
