"""Convert the operators of a file to the nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.core import UnsupportedModelError, UsageError, listed
from mlfbuild.frontends.errors import naming_file, unsupported
from mlfbuild.frontends.node_budget import NodeBudget
from mlfbuild.frontends.tflite.operators import (
    SHAPES,
    OperatorKind,
    TfliteSite,
    is_supported,
    operator_kind,
    operator_name,
)
from mlfbuild.frontends.tflite.operators.variables import OPERANDS
from mlfbuild.frontends.tflite.reader import SEE, RawOperator, RawSubgraph, Reader, reading
from mlfbuild.frontends.tflite.tensors import Tensors, dequantized, unique_names
from mlfbuild.frontends.tflite.unsigned import held_as_int8, refusal, requantized
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
    ops,
)
from mlfbuild.graph.bases import WHOLE, WrongShape, alternatives

if TYPE_CHECKING:
    from mlfbuild.frontends.tflite.hybrid import HybridLayers

_COMPILED_BY = {
    "ethos-u": ("Vela", "an Ethos-U NPU"),
    "edgetpu-custom-op": ("edgetpu_compiler", "the Edge TPU"),
    "NeutronGraph": ("neutron-converter", "NXP's Neutron NPU"),
    "XC_": ("xcore-opt", "an XMOS xcore processor"),
    "DISPATCH_OP": ("LiteRT's compiler", "an NPU"),
}
"""Prefixes of custom operators that represent a part of a network: the program that writes them, and their hardware."""
_OF_LITERT = "have the numbers of LiteRT's reference kernels, because TensorFlow Lite Micro does not run them"
_OFFSET_WEIGHTS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})
"""Layers whose weights may have a zero point."""
_FOREIGN = {
    "'Flex": "convert the model without SELECT_TF_OPS, because operators with the prefix Flex run in TensorFlow",
    "STABLEHLO_": "convert the model to operators of TensorFlow Lite, because few runtimes have those of StableHLO",
}
"""Hints for operators with these prefixes."""
_TAKE_COMPLEX = frozenset({"COMPLEX_ABS", "EXPAND_DIMS", "IMAG", "REAL", "RESHAPE", "RFFT2D", "SQUEEZE"})
"""Operators that may read or write complex numbers."""
_STEPS = 3
"""Reasons from which the shape of an open output follows: first its rank, then the window, then the channels."""
_MOST_RUNS = 4096
"""Runs of the body of a loop."""
_DEEPEST = 16
"""Levels of subgraphs that name others."""
_CONSEQUENCES = frozenset({"input-not-constant", "operator-invalid"})
"""Errors that another error may cause: an input of the operator is a tensor of which too little is known."""
_NOWHERE = -2
"""Replaces the index of a tensor that another subgraph does not have."""
_MOST_NUMBERS = 64
"""Elements up to which a tensor is computed at compile time, because it may be part of a shape."""


def parse_tflite(
    data: bytes, name: str, where: str, budget: ConstantBudget | None = None, signature: str | None = None
) -> Graph:
    """Return the TFLite model in ``data`` as a graph called ``name``; ``where`` names the file in messages.

    ``budget`` limits the constants that are made; the default is that of a file of this size. ``signature`` selects
    the subgraph; the default is the first one, which runtimes run, too.
    Raises ``InputFileError`` if it is not a valid model, ``UnsupportedModelError`` if it uses an operator, a type or a
    variant that is not supported, or if the tensors and attributes of an operator contradict its rules, and
    ``UsageError`` if there is no such ``signature``.
    """
    with naming_file(where, "tflite-malformed"):
        reader = Reader(data)
        subgraphs, signatures = reader.read(), reader.signatures()
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
        self.called: dict[int, Mapping[Key, VariableValue]] = {}
        """The values of variables by the index of the subgraph that a CALL_ONCE names."""
        raw, decompositions = _inlined(subgraphs, index) if subgraphs else (raw, frozenset())
        self._file = raw = _resized(raw)
        self._raw = raw = held_as_int8(raw)
        self._budget = budget
        self._subgraphs = subgraphs
        self._open = [index]
        """The subgraphs of which operators are being converted."""
        self.inlined = set(decompositions)
        """The subgraphs of which operators became operators of this one, or would if a condition were different."""
        self._checked: set[int] = set()
        self._expansion = NodeBudget()
        """Counts operators of other subgraphs that became operators of this one, or their tensors."""
        self._tensors = Tensors(raw)
        self._names = unique_names(self._file.tensors)
        self._variables = Variables(self._tensors)
        self._hybrid: HybridLayers | None = None
        """Made for the first hybrid layer."""
        self._states: list[State] = []
        self._refusals: list[UnsupportedModelError] = []
        """Why operators are not supported."""
        self._missing: set[int] = set()
        """The tensors that such operators would write, and those that are computed from them."""
        self._written = {index for operator in raw.operators for index in operator.outputs}

    @property
    def only_litert(self) -> list[str]:
        """The parts of the subgraph that have the numbers of LiteRT."""
        hybrid = self._hybrid is not None
        return [*(["uint8 operators"] if self._raw is not self._file else []),
                *(["layers of int8 weights over float32"] if hybrid else [])]  # fmt: skip

    def graph(self, name: str) -> Graph:
        """Return the subgraph as a graph."""
        self._refusals += self._dynamic()
        nodes = self._nodes()
        if self._refusals:
            raise self._refused(nodes)
        inputs, outputs = self._ports("input", self._raw.inputs), self._ports("output", self._raw.outputs)
        if not outputs:
            raise GraphError("the model's outputs", "there are none")
        return self._finished(name, nodes, inputs, outputs)

    def _ports(self, what: str, indices: Sequence[int]) -> list[str]:
        """Return the names of the model's inputs or outputs."""
        tensors = [self._tensors.at(f"the model's {what}s", index) for index in indices]
        for index, tensor in zip(indices, tensors, strict=True):
            if self._tensors.are_complex([index]):
                raise self._is_complex(f"{what} {tensor.name!r}")
            if tensor.elements == 0:
                raise UnsupportedModelError(
                    "tensor-empty", place=f"{what} {tensor.name!r}", reason=f"{tensor} has no elements"
                )
        return [tensor.name for tensor in tensors]

    @staticmethod
    def _is_complex(place: str) -> UnsupportedModelError:
        return UnsupportedModelError(
            "type-unsupported", place=place, reason="the type COMPLEX64 is not supported here",
            hint="convert complex numbers to real ones with REAL, IMAG or COMPLEX_ABS",
        )  # fmt: skip

    def initial_values(self, caller: TfliteSite) -> dict[Key, VariableValue]:
        """Run the subgraph that the CALL_ONCE ``caller`` names; return the values that it assigns to variables."""
        if self._raw.inputs or self._raw.outputs:
            raise caller.wrong("the subgraph that it names has inputs or outputs")
        nodes, assigned = self._nodes(), self._variables.assigned()
        if self._refusals:
            raise self._refused(nodes)
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
        try:
            return Graph(name, self._tensors.among(used), nodes, inputs, outputs, states)
        except OperatorError:
            raise self._refused(nodes) from None

    def _refused(self, nodes: Sequence[Node]) -> UnsupportedModelError:
        """Return an error with all reasons why operators, including the tensors of ``nodes``, are not supported."""
        tensors = self._tensors.by_name()
        for node in nodes:
            inputs = [None if name is None else tensors[name] for name in node.inputs]
            reason = node.operator.check(inputs, [tensors[name] for name in node.outputs])
            if reason is not None:
                error = OperatorError(f"{node.operator.name} {node.name!r}", reason)
                self._refusals.append(unsupported(error))
        return UnsupportedModelError.of([*map(self._in_words_of_the_file, self._refusals)])

    def _in_words_of_the_file(self, error: UnsupportedModelError) -> UnsupportedModelError:
        """Return ``error`` with uint8 tensors that are held as int8 as they are in the file."""
        if self._raw is self._file:
            return error
        for own, held in zip(self._file.tensors, self._raw.tensors, strict=False):
            if own.type != held.type:
                name, stored = repr(self._names[own.index]), repr(self._tensors.names[own.index])
                for before, after in (
                    (f"{stored} int8[", f"{name} uint8["), (f"int8 of {stored}", f"uint8 of {name}"), (stored, name)
                ):  # fmt: skip
                    error.place, error.reason = (text.replace(before, after) for text in (error.place, error.reason))
        return error

    def _dynamic(self) -> Iterator[UnsupportedModelError]:
        """Yield why inputs have no fixed shape; what is computed from them is then missing."""
        for index in self._raw.inputs:
            signature = self._tensors.raw("the model's inputs", index).signature
            if any(size < 0 for size in signature[1:]):  # a free first dimension is the batch, as in the shape
                self._missing.add(index)
                yield UnsupportedModelError(
                    "shape-dynamic",
                    place=f"input {self._names[index]!r}",
                    reason=f"the shape {list(signature)} is dynamic",
                    hint="convert the model with a fixed shape",
                )

    def _check_operators(self, operators: Sequence[RawOperator]) -> None:
        """Record which of ``operators`` this compiler does not have, each once; refuse files for an accelerator."""
        missing: dict[tuple[int, str], RawOperator] = {}
        for operator in operators:
            if not is_supported(operator.code, operator.custom_code):
                missing.setdefault((operator.code, operator.custom_code), operator)
        for operator in missing.values():
            for begin, (compiler, accelerator) in _COMPILED_BY.items():
                if operator.custom_code.startswith(begin):
                    raise self._already_compiled(operator, compiler, accelerator)
        if missing:
            names = listed([_name(operator) for operator in missing.values()])
            error = UnsupportedModelError(
                "operator-unsupported",
                place=self._place(next(iter(missing.values()))),
                reason=f"operator{f' {names} is' if len(missing) == 1 else f's {names} are'} not supported",
                hint=next((hint for begin, hint in _FOREIGN.items() if begin in names), SEE),
            )
            self._refusals.append(error)

    def _already_compiled(self, operator: RawOperator, compiler: str, accelerator: str) -> UnsupportedModelError:
        return UnsupportedModelError(
            "model-compiled-for-accelerator",
            place=self._place(operator),
            reason=f"{compiler} compiled the file for {accelerator}, and its operators are no longer in it",
            hint=f"use the .tflite file that {compiler} read",
        )

    def _place(self, operator: RawOperator) -> str:
        outputs = [index for index in operator.outputs if 0 <= index < len(self._names)]
        target = f" writing {self._names[outputs[0]]!r}" if outputs else ""
        return f"{self._raw.place}operator {operator.index} ({_name(operator)}){target}"

    def _nodes(self) -> list[Node]:
        self._check_operators(self._raw.operators)
        for operator in self._raw.operators:
            if operator.code == BuiltinOperator.VAR_HANDLE:
                self._variables.declare(self._site_of_variable(operator), operator.outputs[0])
        for operator in self._raw.operators:
            if operator.code == BuiltinOperator.ASSIGN_VARIABLE:
                self._variables.expect(self._site_of_variable(operator), operator.inputs[0])
        return [node for operator in self._raw.operators for node in self._supported(operator)]

    def _supported(self, operator: RawOperator) -> list[Node]:
        """Return the nodes of ``operator``; if it is not supported, record why and return none."""
        refused = not is_supported(operator.code, operator.custom_code)
        if not self._tensors.refused.isdisjoint((*operator.inputs, *operator.outputs)):
            refused = True  # for a reason that is recorded
        try:
            held = self._raw is not self._file and not refused
            error = refusal(self._file, operator, self._place(operator)) if held else None
            nodes = [] if refused or error is not None else self._nodes_of(operator)
        except UnsupportedModelError as raised:
            error = raised
        except OperatorError as raised:
            error = unsupported(raised)
        except GraphError:
            if self._refusals:  # the cause is more useful
                raise UnsupportedModelError.of([*map(self._in_words_of_the_file, self._refusals)]) from None
            raise
        depends = not self._missing.isdisjoint(operator.inputs)
        if error is not None and not (depends and error.code in _CONSEQUENCES):
            self._refusals.append(error)
        if error is not None or refused or depends:
            self._missing.update(operator.outputs)
        return [] if error is not None or depends else nodes

    def _nodes_of(self, operator: RawOperator) -> list[Node]:
        if operator.code == BuiltinOperator.DEQUANTIZE and self._is_dequantized(operator):
            return []
        is_complex = self._tensors.are_complex((*operator.inputs, *operator.outputs))
        if is_complex and operator_name(operator.code) not in _TAKE_COMPLEX:
            raise self._is_complex(self._place(operator))
        kind = operator_kind(operator.code, operator.custom_code)
        if kind is not None:
            return self._nodes_of_kind(operator, kind)
        if operator.code in SHAPES:
            self._know(operator)
            return []
        if operator.code == BuiltinOperator.WHILE:
            return self._loop(operator)
        if operator.code == BuiltinOperator.IF:
            return self._branch(operator)
        site = self._site_of_variable(operator)
        if operator.code == BuiltinOperator.READ_VARIABLE:
            return self._variables.read(site, operator.inputs[0], operator.outputs[0])
        if operator.code == BuiltinOperator.ASSIGN_VARIABLE:
            return self._variables.assign(site, operator.inputs[0])
        if operator.code == BuiltinOperator.CALL_ONCE:
            self._variables.initialise(site, self._called(site))
        return []

    def _nodes_of_kind(self, operator: RawOperator, kind: OperatorKind) -> list[Node]:
        """Return the nodes of an operator that has a counterpart in graphs."""
        node, site = self._node(operator, kind)
        if all(tensor.elements == 0 for tensor in site.outputs) and site.outputs:
            return []  # constants, because they have only one value
        if _may_be_hybrid(operator, kind) and _is_hybrid(site):
            blocks = self._tensors.raw(site.place, operator.inputs[1]).blocks
            return self._hybrid_layers().nodes(node, site, blocks)
        if operator.code == BuiltinOperator.BATCH_MATMUL and _has_scales(site):
            from mlfbuild.frontends.tflite.operators.batch_matmul import dense

            self._budget.take(site.place, site.input(1).elements)
            return [dense(self._tensors, site, node.operator)]
        if self._is_computed(operator, kind, node):
            return []
        node = _with_elements(site, node)
        joined = operator.unsigned and operator.code == BuiltinOperator.CONCATENATION
        return requantized(self._tensors, node) if joined else [node]

    def _loop(self, operator: RawOperator) -> list[Node]:
        """Return the nodes of a WHILE, once for each run of its body, which the condition decides at compile time."""
        place = self._place(operator)
        site = self._site(operator, [self._tensors.at(place, index) for index in operator.inputs], operator.outputs)
        with reading(place):
            options = site.read_options("WhileOptions")
            condition, body = options.CondSubgraphIndex(), options.BodySubgraphIndex()
        if len(operator.inputs) != len(operator.outputs):
            raise site.wrong(f"has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs")
        self.inlined |= {condition, body}
        nodes: list[Node] = []
        values, known = list(operator.inputs), len(self._refusals)
        for _ in range(_MOST_RUNS):
            tested, (answer,) = self._inline(site, operator, condition, values, 1)
            again = self._tensors.at(place, answer)
            if len(self._refusals) > known:  # for a reason that is recorded
                self._missing.update(operator.outputs)
                return []
            _check_condition(site, again)
            if again.data is None:
                raise site.unsupported("the number of runs of a loop must be known when the network is compiled",
                                       "convert the model with `unroll=True`", "input-not-constant")  # fmt: skip
            nodes += tested
            if not again.data.all():
                return nodes + self._results(site, operator.outputs, values)
            made, values = self._inline(site, operator, body, values, len(values))
            nodes += made
        raise site.unsupported(f"the loop runs more than {_MOST_RUNS} times")

    def _branch(self, operator: RawOperator) -> list[Node]:
        """Return the nodes of an IF: of one branch if the condition is known, else of both, and a selection."""
        place = self._place(operator)
        site = self._site(operator, [self._tensors.at(place, index) for index in operator.inputs], operator.outputs)
        with reading(place):
            options = site.read_options("IfOptions")
            branches = options.ThenSubgraphIndex(), options.ElseSubgraphIndex()
        self.inlined.update(branches)
        condition, count = site.input(0), len(operator.outputs)
        _check_condition(site, condition)
        if condition.data is not None:
            chosen = branches[0 if condition.data.all() else 1]
            nodes, values = self._inline(site, operator, chosen, operator.inputs[1:], count)
            return nodes + self._results(site, operator.outputs, values)
        nodes, firsts = self._inline(site, operator, branches[0], operator.inputs[1:], count)
        others, seconds = self._inline(site, operator, branches[1], operator.inputs[1:], count)
        if not self._missing.isdisjoint((*firsts, *seconds)):
            self._missing.update(operator.outputs)
            return []
        selections = []
        for output, first, second in zip(site.outputs, firsts, seconds, strict=True):
            names = (condition.name, self._tensors.at(place, first).name, self._tensors.at(place, second).name)
            selections.append(Node(output.name, ops.SelectV2(), names, (output.name,)))
        return [*nodes, *others, *selections]

    def _inline(
        self, site: TfliteSite, operator: RawOperator, index: int, inputs: Sequence[int], count: int
    ) -> tuple[list[Node], list[int]]:
        """Return the nodes of subgraph ``index`` with ``inputs``, and where its ``count`` outputs are."""
        if not 0 <= index < len(self._subgraphs):
            raise site.wrong(f"names subgraph {index} of {len(self._subgraphs)}")
        if index in self._open:
            raise site.wrong(f"names subgraph {index}, of which it is a part")
        part, _ = _inlined(self._subgraphs, index)
        if (len(part.inputs), len(part.outputs)) != (len(inputs), count):
            raise site.wrong(f"does not have the inputs and outputs of subgraph {index}")
        if len(self._open) > _DEEPEST:
            raise site.unsupported(f"subgraphs name each other more than {_DEEPEST} levels deep")
        if any(tensor.is_variable for tensor in part.tensors) or any(map(_keeps, part.operators)):
            raise site.unsupported(f"subgraph {index} keeps data from run to run")
        if index not in self._checked:
            self._checked.add(index)
            self._check_operators([replace(each, index=operator.index, outputs=()) for each in part.operators])
        self._expansion.take(max(1 + len(part.operators), len(part.tensors)), site.place)
        first = self._tensors.extend(part.tensors)
        self._names += self._tensors.names[first:]
        moved = {at: first + at for at in range(len(part.tensors))} | {-1: -1}
        moved |= dict(zip(part.inputs, inputs, strict=True))
        nodes = []
        self._open.append(index)
        for each in part.operators:
            copy = replace(
                each,
                index=operator.index,
                inputs=tuple(moved.get(at, _NOWHERE) for at in each.inputs),
                outputs=tuple(moved.get(at, _NOWHERE) for at in each.outputs),
            )
            self._written.update(copy.outputs)
            nodes += self._supported(copy)
        self._open.pop()
        return nodes, [moved.get(at, _NOWHERE) for at in part.outputs]

    def _results(self, site: TfliteSite, outputs: Sequence[int], values: Sequence[int]) -> list[Node]:
        """Return nodes that give the ``values`` the names of ``outputs``; constants need none."""
        nodes = []
        for index, output, value in zip(outputs, site.outputs, values, strict=True):
            source = self._tensors.at(site.place, value)
            if value in self._missing:
                self._missing.add(index)
            elif source.dtype is not output.dtype or not self._has_shape(index, output, source.shape):
                raise site.wrong(f"its subgraph returns {source} for {output}")
            elif source.elements == 0:
                continue
            elif source.data is not None:
                self._settle(site, index, source.data)
            else:
                nodes.append(Node(output.name, ops.Reshape(), (source.name,), (output.name,)))
        return nodes

    def _has_shape(self, index: int, output: Tensor, shape: Sequence[int]) -> bool:
        """Return whether tensor ``index``, the result of a subgraph, has ``shape``, or the file leaves it open."""
        return output.shape == shape or self._tensors.reshape(index, WrongShape.of(output, shape))

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
            reason = WrongShape.of(output, value.shape)
            if not self._tensors.reshape(operator.outputs[0], reason):
                raise site.wrong(reason)
        self._settle(site, operator.outputs[0], value)

    def _is_computed(self, operator: RawOperator, kind: OperatorKind, node: Node) -> bool:
        """Compute a node that makes few integers from constants; another operator may need them as a shape."""
        place = self._place(operator)
        indices = _ordered(operator.inputs, kind.order)[: kind.values]
        inputs = [None if index == -1 else self._tensors.at(place, index) for index in indices if not kind.states]
        outputs = [self._tensors.at(place, index) for index in operator.outputs]
        if not inputs or any(tensor is not None and tensor.data is None for tensor in inputs):
            return False
        if any(tensor.dtype not in (*WHOLE, DType.BOOL) or tensor.elements > _MOST_NUMBERS for tensor in outputs):
            return False
        reason = node.operator.check(inputs, outputs)
        if reason is not None:
            raise OperatorError(place, reason)
        values = [None if tensor is None else tensor.data for tensor in inputs]
        site = self._site(operator, inputs, operator.outputs)
        for index, value in zip(operator.outputs, node.operator.reference(inputs, values, outputs), strict=True):
            self._settle(site, index, value)
        return True

    def _is_dequantized(self, operator: RawOperator) -> bool:
        """Compute float32 weights that the file stores as float16, or as integers with a scale for each channel."""
        if (len(operator.inputs), len(operator.outputs)) != (1, 1):
            return False
        place = self._place(operator)
        value = self._tensors.half(place, operator.inputs[0])
        if value is None:
            source = self._tensors.at(place, operator.inputs[0])
            if source.dtype not in ops.Dequantize.types:
                return False
            value = dequantized(source)
        if value is None:
            return False
        site = self._site(operator, (), operator.outputs)
        output = site.output()
        if (output.dtype, output.shape) != (DType.FLOAT32, value.shape):
            raise site.wrong(f"{output} should be float32{list(value.shape)}")
        self._budget.take(place, value.nbytes)
        self._settle(site, operator.outputs[0], value)
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
        return TfliteSite(place, tuple(inputs), results, operator.options_type, operator.options, operator.unsigned,
                          self._tensors.are_complex((*operator.inputs, *outputs)))  # fmt: skip

    def _called(self, site: TfliteSite) -> Mapping[Key, VariableValue]:
        """Return the values that the subgraph of a CALL_ONCE assigns to variables."""
        with reading(site.place):
            index = site.read_options("CallOnceOptions").InitSubgraphIndex()
        if not self._subgraphs:
            raise site.unsupported("a subgraph that initialises variables calls another subgraph")
        if not 0 <= index < len(self._subgraphs):
            raise site.wrong(f"names subgraph {index}, the last one is {len(self._subgraphs) - 1}")
        if index == self._open[0]:
            raise site.wrong("the operator names its own subgraph")
        if index not in self.called:
            self.called[index] = _Importer(self._subgraphs[index], self._budget).initial_values(site)
        return self.called[index]

    def _node(self, operator: RawOperator, kind: OperatorKind) -> tuple[Node, TfliteSite]:
        """Return the node of ``operator``; outputs whose shape the file leaves open get that of their operator.

        Runtimes compute all shapes, and do not use those of the file.
        """
        if not kind.keeps_state and self._tensors.are_open(operator.outputs):
            for _ in range(_STEPS * len(operator.outputs)):
                reason: str | None
                try:
                    node, site = self._built(operator, kind)
                    values = site.inputs[: kind.values]
                    if _may_be_hybrid(operator, kind) and _is_hybrid(site):
                        values = tuple(map(_like_float, values))  # integer weights do not change the shape
                    reason = node.operator.check(values, site.outputs)
                except OperatorError as error:
                    reason = error.reason
                if not any(self._tensors.reshape(index, reason) for index in operator.outputs):
                    break
        return self._built(operator, kind)

    def _built(self, operator: RawOperator, kind: OperatorKind) -> tuple[Node, TfliteSite]:
        place = self._place(operator)
        most = kind.values + kind.attributes
        if len(operator.inputs) > most:
            raise GraphError(place, f"has {len(operator.inputs)} inputs, takes {most}")
        indices = _ordered(operator.inputs, kind.order)
        kept = {at: self._kept(place, indices, at) for at in kind.states}
        inputs = [
            kept[at][0] if at in kept else None if index == -1 else self._value(operator, at, index)
            for at, index in enumerate(indices)
        ]
        site = self._site(operator, inputs, operator.outputs)
        if kind.values:
            site.input(0)
        if _may_be_hybrid(operator, kind) and _is_hybrid(site):
            self._hybrid_layers().check(site, operator, self._tensors.raw(site.place, indices[1]))
        if kind.layer:
            self._check_parameters(site, indices[1 : kind.values])
        result = kind.read(site)
        if result.name in _OFFSET_WEIGHTS:
            _check_offset(site)
        _check_types(site, site.inputs[:1], result)
        values: tuple[str | None, ...] = tuple(
            None if tensor is None else tensor.name for tensor in site.inputs[: kind.values]
        )
        shapes = kind.made_states(site) if kind.made_states is not None else ()
        made = [self._tensors.made(site.output(), shape) for shape in shapes]
        values += tuple(state.before for state in made)
        states = [state for _, state in kept.values()] + made
        self._states += states
        outputs = (*(tensor.name for tensor in site.outputs), *(state.after for state in states))
        return Node(outputs[0] if site.outputs else "", result, values, outputs), site

    def _value(self, operator: RawOperator, at: int, index: int) -> Tensor:
        """Return input ``at`` of ``operator``, tensor ``index``; only FULLY_CONNECTED reads weights in blocks."""
        place = self._place(operator)
        if operator.code == BuiltinOperator.FULLY_CONNECTED and at == 1 and self._tensors.raw(place, index).blocks:
            return self._tensors.in_blocks(place, index)
        return self._tensors.at(place, index)

    def _hybrid_layers(self) -> HybridLayers:
        from mlfbuild.frontends.tflite.hybrid import HybridLayers

        if self._hybrid is None:
            self._hybrid = HybridLayers(self._tensors)
        return self._hybrid

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


