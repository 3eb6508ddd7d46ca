"""Convert the operators of a file to the nodes of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.core import UnsupportedModelError, listed
from mlfbuild.frontends.errors import naming_file
from mlfbuild.frontends.tflite.operators import (
    SHAPES,
    SUPPORTED,
    OperatorKind,
    TfliteSite,
    operator_kind,
    operator_name,
)
from mlfbuild.frontends.tflite.operators.variables import OPERANDS
from mlfbuild.frontends.tflite.reader import SEE, RawOperator, RawSubgraph, Reader, reading
from mlfbuild.frontends.tflite.tensors import Tensors
from mlfbuild.frontends.tflite.variables import Key, Variables, VariableValue
from mlfbuild.graph import (
    Array,
    ConstantBudget,
    DType,
    Graph,
    GraphError,
    Node,
    Operator,
    OperatorError,
    State,
    Tensor,
    evaluate,
)
from mlfbuild.graph.bases import WHOLE, alternatives

_COMPILED_BY = {"ethos-u": ("Vela", "an Ethos-U NPU"), "edgetpu-custom-op": ("edgetpu_compiler", "the Edge TPU")}
"""Custom operators that represent a part of a network: the program that writes them, and their hardware."""
_MOST_NUMBERS = 64
"""Elements up to which a tensor is computed at compile time, because it may be part of a shape."""


def parse_tflite(data: bytes, name: str, where: str, budget: ConstantBudget | None = None) -> Graph:
    """Return the TFLite model in ``data`` as a graph called ``name``; ``where`` names the file in messages.

    ``budget`` limits the constants that are made; the default is that of a file of this size.
    Raises ``InputFileError`` if it is not a valid model, ``UnsupportedModelError`` if it uses an operator, a type or a
    variant that is not supported, or if the tensors and attributes of an operator contradict its rules.
    """
    with naming_file(where, "tflite-malformed"):
        return _graph(Reader(data).read(), name, budget or ConstantBudget.of_file(len(data)))


def _graph(subgraphs: Sequence[RawSubgraph], name: str, budget: ConstantBudget) -> Graph:
    """Return the graph of the first subgraph; the others may only initialise its variables."""
    importer = _Importer(subgraphs[0], budget, subgraphs)
    graph = importer.graph(name)
    idle = [index for index in range(1, len(subgraphs)) if index not in importer.called]
    if idle:
        raise UnsupportedModelError(
            "subgraph-unused",
            place=f"subgraph {idle[0]} of {len(subgraphs)}",
            reason="no CALL_ONCE names the subgraph",
            hint="export the model with one subgraph",
        )
    return graph


class _Importer:
    """Converts one subgraph to a graph; ``subgraphs`` are those that CALL_ONCE may name."""

    def __init__(self, raw: RawSubgraph, budget: ConstantBudget, subgraphs: Sequence[RawSubgraph] = ()) -> None:
        self.called: dict[int, Mapping[Key, VariableValue]] = {}
        """The values of variables by the index of the subgraph that a CALL_ONCE names."""
        self._raw = raw
        self._budget = budget
        self._subgraphs = subgraphs
        self._tensors = Tensors(raw)
        self._variables = Variables(self._tensors)
        self._states: list[State] = []
        self._written = {index for operator in raw.operators for index in operator.outputs}

    def graph(self, name: str) -> Graph:
        """Return the subgraph as a graph."""
        nodes = self._nodes()
        inputs = [self._input(index).name for index in self._raw.inputs]
        outputs = [self._tensors.at("the model's outputs", index).name for index in self._raw.outputs]
        if not outputs:
            raise GraphError("the model's outputs", "there are none")
        return self._finished(name, nodes, inputs, outputs)

    def initial_values(self, caller: TfliteSite) -> dict[Key, VariableValue]:
        """Run the subgraph that the CALL_ONCE ``caller`` names; return the values that it assigns to variables."""
        if self._raw.inputs or self._raw.outputs:
            raise caller.wrong("the subgraph that it names has inputs or outputs")
        nodes, assigned = self._nodes(), self._variables.assigned()
        graph = self._finished("initialisation", nodes, (), [tensor.name for _, tensor in assigned.values()])
        if graph.states:
            raise caller.unsupported(
                "the subgraph that it names reads variables", "only assign to variables in that subgraph"
            )
        self._budget.take(caller.place, sum(tensor.size for node in graph.nodes for tensor in graph.outputs_of(node)))
        values = evaluate(graph, {})
        return {key: VariableValue(like, values[tensor.name]) for key, (like, tensor) in assigned.items()}

    def _finished(self, name: str, nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str]) -> Graph:
        states = [*self._states, *self._variables.states()]
        used = {name for node in nodes for name in (*node.inputs, *node.outputs) if name is not None}
        used.update(inputs, outputs, *((state.before, state.after) for state in states))
        return Graph(name, self._tensors.among(used), nodes, inputs, outputs, states)

    def _input(self, index: int) -> Tensor:
        tensor = self._tensors.at("the model's inputs", index)
        signature = self._raw.tensors[index].signature
        if any(size < 0 for size in signature[1:]):  # a free first dimension is the batch, as in the shape
            raise UnsupportedModelError(
                "shape-dynamic",
                place=f"input {tensor.name!r}",
                reason=f"the shape {list(signature)} is dynamic",
                hint="convert the model with a fixed shape",
            )
        return tensor

    def _check_operators(self) -> None:
        """Refuse a subgraph with unsupported operators before anything else is read; the error names each one once."""
        missing: dict[tuple[int, str], RawOperator] = {}
        for operator in self._raw.operators:
            if operator.code not in SUPPORTED:
                missing.setdefault((operator.code, operator.custom_code), operator)
        for operator in missing.values():
            if operator.custom_code in _COMPILED_BY:
                raise self._already_compiled(operator)
        if missing:
            names = listed([_name(operator) for operator in missing.values()])
            raise UnsupportedModelError(
                "operator-unsupported",
                place=self._place(next(iter(missing.values()))),
                reason=f"operator{f' {names} is' if len(missing) == 1 else f's {names} are'} not supported",
                hint=SEE,
            )

    def _already_compiled(self, operator: RawOperator) -> UnsupportedModelError:
        compiler, accelerator = _COMPILED_BY[operator.custom_code]
        return UnsupportedModelError(
            "model-compiled-for-accelerator",
            place=self._place(operator),
            reason=f"{compiler} compiled the file for {accelerator}, and its operators are no longer in it",
            hint=f"use the .tflite file that {compiler} read",
        )

    def _place(self, operator: RawOperator) -> str:
        names = self._tensors.names
        outputs = [index for index in operator.outputs if 0 <= index < len(names)]
        target = f" writing {names[outputs[0]]!r}" if outputs else ""
        return f"{self._raw.place}operator {operator.index} ({_name(operator)}){target}"

    def _nodes(self) -> list[Node]:
        self._check_operators()
        for operator in self._raw.operators:
            if operator.code == BuiltinOperator.VAR_HANDLE:
                self._variables.declare(self._site_of_variable(operator), operator.outputs[0])
        for operator in self._raw.operators:
            if operator.code == BuiltinOperator.ASSIGN_VARIABLE:
                self._variables.expect(self._site_of_variable(operator), operator.inputs[0])
        return [node for operator in self._raw.operators for node in self._nodes_of(operator)]

    def _nodes_of(self, operator: RawOperator) -> list[Node]:
        kind = operator_kind(operator.code)
        if kind is not None:
            node = self._node(operator, kind)
            return [] if self._is_computed(operator, kind, node) else [node]
        if operator.code in SHAPES:
            self._know(operator)
            return []
        site = self._site_of_variable(operator)
        if operator.code == BuiltinOperator.READ_VARIABLE:
            return self._variables.read(site, operator.inputs[0], operator.outputs[0])
        if operator.code == BuiltinOperator.ASSIGN_VARIABLE:
            return self._variables.assign(site, operator.inputs[0])
        if operator.code == BuiltinOperator.CALL_ONCE:
            self._variables.initialise(site, self._called(site))
        return []

    def _know(self, operator: RawOperator) -> None:
        """Make the output of an operator such as SHAPE a constant."""
        kind, place = SHAPES[operator.code], self._place(operator)
        if (len(operator.inputs), len(operator.outputs)) != (kind.values, 1):
            raise GraphError(place, f"has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs, "
                                    f"takes {kind.values} and writes 1")  # fmt: skip
        site = self._site(operator, [self._tensors.at(place, index) for index in operator.inputs], operator.outputs)
        output = site.output()
        if output.dtype not in kind.types:
            raise site.type_unsupported(output, alternatives(kind.types))
        self._budget.take(place, output.size)
        value = kind.read(site)
        if value.shape != output.shape:
            raise site.wrong(f"{output} should have the shape {list(value.shape)}")
        self._settle(site, operator.outputs[0], value)

    def _is_computed(self, operator: RawOperator, kind: OperatorKind, node: Node) -> bool:
        """Compute a node that makes few integers from constants; another operator may need them as a shape."""
        place = self._place(operator)
        indices = _ordered(operator.inputs, kind.order)[: kind.values]
        inputs = [None if index == -1 else self._tensors.at(place, index) for index in indices if not kind.states]
        outputs = [self._tensors.at(place, index) for index in operator.outputs]
        if not inputs or any(tensor is not None and tensor.data is None for tensor in inputs):
            return False
        if any(tensor.dtype not in WHOLE or tensor.elements > _MOST_NUMBERS for tensor in outputs):
            return False
        reason = node.operator.check(inputs, outputs)
        if reason is not None:
            raise OperatorError(place, reason)
        values = [None if tensor is None else tensor.data for tensor in inputs]
        site = self._site(operator, inputs, operator.outputs)
        for index, value in zip(operator.outputs, node.operator.reference(inputs, values, outputs), strict=True):
            self._settle(site, index, value)
        return True

    def _settle(self, site: TfliteSite, index: int, value: Array) -> None:
        """Make tensor ``index``, which ``site`` writes, the constant ``value``."""
        if self._tensors.at(site.place, index).constant:
            raise GraphError(site.place, "writes a constant")
        self._tensors.fill(index, value)

    def _site_of_variable(self, operator: RawOperator) -> TfliteSite:
        """Return the site of an operator on a variable, without the handle, which is not a tensor."""
        place, operands = self._place(operator), OPERANDS[operator.code]
        if (len(operator.inputs), len(operator.outputs)) != operands:
            wanted = f"takes {operands[0]} and writes {operands[1]}"
            raise GraphError(place, f"has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs, {wanted}")
        inputs = tuple(self._tensors.at(place, index) for index in operator.inputs[1:])
        outputs = () if operator.code == BuiltinOperator.VAR_HANDLE else operator.outputs
        return self._site(operator, inputs, outputs)

    def _site(self, operator: RawOperator, inputs: Sequence[Tensor | None], outputs: Sequence[int]) -> TfliteSite:
        place = self._place(operator)
        results = tuple(self._tensors.at(place, index) for index in outputs)
        return TfliteSite(place, tuple(inputs), results, operator.options_type, operator.options)

    def _called(self, site: TfliteSite) -> Mapping[Key, VariableValue]:
        """Return the values that the subgraph of a CALL_ONCE assigns to variables."""
        with reading(site.place):
            index = site.read_options("CallOnceOptions").InitSubgraphIndex()
        if not self._subgraphs:
            raise site.unsupported("a subgraph that initialises variables calls another subgraph")
        if not 0 <= index < len(self._subgraphs):
            raise site.wrong(f"names subgraph {index}, the last one is {len(self._subgraphs) - 1}")
        if index == 0:
            raise site.wrong("the operator names its own subgraph")
        if index not in self.called:
            self.called[index] = _Importer(self._subgraphs[index], self._budget).initial_values(site)
        return self.called[index]

    def _node(self, operator: RawOperator, kind: OperatorKind) -> Node:
        place = self._place(operator)
        most = kind.values + kind.attributes
        if len(operator.inputs) > most:
            raise GraphError(place, f"has {len(operator.inputs)} inputs, takes {most}")
        indices = _ordered(operator.inputs, kind.order)
        kept = {at: self._kept(place, indices, at) for at in kind.states}
        inputs = [
            kept[at][0] if at in kept else None if index == -1 else self._tensors.at(place, index)
            for at, index in enumerate(indices)
        ]
        site = self._site(operator, inputs, operator.outputs)
        if kind.values:
            site.input(0)
        if kind.layer:
            _check_hybrid(site)
            self._check_parameters(site, indices[1 : kind.values])
        result = kind.read(site)
        _check_types(site, site.inputs[:1], result)
        values = tuple(None if tensor is None else tensor.name for tensor in site.inputs[: kind.values])
        states = [state for _, state in kept.values()]
        self._states += states
        outputs = (*(tensor.name for tensor in site.outputs), *(state.after for state in states))
        return Node(outputs[0] if site.outputs else "", result, values, outputs)

    def _kept(self, place: str, indices: Sequence[int], at: int) -> tuple[Tensor, State]:
        """Return the variable at position ``at`` of an operator's values, and the state that it becomes."""
        if at >= len(indices) or indices[at] == -1:
            raise GraphError(place, "the variable that keeps its state is absent")
        return self._tensors.kept(place, indices[at])

    def _check_parameters(self, site: TfliteSite, indices: Sequence[int]) -> None:
        """Refuse weights and biases that are computed at run time (the graph itself refuses absent ones)."""
        for index, tensor in zip(indices, site.inputs[1:], strict=False):
            computed = index in self._written or index in self._raw.inputs
            if tensor is not None and not tensor.constant and computed:
                raise site.unsupported(f"weights and bias must be constant, {tensor} is not", code="input-not-constant")


