"""``--format github``: results as text, and errors as annotations of GitHub Actions.

The runner of GitHub Actions reads workflow commands such as ``::error file=F,line=L,col=C,title=T::text`` in stdout and
stderr, and shows each at its file and line in the changes of a pull request.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from mlfbuild.cli.events import position
from mlfbuild.core import Diagnostic, MlfError, ProcessFailedError, terminal_text

Level = Literal["error", "warning", "notice"]


def error_annotations(error: MlfError) -> Iterator[str]:
    """Yield a line for the error, or for each of its findings, and the output of the program that failed."""
    findings: tuple[str | Diagnostic, ...] = getattr(error, "problems", ())
    for finding in findings or (error,):
        text = finding.message if isinstance(finding, MlfError) else str(finding)
        code = error.code if isinstance(finding, str) else finding.code
        yield annotation("error", text, title=f"mlfbuild: {code}")
    if isinstance(error, ProcessFailedError) and error.output.strip():
        yield error.output.rstrip()


def annotation(level: Level, text: str, *, title: str = "mlfbuild") -> str:
    """Return the workflow command for ``text``, with the file that ``text`` begins with, if any."""
    found = position(text)
    names = {"line": "line", "column": "col"}
    properties = {names[name]: str(found[name]) for name in names if name in found}
    file = str(found.get("file") or text.partition(": ")[0])
    properties = {"file": below_repository(Path(file)), **properties} if _is_file(file) else {}
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in {**properties, "title": title}.items())
    return f"::{level} {listed}::{_escaped(terminal_text(text))}"


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def below_repository(path: Path) -> str:
    """Return the path by which GitHub knows a file: from the top of the checkout, not from the current folder."""
    with contextlib.suppress(ValueError, KeyError):
        path = path.resolve().relative_to(Path(os.environ["GITHUB_WORKSPACE"]).resolve())
    return path.as_posix()


def _escaped(text: str, also: str = "") -> str:
    for character in f"%\r\n{also}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
