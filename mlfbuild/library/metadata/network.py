"""The member ``network`` of our key of ``metadata.json``: an entry an operator and an entry a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlfbuild.library.data_type import tensor_size
from mlfbuild.library.fields import Fields
from mlfbuild.library.network import (
    ARENA,
    CONSTANT,
    MEMORIES,
    STATE,
    Network,
    NetworkOperator,
    NetworkTensor,
    Scratch,
)
from mlfbuild.library.numpy_types import is_supported

_AGAIN = "write the archive again"


def network_json(network: Network) -> dict[str, Any]:
    """Return ``network`` as JSON values, without what is empty or unknown."""
    return {
        "arena": network.arena,
        "tensors": [_without_none({**vars(tensor), "shape": list(tensor.shape)}) for tensor in network.tensors],
        "operators": [_operator_json(operator) for operator in network.operators],
    }


def _operator_json(operator: NetworkOperator) -> dict[str, Any]:
    lists = {key: list(getattr(operator, key)) or None for key in ("symbols", "inputs", "outputs")}
    scratch = None if operator.scratch is None else vars(operator.scratch)
    return _without_none({**vars(operator), **lists, "scratch": scratch})


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}


def read_network(fields: Fields, state_size: int) -> Network:
    """Return the network that ``fields`` tell, of a module that keeps ``state_size`` bytes from run to run.

    Raises ``InputFileError`` for a wrong type, for what lies outside the arena or the state, and for numbers of tensors
    or operators that there are not.
    """
    arena, entries = fields.integer("arena"), fields.objects("operators")
    sizes = {ARENA: arena, STATE: state_size}
    tensors = tuple(_tensor(entry, sizes, len(entries)) for entry in fields.objects("tensors"))
    return Network(arena, tensors, tuple(_operator(entry, arena, len(tensors)) for entry in entries))


def _tensor(entry: Fields, sizes: Mapping[str, int], operators: int) -> NetworkTensor:
    memory, size = entry.text("memory"), entry.integer("size")
    dtype, shape = entry.text("dtype"), entry.integers("shape")
    if memory not in MEMORIES:
        raise entry.error("memory", f"{memory[:40]!a} is none of {', '.join(MEMORIES)}; {_AGAIN}")
    if not is_supported(dtype) or tensor_size(dtype, shape) != size:
        raise entry.error("size", f"is not that of the shape and the dtype; {_AGAIN}")
    offset = entry.integer("offset") if memory != CONSTANT else None
    if memory in sizes and offset is not None and offset + size > sizes[memory]:
        raise entry.error("offset", f"is outside the {memory} of {sizes[memory]} bytes; {_AGAIN}")
    first, last = entry.integer("first"), entry.integer("last")
    if not first <= last < max(operators, 1):
        raise entry.error("last", f"is before first, or none of the {operators} operators; {_AGAIN}")
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
    )


def _numbers(entry: Fields, key: str, tensors: int) -> tuple[int, ...]:
    found = entry.integers(key)
    if any(number >= tensors for number in found):
        raise entry.error(key, f"names a tensor that is none of the {tensors}; {_AGAIN}")
    return found


def _scratch(entry: Fields, arena: int) -> Scratch:
    scratch = Scratch(entry.integer("offset"), entry.integer("size"))
    if scratch.offset + scratch.size > arena:
        raise entry.error("offset", f"is outside the arena of {arena} bytes; {_AGAIN}")
    return scratch
