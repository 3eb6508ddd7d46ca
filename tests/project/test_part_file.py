"""``mcu`` may be a file of the project that describes the microcontroller, with the keys of mlfbuild's own tables."""

from pathlib import Path

import pytest

from mlfbuild.core import Diagnostic, ProjectFileError, parsed_toml
from mlfbuild.project import TargetSpec, load_project, mcu_of
from mlfbuild.targets import MCUS
from mlfbuild.targets.data_files import DATA

PART = """\
[our-part]  # as in mlfbuild's own tables
title = "Our part"
cpu = "cortex-m4"
clock = "100 MHz"
error = "20 %"

[our-part.memories]
flash = {size = "512 KiB", width = 16, waits = 3, fetch-cache = "icache"}
sram.size = "128 KiB"

[our-part.caches]
icache = {size = "2 KiB", line = 16, ways = 2}

[our-part.memory]
ram = {origin = 0x20000000, size = "128 KiB"}
flash = {origin = 0x08000000, size = "512 KiB"}
source = "our data sheet"
"""


def target(folder: Path, part: str, keys: str = "mcu: part.toml") -> TargetSpec:
    (folder / "part.toml").write_text(part)
    file = folder / "mlfbuild.yml"
    file.write_text(f"mlfbuild: 1\ntargets:\n  t: {{{keys}}}\nmodels: {{a: {{source: a.tflite}}}}\n")
    return load_project(file).targets["t"]


def problems(folder: Path, part: str, keys: str = "mcu: part.toml") -> list[Diagnostic]:
    with pytest.raises(ProjectFileError) as caught:
        target(folder, part, keys)
    return list(caught.value.problems)


def test_part_gives_core_memories_and_cycle_model(tmp_path: Path) -> None:
    found = target(tmp_path, PART, 'mcu: part.toml, clock: 80 MHz, runner: {gdb: "localhost:3333"}')
    mcu = mcu_of(found)
    assert mcu is not None and found.runner is not None and found.runner.memory is not None
    assert (found.cpu, mcu.name, mcu.clock, mcu.error) == ("cortex-m4", "part", 80_000_000, 20)
    assert (mcu.memories["flash"].waits, mcu.caches["icache"].ways) == (3, 2)
    assert found.runner.memory.ram.size == 128 << 10


def test_keys_of_the_target_go_before_those_of_the_file(tmp_path: Path) -> None:
    keys = "mcu: part.toml, cpu: cortex-m4+nofp, timing: {memories: {flash: {waits: 7}}}"
    found = target(tmp_path, PART, keys)
    mcu = mcu_of(found)
    assert mcu is not None
    assert (found.cpu, mcu.memories["flash"].waits, mcu.memories["flash"].width) == ("cortex-m4+nofp", 7, 16)


def test_part_may_change_one_of_the_table(tmp_path: Path) -> None:
    mcu = mcu_of(target(tmp_path, 'title = "Slower"\nbased-on = "stm32l4r5"\nclock = "80 MHz"\n'))
    assert mcu is not None
    assert (mcu.clock, mcu.cpu) == (80_000_000, "cortex-m4")
    assert mcu.memories["sram"] == MCUS["stm32l4r5"].memories["sram"]


def test_part_without_memories_has_no_cycle_model(tmp_path: Path) -> None:
    found = target(tmp_path, 'title = "Small"\ncpu = "cortex-m23"\n')
    assert (found.cpu, mcu_of(found)) == ("cortex-m23", None)


def test_entry_of_the_tables_can_be_copied(tmp_path: Path) -> None:
    table = (DATA / "mcus_others.toml").read_text(encoding="utf-8")
    entry = table[table.index("[nrf52840]") : table.index("[nrf5340]")]
    assert list(parsed_toml(entry)) == ["nrf52840"]
    mcu = mcu_of(target(tmp_path, entry))
    assert mcu is not None
    assert (mcu.memories, mcu.caches, mcu.memory) == (
        MCUS["nrf52840"].memories, MCUS["nrf52840"].caches, MCUS["nrf52840"].memory,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "code"),
    [
        ("title =", "titel =", 2, "unknown-key"),
        ('"cortex-m4"', '"cortex-m44"', 3, "unknown-cpu"),
        ('"100 MHz"', '"100"', 4, "invalid-quantity"),
        ("waits = 3", 'waits = "three"', 8, "invalid-quantity"),
        ('"128 KiB"\n\n', '"128 KiBy"\n\n', 9, "invalid-quantity"),
        ("ways = 2", "ways = 3", 12, "cache-of-no-size"),
        ('"icache"', '"dcache"', 8, "unknown-cache"),
        ("0x20000000", "-1", 15, "address-out-of-range"),
        ('source = "our data sheet"', "", 14, "missing-key"),
    ],
)
def test_mistakes_have_the_line_in_the_file(tmp_path: Path, old: str, new: str, line: int, code: str) -> None:
    assert old in PART
    (problem,) = problems(tmp_path, PART.replace(old, new))
    assert problem.code == code
    assert problem.place.endswith("mlfbuild.yml:3:12: targets.t.mcu")
    assert problem.reason.startswith(f"part.toml:{line}: ")


@pytest.mark.parametrize(
    ("text", "keys", "code"),
    [
        (PART, "mcu: parts/other.toml", "part-file-missing"),
        ("title = ", "mcu: part.toml", "part-file-invalid"),
        ("[a]\n[a]\n", "mcu: part.toml", "part-file-invalid"),
        (PART, "mcu: folder.toml", "part-file-invalid"),
        (PART, "mcu: part.toml, cpu: cortex-m7", "mcu-of-another-cpu"),
        (PART.replace("cortex-m4", "cortex-m23"), "mcu: part.toml", "core-without-timing"),
    ],
)
def test_files_that_do_not_describe_the_target_are_refused(tmp_path: Path, text: str, keys: str, code: str) -> None:
    (tmp_path / "folder.toml").mkdir()
    (problem,) = problems(tmp_path, text, keys)
    assert (problem.code, problem.place.rpartition(": ")[2]) == (code, "targets.t.mcu")
