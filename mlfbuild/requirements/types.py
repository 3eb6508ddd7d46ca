"""A dependency as a build takes it: sources on this machine, or a package that the firmware has already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlfbuild.library import Content


@dataclass(frozen=True)
class Source:
    """The sources of a library; all paths are relative to its folder and stay inside."""

    name: str
    """In lower case, with hyphens: ``cmsis-nn``."""
    version: str
    """As the project or the archive states it; empty where nobody does."""
    files: Mapping[str, Content]
    """By path, sorted: all of the library, or what a build needs of it."""
    sources: tuple[str, ...]
    """Those of ``files`` that are compiled."""
    include_dirs: tuple[str, ...]
    """Of its headers."""
    license_files: tuple[str, ...] = ()
    """Those of ``files`` that say under which terms it may be used."""
    license: str = ""
    """SPDX licence expression; empty where nobody knows."""
    url: str = ""
    """Where it came from; empty for a folder of this machine."""
    commit: str = ""
    """Of Git, hexadecimal; empty where it does not come from there."""
    compile_options: tuple[str, ...] = ()
    """Of its own sources alone."""
    public_headers: bool = False
    """Whether the application sees its headers, too."""


@dataclass(frozen=True)
class Package:
    """A library that the firmware's own CMake build has: nothing of it is built again."""

    name: str
    package: str
    """As ``find_package`` knows it."""
    target: str
    """What is linked."""
    version: str = ""
    """As the project states it; empty where the package itself has to be asked."""
    wanted: str = ""
    """Version that archives want; empty where none says."""


Dependency = Source | Package
