"""A bill of materials, regardless of the document format: components, their files and relations."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum

# A namespace of our own, as RFC 4122 (4.3) asks for, so that the identities of other tools cannot be equal to ours.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "pkg:pypi/mlfbuild")


class Kind(str, Enum):
    """The kind of a component."""

    PROJECT = "project"
    FIRMWARE = "firmware"
    """A linked image."""
    MODEL = "model"
    ARCHIVE = "archive"
    """In Model Library Format."""
    PARAMETERS = "parameters"
    """A blob of trained values, which firmware in the field can receive."""
    CODE = "code"
    """Generated from a model."""
    LIBRARY = "library"
    """Hand-written code: kernels, runtime, board support, required libraries."""
    TOOL = "tool"
    """Used by the build, not part of the product."""


class How(str, Enum):
    """The relation of a component to another one."""

    CONTAINS = "contains"
    DEPENDS_ON = "depends on"
    GENERATED_FROM = "generated from"
    MADE_BY = "made by"


@dataclass(frozen=True)
class BomFile:
    """One file of a component; hashes are hexadecimal. SPDX identifies files by SHA-1, other tools by SHA-256."""

    path: str
    sha256: str
    sha1: str


@dataclass(frozen=True)
class Component:
    """A component; empty fields are unknown."""

    ref: str
    """Unique in the bill; equal inputs give equal references."""
    kind: Kind
    name: str
    version: str = ""
    purl: str = ""
    license: str = ""
    """SPDX licence expression, or another text."""
    license_concluded: bool = False
    """Whether ``license`` is concluded from its parts rather than declared by its author."""
    description: str = ""
    author: str = ""
    supplier: str = ""
    """Organisation that supplies it."""
    file: str = ""
    """File name, if it is a single file."""
    sha256: str = ""
    """Hash of that file."""
    url: str = ""
    """URL of the repository or download."""
    commit: str = ""
    """Git commit, if ``url`` is a repository."""
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
    """The subject of the bill; it contains the images, or the code of models without images."""
    components: tuple[Component, ...]
    """Other components, sorted by reference."""
    relations: tuple[Relation, ...]
    """Sorted, without duplicates."""
    created: int
    """Seconds since 1970: the reproducible date of all outputs, not the present time."""
    notes: tuple[str, ...] = ()
    """Missing information with hints, a line for each; not part of documents."""

    def identity(self) -> uuid.UUID:
        """Return the UUID (version 5) of its content: equal content, equal identity."""
        # Notes are advice for the reader of the command, and not in the document.
        content = {name: value for name, value in asdict(self).items() if name != "notes"}
        return uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))

    def related(self, source: str, *how: How) -> list[str]:
        """Return the references that ``source`` is related to in one of these ways; in any way without ``how``."""
        return [one.target for one in self.relations if one.source == source and (not how or one.how in how)]
