"""Read the custom operators ``ethos-u`` that Arm's Vela writes.

Vela's inputs of the operator are not tensors of the network: the payload and the weights are bytes, and two tensors
only have the sizes of working memories. ``with_npu_calls`` takes them out, and puts the finished operator of the graph
into ``RawOperator.options``, so that the importer sees an operator with the tensors of the network alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, zip_longest

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.core import UnsupportedModelError
from mlfbuild.ethos_u import StreamRegion, check_payload
from mlfbuild.native.frontends.choices import AbsentInputs
from mlfbuild.native.frontends.errors import naming_file
from mlfbuild.native.frontends.tflite.conversion import described, refuse_compiled
from mlfbuild.native.frontends.tflite.operators import TfliteSite
from mlfbuild.native.frontends.tflite.reader import RawOperator, RawSubgraph, RawTensor, Reader
from mlfbuild.native.frontends.tflite.variables import Key, variable_key
from mlfbuild.native.graph import GraphError, ops

CUSTOM_CODE = "ethos-u"
_NONE = -1
"""The index of an absent input."""
_NO_NAME = "<unnamed>"
"""The name of tensors that have none in the file that Vela reads."""
_ALLOCATION = "OfflineMemoryAllocation"
_PAYLOAD, _WEIGHTS, _SCRATCH, _FAST, _FIRST = range(5)
"""Inputs of the operator; those of the network begin at the last."""
_MEMORY = 1
"""The region of the working memory."""
_USES = {BuiltinOperator.READ_VARIABLE: "read", BuiltinOperator.ASSIGN_VARIABLE: "assigned"}
VariableUses = Mapping[Key, Sequence[str]]


@dataclass(frozen=True)
class OriginalNetwork:
    """The parts of the file that Vela reads which are kept."""

    names: frozenset[str]
    """Of all tensors."""
    absent: AbsentInputs
    variables: Sequence[VariableUses]
    """Of each subgraph."""

    @classmethod
    def of(cls, data: bytes, where: str) -> OriginalNetwork:
        """Read ``data``, the file ``where``.

        Raises ``InputFileError`` if it is not a TFLite model that can be read, and ``UnsupportedModelError`` if it was
        compiled for an accelerator: programs that get the file unread would fail at an unexpected place.
        """
        with naming_file(where, "tflite-malformed"):
            subgraphs = Reader(data).read()
            for operator in (each for subgraph in subgraphs for each in subgraph.operators):
                refuse_compiled(operator, f"operator {operator.index} ({described(operator)})")
            variables = [_uses(subgraph) for subgraph in subgraphs]
        names = frozenset(tensor.name for subgraph in subgraphs for tensor in subgraph.tensors)
        found: dict[tuple[int, str, int], set[tuple[int, ...]]] = {}
        for subgraph in subgraphs:
            for operator in subgraph.operators:
                # Only which inputs are absent is kept: those that are there may get other indices from Vela.
                gaps = tuple(at for at, index in enumerate(operator.inputs) if index == _NONE)
                found.setdefault(_key(subgraph, operator), set()).add(gaps)
        return cls(names, found, variables)

    def check_variables(self, data: bytes, where: str) -> None:
        """Raise ``UnsupportedModelError`` if ``data``, which Vela made of it, uses variables in another order.

        Vela moves reads to the beginning and assignments to the end of a subgraph, because it knows no order of
        operators but that of their tensors. A value that is read after it was assigned would be that of the last run.
        """
        none: VariableUses = {}
        with naming_file(where, "tflite-malformed"):
            found = [_uses(_as_before(subgraph, {})) for subgraph in Reader(data).read()]
            for before, after in zip_longest(self.variables, found, fillvalue=none):
                changed = next((key for key, uses in before.items() if after.get(key) != uses), None)
                if changed is not None:
                    raise UnsupportedModelError(
                        "npu-variable-order",
                        place=f"variable {changed[1]!r}",
                        reason="Vela changes the order in which it is read and assigned",
                        hint="use the assigned tensor instead of reading the variable again, or remove npu",
                    )


def _uses(subgraph: RawSubgraph) -> VariableUses:
    """Return the reads and assignments of each variable of ``subgraph``, by its name, in order of execution."""
    found: dict[Key, list[str]] = {}
    variables: dict[int, Key] = {}
    begun = 0
    for operator in subgraph.operators:
        if operator.code == BuiltinOperator.VAR_HANDLE and operator.outputs:
            place = f"{subgraph.place}operator {operator.index} (VAR_HANDLE)"
            site = TfliteSite(place, (), (), operator.options_type, operator.options)
            variables[operator.outputs[0]] = variable_key(site)
        elif operator.code == BuiltinOperator.CALL_ONCE:
            begun += 1
        elif operator.code in _USES and operator.inputs and operator.inputs[0] in variables:
            values = (*operator.outputs, *operator.inputs[1:])
            names = [subgraph.tensors[value].name for value in values if 0 <= value < len(subgraph.tensors)]
            use = f"{_USES[operator.code]} {names} after {begun} CALL_ONCE"
            found.setdefault(variables[operator.inputs[0]], []).append(use)
    return found


def _key(subgraph: RawSubgraph, operator: RawOperator) -> tuple[int, str, int]:
    """Return what Vela does not change in an operator that stays on the core."""
    first = next((index for index in operator.outputs if 0 <= index < len(subgraph.tensors)), None)
    name = "" if first is None else subgraph.tensors[first].name
    return operator.code, name, sum(index != _NONE for index in operator.inputs)


def with_npu_calls(
    reader: Reader, subgraphs: Sequence[RawSubgraph], accelerator: str, absent: AbsentInputs
) -> tuple[RawSubgraph, ...]:
    """Return ``subgraphs`` whose operators ``ethos-u`` have an ``ops.EthosU`` in ``options``, for ``accelerator``.

    Other operators get their ``absent`` inputs again. Raises ``GraphError`` for operators, sizes or offsets that
    contradict each other, ``InputFileError`` for a payload with an address outside of its regions, and
    ``UnsupportedModelError`` for a state that the NPU would keep, or if which inputs are absent is not known.
    """
    subgraphs = [_as_before(subgraph, absent) for subgraph in subgraphs]
    calls = [(at, operator) for at, subgraph in enumerate(subgraphs) for operator in subgraph.operators
             if _is_call(operator)]  # fmt: skip
    if not calls:
        return tuple(subgraphs)
    places = _offsets(reader, [len(subgraph.tensors) for subgraph in subgraphs])
    reading = _Calls(subgraphs, places, accelerator, calls)
    return tuple(
        replace(subgraph, operators=tuple(reading.converted(at, operator) for operator in subgraph.operators))
        for at, subgraph in enumerate(subgraphs)
    )


def _as_before(subgraph: RawSubgraph, absent: AbsentInputs) -> RawSubgraph:
    """Return ``subgraph`` with absent inputs where Vela left them out, and without its names of unnamed tensors.

    Vela moves CALL_ONCE behind reads of variables, to which it gives their first values: it is the first again.
    """
    tensors = tuple(replace(each, name="") if each.name == _NO_NAME else each for each in subgraph.tensors)
    subgraph = replace(subgraph, tensors=tensors)
    # A stable sort: all other operators keep their order.
    operators = sorted(subgraph.operators, key=lambda operator: operator.code != BuiltinOperator.CALL_ONCE)
    return replace(subgraph, operators=tuple(_filled(subgraph, operator, absent) for operator in operators))


def _filled(subgraph: RawSubgraph, operator: RawOperator, absent: AbsentInputs) -> RawOperator:
    if _NONE in operator.inputs:
        return operator
    found = absent.get(_key(subgraph, operator), [()])
    if len(found) > 1:
        raise UnsupportedModelError(
            "npu-absent-inputs",
            place=f"{subgraph.place}operator {operator.index} ({described(operator)})",
            reason="Vela leaves out absent inputs, and operators whose outputs have the same name have different ones",
            hint="give each tensor a name of its own, or remove npu from the target",
        )
    inputs, (gaps,) = list(operator.inputs), found
    for at in gaps:  # in ascending order, so that each position counts those before it
        inputs.insert(at, _NONE)
    return replace(operator, inputs=tuple(inputs))


def _is_call(operator: RawOperator) -> bool:
    return operator.custom_code == CUSTOM_CODE


def _offsets(reader: Reader, tensors: Sequence[int]) -> list[list[int]]:
    """Return the offset of each tensor in the working memory of each subgraph; -1 for those without one.

    ``tensors`` is their number in each subgraph.
    """
    content, head = reader.metadata(_ALLOCATION), [0, len(tensors), sum(tensors)]
    if content is None or len(content) != 4 * (len(head) + sum(tensors)):
        raise GraphError(f"metadata {_ALLOCATION!r}", f"does not have an offset for each of {sum(tensors)} tensors")
    words = [int(word) for word in np.frombuffer(content, "<i4")]
    # Version 0, the numbers of subgraphs and tensors, then an offset for each tensor, -1 if it has none.
    if words[: len(head)] != head:
        raise GraphError(f"metadata {_ALLOCATION!r}", f"begins with {words[: len(head)]} instead of {head}")
    ends = list(accumulate(tensors, initial=len(head)))
    return [words[start:end] for start, end in pairwise(ends)]


class _Calls:
    """Converts the operators of all subgraphs; ``calls`` are pairs of a subgraph's index and a call of the NPU."""

    def __init__(
        self,
        subgraphs: Sequence[RawSubgraph],
        offsets: Sequence[Sequence[int]],
        accelerator: str,
        calls: Sequence[tuple[int, RawOperator]],
    ) -> None:
        self._subgraphs = subgraphs
        self._offsets = offsets
        self._accelerator = accelerator
        self._calls = [(at, operator.index) for at, operator in calls]
        self._weights = list(dict.fromkeys((at, self._place_of(operator, _WEIGHTS)) for at, operator in calls))

    def _place_of(self, operator: RawOperator, at: int) -> int:
        if len(operator.inputs) < _FIRST:
            raise GraphError(
                f"operator {operator.index}", f"has {len(operator.inputs)} inputs, and {_FIRST} are Vela's"
            )
        return operator.inputs[at]

    def converted(self, at: int, operator: RawOperator) -> RawOperator:
        """Return ``operator`` of subgraph ``at``, with the operator of the graph if it is a call.

        It then has the tensors of the network alone.
        """
        if not _is_call(operator):
            return operator
        place = f"{self._subgraphs[at].place}operator {operator.index} ({CUSTOM_CODE})"
        payload, weights, scratch, fast = (self._tensor(place, at, index) for index in operator.inputs[:_FIRST])
        # One tensor for both: the NPU has no memory of its own.
        own = 0 if scratch.index == fast.index else _size(place, fast)
        inputs, outputs = operator.inputs[_FIRST:], operator.outputs
        content, constants, memory = _content(place, payload), _content(place, weights), _size(place, scratch)
        regions = (
            StreamRegion("weights", len(constants), writable=False),
            StreamRegion("working memory", memory, writable=True),
            StreamRegion("memory of the NPU", own or memory, writable=True),
        )
        facts = check_payload(content, regions, self._accelerator, place)
        stores = {each[1:] for each in facts.written if not own or each[0] == _MEMORY}
        starts, ends = (self._places(place, at, scratch, indices) for indices in (inputs, outputs))
        call = ops.EthosU(
            self._calls.index((at, operator.index)), len(self._calls), content, constants,
            self._weights.index((at, weights.index)) if len(self._weights) > 1 else None,
            memory, own, starts, ends, tuple(sorted(stores)),
        )  # fmt: skip
        return replace(operator, inputs=inputs, options=call)

    def _places(self, place: str, at: int, scratch: RawTensor, indices: Sequence[int]) -> tuple[int, ...]:
        base = self._offsets[at][scratch.index]
        found = []
        for index in indices:
            tensor = self._tensor(place, at, index)
            if tensor.is_variable:
                raise UnsupportedModelError(
                    "npu-with-state",
                    place=f"{place}: {tensor.name!r}",
                    reason="Vela keeps it in the working memory of the NPU, which the core overwrites between runs",
                    hint="name the kind of its operator in keep-on-core, such as UNIDIRECTIONAL_SEQUENCE_LSTM",
                )
            offset = self._offsets[at][index]
            if base < 0 or offset < base:
                raise GraphError(f"{place}: {tensor.name!r}", "has no place in the working memory")
            found.append(offset - base)
        return tuple(found)

    def _tensor(self, place: str, at: int, index: int) -> RawTensor:
        tensors = self._subgraphs[at].tensors
        if not 0 <= index < len(tensors):
            raise GraphError(place, f"names tensor {index} of {len(tensors)}")
        return tensors[index]


def _content(place: str, tensor: RawTensor) -> bytes:
    if tensor.data is None and tensor.shape == (0,):
        return b""  # a network without constants
    if tensor.data is None or tensor.shape != (len(tensor.data),):
        raise GraphError(f"{place}: {tensor.name!r}", "does not have as many bytes as its shape states")
    return bytes(tensor.data.tobytes())


def _size(place: str, tensor: RawTensor) -> int:
    if len(tensor.shape) != 1 or tensor.shape[0] < 0:
        raise GraphError(f"{place}: {tensor.name!r}", "is no memory of some bytes")
    return tensor.shape[0]
