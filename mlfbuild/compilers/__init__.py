"""Compilers turn a model into a library for one CPU."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.compilers.archive import ARCHIVE
from mlfbuild.compilers.command import COMMAND
from mlfbuild.compilers.native import NATIVE
from mlfbuild.compilers.tvm import TVM
from mlfbuild.compilers.types import (
    Compiler,
    CompileRequest,
    CompilerProgram,
    ExternalCompiler,
    OptionValue,
    Placement,
)
from mlfbuild.core import UsageError

__all__ = [
    "COMPILERS",
    "EXTERNAL_COMPILERS",
    "CompileRequest",
    "Compiler",
    "CompilerProgram",
    "OptionValue",
    "Placement",
    "compiler_called",
]

EXTERNAL_COMPILERS: Mapping[str, ExternalCompiler] = {"command": COMMAND, "tvm": TVM}
"""Programs of somebody else."""
COMPILERS: Mapping[str, Compiler] = {"archive": ARCHIVE, "native": NATIVE, **EXTERNAL_COMPILERS}
"""Every compiler by the project file's word for it; they import what they need when they compile."""


def compiler_called(name: str) -> Compiler:
    """Return the compiler ``name``; raises ``UsageError`` where there is none."""
    if name not in COMPILERS:
        raise UsageError(f"{name}: no such compiler; choose one of {', '.join(sorted(COMPILERS))}")
    return COMPILERS[name]
