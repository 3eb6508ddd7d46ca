"""A folder with a library's sources -> Source: which files are its own, what is compiled, where its headers are.

The project file says so with ``sources``, ``include-dirs`` and ``license``; what it leaves out is known for libraries
that archives are known to need (``library/known_dependencies``), and otherwise looked for where libraries usually have
it: sources below ``src``, ``Source`` or ``source``, or at the top; headers in ``include``, ``Include`` or ``inc``, or
at the top.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mlfbuild.core import ProjectFileError, quoted, sha256
from mlfbuild.library import KnownDependency, chunks, known_dependency
from mlfbuild.project import Provision
from mlfbuild.requirements.listing import Listing
from mlfbuild.requirements.patterns import base_folder, matches, plain_path
from mlfbuild.requirements.releases import check_release
from mlfbuild.requirements.types import Source
from mlfbuild.requirements.work_tree import check_work_tree

SOURCE_FOLDERS = ("src", "Source", "source")
INCLUDE_FOLDERS = ("include", "Include", "inc")
LICENSE_FILES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*")
_COMPILED = frozenset({".c", ".cc", ".cpp", ".cxx", ".S", ".s"})
"""Suffixes of files that a compiler is called for."""


def folder_source(root: Path, provision: Provision, commit: str = "") -> Source:
    """Return the library in the folder ``root`` as ``provision`` has it; contents are read when they are needed.

    Its files are those below the folders that sources and headers lie in, and those of its licence. ``commit`` is that
    of Git, where the folder was checked out of there. Raises ``ProjectFileError`` where a pattern matches nothing, a
    folder is missing, or it is another version than stated; ``InputFileError`` for what is unsafe.
    """
    if provision.kind == "path":
        check_work_tree(root, provision)
    known = known_dependency(provision.name)
    listing = Listing(root, _title(provision))
    sources = _sources(listing, provision, known)
    include_dirs = _include_dirs(listing, provision, known)
    for folder in include_dirs:
        listing.below(plain_path(folder))
    licenses = listing.at_top(known.license_files if known else LICENSE_FILES)
    source = Source(
        name=provision.name,
        version=provision.version,
        files=listing.files,
        sources=tuple(sources),
        include_dirs=tuple(include_dirs),
        license_files=tuple(licenses),
        license=provision.license or (known.license if known else ""),
        commit=commit,
        compile_options=provision.compile_options,
        public_headers=provision.public_headers,
    )
    check_release(source, provision)
    return source


def content_sha256(source: Source) -> str:
    """Return one hash of the paths and the bytes of all files of ``source``; every one of them is read.

    It is the SHA-256 of what ``sha256sum`` prints for the files in the order of their paths, as bytes of UTF-8: a line
    each of hash, two blanks and path. Raises ``InputFileError`` where a file cannot be read.
    """
    by_path = sorted(source.files.items(), key=lambda file: file[0].encode())
    return sha256(f"{sha256(chunks(content))}  {path}\n".encode() for path, content in by_path)


def _title(provision: Provision) -> str:
    return provision.where or f"dependency {provision.name}"


def _sources(listing: Listing, provision: Provision, known: KnownDependency | None) -> list[str]:
    """Return the paths of what is compiled, sorted; a library of headers alone has none."""
    patterns = provision.sources or (known.sources if known else ())
    if not patterns:
        return next((found for found in _usual_sources(listing) if found), [])
    found: set[str] = set()
    for pattern in patterns:
        matching = _matching(listing, plain_path(pattern))
        if not matching:
            advice = "correct it" if provision.sources else "write sources, as [src/*.c], where it has them elsewhere"
            raise _mistake(provision, "sources", f"{quoted(pattern)} matches no file in {provision.place}", advice)
        found.update(matching)
    for path in sorted(found):
        if PurePosixPath(path).suffix not in _COMPILED:
            reason = f"{quoted(path)} is not compiled (what is: {', '.join(sorted(_COMPILED))})"
            raise _mistake(provision, "sources", reason, "narrow the pattern")
    return sorted(found)


def _usual_sources(listing: Listing) -> Iterator[list[str]]:
    for folder in SOURCE_FOLDERS:
        if listing.has_folder(folder):
            yield _matching(listing, f"{folder}/**/*.c")
    yield _matching(listing, "*.c")


def _matching(listing: Listing, pattern: str) -> list[str]:
    """Return what ``pattern`` means; all that is beside and below belongs to the library, too."""
    folder = base_folder(pattern)
    if "/" not in pattern and pattern != "**":
        listing.at_top(["*.h"])
        return listing.at_top([pattern])
    return [path for path in listing.below(folder) if matches(pattern, path)] if listing.has_folder(folder) else []


def _include_dirs(listing: Listing, provision: Provision, known: KnownDependency | None) -> list[str]:
    """Return the folders of its headers, ``.`` for the top."""
    folders = provision.include_dirs or (known.include_dirs if known else ())
    if not folders:
        return [next((folder for folder in INCLUDE_FOLDERS if listing.has_folder(folder)), ".")]
    for folder in folders:
        if not listing.has_folder(plain_path(folder)):
            advice = (
                "correct it" if provision.include_dirs else "write include-dirs, where it has its headers elsewhere"
            )
            reason = f"{quoted(folder)} is no folder in {provision.place}"
            raise _mistake(provision, "include-dirs", reason, advice)
    return list(dict.fromkeys(plain_path(folder) or "." for folder in folders))


def _mistake(provision: Provision, key: str, reason: str, advice: str) -> ProjectFileError:
    return ProjectFileError([f"{_title(provision)}.{key}: {reason}; {advice}"])
