"""Read the signature of ``@main`` in Relay text.

TVM prints several forms: with and without comments after each parameter, with the function's attributes among the
parameters, with ``(64)`` for a shape with one dimension, and without the type of the result: it prints the module that
a frontend returned, before types are inferred, so the text of a TFLite model has types of parameters only. The type of
the result then follows from the body, whose statements are read in their order, one in a line:

    %1 = reshape(%0, newshape=[-1, 64]);
    %2 = qnn.dense(%1, %v_param_1, ..., units=12, out_dtype="int32");
    let %x: Tensor[(1, 12), int8] = qnn.requantize(%2, ...) /* ty=Tensor[(1, 12), int8] */;

A stated type counts. Otherwise ``relay_operators`` determines it, also in part: the reshape above gives ``(?, 64)``,
and the dense layer ``(?, 12)``. Types of all other operators are unknown. Takes any text, and linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mlfbuild.archive.interface.relay_operators import RULES
from mlfbuild.archive.interface.relay_types import (
    MAX_DEPTH,
    UNKNOWN,
    RelayTensor,
    RelayTuple,
    RelayType,
    flat,
    read_type,
    tuple_of,
)
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


# The type of the result ---------------------------------------------------------------------------------------------

_MAX_BODY = 2 * 1024 * 1024  # characters
_MAX_LINES = 50_000
_MAX_NAME = 4096  # characters of a binding with its type
_MAX_COMMENTS = 8  # behind an expression
_LARGEST = 2**63 - 1
_CALL = re.compile(r"([a-z_][\w.]*)\((.*)\)", re.DOTALL)
_BRACKETS = re.compile(r'"[^"\n]*"?|[()\[\]{},]')
_ATTRIBUTE = re.compile(r"([a-z_]\w*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9][0-9.]*(?:e[+-]?[0-9]+)?f?(?:16|32|64)?")


def result_type(text: str, start: int, params: Mapping[str, RelayType]) -> RelayType:
    """Return the type of the last expression of the function whose body begins at ``start``, behind its brace.

    The type may be a tuple, and may be known in part: ``(?, 64)`` is a ``RelayTensor`` with the extents ``(None,
    64)``. ``UNKNOWN`` if there is no statement, or too many.
    """
    known = dict(params)
    result: RelayType = UNKNOWN
    # The body ends at the first brace at the beginning of a line; TVM indents those inside.
    end = text.find("\n}", start, start + _MAX_BODY)
    # Without an end, or with one too far away, there are no lines.
    lines = [line for each in text[start : max(end, start)].splitlines() if (line := each.strip())]
    if len(lines) > _MAX_LINES:
        return UNKNOWN
    for line in lines:
        head, separator, rest = line.partition(" = ")
        head = head.removeprefix("let ").lstrip()
        if not separator or not head.startswith("%") or len(head) > _MAX_NAME:
            # A line that binds no name is the result, if it is the last one.
            result = _expression(line, known)
            continue
        name, _, stated = head[1:].partition(": ")
        declared = read_type(stated)
        known[name] = result = declared[0] if declared is not None else _expression(rest, known)
    return result


def _expression(text: str, known: Mapping[str, RelayType]) -> RelayType:
    text = text.rstrip("; \t")
    # The last comment with `ty=` has the type of the whole expression; earlier ones belong to its arguments.
    for _ in range(_MAX_COMMENTS):
        if not text.endswith("*/") or (start := text.rfind("/*")) < 0:
            break
        stated = text.find("ty=", start)
        if stated >= 0 and (found := read_type(text, stated + 3)) is not None:
            return found[0]
        text = text[:start].rstrip("; \t")
    return _plain(_COMMENT.sub("", text).strip(), known)


def _plain(text: str, known: Mapping[str, RelayType]) -> RelayType:
    """Return the type of an expression without comments: a variable, a tuple, a field of a tuple, or a call."""
    if text.startswith("%"):
        return _variable(text[1:], known)
    if text.startswith("(") and text.endswith(")"):
        return tuple_of([_value(part, known) for part in _items(text[1:-1])])
    call = _CALL.fullmatch(text)
    rule = RULES.get(call[1]) if call else None
    if call is None or rule is None:
        return UNKNOWN
    parts = list(_items(call[2]))
    attributes = {found[1]: found[2].strip() for part in parts if (found := _ATTRIBUTE.match(part))}
    arguments = [_value(part, known) for part in parts if not _ATTRIBUTE.match(part)]
    tensors = [each if isinstance(each, RelayTensor) else UNKNOWN for each in arguments]
    result = rule(tensors, attributes) if tensors else UNKNOWN
    # The text is not trusted, so extents may be negative or have any number of digits.
    sound = all(extent is None or 0 <= extent <= _LARGEST for extent in result.dims or ())
    return result if sound else replace(result, dims=None)


def _value(text: str, known: Mapping[str, RelayType], depth: int = 1) -> RelayType:
    if text.startswith("%"):
        return _variable(text[1:], known)
    # Each level is a recursion, and the text may have any number of brackets.
    if text.startswith("(") and text.endswith(")") and depth < MAX_DEPTH:
        return tuple_of([_value(part, known, depth + 1) for part in _items(text[1:-1])])
    return RelayTensor(dims=()) if _NUMBER.fullmatch(text) else UNKNOWN


def _variable(name: str, known: Mapping[str, RelayType]) -> RelayType:
    # Looked up first, because names of variables may contain dots, as fields of tuples do.
    if name in known:
        return known[name]
    base, _, index = name.rpartition(".")
    found = known.get(base, UNKNOWN)
    if isinstance(found, RelayTuple) and index.isdecimal() and len(index) < 9 and int(index) < len(found.fields):
        return found.fields[int(index)]
    return UNKNOWN


def _items(text: str) -> Iterator[str]:
    """Yield the texts between the commas that are not in brackets or strings."""
    depth, start = 0, 0
    for found in _BRACKETS.finditer(text):
        # A string counts as one token, so brackets in it do not change the depth.
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if depth == 0 and found[0] == ",":
            yield text[start : found.start()].strip()
            start = found.end()
    if text[start:].strip():
        yield text[start:].strip()
