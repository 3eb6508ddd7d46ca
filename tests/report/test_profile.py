"""Counts of instructions are exact, in the order of the calls, and equal those of another counter."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import open_archive
from mlfbuild.core.errors import InputFileError
from mlfbuild.executor.planned_network import module_network
from mlfbuild.library import CompileRequest, Module
from mlfbuild.library.keys import Placement
from mlfbuild.native import NATIVE
from mlfbuild.report.operators.operator_runs import operator_runs
from mlfbuild.report.operators.profile import Profile, profile_module
from mlfbuild.targets import BOARDS, CPUS, MCUS, Board, ideal_mcu
from mlfbuild.verify.emulator.board_image import board_image
from mlfbuild.verify.vectors import load_inputs

BOARD = BOARDS["mps2-an386"]
COUNTS = Path(__file__).parents[2] / "benchmarks/results/counts.json"


@pytest.fixture(autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm", "cmake", "ninja", "gcc")


def kws(shared: Path, executor: str, **options: bool) -> Module:
    return network(shared, "kws", "cortex-m4", executor, **options)


def network(shared: Path, name: str, cpu: str, executor: str = "aot", **options: bool) -> Module:
    request = CompileRequest(name, shared / f"models/{name}_int8.tflite", CPUS[cpu], executor, options)
    return NATIVE.compile(request).modules[0]


def counted(module: Module, vectors: Path, board: Board = BOARD) -> Profile:
    image = board_image(module, board, f"{module.name}.tar")
    return profile_module(module, image, board, load_inputs(vectors, module)[1], 120)


def committed(network: str, cpu: str) -> int | None:
    """Return the committed counts of the benchmark; ``None`` if they are of another compiler."""
    known = json.loads(COUNTS.read_text())
    version = subprocess.run(["arm-none-eabi-gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    found = {(each["network"], each["cpu"], each["memory"]): each["instructions"] for each in known["results"]}
    return found[network, cpu, "balanced"] if known["compiler"] == version else None


@pytest.mark.sweep
def test_cycles_on_a_part_are_those_of_its_core_and_waits_for_its_memories(shared: Path) -> None:
    module = kws(shared, "aot")
    image = board_image(module, BOARD, "kws.tar")
    inputs = load_inputs(shared / "golden/kws_int8.npz", module)[1]
    parts = (ideal_mcu("cortex-m4"), MCUS["stm32l4r5"], MCUS["stm32l4r5"])
    ideal, real, again = (profile_module(module, image, BOARD, inputs, 120, part) for part in parts)
    assert real == again
    assert ideal.instructions == real.instructions == counted(module, shared / "golden/kws_int8.npz").instructions
    assert ideal.cycles is not None
    assert real.cycles is not None
    # Loads from flash and RAM in turn do not overlap; the ideal part has one memory.
    assert ideal.cycles == replace(real.cycles, waiting=0, memory=ideal.cycles.memory)
    assert real.cycles.waiting > 0
    assert real.cycles.memory > ideal.cycles.memory
    calls = [call.cycles for call in real.calls if call.cycles is not None]
    assert real.rest_cycles is not None
    assert real.cycles.total == real.rest_cycles.total + sum(call.total for call in calls)


def test_code_in_ram_saves_at_least_the_waits_for_instructions(shared: Path) -> None:
    board, source = BOARDS["mps2-an385"], shared / "models/ad_int8.tflite"
    found = []
    for placement in (Placement(), Placement(code=".ramfunc")):
        (module,) = NATIVE.compile(CompileRequest("ad", source, CPUS["cortex-m0plus"], placement=placement)).modules
        inputs = load_inputs(shared / "golden/ad_int8.npz", module)[1]
        image = board_image(module, board, "ad.tar")
        found.append(profile_module(module, image, board, inputs, 120, MCUS["stm32g0b1"]))
    flash, ram = found
    assert flash.cycles is not None
    assert ram.cycles is not None
    assert flash.cycles.total - ram.cycles.total >= flash.code_waits - ram.code_waits > 0.03 * flash.cycles.total
    assert 500 < flash.code < 2000
    # RAM on the system bus of a Cortex-M4 is slower than cached flash.
    module = network(shared, "ad", "cortex-m4")
    image = board_image(module, BOARD, "ad.tar")
    assert profile_module(module, image, BOARD, inputs, 120, MCUS["stm32l4r5"]).code_waits == 0


def test_counts_agree_with_another_counter_and_repeat(shared: Path) -> None:
    module = kws(shared, "aot")
    found = counted(module, shared / "golden/kws_int8.npz")
    assert counted(module, shared / "golden/kws_int8.npz") == found
    words = [re.sub(r"_\d.*", "", call.function.removeprefix("tvmgen_kws_")) for call in found.calls]
    blocks = ["depthwise_conv2d", "conv2d"] * 4
    assert words == ["conv2d", *blocks, "average_pool", "fully_connected", "softmax"]
    assert 0 < found.stack < 4096
    assert found.rest < 200 < min(call.instructions for call in found.calls)
    if (known := committed("kws", "cortex-m4")) is not None:
        assert found.instructions == 3_262_085
        assert abs(found.instructions - known) < 50, "the other counter also counts the call of the run function"


def test_each_call_is_an_operator_of_the_network(shared: Path) -> None:
    for executor in ("aot", "graph"):
        module = kws(shared, executor)
        check_operators(module, counted(module, shared / "golden/kws_int8.npz"), "cortex-m4")


def check_operators(module: Module, found: Profile, cpu: str) -> None:
    """Fail if an operator has no name, or fewer instructions than its multiply-accumulates require."""
    network = module_network(module)
    assert network is not None
    runs = operator_runs(found, network, CPUS[cpu])
    assert [run.number for run in runs] == [at for at, each in enumerate(network.operators) if each.function]
    assert all(run.bound is not None and run.instructions > run.bound >= (run.macs or 0) / 16 for run in runs)
    assert sum(run.macs or 0 for run in runs) == network.macs
    assert sum(run.instructions for run in runs) + found.rest == found.instructions


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["kws", "ic", "ad", "vww"])
@pytest.mark.parametrize(("cpu", "board"), [("cortex-m4", "mps2-an386"), ("cortex-m55", "mps3-an547")])
def test_counts_of_the_networks_of_mlperf_tiny_repeat(shared: Path, name: str, cpu: str, board: str) -> None:
    module, vectors = network(shared, name, cpu), shared / f"golden/{name}_int8.npz"
    found = counted(module, vectors, BOARDS[board])
    assert counted(module, vectors, BOARDS[board]) == found
    check_operators(module, found, cpu)
    known = committed(name, cpu)
    assert known is None or abs(found.instructions - known) < 50


def test_a_graph_calls_the_same_functions(shared: Path) -> None:
    calls = counted(kws(shared, "aot"), shared / "golden/kws_int8.npz")
    graph = counted(kws(shared, "graph"), shared / "golden/kws_int8.npz")
    assert len(graph.calls) == len(calls.calls)
    for one, other in zip(graph.calls, calls.calls, strict=True):
        assert one.instructions == pytest.approx(other.instructions, rel=0.05)
    assert calls.rest < graph.rest < 5000


@pytest.mark.parametrize(("executor", "most"), [("aot", 26), ("graph", 130)])
def test_an_unused_hook_costs_little(shared: Path, executor: str, most: int) -> None:
    """Each of the thirteen operators costs at most two instructions, or ten in the loop over a graph."""
    plain, hooked = (
        counted(kws(shared, executor, hook=hook), shared / "golden/kws_int8.npz") for hook in (False, True)
    )
    assert 0 < hooked.rest - plain.rest <= most
    assert [call.instructions for call in hooked.calls] == [call.instructions for call in plain.calls]


def test_an_archive_of_tvm(shared: Path) -> None:
    archive = shared / "archives/conv-graph"
    (module,) = open_archive(archive.with_suffix(".tar")).modules
    found = counted(module, archive.with_suffix(".npz"))
    assert {call.function for call in found.calls} == {function.name for function in module.operator_functions}
    assert sum(call.instructions for call in found.calls) > 100 * found.rest


def test_inputs_that_do_not_fit_are_refused(shared: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "wrong.npz", in0=np.zeros((1, 3), np.int8))
    with pytest.raises(InputFileError, match=r"wrong\.npz"):
        counted(kws(shared, "aot"), tmp_path / "wrong.npz")
