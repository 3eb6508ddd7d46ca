"""The places of a module that have information about its inputs and outputs, the most reliable first.

TVM before 0.11 does not record sizes in the metadata. They normally follow from the Relay text. For archives without
it, they are found in the header's macros, in the C code, and by the size of all tensors together. AOT modules with the
packed interface (TVM 0.9 and later) have ``struct TVMMetadata`` in their C code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations, islice

from mlfbuild.archive.interface.entry import entry_signature, entry_text, main_function
from mlfbuild.archive.interface.relay import relay_signature
from mlfbuild.archive.interface.signature import Argument, Header, Signature, read_header, small_text, sources
from mlfbuild.c_analysis import MAX_TEXT, Token, in_braces, string_value, tokens
from mlfbuild.library import C_TYPES, CODE_NAMES, LINKED_ARRAY, Module, TensorInfo, symbol_prefix
from mlfbuild.library.graph_json import ExecutorGraph, parse_graph

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


# Reversed, so that uint8_t is uint8 and not bool, which comes later in the table.
_DTYPES = {c_type: dtype for dtype, c_type in reversed([*C_TYPES.items()])}


def exact_io_size(module: Module) -> int | None:
    """Return ``io_size_bytes`` of the module if that is the size of its inputs and its only output.

    TVM 0.9 and later adds the result of each operator that the AOT executor calls (``ToANormalForm`` of its
    ``aot_executor_codegen.cc``); ``None`` if there are several.
    """
    total = sum(memory.io_size for memory in module.main)
    if module.executor != "aot":
        return total
    main = main_function(module)
    if main is None:
        return None
    calls = re.findall(rf"\b{symbol_prefix(module.name)}_\w+\s?\(", main.body)
    return total if main.name.endswith("run_model") or len(calls) == 1 else None


def sized_signature(module: Module, header: Header) -> Signature | None:
    """Return the tensors of ``header`` with types and sizes; ``None`` if these are not certain.

    The types are those of the pointers in the main function since TVM 0.9. A size that no macro states is what remains
    of ``io_size_bytes``. The macros of TVM 0.11 may be wrong: sizes with a larger sum are not used.
    """
    inputs, outputs = header.signature.inputs or (), header.signature.outputs or ()
    arguments = [*inputs, *outputs]
    main = main_function(module)
    pointers = [part.split("*")[0].split() for part in (main.parameters if main else "").split(",")]
    types = [_DTYPES.get(words[-1], "") if words else "" for words in pointers]
    if not outputs or len(types) < len(arguments) or not all(types[: len(arguments)]):
        return None
    sizes = [header.sizes.get(f"{header.prefix}_{argument.name.upper()}_SIZE") for argument in arguments]
    known = sum(size for size in sizes if size is not None)
    total = exact_io_size(module) if len(outputs) == 1 else None
    if sizes.count(None) == 1 and total is not None and total > known:
        sizes = [total - known if size is None else size for size in sizes]
        known = total
    if None in sizes or known > sum(memory.io_size for memory in module.main) or total not in {None, known}:
        return None
    found = tuple(
        replace(argument, dtype=dtype, recorded=size)
        for argument, dtype, size in zip(arguments, types, sizes, strict=False)
    )
    return Signature(found[: len(inputs)], found[len(inputs) :])


_MOST_CHOSEN = 16
"""Largest number of parameters of ``@main`` among which inputs are searched by size: 12,870 choices."""
_PARAMETER = re.compile(r"p[0-9]+")
_LINKED = re.compile(rf"\b{LINKED_ARRAY}(\w+)".encode())
"""Arrays of linked parameters, in C and in the symbols of objects."""


class Places:
    """The places of one module; each is read once, on first use."""

    def __init__(self, module: Module, where: str) -> None:
        self._module = module
        self._where = where

    def check_graph(self) -> None:
        """Raise ``InputFileError`` if the graph is invalid, even if nothing else of it is used."""
        _ = self.graph

    def inputs(self) -> Iterator[Sequence[Argument]]:
        """Yield the inputs of each place that has them; parameters are included only if their names identify them."""
        named = bool(self._module.inputs)
        for signature in self._needed():
            found: Sequence[Argument] | None = signature.inputs
            # With names from the metadata or another place, constants are told from inputs by these.
            if signature is self._relay and not named:
                found = self._without_constants(signature)
            if found:
                named = True
                yield found

    def outputs(self, inputs: Sequence[TensorInfo]) -> Iterator[Sequence[Argument]]:
        """Yield the outputs of each place that has them; ``inputs`` are all of the module.

        If the Relay text states an output in part, the rest follows from the size of inputs and output together.
        """
        for signature in self._needed():
            outputs = signature.outputs or ()
            if signature is self._relay and len(outputs) == 1 and inputs and not self._module.outputs:
                rest = (exact_io_size(self._module) or 0) - sum(tensor.size for tensor in inputs)
                outputs = (outputs[0].of_size(rest),) if rest > 0 else outputs
            if outputs:
                yield outputs

    def _needed(self) -> Iterator[Signature]:
        """Yield the signature of each place; with a header, the entry file is skipped because it repeats the names."""
        if self.header is not None:
            yield self.header.signature
        elif self._entry_signature is not None:
            yield self._entry_signature
        if self._metadata is not None:
            yield self._metadata
        if self.graph is not None:
            yield self.graph
        if self._relay is not None:
            yield self._relay
        if self.header is not None and (sized := sized_signature(self._module, self.header)) is not None:
            yield sized

    @cached_property
    def header(self) -> Header | None:
        """The header of the C interface."""
        return read_header(self._module)

    @cached_property
    def entry(self) -> str:
        """The text of the entry file of AOT modules, otherwise empty."""
        return entry_text(self._module) if self._module.executor == "aot" else ""

    @cached_property
    def _entry_signature(self) -> Signature | None:
        return entry_signature(self._module, self.entry) if self.entry else None

    @cached_property
    def _metadata(self) -> Signature | None:
        packed = self._module.executor == "aot" and self.header is None
        return metadata_signature(self._module) if packed else None

    @cached_property
    def graph(self) -> Signature | None:
        """The signature of the executor's graph; raises ``InputFileError`` if the graph is invalid."""
        content = self._module.graph_json
        if content is None or len(content) > MAX_TEXT:
            return None
        graph = parse_graph(bytes(content), self._where)
        return Signature(_arguments(graph.inputs(self._params(graph))), _arguments(graph.outputs))

    def _params(self, graph: ExecutorGraph) -> set[str]:
        """Return the arguments of ``graph`` that are parameters, in the parameters file or linked into the code."""
        params = set(self._module.params)
        if params or not any(_PARAMETER.fullmatch(graph.nodes[node].name) for node in graph.arg_nodes):
            return params
        small = (file for file in self._module.codegen if len(file.content) <= MAX_TEXT)
        return {name.decode() for file in small for name in _LINKED.findall(bytes(file.content))}

    @cached_property
    def _relay(self) -> Signature | None:
        return relay_signature(small_text(self._module.source_text))

    def _without_constants(self, relay: Signature) -> Sequence[Argument]:
        """Return the parameters of ``@main`` that are arguments of the compiled module.

        TVM prints the text before parameters become constants. The arguments are assumed to be the first parameters: as
        many as the entry function has, or as many as have the total size in the metadata. If the size of all tensors
        rules the first ones out, they are the only others that have it. The result is empty if number and size are
        unknown, except in version 1, whose metadata has no sizes.
        """
        params, outputs = relay.inputs or (), relay.outputs or ()
        entry = self._entry_signature
        if entry is not None and entry.count is not None and outputs:
            return self._chosen(params, max(entry.count - len(outputs), 0), outputs)
        if not self._module.main and entry is None:
            return params
        if not outputs or any(argument.size is None for argument in (*params, *outputs)):
            return ()
        # TVM counts the bytes of all outputs once for each of them.
        rest = sum(memory.io_size for memory in self._module.main) - len(outputs) * _total(outputs)
        for count, argument in enumerate(params, 1):
            rest -= argument.size or 0
            if rest == 0:
                return params[:count]
        return ()

    def _chosen(self, params: Sequence[Argument], count: int, outputs: Sequence[Argument]) -> Sequence[Argument]:
        """Return ``count`` of ``params``: the first, unless only others have the size of all inputs, if that is known.

        The result is empty if several others or none have that size.
        """
        first, total = params[:count], exact_io_size(self._module)
        sizes = [argument.size for argument in params]
        if total is None or None in sizes or any(argument.size is None for argument in outputs) or len(params) == count:
            return first
        wanted = total - len(outputs) * _total(outputs)
        if _total(first) == wanted:
            return first
        choices = combinations(params, count) if len(params) <= _MOST_CHOSEN else ()
        found = [chosen for chosen in choices if _total(chosen) == wanted]
        return found[0] if len(found) == 1 else ()


def _total(arguments: Iterable[Argument]) -> int:
    return sum(argument.size or 0 for argument in arguments)


def _arguments(tensors: Sequence[TensorInfo]) -> tuple[Argument, ...]:
    return tuple(Argument(tensor.name, tensor.dtype, tensor.shape) for tensor in tensors)
