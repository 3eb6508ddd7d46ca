"""``mlfbuild.lock``: what a project was made from, and what came of it, each thing by its hash.

Written by ``mlfbuild lock`` and committed. It is JSON with one fact a line, sorted, so that a review shows what changed
and Git merges what does not touch; a hash over all facts tells a reader when a merge or a person put together what no
``mlfbuild lock`` ever wrote. It has no dates, no paths of a machine and no credentials, and it is untrusted like any
other file: it was edited until its hash says otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from mlfbuild.core import ConflictError, InputFileError, open_binary, sha256
from mlfbuild.library import Fields, parse_json

E = TypeVar("E")

SUFFIX = ".lock"
FORMAT_VERSION = 1
FORMAT_KEY = "mlfbuild_lock"
_HASH_KEY = "content-hash"
_LARGEST = 16 * 1024 * 1024
_ADVICE = "run `mlfbuild lock`, which writes it anew"
_CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7}|\|{7})(?: |$)", re.MULTILINE)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""What Git calls a commit or a tree by: SHA-1, or SHA-256 in repositories that chose it."""


@dataclass(frozen=True)
class LockedModel:
    """A model file and who compiles it."""

    source: str
    """Relative to the project file's folder, with slashes."""
    sha256: str
    compiler: str
    """With its version where it has one: ``native 0.1.0``."""
    inputs: str = ""
    """One SHA-256 of all further files that its compiler reads; empty where there are none."""


@dataclass(frozen=True)
class LockedDependency:
    """What a dependency is, however it is called."""

    kind: str
    """``git``, ``path``, ``url`` or ``package``."""
    place: str
    """As the project file has it, but for user and password of an address."""
    version: str = ""
    """As the project file asks for it."""
    commit: str = ""
    tree: str = ""
    """Of Git, hexadecimal: the commit, and the hash of all files in it."""
    sha256: str = ""
    """Of the archive that a ``url`` leads to."""
    content: str = ""
    """One SHA-256 of names and contents of all files that builds may take; empty for a ``package``."""
    settings: str = ""
    """Keys of the project file that decide how it is built: ``compile-options: -O3; public-headers: true``."""


@dataclass(frozen=True)
class LockedToolchain:
    """What compiles the firmware of a target."""

    programs: Mapping[str, str] = field(default_factory=dict)
    """The first line of what each says of its version, by the name it is looked for."""
    sha256: str = ""
    """Of the CMake toolchain file with those that it shares with others; empty for this machine's compiler."""


@dataclass(frozen=True)
class Lock:
    """All that is locked of a project."""

    models: Mapping[str, LockedModel] = field(default_factory=dict)
    archives: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """SHA-256 of the archive, by target and model."""
    dependencies: Mapping[str, LockedDependency] = field(default_factory=dict)
    toolchains: Mapping[str, LockedToolchain] = field(default_factory=dict)
    """By target."""

    def to_text(self) -> str:
        """Return the content of the file: equal locks give equal text."""
        facts = self._facts()
        return json.dumps({FORMAT_KEY: FORMAT_VERSION, _HASH_KEY: _content_hash(facts), **facts}, indent=2) + "\n"

    def _facts(self) -> dict[str, object]:
        return {
            "archives": {name: dict(sorted(of.items())) for name, of in sorted(self.archives.items()) if of},
            "dependencies": {name: _members(entry) for name, entry in sorted(self.dependencies.items())},
            "models": {name: _members(entry) for name, entry in sorted(self.models.items())},
            "toolchains": {name: _members(entry) for name, entry in sorted(self.toolchains.items())},
        }


def _members(entry: LockedModel | LockedDependency | LockedToolchain) -> dict[str, object]:
    """Return what is known of ``entry``, sorted."""
    found = {each.name: getattr(entry, each.name) for each in fields(entry)}
    return {
        name: dict(sorted(value.items())) if isinstance(value, Mapping) else value
        for name, value in sorted(found.items())
        if value
    }


def _content_hash(facts: object) -> str:
    return sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode())


def lock_path(project: Path) -> Path:
    """Return the lock file of the project file ``project``: beside it, ``firmware.lock`` for ``firmware.yml``."""
    name = project.name if project.suffix == SUFFIX else project.stem
    return project.with_name(f"{name}{SUFFIX}")


