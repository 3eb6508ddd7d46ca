"""Required libraries after resolution, and bundles: those in an archive, in ``dependencies/<name>``.

Their ``url_type`` is ``mlf_path``::

    dependencies/cmsis-nn/Include/... Source/... LICENSE    the files, with the paths that they have in the library
    dependencies/cmsis-nn.json                              what to compile, include folders, licence and origin

A folder without the second file is kept and shown like any other folder in the metadata, but not built.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from mlfbuild.core import COMMIT, InputFileError, quoted
from mlfbuild.library.content import Content
from mlfbuild.library.dependency_problems import ARCHIVE_FOLDER, archive_folder
from mlfbuild.library.fields import Fields, parse_json
from mlfbuild.library.requirement import STANDALONE_CRT
from mlfbuild.library.value import ArchiveFile, ExternalDependency, Library


@dataclass(frozen=True)
class ResolvedLibrary:
    """A library with its files, version, licence and origin; all paths are relative to its folder and stay inside.

    If ``package`` is set, the firmware's own CMake build has the library, and there are no files.
    """

    name: str
    """In lower case, with hyphens: ``cmsis-nn``."""
    version: str
    """The version in the project or the archive; empty if neither states it."""
    files: Mapping[str, Content] = field(default_factory=dict)
    """By path, sorted."""
    sources: tuple[str, ...] = ()
    """The paths in ``files`` that are compiled."""
    include_dirs: tuple[str, ...] = ()
    """Folders of its headers, ``.`` for its own folder."""
    license_files: tuple[str, ...] = ()
    """The paths in ``files`` with the licence text."""
    license: str = ""
    """SPDX licence expression; empty if unknown."""
    url: str = ""
    """Origin; empty for a folder of this machine."""
    commit: str = ""
    """Git's hexadecimal commit; empty if the library is not from a repository."""
    compile_options: tuple[str, ...] = ()
    """Further options for its own sources."""
    public_headers: bool = False
    """Whether the application also sees its headers."""
    package: str = ""
    """Name for CMake's ``find_package``."""
    target: str = ""
    """CMake target of the package."""
    wanted: str = ""
    """Version that the package must have; empty if archives state none."""


INCLUDE_DIR = "runtime/include"
BACKEND = "runtime/src/runtime/crt/common/crt_backend_api.c"
"""The source file with the functions that kernels call."""
CONFIGURATIONS = ("templates/crt_config.h.template", "runtime/template/crt_config-template.h")
"""Paths of the template of ``crt_config.h``: since TVM 0.12, and before."""

TVM_RUNTIME = ExternalDependency(STANDALONE_CRT, "https://github.com/apache/tvm", "git", "v0.14.0")
"""The runtime whose headers code of mlfbuild for TVM's executors includes; those of 0.9 to 0.18 are compatible."""


def bundled_configuration(files: Iterable[ArchiveFile]) -> str | None:
    """Return the path of ``CONFIGURATIONS`` in ``files``; ``None`` if they have no runtime that can be built.

    It is a template for ``crt_config.h`` in TVM's runtime. Without it, or without the sources of the back end, an
    archive has only headers of the runtime.
    """
    paths = {file.path for file in files}
    if PurePosixPath(BACKEND) not in paths or not any(path.is_relative_to(INCLUDE_DIR) for path in paths):
        return None
    return next((path for path in CONFIGURATIONS if PurePosixPath(path) in paths), None)


FOLDER = "dependencies"
_VERSION = 1
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,99}", re.ASCII)
_MAX_DESCRIPTION = 1024 * 1024  # bytes; CMSIS-NN's has some 10,000
# The words that are excluded load code (-fplugin), pass options to LLVM, or write or read files (dump, info, profile);
# -Wl, -Wa, and -Wp, pass words to other programs.
_OPTION = re.compile(
    r"-(?!.*(?:plugin|llvm|dump|info|profile))(?:O[0-3sgz]?|Ofast|[DU]\w+(?:=[\w.+-]*)?|f[a-z][\w-]*(?:=[\w.+-]+)?|W(?![lap],)[\w-]+(?:=[\w.+-]+)?"
    r"|w|g|m[\w=.+-]+|std=[\w+:]+|pedantic)",
    re.ASCII,
)
_KEYS = ("name", "sources", "include_dirs", "license_files", "license", "url", "commit", "compile_options",
         "public_headers")  # fmt: skip
