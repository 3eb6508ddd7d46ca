"""Infer the type of the result of a Relay function from its body, in texts that do not state it.

TVM prints the module that a frontend returned, before types are inferred. So the text of a TFLite model has types of
parameters only. Statements are read in their order, one in a line:

    %1 = reshape(%0, newshape=[-1, 64]);
    %2 = qnn.dense(%1, %v_param_1, ..., units=12, out_dtype="int32");
    let %x: Tensor[(1, 12), int8] = qnn.requantize(%2, ...) /* ty=Tensor[(1, 12), int8] */;

A stated type counts. Otherwise the operators below determine it, also in part: the reshape above gives ``(?, 64)``, and
the dense layer ``(?, 12)``. Types of all other operators are unknown. Takes any text, and linear time.
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
    read_type,
    tuple_of,
)

_MAX_BODY = 2 * 1024 * 1024  # characters
_MAX_LINES = 50_000
_MAX_NAME = 4096  # characters of a binding with its type
_MAX_COMMENTS = 8  # behind an expression
_LARGEST = 2**63 - 1
_COMMENT = re.compile(r"/\*[\s\S]*?(?:\*/|\Z)")
_CALL = re.compile(r"([a-z_][\w.]*)\((.*)\)", re.DOTALL)
_SPECIAL = re.compile(r'"[^"\n]*"?|[()\[\]{},]')
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
        return tuple_of([_argument(part, known) for part in _parts(text[1:-1])])
    call = _CALL.fullmatch(text)
    rule = RULES.get(call[1]) if call else None
    if call is None or rule is None:
        return UNKNOWN
    parts = list(_parts(call[2]))
    attributes = {found[1]: found[2].strip() for part in parts if (found := _ATTRIBUTE.match(part))}
    arguments = [_argument(part, known) for part in parts if not _ATTRIBUTE.match(part)]
    tensors = [each if isinstance(each, RelayTensor) else UNKNOWN for each in arguments]
    result = rule(tensors, attributes) if tensors else UNKNOWN
    # The text is not trusted, so extents may be negative or have any number of digits.
    sound = all(extent is None or 0 <= extent <= _LARGEST for extent in result.dims or ())
    return result if sound else replace(result, dims=None)


def _argument(text: str, known: Mapping[str, RelayType], depth: int = 1) -> RelayType:
    if text.startswith("%"):
        return _variable(text[1:], known)
    # Each level is a recursion, and the text may have any number of brackets.
    if text.startswith("(") and text.endswith(")") and depth < MAX_DEPTH:
        return tuple_of([_argument(part, known, depth + 1) for part in _parts(text[1:-1])])
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


def _parts(text: str) -> Iterator[str]:
    """Yield the texts between the commas that are not in brackets or strings."""
    depth, start = 0, 0
    for found in _SPECIAL.finditer(text):
        # A string counts as one token, so brackets in it do not change the depth.
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if depth == 0 and found[0] == ",":
            yield text[start : found.start()].strip()
            start = found.end()
    if text[start:].strip():
        yield text[start:].strip()