def read_lock(path: Path) -> Lock | None:
    """Return what the lock file ``path`` has; ``None`` where there is none.

    Raises ``InputFileError`` for one that ``mlfbuild lock`` did not leave like this: of another version of the format,
    edited by hand, merged, truncated, or no lock file at all.
    """
    if not path.exists() and not path.is_symlink():
        return None
    with open_binary(path, "lock file") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise InputFileError(f"{path}: larger than {_LARGEST} bytes, which no lock file is; {_ADVICE}")
    if _CONFLICT.search(data):
        raise InputFileError(f"{path}: has the marks of a merge that nobody finished; {_ADVICE}")
    facts = Fields(parse_json(data, str(path), _ADVICE), str(path), advice=_ADVICE)
    _check_format(facts, path)
    lock = Lock(
        models=_entries(facts, "models", _model),
        archives=_entries(facts, "archives", _archives),
        dependencies=_entries(facts, "dependencies", _dependency),
        toolchains=_entries(facts, "toolchains", _toolchain),
    )
    if json.loads(data) != json.loads(lock.to_text()):  # also where a fact stands there that this version does not know
        raise InputFileError(f"{path}: was edited by hand, or merged: its {_HASH_KEY} is of another content; {_ADVICE}")
    return lock


def check_replaceable(path: Path) -> None:
    """Raise where ``mlfbuild lock`` must not write over the file ``path``, damaged or not.

    Raises ``ConflictError`` for a file that is nothing of mlfbuild's, and ``InputFileError`` for a lock of a later
    version.
    """
    if not path.exists():
        return
    with open_binary(path, "lock file") as file:
        data = file.read(_LARGEST + 1)
    found = re.search(rf'"{FORMAT_KEY}"\s*:\s*(\d{{1,9}})'.encode(), data)
    if found is None and data.strip():
        raise ConflictError(f"{path}: is not a lock file of mlfbuild; move it away, or give the project another name")
    if found is not None and int(found[1]) > FORMAT_VERSION:
        raise _of_a_later_version(path, int(found[1]))


def _of_a_later_version(path: Path, version: int) -> InputFileError:
    return InputFileError(
        f"{path}: a later version of mlfbuild wrote it (format {version}, this one reads {FORMAT_VERSION}); "
        "update mlfbuild, or delete the file and run `mlfbuild lock`"
    )


def _check_format(facts: Fields, path: Path) -> None:
    if FORMAT_KEY not in facts:
        raise InputFileError(f"{path}: is not a lock file of mlfbuild; move it away and run `mlfbuild lock`")
    version = facts.integer(FORMAT_KEY)
    if version > FORMAT_VERSION:
        raise _of_a_later_version(path, version)
    if version < FORMAT_VERSION:
        raise facts.error(FORMAT_KEY, f"is {version}, which no version of mlfbuild wrote")


def _entries(facts: Fields, key: str, read: Callable[[Fields], E]) -> dict[str, E]:
    section = facts.member(key)
    return {name: read(section.member(name)) for name in section.names()}


def _model(entry: Fields) -> LockedModel:
    return LockedModel(
        source=entry.text("source"),
        sha256=_matching(entry, "sha256", _SHA256),
        compiler=entry.text("compiler"),
        inputs=_matching(entry, "inputs", _SHA256, default=""),
    )


def _archives(entry: Fields) -> dict[str, str]:
    return {name: _matching(entry, name, _SHA256) for name in entry.names()}


def _dependency(entry: Fields) -> LockedDependency:
    kind = entry.text("kind")
    if kind not in {"git", "path", "url", "package"}:
        raise entry.error("kind", "is unknown")
    return LockedDependency(
        kind=kind,
        place=entry.text("place"),
        version=entry.text("version", default=""),
        commit=_matching(entry, "commit", _OBJECT_ID, default=None if kind == "git" else ""),
        tree=_matching(entry, "tree", _OBJECT_ID, default=None if kind == "git" else ""),
        sha256=_matching(entry, "sha256", _SHA256, default=None if kind == "url" else ""),
        content=_matching(entry, "content", _SHA256, default=None if kind == "path" else ""),
        settings=entry.text("settings", default=""),
    )


def _toolchain(entry: Fields) -> LockedToolchain:
    programs = entry.member("programs") if "programs" in entry else None
    return LockedToolchain(
        programs={name: programs.text(name) for name in programs.names()} if programs else {},
        sha256=_matching(entry, "sha256", _SHA256, default=""),
    )


def _matching(entry: Fields, key: str, pattern: re.Pattern[str], default: str | None = None) -> str:
    if default is not None and key not in entry:
        return default
    value = entry.text(key)
    if not pattern.fullmatch(value):
        raise entry.error(key, "must be a hash in lower-case hexadecimal digits")
    return value
