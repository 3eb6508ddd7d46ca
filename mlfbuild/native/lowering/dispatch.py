"""Find the module that lowers an operator: it has the folder and the stem of the operator's file in ``graph/ops``.

Operators of ``common/plain``, whose calls have nothing but sizes and tensors, have no module of their own. If there is
no module for another one, those of its base classes are tried in turn. For example, ``Transpose`` is a ``Movement``,
and ``common/movement`` lowers all operators that only move elements.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.graph import Graph, Node, Operator
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter
from mlfbuild.native.lowering.numbers import Origin
from mlfbuild.native.settings import CodegenSettings

_PACKAGE = __name__.rpartition(".")[0]


@cache
def lowering_module(kind: type[Operator]) -> ModuleType | None:
    """Return the module with the function ``lower`` of operators of ``kind``; ``None`` if there is none.

    ``kind`` is a class of ``graph/ops`` or one that a pass makes. The module is imported only now, because a network
    needs few of them.
    """
    plain = import_module(f"{_PACKAGE}.common.plain")
    if issubclass(kind, plain.KINDS):
        return plain
    # The class itself is first.
    for base in kind.__mro__:
        if not issubclass(base, Operator) or base is Operator:
            # Beyond ``Operator`` there are only classes such as ``object``, which are of no family.
            break
        folder = base.__module__.split(".")[-2]
        folder = "common" if folder in {"bases", "ops"} else folder  # of no kind: base classes, operators of passes
        name = f"{_PACKAGE}.{folder}.{base.family()}"
        # ``find_spec`` first: an import error inside of an existing module must not count as its absence.
        if find_spec(name) is not None and hasattr(module := import_module(name), "lower"):
            return module
    return None


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call that computes ``node``; raises ``UnsupportedModelError`` if no kernel can.

    The constants of the call know their origin: the tensors that the node reads. Raises ``UnsupportedModelError`` as
    well for a node beyond a limit of its portable kernel.
    """
    try:
        module = lowering_module(type(node.operator))
        if module is None:
            raise UnsupportedModelError(
                "operator-not-supported",
                place=node.place,
                reason="the native compiler does not have this operator",
                hint="see docs/operators.md, or use another compiler (tvm or command)",
            )
        call = module.lower(graph, node, settings)
    except UnsupportedModelError as error:
        raise error.within(graph.name) from None
    assert isinstance(call, KernelCall)
    # The origin names the tensor of the model that the bytes of a constant come from.
    origin = Origin.of_node(graph, node)
    return replace(call, parameters=tuple(_with_origin(parameter, origin) for parameter in call.parameters))


def lower_all(graph: Graph, settings: CodegenSettings) -> list[KernelCall]:
    """Return the call of each node; raises one ``UnsupportedModelError`` with the reasons of all nodes without one.

    The calls are in the order of the nodes. Nodes are lowered one by one: a choice depends on the graph around a node,
    not on the calls of others.
    """
    # All nodes are tried, so that the user sees all reasons at once.
    calls = [_attempted(graph, node, settings) for node in graph.nodes]
    errors = [call for call in calls if isinstance(call, UnsupportedModelError)]
    if errors:
        raise UnsupportedModelError.of(errors)
    return [call for call in calls if isinstance(call, KernelCall)]


def _attempted(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall | UnsupportedModelError:
    try:
        return lower(graph, node, settings)
    except UnsupportedModelError as error:
        return error


def _with_origin(parameter: Parameter, origin: Origin) -> Parameter:
    value = parameter.argument
    return replace(parameter, argument=replace(value, origin=origin)) if isinstance(value, Constant) else parameter
