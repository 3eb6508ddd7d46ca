"""A network over three memories of an emulated board: numbers, addresses, and cycles of waiting."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core import sha256
from mlfbuild.jobs.tree import unpack
from mlfbuild.jobs.tree.placement import PlacedSection, placement_files
from mlfbuild.library import CompileRequest, Library
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
from support.native import request
from support.sketch import face_detector, values_of

BOARD = BOARDS["mps3-an547"]
REGIONS = {"dtcm": "DTCM", "sram": "RAM", "ddr": "DDR"}
SECTIONS = {"dtcm": ".bss.dtcm", "sram": ".bss.noinit.tvm", "ddr": ".mlf_ddr"}
WAITS = {"dtcm": 0, "sram": 1, "ddr": 8}


@pytest.fixture(autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "arm-none-eabi-nm", "cmake", "ninja", "qemu-system-arm", "gcc")


def memories(**sizes: int) -> tuple[ArenaMemory, ...]:
    return tuple(
        ArenaMemory(name, size, SECTIONS[name], 1000 * WAITS[name], 1000 * WAITS[name]) for name, size in sizes.items()
    )


def placement(folder: Path) -> Path:
    for name, content in placement_files([PlacedSection(".mlf_ddr", "DDR", memory=True)], on_board=True).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / "placement/placement.cmake"


def region(board: Board, name: str) -> range:
    (found,) = (each for each in (board.ram, *board.others) if each.name == name)
    return range(found.origin, found.origin + found.size)


def test_three_arenas_are_in_their_memories_and_outputs_are_exact(tmp_path: Path) -> None:
    graph = face_detector()
    wanted = replace(request("net", cpu=BOARD.cpu), memories=memories(dtcm=1 << 10, sram=3 << 10, ddr=1 << 20))
    library = compile_graph(graph, wanted, sha256(b"net"))
    (module,) = library.modules
    assert module.network is not None and len(module.network.arenas) == 3
    unpack(library, tmp_path / "net", archive_id=64 * "0")
    inputs = values_of(graph)
    expected = evaluate(graph, dict(zip(graph.inputs, inputs, strict=True)))
    arrays = {f"out{at}": expected[name] for at, name in enumerate(graph.outputs)}
    np.savez(tmp_path / "vectors.npz", **{f"in{at}": value for at, value in enumerate(inputs)}, **arrays)
    report = verify_module(
        tmp_path / "net", module, BOARD, tmp_path / "vectors.npz", tmp_path / "work",
        toolchain=toolchain_file(CPUS[BOARD.cpu]), placement=placement(tmp_path),
    )  # fmt: skip
    assert report.passed, report.text()
    image = tmp_path / "work/build/verify.elf"
    listed = subprocess.run(["arm-none-eabi-nm", image], capture_output=True, text=True, check=True).stdout.splitlines()
    addresses = {name: int(address, 16) for address, _, name in (line.split() for line in listed if line[0] != " ")}
    for memory in module.network.arenas:
        at = addresses[f"tvmgen_net_{memory.name}_workspace"]
        inside = region(BOARD, REGIONS[memory.name])
        assert at in inside and at + memory.size - 1 in inside


def waiting(library: Library, given: tuple[ArenaMemory, ...], folder: Path, flash: int = 0) -> tuple[int, int]:
    """Return all cycles, and those of waiting, on a part in which the memories of data wait, and ``flash``."""
    (module,) = library.modules
    unpack(library, folder / "net", archive_id=64 * "0")
    image = build_harness(
        folder / "net", module, BOARD, toolchain_file(CPUS[BOARD.cpu]), folder / "work", twice=False,
        placement=placement(folder),
    )  # fmt: skip
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
