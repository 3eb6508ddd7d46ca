"""``mlfbuild.explore.json``: what was explored last, beside the project file, for ``goal`` and for reviews."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlfbuild.core import ConflictError, InputFileError, open_binary, write_if_changed
from mlfbuild.exploration.explore_keys import Setting
from mlfbuild.exploration.points import Exploration, ExploredPoint

_FORMAT = "mlfbuild_explore"
_VERSION = 1
_LARGEST = 64 << 20
_EMPTY: tuple[Any, ...] = (None, "", (), {}, False)
_ADVICE = "move it away and run `mlfbuild explore`"


def exploration_path(project: Path) -> Path:
    """Return the file of the explorations of the project file ``project``: ``mlfbuild.explore.json``."""
    return project.with_suffix(".explore.json")


def read_explorations(path: Path) -> dict[str, Exploration]:
    """Return the explorations in ``path`` by model; none if there is no such file.

    Raises ``InputFileError`` for a file that is damaged or of another version.
    """
    if not path.exists():
        return {}
    with open_binary(path, "exploration") as file:
        data = file.read(_LARGEST)
    try:
        found: Any = json.loads(data)
        if found[_FORMAT] != _VERSION:
            raise ValueError(f"it has format {found[_FORMAT]}, and this mlfbuild reads {_VERSION}")
        return {name: _exploration(name, each) for name, each in found["models"].items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        reason = f"is no file of `mlfbuild explore`: {error}"
        raise InputFileError("exploration-damaged", place=path, reason=reason, hint=_ADVICE) from None


def write_explorations(path: Path, found: Mapping[str, Exploration]) -> bool:
    """Write the explorations ``found``, by model; return whether the file changed.

    Raises ``ConflictError`` if ``path`` is a file of another kind, and ``StorageError``.
    """
    if path.exists() and path.stat().st_size:
        with open_binary(path, "exploration") as file:
            if f'"{_FORMAT}"'.encode() not in file.read(_LARGEST):
                reason = "is another file, which mlfbuild did not write"
                raise ConflictError("not-an-exploration", place=path, reason=reason, hint=_ADVICE)
    models = {name: _json(each) for name, each in sorted(found.items())}
    text = json.dumps({_FORMAT: _VERSION, "models": models}, indent=1)
    return write_if_changed(path, f"{text}\n".encode())


def _json(found: Exploration) -> dict[str, Any]:
    plain = {name: value for name, value in asdict(found).items() if name not in ("model", "points")}
    # Without what is empty, so that a diff shows what there is.
    points = [
        {key: value for key, value in asdict(point).items() if key == "settings" or value not in _EMPTY}
        if point.accuracy != 0
        else asdict(point)
        for point in found.points
    ]
    return {**plain, "points": points}


def _exploration(name: str, found: dict[str, Any]) -> Exploration:
    points = tuple(
        ExploredPoint(
            **{
                **each,
                "settings": _settings(each["settings"]),
                "missed": tuple(each.get("missed", ())),
                "same": tuple(map(_settings, each.get("same", ()))),
            }
        )
        for each in found["points"]
    )
    return Exploration(**{**found, "model": name, "points": points})


def _settings(found: Mapping[str, Any]) -> dict[str, Setting]:
    """Return settings of JSON, whose lists are tuples; raises ``ValueError`` for other values."""
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}
    for value in settings.values():  # what is chosen is written into a project file
        plain = (
            all(isinstance(each, str) for each in value)
            if isinstance(value, tuple)
            else isinstance(value, str | int | float)
        )
        if not plain:
            raise ValueError("a setting has no plain value")
    return settings
