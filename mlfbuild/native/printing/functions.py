"""Collect the operator functions of a C file, and name them by operator and geometry.

So a map file or a profile can be read without the model, and a node added before others changes no name::

    tvmgen_kws_conv2d_10x4_s2_49x10x1_to_25x5x64         filter of 10 rows and 4 columns, stride 2, image to image
    tvmgen_kws_depthwise_conv2d_3x3_25x5x64              the input has the shape of the output
    tvmgen_vww_conv2d_3x3_s1x2_d2_48x48x8_to_48x24x16    stride of rows and columns, dilation
    tvmgen_kws_softmax_12
    tvmgen_kws_softmax_12_2                              another function of the same geometry

Shapes are those of the first input and the first output without leading dimensions of 1; the comment before a function
has all of them. C99 compares only the first 63 characters of a name without linkage, so the input, then the window and
the output are omitted from longer names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.bases import Window
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, Pool2D, TransposeConv
from mlfbuild.native.lowering import KernelCall

_SIGNIFICANT = 63
"""The characters of an internal name that compilers must compare (C99, 5.2.4.1)."""


@dataclass(frozen=True)
class NodeFunction:
    """An operator function; nodes whose functions have equal text share it."""

    name: str
    call: KernelCall
    node: Node
    """The first node that calls it."""


class FunctionNames:
    """The names of the functions of a C file; all begin with ``prefix`` and end with ``ending``."""

    def __init__(self, graph: Graph, prefix: str, ending: str = "") -> None:
        self._graph = graph
        self._prefix = prefix
        self._ending = ending
        self._taken: set[str] = set()

    def add(self, node: Node, word: str) -> str:
        """Return a new name for a function of ``node``, whose operator is called ``word`` in C."""
        stems = [f"{self._prefix}_{word}{rest}" for rest in _geometries(self._graph, node)]
        numbers = itertools.chain([""], (f"_{number}" for number in itertools.count(2)))
        suffixes = (f"{number}{self._ending}" for number in numbers)
        name = next(name for suffix in suffixes if (name := _fitting(stems, suffix)) not in self._taken)
        self._taken.add(name)
        return name


class NodeFunctions:
    """The operator functions of a C file; equal ones are stored once."""

    def __init__(self, names: FunctionNames) -> None:
        self._names = names
        self._functions: dict[tuple[object, ...], NodeFunction] = {}

    def __iter__(self) -> Iterator[NodeFunction]:
        return iter(self._functions.values())

    def add(self, node: Node, call: KernelCall) -> NodeFunction:
        """Return the function of ``call``, to which ``node`` is lowered."""
        declared = tuple((parameter.c_type, parameter.name) for parameter in call.parameters)
        # Not by the kernel's name alone: the sizes are literals in the body.
        key = (call.operator, declared, call.body)
        if key not in self._functions:
            self._functions[key] = NodeFunction(self._names.add(node, call.operator), call, node)
        return self._functions[key]


def _fitting(stems: Sequence[str], suffix: str) -> str:
    names = [f"{stem}{suffix}" for stem in stems]
    return next((name for name in names if len(name) <= _SIGNIFICANT), names[-1])


def _geometries(graph: Graph, node: Node) -> Iterator[str]:
    """Yield what follows the operator in the name of a function, from the longest to the shortest text."""
    inputs = [tensor for tensor in graph.inputs_of(node).present if not tensor.constant]
    result = _sizes(graph.outputs_of(node)[0].shape)
    source = _sizes(inputs[0].shape) if inputs else result
    window = _window(graph, node)
    filter_ = "" if window is None else _filter(window)
    yield f"{filter_}{source}_to{result}" if source != result else f"{filter_}{result}"
    yield f"{filter_}{result}"
    yield result
    yield ""


def _sizes(shape: Sequence[int]) -> str:
    """Return the sizes after an underscore, such as ``_25x5x64`` of [1, 25, 5, 64] and ``_1`` of a scalar."""
    sizes = itertools.dropwhile(lambda size: size == 1, shape)
    return f"_{'x'.join(str(size) for size in sizes) or 1}"


def _window(graph: Graph, node: Node) -> Window | None:
    operator = node.operator
    if isinstance(operator, Conv2D | DepthwiseConv2D | TransposeConv):
        return operator.window(graph.inputs_of(node)[1])
    return operator.window() if isinstance(operator, Pool2D) else None


def _filter(window: Window) -> str:
    """Return the size of a filter, its stride and its dilation unless they are 1, such as ``_3x3_s2``."""
    rows, columns = window.filter
    pairs = (("s", window.stride), ("d", window.dilation))
    steps = (
        f"_{letter}{down}" if down == right else f"_{letter}{down}x{right}"
        for letter, (down, right) in pairs
        if (down, right) != (1, 1)
    )
    return f"_{rows}x{columns}{''.join(steps)}"


def print_definition(head: str, body: Iterable[str], before: Iterable[str] = ()) -> str:
    """Return a C function with the lines ``body``, after the lines ``before``, such as a comment or an attribute.

    ``head`` is all of the declaration but the semicolon.
    """
    return "\n".join([*before, head, "{", *body, "}"])
