"""Wait states of memories from the cycles of kernels."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.core import ProcessFailedError
from mlfbuild.targets import CPUS, MCUS, Mcu, emulated_board, toolchain_file
from mlfbuild.verify import modelled_kernels, solve
from support.errors import raises


def with_memories(mcu: Mcu, flash: Mapping[str, Any], ram: Mapping[str, Any]) -> Mcu:
    first, second, *_ = mcu.memories
    changed = {first: replace(mcu.memories[first], **flash), second: replace(mcu.memories[second], **ram)}
    return replace(mcu, memories={**mcu.memories, **changed})


def simple_model(mcu: Mcu) -> tuple[int, ...]:
    """Return cycles of five kernels: a loop, loads from RAM and flash, straight code, jumps."""
    flash, ram, *_ = mcu.memories.values()
    reads = 128 if flash.read_cache else 512
    hidden = 4 if flash.prefetch else 0
    fetches = 0 if flash.fetch_cache else 250
    return (
        500 + fetches * flash.waits // 10,
        2000 + 1000 * ram.waits,
        2000 + reads * flash.waits,
        1024 + 256 * max(flash.waits - hidden, 0),
        300 + 100 * flash.waits,
    )


@pytest.mark.parametrize(
    ("flash", "ram"),
    [
        ({"waits": 5}, {}),
        ({"waits": 7, "prefetch": True}, {"waits": 2}),
        ({"waits": 3, "fetch_cache": "", "read_cache": ""}, {"waits": 1}),
        ({"waits": 31}, {}),
    ],
)
def test_the_memories_that_a_measurement_was_made_of_are_found(
    flash: Mapping[str, Any], ram: Mapping[str, Any]
) -> None:
    base = MCUS["stm32l4r5"]
    true = with_memories(base, flash, ram)
    found = solve(simple_model(true), simple_model, base)
    assert found.mcu.memories == true.memories
    assert found.residual == 0
    assert not found.unknown
    keys = {"waits": flash["waits"], "prefetch": flash.get("prefetch", True)}
    off = {"fetch-cache": "", "read-cache": ""} if "fetch_cache" in flash else {}
    assert found.changed() == {"flash": {**keys, **off}, "sram": {"waits": ram.get("waits", 0)}}


def test_what_makes_no_difference_is_not_calibrated_and_noise_is_the_residual() -> None:
    base = MCUS["stm32l4r5"]
    idle = solve(simple_model(with_memories(base, {"waits": 0}, {})), simple_model, base)
    assert idle.unknown == ("prefetch", "caches")
    assert idle.changed() == {"flash": {"waits": 0}, "sram": {"waits": 0}}
    measured = simple_model(with_memories(base, {"waits": 4}, {}))
    noisy = solve(tuple(each * 102 // 100 for each in measured), simple_model, base)
    assert noisy.changed()["flash"]["waits"] == 4
    assert 1 < noisy.residual < 3


def test_a_measurement_that_no_wait_states_explain_is_refused() -> None:
    base = MCUS["stm32l4r5"]
    with raises(ProcessFailedError, "calibration-inconsistent", base.name):
        solve((500, 200, 90_000, 1024, 300), simple_model, base)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("part", "flash", "ram"),
    [
        ("stm32l4r5", {"waits": 4}, {}),
        ("stm32l4r5", {"waits": 3, "prefetch": True}, {"waits": 1}),
        ("stm32l4r5", {"waits": 5, "fetch_cache": "", "read_cache": ""}, {}),
        ("stm32g0b1", {"waits": 2, "prefetch": False}, {}),
        ("stm32u575", {"waits": 4}, {}),
        ("stm32f746", {"waits": 7}, {}),
    ],
)
def test_the_cycle_model_of_a_part_is_recovered_from_its_own_kernels(
    part: str, flash: Mapping[str, Any], ram: Mapping[str, Any], tmp_path: Path, tool: Callable[..., str]
) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm", "gcc")
    base = MCUS[part]
    cpu = CPUS[base.cpu]
    board = emulated_board(cpu)
    assert board is not None
    modelled = modelled_kernels(board, toolchain_file(cpu), tmp_path)
    true = with_memories(base, flash, ram)
    found = solve(modelled(true), modelled, base)
    assert found.residual == 0
    assert found.changed()["flash"]["waits"] == flash["waits"]
    if "prefetch" not in found.unknown:
        assert found.mcu.memories == true.memories
