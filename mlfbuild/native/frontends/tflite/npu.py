"""Read the custom operators ``ethos-u`` that Arm's Vela writes.

Vela's inputs of the operator are not tensors of the network: the payload and the weights are bytes, and two tensors
only have the sizes of working memories. ``with_npu_calls`` takes them out, and puts the finished operator of the graph
into ``RawOperator.options``, so that the importer sees an operator with the tensors of the network alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.ethos_u import StreamRegion, check_payload
from mlfbuild.native.frontends.choices import AbsentInputs
from mlfbuild.native.frontends.errors import naming_file
from mlfbuild.native.frontends.tflite.conversion import described, refuse_compiled
from mlfbuild.native.frontends.tflite.reader import RawOperator, RawSubgraph, RawTensor, Reader
from mlfbuild.native.graph import GraphError, ops

CUSTOM_CODE = "ethos-u"
_NONE = -1
"""The index of an absent input."""
_NO_NAME = "<unnamed>"
"""The name of tensors that have none in the file that Vela reads."""
_ALLOCATION = "OfflineMemoryAllocation"
_HEAD = 3
"""Words before the offsets: version, number of subgraphs and of tensors."""
_PAYLOAD, _WEIGHTS, _SCRATCH, _FAST, _FIRST = range(5)
"""Inputs of the operator; those of the network begin at the last."""
_MEMORY = 1
"""The region of the working memory."""


@dataclass(frozen=True)
class OriginalNetwork:
    """What is kept of the file that Vela reads."""

    names: frozenset[str]
    """Of all tensors."""
    absent: AbsentInputs

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
        names = frozenset(tensor.name for subgraph in subgraphs for tensor in subgraph.tensors)
        found: dict[tuple[int, str, int], set[tuple[int, ...]]] = {}
        for subgraph in subgraphs:
            for operator in subgraph.operators:
                gaps = tuple(at for at, index in enumerate(operator.inputs) if index == _NONE)
                found.setdefault(_key(subgraph, operator), set()).add(gaps)
        return cls(names, found)


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
    ``UnsupportedModelError`` for a file with several subgraphs, or if which inputs are absent is not known.
    """
    subgraphs = [_with_gaps(subgraph, absent) for subgraph in subgraphs]
    calls = [operator for subgraph in subgraphs for operator in subgraph.operators if _is_call(operator)]
    if not calls:
        return tuple(subgraphs)
    if len(subgraphs) > 1:
        raise UnsupportedModelError(
            "npu-with-subgraphs",
            place=f"{subgraphs[0].place}operator {calls[0].index}",
            reason="a network with several subgraphs, such as loops, is not supported on an NPU",
            hint="remove npu from the target, or compile the subgraph as a model of its own",
        )
    (subgraph,) = subgraphs
    reading = _Calls(subgraph, _offsets(reader, len(subgraph.tensors)), accelerator, calls)
    return (replace(subgraph, operators=tuple(map(reading.converted, subgraph.operators))),)


def _with_gaps(subgraph: RawSubgraph, absent: AbsentInputs) -> RawSubgraph:
    """Return ``subgraph`` with absent inputs where Vela left them out, and without its names of unnamed tensors."""
    tensors = tuple(replace(each, name="") if each.name == _NO_NAME else each for each in subgraph.tensors)
    subgraph = replace(subgraph, tensors=tensors)
    return replace(subgraph, operators=tuple(_filled(subgraph, operator, absent) for operator in subgraph.operators))


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


def _offsets(reader: Reader, tensors: int) -> list[int]:
    """Return the offset of each tensor in the working memory; -1 for those without one."""
    content = reader.metadata(_ALLOCATION)
    if content is None or len(content) != 4 * (_HEAD + tensors):
        raise GraphError(f"metadata {_ALLOCATION!r}", f"does not have an offset for each of {tensors} tensors")
    words = np.frombuffer(content, "<i4").tolist()
    if words[:_HEAD] != [0, 1, tensors]:
        raise GraphError(f"metadata {_ALLOCATION!r}", f"begins with {words[:_HEAD]} instead of {[0, 1, tensors]}")
    return [int(word) for word in words[_HEAD:]]


class _Calls:
    """Converts the operators of one subgraph."""

    def __init__(
        self, subgraph: RawSubgraph, offsets: Sequence[int], accelerator: str, calls: Sequence[RawOperator]
    ) -> None:
        self._subgraph = subgraph
        self._offsets = offsets
        self._accelerator = accelerator
        self._calls = [operator.index for operator in calls]
        weights = (self._place_of(operator, _WEIGHTS) for operator in calls)
        self._weights = list(dict.fromkeys(weights))

    def _place_of(self, operator: RawOperator, at: int) -> int:
        if len(operator.inputs) < _FIRST:
            raise GraphError(
                f"operator {operator.index}", f"has {len(operator.inputs)} inputs, and {_FIRST} are Vela's"
            )
        return operator.inputs[at]

    def converted(self, operator: RawOperator) -> RawOperator:
        """Return ``operator``, with the operator of the graph and the tensors of the network if it is a call."""
        if not _is_call(operator):
            return operator
        place = f"{self._subgraph.place}operator {operator.index} ({CUSTOM_CODE})"
        payload, weights, scratch, fast = (self._tensor(place, operator.inputs[at]) for at in range(_FIRST))
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
        call = ops.EthosU(
            self._calls.index(operator.index), len(self._calls), content, constants,
            self._weights.index(weights.index) if len(self._weights) > 1 else None,
            memory, own, self._places(place, scratch, inputs), self._places(place, scratch, outputs),
            tuple(sorted(stores)),
        )  # fmt: skip
        return replace(operator, inputs=inputs, options=call)

    def _places(self, place: str, scratch: RawTensor, indices: Sequence[int]) -> tuple[int, ...]:
        base = self._offsets[scratch.index]
        found = []
        for index in indices:
            tensor = self._tensor(place, index)
            if tensor.is_variable:
                raise UnsupportedModelError(
                    "npu-with-state",
                    place=f"{place}: {tensor.name!r}",
                    reason="a state that an operator keeps between runs is not supported on an NPU",
                    hint="name the kind of its operator in keep-on-core, such as UNIDIRECTIONAL_SEQUENCE_LSTM",
                )
            offset = self._offsets[index]
            if base < 0 or offset < base:
                raise GraphError(f"{place}: {tensor.name!r}", "has no place in the working memory")
            found.append(offset - base)
        return tuple(found)

    def _tensor(self, place: str, index: int) -> RawTensor:
        if not 0 <= index < len(self._subgraph.tensors):
            raise GraphError(place, f"names tensor {index} of {len(self._subgraph.tensors)}")
        return self._subgraph.tensors[index]


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
