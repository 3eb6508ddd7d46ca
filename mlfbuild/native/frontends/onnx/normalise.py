"""Rewrite a model with onnx's own tools until only operators that the importer knows remain.

    nodes out of order -> sorted; opset below 7 -> converted; functions -> their nodes

The importer knows one form of a model: nodes in order of execution, an opset from 7 on, and operators of its own list.
Most models have that form and are not rewritten, because rewriting copies the weights and takes longer than compiling.
``reader`` calls these functions in this order:

1. ``sort_nodes``. ONNX requires an order of execution, but tools write others. Nodes that are in order stay where they
   are, so that messages and names do not change. A cycle is left for the importer, which names a node of it.
2. ``tolerate``. onnx's checker refuses what onnxruntime accepts: a size of -1, and an operator that is younger than the
   opset of the model. These are changed so that the checker has nothing to say. All other findings of it are errors.
3. ``needs_rewriting``. Only then the weights, which the reader cut out of the file, are put back, and ``rewritten``
   does the steps that are necessary.

``rewritten``:

1. An opset below 7 is converted to 7, which has numpy's broadcasting, by onnx's version converter. The converter leaves
   the slopes of PRelu as they are, so these get their dimensions first.
2. Functions are written out. A function is defined in the file (PyTorch's exporter writes such files), or it is the
   definition that ONNX gives for one of its operators, such as Attention, in terms of others. A node whose operator is
   not in ``known`` but has a definition becomes a call of a function with a name of its own; onnx's inliner does the
   rest. A definition may use operators that have definitions, so this is repeated, at most 8 times.
3. Before anything is written out, the number of nodes is computed from the sizes of the bodies and taken from the
   ``NodeBudget``. A file of a kilobyte can double a function 30 times.

For example, a file with the nodes Relu(u) -> y and Four(x) -> u, in this order, and two functions, Twice(a) = Add(a, a)
and Four(a) = Twice(Twice(a))::

    sort_nodes   Four, Relu
    budget       4 nodes: 2 in Four, and 1 in each Twice
    rewritten    Add(x, x) -> t__1, Add(t__1, t__1) -> u, Relu(u) -> y

PRelu of opset 6 with slopes [2] for an image [1, 2, 4, 4] becomes Unsqueeze(slopes) to [2, 1, 1] and PRelu of opset 7.

Nothing is computed, simplified or checked for being supported here; the importer does that. Operators in ``_KEPT`` keep
their names, because their definitions need what is not supported either, and a message about the operator itself helps
more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from mlfbuild.core import UnsupportedModelError, printable
from mlfbuild.native.frontends.node_budget import NodeBudget

DOMAINS = ("", "ai.onnx")
"""Names of ONNX's own domain."""
ML_DOMAIN = "ai.onnx.ml"
"""The domain of classical models, such as those of scikit-learn; no operator has the name of one of ONNX's own."""
FIRST_OPSET = 7
"""The first opset with numpy's broadcasting; older models are converted to it."""
_WITH_DEFINITIONS = (*DOMAINS, "ai.onnx.preview")
_KEPT = frozenset({"Bernoulli", "DynamicQuantizeLinear", "SequenceMap"})
"""Operators whose definition needs what is not supported either; the message about the operator is more helpful."""
_ROUNDS = 8
"""Definitions within definitions; ONNX's own have three at most."""
_DOMAIN = "mlfbuild.definition"
LATER_DOMAIN = "mlfbuild.later"
"""The domain of ONNX's own operators that the opset of the model does not have yet."""


def opset_of(model: ModelProto) -> int | None:
    """Return the version of ONNX's own operators that ``model`` uses; ``None`` if it names none.

    Raises ``ValueError`` if it names several.
    """
    versions = {entry.version for entry in model.opset_import if entry.domain in DOMAINS}
    if len(versions) > 1:
        raise ValueError(f"uses versions {' and '.join(map(str, sorted(versions)))} of ONNX's operators")
    return next(iter(versions), None)


