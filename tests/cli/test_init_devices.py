"""`mlfbuild init` makes projects for microcontrollers, cores and several targets."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.project import load_project
from mlfbuild.targets import part_called
from support import warm
from support.command import Folder
from support.examples import first_on_push

PART = "stm32l4r5zit6"


@pytest.fixture
def empty(folder: Folder) -> Folder:
    for path in sorted(folder.root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    return folder


def targets(folder: Path) -> dict[str, tuple[str, str | None]]:
    """Return core and board of each target."""
    return {name: (each.cpu, each.board) for name, each in load_project(folder / "mlfbuild.yml").targets.items()}


def shell(folder: Path, command: str) -> str:
    path = f"{warm.programs()}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("template", "image"), first_on_push([("cmake", "app.elf"), ("scons", "app/app.elf")]))
def test_a_project_for_a_microcontroller_builds_and_runs_on_qemu(
    empty: Folder, tool: Callable[..., str], template: str, image: str
) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    commands = empty.run("init", "fw", "--mcu", PART, "--template", template, "--format", "json").json["commands"]
    root = empty.root / "fw"
    assert targets(root) == {PART: ("cortex-m4", None), "qemu": ("cortex-m4", "mps2-an386")}
    assert list(commands) == ["build", "run", "verify"]
    shell(root, commands["build"])
    part = part_called(PART)
    assert part is not None and part.memory.flash is not None
    flash, ram = part.memory.flash, part.memory.ram
    with (root / f"build/{PART}" / image).open("rb") as file:
        elf = ELFFile(file)
        segments = [each.header for each in elf.iter_segments("PT_LOAD") if each.header.p_memsz]
        assert elf.get_section_by_name(".vectors").header.sh_addr == flash.origin
    for each in segments:
        region = flash if each.p_vaddr < ram.origin else ram
        assert region.origin <= each.p_vaddr <= each.p_vaddr + each.p_memsz <= region.origin + region.size
    assert "\ntones probabilities: 127 -128 -128 -128\nPASS\n" in shell(root, commands["run"])
    assert empty.run("-C", "fw", "check", "-q").status == 0


def test_a_project_for_a_board_with_a_debugger_is_flashed_by_it(empty: Folder) -> None:
    commands = empty.run("init", "--board", "nucleo-f446re", "--format", "json").json["commands"]
    assert commands["flash"] == "mlfbuild flash --target nucleo-f446re"
    project = load_project(empty.root / "mlfbuild.yml")
    runner = project.targets["nucleo-f446re"].runner
    assert runner is not None and runner.start[0] == "openocd"
    assert (project.targets["nucleo-f446re"].mcu, project.targets["qemu"].board) == ("stm32f446ret6", "mps2-an386")


def test_presets_of_several_cores_have_their_own_toolchains(empty: Folder) -> None:
    assert empty.run("init", "--cpu", "cortex-m4", "--cpu", "cortex-m33", "--template", "cmake", "-q").status == 0
    presets = json.loads((empty.root / "CMakePresets.json").read_text())
    found = {
        each["name"]: (each["toolchainFile"].rpartition("/")[2], each["cacheVariables"]["TARGET"])
        for each in presets["configurePresets"]
    }
    assert found == {"m4": ("cortex-m4.cmake", "m4"), "m33": ("cortex-m33.cmake", "m33")}
    assert {path.name for path in (empty.root / "cmake").iterdir()} == {
        "cortex-m4.cmake", "cortex-m33.cmake", "mlfbuild.cmake",
    }  # fmt: skip
    assert targets(empty.root) == {"m4": ("cortex-m4", "mps2-an386"), "m33": ("cortex-m33", "mps2-an505")}


@pytest.mark.parametrize("mcu", ["rp2040", "nrf52840", "STM32F407VGT6", "stm32g0b1"])
def test_a_linker_script_has_the_memories_of_the_table(empty: Folder, mcu: str) -> None:
    assert empty.run("init", "--mcu", mcu, "-q").status == 0
    text = (empty.root / f"board/{mcu}.ld").read_text()
    regions = re.findall(r"^    (\w+) \(\w+\) : ORIGIN = (0x[0-9a-f]+), LENGTH = (\d+)$", text, re.MULTILINE)
    assert [name for name, _, _ in regions] == (["RAM"] if mcu == "rp2040" else ["FLASH", "RAM"])
    assert next(iter(targets(empty.root))) == mcu
    stack = int(re.search(r"^MLF_STACK_SIZE = (\d+);$", text, re.MULTILINE)[1])  # type: ignore[index]  # it is there
    assert stack <= int(regions[-1][2]) // 4


def test_several_devices_are_several_targets(empty: Folder) -> None:
    words = ["--cpu", "cortex-m4", "--cpu", "cortex-m0", "--board", "mps3-an547", "--board", "mps2-an386"]
    assert empty.run("init", *words, "-q").status == 0
    assert targets(empty.root) == {
        "m55": ("cortex-m55", "mps3-an547"),
        "m4": ("cortex-m4", "mps2-an386"),
        "m0": ("cortex-m0", "mps2-an385"),
    }


@pytest.mark.parametrize("template", ["scons", "cmake", "bare-metal"])
def test_a_core_selects_its_board(empty: Folder, template: str) -> None:
    assert empty.run("init", "--cpu", "cortex-m0plus", "--template", template, "-q").status == 0
    found = targets(empty.root)
    assert {cpu for cpu, _ in found.values()} == {"cortex-m0plus"}
    assert "mps2-an385" in {board for _, board in found.values()}


def test_scons_only_writes_the_tool(empty: Folder) -> None:
    first = empty.run("init", "--scons-only", "--format", "json").json
    assert first["written"] == ["site_scons/site_tools/mlf.py"]
    assert empty.files() == {"site_scons/site_tools/mlf.py"}
    assert empty.run("init", "--scons-only", "--format", "json").json["written"] == []
    empty.write("site_scons/site_tools/mlf.py", "mine")
    assert empty.run("init", "--scons-only").status == 6
    assert (empty.root / "site_scons/site_tools/mlf.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--mcu stm32", "unknown-device"),
        ("--mcu stm32f407", "unknown-mcu"),
        ("--mcu cortex-m4", "device-of-another-option"),
        ("--board stm32l4r5zit6", "device-of-another-option"),
        ("--board cortex-m4", "device-of-another-option"),
        ("--board nucleo-f446rx", "unknown-board"),
        ("--board qemu", "unknown-board"),
        ("--cpu stm32f407vg", "device-of-another-option"),
        ("--cpu cortex-m44", "unknown-cpu"),
        ("--cpu host", "cpu-without-board"),
        ("--mcu rp2040 --template bare-metal", "template-of-one-board"),
        ("--cpu cortex-m4 --cpu cortex-m7 --template project-api", "template-of-one-board"),
        ("--scons-only --cpu cortex-m4", "options-exclude-each-other"),
        ("--scons-only --cmake-only", "options-exclude-each-other"),
    ],
)
def test_mistakes_write_nothing(empty: Folder, words: str, code: str) -> None:
    ended = empty.run("init", *words.split(), "--format", "json")
    assert (ended.status, ended.error["code"]) == (2, code)
    assert not empty.files()


@pytest.mark.parametrize(("words", "near"), [("--board qemu", "--cpu"), ("--cpu m4", '"cortex-m4"')])
def test_a_short_name_leads_to_the_whole_one(empty: Folder, words: str, near: str) -> None:
    ended = empty.run("init", *words.split())
    assert ended.status == 2 and near in ended.err


def test_a_model_must_fit_the_memories_of_the_part(empty: Folder, shared: Path) -> None:
    """The network has more weights than the smallest parts have flash."""
    model = shared / "models/vww_int8.tflite"
    ended = empty.run("init", "--mcu", "stm32l011f4", "--model", str(model), "--format", "json")
    assert (ended.status, ended.error["code"]) == (4, "board-too-small")
