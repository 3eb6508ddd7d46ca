"""Convert one subgraph of a file to a graph.

What goes through. ``reader`` returns the subgraphs of the file as plain values: tensors and operators that refer to
each other by index. The signature of the user, or else the first place, selects one. On its way to a graph it is

1. freed of composites (``control_flow.inlined``), which are replaced by the operators of the subgraphs that they name,
2. given the shapes of detections, which no converter writes (``operators.detections``),
3. freed of uint8 (``unsigned``), of which int8 tensors are made that are lower by 128,
4. converted operator by operator, in the order of the file. That is an order of execution, so all that an operator
   reads is known before it.

``SubgraphConversion`` is the state of the fourth step. An operator takes the first of these paths that fits:

- A DEQUANTIZE of stored weights, and operators on shapes such as SHAPE and RANGE, become constants (``nodes``).
- An operator with a row in ``operators`` becomes a node (``nodes``). If it makes few integers from constants, it is
  computed at once, because a later operator may need them as a shape.
- WHILE and IF become the operators of other subgraphs (``control_flow``), which take the same paths.
- Operators on resource variables become states of the graph (``variables``).

Rules:

- Shapes are decided when an operator is converted, never later. If the file leaves the shape of an output open (-1 in
  its signature, or no shape), the operator's ``check`` names the shape that it needs (``WrongShape``), and the tensor
  gets it if that agrees with the sizes that the file does have. This is repeated, because a check names only its first
  reason. A fixed shape is never changed: one that contradicts the operator is an error.
- All inputs of the model have a fixed shape, except for a free first dimension, the batch, which is as in the shape.
- An operator that is not supported is recorded in ``refusals``, and its outputs in ``missing``. The import goes on, so
  that the user sees all reasons at once; errors that only follow from missing tensors are left out.
- A file that contradicts itself (``GraphError``) ends the import. If an operator was refused before, the user sees
  that reason instead, because it may be the cause.
- Constants that are made take from the ``ConstantBudget``, copies of operators from the ``NodeBudget``, before they
  are made: a small file can describe much.

Example. The operators ``SHAPE(x)``, ``STRIDED_SLICE(shape, 0, 1, 1)``, ``PACK(batch, 49)`` and ``RESHAPE(x, new)``
with ``x`` int8[1, 7, 7] become one node. SHAPE is the constant [1, 7, 7] by its row in ``SHAPES``. STRIDED_SLICE and
PACK make nodes that read only constants and write integers, so they become the constants 1 and [1, 49]. RESHAPE takes
its second input as an attribute: ``TfliteSite.constant`` returns [1, 49], which must be the shape of the output. The
graph has ``RESHAPE``, ``x`` and the output; the constants that no node reads are left out.

It does not simplify or fuse (``passes`` do), does not check the tensors of nodes (``Graph`` does), and does not choose
shapes for the user: dynamic inputs are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.core import UnsupportedModelError, UsageError, listed
from mlfbuild.native.frontends.choices import AbsentInputs
from mlfbuild.native.frontends.errors import naming_file, unsupported
from mlfbuild.native.frontends.tflite.control_flow import ControlFlow, inlined
from mlfbuild.native.frontends.tflite.conversion import (
    SubgraphConversion,
    all_refusals,
    check_free_shapes,
    check_operators,
    complex_refused,
    is_known,
)
from mlfbuild.native.frontends.tflite.nodes import OperatorNodes, is_dequantized, settle_shape
from mlfbuild.native.frontends.tflite.operators import (
    SHAPES,
    VARIABLES,
    TfliteSite,
    operator_name,
    operator_row,
)
from mlfbuild.native.frontends.tflite.reader import RawOperator, RawSubgraph, Reader
from mlfbuild.native.frontends.tflite.tensors import unique_names
from mlfbuild.native.frontends.tflite.unsigned import refusal
from mlfbuild.native.frontends.tflite.variables import Key, Variables, VariableValue
from mlfbuild.native.graph import ConstantBudget, Graph, GraphError, Node, Operator, OperatorError, evaluate

_OF_LITERT = "have the numbers of LiteRT's reference kernels, because TensorFlow Lite Micro does not run them"
_TAKE_COMPLEX = frozenset({"COMPLEX_ABS", "EXPAND_DIMS", "IMAG", "REAL", "RESHAPE", "RFFT2D", "SQUEEZE"})
"""Operators that may read or write complex numbers."""
_CONSEQUENCES = frozenset({"input-not-constant", "operator-invalid"})
"""Errors that another error may cause: an input of the operator is a tensor of which too little is known."""


def parse_tflite(
    data: bytes,
    name: str,
    where: str,
    budget: ConstantBudget | None = None,
    signature: str | None = None,
    accelerator: str = "",
    absent: AbsentInputs | None = None,
) -> Graph:
    """Return the TFLite model in ``data`` as a graph called ``name``; ``where`` names the file in messages.

    ``budget`` limits the constants that are made; the default is that of a file of this size. ``signature`` selects
    the subgraph; the default is the first one, which runtimes also run. ``accelerator`` is the NPU for which Vela
    compiled the file, ``absent`` has the inputs that it left out.
    Raises ``InputFileError`` if it is not a valid model, ``UnsupportedModelError`` if it uses an operator, a type or a
    variant that is not supported, or if the tensors and attributes of an operator contradict its rules, and
    ``UsageError`` if there is no such ``signature``.
    """
    with naming_file(where, "tflite-malformed"):
        reader = Reader(data)
        subgraphs, signatures = reader.read(), reader.signatures()
        if accelerator:
            from mlfbuild.native.frontends.tflite.npu import with_npu_calls  # few targets have an NPU

            subgraphs = with_npu_calls(reader, subgraphs, accelerator, absent or {})
        index = 0 if signature is None else _selected(signatures, signature, name)
        importer = _Importer(subgraphs[index], budget or ConstantBudget.of_file(len(data)), subgraphs, index)
        graph = importer.graph(name)
    idle = [
        each for each in range(len(subgraphs)) if each != index and each not in {*importer.called, *importer.inlined}
    ]
    notes = [f"{words} {_OF_LITERT}" for words in importer.only_litert]
    notes += _left_out(idle, signatures, signature)
    return graph.with_notes([*graph.notes, *notes], litert=bool(importer.only_litert))


def port_names_in(data: bytes, signature: str | None, name: str) -> tuple[list[str], list[str]]:
    """Return the names that ``parse_tflite`` gives to the inputs and outputs; raises ``GraphError``, ``UsageError``."""
    reader = Reader(data)
    subgraphs = reader.read()
    raw = subgraphs[0 if signature is None else _selected(reader.signatures(), signature, name)]
    names = unique_names(raw.tensors)
    for what, indices in (("inputs", raw.inputs), ("outputs", raw.outputs)):
        if not all(0 <= index < len(names) for index in indices):
            raise GraphError(f"the model's {what}", "there is no such tensor")
    return [names[index] for index in raw.inputs], [names[index] for index in raw.outputs]


def _selected(signatures: Mapping[str, int], signature: str, name: str) -> int:
    """Return the index of the subgraph of ``signature``."""
    if signature not in signatures:
        known = f"its signatures are {listed([*signatures])}"
        raise UsageError(
            "signature-unknown",
            place=f"{name}: signature",
            reason=f"the file has no signature {signature!r}; {known}" if signatures else "the file has no signatures",
            hint="use one of these names" if signatures else "remove signature",
        )
    return signatures[signature]


def _left_out(idle: Sequence[int], signatures: Mapping[str, int], signature: str | None) -> Iterator[str]:
    """Yield a note about the subgraphs ``idle``, which are not compiled, unless the user selected a ``signature``."""
    if not idle or signature is not None:
        return
    others = listed([repr(name) for name, index in signatures.items() if index in idle])
    if others:
        yield f"only the first subgraph of the file is compiled; to compile another one, select its signature: {others}"
    else:
        left = f"subgraph {idle[0]} is" if len(idle) == 1 else f"subgraphs {listed([*map(str, idle)])} are"
        yield f"only the first subgraph of the file is compiled; {left} left out"


class _Importer:
    """Converts one subgraph, number ``index``, to a graph; ``subgraphs`` are those that CALL_ONCE may name."""

    def __init__(
        self, raw: RawSubgraph, budget: ConstantBudget, subgraphs: Sequence[RawSubgraph] = (), index: int = 0
    ) -> None:
        raw, parts = inlined(subgraphs, index) if subgraphs else (raw, frozenset())
        self._conversion = conversion = SubgraphConversion(raw, budget)
        self._operators = OperatorNodes(conversion)
        self._variables = Variables(conversion.tensors)
        self._control_flow = ControlFlow(conversion, subgraphs, index, self._supported)
        self.inlined = self._control_flow.inlined
        """The subgraphs that became, or might have become, parts of this one."""
        self.inlined |= parts
        self.called: dict[int, Mapping[Key, VariableValue]] = {}
        """The values of variables by the index of the subgraph that a CALL_ONCE names."""
        self._subgraphs, self._index = subgraphs, index

    @property
    def only_litert(self) -> list[str]:
        """The parts of the subgraph that have the numbers of LiteRT."""
        hybrid = self._operators.hybrid is not None
        return [*(["uint8 operators"] if self._conversion.raw is not self._conversion.file else []),
                *(["layers of int8 weights over float32"] if hybrid else [])]  # fmt: skip

    def graph(self, name: str) -> Graph:
        """Return the subgraph as a graph."""
        # Before any operator: what is computed from such an input is missing as well.
        check_free_shapes(self._conversion)
        nodes = self._nodes()
        raw = self._conversion.raw
        inputs, outputs = self._ports("input", raw.inputs), self._ports("output", raw.outputs)
        if not outputs:
            raise GraphError("the model's outputs", "there are none")
        return self._finished(name, nodes, inputs, outputs)

    def initial_values(self, caller: TfliteSite) -> dict[Key, VariableValue]:
        """Run the subgraph that the CALL_ONCE ``caller`` names; return the values that it assigns to variables."""
        if self._conversion.raw.inputs or self._conversion.raw.outputs:
            # A subgraph of CALL_ONCE has neither, as it only assigns variables.
            raise caller.wrong("the subgraph that it names has inputs or outputs")
        nodes, assigned = self._nodes(), self._variables.assigned()
        graph = self._finished("initialisation", nodes, (), [tensor.name for _, tensor in assigned.values()])
        if graph.states:
            raise caller.unsupported(
                "the subgraph that it names reads variables", "only assign to variables in that subgraph"
            )
        size = sum(tensor.size for node in graph.nodes for tensor in graph.outputs_of(node))
        self._conversion.budget.take(caller.place, size)
        # Run in NumPy: the initial values are constants of the compiled network.
        values = evaluate(graph, {})
        return {key: VariableValue(like, values[tensor.name]) for key, (like, tensor) in assigned.items()}

    def _ports(self, what: str, indices: Sequence[int]) -> list[str]:
        """Return the names of the model's inputs or outputs."""
        tensors = [self._conversion.tensors.at(f"the model's {what}s", index) for index in indices]
        for index, tensor in zip(indices, tensors, strict=True):
            if self._conversion.tensors.are_complex([index]):
                raise complex_refused(f"{what} {tensor.name!r}")
            if tensor.elements == 0:
                raise UnsupportedModelError(
                    "tensor-empty", place=f"{what} {tensor.name!r}", reason=f"{tensor} has no elements"
                )
        return [tensor.name for tensor in tensors]

    def _finished(self, name: str, nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str]) -> Graph:
        states = [*self._operators.states, *self._variables.states()]
        used = {name for node in nodes for name in (*node.inputs, *node.outputs) if name is not None}
        used.update(inputs, outputs, *((state.before, state.after) for state in states))
        try:
            return Graph(name, self._conversion.tensors.among(used), nodes, inputs, outputs, states)
        # The graph found it, but does not know the other operators that are not supported: all are reported at once.
        except OperatorError:
            raise all_refusals(self._conversion, nodes) from None

    def _nodes(self) -> list[Node]:
        """Return the nodes of all operators; raises ``UnsupportedModelError`` with all reasons why there are none."""
        operators = self._conversion.raw.operators
        check_operators(self._conversion, operators)
        # All handles before the operators, because a variable may be used before its handle in the file's order.
        for operator in operators:
            if operator.code == BuiltinOperator.VAR_HANDLE:
                self._variables.declare(self._site_of_variable(operator), operator.outputs[0])
        # A variable that is assigned anywhere is not a constant, even where it is read before.
        for operator in operators:
            if operator.code == BuiltinOperator.ASSIGN_VARIABLE:
                self._variables.expect(self._site_of_variable(operator), operator.inputs[0])
        nodes = [node for operator in operators for node in self._supported(operator)]
        if self._conversion.refusals:
            raise all_refusals(self._conversion, nodes)
        return nodes

    def _supported(self, operator: RawOperator) -> list[Node]:
        """Return the nodes of ``operator``; if it is not supported, record why and return none."""
        conversion = self._conversion
        refused = not is_known(operator)
        if not conversion.tensors.refused.isdisjoint((*operator.inputs, *operator.outputs)):
            refused = True  # for a reason that is recorded
        try:
            # Only uint8 networks that are held as int8 have operators that no kernel of LiteRT computes.
            held = conversion.raw is not conversion.file and not refused
            error = refusal(conversion.file, operator, conversion.place(operator)) if held else None
            nodes = [] if refused or error is not None else self._nodes_of(operator)
        except UnsupportedModelError as raised:
            error = raised
        except OperatorError as raised:
            error = unsupported(raised)
        except GraphError:
            if conversion.refusals:  # the cause is more useful
                raise all_refusals(conversion) from None
            raise
        # An operator after one that is not supported is checked, but an error that the missing tensor may cause is not
        # reported.
        depends = not conversion.missing.isdisjoint(operator.inputs)
        if error is not None and not (depends and error.code in _CONSEQUENCES):
            conversion.refusals.append(error)
        if error is not None or refused or depends:
            conversion.missing.update(operator.outputs)
        return [] if error is not None or depends else nodes

    def _nodes_of(self, operator: RawOperator) -> list[Node]:
        conversion, code = self._conversion, operator.code
        # Weights of float16 are constants for everything that follows.
        if code == BuiltinOperator.DEQUANTIZE and is_dequantized(conversion, operator):
            return []
        is_complex = conversion.tensors.are_complex((*operator.inputs, *operator.outputs))
        if is_complex and operator_name(code) not in _TAKE_COMPLEX:
            raise complex_refused(conversion.place(operator))
        if isinstance(operator.options, Operator):
            inputs = tuple(tensor.name for tensor in conversion.inputs(operator))
            outputs = tuple(conversion.tensors.at(conversion.place(operator), each).name for each in operator.outputs)
            return [Node(outputs[0] if outputs else "", operator.options, inputs, outputs)]
        row = operator_row(code, operator.custom_code)
        if row is not None:
            return self._operators.nodes(operator, row)
        if code in SHAPES:
            settle_shape(conversion, operator)
            return []
        if code == BuiltinOperator.WHILE:
            return self._control_flow.loop(operator)
        if code == BuiltinOperator.IF:
            return self._control_flow.branch(operator)
        site = self._site_of_variable(operator)
        if code == BuiltinOperator.READ_VARIABLE:
            return self._variables.read(site, operator.inputs[0], operator.outputs[0])
        if code == BuiltinOperator.ASSIGN_VARIABLE:
            return self._variables.assign(site, operator.inputs[0])
        if code == BuiltinOperator.CALL_ONCE:
            self._variables.initialise(site, self._called(site))
        return []

    def _site_of_variable(self, operator: RawOperator) -> TfliteSite:
        """Return the site of an operator on a variable, without the handle, which is not a tensor."""
        place, operands = self._conversion.place(operator), VARIABLES[operator.code]
        if (len(operator.inputs), len(operator.outputs)) != operands:
            wanted = f"takes {operands[0]} and writes {operands[1]}"
            raise GraphError(place, f"has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs, {wanted}")
        inputs = [self._conversion.tensors.at(place, index) for index in operator.inputs[1:]]
        outputs = () if operator.code == BuiltinOperator.VAR_HANDLE else operator.outputs
        return self._conversion.site(operator, inputs, outputs)

    def _called(self, site: TfliteSite) -> Mapping[Key, VariableValue]:
        """Return the values that the subgraph of a CALL_ONCE assigns to variables."""
        (index,) = site.fields("CallOnceOptions", "InitSubgraphIndex")
        if not self._subgraphs:
            raise site.unsupported("a subgraph that initialises variables calls another subgraph")
        if not 0 <= index < len(self._subgraphs):
            raise site.wrong(f"names subgraph {index}, the last one is {len(self._subgraphs) - 1}")
        if index == self._index:
            raise site.wrong("the operator names its own subgraph")
        if index not in self.called:
            self.called[index] = _Importer(self._subgraphs[index], self._conversion.budget).initial_values(site)
        return self.called[index]
