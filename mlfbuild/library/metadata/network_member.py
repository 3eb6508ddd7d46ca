"""The member ``network`` of the key ``mlfbuild`` in ``metadata.json``: one entry per operator and per tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mlfbuild.core import InputFileError, quoted
from mlfbuild.library.data_type import tensor_size
from mlfbuild.library.fields import Fields
from mlfbuild.library.network import (
    ARENA,
    CONSTANT,
    MEMORIES,
    STATE,
    Network,
    NetworkConstant,
    NetworkOperator,
    NetworkScratch,
    NetworkTensor,
    RemovedChannels,
)
from mlfbuild.library.numpy_types import is_supported


def network_json(network: Network) -> dict[str, Any]:
    """Return ``network`` as JSON values, without empty and unknown ones."""
    return {
        "arena": network.arena,
        "tensors": [_without_none({**vars(tensor), "shape": list(tensor.shape)}) for tensor in network.tensors],
        "operators": [_operator_json(operator) for operator in network.operators],
        **({"constants": [vars(constant) for constant in network.constants]} if network.constants else {}),
    }


def _operator_json(operator: NetworkOperator) -> dict[str, Any]:
    kept = {key: value for key, value in vars(operator).items() if key not in {"kernels", "by_rows"}}  # in plan.json
    lists = {key: list(getattr(operator, key)) or None for key in ("symbols", "inputs", "outputs")}
    scratch = None if operator.scratch is None else vars(operator.scratch)
    removed = None if operator.removed is None else vars(operator.removed)
    return _without_none({**kept, **lists, "scratch": scratch, "removed": removed})


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}


def read_network(members: Fields, state_size: int) -> Network:
    """Return the network in ``members``, for a module with ``state_size`` bytes of state.

    Raises ``InputFileError`` if a value has the wrong type, a tensor is outside the arena or the state, or an index is
    out of range.
    """
    arena, entries = members.integer("arena"), members.objects("operators")
    sizes = {ARENA: arena, STATE: state_size}
    tensors = tuple(_tensor(entry, sizes, len(entries)) for entry in members.objects("tensors"))
    operators = tuple(_operator(entry, arena, len(tensors)) for entry in entries)
    return Network(arena, tensors, operators, tuple(_constant(entry) for entry in members.objects("constants")))


def _constant(entry: Fields) -> NetworkConstant:
    return NetworkConstant(entry.text("symbol"), entry.text("tensor"), entry.text("source"))


def _tensor(entry: Fields, sizes: Mapping[str, int], operators: int) -> NetworkTensor:
    memory, size = entry.text("memory"), entry.integer("size")
    dtype, shape = entry.text("dtype"), entry.integers("shape")
    if memory not in MEMORIES:
        raise _invalid(entry, "memory", f"{quoted(memory)} is none of {', '.join(MEMORIES)}")
    if not is_supported(dtype) or tensor_size(dtype, shape) != size:
        raise _invalid(entry, "size", "does not match the shape and the dtype")
    offset = entry.integer("offset") if memory != CONSTANT else None
    if memory in sizes and offset is not None and offset + size > sizes[memory]:
        raise _invalid(entry, "offset", f"is outside the {memory} of {sizes[memory]} bytes")
    first, last = entry.integer("first"), entry.integer("last")
    if not first <= last < max(operators, 1):
        raise _invalid(entry, "last", f"is before first, or not one of the {operators} operators")
    return NetworkTensor(entry.text("name"), dtype, shape, size, memory, offset, first, last)


def _operator(entry: Fields, arena: int, tensors: int) -> NetworkOperator:
    return NetworkOperator(
        name=entry.text("name"),
        operator=entry.text("operator"),
        function=entry.text("function"),
        symbols=entry.texts("symbols"),
        macs=entry.integer("macs") if "macs" in entry else None,
        inputs=_numbers(entry, "inputs", tensors),
        outputs=_numbers(entry, "outputs", tensors),
        scratch=_scratch(entry.member("scratch"), arena) if "scratch" in entry else None,
        removed=_removed(entry.member("removed")) if "removed" in entry else None,
    )


def _removed(entry: Fields) -> RemovedChannels:
    found = RemovedChannels(*(entry.integer(field.name) for field in fields(RemovedChannels)))
    if found.channels > found.of:
        raise _invalid(entry, "channels", f"is more than the {found.of} of the layer")
    return found


def _numbers(entry: Fields, key: str, tensors: int) -> tuple[int, ...]:
    found = entry.integers(key)
    if any(number >= tensors for number in found):
        raise _invalid(entry, key, f"has the number of a tensor that is not one of the {tensors} tensors")
    return found


def _scratch(entry: Fields, arena: int) -> NetworkScratch:
    scratch = NetworkScratch(entry.integer("offset"), entry.integer("size"))
    if scratch.offset + scratch.size > arena:
        raise _invalid(entry, "offset", f"is outside the arena of {arena} bytes")
    return scratch


def _invalid(entry: Fields, key: str, reason: str) -> InputFileError:
    return entry.error(key, reason, code="metadata-network-invalid", hint="write the archive again")
