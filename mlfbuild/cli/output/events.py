"""``--format json``: progress and errors as events, one JSON object on each line of stderr.

``event_schema`` returns the JSON Schema of a line; ``docs/running.md`` explains how to read them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlfbuild.core import INTERRUPTED_EXIT_CODE, Diagnostic, MlfError, ProcessFailedError

_PLACE = re.compile(r"(?P<file>[^\n:]+):(?P<line>\d+)(?::(?P<column>\d+))?: ")


def line_of(event: Mapping[str, Any]) -> str:
    """Return an event as one line of ASCII."""
    # ASCII, so that the encoding of stderr does not matter.
    return json.dumps(event, separators=(",", ":"))


def requested_format(arguments: Sequence[str]) -> str:
    """Return the form of output that a command line requests; empty if it names none.

    ``arguments`` may have mistakes: this is for the message about them. The last ``--format`` counts, as for click.
    """
    # Not by click, which may have failed on these arguments.
    words = " ".join(arguments).replace("--format=", "--format ").split()
    chosen = [value for option, value in itertools.pairwise(words) if option == "--format"]
    return chosen[-1] if chosen else ""


def error_event(error: MlfError) -> dict[str, Any]:
    """Return the event of an error: its fields, its class as ``kind``, and all of it as text in ``message``.

    ``code``, ``place``, ``reason`` and ``hint`` are there unless empty, ``file``, ``line`` and ``column`` if the place
    has them, ``problems`` for several findings, and ``output`` for a program that failed.
    """
    event: dict[str, Any] = {
        **_error(error.exit_code, error.kind(), error.message),
        **_fields(error),
    }
    problems: tuple[str | Diagnostic, ...] = getattr(error, "problems", ())
    if problems:
        event["problems"] = [
            {"message": str(problem), **(_fields(problem) if isinstance(problem, Diagnostic) else position(problem))}
            for problem in problems
        ]
    if isinstance(error, ProcessFailedError):
        event["output"] = error.output
    return event


def interrupted_event(message: str) -> dict[str, Any]:
    """Return the event of Ctrl-C."""
    return _error(INTERRUPTED_EXIT_CODE, "interrupted", message)


def _error(exit_code: int, kind: str, message: str) -> dict[str, Any]:
    return {"event": "error", "exit_code": exit_code, "kind": kind, "message": message}


def _fields(error: MlfError | Diagnostic) -> dict[str, Any]:
    fields = {"code": error.code, "place": error.place, "reason": error.reason, "hint": error.hint}
    return {**{name: text for name, text in fields.items() if text}, **position(str(error))}


def position(text: str) -> dict[str, Any]:
    """Return ``file``, ``line`` and ``column`` if ``text`` begins with them, as messages of compilers do.

    For ``mlfbuild.yml:4:9: unknown key``, these are ``mlfbuild.yml``, 4 and 9, which count from 1; a text without a
    column has no ``column``, and one without a line gives an empty dictionary.
    """
    found = _PLACE.match(text)
    if found is None:
        return {}
    column = {} if found["column"] is None else {"column": int(found["column"])}
    return {"file": found["file"], "line": int(found["line"]), **column}


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema of each line that mlfbuild writes to stderr with ``--format json``."""
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("event.schema.json").read_text(encoding="utf-8"))
    return schema
