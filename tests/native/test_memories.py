"""A network over several memories: numbers, the C, sections, archives, and what is refused."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from mlfbuild.archive import pack_archive, read_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core import sha256
from mlfbuild.core.errors import UnsupportedModelError, UsageError
from mlfbuild.library import CompileRequest, Library, Network, OptionValue
from mlfbuild.library.keys import ArenaMemory, Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import Graph, ops
from mlfbuild.native.graph.nodes import evaluate, evaluate_in_turn
from mlfbuild.native.lowering import lower_all
from mlfbuild.native.memory import plan_memory, use_free_memory
from mlfbuild.native.settings import CodegenSettings
from mlfbuild.targets import CPUS
from mlfbuild.usecases.validate import validate_archive
from support.errors import raises
from support.examples import first_on_push
from support.host_c import WARNINGS, run, run_cases_on_host, run_on_host, write_tree
from support.native import compile_network, generated, request
from support.sketch import Sketch, face_detector, stream, values_of

FACES = face_detector()
SLOW = {"dtcm": 0, "sram": 1_000, "ddr": 8_000}


def memories(**sizes: int) -> tuple[ArenaMemory, ...]:
    return tuple(ArenaMemory(name, size, f".mlf_{name}", SLOW[name], SLOW[name] // 2) for name, size in sizes.items())


def compiled(graph: Graph, given: tuple[ArenaMemory, ...], options: Mapping[str, OptionValue] | None = None) -> Library:
    wanted = replace(request(graph.name), memories=given)
    wanted = replace(wanted, options={**wanted.options, **(options or {})})
    return compile_graph(graph, wanted, sha256(graph.name.encode()))


def network_of(library: Library) -> Network:
    network = library.modules[0].network
    assert network is not None
    return network


def sizes_of(library: Library) -> dict[str, int]:
    return {memory.name: memory.size for memory in network_of(library).memories}


CUTS = [
    ("ic", {"dtcm": 16 << 10, "sram": 48 << 10}),
    ("vww", {"dtcm": 8 << 10, "sram": 20 << 10, "ddr": 1 << 20}),
    ("ic", {"dtcm": 32 << 10, "sram": 32 << 10}),
    ("ic", {"ddr": 1 << 20, "dtcm": 4 << 10, "sram": 20 << 10}),
    ("vww", {"dtcm": 32 << 10, "sram": 64 << 10}),
]


@pytest.mark.parametrize(("name", "cut"), first_on_push(CUTS, 2))
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_outputs_equal_the_golden_ones(shared: Path, name: str, cut: dict[str, int], cpu: str) -> None:
    source, vectors = shared / f"models/{name}_int8.tflite", np.load(shared / f"golden/{name}_int8.npz")
    wanted = CompileRequest(name, source, CPUS[cpu], memories=memories(**cut))
    library = compiler_called("native").compile(wanted)
    assert len(network_of(library).arenas) > 1
    assert all(size <= cut[memory] for memory, size in sizes_of(library).items())
    assert list(sizes_of(library)) == list(cut)
    inputs = [vectors[key][:1] for key in sorted(vectors.files) if key.startswith("in")]
    (found,) = run_on_host(library, inputs)
    (key,) = (key for key in vectors.files if key.startswith("out"))
    np.testing.assert_array_equal(found.ravel(), vectors[key][0].ravel())
    assert pack_archive(compiler_called("native").compile(wanted)) == pack_archive(library)


@pytest.mark.parametrize(
    "options", [{}, {"io": "arena"}, {"hook": True, "trace": True}, {"io": "arena", "trace": True}], ids=str
)
def test_every_form_of_the_c_interface_computes_the_graph(options: dict[str, Any]) -> None:
    library = compiled(FACES, memories(dtcm=3 << 10, sram=4 << 10, ddr=8 << 10), options)
    assert len(network_of(library).arenas) > 1
    inputs = values_of(FACES)
    expected = evaluate(FACES, dict(zip(FACES.inputs, inputs, strict=True)))
    for value, name in zip(run_on_host(library, inputs), FACES.outputs, strict=True):
        np.testing.assert_array_equal(value, expected[name])
    text = generated(library, "tvmgen_net.h")
    if "io" in options:
        assert "struct tvmgen_net_workspace_pools {\n  void* dtcm;\n" in text
        pools = {pool.name: pool.size for pool in library.modules[0].pools}
        assert pools == {name: size for name, size in sizes_of(library).items() if size}


@pytest.mark.parametrize("options", [{}, {"io": "arena"}], ids=str)
def test_archive_keeps_the_memories(tmp_path: Path, options: dict[str, Any]) -> None:
    library = compiled(FACES, memories(dtcm=3 << 10, sram=8 << 10), options)
    module = library.modules[0]
    path = tmp_path / "net.tar"
    path.write_bytes(pack_archive(library))
    assert read_archive(path.read_bytes(), "net.tar").modules[0] == module
    assert not validate_archive(path).findings
    network = network_of(library)
    assert module.main[0].workspace_size == network.arena == sum(memory.size for memory in network.memories)
    for at, memory in enumerate(network.memories):
        assert max(network.usage_of(at)) <= memory.size <= memory.limit
    assert all(tensor.accesses for tensor in network.tensors if tensor.memory == "arena" and tensor.first < tensor.last)


def test_arenas_are_in_the_sections_of_their_memories(tmp_path: Path, tool: Callable[[str], str]) -> None:
    library = compiled(FACES, memories(dtcm=1 << 10, sram=3 << 10, ddr=8 << 10))
    compiler = [tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, *WARNINGS, "-Os"]
    write_tree(library, tmp_path)
    run([*compiler, "-I", tmp_path / "host/include", "-c", tmp_path / "host/src/net_lib0.c", "-o", tmp_path / "net.o"])
    with (tmp_path / "net.o").open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = table.iter_symbols()
        found = {
            symbol.name: (elf.get_section(symbol["st_shndx"]).name, symbol["st_size"])
            for symbol in symbols
            if symbol.name.endswith("_workspace")
        }
    used = {name: size for name, size in sizes_of(library).items() if size}
    assert len(used) == 3
    assert found == {f"tvmgen_net_{name}_workspace": (f".mlf_{name}", size) for name, size in used.items()}


def test_models_that_take_turns_have_arenas_in_sections_for_it() -> None:
    main, fast = ArenaMemory("sram", 8 << 10, ".bss.noinit.tvm", 1000, 1000), memories(dtcm=3 << 10)
    text = {}
    for given in ((*fast, main), fast[:0] + memories(dtcm=1 << 20), (main,)):
        wanted = replace(request("net"), memories=given, placement=Placement(shares_workspace=1))
        library = compile_graph(FACES, wanted, 64 * "0")
        text[len(text)] = generated(library)
        inputs = values_of(FACES)
        expected = evaluate(FACES, dict(zip(FACES.inputs, inputs, strict=True)))
        for value, name in zip(run_on_host(library, inputs), FACES.outputs, strict=True):
            np.testing.assert_array_equal(value, expected[name])
    both, alone, usual = text.values()
    assert '_NET_DTCM_SHARED __attribute__((section(".mlf_dtcm.shared.net")))' in both
    assert "union mlf_net_sram_workspace mlf_shared_workspace;" in both
    assert "&tvmgen_net_dtcm_workspace, &mlf_shared_workspace" in both
    # The flag is the same for all, wherever arenas are.
    assert "mlf_shared_workspace_busy" in alone and "mlf_shared_workspace;" not in alone
    assert 'section(".mlf_dtcm.shared.net")' in alone and ".shared." not in usual


def test_single_memory_changes_only_the_section() -> None:
    usual, alone = generated(compile_network(FACES)), generated(compiled(FACES, memories(dtcm=1 << 20)))
    assert usual.replace('section(".bss.noinit.tvm")', 'section(".mlf_dtcm")') == alone
    assert sizes_of(compiled(FACES, memories(dtcm=1 << 20))) == {}
    # Several, of which the fastest has room for everything.
    assert generated(compiled(FACES, memories(ddr=1 << 20, dtcm=1 << 20))) == alone


@pytest.mark.parametrize(("fast", "memory"), [(16, "dtcm"), (8, "sram")])
def test_state_is_in_one_memory(fast: int, memory: str) -> None:
    graph = stream()
    values = [np.full((1, 4), number, np.float32) for number in range(3)]
    expected = [outputs["y"] for outputs in evaluate_in_turn(graph, [{"x": value} for value in values])]
    library = compiled(graph, memories(dtcm=fast, sram=64))
    found = run_cases_on_host(library, [[value] for value in values])
    np.testing.assert_array_equal([each[0] for each in found], expected)
    states = {each.name: each.state for each in network_of(library).memories}
    assert states == {"dtcm": 0, "sram": 0, memory: 16}
    assert f'#define TVMGEN_STREAM_STATE __attribute__((section(".mlf_{memory}")))' in generated(library)


def planned(graph: Graph, **sizes: int) -> Any:
    calls = lower_all(graph, CodegenSettings(CPUS["cortex-m4"]))
    return plan_memory(graph, calls, memories=memories(**sizes))


def test_less_fast_memory_never_waits_less() -> None:
    waits = [planned(FACES, dtcm=size, ddr=1 << 20).waits for size in range(0, 12 << 10, 1 << 10)]
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > 0 == waits[-1]
    assert planned(FACES, dtcm=4 << 10, ddr=1 << 20) == planned(FACES, dtcm=4 << 10, ddr=1 << 20)


def test_free_memory_is_taken_only_of_the_fastest_memory() -> None:
    calls = lower_all(FACES, CodegenSettings(CPUS["cortex-m4"]))
    plan = plan_memory(FACES, calls, memories=memories(ddr=1 << 20, dtcm=3 << 10))
    faster, after = use_free_memory(calls, plan)
    grown = [at for at, call in enumerate(faster) if call.scratch > calls[at].scratch]
    fast = plan.memories[1]
    ends = [(after.scratch[at], after.scratch[at] + faster[at].scratch) for at in grown]
    assert ends and all(fast.base <= start and end <= fast.base + fast.size for start, end in ends)


def test_what_is_accessed_most_is_in_the_fastest_memory() -> None:
    """Scratch memory of a convolution with the DSP extension has more accesses than the images beside it."""
    plan = planned(FACES, dtcm=1 << 10, ddr=1 << 20)
    dense = {storage.accesses / storage.size: storage.memory for storage in plan.storages if storage.size < 512}
    assert dense[max(dense)] == "dtcm"


def test_chain_is_used_if_the_network_fits_only_with_it() -> None:
    s = Sketch("net")
    same = ((1, 1), (1, 1))
    s.tensor("x", 1, 32, 32, 8)
    s.node(ops.Conv2D(padding=same), "x", s.weights("w0", 8, 3, 3, 8), s.tensor("a", 1, 32, 32, 8))
    s.node(ops.Conv2D(padding=same), "a", s.weights("w1", 8, 3, 3, 8), s.tensor("b", 1, 32, 32, 8))
    s.node(ops.MaxPool2D((2, 2), (2, 2)), "b", s.tensor("y", 1, 16, 16, 8))
    graph = s.graph(["x"], ["y"])
    for sizes in ({"dtcm": 4 << 10}, {"dtcm": 2 << 10, "sram": 3 << 10}):
        operators = network_of(compiled(graph, memories(**sizes))).operators
        assert [each.operator for each in operators] == ["CONV_2D + CONV_2D + MAX_POOL_2D"]
    operators = network_of(compiled(graph, memories(dtcm=20 << 10, sram=20 << 10))).operators
    assert len(operators) == 3
    # A very slow memory beside a small fast one: rows in fast memory wait less than whole images.
    operators = network_of(compiled(graph, memories(dtcm=4 << 10, ddr=1 << 20))).operators
    assert len(operators) == 1


def test_too_small_memories_are_refused_with_operator_and_bytes() -> None:
    with raises(UnsupportedModelError, "memories-too-small", at="net: memory 'dtcm'") as caught:
        compiled(FACES, memories(dtcm=1 << 10, sram=1 << 10))
    assert "1024 bytes" in caught.value.reason and "operator " in caught.value.reason
    missing = int(caught.value.reason.split()[0])
    assert sizes_of(compiled(FACES, memories(dtcm=(1 << 10) + missing, sram=1 << 10)))
    with raises(UnsupportedModelError, "memories-too-small"):
        compiled(FACES, memories(dtcm=(1 << 10) + missing - 16, sram=1 << 10))
    with raises(UnsupportedModelError, "memories-too-small", at="net: memory 'dtcm'"):
        compiled(FACES, memories(dtcm=512))


@pytest.mark.parametrize(
    ("changes", "other"),
    [
        ({"placement": Placement(workspace=".bss.x")}, "placement.workspace"),
        ({"placement": Placement(state=".bss.x")}, "placement.state"),
        ({"placement": Placement(shares_workspace=1), "options": {"interface-api": "packed"}}, "share-workspace"),
        ({"executor": "graph"}, "executor: graph"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_together_with_memories_is_refused(changes: dict[str, Any], other: str) -> None:
    wanted = replace(request("net"), memories=memories(dtcm=1 << 20), **changes)
    with raises(UsageError, "memories-refused", at="net: memories") as caught:
        compile_graph(FACES, wanted, 64 * "0")
    assert other in caught.value.reason


def test_unknown_speeds_and_unproven_plans_are_noted() -> None:
    equal = tuple(replace(memory, load_wait=0, store_wait=0) for memory in memories(dtcm=4 << 10, sram=1 << 20))
    library = compile_graph(FACES, replace(request("net"), memories=equal), 64 * "0")
    assert [note for note in library.modules[0].notes if note.startswith("memories: dtcm, sram")]
    assert sizes_of(library)["dtcm"] > 3 << 10, "the first one is preferred"
