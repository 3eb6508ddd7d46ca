"""The built-in compiler: a model file becomes one C file and one header, with the kernels that they include.

    parse_model -> passes -> plan -> lower -> emit

``passes`` rewrite the graph, ``plan`` gives each tensor its place in memory, ``ops`` turn each node into a call of a
kernel with its constants, ``emit`` prints C. Each step is a pure function of the one before, so that the same model
gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mlfbuild.core import UsageError, advised

if TYPE_CHECKING:
    from mlfbuild.compilers.types import CompileRequest, OptionValue
    from mlfbuild.library import Library

__all__ = ["EXECUTORS", "NATIVE", "NativeCompiler"]

EXECUTORS = ("aot", "graph")
_SWITCHES = ("trace", "hook")
"""Options that are true or false."""


class NativeCompiler:
    """Compiles ``.tflite`` and ``.onnx`` models to C99 (see ``compilers.Compiler``)."""

    name = "native"

    def check_options(self, options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
        """Return (key, reason) for each option that is not one of ours with one of its values."""
        from mlfbuild.compilers.native.settings import MEMORY

        known = {"memory": f"one of {', '.join(MEMORY)}"} | dict.fromkeys(_SWITCHES, "true or false")
        all_known = ", ".join(f"{key} ({values})" for key, values in known.items())
        return [
            (key, f"must be {known[key]}" if key in known else f"unknown option; the native compiler has {all_known}")
            for key, value in options.items()
            if not (isinstance(value, bool) if key in _SWITCHES else key in known and value in MEMORY)
        ]

    def compile(self, request: CompileRequest) -> Library:
        """Compile the model of ``request``; raises as ``Compiler.compile`` says."""
        self._check(request)
        from mlfbuild.compilers.native.build import compile_model

        return compile_model(request)

    def outline(self, request: CompileRequest) -> Library:
        """Return the names of what ``compile`` makes, without reading the model: they are the same for every model."""
        self._check(request)
        from mlfbuild.compilers.native.printing import outline_library

        return outline_library(request.name, request.executor or "aot")

    def _check(self, request: CompileRequest) -> None:
        for key, reason in self.check_options(request.options):
            raise UsageError(advised(f"{request.name}: options.{key}: {reason}", "correct or remove it"))
        if request.executor not in {None, *EXECUTORS}:
            known = " or ".join(EXECUTORS)
            raise UsageError(f'{request.name}: the native compiler has no executor "{request.executor}"; use {known}')
        if request.executor == "graph":
            self._check_graph(request)

    def _check_graph(self, request: CompileRequest) -> None:
        """Refuse what is about code that runs a network, which for a graph is made when its archive is unpacked."""
        advice = "leave it out, or use executor aot"
        if request.options.get("trace"):
            raise UsageError(f"{request.name}: options.trace: a graph hands out every tensor without it; {advice}")
        if request.placement.shares_workspace:
            raise UsageError(f"{request.name}: placement.workspace: a graph's executor has one of its own; {advice}")


NATIVE = NativeCompiler()