def _has_scales(site: TfliteSite) -> bool:
    """Return whether int16 is multiplied by int8 with several scales."""
    first, second = site.inputs[:2]
    if first is None or second is None or (first.dtype, second.dtype) != (DType.INT16, DType.INT8):
        return False
    return second.quantization is not None and second.quantization.per_channel


def _check_condition(site: TfliteSite, condition: Tensor) -> None:
    if condition.dtype is not DType.BOOL or condition.elements != 1:
        raise site.wrong(f"the condition {condition} must be one bool")


def _keeps(operator: RawOperator) -> bool:
    """Return whether ``operator`` may keep data from run to run."""
    return operator.code in {*OPERANDS, BuiltinOperator.CUSTOM}


def _inlined(subgraphs: Sequence[RawSubgraph], index: int) -> tuple[RawSubgraph, frozenset[int]]:
    """Return subgraph ``index`` without composites, and the subgraphs that became parts of it."""
    raw = subgraphs[index]
    if all(operator.code != BuiltinOperator.STABLEHLO_COMPOSITE for operator in raw.operators):
        return raw, frozenset()
    from mlfbuild.frontends.tflite.composites import inlined  # few files have such an operator

    return inlined(subgraphs, index)


def _resized(raw: RawSubgraph) -> RawSubgraph:
    """Return ``raw`` with the shapes of outputs that files do not have."""
    if all(operator.custom_code != "TFLite_Detection_PostProcess" for operator in raw.operators):
        return raw
    from mlfbuild.frontends.tflite.operators.non_max_suppression import resized  # few files have such an operator

    return resized(raw)


