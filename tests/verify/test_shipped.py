"""Models are verified in the image that ships: QEMU's GDB stub is the debugger."""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core import InputFileError, ProcessFailedError, UnsupportedModelError
from mlfbuild.library import MainMemory, Pool
from mlfbuild.project import RunnerKeys
from mlfbuild.targets import RUNTIME, DeviceMemoryKeys, RegionKeys, cpu_called, toolchain_file
from mlfbuild.verify import VerifyReport
from mlfbuild.verify.device import Connection, connected, device_of, shipped_subject, verify_shipped
from support.devices import MEAN, PLACE, SUM, A, B, target
from support.errors import raises
from support.hand_written_library import write_library

KIB = 1024
MAIN = """\
#include "tvmgen_net.h"
static signed char a[4], b[4], sum[4];
static float mean[2];
char buffer[%(buffer)d];
int main(void)
{
    struct tvmgen_net_inputs inputs = {a, b};
    struct tvmgen_net_outputs outputs = {sum, mean};
    static unsigned char workspace[64] __attribute__((aligned(64)));
    (void)workspace;
    for (;;) {
        buffer[%(call)s & 1]++;
    }
}
"""
STATIC, REENTRANT = "tvmgen_net_run(&inputs, &outputs)", "mlf_net_run(&inputs, &outputs, workspace)"
PROJECT = """\
cmake_minimum_required(VERSION 3.22)
project(app C ASM)
include("{folder}/tree/mlf.cmake")
set(MLF_LINKER_SCRIPT "{folder}/device.ld")
set(MLF_HOST_LINK debugger)
set(MLF_STACK_SIZE {stack})
include("{runtime}/board/board.cmake")
add_executable(app main.c)
set_target_properties(app PROPERTIES SUFFIX .elf)
target_link_libraries(app PRIVATE mlf::net mlf::board)
"""


@pytest.fixture(scope="module", autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm", "gdb-multiarch")


@pytest.fixture(scope="module")
def desk() -> Iterator[Connection]:
    memory = DeviceMemoryKeys(
        ram=RegionKeys(origin=0x20000000, size=64 * KIB), flash=RegionKeys(origin=0, size=128 * KIB)
    )
    with connected(device_of(target("cortex-m4", RunnerKeys(qemu="mps2-an386", memory=memory)), PLACE)) as connection:
        yield connection


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, desk: Connection) -> Path:
    folder = tmp_path_factory.mktemp("shipped")
    (folder / "device.ld").write_text(desk.device.linker_script())
    np.savez(folder / "vectors.npz", in0=A, in1=B, out0=SUM, out1=MEAN)
    return folder


def image(folder: Path, wrong: str = "", call: str = STATIC, buffer: int = 16, stack: int = 4 * KIB) -> Path:
    """Build firmware of a user around ``net``."""
    write_library(folder / "tree", wrong)
    (folder / "main.c").write_text(MAIN % {"call": call, "buffer": buffer})
    (folder / "CMakeLists.txt").write_text(PROJECT.format(folder=folder, runtime=RUNTIME, stack=stack))
    if not (folder / "build").exists():
        toolchain = toolchain_file(cpu_called("cortex-m4"))
        options = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"]
        run_ok("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", *options)
    run_ok("cmake", "--build", folder / "build")
    return folder / "build/app.elf"


def run_ok(*command: str | Path) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def verify(folder: Path, desk: Connection, elf: Path, *, flash: bool = True) -> VerifyReport:
    module = shipped_subject(write_library(folder / "tree"), desk.device.name)
    return verify_shipped(desk, elf, module, folder / "vectors.npz", flash=flash, timeout=1)


def test_model_is_called_in_the_image(folder: Path, desk: Connection) -> None:
    elf = image(folder)
    report = verify(folder, desk, elf)
    assert re.fullmatch(r"net: 3 cases right on qemu mps2-an386 in app\.elf, stack \d+ bytes", report.text())
    assert report.stack_used is not None and 8 <= report.stack_used <= 200
    assert verify(folder, desk, elf, flash=False).passed


@pytest.mark.sweep
def test_caller_provides_the_workspace(folder: Path, desk: Connection) -> None:
    assert verify(folder, desk, image(folder, call=REENTRANT)).passed


