"""The one interface of all compilers: (model, cpu) -> Library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mlfbuild.project import CompilerProgram, OptionValue, Placement
from mlfbuild.targets import Cpu

if TYPE_CHECKING:
    from mlfbuild.library import Library

__all__ = ["CompileRequest", "Compiler", "CompilerProgram", "ExternalCompiler", "OptionValue", "Placement"]


@dataclass(frozen=True)
class CompileRequest:
    """Everything that decides what a compiler makes of a model; equal requests give equal libraries."""

    name: str
    """The model's name, a C identifier ``[a-z][a-z0-9_]*``: module name and part of every C symbol."""
    source: Path
    cpu: Cpu
    executor: str | None = None
    """``aot`` or ``graph``; ``None`` is the compiler's default."""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    placement: Placement = field(default_factory=Placement)
    program: CompilerProgram | None = None
    """What an ``ExternalCompiler`` runs."""


class Compiler(Protocol):
    """A compiler is a module-level object of this shape, listed in ``compilers.COMPILERS``."""

    name: str

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
        """Return (key, reason) for each option this compiler does not take; empty where all are fine."""

    def compile(self, request: CompileRequest) -> Library:
        """Compile the model.

        Raises ``InputFileError`` for a model file that is not what it claims to be, ``UnsupportedModelError`` for a
        sound one that this compiler cannot do, ``UsageError`` for an option or executor that it does not have.
        """

    def outline(self, request: CompileRequest) -> Library | None:
        """Return a library with the same modules and files as ``compile``'s, by name; their contents mean nothing.

        Compiles nothing: build systems ask for it each time they are configured. ``None`` where only the archive tells,
        which has to be made for them then. Raises as ``compile`` does, as far as it finds out.
        """


class ExternalCompiler(Compiler, Protocol):
    """A compiler that runs ``request.program``, and cannot tell beforehand what it will leave."""

    def version(self, request: CompileRequest) -> str:
        """Return what decides the result beside the request and the files that it names; may start the program."""
