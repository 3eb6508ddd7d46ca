"""Differences between two locks in words: for frozen builds, and for the output of ``mlfbuild lock``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from mlfbuild.core import shown
from mlfbuild.requirements.lock import Lock, LockedProvider

_SHORT = 12
"""Digits of a hash in messages."""
_LINE = 400
"""Characters in a line."""
_HASH = re.compile(r"[0-9a-f]{40,64}")
_WORDS = {"sha256": "file", "content": "files", "place": "comes from", "kind": "comes by"}
"""Names for members of entries in messages."""
_TOOLCHAIN_FILE = "toolchain file"


@dataclass(frozen=True)
class Difference:
    """One fact that differs between two locks."""

    what: str
    """``model digits``, ``archive of digits for m4``."""
    fact: str
    """The fact of the entry; empty if it has only one, or if only one lock has the entry."""
    old: str | None
    """``None`` if it is not in the old lock."""
    new: str | None
    note: str = ""

    def as_drift(self) -> str:
        """Return the line of a frozen build; the old side is the lock file, the new side the present state.

        For example, ``model kws: file: locked 1f0c5ad3b2e1, here 90ab12cd34ef``.
        """
        if self.old is None:
            return shown(f"{self.what}: is not in the lock file", _LINE)
        if self.new is None:
            return shown(f"{self.what}: is in the lock file, but no longer in the project", _LINE)
        return self._line(f"locked {short(self.old)}, here {short(self.new)}")

    def as_change(self) -> str:
        """Return the line that ``mlfbuild lock`` prints.

        It has at most ``_LINE`` characters, and control characters in names are escapes.
        """
        if self.old is None:
            return shown(f"{self.what}: {short(self.new or '')}, new", _LINE)
        if self.new is None:
            return shown(f"{self.what}: removed", _LINE)
        return self._line(f"{short(self.old)} -> {short(self.new)}")

    def _line(self, change: str) -> str:
        fact, note = self.fact and f"{self.fact}: ", self.note and f" ({self.note})"
        return shown(f"{self.what}: {fact}{change}{note}", _LINE)  # names come from an untrusted file


def short(value: str) -> str:
    """Return a fact for a line: of hashes the first digits, ``nothing`` if it is empty."""
    return _HASH.sub(lambda found: found[0][:_SHORT], value) or "nothing"


def drift(lock: Lock, now: Lock) -> list[str]:
    """Return a line for each entry of ``now`` that differs in ``lock``; entries that only ``lock`` has are ignored.

    An empty list means that a frozen build may go on. ``left_over`` finds the ignored entries.
    """
    return [found.as_drift() for found in differences(lock, now) if found.new is not None]


def differences(old: Lock, new: Lock) -> list[Difference]:
    """Return all differences between ``old`` and ``new``: causes before archives, each kind sorted by name.

    A changed model or dependency therefore stands above the archives that differ because of it.
    """
    return [
        *_entries("model", old.models, new.models),
        *_dependencies(old.dependencies, new.dependencies),
        *_entries("toolchain of", old.toolchains, new.toolchains),
        *_archives(old.archives, new.archives),
    ]


def left_over(lock: Lock, targets: Mapping[str, Collection[str]], dependencies: Collection[str]) -> Iterator[str]:
    """Yield a line for each entry of ``lock`` that the project no longer has.

    ``targets`` has the names of the models by target, ``dependencies`` the names of the providers.
    """
    # A model of any target is still in the project, even if it is no longer built for some of them.
    models = {model for of in targets.values() for model in of}
    for name in sorted(lock.models.keys() - models):
        yield Difference(f"model {name}", "", "", None).as_drift()
    for target in lock.archives:
        for name in sorted(lock.archives[target].keys() - set(targets.get(target, ()))):
            if name in models:  # otherwise the line of the model covers it
                yield Difference(f"archive of {name} for {target}", "", "", None).as_drift()
    for name in sorted(lock.dependencies.keys() - set(dependencies)):
        yield Difference(f"dependency {name}", "", "", None).as_drift()
    for name in sorted(lock.toolchains.keys() - targets.keys()):
        yield Difference(f"toolchain of {name}", "", "", None).as_drift()


def _archives(old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]) -> Iterator[Difference]:
    before = {f"{model} for {target}": sha for target, of in old.items() for model, sha in of.items()}
    after = {f"{model} for {target}": sha for target, of in new.items() for model, sha in of.items()}
    # Target and model in one key, so that a model is listed for all targets in a row.
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Difference(f"archive of {name}", "", before.get(name), after.get(name))


def _entries(title: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted(old.keys() | new.keys()):
        what = f"{title} {name}"
        if name not in old or name not in new:
            # An entry that only one lock has is one difference, not one for each of its facts.
            whole = [_whole(entries[name]) if name in entries else None for entries in (old, new)]
            yield Difference(what, "", whole[0], whole[1])
            continue
        before, after = _facts(old[name]), _facts(new[name])
        for fact in sorted(before.keys() | after.keys()):
            if before.get(fact) != after.get(fact):
                yield Difference(what, fact, before.get(fact, ""), after.get(fact, ""))


def _facts(entry: Any) -> dict[str, str]:
    """Return the facts of an entry by their names in messages; programs have their own names."""
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


def _dependencies(old: Mapping[str, LockedProvider], new: Mapping[str, LockedProvider]) -> Iterator[Difference]:
    for found in _entries("dependency", old, new):
        name = found.what.removeprefix("dependency ")
        if name not in old or name not in new:
            yield found
        elif found.fact in {"commit", "tree", _WORDS["content"]} and not found.new:
            continue  # unknown before it is fetched; the cause is a separate difference
        elif found.fact == "commit":
            yield _commit(found, old[name], new[name])
        elif found.fact not in {"tree", _WORDS["content"]} or _pinned(old[name]) == _pinned(new[name]):
            yield found  # otherwise the line of the commit, or of the archive's hash, covers it


def _pinned(entry: LockedProvider) -> tuple[str, str]:
    return (entry.commit, entry.sha256)


def _commit(found: Difference, old: LockedProvider, new: LockedProvider) -> Difference:
    """Return the difference for another commit: if the same version was stated, the tag or branch moved."""
    asked = (old.kind, old.place, old.version) == (new.kind, new.place, new.version)
    same = "with the same files" if old.tree == new.tree else ""
    note = f"{new.version} moved" if asked else ""
    return Difference(
        found.what, new.version if asked else "commit", found.old, found.new, ", ".join(filter(None, (note, same)))
    )