def tolerate(model: ModelProto, known: Collection[str]) -> bool:
    """Change what ONNX's checker refuses in ``model``, but onnxruntime runs; return whether there was anything.

    A size of -1 is a free dimension. Operators in ``known`` that are younger than the opset, such as a
    LayerNormalization in opset 13, get the domain ``LATER_DOMAIN``, of which the checker knows nothing.
    """
    found = False
    for port in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for size in port.type.tensor_type.shape.dim:
            # Only the checker minds; for others, a size below 1 is free.
            if size.dim_value == -1:
                size.ClearField("dim_value")
                found = True
    opset, later = opset_of(model), False
    for node in all_nodes(model.graph):
        own = opset is not None and node.domain in DOMAINS and node.op_type in known
        late = own and not onnx.defs.has(node.op_type, opset or 0, "")
        if late and onnx.defs.has(node.op_type):
            node.domain, later = LATER_DOMAIN, True
    if later:
        model.opset_import.append(onnx.helper.make_opsetid(LATER_DOMAIN, 1))
    return found or later


def sort_nodes(graph: GraphProto) -> bool:
    """Sort the nodes of ``graph``, and of the graphs in it, by their dependencies; return whether any moved.

    The nodes of a cycle keep their order, and are reported later.
    """
    inner = [sort_nodes(other) for node in graph.node for other in _graphs(node)]
    writers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    needs = [[writers[name] for name in _read(node) if name in writers] for node in graph.node]
    # In order already, as most files are: nodes keep their places, and so messages their numbers.
    if all(need < index for index, found in enumerate(needs) for need in found):
        return any(inner)
    order = _order(needs)
    if order is None:
        return any(inner)
    # Copies: deleting the nodes of a protocol buffer makes references to them invalid.
    nodes = [NodeProto.FromString(graph.node[index].SerializeToString()) for index in order]
    del graph.node[:]
    graph.node.extend(nodes)
    return True


def _order(needs: Sequence[Sequence[int]]) -> list[int] | None:
    """Return the indices so that each follows those that it needs, otherwise in order; ``None`` for a cycle."""
    order: list[int] = []
    state = [0] * len(needs)  # 1: being visited, 2: in the order
    for start in range(len(needs)):
        stack = [start]
        while stack:
            index = stack[-1]
            # Without recursion: a chain of thousands of nodes would exceed Python's limit.
            missing = [need for need in needs[index] if state[need] != 2]
            if state[index] == 2:
                stack.pop()
            elif not missing:
                state[index] = 2
                order.append(stack.pop())
            elif state[index] == 1 and any(state[need] == 1 for need in missing):
                return None
            else:
                state[index] = 1
                stack.extend(reversed(missing))
    return order


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == attribute.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _read(node: NodeProto) -> Iterator[str]:
    """Yield the names that ``node`` reads, and those that the graphs in it may read of the graph around them."""
    yield from node.input
    for graph in _graphs(node):
        yield from (port.name for port in graph.output)
        for other in graph.node:
            yield from _read(other)


def needs_rewriting(model: ModelProto, known: Collection[str]) -> bool:
    """Return whether ``rewritten`` would change ``model``; ``known`` are the operators that are imported directly."""
    opset = opset_of(model)
    return bool(
        model.functions
        or (opset is not None and opset < FIRST_OPSET)
        or any(_definable(node, known, opset) for node in all_nodes(model.graph))
    )


def rewritten(model: ModelProto, known: Collection[str], budget: NodeBudget) -> ModelProto:
    """Return ``model`` for a later opset and without functions, whose nodes ``budget`` counts.

    ``model`` is valid and has all weights in it. Raises ``UnsupportedModelError`` if onnx cannot rewrite it.
    """
    opset = opset_of(model)
    if opset is not None and opset < FIRST_OPSET:
        model = _converted(model)
    if model.functions:
        model = _inlined(model, budget)
    # Definitions may use operators that have definitions.
    for _ in range(_ROUNDS):
        functions = list(_definitions(model, known))
        if not functions:
            break
        model.functions.extend(functions)
        model.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))
        model = _inlined(model, budget)
        imports = [entry for entry in model.opset_import if entry.domain != _DOMAIN]
        del model.opset_import[:]
        model.opset_import.extend(imports)
    return model


