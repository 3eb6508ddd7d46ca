"""The operators of a module's program, each with the C functions that compute it.

C functions are found in the sources and objects of the module. Calls in Relay text are matched with the functions that
TVM made of them: the text is that of the program before fusion, and records no function of C. The name of a function is
``tvmgen_<module>_fused_`` and the names of its operators, with ``_`` for ``.``, and perhaps a number; layouts are at
the end (``nn_contrib_conv2d_NCHWc``), and ``qnn.conv2d`` becomes ``nn_conv2d`` and other operators. A function of an
external code generator has the name that the text calls.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from mlfbuild.c_analysis import (
    HEADER_SUFFIXES,
    MAX_TEXT,
    OBJECT_SUFFIXES,
    TEXT_SUFFIXES,
    defined_functions,
    object_symbols,
)
from mlfbuild.core import InputFileError
from mlfbuild.library import CodegenFile, Module, Network, TensorInfo, text_of
from mlfbuild.library.graph_json import CALL, ExecutorGraph, NodeEntry, parse_graph


@dataclass(frozen=True)
class CodeFunction:
    """A C function, and where it is defined."""

    name: str
    file: str
    """Path in the archive; empty if no file defines the function."""
    line: int | None
    """From 1; ``None`` in an object."""


KnownFiles: TypeAlias = dict[PurePosixPath, list[CodeFunction]]
"""The functions of each file of one archive that was read before; modules may share headers."""


def code_functions(module: Module, known: KnownFiles) -> dict[str, CodeFunction]:
    """Return the functions that ``module`` defines, by name; of several with one name, that of a source.

    Files larger than ``MAX_TEXT``, and objects that cannot be read, are left out. Files are added to ``known``.
    """
    found: dict[str, CodeFunction] = {}
    # Sources before headers: the first definition of a name is kept.
    for file in sorted(module.codegen, key=lambda each: each.path.suffix in HEADER_SUFFIXES):
        if file.path not in known:
            known[file.path] = _functions(file)
        for function in known[file.path]:
            found.setdefault(function.name, function)
    return found


def _functions(file: CodegenFile) -> list[CodeFunction]:
    path = f"codegen/{file.path}"
    if len(file.content) > MAX_TEXT:
        return []
    if file.path.suffix in TEXT_SUFFIXES:
        return [CodeFunction(each.name, path, each.line) for each in defined_functions(_text(file))]
    if file.path.suffix not in OBJECT_SUFFIXES:
        return []
    try:
        symbols = object_symbols(file.data, path)
    except InputFileError:
        return []  # validate reports it (MLF712)
    return [CodeFunction(name, path, None) for name in sorted(symbols.defined | symbols.weak)]


def function_text(module: Module, function: CodeFunction) -> bytes | None:
    """Return the definition of ``function``, one of ``code_functions``; ``None`` if it is in an object.

    The bytes are those of the file, whatever its encoding. The comment before the function is not part of it.
    """
    texts = (_text(file) for file in module.codegen if f"codegen/{file.path}" == function.file)
    text = "" if function.line is None else next(texts, "")
    for each in defined_functions(text):
        if (each.name, each.line) == (function.name, function.line):
            return text[each.start : each.end].encode("latin-1")
    return None


def _text(file: CodegenFile) -> str:
    return file.data.decode("latin-1")


_HIDDEN = re.compile(r'/\*[\s\S]*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?')
_CALL = re.compile(r"(?<![\w%.@\]])(@?[A-Za-z_][\w.]*)\(", re.ASCII)
_DEFINITION = re.compile(r"\s*def @([\w.]+)", re.ASCII)
_FUSED = "fused_"
_MAIN = "main"
_MAX_WORDS = 8  # in the name of an operator, such as image_resize2d


@dataclass(frozen=True)
class RelayCall:
    """A call of an operator, such as ``nn.conv2d``, or of a function, such as ``@tvmgen_kws_cmsis_nn_main_0``."""

    name: str
    line: int
    """From 1."""
    inside: str
    """The function whose body has the call; empty for ``@main``."""


def relay_calls(text: str) -> Iterator[RelayCall]:
    """Yield the calls in Relay ``text``, in its order; takes any text, and time that is linear in its length."""
    inside = ""
    # Only their line ends stay, so that calls keep their line numbers.
    plain = _HIDDEN.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(plain.split("\n"), 1):
        definition = _DEFINITION.match(line)
        if definition is not None:
            inside = "" if definition[1] == _MAIN else definition[1]
            continue
        for found in _CALL.finditer(line):
            yield RelayCall(found[1], number, inside)


def functions_of_calls(calls: Iterable[RelayCall], functions: Collection[str]) -> dict[RelayCall, tuple[str, ...]]:
    """Return for each call the names of ``functions`` that may compute it, sorted."""
    calls = tuple(calls)
    operators = {_in_c(call.name) for call in calls if not call.name.startswith("@")}
    users: defaultdict[str, list[str]] = defaultdict(list)
    for function in sorted(functions):
        _, fused, rest = function.partition(_FUSED)
        for name in set(_parts(_in_c(rest), operators)) if fused else ():
            users[name].append(function)
    fused_calls = {name: tuple(names) for name, names in users.items()}
    found: dict[RelayCall, tuple[str, ...]] = {}
    for call in calls:
        named = next((name for name in (call.inside, call.name.removeprefix("@")) if name in functions), None)
        found[call] = fused_calls.get(_in_c(call.name), ()) if named is None else (named,)
    return found


def _in_c(name: str) -> str:
    """Return the name of an operator as a part of names in C, the same for all layouts and for quantised operands."""
    return re.sub(r"\W", "_", name).replace("_contrib_", "_").removeprefix("q" if name.startswith("qnn.") else "")


def _parts(rest: str, operators: Collection[str]) -> Iterator[str]:
    """Yield the operators whose names ``rest`` consists of, the longest that fits first; other words are skipped."""
    words = rest.split("_")
    at = 0
    while at < len(words):
        counts = range(min(_MAX_WORDS, len(words) - at), 0, -1)
        size = next((count for count in counts if "_".join(words[at : at + count]) in operators), 0)
        if size:
            yield "_".join(words[at : at + size])
        at += size or 1


RELAY: str = "relay"
TIR: str = "tir"
GRAPH: str = "graph"
PLAN: str = "plan"


@dataclass(frozen=True)
class ProgramOperator:
    """An operator of a graph or a plan, or a call in the text of the program."""

    name: str
    functions: tuple[CodeFunction, ...]
    """The function that computes it. For a call in Relay text, all whose names contain its name."""
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    line: int | None = None
    """The line of the call in the text."""


def program_operators(module: Module, part: str, functions: Mapping[str, CodeFunction]) -> tuple[ProgramOperator, ...]:
    """Return the operators of one part of the program, in its order; ``functions`` are those of the module's code.

    Raises ``InputFileError`` if the graph is not valid. A text larger than ``MAX_TEXT`` has no operators.
    """
    if part == GRAPH:
        return tuple(_of_graph(module, functions))
    if part == TIR:
        return tuple(_of_tir(module, functions))
    if module.network is not None:
        return tuple(_of_network(module.network, functions))
    return tuple(_of_text(module, functions))


def _known(name: str, functions: Mapping[str, CodeFunction]) -> tuple[CodeFunction, ...]:
    return (functions.get(name, CodeFunction(name, "", None)),) if name else ()


def _of_graph(module: Module, functions: Mapping[str, CodeFunction]) -> Iterator[ProgramOperator]:
    graph = parse_graph(bytes(module.graph_json or b""), f"graph of {module.name}")
    for index, node in enumerate(graph.nodes):
        if node.op == CALL:
            count = graph.node_row_ptr[index + 1] - graph.node_row_ptr[index]
            yield ProgramOperator(
                node.name,
                _known(node.function, functions),
                tuple(_tensor(graph, entry) for entry in node.inputs),
                tuple(_tensor(graph, NodeEntry(index, output)) for output in range(count)),
            )


def _tensor(graph: ExecutorGraph, output: NodeEntry) -> TensorInfo:
    name = graph.nodes[output.node].name
    return graph.tensor(graph.entry(output), f"{name}:{output.index}" if output.index else name)


def _of_tir(module: Module, functions: Mapping[str, CodeFunction]) -> Iterator[ProgramOperator]:
    buffers: defaultdict[str, list[TensorInfo]] = defaultdict(list)
    for each in module.buffers:
        name = each.input_binding or f"argument {len(buffers[each.function])}"
        buffers[each.function].append(TensorInfo(name, each.dtype, each.size, each.shape))
    for function in module.operator_functions:
        yield ProgramOperator(function.name, _known(function.name, functions), tuple(buffers[function.name]))


def _of_network(network: Network, functions: Mapping[str, CodeFunction]) -> Iterator[ProgramOperator]:
    tensors = [TensorInfo(each.name, each.dtype, each.size, each.shape) for each in network.tensors]
    for operator in network.operators:
        yield ProgramOperator(
            f"{operator.name} ({operator.operator})",
            _known(operator.function, functions),
            tuple(tensors[index] for index in operator.inputs if index < len(tensors)),
            tuple(tensors[index] for index in operator.outputs if index < len(tensors)),
        )


def _of_text(module: Module, functions: Mapping[str, CodeFunction]) -> Iterator[ProgramOperator]:
    if len(module.source_text) > MAX_TEXT:
        return
    calls = tuple(relay_calls(text_of(module.source_text)))
    found = functions_of_calls(calls, functions)
    places = {names: tuple(functions[name] for name in names) for names in set(found.values())}
    for call in calls:
        yield ProgramOperator(call.name, places[found[call]], line=call.line)
