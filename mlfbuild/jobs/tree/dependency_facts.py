"""Facts about a required library that its fragments for all build systems contain."""

from __future__ import annotations

from pathlib import PurePosixPath

from mlfbuild.c_analysis import CXX_SUFFIXES
from mlfbuild.core import sha256
from mlfbuild.library import ResolvedLibrary, chunks

_CONTENT_DIGITS = 16


def content_id(source: ResolvedLibrary) -> str:
    """Return a short hash of everything that determines the compiled library."""
    lines = [f"{path}\0{sha256(chunks(source.files[path]))}" for path in sorted(source.files)]
    lines += [f"{source.sources}", f"{source.include_dirs}", f"{source.compile_options}", f"{source.public_headers}"]
    return sha256("\n".join(lines).encode())[:_CONTENT_DIGITS]


def languages(source: ResolvedLibrary) -> str:
    """Return the languages that ``project()`` of a CMake build must enable for ``source``."""
    suffixes = {PurePosixPath(path).suffix for path in source.sources}
    return " ".join(["C", *(["CXX"] if suffixes & CXX_SUFFIXES else []), *(["ASM"] if suffixes & {".S", ".s"} else [])])


def about(dependency: ResolvedLibrary) -> str:
    """Return one line about ``dependency`` for the head of a fragment."""
    if dependency.package:
        return f"{dependency.name}: the CMake package {dependency.package}, which the firmware has."
    text = f"{dependency.name} {dependency.version}".strip()
    terms = f" ({dependency.license})" if dependency.license else ""
    return "".join(character for character in f"{text}{terms}, required by models." if character.isprintable())