def _converted(model: ModelProto) -> ModelProto:
    from onnx import version_converter

    _align_slopes(model.graph, _types(model))
    try:
        return version_converter.convert_version(model, FIRST_OPSET)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise UnsupportedModelError(
            "opset-too-old",
            reason=f"onnx cannot convert version {opset_of(model)} of its operators to version {FIRST_OPSET}: "
            f"{one_line(error)}",
            hint=f"export the model for version {FIRST_OPSET} or later",
        ) from None


def _align_slopes(graph: GraphProto, types: Mapping[str, TypeProto]) -> None:
    """Give the slopes of PRelu a dimension for each that follows the channels, as broadcasting does since version 7.

    onnx's converter leaves them as they are: one number for each channel.
    """
    nodes = []
    for node in graph.node:
        if node.op_type == "PRelu" and len(node.input) == 2:
            ranks = [_rank(types.get(name)) for name in node.input]
            image, slopes = ranks
            if image is None or slopes is None:
                raise UnsupportedModelError(
                    "opset-too-old",
                    place=f"node {node.op_type} writing {node.output[0]!r}",
                    reason="a PRelu of an old version is not supported if the shapes of its inputs are unknown",
                    hint=f"export the model for version {FIRST_OPSET} or later",
                )
            if slopes == 1 and image > 2:
                name = f"{node.output[0]}/slope"
                axes = list(range(1, image - 1))
                nodes.append(onnx.helper.make_node("Unsqueeze", [node.input[1]], [name], axes=axes))
                node.input[1] = name
        nodes.append(node)
    if len(nodes) != len(graph.node):
        copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)


def _rank(kind: TypeProto | None) -> int | None:
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    return len(kind.tensor_type.shape.dim)


