"""Results go to stdout, everything else to stderr: for people as text, for programs (``--format json``) as events."""

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
from mlfbuild.cli.options import Settings
from mlfbuild.core import MlfError, ProjectFileError, StorageError


def prepare() -> None:
    """Make stdout print every text; what the terminal's encoding lacks appears as an escape."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def show(text: str) -> None:
    """Print a result; raises ``StorageError`` where stdout is a file on a full disk."""
    try:
        click.echo(text)
    except BrokenPipeError:
        silence()
    except OSError as error:
        silence()
        raise StorageError(f"standard output: cannot write: {error.strerror}; check free space") from None


def show_json(value: Any) -> None:
    """Print a result as JSON."""
    show(json.dumps(value, indent=2, default=_plain))


def note(text: str) -> None:
    """Print a diagnostic; an event where the verb's result is JSON."""
    context = click.get_current_context(silent=True)
    settings = context.find_object(Settings) if context else None
    if settings is not None and settings.json:
        emit({"event": "message", "text": text})
    else:
        write(text)


def tell(error: MlfError, *, events: bool) -> None:
    """Print an error, whether or not it ends the run."""
    if events:
        emit(error_event(error))
    else:
        write(words_of(error))


def words_of(error: MlfError) -> str:
    """Return what people read of an error."""
    # Project file problems start with file:line:column, which editors jump to.
    return str(error) if isinstance(error, ProjectFileError) else f"mlfbuild: {error}"


def emit(event: Mapping[str, Any]) -> None:
    """Print an event, for programs."""
    write(line_of(event))


def write(text: str) -> None:
    """Print to stderr."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def silence() -> None:
    """Let stdout end in nothing, so that Python's own flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"{type(value).__name__} has no JSON form")
