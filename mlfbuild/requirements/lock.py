"""``mlfbuild.lock``: the inputs and the archives of a project, each with its hash.

``mlfbuild lock`` writes it, and users commit it. It is JSON with one fact per line, sorted, so that a diff shows what
changed. A hash over all facts detects files that were edited by hand or merged by Git. It contains no dates, no paths
of a machine and no credentials. Readers do not trust it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from mlfbuild.core import COMMIT, SHA256, ConflictError, InputFileError, open_binary, sha256
from mlfbuild.library import Fields, parse_json

E = TypeVar("E")

SUFFIX = ".lock"
FORMAT_VERSION = 1
FORMAT_KEY = "mlfbuild_lock"
_CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7}|\|{7})(?: |$)", re.MULTILINE)
_HASH_KEY = "content-hash"
# Thousands of models need some megabytes; a larger file is not one that `mlfbuild lock` wrote.
_LARGEST = 16 * 1024 * 1024
_ADVICE = "run `mlfbuild lock` to write it again"


@dataclass(frozen=True)
class LockedModel:
    """A model file and its compiler."""

    source: str
    """Relative to the project file's folder, with slashes."""
    sha256: str
    compiler: str
    """With its version if it has one: ``native 0.1.0``."""
    inputs: str = ""
    """One SHA-256 of all further files that its compiler reads; empty if there are none."""
    weights: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each further file with weights by its name, relative to the folder of ``source``."""


@dataclass(frozen=True)
class LockedProvider:
    """A provider of the project, and its files."""

    kind: str
    """``git``, ``path``, ``url`` or ``package``."""
    place: str
    """The source in the project file, without user and password of an address."""
    version: str = ""
    """The version in the project file."""
    commit: str = ""
    """Of Git, hexadecimal."""
    tree: str = ""
    """SHA-256 of all files of the commit, see ``tree_sha256``."""
    sha256: str = ""
    """Of the archive of a ``url``."""
    content: str = ""
    """One SHA-256 of names and contents of the library's files; empty for a ``package``."""
    settings: str = ""
    """Keys of the project file that affect its build: ``compile-options: -O3; public-headers: true``."""


@dataclass(frozen=True)
class LockedToolchain:
    """The programs that compile the firmware of a target."""

    programs: Mapping[str, str] = field(default_factory=dict)
    """The first line of the version output of each, by the name of the program."""
    sha256: str = ""
    """Of the CMake toolchain file and the files that it includes; empty for this machine's compiler."""


@dataclass(frozen=True)
class Lock:
    """The facts about a project in its lock file."""

    models: Mapping[str, LockedModel] = field(default_factory=dict)
    archives: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """SHA-256 of the archive, by target and model."""
    dependencies: Mapping[str, LockedProvider] = field(default_factory=dict)
    toolchains: Mapping[str, LockedToolchain] = field(default_factory=dict)
    """By target."""

    def to_text(self) -> str:
        """Return the content of the file: equal locks give equal text.

        It is sorted JSON with one fact per line, and without empty members. ``content-hash`` is the SHA-256 of the
        facts, by which ``read_lock`` finds changes that were made by hand or by a merge.
        """
        facts: dict[str, object] = {
            "archives": {name: dict(sorted(of.items())) for name, of in sorted(self.archives.items()) if of},
            "dependencies": {name: _members(entry) for name, entry in sorted(self.dependencies.items())},
            "models": {name: _members(entry) for name, entry in sorted(self.models.items())},
            "toolchains": {name: _members(entry) for name, entry in sorted(self.toolchains.items())},
        }
        content_hash = sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode())
        return json.dumps({FORMAT_KEY: FORMAT_VERSION, _HASH_KEY: content_hash, **facts}, indent=2) + "\n"


def _members(entry: LockedModel | LockedProvider | LockedToolchain) -> dict[str, object]:
    """Return the members of ``entry`` that are not empty, sorted."""
    # Empty members are left out, so that a later version can add one without changing files that do not use it.
    found = {each.name: getattr(entry, each.name) for each in fields(entry)}
    return {
        name: dict(sorted(value.items())) if isinstance(value, Mapping) else value
        for name, value in sorted(found.items())
        if value
    }


def lock_path(project: Path) -> Path:
    """Return the path of the lock file of the project file ``project``: ``firmware.lock`` next to ``firmware.yml``.

    If the project file itself ends with ``.lock``, its whole name stays in that of the lock file, so that these are two
    files.
    """
    name = project.name if project.suffix == SUFFIX else project.stem
    return project.with_name(f"{name}{SUFFIX}")


