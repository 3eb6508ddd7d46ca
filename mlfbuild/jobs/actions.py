"""Actions: one step of work as a value, the key of its result, and a record of how the result came about.

**What.** An ``Action`` says what a step depends on: its kind and, by name, the digest or the value of every input.
Inputs are files (SHA-256), settings (their value), and the versions of the programs that take part. Its ``key``, the
SHA-256 of all that, is where the result stands in the cache, and what makes a result on disk current. The terms are
those of Bazel's Remote Execution API: an action has a digest, an action result lists outputs by digest.

**Rules.**

1. Everything that decides a byte of the output is an input, and nothing else: no path, no date, no name of a target. So
   checkouts, machines and targets with the same CPU share results.
2. Inputs have one name each, so that two records can be compared and the difference can be read (``differences``).
3. A record is written after its result, and has the result's hash: after a kill between the two, the result is made
   again.

**Example.** The archive of ``kws`` for a Cortex-M4::

    Action("compile", {"model kws.tflite": "9f2c...", "cpu": "cortex-m4", "options.memory": "balanced", ...})

After ``memory: smallest``, ``differences`` gives ``[InputChange("options.memory", "balanced", "smallest")]``, which
``mlfbuild why kws`` prints.

**What it does not do.** It runs nothing and compares no times. ``model_builds`` compiles, ``firmware_build`` links.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mlfbuild.core import file_sha256, sha256, write_atomic

COMPILED, COPIED, LINKED, QUANTIZED = "compiled", "copied", "linked", "quantised"
"""The origin of a result, besides the caches ``local`` and ``remote``."""


@dataclass(frozen=True)
class Action:
    """A step of work, described by all that decides its result."""

    kind: str
    """``quantize``, ``compile``, ``link``, ``verify`` or ``profile``."""
    inputs: Mapping[str, str]
    """Name -> digest of a file, value of a setting, or version of a program."""

    @cached_property
    def key(self) -> str:
        """The SHA-256 of kind and inputs as canonical JSON, 64 hexadecimal digits."""
        return sha256(json.dumps([self.kind, dict(self.inputs)], sort_keys=True).encode())


@dataclass(frozen=True)
class InputChange:
    """An input that differs between two actions; the empty string stands for an input that one of them lacks."""

    name: str
    before: str
    now: str


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[InputChange]:
    """Return the inputs that differ, in the order of ``now``, then those that only ``before`` has."""
    names = [*now, *(name for name in before if name not in now)]
    return [
        InputChange(name, before.get(name, ""), now.get(name, ""))
        for name in names
        if before.get(name) != now.get(name)
    ]


@dataclass(frozen=True)
class ActionRecord:
    """The origin of the result beside it."""

    key: str
    """Key of the action; empty if the result is not from an action that is known."""
    sha256: str
    """Hash of the result."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""
    """``compiled``, ``copied``, ``linked``, ``quantised``, or the cache ``local`` or ``remote``."""
    worker: str = ""
    """The worker of a farm that ran the action; empty for this machine."""
    seconds: float = 0.0
    """Time that the action took where it ran; 0 if it was not run."""
    because: tuple[InputChange, ...] = ()
    """The inputs that differed from the record before; none if there was no record."""


def record_action(
    path: Path, action: Action, result: Path, origin: str, seconds: float = 0.0, worker: str = ""
) -> ActionRecord:
    """Write to ``path`` how the file ``result`` came about, and return it; raises ``StorageError``.

    The inputs that differ from those of the record that was there are its reason.
    """
    before = recorded_action(path)
    because = tuple(differences(before.inputs, action.inputs)) if before else ()
    record = ActionRecord(action.key, hash_of(result), action.inputs, origin, worker, seconds, because)
    changes = [[change.name, change.before, change.now] for change in because]
    write_atomic(path, json.dumps({**vars(record), "inputs": dict(action.inputs), "because": changes}).encode())
    return record


def recorded_action(path: Path) -> ActionRecord | None:
    """Return the record in ``path``; ``None`` if there is none, or if it is damaged or of another version."""
    try:
        found: Any = json.loads(path.read_bytes())
        return ActionRecord(**{**found, "because": tuple(InputChange(*change) for change in found["because"])})
    except (OSError, ValueError, LookupError, TypeError):
        return None


def hash_of(path: Path) -> str:
    """Return the SHA-256 of the file, empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file_sha256(file)
    except OSError:
        return ""


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield ``settings`` as (``options.memory``, ``"smallest"``): one entry for each value that is not ``None``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value, sort_keys=True)
