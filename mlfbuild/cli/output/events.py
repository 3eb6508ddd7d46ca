"""``--format json``: progress and errors as events, one JSON object on each line of stderr.

``event_schema`` returns the JSON Schema of a line; ``docs/running.md`` explains how to read them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
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
    """Return the event of an error: its fields, its class as ``kind``, and all of it as text in ``message``."""
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


# The JSON Schema of an event ------------------------------------------------------------------------------------------

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_POSITION_KEYS = {
    "file": {**_TEXT, "description": "The file that is wrong, if the message begins with its line"},
    "line": {"type": "integer", "minimum": 1},
    "column": {"type": "integer", "minimum": 1},
}
_FIELD_KEYS = {
    "code": {**_TEXT, "description": "Stable id of the mistake, such as archive-not-tar"},
    "place": {**_TEXT, "description": "Where it is: file, line, key, node or tensor"},
    "reason": {**_TEXT, "description": "What is wrong"},
    "hint": {**_TEXT, "description": "What to do next"},
}
_JOB = {"type": "integer", "minimum": 1, "description": "Number of the job in this run"}


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema of each line that mlfbuild writes to stderr with ``--format json``."""
    kinds = {
        "job-started": _started(),
        "job-progress": _progress(),
        "job-finished": _finished(),
        "output": _kind("What an external program printed that went well: warnings", {"job": _JOB, "text": _TEXT}),
        "message": _kind("What people should know, about no job", {"text": _TEXT}),
        "error": _error_kind(),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mlfbuild event",
        "oneOf": [
            {**schema, "properties": {"event": {"const": name}, **schema["properties"]}}
            for name, schema in kinds.items()
        ],
    }


def _kind(about: str, needed: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "description": about,
        "properties": {**needed, **(optional or {})},
        "required": ["event", *needed],
        "additionalProperties": False,
    }


def _started() -> dict[str, Any]:
    verb = {"enum": ["compile", "write", "build", "verify", "profile", "calibrate", "fetch"]}
    title = {**_TEXT, "description": "What people read: kws for m55"}
    about = {
        "target": {**_TEXT, "description": "Of the project file"},
        "model": {**_TEXT, "description": "Where the job is about one model"},
        "firmware": {**_TEXT, "description": "Where the job is about one image"},
    }
    return _kind("A job begins", {"job": _JOB, "verb": verb, "title": title}, about)


def _progress() -> dict[str, Any]:
    doing = {**_TEXT, "description": "What the job does now: compiling, unpacking, building, linking, running, ..."}
    counts = {"done": _COUNT, "of": _COUNT}
    return _kind("A job goes on", {"job": _JOB, "doing": doing}, counts)


def _finished() -> dict[str, Any]:
    status = {"enum": ["done", "up-to-date", "failed"]}
    result = {**_TEXT, "description": "What people read: compiled, 17 files written"}
    return _kind(
        "A job ends; if it failed, the reason is in an error, or in the result on stdout if a check failed",
        {"job": _JOB, "status": status, "result": result, "seconds": {"type": "number", "minimum": 0}},
    )


def _error_kind() -> dict[str, Any]:
    kinds = [
        "check-failed", "over-budget", "drift", "usage", "project-file", "tool-not-found", "not-fetched",
        "unsupported-model", "input-file", "conflict", "process-failed", "timed-out", "storage", "interrupted",
    ]  # fmt: skip
    needed = {
        "exit_code": {"type": "integer", "minimum": 1, "description": "The last error's is the exit status"},
        "kind": {"enum": kinds},
        "message": {**_TEXT, "description": "Place, reason and hint as one text"},
    }
    problem = {
        "type": "object",
        "properties": {"message": _TEXT, **_FIELD_KEYS, **_POSITION_KEYS},
        "required": ["message"],
        "additionalProperties": False,
    }
    optional = {
        **_FIELD_KEYS,
        **_POSITION_KEYS,
        "problems": {
            "type": "array",
            "items": problem,
            "description": "Every mistake in the project file, every drift, every place where a check failed, "
            "or every reason why a model is not supported",
        },
        "output": {**_TEXT, "description": "What the external program printed"},
    }
    return _kind("Something went wrong", needed, optional)
