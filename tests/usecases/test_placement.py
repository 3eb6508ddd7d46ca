"""Weights in external flash and a workspace in a second RAM: from the project file to the board.

The PSRAM of the board replaces external flash: QEMU loads it from the file that a programmer would write to flash.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.cli.output.invocation import run as run_verb
from mlfbuild.core.errors import CheckFailedError
from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.targets import BOARDS
from mlfbuild.usecases.build import BuildReport, build_project as build
from mlfbuild.usecases.verify import verify_job, verify_jobs
from mlfbuild.verify.emulator import emulator_command
from support.errors import assert_printed, raises
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386, regions: {.mlf_params: PSRAM, .far: PSRAM}}
models:
  kws:
    source: kws.tflite
    vectors: kws.npz
    placement: {params: .mlf_params, workspace: .far}
  net: {source: net.tflite}
firmware:
  app: {sources: [main.c], params-binary: .mlf_params}
"""
MAIN = """\
#include <stdio.h>
#include "tvmgen_kws.h"
#include "tvmgen_net.h"

static int8_t input[MLF_KWS_INPUT_1_ELEMENTS], output[MLF_KWS_IDENTITY_ELEMENTS];

int main(int argc, char **argv)
{
    FILE *file = fopen(argv[argc - 1], "rb");
    struct tvmgen_kws_inputs inputs = {input};
    struct tvmgen_kws_outputs outputs = {output};
    while (fread(input, 1, sizeof input, file) == sizeof input) {
        if (tvmgen_kws_run(&inputs, &outputs) != 0 || tvmgen_net_run(0, 0) != -1) {
            return 1;
        }
        for (unsigned i = 0; i < sizeof output; i++) {
            printf("%d ", output[i]);
        }
    }
    return 0;
}
"""
PSRAM = 0x21000000
BOARD = BOARDS["mps2-an386"]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory, shared: Path, tool: Callable[..., str]) -> Path:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    root = tmp_path_factory.mktemp("placed")
    (root / "mlfbuild.yml").write_text(PROJECT)
    (root / "main.c").write_text(MAIN)
    (root / "kws.tflite").write_bytes((shared / "models/kws_int8.tflite").read_bytes())
    (root / "net.tflite").write_bytes(tiny_network(1))
    (root / "kws.npz").write_bytes((shared / "golden/kws_int8.npz").read_bytes())
    (root / "inputs.bin").write_bytes(np.load(root / "kws.npz")["in0"][:3].tobytes())
    make(root)
    return root


def make(root: Path) -> BuildReport:
    project = load(root / "mlfbuild.yml")
    targets = target_jobs(project)
    return build(targets, firmware_jobs(project, targets))


def expected(root: Path) -> list[int]:
    values: list[int] = np.load(root / "kws.npz")["out0"][:3].reshape(-1).tolist()
    return values


def run(image: Path, root: Path, flash: Path | None = None) -> list[int]:
    loader = [] if flash is None else ["-device", f"loader,file={flash},addr={PSRAM:#x},force-raw=on"]
    command = emulator_command(image, BOARD, ["inputs.bin"], loader)
    result = subprocess.run(command, cwd=root, timeout=60, check=True, capture_output=True, text=True)
    return [int(word) for word in result.stdout.split()]


@pytest.fixture(scope="module")
def internal(repo: Path, tool: Callable[..., str]) -> Path:
    """Return the image without the bytes in external flash, as programmed into the device."""
    image, rest = repo / "build/m4/app/app.elf", repo / "internal.elf"
    objcopy = [tool("arm-none-eabi-objcopy"), "--remove-section=.mlf_params", str(image), str(rest)]
    subprocess.run(objcopy, check=True, capture_output=True)
    return rest


def sections(image: Path) -> dict[str, tuple[int, int, str]]:
    with image.open("rb") as file:
        return {s.name: (s["sh_addr"], s["sh_size"], s["sh_type"]) for s in ELFFile(file).iter_sections()}


