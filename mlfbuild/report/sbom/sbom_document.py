"""Collect a bill of materials: components, relations, and notes about missing information; and the code of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mlfbuild.core import printable, sha256
from mlfbuild.jobs import CompileJob
from mlfbuild.library import Content, Library, Requirement, chunks, requirements_of
from mlfbuild.report.sbom.bom import Bom, BomFile, Component, How, Kind, Relation

BUILD = "run `mlfbuild build` first"
REPAIR = "run `mlfbuild build` to restore it"
"""Hints in notes."""


@dataclass(frozen=True)
class Code:
    """The code that a build generated for a model and a target."""

    ref: str
    """Reference of the component."""
    job: CompileJob
    library: Library
    """The content of the archive."""
    digest: str
    """SHA-256 of the archive."""

    @property
    def requirements(self) -> Iterator[Requirement]:
        """The libraries that the code requires, including bundled ones."""
        return (requirement for module in self.library.modules for requirement in requirements_of(module))

    def made_from(self, module: str) -> str:
        """Return the hash of the source in the id of ``module`` in an image; empty if there is none."""
        found = (each for each in self.library.modules if each.name == module)
        return next((each.model_id or each.source_sha256 or self.digest for each in found), "")


class Bill:
    """A bill of materials under construction; ``done`` returns the result."""

    def __init__(self, project: Component, created: int) -> None:
        self.project = _printable(project)
        self._created = created
        self._components: dict[str, Component] = {}
        self._relations: set[tuple[str, How, str]] = set()
        self._notes: dict[str, None] = {}

    def add(self, component: Component) -> str:
        """Add a component and return its reference; the files of a component that exists are merged.

        Texts also come from archives and model files: control characters are escaped.
        """
        component = _printable(component)
        known = self._components.get(component.ref)
        files = {file.path: file for one in (known, component) if one is not None for file in one.files}
        # What is known first stays, because it may have facts that a later mention lacks; only files are added.
        merged = replace(known or component, files=tuple(files[path] for path in sorted(files)))
        self._components[component.ref] = merged
        return component.ref

    def __contains__(self, ref: str) -> bool:
        return ref in self._components

    @property
    def components(self) -> list[Component]:
        """The components so far."""
        return list(self._components.values())

    def relate(self, source: str, how: How, target: str) -> None:
        """Add a relation: ``source`` contains, depends on, ... ``target``.

        Both are references of components, which need not be added yet. Relations that are added twice count
        once.
        """
        self._relations.add((source, how, target))

    def note(self, text: str) -> None:
        """Add a note about missing information and how to provide it; repeated notes are added once."""
        self._notes[text] = None

    def done(self) -> Bom:
        """Return the bill; components without a parent become those of the project."""
        # Readers of both formats follow relations from the subject, and would not find a component without one.
        held = {target for _, _, target in self._relations}
        for one in self._components.values():
            if one.ref not in held and one.kind is not Kind.TOOL:
                inside = one.kind in {Kind.FIRMWARE, Kind.CODE}
                self.relate(self.project.ref, How.CONTAINS if inside else How.DEPENDS_ON, one.ref)
        return Bom(
            self.project,
            tuple(self._components[ref] for ref in sorted(self._components)),
            tuple(Relation(*one) for one in sorted(self._relations)),
            self._created,
            tuple(self._notes),
        )


def _printable(component: Component) -> Component:
    # Exactly str: `Kind` is a subclass, and must stay an enumeration.
    changes: dict[str, Any] = {name: printable(value) for name, value in vars(component).items() if type(value) is str}
    changes["properties"] = {name: printable(value) for name, value in component.properties.items()}
    changes["files"] = tuple(replace(file, path=printable(file.path)) for file in component.files)
    return replace(component, **changes)


def bom_file(path: str, content: Content) -> BomFile:
    """Return the entry of the file ``path``; SHA-1 identifies files for SPDX, not for security."""
    digest = hashlib.sha1(usedforsecurity=False)
    for part in chunks(content):
        digest.update(part)
    return BomFile(path, sha256(chunks(content)), digest.hexdigest())