"""Fields of a library that its description has under the same name; ``version`` is called ``release`` there."""
_LISTS = ("sources", "include_dirs", "license_files")
"""Fields in which two parts of one library may differ."""
_ADVICE = "bundle the library again"


def bundle_folder(name: str) -> PurePosixPath:
    """Return the folder of an archive with the files of the library ``name``."""
    return PurePosixPath(FOLDER) / name


def description_path(name: str) -> PurePosixPath:
    """Return the path in an archive of the description of the library ``name``."""
    return PurePosixPath(FOLDER) / f"{name}.json"


def bundle_dependency(library: ResolvedLibrary) -> ExternalDependency:
    """Return the entry of the metadata for a bundled library.

    Its ``url`` is the folder in the archive, and ``url_type`` is ``mlf_path``, so that other tools find the files
    as well.
    """
    return ExternalDependency(library.name, f"./{bundle_folder(library.name)}", ARCHIVE_FOLDER, library.version)


def bundle_files(library: ResolvedLibrary) -> Iterator[ArchiveFile]:
    """Yield the files of an archive for ``library``: its description first, then its own files.

    The description comes first, so that ``next(bundle_files(library))`` is the file of ``description_path``. Empty
    members are left out of it.
    """
    facts = {"release": library.version} | {key: getattr(library, key) for key in _KEYS}
    # Empty members are left out, so that a new one does not change the description of libraries that do not use it.
    kept = {key: value for key, value in facts.items() if value not in ("", (), False)}
    text = json.dumps({"version": _VERSION, **kept}, indent=1, sort_keys=True)
    yield ArchiveFile(description_path(library.name), f"{text}\n".encode())
    for path, content in library.files.items():
        yield ArchiveFile(bundle_folder(library.name) / path, content)


def bundle_name(dependency: ExternalDependency) -> str:
    """Return the name of the folder of ``dependency`` in ``dependencies/``; empty if it is elsewhere.

    ``./dependencies/cmsis-nn`` is ``cmsis-nn``. A folder elsewhere in the archive, such as TVM's ``./runtime``, is no
    bundle.
    """
    folder = archive_folder(dependency)
    inside = folder is not None and folder.parts[:1] == (FOLDER,) and len(folder.parts) == 2
    return folder.name if folder is not None and inside and _NAME.fullmatch(folder.name) else ""


def bundle_names(library: Library) -> list[str]:
    """Return the names of the bundles that the modules of ``library`` require and that it describes, sorted.

    A dependency in ``dependencies/`` without a description is not a bundle: it is kept like any other folder.
    """
    described = {file.path for file in library.other_files}
    named = {bundle_name(item) for module in library.modules for item in module.external_dependencies} - {""}
    return sorted(name for name in named if description_path(name) in described)


def bundles(library: Library, where: str) -> dict[str, ResolvedLibrary]:
    """Return the bundled libraries of the archive content ``library`` by name.

    ``where`` names the archive in messages. Raises ``InputFileError`` if a description is damaged or names files that
    do not exist.
    """
    return {name: bundle(library, name, f"{where}: {description_path(name)}") for name in bundle_names(library)}


def bundle(library: Library, name: str, place: str) -> ResolvedLibrary:
    """Return the bundle ``name``, one of ``bundle_names(library)``; ``place`` names its description in messages.

    Raises the errors of ``bundles``.
    """
    description = next(file for file in library.other_files if file.path == description_path(name))
    folder = bundle_folder(name)
    inside = (file for file in library.other_files if file.path.is_relative_to(folder))
    files = {file.path.relative_to(folder).as_posix(): file.content for file in inside}
    if len(description.content) > _MAX_DESCRIPTION:
        raise InputFileError(
            "bundle-too-large", place=place, reason=f"is larger than {_MAX_DESCRIPTION >> 20} MiB", hint=_ADVICE
        )
    fields = Fields(parse_json(bytes(description.content), place, _ADVICE), place, advice=_ADVICE)
    return _described(fields, name, dict(sorted(files.items())))


