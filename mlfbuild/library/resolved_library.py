"""A required library after resolution: files that a build compiles, or a package that the firmware already has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlfbuild.library.content import Content


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
