"""What changed in an image since the report that it is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.report.html.numbers import Change, short_name
from mlfbuild.report.html.operators import flash_of, paired

_Json = Mapping[str, Any]
_SHOWN = 40


@dataclass(frozen=True)
class Line:
    """Something of one or both reports, and its figures; ``state`` is ``added``, ``removed`` or nothing."""

    name: str
    note: str
    state: str
    changes: tuple[Change | None, ...]

    @property
    def changed(self) -> bool:
        """Whether any figure is another one."""
        return bool(self.state) or any(change is not None and change.more for change in self.changes)


@dataclass(frozen=True)
class Differences:
    """How an image differs; ``found`` is false where the other report does not have it."""

    found: bool
    same: bool
    """Whether it is the same file to the byte."""
    owners: tuple[Line, ...]
    """Flash and RAM of the image, its models and all else."""
    operators: tuple[Line, ...]
    """Flash, MACs and instructions of those that changed, largest change first."""
    more: int
    """How many changed beyond those."""


def title_of(image: _Json) -> str:
    """Return the name of an image, by which those of two reports are matched: ``app for m4``."""
    return f"{image['firmware']} for {image['target']}" if image.get("target") else str(image["firmware"])


def differences(image: _Json, old: _Json | None) -> Differences:
    """Return how ``image`` differs from ``old``; of an image that was not there, nothing but that."""
    if old is None:
        return Differences(found=False, same=False, owners=(), operators=(), more=0)
    listed = [line for line in _operators(image, old) if line.changed]
    listed.sort(key=lambda line: [-abs(change.more) if change else 0 for change in line.changes])
    return Differences(
        found=True,
        same=image["sha256"] == old["sha256"],
        owners=tuple(_owners(image, old)),
        operators=tuple(listed[:_SHOWN]),
        more=len(listed[_SHOWN:]),
    )


def _owners(image: _Json, old: _Json) -> Iterator[Line]:
    yield Line("the image", "", "", _sizes(image, old))
    for group, note in (("models", "model"), ("others", "")):
        now = {owner["name"]: owner for owner in image[group]}
        before = {owner["name"]: owner for owner in old[group]}
        lines = [
            Line(name, note, _state(now.get(name), before.get(name)), _sizes(now.get(name), before.get(name)))
            for name in dict.fromkeys([*now, *before])
        ]
        yield from (line for line in lines if note or line.changed)


def _state(now: _Json | None, before: _Json | None) -> str:
    return "removed" if now is None else "added" if before is None else ""


def _sizes(now: _Json | None, before: _Json | None) -> tuple[Change | None, ...]:
    return tuple(Change(_figure(memory, now), _figure(memory, before)) for memory in ("flash", "ram"))


def _figure(key: str, of: _Json | None) -> int | None:
    return None if of is None else of.get(key)


def _operators(image: _Json, old: _Json) -> Iterator[Line]:
    former = {model["name"]: model for model in old["models"]}
    for model in image["models"]:
        networks = {network["module"]: network for network in former.get(model["name"], {}).get("networks", ())}
        for network in model.get("networks", ()):
            if network["module"] in networks:
                yield from _of_network(model["name"], network["operators"], networks[network["module"]]["operators"])


def _of_network(model: str, now: Sequence[_Json], before: Sequence[_Json]) -> Iterator[Line]:
    pairs = paired(now, before)
    for operator, old in zip(now, pairs, strict=True):
        yield _operator(model, operator, old)
    kept = {id(old) for old in pairs if old is not None}
    yield from (_operator(model, None, old) for old in before if id(old) not in kept)


def _operator(model: str, now: _Json | None, before: _Json | None) -> Line:
    named = now or before or {}
    changes = (
        Change(flash_of(now), flash_of(before)),
        *(_counted(key, now, before) for key in ("macs", "instructions")),
    )
    return Line(f"{named['operator']} {short_name(named['name'])}", model, _state(now, before), changes)


def _counted(key: str, now: _Json | None, before: _Json | None) -> Change | None:
    """Return the change of a figure that a report may not have; ``None`` where one side does not tell."""
    new, old = _figure(key, now), _figure(key, before)
    known = (now is None or new is not None) and (before is None or old is not None)
    return Change(new, old) if known else None