def unsafe_option(options: Iterable[str]) -> str | None:
    """Return the first of ``options`` that an archive must not pass to a compiler; ``None`` if all are harmless.

    Options for optimisation, macros, warnings and the language are harmless; options that load a plugin, name a file or
    pass words to another program are not.
    """
    return next((option for option in options if not _OPTION.fullmatch(option)), None)


class DifferentBundlesError(Exception):
    """Two archives bundle different libraries under one name: ``first`` and ``second`` are the archives."""

    def __init__(self, first: str, second: str, reason: str) -> None:
        super().__init__(reason)
        self.first, self.second, self.reason = first, second, reason


def united(parts: Sequence[tuple[str, ResolvedLibrary]]) -> ResolvedLibrary:
    """Return the union of ``parts``, (name of the archive, library), which must be parts of the same library.

    Archives of older versions hold only some files of a library. Raises ``DifferentBundlesError``.
    """
    (first_archive, first), *others = parts
    files: dict[str, tuple[str, Content]] = {path: (first_archive, content) for path, content in first.files.items()}
    for archive, part in others:
        for key in ("version", *_KEYS):
            ours, theirs = getattr(first, key), getattr(part, key)
            if key not in _LISTS and ours != theirs:
                raise DifferentBundlesError(first_archive, archive, f"{key} is {ours!a} and {theirs!a}")
        for path, content in part.files.items():
            holder, known = files.setdefault(path, (archive, content))
            if known != content:
                raise DifferentBundlesError(holder, archive, f"the files {quoted(path)} differ")
    libraries = [part for _, part in parts]
    return replace(
        first,
        files={path: content for path, (_, content) in sorted(files.items())},
        sources=_union(part.sources for part in libraries),
        include_dirs=_union(part.include_dirs for part in libraries),
        license_files=_union(part.license_files for part in libraries),
    )


def _union(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return all items of ``lists`` in the order of their first occurrence: the order of include folders matters."""
    return tuple(dict.fromkeys(item for each in lists for item in each))


def _described(fields: Fields, name: str, files: Mapping[str, Content]) -> ResolvedLibrary:
    if fields.integer("version") != _VERSION:
        raise fields.error("version", f"must be {_VERSION}")
    # The others describe a package of the firmware's own build, which an archive cannot name.
    others = dict.fromkeys(("package", "target", "wanted"), "")
    library = fields.record(ResolvedLibrary, version=fields.text("release", default=""), files=files, **others)
    if library.name != name:
        raise fields.error("name", f"is {quoted(library.name)}, but the folder is called {name}")
    for key, text in (("release", library.version), ("license", library.license), ("url", library.url)):
        if not text.isprintable():
            raise fields.error(key, "contains control characters")
    if library.commit and not COMMIT.fullmatch(library.commit):
        raise fields.error("commit", "must be 40 or 64 hexadecimal digits")
    _check_paths(fields, library)
    unsafe = unsafe_option(library.compile_options)
    if unsafe is not None:
        raise fields.error("compile_options", f"{quoted(unsafe)} is not an option that an archive may set")
    return library


def _check_paths(fields: Fields, library: ResolvedLibrary) -> None:
    folder = bundle_folder(library.name)
    for key in ("sources", "license_files"):
        lost = next((path for path in getattr(library, key) if path not in library.files), None)
        if lost is not None:
            raise fields.error(key, f"{quoted(lost)} is not a file in {folder}")
    for name in library.include_dirs:
        plain = name == posixpath.normpath(name) and name.isprintable()
        if name != "." and not (plain and any(path.startswith(f"{name}/") for path in library.files)):
            raise fields.error("include_dirs", f"{quoted(name)} is not a folder in {folder}")