def _name(operator: RawOperator) -> str:
    """Return the name of an operator in messages: ``CONV_2D``, ``CUSTOM 'Detect'``."""
    custom = f" {operator.custom_code!r}" if operator.custom_code else ""
    return f"{operator_name(operator.code)}{custom}"


def _ordered(indices: Sequence[int], order: Sequence[int]) -> Sequence[int]:
    """Return ``indices`` in another ``order``, with -1 for absent ones."""
    return [indices[at] if at < len(indices) else -1 for at in order] if order else indices


def _check_hybrid(site: TfliteSite) -> None:
    """Refuse integer weights over float32."""
    types = [None if tensor is None else tensor.dtype for tensor in site.inputs[:2]]
    if types[0] is DType.FLOAT32 and types[-1] not in {None, DType.FLOAT32}:
        raise site.unsupported(
            f"a hybrid model ({site.inputs[1]} over float32) is not supported",
            "quantise the activations too",
            code="quantization-unsupported",
        )


def _check_types(site: TfliteSite, sources: Sequence[Tensor | None], operator: Operator) -> None:
    """Refuse element types that are valid in TFLite but not supported by ``operator``."""
    checks = [(tensor, operator.types) for tensor in sources if tensor is not None]
    checks += [(tensor, operator.results or operator.types) for tensor in site.outputs]
    for tensor, types in checks:
        if tensor.dtype is DType.UINT8 and tensor.dtype not in types:
            raise site.unsupported(
                f"type uint8 of {tensor.name!r} (legacy quantisation) is not supported",
                "convert the model again with full integer quantisation, which uses int8",
                code="quantization-unsupported",
            )
        if tensor.dtype not in types:
            raise site.type_unsupported(tensor, alternatives(types))
