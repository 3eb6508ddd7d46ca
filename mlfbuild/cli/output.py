"""Results go to stdout, diagnostics to stderr: as text, or with ``--format json`` as JSON and events."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mlfbuild.cli.events import error_event, line_of
from mlfbuild.cli.options import SharedOptions
from mlfbuild.core import MlfError, ProjectFileError, StorageError, terminal_text


def prepare() -> None:
    """Make stdout accept every text: characters that the terminal's encoding lacks are printed as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Print a result; raises ``StorageError`` if stdout is a file on a full disk."""
    try:
        click.echo(terminal_text(text))
    except BrokenPipeError:
        silence()
    except OSError as error:
        silence()
        raise StorageError(
            "output-not-writable", place="standard output", reason=str(error.strerror), hint="check free space"
        ) from None


def show_json(value: Any) -> None:
    """Print a result as JSON."""
    show(json.dumps(value, indent=2, default=_plain))


def note(text: str) -> None:
    """Print a diagnostic, as an event if results are printed as JSON."""
    context = click.get_current_context(silent=True)
    options = context.find_object(SharedOptions) if context else None
    if options is not None and options.json:
        emit({"event": "message", "text": text})
    elif options is not None and options.format == "github" and text.startswith("warning: "):
        from mlfbuild.cli.github import annotation

        write(annotation("warning", text.removeprefix("warning: ")))
    else:
        write(text)


def report_error(error: MlfError, form: str) -> None:
    """Print an error in the form that ``--format`` names, whether or not it ends the run."""
    if form == "json":
        emit(error_event(error))
    else:
        write(error_text(error, form))


def error_text(error: MlfError, form: str = "text") -> str:
    """Return an error as text; editors can jump to mistakes in project files, which begin with file:line:column."""
    if form == "github":
        from mlfbuild.cli.github import error_annotations

        return "\n".join(error_annotations(error))
    return str(error) if isinstance(error, ProjectFileError) else f"mlfbuild: {error}"


def emit(event: Mapping[str, Any]) -> None:
    """Print an event."""
    write(line_of(event))


def write(text: str) -> None:
    """Print to stderr."""
    with contextlib.suppress(OSError):
        click.echo(terminal_text(text), err=True)


def silence() -> None:
    """Redirect stdout to nothing, so that Python's flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"{type(value).__name__} has no JSON form")
