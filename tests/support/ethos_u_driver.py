"""A stand-in for the driver of Arm's Ethos-U that computes the NPU's part of a network on the core.

``write_driver`` makes a folder that provides ``ethos-u-core-driver``: the stand-in, a table of the calls that it may
expect, and each call's part of the original network, compiled for the core by mlfbuild.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mlfbuild.ethos_u import compile_with_vela
from mlfbuild.library import CompileRequest, npu_symbol
from mlfbuild.native import Graph, Node, compile_graph, read_network
from mlfbuild.native.build import graph_of
from mlfbuild.native.frontends import NetworkFiles, OriginalNetwork
from mlfbuild.native.graph.ops import EthosU

TEMPLATES = Path(__file__).parent / "ethos_u"
_CONVERTED = " ^ 0x80"
_Moved = tuple[int, int, bool]
"""Bytes of a tensor, its offset in the working memory, and whether it is uint8 there and int8 in the part."""
PROVIDER = '{path: driver, version: "23.11", include-dirs: [include, src]}'


def npu_calls(request: CompileRequest) -> list[Node]:
    """Return the nodes of the network that the NPU of ``request`` computes."""
    return _npu_calls(npu_graph(request))


def _npu_calls(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if isinstance(node.operator, EthosU)]


def npu_graph(request: CompileRequest) -> Graph:
    """Return the network of ``request`` as Vela wrote it."""
    assert request.npu is not None
    data = request.source.read_bytes()
    result, original = compile_with_vela(data, request.npu, request.source), OriginalNetwork.of(data, "")
    return graph_of(NetworkFiles(request.source, result.model), request, request.npu.accelerator, original.absent)


def write_driver(folder: Path, request: CompileRequest) -> Path:
    """Write the stand-in for the model of ``request`` to ``folder``, and return the folder."""
    source, include = folder / "src", folder / "include"
    for each in (source, include):
        each.mkdir(parents=True, exist_ok=True)
    (folder / "LICENSE.txt").write_text("For tests.\n")
    (include / "ethosu_driver.h").write_bytes((TEMPLATES / "ethosu_driver.h").read_bytes())
    for name in ("ethosu_driver.c", "stand_in.h"):
        (source / name).write_bytes((TEMPLATES / name).read_bytes())
    core = replace(request, npu=None)
    graph, digest = read_network(core)
    # The core's network has uint8 tensors as int8, and the NPU does not.
    names = {f"{name}_uint8": name for name in graph.tensors if f"{name}_uint8" not in graph.tensors}
    own = npu_graph(request)
    calls = [(call, _renamed(call, names | _in_loops(own, graph))) for call in _npu_calls(own)]
    for at, (_, call) in enumerate(calls):
        name = f"stand_in{at}"
        part = part_of(graph, call, name)
        (module,) = compile_graph(part, replace(core, name=name, options={}), digest).modules
        for file in module.codegen:
            path = source / file.path.relative_to("host/include" if "include" in file.path.parts else "host/src")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(bytes(file.content))
    (source / "stand_in.c").write_text("\n".join(_table(request.name, graph, calls)))
    return folder


def _in_loops(own: Graph, graph: Graph) -> dict[str, str]:
    """Return tensor in ``own`` -> tensor in ``graph`` for those of loops, whose names end with their number."""
    theirs = _numbered(graph)
    pairs = [zip(names, theirs[stem], strict=True) for stem, names in _numbered(own).items() if stem in theirs]
    return dict(pair for each in pairs for pair in each)


def _numbered(graph: Graph) -> dict[str, list[str]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for name in graph.tensors:
        stem, _, number = name.rpartition("_")
        if stem and number.isdecimal():
            found.setdefault(stem, []).append((int(number), name))
    return {stem: [name for _, name in sorted(names)] for stem, names in found.items()}


def _renamed(call: Node, names: Mapping[str, str]) -> Node:
    inputs, outputs = (tuple(names.get(str(each), str(each)) for each in side) for side in (call.inputs, call.outputs))
    return replace(call, inputs=inputs, outputs=outputs)


def part_of(graph: Graph, call: Node, name: str) -> Graph:
    """Return the part of ``graph`` between the inputs and the outputs of ``call``."""
    wanted, nodes = {*call.outputs}, []
    for node in reversed(graph.nodes):
        if wanted & {*node.outputs}:
            nodes.insert(0, node)
            wanted |= {each for each in node.inputs if each is not None and each not in call.inputs}
    names = {each for node in nodes for each in (*node.inputs, *node.outputs) if each is not None}
    tensors = [graph.tensor(each) for each in graph.tensors if each in names | {*call.inputs, *call.outputs}]
    return Graph(name, tensors, nodes, [each for each in call.inputs if each], call.outputs)


def _table(model: str, graph: Graph, calls: list[tuple[Node, Node]]) -> Iterator[str]:
    """Yield a C file with the parts of ``calls``, which have names of the NPU's network and of the core's."""
    yield '#include "stand_in.h"\n\n#include <string.h>\n'
    for at in range(len(calls)):
        yield f'#include "tvmgen_stand_in{at}.h"'
    rows = []
    for at, (own, call) in enumerate(calls):
        operator = call.operator
        assert isinstance(operator, EthosU)
        stream, weights = (npu_symbol(model, name) for name in (operator.stream_file, operator.weights_file))
        yield from (f"extern const uint8_t {symbol}[];" for symbol in dict.fromkeys((stream, weights)))
        inputs, outputs = (
            [
                (graph.tensor(str(each)).size, to, its == f"{each}_uint8")
                for each, its, to in zip(names, others, offsets, strict=True)
            ]
            for names, others, offsets in (
                (call.inputs, own.inputs, operator.input_offsets),
                (call.outputs, own.outputs, operator.output_offsets),
            )
        )
        yield from _compute(at, inputs, outputs, operator.stores)
        sizes = (len(operator.weights), operator.scratch, operator.fast or operator.scratch)
        numbers = ", ".join(map(str, sizes))
        fast = int(operator.fast > 0)
        rows.append(f"    {{{stream}, {len(operator.payload)}, {weights}, {{{numbers}}}, {fast}, compute{at}}},")
    yield "const struct stand_in_call stand_in_calls[] = {"
    yield from rows
    yield f"}};\nconst int stand_in_count = {len(calls)};\n"


def _compute(
    at: int, inputs: list[_Moved], outputs: list[_Moved], stores: Collection[tuple[int, int]]
) -> Iterator[str]:
    """Yield a function that runs the part on copies, and overwrites all bytes that the stream writes.

    Outputs must be among them.
    """
    written = {byte for start, end in stores for byte in range(start, end)}
    assert all(written.issuperset(range(start, start + size)) for size, start, _ in outputs)
    yield f"static int compute{at}(uint8_t *memory)\n{{"
    for kind, tensors in (("in", inputs), ("out", outputs)):
        for number, (size, *_) in enumerate(tensors):
            yield f"    static uint8_t __attribute__((aligned(8))) {kind}{number}[{size}];"
    # By position: the members have the names of tensors.
    yield f"    struct tvmgen_stand_in{at}_inputs inputs;\n    struct tvmgen_stand_in{at}_outputs outputs;"
    yield f"    void *const ins[] = {{{', '.join(f'in{number}' for number in range(len(inputs)))}}};"
    yield f"    void *const outs[] = {{{', '.join(f'out{number}' for number in range(len(outputs)))}}};"
    yield "    int result;\n    size_t i;\n"
    yield "    memcpy(&inputs, ins, sizeof inputs);\n    memcpy(&outputs, outs, sizeof outputs);"
    for number, (size, offset, converted) in enumerate(inputs):
        yield f"    for (i = 0; i < {size}; ++i) in{number}[i] = memory[{offset} + i]{_CONVERTED * converted};"
    yield f"    result = (int)tvmgen_stand_in{at}_run(&inputs, &outputs);"
    yield from (f"    memset(&memory[{start}], 0xA5, {end - start});" for start, end in stores)
    for number, (size, offset, converted) in enumerate(outputs):
        yield f"    for (i = 0; i < {size}; ++i) memory[{offset} + i] = out{number}[i]{_CONVERTED * converted};"
    yield "    return result;\n}"
