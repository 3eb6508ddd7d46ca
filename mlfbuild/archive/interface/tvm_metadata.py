"""Read ``struct TVMMetadata`` in the C code of AOT modules with the packed interface (TVM 0.9 and later)."""

from __future__ import annotations

import re
from itertools import islice

from mlfbuild.archive.interface.signature import Argument, Signature, small_text, sources
from mlfbuild.c_analysis import Token, in_braces, string_value, tokens
from mlfbuild.library import CODE_NAMES, Module

_MARK = "kTvmgenMetadata"
_ARRAY = re.compile(r"\bkTvmgenMetadata_((?:inputs|outputs)(?:_[0-9]+_shape)?)\s*\[[^\]\n]{0,20}\]\s*=\s*\{")
_INTEGER = re.compile(r"([0-9]{1,18})[uUlL]*")
_CODES = {str(code): name for code, name in CODE_NAMES.items()}
_MAX_ARRAYS = 2_000
_MAX_LENGTH = {True: 4 * 1024, False: 256 * 1024}  # characters of a shape, and of a list of tensors


def metadata_signature(module: Module) -> Signature | None:
    """Return the signature in the module's ``TVMMetadata``, or ``None``. Outputs are called ``output<i>``."""
    for file in sources(module):
        text = small_text(file.content)
        if _MARK in text:
            return _signature(text)
    return None


def _signature(text: str) -> Signature | None:
    arrays: dict[str, list[Token]] = {}
    for found in islice(_ARRAY.finditer(text), _MAX_ARRAYS):
        room = _MAX_LENGTH[found[1].endswith("_shape")]
        if found[1] not in arrays:
            arrays[found[1]] = list(in_braces(tokens(text[found.end() : found.end() + room])))
    if "inputs" not in arrays or "outputs" not in arrays:
        return None
    shapes = {name: _shape(values) for name, values in arrays.items() if name.endswith("_shape")}
    inputs, outputs = _tensors(arrays["inputs"], shapes), _tensors(arrays["outputs"], shapes)
    return Signature(inputs, outputs)


def _shape(values: list[Token]) -> tuple[int, ...] | None:
    numbers = [_INTEGER.fullmatch(token.text) for token in values if token.text != ","]
    return tuple(int(number[1]) for number in numbers if number) if all(numbers) else None


def _tensors(values: list[Token], shapes: dict[str, tuple[int, ...] | None]) -> tuple[Argument, ...] | None:
    """Return the tensors of an array of ``TVMTensorInfo``, ``{name, shape, num_shape, {code, bits, lanes}}`` each."""
    words = [token for token in values if token.text not in {"{", "}", ","}]
    if len(words) % 6:
        return None
    return tuple(_tensor(words[at : at + 6], shapes) for at in range(0, len(words), 6))


def _tensor(words: list[Token], shapes: dict[str, tuple[int, ...] | None]) -> Argument:
    name, shape, _, code, bits, lanes = (token.text for token in words)
    dtype = _CODES.get(code, "") + bits + ("" if lanes == "1" else f"x{lanes}")
    # TVM's bool is an unsigned integer of one bit.
    if code == "1" and bits == "1":
        dtype = "bool"
    extents = shapes.get(shape.removeprefix("kTvmgenMetadata_"))
    return Argument(string_value(name), dtype if code in _CODES else "", extents)
