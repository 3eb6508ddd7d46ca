"""The files of a library in a folder: which are compiled, which are headers, the licence, and hashes of them.

The project file has ``sources``, ``include-dirs`` and ``license``. For the releases of known libraries that
``library/known_libraries`` lists, they can be left out; for all others a missing list is a mistake in the project file.

Files are those in and below the folders of sources and headers. Names that begin with a dot are left out, and with them
``.git``. The folder is not trusted: links are followed only inside of it, and contents are read when they are needed.

Patterns are those of Git's ``.gitignore`` without negation: in ``Source/**/*.c``, ``**`` stands for any number of
folders or none, and ``*``, ``?`` and ``[...]`` match within a name; ``**`` at the end matches all files below.

A library of another release compiles and links, but computes other numbers. For copies without Git's data, the table of
known libraries has the ``$Revision`` lines of headers by release: if they are those of another release than the
project file states, the library is refused.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from mlfbuild.archive.tar import plain_path
from mlfbuild.c_analysis import HEADER_SUFFIXES
from mlfbuild.core import InputFileError, ProjectFileError, quoted, real_place, sha256
from mlfbuild.library import Content, KnownLibrary, LazyBytes, ResolvedLibrary, chunks, known_library
from mlfbuild.project import Provider
from mlfbuild.requirements.versions import same_version, satisfies

LICENSE_FILES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*")
# CMSIS-NN has some hundred files. These limits stop a pattern that takes in a home folder or a whole SDK.
MOST_FILES = 20_000
MOST_BYTES = 256 * 1024 * 1024
# Python's recursion would end deeper folders with an error that names no file.
_DEEPEST = 64
_COMPILED = frozenset({".c", ".cc", ".cpp", ".cxx", ".S", ".s"})
_HEADERS = HEADER_SUFFIXES | {".hxx", ".inc"}
_EXAMPLES = {"sources": "[src/*.c]", "include-dirs": "[include]"}
_REVISION = re.compile(rb"\$Revision:\s*(V\.[\d.]+)")
_BEGINNING = 4096
"""Bytes of a header that are searched for its revision."""


def file_lists(provider: Provider) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return ``sources`` and ``include-dirs`` of ``provider``, by default those of the known library.

    Raises ``ProjectFileError`` if one is missing: the library or this version of it is not known.
    """
    known = known_library(provider.name)
    layouts = known.layouts if known else ()
    # The first layout whose range contains the version: folders of a library move between its releases.
    layout = next((each for each in layouts if satisfies(provider.version, each.versions)), None)
    lists = {
        "sources": provider.sources or (layout.sources if layout else ()),
        "include-dirs": provider.include_dirs or (layout.include_dirs if layout else ()),
    }
    missing = [key for key, found in lists.items() if not found]
    if missing:
        name = f"{provider.name} {provider.version}".strip() if known else provider.name
        raise ProjectFileError.of(
            "provider-without-files",
            place=title(provider),
            reason=f"{' and '.join(missing)} of {name} {'is' if len(missing) == 1 else 'are'} not known",
            hint=f"add its files, such as {', '.join(f'{key}: {_EXAMPLES[key]}' for key in missing)}",
        )
    return lists["sources"], lists["include-dirs"]


def folder_library(root: Path, provider: Provider, commit: str = "") -> ResolvedLibrary:
    """Return the library in the folder ``root`` as ``provider`` describes it; contents are read when needed.

    Its files are those in and below the folders of sources and headers, and the licence. ``commit`` is that of Git.
    Raises ``ProjectFileError`` if a list is missing, a pattern matches nothing, a folder is missing, or the version is
    not the stated one, and ``InputFileError`` for unsafe files.
    """
    patterns, folders = file_lists(provider)
    known = known_library(provider.name)
    files = _Files(root, title(provider))
    sources = _sources(files, provider, patterns)
    include_dirs = _include_dirs(files, provider, folders)
    # Last, but part of the files: an archive that bundles the library must contain its licence.
    licenses = files.at_top(known.license_files if known else LICENSE_FILES)
    library = ResolvedLibrary(
        name=provider.name,
        version=provider.version,
        files=dict(sorted(files.found.items())),
        sources=tuple(sources),
        include_dirs=tuple(include_dirs),
        license_files=tuple(licenses),
        license=provider.license or (known.license if known else ""),
        commit=commit,
        compile_options=provider.compile_options,
        public_headers=provider.public_headers,
    )
    if known is not None:
        _check_release(library, provider, known)
    return library


def content_sha256(library: ResolvedLibrary) -> str:
    """Return one hash of the paths and the bytes of all files of ``library``; reads all of them.

    It is the SHA-256 of the output of ``sha256sum`` for the files in the order of their paths as bytes of UTF-8: a line
    for each file with hash, two blanks and path. Raises ``InputFileError`` if a file cannot be read.
    """
    by_path = sorted(library.files.items(), key=lambda file: file[0].encode())
    return sha256(f"{sha256(chunks(content))}  {path}\n".encode() for path, content in by_path)


