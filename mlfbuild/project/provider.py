"""External dependencies in a project file: where each comes from, and the checks between its keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mlfbuild.core import in_quotes
from mlfbuild.core.keys import DERIVED, EXACT, NOT_EMPTY, Convert, Keys, PathText
from mlfbuild.library import short_name
from mlfbuild.project import rules
from mlfbuild.project.addresses import ARCHIVE_ADDRESS, GIT_ADDRESS
from mlfbuild.project.problems import KeyPath

if TYPE_CHECKING:
    from mlfbuild.project.document import Document

KINDS = ("git", "path", "url", "package")
"""Keys that say where a dependency comes from; a dependency has exactly one of them."""
# A repository without a version would be whatever its default branch is today, and a download without a hash anything.
_REQUIRED = {
    "git": ("version", "the tag, branch or commit to use"),
    "url": ("sha256", "the hash of the archive, as `sha256sum FILE` prints it"),
}
_ONLY_WITH = {"sha256": "url", "target": "package"}
_BUILT = ("sources", "include-dirs", "compile-options", "public-headers", "bundle")
"""Keys about how its sources are built."""


@dataclass(frozen=True)
class Provider(Keys):
    """A library that code of models requires, from one of `git`, `path`, `url` or `package`."""

    TITLE = "dependency"
    SCHEMA: ClassVar[Mapping[str, Any]] = {
        "oneOf": [{"required": [kind]} for kind in KINDS],
        "dependentRequired": {
            **{kind: [key] for kind, (key, _) in _REQUIRED.items()},
            **{key: [kind] for key, kind in _ONLY_WITH.items()},
        },
        "if": {"required": ["package"]},
        "then": {"not": {"anyOf": [{"required": [key]} for key in _BUILT]}},
    }

    name: str = field(metadata=DERIVED)
    """Short name in lower case, with hyphens: ``cmsis-nn``."""
    git: Annotated[str, GIT_ADDRESS] = ""
    """Repository to fetch it from: https://, ssh://, git@host:path, file:// or a folder."""
    path: PathText = ""
    """Folder with its sources."""
    url: Annotated[str, ARCHIVE_ADDRESS] = ""
    """Archive to fetch it from: https://, http:// or file://."""
    package: Annotated[str, rules.PACKAGE] = ""
    """CMake package that the firmware already has; mlfbuild builds nothing of it."""
    version: Annotated[str, rules.VERSION] = ""
    """With `git`, where it is required: a tag, a branch or a commit. Otherwise the version that is there."""
    sha256: Annotated[str, rules.SHA256, Convert(str.lower)] = ""
    """With `url`, where it is required: hash of the archive, 64 hexadecimal digits."""
    target: Annotated[str, rules.CMAKE_TARGET] = ""
    """With `package`: the library to link, such as CMSISNN::nn. Default: the package's name."""
    sources: Annotated[tuple[Annotated[str, rules.PATTERN], ...], NOT_EMPTY] = ()
    """Patterns of the files to compile; required unless the library and its version are known."""
    include_dirs: Annotated[tuple[Annotated[str, rules.SUBFOLDER], ...], NOT_EMPTY] = ()
    """Folders of its headers; required unless the library and its version are known."""
    license: Annotated[str, Convert(rules.canonical_license)] = ""
    """Licence as an SPDX expression: Apache-2.0. Default: known, or none."""
    compile_options: Annotated[tuple[Annotated[str, rules.COMPILE_OPTION], ...], NOT_EMPTY] = ()
    """Compiler options for its sources only: -O3"""
    public_headers: Annotated[bool, EXACT] = False
    """Whether the application can also include its headers."""
    bundle: Annotated[bool, EXACT] = False
    """Whether archives that require it include its files and its licence."""
    folder: Path | None = field(default=None, metadata=DERIVED)
    """Folder of ``path``, or of a repository on this machine, joined to the folder of the project file."""
    commit: str = field(default="", metadata=DERIVED)
    tree: str = field(default="", metadata=DERIVED)
    """Commit and tree of ``version`` in a repository, from ``mlfbuild.lock``; empty when the project file is read."""
    unlocked: str = field(default="", compare=False, repr=False, metadata=DERIVED)
    """Why a build does not know ``commit``, and what to do about it."""
    where: str = field(default="", compare=False, repr=False, metadata=DERIVED)
    """Place for messages: ``mlfbuild.yml:12:3: dependencies.cmsis-nn``. It has no influence on a build."""

    @property
    def kind(self) -> str:
        """The key that says where it comes from: ``git``, ``path``, ``url`` or ``package``.

        A provider that was read from a checked project file has exactly one of them.
        """
        return next(kind for kind in KINDS if getattr(self, kind))

    @property
    def place(self) -> str:
        """The value of that key: an address, a folder as written, or the name of a CMake package."""
        place: str = getattr(self, self.kind)
        return place

    @property
    def address(self) -> str:
        """``place`` for Git or a downloader; a repository on this machine as an absolute path.

        ``place`` may be relative to the project file, which neither Git nor a process in another folder could resolve.
        """
        return str(self.folder.absolute()) if self.kind == "git" and self.folder is not None else self.place


def check_dependencies(document: Document) -> None:
    """Add every mistake between keys of dependencies, and between their names, to the problems of ``document``.

    Exactly one of ``KINDS`` is needed, with the keys that it requires and without those that belong to another.
    Mistakes in single values are those of ``Provider``.
    """
    first: dict[str, str] = {}
    # Archives name libraries in several spellings (CMSIS_NN, cmsis-nn), which all mean one dependency.
    for name, keys in document.mapping("dependencies").items():
        path = ("dependencies", name)
        other = first.setdefault(short_name(name), name)
        if other != name:
            both = in_quotes(short_name(name))
            reason = f"is the same dependency as {in_quotes(other)}: the short name of both is {both}"
            document.report(path, "duplicate-dependency", reason, "remove one of them", at_key=True)
        if isinstance(keys, dict):
            _check_place(document, path, keys)
            _check_company(document, path, keys)


def _check_place(document: Document, path: KeyPath, keys: Mapping[str, object]) -> None:
    kinds = [kind for kind in KINDS if kind in keys]
    if not kinds:
        hint = f"add one of {', '.join(KINDS)}"
        document.report(path, "dependency-without-place", "does not say where it comes from", hint, at_key=True)
    elif len(kinds) > 1:
        reason = f"has {' and '.join(kinds)}"
        document.report(path, "dependency-with-two-places", reason, "keep one of them", at_key=True)
    for kind in kinds:
        key, meaning = _REQUIRED.get(kind, ("", ""))
        if key and key not in keys:
            document.report(path, "missing-key", f"{kind} requires the key {key}", f"add {key}: {meaning}", at_key=True)


def _check_company(document: Document, path: KeyPath, keys: Mapping[str, object]) -> None:
    for key, kind in _ONLY_WITH.items():
        if key in keys and kind not in keys:
            reason = f"is only accepted together with {kind}"
            document.report((*path, key), "misplaced-key", reason, f"remove {key}", at_key=True)
    for key in _BUILT if "package" in keys else ():
        if key in keys:
            reason = "is not accepted together with package, which the firmware's own build compiles"
            document.report((*path, key), "misplaced-key", reason, f"remove {key}", at_key=True)