def _inlined(model: ModelProto, budget: NodeBudget) -> ModelProto:
    from onnx import inliner

    _count_calls(model, budget)
    try:
        # A function may be of another opset than the model.
        return inliner.inline_local_functions(model, convert_version=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        name = model.functions[0].name
        raise UnsupportedModelError(
            "function-unsupported",
            reason=f"onnx cannot write out the functions of the model, such as {name!r}: {one_line(error)}",
            hint="export the model without functions",
        ) from None


def _count_calls(model: ModelProto, budget: NodeBudget) -> None:
    """Count the nodes that the functions of ``model`` become, without writing them out."""
    bodies = {_key(function): list(_inner(function.node)) for function in model.functions}
    keys = list(bodies)
    numbers = {key: index for index, key in enumerate(keys)}
    called = [[numbers[key] for node in bodies[name] if (key := _called(node)) in numbers] for name in keys]
    order = _order(called)
    if order is None:
        names = ", ".join(printable(function.name) for function in model.functions[:3])
        raise UnsupportedModelError(
            "function-unsupported",
            reason=f"functions of the model call themselves (functions {names})",
            hint="export the model without functions",
        )
    sizes: dict[int, int] = {}
    for index in order:
        # In the order of calls, so that each function is counted once, however often it would be written out.
        sizes[index] = max(1, len(bodies[keys[index]])) + sum(sizes[other] for other in called[index])
    for at, node in enumerate(model.graph.node):
        for inner in _inner([node]):
            if (key := _called(inner)) in numbers:
                budget.take(sizes[numbers[key]], f"node {at} ({printable(inner.op_type)})")


def _key(function: FunctionProto) -> tuple[str, str, str]:
    return function.domain, function.name, function.overload


def _called(node: NodeProto) -> tuple[str, str, str]:
    return node.domain, node.op_type, node.overload


def all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes of ``graph`` and of the graphs in them."""
    return _inner(graph.node)


def _inner(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield ``nodes`` and those of the graphs in them."""
    for node in nodes:
        yield node
        for graph in _graphs(node):
            yield from _inner(graph.node)


def all_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield the tensors of ``model``: weights, and attributes of nodes, also in functions and inner graphs."""
    yield from model.graph.initializer
    functions = (node for function in model.functions for node in function.node)
    for node in (*all_nodes(model.graph), *_inner(functions)):
        for attribute in node.attribute:
            yield from [attribute.t, *attribute.tensors] if attribute.HasField("t") else attribute.tensors
        for graph in _graphs(node):
            yield from graph.initializer


def _definable(node: NodeProto, known: Collection[str], opset: int | None) -> bool:
    """Return whether ``node`` has an operator that is not known and that ONNX defines with other operators."""
    if node.domain not in _WITH_DEFINITIONS or node.op_type in _KEPT:
        return False
    if node.domain in DOMAINS and node.op_type in known:
        return False
    schema = _schema(node, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def _schema(node: NodeProto, opset: int | None) -> Any:
    """Return ONNX's ``OpSchema`` of ``node``, whose type hints lack functions; ``None`` if it has none."""
    version = (opset or onnx.defs.onnx_opset_version()) if node.domain in DOMAINS else 1
    domain = "" if node.domain in DOMAINS else node.domain
    try:
        return onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def _definitions(model: ModelProto, known: Collection[str]) -> Iterator[FunctionProto]:
    """Make each node that ``_definable`` finds a call of a function, and yield these functions."""
    opset = opset_of(model)
    nodes = [node for node in all_nodes(model.graph) if _definable(node, known, opset)]
    if not nodes:
        return
    types = _types(model)
    for index, node in enumerate(nodes):
        schema = _schema(node, opset)
        function = _definition(schema, node, opset or onnx.defs.onnx_opset_version(), types)
        if function is None:
            continue
        present = {attribute.name for attribute in node.attribute}
        node.attribute.extend(
            attribute.default_value
            for name, attribute in schema.attributes.items()
            if name not in present and attribute.default_value.name and name in function.attribute
        )
        node.domain, node.op_type = _DOMAIN, f"{node.op_type}_{index}"
        function.domain, function.name = node.domain, node.op_type
        yield function


def _definition(schema: Any, node: NodeProto, opset: int, types: Mapping[str, TypeProto]) -> FunctionProto | None:
    """Return ONNX's definition of ``node``; ``None`` if it has none for the types of the inputs."""
    try:
        if schema.has_context_dependent_function:
            version = _newest(schema.context_dependent_function_opset_versions, opset)
            inputs = [types.get(name, TypeProto()).SerializeToString() for name in node.input]
            data = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), inputs)
        else:
            data = schema.get_function_with_opset_version(_newest(schema.function_opset_versions, opset))
    except (RuntimeError, ValueError):
        return None
    return FunctionProto.FromString(data) if data else None


def _newest(versions: Iterable[int], opset: int) -> int:
    """Return the greatest of ``versions`` that is not above ``opset``; the least if all are."""
    found = list(versions)
    return max((version for version in found if version <= opset), default=min(found))


def _types(model: ModelProto) -> dict[str, TypeProto]:
    """Return the types of tensors by name, as far as ONNX can infer them."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError):  # the import reports what is wrong
        inferred = model
    found = {
        tensor.name: onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        for tensor in inferred.graph.initializer
    }
    for graph in (inferred.graph, *(other for node in inferred.graph.node for other in _graphs(node))):
        found |= {port.name: port.type for port in (*graph.input, *graph.output, *graph.value_info)}
    return found


def one_line(error: Exception) -> str:
    """Return the first paragraph of ``error`` as a line; it may quote names from the file."""
    return printable(" ".join(str(error).split("\n\n")[0].split()))
