"""Compilers turn a model into a library for one CPU."""

from mlfbuild.compilers.types import Compiler, CompileRequest, OptionValue, Placement

__all__ = ["CompileRequest", "Compiler", "OptionValue", "Placement"]
