"""Bundles: external dependencies that an archive brings along, in ``dependencies/<name>`` (``mlf_path``).

::

    dependencies/cmsis-nn/Include/... Source/... LICENSE    the files, as they lie in the library's own folder
    dependencies/cmsis-nn.json                              what a build must know of them, which no file of it says

Without the second file a folder is kept and shown like any other that an archive names, and nothing is built of it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

from mlfbuild.core import InputFileError, quoted
from mlfbuild.library.content import Content
from mlfbuild.library.dependencies import ARCHIVE_FOLDER, archive_folder
from mlfbuild.library.fields import Fields, parse_json
from mlfbuild.library.types import ArchiveFile, ExternalDependency, Library

FOLDER = "dependencies"
_VERSION = 1
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]{0,99}", re.ASCII)
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")
_MAX_DESCRIPTION = 1024 * 1024  # bytes; CMSIS-NN's has some 10,000
_OPTION = re.compile(
    r"-(?!.*(?:plugin|llvm|dump|info|profile))(?:O[0-3sgz]?|Ofast|[DU]\w+(?:=[\w.+-]*)?|f[a-z][\w-]*(?:=[\w.+-]+)?|W(?![lap],)[\w-]+(?:=[\w.+-]+)?"
    r"|w|g|m[\w=.+-]+|std=[\w+:]+|pedantic)",
    re.ASCII,
)
_ADVICE = "bundle the dependency again"


@dataclass(frozen=True)
class BundleFacts:
    """What the file beside a bundle's folder says; paths are relative to the folder."""

    name: str
    """Short name: ``cmsis-nn``."""
    release: str
    """The library's version."""
    sources: tuple[str, ...]
    """What is compiled."""
    include_dirs: tuple[str, ...]
    """``.`` for the folder itself."""
    license_files: tuple[str, ...] = ()
    license: str = ""
    """SPDX licence expression; empty where nobody knows."""
    url: str = ""
    """Where the library came from; empty for a folder of somebody's machine."""
    commit: str = ""
    """Of Git, where it came from there."""
    compile_options: tuple[str, ...] = ()
    """Of its own sources alone."""
    public_headers: bool = False
    """Whether the application sees its headers, too."""


@dataclass(frozen=True)
class Bundle:
    """A dependency inside of an archive."""

    facts: BundleFacts
    files: Mapping[str, Content]
    """By path below its folder, sorted."""


def bundle_folder(name: str) -> PurePosixPath:
    """Return where the files of the dependency lie in an archive."""
    return PurePosixPath(FOLDER) / name


def description_path(name: str) -> PurePosixPath:
    """Return where an archive has what a build must know of the dependency."""
    return PurePosixPath(FOLDER) / f"{name}.json"


def bundle_dependency(facts: BundleFacts) -> ExternalDependency:
    """Return the entry of the metadata for a bundle."""
    return ExternalDependency(facts.name, f"./{bundle_folder(facts.name)}", ARCHIVE_FOLDER, facts.release)


def bundle_files(bundle: Bundle) -> Iterator[ArchiveFile]:
    """Yield what an archive has of ``bundle``: its files, and the description."""
    facts = {key: value for key, value in asdict(bundle.facts).items() if value not in ("", ()) and value is not False}
    text = json.dumps({"version": _VERSION, **facts}, indent=1, sort_keys=True)
    yield ArchiveFile(description_path(bundle.facts.name), f"{text}\n".encode())
    for path, content in bundle.files.items():
        yield ArchiveFile(bundle_folder(bundle.facts.name) / path, content)


def bundle_name(dependency: ExternalDependency) -> str:
    """Return under which name ``dependency`` lies in ``dependencies/``; empty where it lies elsewhere."""
    folder = archive_folder(dependency)
    inside = folder is not None and folder.parts[:1] == (FOLDER,) and len(folder.parts) == 2
    return folder.name if folder is not None and inside and _NAME.fullmatch(folder.name) else ""