WRONG = {
    "an output is off by one": ("if (a[0] < 0) sum[2]++;",
     r"net: case 1, output 0 \(sum\), element 2: expected 102, got 103 \(1 of 4 elements differ\)"),
    "it writes past an output": ("sum[4] = 0;", r"(net: case \d: wrote outside output 0\n?){3}"),
    "it changes an input": ("if (a[2] == 100) a[1]++;", r"net: case 1: changed input 0"),
    "it remembers the run before": ("if (runs == 4) sum[1] = 0;",
     r"net: case 1, output 0 \(sum\), element 1: the second run differs from the first \(0 after 8\)"),
    "it returns an error": ("if (a[0] == 9) return -1;", r"net: case 2: the run function returned -1, not 0"),
    "it faults": ('if (a[0] == 9) __asm__ volatile(".inst.n 0xde00");',
     r"net: case 2: the firmware faulted\nHardFault: undefined instruction\n  pc \w+ in run \(net_lib0.c:16\)[^|]+"),
    "it hangs": ("while (a[0] == -5 && runs) { }",
     r"net: case 1: no result after 1 s, so it was stopped in run \(net_lib0\.c:\d+\)"),
    "it resets the device": ("if (a[0] == 9) { *(volatile unsigned *)0xE000ED0C = 0x05FA0004; for (;;) { } }",
     r"net: case 2: the device was reset, for example by a watchdog or a dip of its supply"),
    "it needs more stack than there is": (
        "if (a[0] == 9) { volatile char deep[4000]; for (int i = 0; i < 4000; i++) deep[i] = 1; }",
        r"net: case 2: it uses more than the [\d,]+ bytes of stack that are free",
    ),
}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize(("wrong", "found"), WRONG.values(), ids=WRONG)
def test_faults_are_reported(folder: Path, desk: Connection, wrong: str, found: str) -> None:
    text = verify(folder, desk, image(folder, wrong)).text()
    assert re.fullmatch(found, text), text


@pytest.mark.sweep
def test_images_that_cannot_be_called_are_refused(folder: Path, desk: Connection) -> None:
    elf = image(folder)
    module = shipped_subject(write_library(folder / "tree"), desk.device.name)
    vectors = folder / "vectors.npz"
    stripped = folder / "stripped.elf"
    run_ok("arm-none-eabi-strip", elf, "-o", stripped)
    for path, reason in ((stripped, "no symbol table"), (image(folder, call="0"), "neither tvmgen_net_run nor")):
        with raises(InputFileError, "run-function-missing", place=str(path)) as refusal:
            verify_shipped(desk, path, module, vectors)
        assert reason in refusal.value.reason
    without_main = folder / "without-main.elf"
    elf = image(folder)
    run_ok("arm-none-eabi-objcopy", "--strip-symbol=main", elf, without_main)
    with raises(InputFileError, "main-missing", place=str(without_main)):
        verify_shipped(desk, without_main, module, vectors)
    other = folder / "other.elf"
    shutil.copy(elf, other)
    image(folder, "sum[0] = 7;")
    verify_shipped(desk, folder / "build/app.elf", module, vectors)
    with raises(ProcessFailedError, "device-holds-another-image"):
        verify_shipped(desk, other, module, vectors, flash=False)
    with raises(UnsupportedModelError, "no-room-for-tensors", place="app.elf"):
        verify_shipped(desk, image(folder, buffer=60200), module, vectors)
    with raises(UnsupportedModelError, "no-room-for-stack", place="app.elf"):
        verify_shipped(desk, image(folder, stack=512), module, vectors)
    pools = replace(
        write_library(folder / "tree"),
        pools=(Pool("pool", "workspace", 16, external=True),),
        main=(MainMemory(16, 0, 0),),
    )
    with raises(UnsupportedModelError, "module-needs-pools", place="net"):
        shipped_subject(pools, desk.device.name)


@pytest.mark.sweep
def test_image_that_does_not_reach_main(folder: Path, desk: Connection) -> None:
    before = "__attribute__((constructor)) static void before(void) { %s }\\n"
    for fault, what in (("*(volatile int *)0xE0100000 = 1;", "faults before main"), ("for (;;) { }", "does not reach")):
        elf = image(folder, call=STATIC)
        source = (before % fault).replace("\\n", "\n") + (folder / "main.c").read_text()
        (folder / "main.c").write_text(source)
        run_ok("cmake", "--build", folder / "build")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mlfbuild.verify.device.shipped._START_SECONDS", 1.0)
            with raises(ProcessFailedError, "main-not-reached") as error:
                verify(folder, desk, elf)
        assert what in error.value.reason
