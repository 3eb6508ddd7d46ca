"""External programs: found by name with a helpful answer when missing, run with their output kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mlfbuild.errors import ProcessFailedError, TimedOutError, ToolNotFoundError
from mlfbuild.packages import DEBIAN

_OTHER_NAMES = {"clang": tuple(f"clang-{version}" for version in range(22, 13, -1))}
"""What Linux distributions call a program that they have several versions of; the first one there is taken."""

Tell = Callable[[str, int, int], None]
"""What long work calls with what it is doing, and how many of how many are done: 0 of 0 where nobody counts."""

_NINJA_STEP = re.compile(r"\[(\d+)/(\d+)\] (.*)")


def tell_nobody(doing: str, done: int = 0, of: int = 0) -> None:
    """Do nothing."""


def tool_variable(name: str) -> str:
    """Return the environment variable that says where the program ``name`` is: ``MLFBUILD_QEMU_SYSTEM_ARM``."""
    return f"MLFBUILD_{name.upper().replace('-', '_')}"


def find_tool(name: str, chosen: str | None = None) -> Path:
    """Return the path of the program ``name``.

    ``chosen``, a name or path, comes before ``MLFBUILD_<NAME>`` in the environment, which comes before ``PATH``
    (``MLFBUILD_QEMU_SYSTEM_ARM=/opt/qemu/...``). Raises ``ToolNotFoundError`` with the Debian package to install and
    the variable to set.
    """
    variable = tool_variable(name)
    wanted = chosen or os.environ.get(variable) or name
    names = (wanted, *_OTHER_NAMES.get(name, ())) if wanted == name else (wanted,)
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        package = DEBIAN.packages.get(name, name)
        raise ToolNotFoundError(
            f"{wanted}: program not found; install it (Debian: apt-get install {package}) or set {variable} to its path"
        )
    return Path(found)


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> str:
    """Run ``command`` to its end and return stdout and stderr together.

    Raises ``ProcessFailedError`` with the output where it exits with another status than 0 or cannot be started, and
    ``TimedOutError`` with the output so far where it takes longer than ``timeout`` seconds.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=env, timeout=timeout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        output = error.output.decode(errors="replace") if isinstance(error.output, bytes) else error.output or ""
        raise TimedOutError(f"{words[0]}: still running after {timeout:g} s, stopped", output) from None
    except OSError as error:
        raise ProcessFailedError(f"{words[0]}: cannot be started: {error.strerror}") from None
    _check_status(words[0], done.returncode, done.stdout)
    return done.stdout


def run_ninja(command: Sequence[str | Path], tell: Tell = tell_nobody) -> str:
    """Run ``command``, which runs Ninja, and return what it printed; ``tell`` is told of each of Ninja's steps.

    Raises ``ProcessFailedError`` as ``run`` does.
    """
    words = [str(word) for word in command]
    lines = []
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace",
        )  # fmt: skip
    except OSError as error:
        raise ProcessFailedError(f"{words[0]}: cannot be started: {error.strerror}") from None
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line)
                _tell_step(line, tell)
        except BaseException:  # an interrupt, too, stops the program before it is passed on
            process.terminate()
            raise
    _check_status(words[0], process.returncode, "".join(lines))
    return "".join(lines)


def _tell_step(line: str, tell: Tell) -> None:
    step = _NINJA_STEP.match(line)
    if step is not None:
        tell("linking" if step[3].startswith("Linking") else "building", int(step[1]), int(step[2]))


def _check_status(program: str, status: int, output: str) -> None:
    if status != 0:
        raise ProcessFailedError(f"{Path(program).name}: failed with exit status {status}", output)
