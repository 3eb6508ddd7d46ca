"""The subgraph that is being converted: the state that all parts of the importer share, and why it is not supported.

All reasons are reported at once, in the words of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.core import UnsupportedModelError, listed
from mlfbuild.native.frontends.errors import unsupported
from mlfbuild.native.frontends.tflite.operators import TfliteSite, is_supported, operator_name
from mlfbuild.native.frontends.tflite.operators.detections import resized
from mlfbuild.native.frontends.tflite.reader import SEE, RawOperator, RawSubgraph
from mlfbuild.native.frontends.tflite.tensors import Tensors, unique_names
from mlfbuild.native.frontends.tflite.unsigned import held_as_int8
from mlfbuild.native.graph import Array, ConstantBudget, GraphError, Node, Operands, Operator, OperatorError, Tensor


class SubgraphConversion:
    """One subgraph while its operators are converted in order; it has no composites."""

    def __init__(self, subgraph: RawSubgraph, budget: ConstantBudget) -> None:
        self.file = resized(subgraph)
        """The subgraph with the types of the file."""
        self.raw = held_as_int8(self.file)
        """The subgraph with uint8 tensors as int8; the same as ``file`` if there are none."""
        self.budget = budget
        self.tensors = Tensors(self.raw)
        self.names = unique_names(self.file.tensors)
        """The names of the tensors in messages, by index."""
        self.written = {index for operator in self.raw.operators for index in operator.outputs}
        self.refusals: list[UnsupportedModelError] = []
        """Why operators are not supported."""
        self.missing: set[int] = set()
        """The tensors that such operators would write, and those that are computed from them."""

    def place(self, operator: RawOperator) -> str:
        """Return where ``operator`` is, in messages.

        The index of the operator counts in the file, and the name is that of its first output.
        """
        outputs = [index for index in operator.outputs if 0 <= index < len(self.names)]
        target = f" writing {self.names[outputs[0]]!r}" if outputs else ""
        return f"{self.raw.place}operator {operator.index} ({described(operator)}){target}"

    def inputs(self, operator: RawOperator) -> list[Tensor]:
        """Return the inputs of an operator of which none may be absent."""
        return [self.tensors.at(self.place(operator), index) for index in operator.inputs]

    def site(self, operator: RawOperator, inputs: Sequence[Tensor | None], outputs: Sequence[int]) -> TfliteSite:
        """Return ``operator`` with ``inputs`` and the tensors ``outputs``."""
        place = self.place(operator)
        results = tuple(self.tensors.at(place, index) for index in outputs)
        return TfliteSite(place, tuple(inputs), results, operator.options_type, operator.options, operator.unsigned,
                          self.tensors.are_complex((*operator.inputs, *outputs)))  # fmt: skip

    def settle(self, site: TfliteSite, index: int, value: Array) -> None:
        """Make tensor ``index``, which ``site`` writes, the constant ``value``.

        Raises ``GraphError`` if the tensor is a constant already.
        """
        if self.tensors.at(site.place, index).constant:
            raise GraphError(site.place, "writes a constant")
        self.tensors.fill(index, value)


def is_known(operator: RawOperator) -> bool:
    """Return whether the graph has ``operator``; a call of an NPU only if the file was compiled for the target's."""
    return isinstance(operator.options, Operator) or is_supported(operator.code, operator.custom_code)


def described(operator: RawOperator) -> str:
    """Return the name of an operator in messages: ``CONV_2D``, ``CUSTOM 'Detect'``."""
    custom = f" {operator.custom_code!r}" if operator.custom_code else ""
    return f"{operator_name(operator.code)}{custom}"


_COMPILED_BY = {
    "ethos-u": ("Vela", "an Ethos-U NPU"),
    "edgetpu-custom-op": ("edgetpu_compiler", "the Edge TPU"),
    "NeutronGraph": ("neutron-converter", "NXP's Neutron NPU"),
    "XC_": ("xcore-opt", "an XMOS xcore processor"),
    "DISPATCH_OP": ("LiteRT's compiler", "an NPU"),
}
"""Prefixes of custom operators that represent a part of a network: the program that writes them, and their hardware."""
_FOREIGN = {
    "'Flex": "convert the model without SELECT_TF_OPS, because operators with the prefix Flex run in TensorFlow",
    "STABLEHLO_": "convert the model to operators of TensorFlow Lite, because few runtimes have those of StableHLO",
}
"""Hints for operators with these prefixes."""


