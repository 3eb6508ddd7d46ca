"""The files of a library in a folder: which are compiled, which are headers, and the licence.

The project file has ``sources``, ``include-dirs`` and ``license``. For the releases of known libraries that
``library/known_libraries`` lists, they can be left out; for all others a missing list is a mistake in the project file.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from mlfbuild.c_analysis import HEADER_SUFFIXES
from mlfbuild.core import Diagnostic, ProjectFileError, quoted, sha256
from mlfbuild.library import ResolvedLibrary, chunks, known_library
from mlfbuild.project import Provider
from mlfbuild.requirements.listing import Listing
from mlfbuild.requirements.patterns import base_folder, matches, plain_path
from mlfbuild.requirements.releases import check_release
from mlfbuild.requirements.versions import satisfies
from mlfbuild.requirements.work_tree import check_work_tree

LICENSE_FILES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*")
_COMPILED = frozenset({".c", ".cc", ".cpp", ".cxx", ".S", ".s"})
_HEADERS = HEADER_SUFFIXES | {".hxx", ".inc"}
_EXAMPLES = {"sources": "[src/*.c]", "include-dirs": "[include]"}


def file_lists(provider: Provider) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return ``sources`` and ``include-dirs`` of ``provider``, by default those of the known library.

    Raises ``ProjectFileError`` if one is missing: the library or this version of it is not known.
    """
    known = known_library(provider.name)
    layouts = known.layouts if known else ()
    layout = next((each for each in layouts if satisfies(provider.version, each.versions)), None)
    lists = {
        "sources": provider.sources or (layout.sources if layout else ()),
        "include-dirs": provider.include_dirs or (layout.include_dirs if layout else ()),
    }
    missing = [key for key, found in lists.items() if not found]
    if missing:
        name = f"{provider.name} {provider.version}".strip() if known else provider.name
        raise ProjectFileError(
            [
                Diagnostic(
                    "provider-without-files",
                    place=title(provider),
                    reason=f"{' and '.join(missing)} of {name} {'is' if len(missing) == 1 else 'are'} not known",
                    hint=f"add its files, such as {', '.join(f'{key}: {_EXAMPLES[key]}' for key in missing)}",
                )
            ]
        )
    return lists["sources"], lists["include-dirs"]


def folder_library(root: Path, provider: Provider, commit: str = "") -> ResolvedLibrary:
    """Return the library in the folder ``root`` as ``provider`` describes it; contents are read when needed.

    Its files are those in and below the folders of sources and headers, and the licence. ``commit`` is that of Git.
    Raises ``ProjectFileError`` if a list is missing, a pattern matches nothing, a folder is missing, or the version is
    not the stated one, and ``InputFileError`` for unsafe files.
    """
    patterns, folders = file_lists(provider)
    if provider.kind == "path":
        check_work_tree(root, provider)
    known = known_library(provider.name)
    listing = Listing(root, title(provider))
    sources = _sources(listing, provider, patterns)
    include_dirs = _include_dirs(listing, provider, folders)
    for folder in include_dirs:
        listing.below(plain_path(folder))
    licenses = listing.at_top(known.license_files if known else LICENSE_FILES)
    library = ResolvedLibrary(
        name=provider.name,
        version=provider.version,
        files=listing.files,
        sources=tuple(sources),
        include_dirs=tuple(include_dirs),
        license_files=tuple(licenses),
        license=provider.license or (known.license if known else ""),
        commit=commit,
        compile_options=provider.compile_options,
        public_headers=provider.public_headers,
    )
    check_release(library, provider)
    return library


def content_sha256(library: ResolvedLibrary) -> str:
    """Return one hash of the paths and the bytes of all files of ``library``; reads all of them.

    It is the SHA-256 of the output of ``sha256sum`` for the files in the order of their paths as bytes of UTF-8: a line
    for each file with hash, two blanks and path. Raises ``InputFileError`` if a file cannot be read.
    """
    by_path = sorted(library.files.items(), key=lambda file: file[0].encode())
    return sha256(f"{sha256(chunks(content))}  {path}\n".encode() for path, content in by_path)


def title(provider: Provider) -> str:
    """Return the place of ``provider`` for messages."""
    return provider.where or f"dependency {provider.name}"


def _sources(listing: Listing, provider: Provider, patterns: tuple[str, ...]) -> list[str]:
    """Return the paths of the files to compile, sorted; patterns of a library of headers match headers only."""
    place = f"{title(provider)}.sources"
    found: set[str] = set()
    for pattern in patterns:
        matching = _matching(listing, plain_path(pattern))
        if not matching:
            problem = Diagnostic(
                "pattern-matches-nothing",
                place=place,
                reason=f"{quoted(pattern)} matches no file in {provider.place}",
                hint="correct the pattern" if provider.sources else "add `sources` with the files of the library",
            )
            raise ProjectFileError([problem])
        found.update(matching)
    for path in sorted(found):
        if PurePosixPath(path).suffix not in _COMPILED | _HEADERS:
            problem = Diagnostic(
                "source-not-compiled",
                place=place,
                reason=f"{quoted(path)} is neither a source file ({', '.join(sorted(_COMPILED))}) nor a header",
                hint="narrow the pattern",
            )
            raise ProjectFileError([problem])
    return sorted(path for path in found if PurePosixPath(path).suffix in _COMPILED)


def _matching(listing: Listing, pattern: str) -> list[str]:
    """Return the files that ``pattern`` matches; all files in and below their folders are added to the library."""
    folder = base_folder(pattern)
    if "/" not in pattern and pattern != "**":
        listing.at_top(["*.h"])
        return listing.at_top([pattern])
    return [path for path in listing.below(folder) if matches(pattern, path)] if listing.has_folder(folder) else []


def _include_dirs(listing: Listing, provider: Provider, folders: tuple[str, ...]) -> list[str]:
    """Return the folders of its headers, ``.`` for the top."""
    for folder in folders:
        if not listing.has_folder(plain_path(folder)):
            problem = Diagnostic(
                "include-dir-missing",
                place=f"{title(provider)}.include-dirs",
                reason=f"{quoted(folder)} is not a folder in {provider.place}",
                hint="correct the path" if provider.include_dirs else "add `include-dirs` with its folders",
            )
            raise ProjectFileError([problem])
    return list(dict.fromkeys(plain_path(folder) or "." for folder in folders))