def content_hash(library: ResolvedLibrary) -> str:
    """Return the SHA-256 of everything that decides the object code of ``library``: names, contents and settings.

    It is the same on every machine.
    """
    settings = {key: value for key, value in vars(library).items() if key != "files"}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path, content in sorted(library.files.items()):
        # With the length: otherwise bytes could move from one file to the next without another hash.
        digest.update(json.dumps([path, len(content)]).encode())
        for chunk in chunks(content):
            digest.update(chunk)
    return digest.hexdigest()


def title(provider: Provider) -> str:
    """Return the place of ``provider`` for messages."""
    return provider.where or f"dependency {provider.name}"


def _sources(files: _Files, provider: Provider, patterns: tuple[str, ...]) -> list[str]:
    """Return the paths of the files to compile, sorted; patterns of a library of headers match headers only."""
    place = f"{title(provider)}.sources"
    found: set[str] = set()
    for pattern in patterns:
        matching = _matching(files, plain_path(pattern))
        if not matching:
            raise ProjectFileError.of(
                "pattern-matches-nothing",
                place=place,
                reason=f"{quoted(pattern)} matches no file in {provider.place}",
                hint="correct the pattern" if provider.sources else "add `sources` with the files of the library",
            )
        found.update(matching)
    for path in sorted(found):
        # A pattern such as Source/** also takes in documents and scripts, which a build must not be given as sources.
        if PurePosixPath(path).suffix not in _COMPILED | _HEADERS:
            raise ProjectFileError.of(
                "source-not-compiled",
                place=place,
                reason=f"{quoted(path)} is neither a source file ({', '.join(sorted(_COMPILED))}) nor a header",
                hint="narrow the pattern",
            )
    return sorted(path for path in found if PurePosixPath(path).suffix in _COMPILED)


def _matching(files: _Files, pattern: str) -> list[str]:
    """Return the files that ``pattern`` matches; all files in and below their folders are added to the library."""
    folder = base_folder(pattern)
    if "/" not in pattern and pattern != "**":
        # Sources at the top include headers beside them, which no include folder names.
        files.at_top(["*.h"])
        return files.at_top([pattern])
    return [path for path in files.below(folder) if matches(pattern, path)] if files.has_folder(folder) else []


def _include_dirs(files: _Files, provider: Provider, folders: tuple[str, ...]) -> list[str]:
    """Return the folders of its headers, ``.`` for the top; adds the files in them."""
    for folder in folders:
        if not files.has_folder(plain_path(folder)):
            raise ProjectFileError.of(
                "include-dir-missing",
                place=f"{title(provider)}.include-dirs",
                reason=f"{quoted(folder)} is not a folder in {provider.place}",
                hint="correct the path" if provider.include_dirs else "add `include-dirs` with its folders",
            )
    found = list(dict.fromkeys(plain_path(folder) for folder in folders))
    for folder in found:
        files.below(folder)
    return [folder or "." for folder in found]


def _check_release(library: ResolvedLibrary, provider: Provider, known: KnownLibrary) -> None:
    """Raise ``ProjectFileError`` if the headers of ``library`` are those of another release than stated.

    Only if the stated release and that of the headers are known: commits between two releases are not refused.
    """
    if not any(same_version(library.version, release) for release in known.revisions):
        return
    # Only the headers that the table knows are read: a library may have thousands.
    marked = {name for marks in known.revisions.values() for name in marks}
    headers = {PurePosixPath(path).name: path for path in library.files if path.endswith(".h")}
    here = {
        name: line[1].decode()
        for name in marked & headers.keys()
        if (line := _REVISION.search(bytes(library.files[headers[name]])[:_BEGINNING]))
    }
    # All marks of a release must fit, because releases share most headers with their neighbours.
    found = next((release for release, marks in known.revisions.items() if marks.items() <= here.items()), "")
    if found and not same_version(found, library.version):
        raise ProjectFileError.of(
            "release-other-headers",
            place=provider.where or library.name,
            reason=f"{provider.place} is stated to be {library.version}, but its headers are those of {found}",
            hint=f"correct the version, or provide {library.version}",
        )


# Patterns ------------------------------------------------------------------------------------------------------------


def base_folder(pattern: str) -> str:
    """Return the folder that contains all matches of ``pattern``, empty for the top.

    ``Source/**/*.c`` has the folder ``Source``, and ``src/[ab]/x.c`` has ``src``: the names before the first wildcard.
    """
    names = _names(pattern)[:-1]
    wild = next((index for index, name in enumerate(names) if not set("*?[").isdisjoint(name)), len(names))
    return "/".join(names[:wild])


def matches(pattern: str, path: str) -> bool:
    """Return whether ``pattern`` matches ``path``, a file with slashes between its folders; case matters.

    The rules are those of this module: ``matches("Source/**/*.c", "Source/a.c")`` is true.
    """
    return _fits(_names(pattern), path.split("/"))


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in {"", "."}]


