"""Commands that install the programs that builds require, on this system and on others."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core.package import table_of_package

HOST_COMPILER = "cc"
"""Represents the C compiler of this machine, regardless of its name."""


@dataclass(frozen=True)
class System:
    """An operating system with a package manager."""

    name: str
    command: str
    """Command that installs the packages named after it."""
    packages: Mapping[str, str]
    """Packages by program; a program that the system does not package is missing."""


_TABLE = table_of_package(Path(__file__).with_suffix(".toml"))
SYSTEMS: Mapping[str, System] = {name: System(**system) for name, system in _TABLE["systems"].items()}
"""Systems by ``ID`` or ``ID_LIKE`` of os-release, or by ``platform.system`` in lower case."""

_PAGES: Mapping[str, str] = _TABLE["pages"]
"""Where to find a program that the system does not package."""


def this_system(os_release: Path = Path("/etc/os-release")) -> System | None:
    """Return the system of this machine, ``None`` if it is not in ``SYSTEMS``.

    ``os_release`` is the file that describes a Linux distribution. A derivative without a row counts as the first
    system of its ``ID_LIKE`` that has one.
    """
    if platform.system() != "Linux":
        return SYSTEMS.get(platform.system().lower())
    try:
        lines = os_release.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    values = dict(line.split("=", 1) for line in lines if "=" in line)
    # ID comes first; ID_LIKE makes derivatives such as Ubuntu (ID_LIKE=debian) use the commands of their parent.
    names = f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split()
    return next((SYSTEMS[name] for name in names if name in SYSTEMS), None)


def how_to_install(programs: Iterable[str], system: System | None = None) -> list[str]:
    """Return how to install ``programs`` on ``system``, by default this one: commands first, then web pages.

    On Debian as a user, ``["cmake", "ninja"]`` gives ``["sudo apt-get install cmake ninja-build"]``. A program without
    a package on ``system`` gives a sentence with a web page instead, or with its name if no page is known.
    """
    wanted = list(dict.fromkeys(programs))
    system = system or this_system()
    known = [program for program in wanted if system is not None and program in system.packages]
    lines = list(_commands(system, known)) if system is not None else []
    return [*lines, *(f"install {_PAGES.get(program, program)}" for program in wanted if program not in known)]


def _commands(system: System, programs: list[str]) -> Iterator[str]:
    """Yield one command for all packages without options, and one for each package with an option."""
    # Packages with an option, such as Homebrew's --cask, need a command of their own: the option would apply to all.
    plain = [system.packages[program] for program in programs if not system.packages[program].startswith("--")]
    root = "" if system.name == "macOS" or getattr(os, "geteuid", lambda: 0)() == 0 else "sudo "
    if plain:
        yield f"{root}{system.command} {' '.join(plain)}"
    for program in programs:
        if system.packages[program].startswith("--"):
            yield f"{root}{system.command} {system.packages[program]}"
