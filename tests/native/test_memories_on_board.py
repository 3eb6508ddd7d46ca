"""Networks over three memories of emulated boards: numbers, addresses, accesses, and cycles of waiting."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core import ProcessFailedError, UnsupportedModelError, sha256
from mlfbuild.jobs.tree import unpack
from mlfbuild.jobs.tree.placement import PlacedSection, placement_files
from mlfbuild.library import CompileRequest, Library, Module, Network
from mlfbuild.library.keys import ArenaMemory, FastWeights
from mlfbuild.native.build import compile_graph, compile_model, read_network
from mlfbuild.native.graph import evaluate
from mlfbuild.native.passes import remove_dead_channels, run_passes
from mlfbuild.native.planned import plan_network
from mlfbuild.native.settings import CodegenSettings
from mlfbuild.report.operators.profile import profile_module
from mlfbuild.report.sizes.image import read_image
from mlfbuild.targets import BOARDS, CPUS, Board, Mcu, TimedMemory, toolchain_file
from mlfbuild.verify.emulator import build_harness
from mlfbuild.verify.module import verify_module
from support.errors import raises
from support.host_c import run_on_host
from support.native import request
from support.sketch import face_detector, values_of
from support.watched_memory import arenas_in, watched_run

BOARD = BOARDS["mps3-an547"]
REGIONS = {"dtcm": {"DTCM"}, "sram": {"RAM"}, "ddr": {"DDR", "PSRAM"}}
SECTIONS = {"dtcm": ".bss.dtcm", "sram": ".bss.noinit.tvm", "ddr": ".mlf_ddr"}
WAITS = {"dtcm": 0, "sram": 1, "ddr": 8}


@pytest.fixture(autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "arm-none-eabi-nm", "cmake", "ninja", "qemu-system-arm", "gcc")


def memories(**sizes: int) -> tuple[ArenaMemory, ...]:
    return tuple(
        ArenaMemory(name, size, SECTIONS[name], 1000 * WAITS[name], 1000 * WAITS[name]) for name, size in sizes.items()
    )


def placement(folder: Path, board: Board = BOARD) -> Path:
    far = next(each.name for each in board.others if each.name in {"DDR", "PSRAM"})
    for name, content in placement_files([PlacedSection(".mlf_ddr", far, memory=True)], on_board=True).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / "placement/placement.cmake"


def image_of(library: Library, board: Board, folder: Path) -> Path:
    (module,) = library.modules
    unpack(library, folder / "net", archive_id=64 * "0")
    return build_harness(
        folder / "net", module, board, toolchain_file(CPUS[board.cpu]), folder / "work", twice=False,
        placement=placement(folder, board),
    )  # fmt: skip


def check_addresses(image: Path, module: Module, board: Board) -> dict[str, range]:
    """Return the arenas in ``image``, each of which is in the region of its memory."""
    arenas = arenas_in(image, module)
    for name, arena in arenas.items():
        # The script of a board without a DTCM has that name for its RAM.
        found = next((each for each in board.others if each.name in REGIONS[name]), board.ram)
        assert found.origin <= arena.start and arena.stop <= found.origin + found.size, name
    return arenas


def test_three_arenas_are_in_their_memories_and_a_run_accesses_no_other(tmp_path: Path) -> None:
    graph = face_detector()
    wanted = replace(request("net", cpu=BOARD.cpu), memories=memories(dtcm=1 << 10, sram=3 << 10, ddr=1 << 20))
    library = compile_graph(graph, wanted, sha256(b"net"))
    (module,) = library.modules
    image = image_of(library, BOARD, tmp_path)
    arenas = check_addresses(image, module, BOARD)
    assert list(arenas) == ["dtcm", "sram", "ddr"]
    inputs = values_of(graph)
    expected = evaluate(graph, dict(zip(graph.inputs, inputs, strict=True)))
    given = [value.reshape(1, -1) for value in inputs]
    found = watched_run(image, module, BOARD, given, arenas.values(), tmp_path / "watched")
    for value, name in zip(found, graph.outputs, strict=True):
        np.testing.assert_array_equal(value, expected[name].ravel())
    # Without one of them the run is refused: the accesses are really watched.
    *others, last = arenas.values()
    with raises(ProcessFailedError, "cycles-not-modelled") as caught:
        watched_run(image, module, BOARD, given, others, tmp_path / "watched")
    assert int(caught.value.reason.split("address 0x")[1].split(",")[0], 16) in last


NETWORKS = ("kws", "ic", "ad", "vww")
CUTS = {"loose": (4, 2), "tight": (16, 6)}
"""The arena divided by the sizes of the fastest memory and of the next one."""


@pytest.mark.sweep
@pytest.mark.parametrize("options", [{}, {"io": "arena"}], ids=str)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("board", ["mps3-an547", "mps2-an500"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_exact_and_access_only_what_is_theirs(
    shared: Path, tmp_path: Path, name: str, board: str, cut: str, options: dict[str, str]
) -> None:
    on, source = BOARDS[board], shared / f"models/{name}_int8.tflite"
    usual = compile_model(CompileRequest(name, source, CPUS[on.cpu], options=options)).modules[0].main[0].workspace_size
    fast, middle = (max(64, usual // part // 16 * 16) for part in CUTS[cut])
    given = memories(dtcm=fast, sram=middle, ddr=1 << 20)
    library = compile_model(CompileRequest(name, source, CPUS[on.cpu], memories=given, options=options))
    (module,) = library.modules
    assert module.network is not None and len(module.network.arenas) > 1
    image = image_of(library, on, tmp_path)
    arenas = check_addresses(image, module, on)
    if options:  # the test firmware has the pools
        arenas = {}
    vectors = np.load(shared / f"golden/{name}_int8.npz")
    inputs = [vectors["in0"][:1].reshape(1, -1)]
    (found,) = watched_run(image, module, on, inputs, arenas.values(), tmp_path / "watched")
    np.testing.assert_array_equal(found, vectors["out0"][0].ravel())
    # Both entry points, each case twice.
    report = verify_module(
        tmp_path / "net", module, on, shared / f"golden/{name}_int8.npz", tmp_path / "verified",
        toolchain=toolchain_file(CPUS[on.cpu]), placement=placement(tmp_path, on),
    )  # fmt: skip
    assert report.passed, report.text()


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["cortex-m55", "cortex-m7"])
@pytest.mark.parametrize("name", NETWORKS)
def test_sizes_are_cut_until_nothing_fits(shared: Path, name: str, cpu: str) -> None:
    source = shared / f"models/{name}_int8.tflite"
    usual = compile_model(CompileRequest(name, source, CPUS[cpu])).modules[0].main[0].workspace_size
    vectors = np.load(shared / f"golden/{name}_int8.npz")
    fitting, size = None, 2 * usual
    while True:
        given = memories(dtcm=size // 64 * 16, sram=size // 32 * 16)
        try:
            library = compile_model(CompileRequest(name, source, CPUS[cpu], memories=given))
        except UnsupportedModelError as error:
            refused = error
            break
        fitting, size = library, size * 3 // 4
        found = network_of(fitting)
        assert all(memory.size <= memory.limit for memory in found.memories)
    assert fitting is not None
    (values,) = run_on_host(fitting, [vectors["in0"][:1]])
    np.testing.assert_array_equal(values.ravel(), vectors["out0"][0].ravel())
    assert (refused.code, refused.place) == ("memories-too-small", f"{name}: memory 'sram'")
    missing = re.match(r"(\d+) bytes are missing at the peak, operator (\d+) \(\w+", refused.reason)
    assert missing and int(missing[2]) < len(network_of(fitting).operators) * 4
    more = tuple(replace(each, size=each.size + int(missing[1]) * (each.name == "sram")) for each in given)
    compile_model(CompileRequest(name, source, CPUS[cpu], memories=more, options={"memory": "smallest"}))


def network_of(library: Library) -> Network:
    network = library.modules[0].network
    assert network is not None
    return network


def waiting(library: Library, given: tuple[ArenaMemory, ...], folder: Path, flash: int = 0) -> tuple[int, int]:
    """Return all cycles, and those of waiting, on a part in which the memories of data wait, and ``flash``."""
    (module,) = library.modules
    image = image_of(library, BOARD, folder)
    found = {section.name: section for section in read_image(image).sections}
    places = [
        (found[each.section].address, found[each.section].address + found[each.section].size - 1, each.name)
        for each in given
        if each.section in found and found[each.section].size
    ]
    # The second one is that of the board's RAM, in which the linker script puts the section of the middle memory.
    waits = {"flash": flash, "sram": WAITS["sram"], "itcm": 0, **WAITS}
    parts = {name: TimedMemory(256 << 20, width=4, waits=wait, write_waits=wait) for name, wait in waits.items()}
    part = Mcu("part", "Part", BOARD.cpu, 100_000_000, parts, {})
    inputs = [np.zeros((1, tensor.size), np.int8) for tensor in module.inputs]
    calls = [call.cycles for call in profile_module(module, image, BOARD, inputs, 600, part, places).calls]
    cycles = [each for each in calls if each is not None]
    return sum(sum(vars(each).values()) for each in cycles), sum(each.waiting for each in cycles)


def estimated(source: Path, given: tuple[ArenaMemory, ...]) -> int:
    """Return the cycles that the plan of a request without options expects to wait."""
    graph, _ = read_network(CompileRequest("net", source, CPUS[BOARD.cpu]))
    whole = run_passes(graph)
    network, _ = plan_network(remove_dead_channels(whole), whole, CodegenSettings(CPUS[BOARD.cpu]), given)
    return network.plan.waits // 1000


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["kws", "ic"])
def test_plan_is_not_worse_than_a_single_memory_and_its_estimate_is_near(
    shared: Path, tmp_path: Path, name: str
) -> None:
    source = shared / f"models/{name}_int8.tflite"
    cuts = {
        "dtcm": memories(dtcm=512 << 10),
        "sram": memories(sram=1 << 20),
        "ddr": memories(dtcm=0, ddr=1 << 20),
        "small": memories(dtcm=8 << 10, sram=16 << 10, ddr=1 << 20),
        "large": memories(dtcm=4 << 10, sram=1 << 20, ddr=1 << 20),
    }
    cycles, waits = {}, {}
    for cut, given in cuts.items():
        library = compile_model(CompileRequest(name, source, CPUS[BOARD.cpu], memories=given))
        cycles[cut], waits[cut] = waiting(library, given, tmp_path / cut)
        if len(given) > 1:
            # The stack, inputs and outputs wait in the board's RAM, wherever the arenas are.
            assert 0.4 < estimated(source, given) / (waits[cut] - waits["dtcm"]) < 1.7, cut
    assert cycles["small"] < cycles["ddr"]
    assert cycles["large"] <= cycles["sram"] < cycles["ddr"]


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["kws", "vww", "ic"])
def test_estimated_gain_of_copied_weights_is_near(shared: Path, tmp_path: Path, name: str) -> None:
    source, given = shared / f"models/{name}_int8.tflite", memories(dtcm=512 << 10)
    waits = []
    for weights in (None, FastWeights("dtcm", 64 << 10, 0, 5000)):
        wanted = CompileRequest(name, source, CPUS[BOARD.cpu], memories=given, weights=weights)
        library = compile_model(wanted)
        waits.append(waiting(library, given, tmp_path / str(len(waits)), flash=5)[1])
    (note,) = (note for note in library.modules[0].notes if note.startswith("weights: "))
    size, gain = (int(re.findall(r"[\d,]+", note)[at].replace(",", "")) for at in (0, 2))
    # The first run copies them.
    assert 0.5 < gain / (waits[0] - waits[1] + size // 4 * 5) < 1.5
