"""Read the signature of ``@main`` in Relay text; the rest of the text is not parsed.

TVM prints several forms: with and without comments after each parameter, with the function's attributes among the
parameters, and with ``(64)`` for a shape with one dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mlfbuild.archive.interface.signature import Argument, Signature

_MAIN = re.compile(r"^[ \t]*def @main[ \t]*(?:\[[^\]\n]{0,200}\])?\(", re.MULTILINE)
_COMMENT = re.compile(r"/\*[\s\S]*?(?:\*/|\Z)")
_TENSOR = re.compile(
    r"Tensor\[\(([^()\[\]]*)\),\s*([a-z0-9_]+)\]|(?<![\w.])((?:u?int|float|bfloat)[0-9]+(?:x[0-9]+)?|bool)(?![\w.])"
)
_EXTENT = re.compile(r"([0-9]{1,18})(?:i[0-9]+)?")
_NAMES = re.compile(r'\s*((?:"[^"\\\n]*"[\s,]*)*)\]')
_NAMES_KEY = "output_tensor_names=["
_STRING = re.compile(r'"([^"\\\n]*)"')
_SPECIAL = re.compile(r'"[^"\n]*"?|->|[()\[\]{},]')
_PARAMETER = re.compile(r"\s*%([^\n,()]*?)(?::\s(?=\s*(?:Tensor\[|\(|u?int|b?float|bool))|(?=[,)\n])|\Z)")
_MAX_SIGNATURE = 1024 * 1024  # characters


def relay_signature(text: str) -> Signature | None:
    """Return the signature of ``@main``; ``None`` if there is no such function or it cannot be parsed.

    The inputs include parameters that became constants. Tuples of results are flattened.
    """
    found = _MAIN.search(text)
    if found is None:
        return None
    signature = _COMMENT.sub("", text[found.end() : found.end() + _MAX_SIGNATURE])
    parts, end = _parts(signature)
    if end is None:
        return None
    params: list[Argument] = []
    for part in parts:
        name = _PARAMETER.match(part)
        if name is None and part.lstrip().startswith("%"):
            return None  # a name with parentheses
        if name is None:
            continue  # an attribute of the function
        types = _tensors(part[name.end() :])
        if len(types) > 1:
            return None  # a tuple, of which the executors make several arguments
        dtype, shape = types[0] if types else ("", None)
        params.append(Argument(name[1].strip(), dtype, shape))
    return Signature(tuple(params), _outputs(signature, end))


def _parts(signature: str) -> tuple[list[str], int | None]:
    """Return the texts between the commas of the parameter list, and the end of the list."""
    parts: list[str] = []
    depth, start, at = 0, 0, 0
    while True:
        if start == at and (name := _PARAMETER.match(signature, at)) is not None:
            at = name.end()  # names may contain square brackets
        found = _SPECIAL.search(signature, at)
        if found is None:
            return parts, None
        at = found.end()
        if found[0] in {"(", "[", "{"}:
            depth += 1
        elif found[0] in {")", "]", "}"}:
            depth -= 1
        if (depth == 0 and found[0] == ",") or depth < 0:
            parts.append(signature[start : found.start()])
            start = at
        if depth < 0:
            return parts, at


def _outputs(signature: str, end: int) -> tuple[Argument, ...] | None:
    """Return the results, whose types are between ``->`` and the body."""
    arrow = re.compile(r"\s*->([^{\n]*)\{").match(signature, end)
    if arrow is None:
        return None
    types = _tensors(arrow[1])
    key = signature.find(_NAMES_KEY, 0, end)
    names = None if key < 0 else _NAMES.match(signature, key + len(_NAMES_KEY))
    given = _STRING.findall(names[1]) if names else []
    if len(given) != len(types):
        given = ["output"] if len(types) == 1 else [f"output{index}" for index in range(len(types))]
    return tuple(Argument(name, dtype, shape) for name, (dtype, shape) in zip(given, types, strict=True)) or None


def _tensors(text: str) -> list[tuple[str, tuple[int, ...] | None]]:
    """Return (dtype, shape) of each tensor type in ``text``, in order."""
    return [(scalar, ()) if scalar else (dtype, _shape(shape)) for shape, dtype, scalar in _TENSOR.findall(text)]


def _shape(text: str) -> tuple[int, ...] | None:
    extents = [_EXTENT.fullmatch(extent) for extent in _stripped(text)]
    return tuple(int(extent[1]) for extent in extents if extent) if all(extents) else None


def _stripped(text: str) -> Iterator[str]:
    return (part for item in text.split(",") if (part := item.strip()))
