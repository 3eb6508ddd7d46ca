"""Whose of a model's operators the bytes of its flash are.

An operator has the functions and constants that its call names. What several operators share, as functions of equal
shapes do, counts for the first of them. The rest is nobody's own: the run function, the executor's tables, the model's
id, and kernels that the C compiler made functions of their own, which any operator may call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mlfbuild.library import Network, NetworkOperator, NetworkTensor
from mlfbuild.report.sizes import FLASH_KINDS, TABLES, Owner, Piece


@dataclass(frozen=True)
class FlashPart:
    """A part of a model's flash."""

    pieces: tuple[Piece, ...]

    def of_kind(self, kind: str) -> int:
        """Return the bytes of flash of one of ``FLASH_KINDS``; the first values of variables are tables."""
        return sum(piece.size for piece in self.pieces if _flash_kind(piece) == kind)

    @property
    def kinds(self) -> dict[str, int]:
        """The bytes of each of ``FLASH_KINDS``."""
        return {kind: self.of_kind(kind) for kind in FLASH_KINDS}


@dataclass(frozen=True)
class NetworkSizes:
    """A module in an image: what each operator has of its flash, and what none has."""

    module: str
    executor: str
    network: Network
    parts: tuple[FlashPart, ...]
    """Of the network's operators, in their order."""
    rest: FlashPart


def _flash_kind(piece: Piece) -> str:
    return piece.kind if piece.kind in FLASH_KINDS else TABLES


def network_sizes(module: str, executor: str, network: Network, owner: Owner) -> NetworkSizes:
    """Return what the operators of ``network`` have of the pieces of ``module`` in flash, which are the ``owner``'s."""
    named: dict[str, list[Piece]] = defaultdict(list)
    for piece in owner.pieces:
        if piece.flash and piece.module == module:
            named[piece.name].append(piece)
    parts = tuple(FlashPart(tuple(_taken(named, operator))) for operator in network.operators)
    rest = FlashPart(tuple(piece for pieces in named.values() for piece in pieces))
    return NetworkSizes(module, executor, network, parts, rest)


def _taken(named: dict[str, list[Piece]], operator: NetworkOperator) -> Iterable[Piece]:
    for name in (operator.function, *operator.symbols):
        yield from named.pop(name, ())


def network_json(sizes: NetworkSizes) -> dict[str, Any]:
    """Return ``sizes`` as JSON values."""
    network = sizes.network
    return {
        "module": sizes.module,
        "executor": sizes.executor,
        "arena": network.arena,
        "tensors": [_tensor_json(tensor) for tensor in network.tensors],
        "operators": [
            _operator_json(operator, part) for operator, part in zip(network.operators, sizes.parts, strict=True)
        ],
        "rest": sizes.rest.kinds,
    }


def _tensor_json(tensor: NetworkTensor) -> dict[str, Any]:
    return {**vars(tensor), "shape": list(tensor.shape)}


def _operator_json(operator: NetworkOperator, part: FlashPart) -> dict[str, Any]:
    return {
        "name": operator.name,
        "operator": operator.operator,
        "function": operator.function,
        "macs": operator.macs,
        "inputs": list(operator.inputs),
        "outputs": list(operator.outputs),
        "scratch": None if operator.scratch is None else vars(operator.scratch),
        **part.kinds,
        "pieces": list(dict.fromkeys(piece.name for piece in part.pieces)),
        "instructions": None,
        "bound": None,
    }
