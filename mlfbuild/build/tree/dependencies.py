"""External dependencies of models in the folder of a target: copies of what is needed, and fragments that build them.

::

    dependencies/<name>.cmake        mlf::dep::<name>, a static library or a package that the firmware has
    dependencies/<name>.mk           the same for GNU Make
    dependencies/<name>.SConscript   the same for SCons, and for RT-Thread
    dependencies/<name>/...          the files, as they lie in the library's own folder
    dependencies/RECORD.json         of all of these

The fragments of models include those of what they need. Nothing in here says ``-mcpu``: as for models, the toolchain
owns flags. Of its own a library has what the project gives it, and no warnings: nobody here can change its code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mlfbuild.build.tree.record import Record
from mlfbuild.build.tree.tree import UnpackResult, remove_tree, write_tree
from mlfbuild.c_analysis import CXX_SUFFIXES
from mlfbuild.core import InputFileError, sha256
from mlfbuild.library import Content, Module, chunks, wishes
from mlfbuild.requirements import Dependency, Package, Source

DEPENDENCIES_FOLDER = "dependencies"
"""Of a target's folder."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.+-]*[a-z0-9+])?")
_PATH = re.compile(r"[A-Za-z0-9_./+ -]+")
_VERSION = re.compile(r"[\w.+<>=~!*, -]+", re.ASCII)
_CONTENT_DIGITS = 16


@dataclass(frozen=True)
class Need:
    """A library that a module needs, as its fragment asks for it."""

    name: str
    version: str
    """Empty where nobody knows."""

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.name} {self.version}".strip()


def needs_of(module: Module) -> tuple[Need, ...]:
    """Return the libraries that ``module`` needs beside its archive; raises ``InputFileError`` for an unusable name."""
    found = dict.fromkeys(Need(wish.name, _shown(wish.version)) for wish in wishes(module))
    for need in found:
        check_dependency_name(need.name)
    return tuple(found)


def _shown(version: str) -> str:
    """Return ``version``, which is the archive's, where every kind of build file can hold it as text."""
    return version if _VERSION.fullmatch(version) else ""


def check_dependency_name(name: str) -> None:
    """Raise ``InputFileError`` where ``name`` cannot be part of a target's name and of a path."""
    if not _NAME.fullmatch(name):
        raise InputFileError(
            "requirement-name-not-buildable",
            place=ascii(name),
            reason="the name of this library, which the archive requires, cannot be the name of a build target",
            hint="use lower-case letters, digits, - and ., and export again",
        )


def write_dependencies(directory: Path, dependencies: Sequence[Dependency]) -> UnpackResult:
    """Make ``directory``, the folder ``dependencies`` of a target, hold what ``dependencies`` are built from.

    Files with the right content keep their time; what is no longer needed goes. Raises ``InputFileError`` for names
    that a build cannot hold, ``ConflictError`` (before anything is written) and ``StorageError``; see ``write_tree``.
    """
    if not dependencies:
        return UnpackResult((), (), remove_tree(directory))
    files = dependency_files(dependencies)
    return write_tree(directory, files, Record.of(files))


def dependency_files(dependencies: Sequence[Dependency]) -> dict[str, Content]:
    """Return the files of the folder ``dependencies``, all but its record: relative path -> content.

    Raises ``InputFileError`` for names that a build cannot hold.
    """
    files: dict[str, Content] = {}
    for dependency in dependencies:
        if isinstance(dependency, Source):
            files |= {f"{dependency.name}/{path}": content for path, content in dependency.files.items()}
        files |= dependency_fragments(dependency)
    return files


def dependency_fragments(dependency: Dependency) -> dict[str, bytes]:
    """Return the fragments of ``dependency``: path in the folder ``dependencies`` -> content.

    Raises ``InputFileError`` for names that a build cannot hold.
    """
    from mlfbuild.build.tree.dependency_cmake import cmake_text  # these need what stands here
    from mlfbuild.build.tree.dependency_make import make_text
    from mlfbuild.build.tree.dependency_scons import scons_text

    name = dependency.name
    check_dependency_name(name)
    if isinstance(dependency, Source):
        _check_paths(dependency)
    return {
        f"{name}.cmake": cmake_text(dependency).encode(),
        f"{name}.mk": make_text(dependency).encode(),
        f"{name}.SConscript": scons_text(dependency).encode(),
    }


def content_id(source: Source) -> str:
    """Return a short hash of all that decides the library which ``source`` becomes."""
    lines = [f"{path}\0{sha256(chunks(source.files[path]))}" for path in sorted(source.files)]
    lines += [f"{source.sources}", f"{source.include_dirs}", f"{source.compile_options}", f"{source.public_headers}"]
    return sha256("\n".join(lines).encode())[:_CONTENT_DIGITS]


def languages(source: Source) -> str:
    """Return what ``project`` of a CMake build must have for ``source``."""
    suffixes = {PurePosixPath(path).suffix for path in source.sources}
    return " ".join(["C", *(["CXX"] if suffixes & CXX_SUFFIXES else []), *(["ASM"] if suffixes & {".S", ".s"} else [])])


def about(dependency: Dependency) -> str:
    """Return one line about ``dependency`` for the head of a fragment."""
    if isinstance(dependency, Package):
        return f"{dependency.name}: the CMake package {dependency.package}, which the firmware has."
    text = f"{dependency.name} {dependency.version}".strip()
    terms = f" ({dependency.license})" if dependency.license else ""
    return "".join(character for character in f"{text}{terms}: what models need of it." if character.isprintable())


def _check_paths(source: Source) -> None:
    for path in (*source.files, *source.include_dirs):
        if not _PATH.fullmatch(path):
            raise InputFileError(
                "source-name-not-buildable",
                place=f"{source.name}: {path!a}",
                reason="has a name that cannot be written in build files",
                hint="rename it, or remove it from the dependency's sources",
            )
