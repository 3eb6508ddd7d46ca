"""`mlfbuild calibrate`: refusals and the output; tests of ``verify`` have the solution."""

from collections.abc import Callable

import pytest

from mlfbuild.targets import MCUS
from mlfbuild.usecases import CalibratedTarget
from mlfbuild.verify import Calibration
from support.command import Folder
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets:
  desk: {mcu: stm32g0b1, runner: {qemu: mps2-an385}}
  ram: {mcu: stm32g0b1, runner: {gdb: "localhost:1", server: qemu, memory: {ram: {origin: 0x20000000, size: 64 KiB}}}}
  bare: {cpu: cortex-m3, runner: {qemu: mps2-an385}}
  none: {mcu: stm32g0b1}
models: {alpha: {source: alpha.tflite}}
"""


def test_targets_that_cannot_be_calibrated_are_refused(folder: Folder) -> None:
    folder.write("alpha.tflite", tiny_network(1))
    folder.write("mlfbuild.yml", PROJECT)
    assert folder.refused("calibrate") == (2, "several-targets", "--target")
    for name in ("bare", "none"):
        refusal = (2, "target-not-calibrated", f"mlfbuild.yml: targets.{name}")
        assert folder.refused("calibrate", "--target", name) == refusal


def test_the_output_is_a_part_of_the_project_file(folder: Folder) -> None:
    found = Calibration(MCUS["stm32g0b1"], 1.25, ("wait states of sram",))
    text = CalibratedTarget("desk", "stm32g0b1", "gdb localhost:3333", "systick", found).snippet()
    folder.write("alpha.tflite", tiny_network(1))
    models = "models: {alpha: {source: alpha.tflite}}\n"
    folder.write(
        "mlfbuild.yml", "mlfbuild: 1\n" + text.replace("    timing:", "    mcu: stm32g0b1\n    timing:") + "\n" + models
    )
    assert folder.run("check").status == 0
    assert "Measured on gdb localhost:3333 (SysTick)" in text
    assert "within 1.2 %" in text
    assert "Not identifiable, as in the table: wait states of sram." in text


@pytest.mark.sweep
def test_an_emulator_is_not_calibrated(folder: Folder, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm", "gdb-multiarch")
    folder.write("alpha.tflite", tiny_network(1))
    folder.write("mlfbuild.yml", PROJECT)
    assert folder.refused("calibrate", "--target", "desk") == (7, "calibration-on-emulator", "qemu mps2-an385")
