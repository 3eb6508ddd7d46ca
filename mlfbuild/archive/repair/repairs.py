"""Repairs, and the places of keys in the archive that was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from mlfbuild.archive.paths import METADATA
from mlfbuild.core import shown
from mlfbuild.library import OPERATOR, Library, Module
from mlfbuild.library.metadata import FORMATS


@dataclass(frozen=True)
class Repair:
    """One change; texts may contain names from the archive, and have no control characters."""

    code: str
    """The finding of ``validate`` that the repair removes."""
    place: str
    """In the form of the places of findings."""
    before: str
    after: str


def repair(code: str, place: str, before: object, after: object) -> Repair:
    """Return a repair whose texts can be printed."""
    return Repair(code, shown(place), shown(before), shown(after))


def with_each_module(
    library: Library, correct: Callable[[Module], tuple[Module, Iterable[Repair]]]
) -> tuple[Library, tuple[Repair, ...]]:
    """Return ``library`` with ``correct`` applied to each module, and the repairs that it returns."""
    corrected = [correct(module) for module in library.modules]
    modules = tuple(module for module, _ in corrected)
    return replace(library, modules=modules), tuple(each for _, repairs in corrected for each in repairs)


def key_place(library: Library, module: Module, key: str) -> str:
    """Return the place of ``key`` below the object of ``module`` in the metadata."""
    inside = FORMATS[library.version].modules and module.style != OPERATOR
    return f"{METADATA}: modules.{module.name}.{key}" if inside else f"{METADATA}: {key}"
