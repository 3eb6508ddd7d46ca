"""The interface that all compilers have: (model, cpu) -> Library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mlfbuild.project import CompilerProgram, InterfaceNames, Mistake, OptionValue, Placement
from mlfbuild.targets import Cpu

if TYPE_CHECKING:
    from mlfbuild.library import Library

__all__ = ["CompileRequest", "Compiler", "CompilerProgram", "ExternalCompiler", "OptionValue", "Placement"]


@dataclass(frozen=True)
class CompileRequest:
    """All inputs of a compilation; equal requests give equal libraries."""

    name: str
    """The model's name, a C identifier ``[a-z][a-z0-9_]*``: module name and part of every C symbol."""
    source: Path
    cpu: Cpu
    executor: str | None = None
    """``aot`` or ``graph``; ``None`` is the compiler's default."""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    placement: Placement = field(default_factory=Placement)
    program: CompilerProgram | None = None
    """The program of an ``ExternalCompiler``."""
    interface: InterfaceNames = field(default_factory=InterfaceNames)
    """Names of inputs and outputs in C, for the native compiler."""
    extensions: Mapping[str, OptionValue] = field(default_factory=dict)
    """Facts for later stages, which each module of the archive records."""


class Compiler(Protocol):
    """A compiler is a module-level object of this shape, listed in ``compilers.COMPILERS``."""

    name: str

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, Mistake]]:
        """Return (key, mistake) for each option that this compiler does not accept."""

    def compile(self, request: CompileRequest) -> Library:
        """Compile the model.

        Raises ``InputFileError`` if the model file is damaged or of another format, ``UnsupportedModelError`` if it is
        valid but this compiler cannot compile it, ``UsageError`` for an option or executor that it does not have.
        """

    def outline(self, request: CompileRequest) -> Library | None:
        """Return a library whose modules and files have the names of ``compile``'s; ignore their contents.

        Compiles nothing, because build systems call it each time they are configured. ``None`` if the names are not
        known before the archive has been built. Raises as ``compile`` does, for the mistakes that it can detect.
        """


class ExternalCompiler(Compiler, Protocol):
    """A compiler that runs ``request.program``, whose files are not known before it has run."""

    def version(self, request: CompileRequest) -> str:
        """Return the program's version, which the cache key includes; may start the program."""
