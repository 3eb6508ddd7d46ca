"""The interface that all compilers have: a request for one model and one CPU becomes a ``Library``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mlfbuild.core import Mistake, Trust
from mlfbuild.library.keys.interface_names import InterfaceNames
from mlfbuild.library.keys.memories import ArenaMemory, FastWeights
from mlfbuild.library.keys.npu import Npu
from mlfbuild.library.keys.placement import Placement
from mlfbuild.library.value import Library
from mlfbuild.targets import Cpu

OptionValue = str | int | float | bool


@dataclass(frozen=True)
class CompilerProgram:
    """The program that compiles a model instead of mlfbuild's own compiler."""

    folder: Path
    """Its working folder: that of the project file."""
    command: tuple[str, ...] = ()
    """The words of ``compiler: command``, with placeholders."""
    interpreter: str | None = None
    """With ``compiler: tvm``: the Python that has TVM, a path relative to ``folder`` or the name of a program."""
    inputs: tuple[str, ...] = ()
    """Files, folders and patterns, relative to ``folder``, that affect the result in addition to the model file."""


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
    memories: tuple[ArenaMemory, ...] = ()
    """Memories for tensors, scratch memory and state; empty for one arena in the section of ``placement``."""
    weights: FastWeights | None = None
    """Memory for weights that the code copies from flash; ``None`` to read all where they are."""
    trust: Trust | None = None
    """The accepted signers of the source, an archive; ``None`` if it needs no signature. It decides no byte."""
    npu: Npu | None = None
    """The NPU of the target, for which the native compiler compiles TFLite models."""


class Compiler(Protocol):
    """A compiler is a module-level object of this shape, listed in ``compilers.COMPILERS``."""

    name: str

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, Mistake]]:
        """Return (key, mistake) for each option that this compiler does not accept.

        Unknown options are mistakes as well. Nothing is read or started: project files are checked each time
        they are loaded.
        """

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


def invalid_option(reason: str) -> Mistake:
    """Return the mistake of an option whose value is not accepted."""
    return Mistake("invalid-option", reason=reason, hint="correct or remove it")


def check_switch(value: object) -> Mistake | None:
    """Return the mistake if ``value`` is neither true nor false.

    For ``check_options``: values come from project files and command lines, and 0 or ``yes`` is not a switch. ``None``
    if it is one.
    """
    return None if isinstance(value, bool) else invalid_option("must be true or false")


def refuse_options(compiler: Compiler, request: CompileRequest) -> None:
    """Raise ``UsageError`` for the first option of ``request`` that ``compiler`` does not accept.

    To be called first in ``compile`` and ``outline``, since a caller without a project file has not checked the
    options.
    """
    for key, mistake in compiler.check_options(request.options):
        raise mistake.error(f"{request.name}: options.{key}")
