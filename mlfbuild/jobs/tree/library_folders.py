"""Write required libraries to the folder of a target: copies of their files, and fragments that build them.

::

    dependencies/<name>.cmake        mlf::dep::<name>, a static library or a package of the firmware
    dependencies/<name>.mk           the library for GNU Make
    dependencies/<name>.SConscript   the library for SCons and RT-Thread
    dependencies/<name>/...          the files, with their paths in the library
    dependencies/RECORD.json         the hashes of all of these

The fragments of models include those of the libraries that they require. A library is compiled with the flags of the
firmware, then with the options of the project file, without warnings, and with a section for each function and object:
the linker drops those that no code uses (``--gc-sections``). If the firmware has the library itself, it defines the
CMake target, or names the library in ``MLF_PROVIDED``, before it includes models, and the copies are not built.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from mlfbuild.c_analysis import CXX_SUFFIXES
from mlfbuild.core import InputFileError, sha256
from mlfbuild.jobs.tree.build_text import rendered
from mlfbuild.jobs.tree.record import Record
from mlfbuild.jobs.tree.tree import UnpackResult, remove_tree, write_tree
from mlfbuild.library import Content, Module, Requirement, ResolvedLibrary, chunks, requirements_of

DEPENDENCIES_FOLDER = "dependencies"
"""The folder of required libraries in a target's folder."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.+-]*[a-z0-9+])?")
# The characters that CMake, Make and SCons all take literally; a space is accepted here and checked for Make later.
_PATH = re.compile(r"[A-Za-z0-9_./+ -]+")
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)")
"""Versions that CMake can compare."""
# 64 bits: the id only has to differ between the few versions of a library that one build tree sees.
_CONTENT_DIGITS = 16
_VERSION = re.compile(r"[\w.+<>=~!*, -]+", re.ASCII)


def build_requirements(module: Module) -> tuple[Requirement, ...]:
    """Return names and versions of the libraries that ``module`` requires, for build files.

    Raises ``InputFileError`` for a name that a build cannot use.
    """
    found = dict.fromkeys(Requirement(one.name, _shown(one.version)) for one in requirements_of(module))
    for requirement in found:
        check_dependency_name(requirement.name)
    return tuple(found)


def _shown(version: str) -> str:
    """Return ``version``, which is untrusted, or an empty text if not every kind of build file can contain it."""
    # Left out and not refused: the version is only for readers, and the archive is usable without it.
    return version if _VERSION.fullmatch(version) else ""


def check_dependency_name(name: str) -> None:
    """Raise ``InputFileError`` if ``name`` cannot be part of a target's name and of a path.

    Lower-case letters, digits, ``+``, ``-`` and ``.`` are accepted, with a letter or digit first. Upper case is
    refused, because folders whose names differ only in case are one folder on some disks.
    """
    if not _NAME.fullmatch(name):
        reason = "the name of this library, which the archive requires, cannot be the name of a build target"
        hint = "use lower-case letters, digits, - and ., and export again"
        raise InputFileError("requirement-name-not-buildable", place=ascii(name), reason=reason, hint=hint)


def write_dependencies(directory: Path, dependencies: Sequence[ResolvedLibrary]) -> UnpackResult:
    """Write the files of ``dependencies`` to ``directory``, the folder ``dependencies`` of a target.

    Files that do not change keep their time, and files that are no longer needed are removed. Raises
    ``InputFileError`` for names that a build cannot use, ``ConflictError`` (before anything is written) and
    ``StorageError``; see ``write_tree``.
    """
    # Removed rather than left: the folder may be committed, with libraries that no model needs any more.
    if not dependencies:
        return UnpackResult((), (), remove_tree(directory))
    files = dependency_files(dependencies)
    return write_tree(directory, files, Record.of(files))


def dependency_files(dependencies: Sequence[ResolvedLibrary]) -> dict[str, Content]:
    """Return the files of the folder ``dependencies`` without its record: relative path -> content.

    Raises ``InputFileError`` for names that a build cannot use.
    """
    files: dict[str, Content] = {}
    for dependency in dependencies:
        files |= {f"{dependency.name}/{path}": content for path, content in dependency.files.items()}
        files |= dependency_fragments(dependency)
    return files


def dependency_fragments(dependency: ResolvedLibrary) -> dict[str, bytes]:
    """Return the fragments of ``dependency``: path in the folder ``dependencies`` -> content.

    Raises ``InputFileError`` for names that a build cannot use.
    """
    name = dependency.name
    check_dependency_name(name)
    _check_paths(dependency)
    values = _values(dependency)
    return {
        f"{name}.{kind}": rendered(f"dependency.{kind}", **values).encode() for kind in ("cmake", "mk", "SConscript")
    }


def _values(dependency: ResolvedLibrary) -> dict[str, object]:
    """Return the values of the templates of a required library."""
    fields = ("name", "package", "target", "version", "wanted", "sources", "include_dirs", "compile_options")
    # CMake compares only versions of numbers; all others have no `release`.
    release = _RELEASE.fullmatch(dependency.version or dependency.wanted)
    suffixes = {PurePosixPath(path).suffix for path in dependency.sources}
    languages = ["C", *(["CXX"] if suffixes & CXX_SUFFIXES else []), *(["ASM"] if suffixes & {".S", ".s"} else [])]
    return {
        **{field: getattr(dependency, field) for field in fields},
        "public_headers": dependency.public_headers,
        "about": _about(dependency),
        "content": _content_id(dependency),
        "languages": " ".join(languages),
        "release": release[1] if release else None,
        "spaced": next((path for path in (*dependency.files, *dependency.include_dirs) if " " in path), None),
    }


def _content_id(source: ResolvedLibrary) -> str:
    """Return a short hash of everything that determines the compiled library."""
    # A NUL cannot be in a path, so no two lists of files give the same text.
    lines = [f"{path}\0{sha256(chunks(source.files[path]))}" for path in sorted(source.files)]
    lines += [f"{source.sources}", f"{source.include_dirs}", f"{source.compile_options}", f"{source.public_headers}"]
    return sha256("\n".join(lines).encode())[:_CONTENT_DIGITS]


def _about(dependency: ResolvedLibrary) -> str:
    """Return one line about ``dependency`` for the head of a fragment."""
    if dependency.package:
        return f"{dependency.name}: the CMake package {dependency.package}, which the firmware has."
    text = f"{dependency.name} {dependency.version}".strip()
    terms = f" ({dependency.license})" if dependency.license else ""
    # A line break in an untrusted licence text would end the comment and begin a command.
    return "".join(character for character in f"{text}{terms}, required by models." if character.isprintable())


def _check_paths(source: ResolvedLibrary) -> None:
    for path in (*source.files, *source.include_dirs):
        if not _PATH.fullmatch(path):
            raise InputFileError(
                "source-name-not-buildable",
                place=f"{source.name}: {path!a}",
                reason="has a name that cannot be written in build files",
                hint="rename it, or remove it from the dependency's sources",
            )
