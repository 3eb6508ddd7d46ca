"""Types of tensors in Relay text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Dims: TypeAlias = "tuple[int | None, ...]"


@dataclass(frozen=True)
class RelayTensor:
    """The type of a tensor, as far as known.

    For example, ``RelayTensor("int8", (1, None))`` is an int8 tensor with two axes, of which only the first extent is
    known.
    """

    dtype: str = ""
    dims: Dims | None = None
    """``None`` if the rank is unknown; an unknown extent is ``None``."""


@dataclass(frozen=True)
class RelayTuple:
    """The type of a tuple."""

    fields: tuple[RelayType, ...]
    tensors: int
    """The number of tensors in it and in the tuples in it, plus one for each tuple."""
    depth: int
    """1 if no field is a tuple."""


RelayType: TypeAlias = "RelayTensor | RelayTuple"

UNKNOWN = RelayTensor()
"""The type of an expression that may be a tensor or a tuple."""
_TENSOR = re.compile(
    r"\s*(?:Tensor\[\s*\(([^()\[\]]*)\)\s*,\s*([a-z0-9_]+)\s*\]"
    r"|((?:u?int|float|bfloat)[0-9]{1,9}(?:x[0-9]{1,9})?|bool)(?![\w.]))\s*"
)
# Relay prints an extent that is not an int32 with its type: 64i64.
_EXTENT = re.compile(r"([0-9]{1,18})(?:i[0-9]{1,9})?")
_OPENING = re.compile(r"\s*\(\s*")
_CLOSING = re.compile(r"\s*\)\s*")
MAX_RANK = 64
_MAX_TENSORS = 4096
MAX_DEPTH = 16
"""Of tuples in tuples."""


def read_type(text: str, at: int = 0, depth: int = 0) -> tuple[RelayType, int] | None:
    """Return the type at the place ``at`` of ``text`` and the place behind it; ``None`` if there is none.

    Accepted are ``Tensor[(1, 64), int8]``, a scalar such as ``int32``, and tuples of these with at most ``MAX_DEPTH``
    levels. Spaces around a type are skipped.
    """
    found = _TENSOR.match(text, at)
    if found is not None:
        # A type without `Tensor` is that of a scalar.
        return RelayTensor(found[2] or found[3], _dims(found[1]) if found[2] else ()), found.end()
    opening = _OPENING.match(text, at)
    if opening is None or depth == MAX_DEPTH:
        return None
    fields: list[RelayType] = []
    at = opening.end()
    while (field := read_type(text, at, depth + 1)) is not None:
        fields.append(field[0])
        at = field[1]
        # A tuple of one field ends with a comma, `(Tensor[...],)`; the next type is then missing, which ends the loop.
        if text[at : at + 1] != ",":
            break
        at += 1
    # Without a closing parenthesis the text is not a type, whatever was read before.
    closing = _CLOSING.match(text, at)
    return None if closing is None else (tuple_of(fields), closing.end())


def tuple_of(fields: Sequence[RelayType]) -> RelayType:
    """Return the type of a tuple; ``UNKNOWN`` if it is too large."""
    inner = [field for field in fields if isinstance(field, RelayTuple)]
    found = RelayTuple(
        tuple(fields),
        1 + len(fields) - len(inner) + sum(field.tensors for field in inner),
        1 + max((field.depth for field in inner), default=0),
    )
    # Tuples that repeat others in `let` bindings grow exponentially, so the size is counted and limited.
    return found if found.tensors <= _MAX_TENSORS and found.depth <= MAX_DEPTH else UNKNOWN


def flat(found: RelayType) -> list[RelayTensor]:
    """Return the tensors of a type in order, without the structure of its tuples.

    Fields keep their order: the type of ``((a, b), c)`` gives the types of ``a``, ``b`` and ``c``.
    """
    return [found] if isinstance(found, RelayTensor) else [tensor for field in found.fields for tensor in flat(field)]


def _dims(text: str) -> Dims | None:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    extents = [_EXTENT.fullmatch(part) for part in parts]
    return tuple(int(each[1]) if each else None for each in extents) if len(extents) <= MAX_RANK else None
