"""`mlfbuild profile` on devices: boards that QEMU emulates, driven through its GDB stub."""

from collections.abc import Callable

import numpy as np
import pytest

from support.command import Folder
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets: {{desk: {{cpu: {cpu}, {more}runner: {{qemu: {board}{counter}}}}}}}
models: {{alpha: {{source: alpha.tflite, vectors: alpha.npz}}}}
"""


@pytest.fixture
def desk(folder: Folder, tool: Callable[..., str]) -> Folder:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm", "gcc", "gdb-multiarch")
    folder.write("alpha.tflite", tiny_network(1))
    np.savez(folder.root / "alpha.npz", in0=np.ones((2, 1, 8), np.int8), out0=np.zeros((2, 1, 4), np.int8))
    return folder


@pytest.mark.parametrize(
    ("cpu", "board", "more", "counter"),
    [
        ("cortex-m0plus", "mps2-an385", "mcu: stm32g0b1, ", ""),
        pytest.param("cortex-m3", "mps2-an385", "", "systick", marks=pytest.mark.sweep),
        pytest.param("cortex-m4", "mps2-an386", "board: mps2-an386, ", "systick", marks=pytest.mark.sweep),
        pytest.param("cortex-m7", "mps2-an500", "", "systick", marks=pytest.mark.sweep),
        pytest.param("cortex-m33", "mps2-an505", "", "systick", marks=pytest.mark.sweep),
        pytest.param("cortex-m55", "mps3-an547", "", "systick", marks=pytest.mark.sweep),
    ],
)
def test_systick_of_an_emulator_is_shown_as_its_time_and_never_as_measured(
    desk: Folder, cpu: str, board: str, more: str, counter: str
) -> None:
    key = f", counter: {counter}" if counter else ""
    desk.write("mlfbuild.yml", PROJECT.format(cpu=cpu, board=board, more=more, counter=key))
    ended = desk.run("profile", "--runs", "3", "--format", "json", status=0)
    (facts,) = ended.json["profiles"]
    found = facts["measured"]
    about = {key: found[key] for key in ("device", "counter", "emulated", "runs")}
    assert about == {"device": f"qemu {board}", "counter": "systick", "emulated": True, "runs": 3}
    (operator,) = facts["operators"]
    for figures in (found["cycles"], operator["measured"]):
        assert 0 <= figures["min"] <= figures["median"] <= figures["max"]
    assert found["cycles"]["min"] > 0
    assert ("modelled" in facts) == ("mcu" in more)
    if not more:
        return
    desk.write("mlfbuild.yml", PROJECT.format(cpu=cpu, board=board, more=more, counter=", counter: dwt"))
    if cpu == "cortex-m0plus":
        assert desk.refused("profile") == (2, "counter-not-in-core", "mlfbuild.yml: targets.desk.runner.counter")
    words = desk.run("profile", "--emulator").out
    assert "alpha for desk on" in words
    assert "SysTick" not in words


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("cpu", "board"),
    [
        ("cortex-m3", "mps2-an385"),
        ("cortex-m4", "mps2-an386"),
        ("cortex-m7", "mps2-an500"),
        ("cortex-m33", "mps2-an505"),
        ("cortex-m55", "mps3-an547"),
    ],
)
def test_counters_that_the_emulator_lacks_are_refused(desk: Folder, cpu: str, board: str) -> None:
    desk.write("mlfbuild.yml", PROJECT.format(cpu=cpu, board=board, more="", counter=""))
    assert desk.refused("profile") == (7, "counter-trace-disabled", f"qemu {board}")


def test_a_missing_file_with_the_setup_of_the_device_is_refused(folder: Folder) -> None:
    folder.write("alpha.tflite", tiny_network(1))
    setup = PROJECT.format(cpu="cortex-m3", board="mps2-an385", more="", counter=", setup: src/clock.c")
    folder.write("mlfbuild.yml", setup.replace(", vectors: alpha.npz", ""))
    assert folder.refused("profile") == (5, "setup-missing", "mlfbuild.yml: targets.desk.runner.setup")


@pytest.mark.sweep
def test_reports_show_the_last_measurement_until_the_model_or_the_setup_changes(desk: Folder) -> None:
    desk.write("src/clock.c", "void mlf_board_setup(void);\nvoid mlf_board_setup(void) { }\n")
    setup = PROJECT.format(
        cpu="cortex-m0plus", board="mps2-an385", more="board: mps2-an385, ", counter=", setup: src/clock.c"
    )
    desk.write("main.c", '#include "tvmgen_alpha.h"\nint main(void) { return tvmgen_alpha_run(0, 0) == 0; }\n')
    desk.write("mlfbuild.yml", setup + "firmware: {app: {sources: [main.c]}}\n")

    def reported() -> bool:
        (made,) = desk.run("report", "--profile", "--format", "json").json["images"]
        return "measured" in made["models"][0]["networks"][0]["profile"]

    assert not reported()
    assert desk.run("profile", "--runs", "1").status == 0
    assert reported()
    desk.write("src/clock.c", "void mlf_board_setup(void);\nvoid mlf_board_setup(void) { /* changed */ }\n")
    assert not reported()