def test_weights_and_workspace_are_in_psram(repo: Path) -> None:
    found = sections(repo / "build/m4/app/app.elf")
    address, size, kind = found[".mlf_params"]
    assert (address, kind) == (PSRAM, "SHT_PROGBITS")
    assert size > 20_000
    workspace, length, kind = found[".far"]
    assert PSRAM + size <= workspace < PSRAM + 16 * 1024 * 1024
    assert (length, kind) == (workspace_size(repo), "SHT_NOBITS")
    assert ".rodata.tvm" not in found


def workspace_size(root: Path) -> int:
    header = (root / "build/mlf/m4/kws/codegen/host/include/tvmgen_kws.h").read_text()
    found = re.search(r"#define TVMGEN_KWS_WORKSPACE_SIZE (\d+)", header)
    assert found
    return int(found[1])


def test_file_has_only_the_weights(repo: Path, internal: Path, tool: Callable[..., str]) -> None:
    params = repo / "build/m4/app/app_params.bin"
    assert params.stat().st_size == sections(repo / "build/m4/app/app.elf")[".mlf_params"][1]
    flash = repo / "internal.bin"
    subprocess.run([tool("arm-none-eabi-objcopy"), "-O", "binary", str(internal), str(flash)], check=True)
    assert flash.stat().st_size < 32 * 1024, "nothing of the device's own flash is at 0x21000000"
    assert params.read_bytes()[:256] not in flash.read_bytes()


def test_results_with_the_weights_from_the_file(repo: Path, internal: Path) -> None:
    assert run(internal, repo, flash=repo / "build/m4/app/app_params.bin") == expected(repo)


def test_without_the_weights_the_results_are_wrong(repo: Path, internal: Path) -> None:
    assert run(internal, repo) != expected(repo)


