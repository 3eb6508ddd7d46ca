"""The example for real boards: both images are linked for their boards, and run where QEMU has the same parts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.core import running
from support import warm

EXAMPLE = Path(__file__).parents[2] / "examples" / "boards"
ANSWERS = b"answers 0123456789\r\nall right\r\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    folder = tmp_path_factory.mktemp("boards") / "boards"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build"))
    done = warm.run("mlfbuild", "build", "-j", "1", cwd=folder, status=0)
    assert "warning" not in done.stderr
    return folder / "build"


def printed(machine: str, serial: list[str], image: Path) -> bytes:
    """Return what ``image`` prints on ``machine`` until all answers are there; it does not end by itself."""
    options = ["-display", "none", "-monitor", "none", *serial, "-serial", "stdio"]
    output = b""
    with running(["qemu-system-arm", "-M", machine, *options, "-kernel", str(image)]) as process:
        assert process.stdout is not None
        while line := process.stdout.readline():
            output += line
            if line.startswith((b"all", b"wrong")):
                break
        process.kill()
    return output


def regions(image: Path) -> set[int]:
    """Return the addresses that the image is loaded to and has memory at, to 256 MiB, and its entry."""
    with image.open("rb") as file:
        elf = ELFFile(file)
        segments = [each for each in elf.iter_segments("PT_LOAD") if each["p_memsz"]]
        return {each[key] >> 28 for each in segments for key in ("p_paddr", "p_vaddr")} | {elf["e_entry"] >> 28}


def test_the_image_of_the_nucleo_board_runs_on_a_related_part(built: Path) -> None:
    image = built / "nucleo/nucleo/nucleo.elf"
    assert regions(image) == {0, 2}  # 0x08000000 and 0x20000000
    assert printed("netduinoplus2", ["-serial", "null"], image) == ANSWERS


def test_the_sources_of_the_pico_run_on_an_emulated_machine(built: Path) -> None:
    assert regions(built / "pico/pico/pico.elf") == {2}
    build = ["cmake", "--build", "pico/pico", "--target", "pico_emulated"]
    subprocess.run(build, cwd=built, check=True, capture_output=True)
    assert printed("lm3s6965evb", [], built / "pico/pico/pico_emulated.elf").endswith(ANSWERS)