def _fits(patterns: Sequence[str], names: Sequence[str]) -> bool:
    if not patterns or not names:
        return not patterns and not names
    # Recursion is bounded by the depth of the folders, which `_walk` limits.
    first, rest = patterns[0], patterns[1:]
    if first == "**":
        return not rest or _fits(rest, names) or _fits(patterns, names[1:])
    return fnmatch.fnmatchcase(names[0], first) and _fits(rest, names[1:])


# Files of an untrusted folder ----------------------------------------------------------------------------------------


class FolderFile(LazyBytes):
    """The content of a file on disk, which is open only while it is read."""

    __slots__ = ("_path", "_size")

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``; raises ``InputFileError`` if they can no longer be read.

        The size is that of the first look: what was appended since is not returned. Raises ``InputFileError`` as well
        if the file became shorter.
        """
        # The size is that of the first look, which hashes and archives rely on; a file that has grown since is cut
        # there.
        wanted = max(0, min(size, self._size - offset))
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                data = file.read(wanted)
        except OSError as error:
            raise _unreadable(self._path, error) from None
        if len(data) != wanted:
            raise InputFileError(
                "file-changed", place=self._path, reason="the file became shorter while it was read", hint="try again"
            )
        return data


class _Files:
    """The files of the folder ``top`` that were asked for, each once; ``place`` is the one for messages."""

    def __init__(self, top: Path, place: str) -> None:
        self._top = top
        self._real_top = real_place(top)
        self._place = place
        self._bytes = 0
        self.found: dict[str, Content] = {}

    def has_folder(self, name: str) -> bool:
        """Return whether ``name`` is a folder inside of the top in exactly this spelling, also if case is ignored."""
        path = self._top
        # By the entries and not by a look-up: on a disk that ignores case, a wrong spelling would fail only on other
        # machines.
        for part in name.split("/") if name else ():
            if part not in _entries(path):
                return False
            path /= part
        return stat.S_ISDIR(_mode(path)) and self._is_inside(real_place(path))

    def below(self, name: str) -> list[str]:
        """Return the paths of all files in the folder ``name`` and below it, sorted.

        Raises ``InputFileError`` for unreadable and special files, links that lead out or in circles, names that a
        build cannot use, and more files than a library has.
        """
        return sorted(self._walk(name, frozenset()))

    def at_top(self, patterns: Sequence[str]) -> list[str]:
        """Return the names of the files at the top that match any of ``patterns``; raises as ``below``."""
        names = [name for name in _entries(self._top) if any(matches(pattern, name) for pattern in patterns)]
        return [name for name in names if not name.startswith(".") and not self._take(name)]

    def _walk(self, folder: str, around: frozenset[Path]) -> Iterator[str]:
        real = real_place(self._top / folder)
        if real in around:
            raise self._refused(folder, "is a link to a folder that it is in")
        if len(around) > _DEEPEST:
            raise self._refused(folder, f"is nested deeper than {_DEEPEST} folders")
        for name in _entries(self._top / folder):
            path = f"{folder}/{name}" if folder else name
            if name.startswith("."):
                continue
            if self._take(path):
                yield from self._walk(path, around | {real})
            else:
                yield path

    def _take(self, path: str) -> bool:
        """Return whether ``path`` is a folder; a file is added to those found."""
        # Such names cannot be written into all build files, and a backslash separates folders on Windows.
        if not path.isprintable() or "\\" in path:
            raise self._refused(path, "has a name with control characters or a backslash")
        place = self._top / path
        try:
            if place.is_symlink() and not self._is_inside(real_place(place)):
                raise self._refused(path, "is a link that leads out of the folder")
            status = place.stat()
        except OSError as error:
            raise _unreadable(place, error) from None
        if stat.S_ISREG(status.st_mode) and path not in self.found:
            self._bytes += status.st_size
            if len(self.found) >= MOST_FILES or self._bytes > MOST_BYTES:
                raise InputFileError(
                    "library-too-large",
                    place=self._place,
                    reason=f"{self._top} has more than {MOST_FILES:,} files or {MOST_BYTES >> 20} MiB",
                    hint="name only the folders of the library in `sources` and `include-dirs`",
                )
            self.found[path] = FolderFile(place, status.st_size)
        elif not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise self._refused(path, "is neither a file nor a folder")
        return stat.S_ISDIR(status.st_mode)

    def _is_inside(self, real: Path) -> bool:
        return real == self._real_top or self._real_top in real.parents

    def _refused(self, path: str, reason: str) -> InputFileError:
        return InputFileError(
            "library-file-refused",
            place=self._place,
            reason=f"{quoted(path)} in {self._top} {reason}",
            hint="remove it, or name other folders in `sources` and `include-dirs`",
        )


def _mode(path: Path) -> int:
    """Return the mode of ``path``, 0 if there is nothing; ``Path.is_dir`` raises errors for loops of links."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: Path, error: OSError) -> InputFileError:
    reason = f"cannot be read: {error.strerror or error}"
    return InputFileError("library-unreadable", place=path, reason=reason, hint="check the path and its permissions")