def check_free_shapes(conversion: SubgraphConversion) -> None:
    """Record which inputs have no fixed shape; what is computed from them is then missing."""
    for index in conversion.raw.inputs:
        signature = conversion.tensors.raw("the model's inputs", index).signature
        # -1 in any other dimension is a size that only the caller would know.
        if any(size < 0 for size in signature[1:]):  # a free first dimension is the batch, as in the shape
            conversion.missing.add(index)
            error = UnsupportedModelError(
                "shape-dynamic",
                place=f"input {conversion.names[index]!r}",
                reason=f"the shape {list(signature)} is dynamic",
                hint="convert the model with a fixed shape",
            )
            conversion.refusals.append(error)


def check_operators(conversion: SubgraphConversion, operators: Sequence[RawOperator]) -> None:
    """Record which of ``operators`` this compiler does not have, each once; refuse files for an accelerator."""
    missing: dict[tuple[int, str], RawOperator] = {}
    for operator in operators:
        if not is_known(operator):
            missing.setdefault((operator.code, operator.custom_code), operator)
    for operator in missing.values():
        refuse_compiled(operator, conversion.place(operator))
    if missing:
        names = listed([described(operator) for operator in missing.values()])
        error = UnsupportedModelError(
            "operator-unsupported",
            place=conversion.place(next(iter(missing.values()))),
            reason=f"operator{f' {names} is' if len(missing) == 1 else f's {names} are'} not supported",
            hint=next((hint for begin, hint in _FOREIGN.items() if begin in names), SEE),
        )
        conversion.refusals.append(error)


def refuse_compiled(operator: RawOperator, place: str) -> None:
    """Raise ``UnsupportedModelError`` if a program compiled ``operator``, which is at ``place``, for an accelerator."""
    # Known prefixes identify the program that made the file.
    for begin, (compiler, accelerator) in _COMPILED_BY.items():
        if operator.custom_code.startswith(begin):
            raise UnsupportedModelError(
                "model-compiled-for-accelerator",
                place=place,
                reason=f"{compiler} compiled the file for {accelerator}, and its operators are no longer in it",
                hint=f"use the .tflite file that {compiler} read",
            )


def complex_refused(place: str) -> UnsupportedModelError:
    """Return the error for a complex tensor at ``place``, which only some operators may have."""
    return UnsupportedModelError(
        "type-unsupported", place=place, reason="the type COMPLEX64 is not supported here",
        hint="convert complex numbers to real ones with REAL, IMAG or COMPLEX_ABS",
    )  # fmt: skip


def all_refusals(conversion: SubgraphConversion, nodes: Sequence[Node] = ()) -> UnsupportedModelError:
    """Return an error with all reasons why operators, including the tensors of ``nodes``, are not supported."""
    tensors = conversion.tensors.by_name()
    for node in nodes:
        inputs = Operands((None if name is None else tensors[name] for name in node.inputs), node.place)
        reason = node.operator.check(inputs, [tensors[name] for name in node.outputs])
        if reason is not None:
            error = OperatorError(node.place, reason)
            conversion.refusals.append(unsupported(error))
    return UnsupportedModelError.of([_in_words_of_the_file(conversion, error) for error in conversion.refusals])


def _in_words_of_the_file(conversion: SubgraphConversion, error: UnsupportedModelError) -> UnsupportedModelError:
    """Return ``error`` with uint8 tensors that are held as int8 as they are in the file."""
    if conversion.raw is conversion.file:
        return error
    for own, held in zip(conversion.file.tensors, conversion.raw.tensors, strict=False):
        if own.type != held.type:
            name, stored = repr(conversion.names[own.index]), repr(conversion.tensors.names[own.index])
            # Messages name the tensor as int8, as it is held; the user knows it as uint8.
            for before, after in (
                (f"{stored} int8[", f"{name} uint8["), (f"int8 of {stored}", f"uint8 of {name}"), (stored, name)
            ):  # fmt: skip
                error.place, error.reason = (text.replace(before, after) for text in (error.place, error.reason))
    return error