def _name(operator: RawOperator) -> str:
    """Return the name of an operator in messages: ``CONV_2D``, ``CUSTOM 'Detect'``."""
    custom = f" {operator.custom_code!r}" if operator.custom_code else ""
    return f"{operator_name(operator.code)}{custom}"


def _ordered(indices: Sequence[int], order: Sequence[int]) -> Sequence[int]:
    """Return ``indices`` in another ``order``, with -1 for absent ones."""
    return [indices[at] if at < len(indices) else -1 for at in order] if order else indices


def _with_elements(site: TfliteSite, node: Node) -> Node:
    """Return ``node`` without inputs that have no elements, which only CONCATENATION can leave out."""
    empty = {tensor.name: tensor for tensor in (*site.inputs, *site.outputs) if tensor and tensor.elements == 0}
    used = [empty[name] for name in (*node.inputs, *node.outputs) if name in empty]
    if used and node.operator.name != "CONCATENATION":
        raise site.unsupported(f"{used[0]} has no elements, which is not supported", code="tensor-empty")
    return replace(node, inputs=tuple(name for name in node.inputs if name not in empty)) if used else node


def _may_be_hybrid(operator: RawOperator, kind: OperatorKind) -> bool:
    return kind.layer or operator.code == BuiltinOperator.BATCH_MATMUL


def _is_hybrid(site: TfliteSite) -> bool:
    """Return whether a layer has integer weights over float32."""
    types = [None if tensor is None else tensor.dtype for tensor in site.inputs[:2]]
    return types[0] is DType.FLOAT32 and types[-1] not in {None, DType.FLOAT32}


def _like_float(tensor: Tensor | None) -> Tensor | None:
    """Return a float32 tensor of the same shape; a constant of zeros if ``tensor`` is constant."""
    if tensor is None or tensor.dtype is DType.FLOAT32:
        return tensor
    data = np.broadcast_to(np.float32(0), tensor.shape) if tensor.constant else None
    return Tensor(tensor.name, tensor.shape, DType.FLOAT32, data=data)


def _check_offset(site: TfliteSite) -> None:
    """Refuse int8 weights with a zero point, which runtimes ignore or not; those of uint8 always count."""
    weights = site.inputs[1] if len(site.inputs) > 1 else None
    quantization = None if weights is None else weights.quantization
    offset = quantization is not None and not quantization.per_channel and any(quantization.zero_points)
    if offset and not site.unsigned:
        raise site.wrong(f"the weights {weights} have a zero point that is not 0")


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
