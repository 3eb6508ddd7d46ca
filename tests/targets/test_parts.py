"""The table of memory maps: every row is sound, agrees with the cycle models, and completes a target."""

from pathlib import Path

import pytest

from mlfbuild.project import load_project
from mlfbuild.targets import CPUS, MCUS, described_in, part_called, parts_beginning
from mlfbuild.targets.parts import all_parts

FAMILIES = (
    *("stm32f0", "stm32f1", "stm32f3", "stm32f4", "stm32f7", "stm32g0", "stm32g4", "stm32h5", "stm32h7", "stm32l0"),
    *("stm32l4", "stm32u5", "stm32wb", "nrf52", "nrf53", "nrf54l", "atsamd21", "atsamd51", "mimxrt1060", "efr32"),
    *("cy8c6", "r7fa4", "r7fa6", "r7fa8", "rp2040", "rp2350", "max32655", "max32666", "max78000", "max78002"),
)
"""The parts that people own, by the beginning of their names."""


@pytest.mark.parametrize("family", FAMILIES)
def test_family_has_memory_maps(family: str) -> None:
    parts = [part for part in all_parts().values() if part.name.startswith(family)]
    assert parts
    for part in parts:
        assert part.cpu in CPUS
        regions = [region for region in (part.memory.flash, part.memory.ram) if region]
        assert all(2048 <= region.size <= 16 << 20 and region.origin % 1024 == 0 for region in regions)


def test_parts_agree_with_the_cycle_models() -> None:
    compared = 0
    for name, mcu in MCUS.items():
        parts = [part for part in all_parts().values() if part.name.startswith(name.removesuffix("-single-bank"))]
        for part in parts if mcu.memory else ():
            assert CPUS[part.cpu].core == CPUS[mcu.cpu].core
            assert part.memory.ram.origin == mcu.memory.ram.origin
            assert (part.memory.flash is None) == (mcu.memory.flash is None)
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("name", ["stm32f407vg", "STM32F407VGT6", "stm32f407?g"])
def test_name_on_the_chip_finds_the_part(name: str) -> None:
    part = part_called(name)
    assert part is not None
    assert (part.cpu, part.memory.flash.size if part.memory.flash else 0) == ("cortex-m4", 1 << 20)


def test_beginning_of_a_name_lists_sizes_of_the_same_line() -> None:
    assert part_called("stm32f407") is None
    assert [part.name for part in parts_beginning("stm32f407")] == ["stm32f407?e", "stm32f407?g"]
    assert parts_beginning("stm32") == []


@pytest.mark.parametrize(
    ("name", "chip", "pyocd"),
    [
        ("stm32f407vgt6", "STM32F407VG", "stm32f407vgtx"), ("stm32f407vg", "STM32F407VG", ""),
        ("stm32l475vgt6", "STM32L475VG", "stm32l475xg"), ("nrf5340", "nRF5340_xxAA", ""),
        ("rp2350", "RP235x", "rp2350"), ("cy8c624abzi-s2d44", "CY8C624ABZI-S2D44", "cy8c6xxa"), ("max78000", "", ""),
    ],
)  # fmt: skip
def test_part_has_its_names_in_debuggers(name: str, chip: str, pyocd: str) -> None:
    part = part_called(name)
    assert part is not None
    assert (part.chip(name), part.pyocd_type(name)) == (chip, pyocd)


def target(tmp_path: Path, keys: str) -> object:
    (tmp_path / "mlfbuild.yml").write_text(
        f"mlfbuild: 1\ntargets:\n  t: {{{keys}}}\nmodels: {{a: {{source: a.tflite}}}}\n"
    )
    return load_project(tmp_path / "mlfbuild.yml").targets["t"]


def test_part_gives_a_target_core_and_memories(tmp_path: Path) -> None:
    found = target(tmp_path, 'mcu: nrf52833, runner: {gdb: "localhost:3333"}')
    assert found.cpu == "cortex-m4"
    assert (found.runner.memory.flash.size, found.runner.memory.ram.size) == (512 << 10, 128 << 10)


def test_part_of_a_modelled_family_has_its_model_and_its_own_memories(tmp_path: Path) -> None:
    found = target(tmp_path, 'mcu: stm32l4r5zg, clock: 80 MHz, runner: {gdb: "localhost:3333"}')
    assert found.mcu == "stm32l4r5"
    assert found.runner.memory.flash.size == 1 << 20


def test_own_memory_map_goes_before_that_of_the_table(tmp_path: Path) -> None:
    own = "memory: {ram: {origin: 0x20000000, size: 64 KiB}}"
    found = target(tmp_path, f'mcu: nrf52833, runner: {{gdb: "localhost:3333", {own}}}')
    assert (found.runner.memory.ram.size, found.runner.memory.flash) == (64 << 10, None)


@pytest.mark.parametrize(
    ("mcu", "file"),
    [
        ("stm32l4r5", None),
        ("/parts/chip.toml", "/parts/chip.toml"),
        ("/board#2/chip.toml", "/board#2/chip.toml"),
        ("/packs/vendor.pack#STM32F407VG", "/packs/vendor.pack"),
        ("/board#2/vendor.pack#STM32F407VG", "/board#2/vendor.pack"),
    ],
)
def test_file_that_describes_a_microcontroller(mcu: str, file: str | None) -> None:
    assert described_in(mcu) == (file and Path(file))
