"""A bill of materials: components, the files of each, and how they hang together; no form of document is in here."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "pkg:pypi/mlfbuild")


class Kind(str, Enum):
    """What a component is."""

    PROJECT = "project"
    FIRMWARE = "firmware"
    """A linked image."""
    MODEL = "model"
    ARCHIVE = "archive"
    """Of Model Library Format."""
    CODE = "code"
    """Generated from a model."""
    LIBRARY = "library"
    """Written by people: kernels, runtime, board support, external dependencies."""
    TOOL = "tool"
    """Was used, and is not part of anything."""


class How(str, Enum):
    """What one component has to do with another."""

    CONTAINS = "contains"
    DEPENDS_ON = "depends on"
    GENERATED_FROM = "generated from"
    MADE_BY = "made by"


@dataclass(frozen=True)
class BomFile:
    """One file of a component; hashes are hexadecimal. SPDX identifies files by SHA-1, everybody else by SHA-256."""

    path: str
    sha256: str
    sha1: str


@dataclass(frozen=True)
class Component:
    """One thing; what is empty, nobody knows."""

    ref: str
    """Unique in its bill, the same in each that is made of the same."""
    kind: Kind
    name: str
    version: str = ""
    purl: str = ""
    license: str = ""
    """SPDX licence expression, or the words that somebody used instead of one."""
    license_concluded: bool = False
    """Whether ``license`` follows from those of its parts; where not, its author states it."""
    description: str = ""
    author: str = ""
    supplier: str = ""
    """Organisation that hands it out."""
    file: str = ""
    """Name of the one file that it is."""
    sha256: str = ""
    """Of that file."""
    url: str = ""
    """Where it comes from: a repository, or what is downloaded."""
    commit: str = ""
    """Of Git, where ``url`` is a repository."""
    properties: Mapping[str, str] = field(default_factory=dict)
    files: tuple[BomFile, ...] = ()
    """Sorted by path."""


@dataclass(frozen=True)
class Relation:
    """``source`` contains, depends on, ... ``target``: references of components."""

    source: str
    how: How
    target: str


@dataclass(frozen=True)
class Bom:
    """A bill of materials."""

    project: Component
    """What the bill is about; it contains the images, or the code of models where there are none."""
    components: tuple[Component, ...]
    """All others, sorted by reference."""
    relations: tuple[Relation, ...]
    """Sorted, each once."""
    created: int
    """Seconds since 1970: the one date that everything carries, not when it was made."""
    notes: tuple[str, ...] = ()
    """What is not in it and should be, a line each with what to do about it; part of no document."""

    def identity(self) -> uuid.UUID:
        """Return the UUID (version 5) of its content: equal content, equal identity."""
        content = {name: value for name, value in asdict(self).items() if name != "notes"}
        return uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))

    def related(self, source: str, *how: How) -> list[str]:
        """Return the references that ``source`` has a relation of one of these kinds to, all kinds where none is."""
        return [one.target for one in self.relations if one.source == source and (not how or one.how in how)]
