"""Checks of the dependencies in a project file: one place each, and the keys that go with it.

As in ``references``, they work on the plain values and skip what is of the wrong kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlfbuild.project.document import Document
from mlfbuild.project.names import short_name
from mlfbuild.project.problems import KeyPath, quoted

KINDS = ("git", "path", "url", "package")
"""Keys of which a dependency has one: where it comes from."""
_REQUIRED = {
    "git": ("version", "the tag, the branch or the commit to take"),
    "url": ("sha256", "the hash of the archive, as `sha256sum FILE` prints it"),
}
_ONLY_WITH = {"sha256": "url", "target": "package"}
_BUILT = ("sources", "include-dirs", "compile-options", "public-headers", "bundle")
"""Keys that say how its sources are built."""

DEPENDENCY_SCHEMA: Mapping[str, Any] = {
    "oneOf": [{"required": [kind]} for kind in KINDS],
    "dependentRequired": {
        **{kind: [key] for kind, (key, _) in _REQUIRED.items()},
        **{key: [kind] for key, kind in _ONLY_WITH.items()},
    },
    "if": {"required": ["package"]},
    "then": {"not": {"anyOf": [{"required": [key]} for key in _BUILT]}},
}
"""What the keys of a dependency demand of each other."""


def check_dependencies(document: Document) -> None:
    """Add every mistake between keys of dependencies, and between their names, to the problems of ``document``."""
    section = document.data.get("dependencies") if isinstance(document.data, dict) else None
    first: dict[str, str] = {}
    for name, keys in section.items() if isinstance(section, dict) else ():
        path = ("dependencies", name)
        other = first.setdefault(short_name(name), name)
        if other != name:
            reason = f"names the same as {quoted(other)}, both are {quoted(short_name(name))}; leave one of them out"
            document.add(path, reason, at_key=True)
        if isinstance(keys, dict):
            _check_place(document, path, keys)
            _check_company(document, path, keys)


def _check_place(document: Document, path: KeyPath, keys: Mapping[str, object]) -> None:
    kinds = [kind for kind in KINDS if kind in keys]
    if not kinds:
        document.add(path, f"says not where it comes from; give it one of {', '.join(KINDS)}", at_key=True)
    elif len(kinds) > 1:
        document.add(path, f"has {' and '.join(kinds)}; keep the one that it is to come from", at_key=True)
    for kind in kinds:
        key, meaning = _REQUIRED.get(kind, ("", ""))
        if key and key not in keys:
            document.add(path, f"{kind} needs the key {key}, {meaning}", at_key=True)


def _check_company(document: Document, path: KeyPath, keys: Mapping[str, object]) -> None:
    for key, kind in _ONLY_WITH.items():
        if key in keys and kind not in keys:
            document.add((*path, key), f"only with {kind}; leave {key} out", at_key=True)
    for key in _BUILT if "package" in keys else ():
        if key in keys:
            reason = "not with package, which the firmware's own build compiles; leave it out"
            document.add((*path, key), reason, at_key=True)
