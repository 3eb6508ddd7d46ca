"""In what two locks differ, in words: what a frozen build refuses, and what ``mlfbuild lock`` says that it changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from mlfbuild.core import shown
from mlfbuild.requirements.lock import Lock, LockedDependency

_SHORT = 12
"""Digits of a hash that messages show."""
_LINE = 400
"""Characters of the longest line."""
_HASH = re.compile(r"[0-9a-f]{40,64}")
_WORDS = {"sha256": "file", "content": "files", "place": "comes from", "kind": "comes by"}
"""What messages call the members of entries."""
_TOOLCHAIN_FILE = "toolchain file"


@dataclass(frozen=True)
class Difference:
    """One fact that is not the same in two locks."""

    what: str
    """``model digits``, ``archive of digits for m4``."""
    fact: str
    """Which of its facts; empty where it has one only, or where all of it is in one lock alone."""
    old: str | None
    """``None``: it is not in the old lock."""
    new: str | None
    note: str = ""

    def as_drift(self) -> str:
        """Return what a frozen build says, where the old one is the lock and the new one what there is."""
        if self.old is None:
            return shown(f"{self.what}: is not in the lock", _LINE)
        if self.new is None:
            return shown(f"{self.what}: is in the lock, and the project has it no longer", _LINE)
        return self._line(f"locked {short(self.old)}, here {short(self.new)}")

    def as_change(self) -> str:
        """Return what ``mlfbuild lock`` says of it."""
        if self.old is None:
            return shown(f"{self.what}: {short(self.new or '')}, new", _LINE)
        if self.new is None:
            return shown(f"{self.what}: removed", _LINE)
        return self._line(f"{short(self.old)} -> {short(self.new)}")

    def _line(self, change: str) -> str:
        fact, note = self.fact and f"{self.fact}: ", self.note and f" ({self.note})"
        return shown(f"{self.what}: {fact}{change}{note}", _LINE)  # names are those of a file that nobody vouches for


def short(value: str) -> str:
    """Return a fact fit for a line: of hashes the first digits, ``nothing`` where it is empty."""
    return _HASH.sub(lambda found: found[0][:_SHORT], value) or "nothing"


def drift(lock: Lock, now: Lock) -> list[str]:
    """Return a line for each thing of ``now`` that ``lock`` does not have so; what only ``lock`` has is not judged."""
    return [found.as_drift() for found in differences(lock, now) if found.new is not None]


def differences(old: Lock, new: Lock) -> list[Difference]:
    """Return all in which ``new`` differs from ``old``: causes before archives, and each kind sorted by name."""
    return [
        *_entries("model", old.models, new.models),
        *_dependencies(old.dependencies, new.dependencies),
        *_entries("toolchain of", old.toolchains, new.toolchains),
        *_archives(old.archives, new.archives),
    ]


def left_over(lock: Lock, targets: Mapping[str, Collection[str]], dependencies: Collection[str]) -> Iterator[str]:
    """Yield a line for everything in ``lock`` that no project has with these ``dependencies``, and models by target."""
    models = {model for of in targets.values() for model in of}
    for name in lock.models.keys() - models:
        yield Difference(f"model {name}", "", "", None).as_drift()
    for target in lock.archives:
        for name in lock.archives[target].keys() - set(targets.get(target, ())):
            if name in models:  # else the line of the model says it
                yield Difference(f"archive of {name} for {target}", "", "", None).as_drift()
    for name in lock.dependencies.keys() - set(dependencies):
        yield Difference(f"dependency {name}", "", "", None).as_drift()
    for name in lock.toolchains.keys() - targets.keys():
        yield Difference(f"toolchain of {name}", "", "", None).as_drift()


def _archives(old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]) -> Iterator[Difference]:
    before = {f"{model} for {target}": sha for target, of in old.items() for model, sha in of.items()}
    after = {f"{model} for {target}": sha for target, of in new.items() for model, sha in of.items()}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Difference(f"archive of {name}", "", before.get(name), after.get(name))


def _entries(title: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted(old.keys() | new.keys()):
        what = f"{title} {name}"
        if name not in old or name not in new:
            whole = [_whole(entries[name]) if name in entries else None for entries in (old, new)]
            yield Difference(what, "", whole[0], whole[1])
            continue
        before, after = _facts(old[name]), _facts(new[name])
        for fact in sorted(before.keys() | after.keys()):
            if before.get(fact) != after.get(fact):
                yield Difference(what, fact, before.get(fact, ""), after.get(fact, ""))


def _facts(entry: Any) -> dict[str, str]:
    """Return the facts of an entry by what messages call them; programs stand under their own names."""
    found: dict[str, str] = {}
    for each in fields(entry):
        value = getattr(entry, each.name)
        if isinstance(value, Mapping):
            found |= value
        else:
            name = _TOOLCHAIN_FILE if "programs" in vars(entry) else _WORDS.get(each.name, each.name)
            found[name] = value
    return found


def _whole(entry: Any) -> str:
    return " ".join(value for value in _facts(entry).values() if value)


def _dependencies(old: Mapping[str, LockedDependency], new: Mapping[str, LockedDependency]) -> Iterator[Difference]:
    for found in _entries("dependency", old, new):
        name = found.what.removeprefix("dependency ")
        if name not in old or name not in new:
            yield found
        elif found.fact in {"commit", "tree", _WORDS["content"]} and not found.new:
            continue  # nobody knows it before it is locked or fetched; what keeps it from that is a fact of its own
        elif found.fact == "commit":
            yield _commit(found, old[name], new[name])
        elif found.fact not in {"tree", _WORDS["content"]} or _pinned(old[name]) == _pinned(new[name]):
            yield found  # else the commit, or the archive's hash, says it


def _pinned(entry: LockedDependency) -> tuple[str, str]:
    return (entry.commit, entry.sha256)


def _commit(found: Difference, old: LockedDependency, new: LockedDependency) -> Difference:
    """Return what is said of another commit: where the same was asked for, that it is somewhere else now."""
    asked = (old.kind, old.place, old.version) == (new.kind, new.place, new.version)
    same = "with the same files" if old.tree == new.tree else ""
    note = f"{new.version} moved" if asked else ""
    return Difference(
        found.what, new.version if asked else "commit", found.old, found.new, ", ".join(filter(None, (note, same)))
    )