def read_lock(path: Path) -> Lock | None:
    """Return the content of the lock file ``path``; ``None`` if there is none.

    Raises ``InputFileError`` for a file that ``mlfbuild lock`` did not write: of another version of the format, edited
    by hand, merged, truncated, or not a lock file.
    """
    # A link to a missing file is an error, not a project without a lock.
    if not path.exists() and not path.is_symlink():
        return None
    with open_binary(path, "lock file") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise InputFileError(
            "lock-too-large", place=path, reason=f"the file is larger than {_LARGEST} bytes", hint=_ADVICE
        )
    # Before parsing: the error of a JSON parser about `<<<<<<<` would not name the cause.
    if _CONFLICT.search(data):
        raise InputFileError("lock-merge-conflict", place=path, reason="contains conflict markers", hint=_ADVICE)
    facts = Fields(parse_json(data, str(path), _ADVICE), str(path), advice=_ADVICE)
    _check_format(facts, path)
    lock = Lock(
        models=_entries(facts, "models", _model),
        archives=_entries(facts, "archives", _hashes),
        dependencies=_entries(facts, "dependencies", _dependency),
        toolchains=_entries(facts, "toolchains", _toolchain),
    )
    if json.loads(data) != json.loads(lock.to_text()):  # also finds facts that this version does not know
        reason = f"the file was edited by hand or merged: {_HASH_KEY} does not match the content"
        raise InputFileError("lock-edited", place=path, reason=reason, hint=_ADVICE)
    return lock


def check_replaceable(path: Path) -> None:
    """Raise if ``mlfbuild lock`` must not overwrite the file ``path``, damaged or not.

    Raises ``ConflictError`` for a file that mlfbuild did not write, and ``InputFileError`` for a lock file of a later
    version.
    """
    if not path.exists():
        return
    with open_binary(path, "lock file") as file:
        data = file.read(_LARGEST + 1)
    # The key is searched for, not parsed: a damaged lock file may be replaced as well.
    # Nine digits at most, so that a hostile number cannot take long to convert.
    found = re.search(rf'"{FORMAT_KEY}"\s*:\s*(\d{{1,9}})'.encode(), data)
    if found is None and data.strip():
        raise ConflictError(
            "not-a-lock-file",
            place=path,
            reason="the file is not a lock file of mlfbuild",
            hint="move it away, or rename the project file",
        )
    if found is not None and int(found[1]) > FORMAT_VERSION:
        raise _of_a_later_version(path, int(found[1]))


def _of_a_later_version(path: Path, version: int) -> InputFileError:
    reason = f"a later version of mlfbuild wrote the file (format {version}, this version reads {FORMAT_VERSION})"
    hint = "update mlfbuild, or delete the file and run `mlfbuild lock`"
    return InputFileError("lock-of-later-version", place=path, reason=reason, hint=hint)


def _check_format(facts: Fields, path: Path) -> None:
    if FORMAT_KEY not in facts:
        raise InputFileError(
            "lock-without-format",
            place=path,
            reason="the file is not a lock file of mlfbuild",
            hint="move it away and run `mlfbuild lock`",
        )
    version = facts.integer(FORMAT_KEY)
    if version > FORMAT_VERSION:
        raise _of_a_later_version(path, version)
    if version < FORMAT_VERSION:
        raise facts.error(FORMAT_KEY, f"is {version}, which is not a format of mlfbuild")


def _entries(facts: Fields, key: str, read: Callable[[Fields], E]) -> dict[str, E]:
    section = facts.member(key)
    return {name: read(section.member(name)) for name in section.names()}


def _model(entry: Fields) -> LockedModel:
    return LockedModel(
        source=entry.text("source"),
        sha256=_matching(entry, "sha256", SHA256),
        compiler=entry.text("compiler"),
        inputs=_matching(entry, "inputs", SHA256, default=""),
        weights=_hashes(entry.member("weights")) if "weights" in entry else {},
    )


def _hashes(entry: Fields) -> dict[str, str]:
    return {name: _matching(entry, name, SHA256) for name in entry.names()}


def _dependency(entry: Fields) -> LockedProvider:
    kind = entry.text("kind")
    if kind not in {"git", "path", "url", "package"}:
        raise entry.error("kind", "is unknown")
    return LockedProvider(
        kind=kind,
        place=entry.text("place"),
        version=entry.text("version", default=""),
        commit=_matching(entry, "commit", COMMIT, default=None if kind == "git" else ""),
        tree=_matching(entry, "tree", SHA256, default=None if kind == "git" else ""),
        sha256=_matching(entry, "sha256", SHA256, default=None if kind == "url" else ""),
        content=_matching(entry, "content", SHA256, default=None if kind == "path" else ""),
        settings=entry.text("settings", default=""),
    )


def _toolchain(entry: Fields) -> LockedToolchain:
    programs = entry.member("programs") if "programs" in entry else None
    return LockedToolchain(
        programs={name: programs.text(name) for name in programs.names()} if programs else {},
        sha256=_matching(entry, "sha256", SHA256, default=""),
    )


def _matching(entry: Fields, key: str, pattern: re.Pattern[str], default: str | None = None) -> str:
    if default is not None and key not in entry:
        return default
    value = entry.text(key)
    if not pattern.fullmatch(value):
        raise entry.error(key, "must be a hash in lower-case hexadecimal digits")
    return value
