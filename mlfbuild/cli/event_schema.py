"""The JSON Schema of an event: one line on stderr with ``--format json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_PLACE = {
    "file": {**_TEXT, "description": "The file that is wrong, if the message begins with its line"},
    "line": {"type": "integer", "minimum": 1},
    "column": {"type": "integer", "minimum": 1},
}
_FIELDS = {
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
        "error": _error(),
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


def _error() -> dict[str, Any]:
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
        "properties": {"message": _TEXT, **_FIELDS, **_PLACE},
        "required": ["message"],
        "additionalProperties": False,
    }
    optional = {
        **_FIELDS,
        **_PLACE,
        "problems": {
            "type": "array",
            "items": problem,
            "description": "Every mistake in the project file, every drift, every place where a check failed, "
            "or every reason why a model is not supported",
        },
        "output": {**_TEXT, "description": "What the external program printed"},
    }
    return _kind("Something went wrong", needed, optional)