def test_results_depend_on_every_byte_of_the_weights(repo: Path, internal: Path, tmp_path: Path) -> None:
    data = bytearray((repo / "build/m4/app/app_params.bin").read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    (tmp_path / "half.bin").write_bytes(data)
    assert run(internal, repo, flash=tmp_path / "half.bin") != expected(repo)


def test_verify_uses_the_regions(repo: Path) -> None:
    project = load(repo / "mlfbuild.yml")
    (job,) = verify_jobs(project, target_jobs(project), repo / "build")
    assert verify_job(job).passed
    assert sections(job.folder / "build/verify.elf")[".mlf_params"][0] == PSRAM


def test_params_command_writes_the_file(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image, output = repo / "build/m4/app/app.elf", tmp_path / "params.bin"
    assert run_verb(["params", str(image), "-o", str(output)]) == 0
    size = output.stat().st_size
    assert capsys.readouterr().out == f"{output}: {size:,} bytes of .mlf_params for address 0x21000000\n"
    assert run_verb(["params", str(image), "-o", str(output), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"file": str(output), "section": ".mlf_params", "address": PSRAM, "size": size}
    assert run_verb(["params", str(image), "--section", ".ext", "-o", str(tmp_path / "none.bin")]) == 5
    assert_printed(capsys.readouterr().err, "image-without-section", f"{image}", ".ext (sections: .vectors, .text")
    assert not (tmp_path / "none.bin").exists()


# What is rebuilt -----------------------------------------------------------------------------------------------------


def times(root: Path) -> dict[str, int]:
    paths = (path for path in (root / "build").rglob("*") if path.is_file())
    return {path.relative_to(root / "build").as_posix(): path.stat().st_mtime_ns for path in paths}


def rebuilt(root: Path, old: str, new: str) -> set[str]:
    """Return the archives, trees, objects and images that were written after a change of the project file."""
    text = (root / "mlfbuild.yml").read_text()
    assert old in text
    before = times(root)
    (root / "mlfbuild.yml").write_text(text.replace(old, new))
    make(root)
    kinds = (".tar", "_lib0.c", ".ld", ".obj", ".elf", "_params.bin")
    return {path for path, time in times(root).items() if before.get(path) != time and path.endswith(kinds)}


SCRIPT, IMAGE = "mlf/m4/placement/mlf_placement.ld", "m4/app/app.elf"


def test_another_region_links_again_and_compiles_nothing(repo: Path) -> None:
    assert rebuilt(repo, "mlfbuild: 1", "mlfbuild: 1  # a comment") == set()
    assert rebuilt(repo, ".mlf_params: PSRAM", ".mlf_params: FLASH") == {SCRIPT, IMAGE}, "the file's bytes are the same"
    assert sections(repo / "build" / IMAGE)[".mlf_params"][0] < 4 * 1024 * 1024
    assert rebuilt(repo, ".mlf_params: FLASH", ".mlf_params: PSRAM") == {SCRIPT, IMAGE}


def test_another_section_compiles_only_its_model(repo: Path) -> None:
    source = "mlf/m4/net/codegen/host/src/net_lib0.c"
    net = {"mlf/m4/net.tar", source, f"m4/app/CMakeFiles/mlf_net.dir{repo}/build/{source}.obj"}
    placed = "net.tflite, placement: {params: .mlf_params}"
    assert rebuilt(repo, "net.tflite", placed) == {*net, IMAGE, "m4/app/app_params.bin"}
    assert rebuilt(repo, placed, "net.tflite") == {*net, IMAGE, "m4/app/app_params.bin"}


# What goes wrong -----------------------------------------------------------------------------------------------------


def changed(repo: Path, folder: Path, project: str) -> Path:
    """A repository like ``repo`` with another project file."""
    for name in ("main.c", "kws.tflite", "net.tflite", "kws.npz"):
        (folder / name).write_bytes((repo / name).read_bytes())
    (folder / "mlfbuild.yml").write_text(project)
    return folder


CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C ASM)
include("${MLF_TREE}/mlf.cmake")
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::models mlf::board)
"""


def test_link_without_the_placement_is_reported(repo: Path, tmp_path: Path) -> None:
    project = PROJECT.replace("sources: [main.c]", "cmake: .").replace(", .far: PSRAM", "").replace(".far", ".bss.far")
    root = changed(repo, tmp_path, project)
    (root / "CMakeLists.txt").write_text(CMAKELISTS)
    with raises(CheckFailedError, "section-not-placed", "app.elf: .mlf_params") as caught:
        make(root)
    assert "PSRAM" in caught.value.reason
    (root / "CMakeLists.txt").write_text(CMAKELISTS.replace("mlf::board", "mlf::placement mlf::board"))
    make(root)
    assert sections(root / "build" / IMAGE)[".mlf_params"][0] == PSRAM


def test_workspace_must_fit_its_region(repo: Path, tmp_path: Path) -> None:
    project = PROJECT.replace("mps2-an386", "mps3-an547").replace("cortex-m4", "cortex-m55")
    project = project.replace(".mlf_params: PSRAM, .far: PSRAM", ".mlf_params: DDR, .far: ITCM")
    (job,) = target_jobs(load(changed(repo, tmp_path, project) / "mlfbuild.yml"))
    assert {model.model: model.ram_limit for model in job.models} == {"kws": 512 * 1024, "net": 4 * 1024 * 1024}


def test_page_shows_valid_project_files(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/memory.md").read_text()
    several, fast, text = re.findall(r"```yaml\n(mlfbuild: 1\n.*?)```", page, re.DOTALL)
    for name in ("models/kws.tflite", "models/vww.tflite", "src/main.c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")

    def placed(example: str) -> list[tuple[str, str]]:
        (tmp_path / "mlfbuild.yml").write_text(example)
        sections = target_jobs(load(tmp_path / "mlfbuild.yml"))[0].placed
        return [(section.name, section.region) for section in sections]

    assert placed(text) == [(".mlf_params", "QSPI"), (".dtcm", "DTCM")]
    assert placed(several) == [(".dtcm", "DTCM"), (".mlf_ddr", "DDR")]
    assert placed(fast) == [(".mlf_dtcm", "DTCM")]
