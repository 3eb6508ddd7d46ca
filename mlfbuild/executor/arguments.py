"""Find the source of each argument of a graph: the caller, the archive's parameters, or the module's own code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.core import InputFileError, quoted
from mlfbuild.executor.kernels import Kernels
from mlfbuild.library import (
    LINKED_ARRAY,
    LINKED_PARAMETERS,
    Module,
    ParamInfo,
    TensorInfo,
    param_infos,
    parse_dtype,
    text_of,
)
from mlfbuild.library.graph_json import ExecutorGraph

_CONSTANT = re.compile(r"p[0-9]+")
"""The names that TVM gives to arguments that it makes of constants."""


@dataclass(frozen=True)
class GraphArguments:
    """Names of a graph's arguments; all others are inputs."""

    params: frozenset[str]
    linked: frozenset[str]
    """Parameters compiled into the code, which refers to them by storage id (``link-params`` of TVM 0.8)."""


def graph_arguments(graph: ExecutorGraph, kernels: Kernels) -> GraphArguments:
    """Return the sources of the arguments of ``graph``.

    Raises ``InputFileError`` for a parameter that is missing or has another type or shape than in the graph.
    """
    module = kernels.module
    known = param_infos(module.params)
    for argument in graph.arguments:
        if argument.name in known:
            _check_type(module, argument, known[argument.name])
    # Only arguments without values in the archive can be linked, so the search below is often not needed.
    others = [argument.name for argument in graph.arguments if argument.name not in known]
    linked = frozenset(_linked(kernels) if _may_be_linked(module, others) else ()).intersection(others)
    missing = next((name for name in others if name not in linked and _is_missing(module, name)), None)
    if missing is not None:
        raise InputFileError(
            "graph-argument-missing",
            place=module.name,
            reason=f"the graph reads {quoted(missing)}, neither an input nor in parameters/{module.name}.params",
        )
    return GraphArguments(frozenset(known), linked)


def _check_type(module: Module, argument: TensorInfo, info: ParamInfo) -> None:
    types = (parse_dtype(info.dtype), parse_dtype(argument.dtype))
    # If TVM's names do not include a type, only the shapes are compared.
    if info.shape != argument.shape or (types[0] != types[1] and None not in types):
        raise InputFileError(
            "parameter-mismatch",
            place=module.name,
            reason=f"parameter {quoted(argument.name)} is {info.dtype}{list(info.shape)}, and the graph reads "
            f"{argument.dtype}{list(argument.shape or ())}",
        )


def _may_be_linked(module: Module, names: list[str]) -> bool:
    inputs = {tensor.name for tensor in module.inputs}
    # Searching the code for linked parameters reads every token of it, which takes long for large models.
    return any(name not in inputs for name in names)


def _linked(kernels: Kernels) -> Iterator[str]:
    """Yield the names of parameter arrays in the code, if it has the function that returns their addresses."""
    if kernels.defines(LINKED_PARAMETERS):
        pattern = re.compile(rf"\b{LINKED_ARRAY}(\w+)")
        for text in kernels.texts.values():
            yield from pattern.findall(text)
        # Compilers keep the names of static arrays as local symbols, unless the object was stripped.
        for symbols in kernels.symbols.values():
            names = symbols.local | symbols.defined
            yield from (name.removeprefix(LINKED_ARRAY) for name in names if name.startswith(LINKED_ARRAY))


def _is_missing(module: Module, name: str) -> bool:
    """Return whether the argument ``name``, for which there are no values, is a missing parameter rather than an input.

    If the metadata does not list inputs, they were read from the graph. Then an argument with a name that TVM gives to
    constants is a parameter, unless the program's text has such an input.
    """
    if name not in {tensor.name for tensor in module.inputs}:
        return True
    if module.model_id:
        return False  # the native compiler lists inputs, which may have any name
    text = text_of(module.source_text)
    return bool(text) and _CONSTANT.fullmatch(name) is not None and not re.search(rf"%{name}\b", text)