def bundle_names(library: Library) -> list[str]:
    """Return the names of the bundles that the modules of ``library`` name and that it describes, sorted."""
    described = {file.path for file in library.other_files}
    named = {bundle_name(item) for module in library.modules for item in module.external_dependencies} - {""}
    return sorted(name for name in named if description_path(name) in described)


def bundles(library: Library, where: str) -> dict[str, Bundle]:
    """Return the bundles of ``library`` by name.

    ``where`` names the archive in messages. Raises ``InputFileError`` where a description is unsound, or speaks of
    files that are not there.
    """
    return {name: bundle(library, name, f"{where}: {description_path(name)}") for name in bundle_names(library)}


def bundle(library: Library, name: str, place: str) -> Bundle:
    """Return the bundle ``name``, one of ``bundle_names(library)``; ``place`` names its description in messages.

    Raises as ``bundles``.
    """
    description = next(file for file in library.other_files if file.path == description_path(name))
    folder = bundle_folder(name)
    inside = (file for file in library.other_files if file.path.is_relative_to(folder))
    files = {file.path.relative_to(folder).as_posix(): file.content for file in inside}
    if len(description.content) > _MAX_DESCRIPTION:
        raise InputFileError(f"{place}: is larger than {_MAX_DESCRIPTION >> 20} MiB, refused; {_ADVICE}")
    fields = Fields(parse_json(bytes(description.content), place, _ADVICE), place, advice=_ADVICE)
    return Bundle(_read_facts(fields, name, files), dict(sorted(files.items())))


def unsafe_option(options: tuple[str, ...]) -> str | None:
    """Return the first of ``options`` that an archive may not hand to a compiler; ``None`` where all are harmless.

    Those of optimisation, of macros, of warnings and of the language are; what loads a plugin, names a file or passes
    words on to another program is not.
    """
    return next((option for option in options if not _OPTION.fullmatch(option)), None)


def _read_facts(fields: Fields, name: str, files: Mapping[str, Content]) -> BundleFacts:
    if fields.integer("version") != _VERSION:
        raise fields.error("version", f"must be {_VERSION}; a newer mlfbuild may read it")
    facts = BundleFacts(
        name=fields.text("name"),
        release=fields.text("release", default=""),
        sources=fields.texts("sources"),
        include_dirs=fields.texts("include_dirs"),
        license_files=fields.texts("license_files"),
        license=fields.text("license", default=""),
        url=fields.text("url", default=""),
        commit=fields.text("commit", default=""),
        compile_options=fields.texts("compile_options"),
        public_headers="public_headers" in fields and fields.flag("public_headers"),
    )
    if facts.name != name:
        raise fields.error("name", f"is {quoted(facts.name)}, but the folder is called {name}")
    for key in ("release", "license", "url"):
        if not getattr(facts, key).isprintable():
            raise fields.error(key, "holds control characters")
    if not _COMMIT.fullmatch(facts.commit):
        raise fields.error("commit", "must be 40 or 64 hexadecimal digits")
    _check_paths(fields, facts, files)
    unsafe = unsafe_option(facts.compile_options)
    if unsafe is not None:
        raise fields.error("compile_options", f"{quoted(unsafe)} is none that an archive may ask for")
    return facts


def _check_paths(fields: Fields, facts: BundleFacts, files: Mapping[str, Content]) -> None:
    for key in ("sources", "license_files"):
        lost = next((path for path in getattr(facts, key) if path not in files), None)
        if lost is not None:
            raise fields.error(key, f"{quoted(lost)} is no file in {bundle_folder(facts.name)}")
    for folder in facts.include_dirs:
        plain = folder == posixpath.normpath(folder) and folder.isprintable()
        if folder != "." and not (plain and any(path.startswith(f"{folder}/") for path in files)):
            raise fields.error("include_dirs", f"{quoted(folder)} is no folder in {bundle_folder(facts.name)}")
