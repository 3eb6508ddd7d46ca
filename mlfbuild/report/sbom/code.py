"""The generated code of a model in a bill of materials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.jobs import CompileJob
from mlfbuild.library import Library, Requirement, requirements_of

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
