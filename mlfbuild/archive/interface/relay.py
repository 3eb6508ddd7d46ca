"""Read the signature of ``@main`` in Relay text.

TVM prints several forms: with and without comments after each parameter, with the function's attributes among the
parameters, with ``(64)`` for a shape with one dimension, and without the type of the result, which then follows from
the body (``relay_body``).
"""

from __future__ import annotations

import re

from mlfbuild.archive.interface.relay_body import result_type
from mlfbuild.archive.interface.relay_types import UNKNOWN, RelayTensor, RelayType, flat, read_type
from mlfbuild.archive.interface.signature import Argument, Signature

_MAIN = re.compile(r"^[ \t]*def @main[ \t]*(?:\[[^\]\n]{0,200}\])?\(", re.MULTILINE)
_FUNCTION = re.compile(r"\s{0,9}(?:#\[version[^\n]*\n\s{0,9})?fn[ \t]{0,9}\(")
"""A text that is a function, not a module with ``@main``."""
_COMMENT = re.compile(r"/\*[\s\S]*?(?:\*/|\Z)")
_NAMES = re.compile(r'\s*((?:"[^"\\\n]*"[\s,]*)*)\]')
_NAMES_KEY = "output_tensor_names=["
_STRING = re.compile(r'"([^"\\\n]*)"')
_SPECIAL = re.compile(r'"[^"\n]*"?|->|[()\[\]{},]')
_PARAMETER = re.compile(r"\s*%([^\n,()]*?)(?::\s(?=\s*(?:Tensor\[|\(|u?int|b?float|bool))|(?=[,)\n])|\Z)")
_MAX_SIGNATURE = 1024 * 1024  # characters


def relay_signature(text: str) -> Signature | None:
    """Return the signature of ``@main``; ``None`` if there is no such function or it cannot be parsed.

    The inputs include parameters that became constants. Tuples are flattened; the executors name the fields of a
    parameter ``x`` that is one ``x``, ``x2``, ``x3`` (``GetUniqueIOVarName`` of TVM's ``aot_executor_codegen.cc``).
    """
    found = _MAIN.search(text) or _FUNCTION.match(text)
    if found is None:
        return None
    # Comments repeat types (`/* ty=Tensor[...] */`) with commas and brackets of their own.
    signature = _COMMENT.sub("", text[found.end() : found.end() + _MAX_SIGNATURE])
    parts, end = _parts(signature)
    if end is None:
        return None
    params: dict[str, RelayType] = {}
    for part in parts:
        name = _PARAMETER.match(part)
        if name is None and part.lstrip().startswith("%"):
            return None  # a name with parentheses
        if name is not None:  # otherwise it is an attribute of the function
            found_type = read_type(part, name.end())
            params[name[1].strip()] = found_type[0] if found_type else UNKNOWN
    inputs = tuple(
        _argument(f"{name}{at}" if at > 1 else name, tensor)
        for name, its in params.items()
        for at, tensor in enumerate(flat(its), 1)
    )
    return Signature(inputs, _outputs(text, found.end(), signature, end, params))


def _argument(name: str, tensor: RelayTensor) -> Argument:
    dims = tensor.dims or ()
    known = tuple(extent for extent in dims if extent is not None)
    if tensor.dims is None or len(known) < len(dims):
        return Argument(name, tensor.dtype, None, tensor.dims)
    return Argument(name, tensor.dtype, known)


def _parts(signature: str) -> tuple[list[str], int | None]:
    """Return the texts between the commas of the parameter list, and the end of the list."""
    # From the opening to the closing parenthesis, as types of parameters have commas of their own.
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
        # The parenthesis that closes the list is the first one without a partner.
        if (depth == 0 and found[0] == ",") or depth < 0:
            parts.append(signature[start : found.start()])
            start = at
        if depth < 0:
            return parts, at


def _outputs(
    text: str, start: int, signature: str, end: int, params: dict[str, RelayType]
) -> tuple[Argument, ...] | None:
    """Return the results, whose types are between ``->`` and the body, or those of the body's last expression."""
    arrow = re.compile(r"\s*->([^{\n]*)\{").match(signature, end)
    # A type that the signature states counts, as the body may end in an operator without a rule.
    stated = read_type(arrow[1]) if arrow else None
    result = stated[0] if stated else UNKNOWN
    # The body has the types of its last expression only if no type follows the arrow.
    if not stated and (body := text.find("{\n", start)) >= 0:
        result = result_type(text, body + 1, params)
    types = flat(result)
    if UNKNOWN in types:
        return None  # it may be a tuple
    key = signature.find(_NAMES_KEY, 0, end)
    names = None if key < 0 else _NAMES.match(signature, key + len(_NAMES_KEY))
    given = _STRING.findall(names[1]) if names else []
    # A list of another length cannot be assigned to the results, so TVM's default names are used.
    if len(given) != len(types):
        given = ["output"] if len(types) == 1 else [f"output{index}" for index in range(len(types))]
    return tuple(_argument(name, its) for name, its in zip(given, types, strict=True)) or None
