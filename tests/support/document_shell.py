"""Run the commands of a page in order in a folder."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support import warm
from support.documents import REPOSITORY, matches

_PROGRESS = re.compile(r"^[^\n]* \((?:\d+ min )?[\d.]+ s\)\n|^nothing to build: [^\n]*\n", re.MULTILINE)
_COMMAND = re.compile(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n?", re.MULTILINE)
PROGRAMS = ("mlfbuild", "scons")
GCC_OF_THE_PAGES = "12."


@dataclass(frozen=True)
class Ran:
    """The output of a command, including stderr, and its exit status."""

    printed: str
    status: int


class Shell:
    """Run commands in ``folder``; if one of them changes the folder, the next one runs there."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._now = folder
        self._state = programs / "folder"
        self._programs = programs
        for name in ("python", "python3"):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            (programs / name).chmod(0o755)
        for name in PROGRAMS:
            (programs / name).symlink_to(warm.programs() / name)

    def run(self, command: str) -> Ran:
        """Run ``command`` with Bash, which stops at the first failure."""
        environment = {
            **{name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "SCONSFLAGS", "TERM"}},
            "PATH": f"{self._programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "mlfbuild_ROOT": str(REPOSITORY / "cmake"),  # as if the package were installed where CMake looks
            "XDG_CACHE_HOME": str(self._programs / "cache"),
            "HOME": str(self._programs),
        }
        script = f"trap 'pwd >\"{self._state}\"' EXIT\n{command}\n"
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=self._now, env=environment, timeout=300, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._now = Path(self._state.read_text().strip())
        return Ran(done.stdout, done.returncode)

    def path(self, name: str) -> Path:
        """Return the path of the file ``name`` in the current folder of the commands."""
        path = self._now / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def steps(session: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console session with the output that the page shows below it."""
    found = list(_COMMAND.finditer(session))
    ends = [*(command.start() for command in found[1:]), len(session)]
    for command, end in zip(found, ends, strict=True):
        yield command[1], session[command.end() : end]


def problem(ran: Ran, shown: str, status: int, *, wrapped: bool = False) -> str:
    """Return the difference between a command's result and the page, or ``""`` if there is none.

    A page may leave out lines of progress, which depend on the steps that were not up to date.
    """
    other_compiler = not _gcc_version().startswith(GCC_OF_THE_PAGES)
    if ran.status != status:
        return f"exit status {ran.status}, not {status}:\n{ran.printed}"
    for printed in (ran.printed, _PROGRESS.sub("", ran.printed)):
        if matches(shown, printed, wrapped=wrapped, any_number=other_compiler):
            return ""
    return f"prints\n{ran.printed}\nand the page shows\n{shown}"


def _gcc_version() -> str:
    return subprocess.run(["arm-none-eabi-gcc", "-dumpversion"], capture_output=True, text=True, check=True).stdout
