"""Code of the native compiler with every compiler for every CPU: no warning, links; on QEMU if there is a board."""

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import ToolNotFoundError
from mlfbuild.jobs import load, target_jobs
from mlfbuild.jobs.model_builds import unpack_archive
from mlfbuild.library import CompileRequest
from mlfbuild.native.kernels import kernel_headers
from mlfbuild.targets import BOARDS, CPUS, GCC, Cpu, compiler_program, cpu_called, require_compiler, toolchain_file
from mlfbuild.usecases.build import build_project as build
from mlfbuild.usecases.verify import verify_job, verify_jobs
from support.cpu_rows import ROWS
from support.oracle import tflite_micro_run
from support.random_graphs import random_case

WARNINGS = "-std=c99 -Wall -Wextra -Werror -Wshadow -Wconversion -Wpedantic -Wmissing-prototypes"
CMAKELISTS = f"""\
cmake_minimum_required(VERSION 3.22)
project(firmware C)
add_compile_options({WARNINGS.replace(" ", ";")})
include(net/mlf.cmake)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::net m)
target_link_options(app PRIVATE ${{LINK}})
"""
MAIN = """\
#include "tvmgen_net.h"
static struct tvmgen_net_inputs inputs;
static struct tvmgen_net_outputs outputs;
int main(void) { return (int)tvmgen_net_run(&inputs, &outputs); }
"""
NO_SYSTEM = {True: "--specs=nosys.specs", False: "-Wl,--defsym=__flash_size=1M,--defsym=__ram_size=1M"}
"""Link options, by whether the CPU is Arm's: newlib requires stubs of system calls, picolibc the sizes of memory."""


CASE = random_case(seed=4, steps=60)
"""A network that needs many kernels, with int8 and float32 tensors."""


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Cpu], Path]:
    """Return CMake projects around the unpacked network: for Cortex-M4, whose C most cores compile, or Cortex-A."""

    @functools.cache
    def made(core: str) -> Path:
        return _firmware(tmp_path_factory.mktemp("firmware"), core)

    return lambda cpu: made(cpu.name if cpu.architecture.endswith("-a") else "cortex-m4")


def _firmware(folder: Path, cpu: str) -> Path:
    (folder / "net.tflite").write_bytes(CASE.model)
    library = compiler_called("native").compile(CompileRequest("net", folder / "net.tflite", cpu_called(cpu)))
    assert len({file.path.name for file in library.modules[0].codegen} & set(kernel_headers())) >= 30
    write_archive(library, folder / "net.tar")
    unpack_archive(folder / "net.tar", folder / "net")
    (folder / "CMakeLists.txt").write_text(CMAKELISTS)
    (folder / "main.c").write_text(MAIN)
    return folder


@pytest.mark.parametrize(("cpu", "compiler"), ROWS, ids=lambda value: getattr(value, "name", value))
def test_a_network_compiles_without_warnings_and_links(
    firmware: Callable[[Cpu], Path],
    tmp_path: Path,
    tool: Callable[..., str],
    newest_clang: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    cpu: Cpu,
    compiler: str,
) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc" if cpu.is_arm else "riscv64-unknown-elf-gcc")
    monkeypatch.setenv("MLFBUILD_CLANG", newest_clang["MLFBUILD_CLANG"])
    toolchain = toolchain_file(cpu, compiler)
    if cpu.name == "cortex-m85" and not is_known(toolchain):
        return  # newer than Debian 12's GCC
    require_compiler(toolchain)
    options = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DLINK={NO_SYSTEM[cpu.is_arm]}"]
    run("cmake", "-G", "Ninja", "-S", firmware(cpu), "-B", tmp_path, *options)
    run("cmake", "--build", tmp_path)
    assert (tmp_path / "app.elf").is_file()


def is_known(toolchain: Path | None) -> bool:
    try:
        require_compiler(toolchain)
    except ToolNotFoundError:
        return False
    return True


def run(*words: str | Path) -> None:
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


ON_BOARDS = [
    (cpu.name, board.name, compiler)
    for cpu in CPUS.values()
    for board in BOARDS.values()
    if board.takes(cpu)
    for compiler in cpu.compilers
    if (cpu.name, compiler) != ("cortex-m85", "gcc")  # newer than Debian 12's GCC
]
ON_PUSH = {
    ("cortex-m0plus", "mps2-an385", "gcc"), ("cortex-m3", "mps2-an385", "clang"),
    ("cortex-m4+nofp", "mps2-an386", "gcc"), ("cortex-m23", "mps2-an505", "gcc"),
    ("cortex-m85", "mps3-an547", "clang"), ("cortex-a9", "vexpress-a9", "gcc"), ("rv32imc", "virt", "gcc"),
}  # fmt: skip
"""``test_networks`` has the other CPUs."""


def test_every_cpu_has_a_board() -> None:
    lacking = set(CPUS) - {"host"} - {cpu for cpu, _, _ in ON_BOARDS}
    assert lacking == set(), "mlfbuild/targets/data/boards.toml: no board runs their code"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the network, its inputs, and the outputs that TensorFlow Lite Micro has for them."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "net.tflite").write_bytes(CASE.model)
    outputs = tflite_micro_run(CASE.model, CASE.inputs)
    vectors = {f"in{index}": value[np.newaxis] for index, value in enumerate(CASE.inputs)}
    vectors |= {f"out{index}": value[np.newaxis] for index, value in enumerate(outputs)}
    np.savez(folder / "net.npz", **vectors)
    targets = {
        f"{board}-{cpu[-4:]}-{compiler}".replace("+", "-").replace(".", "-"): {
            "cpu": cpu, "board": board, "c-compiler": compiler,
        }
        for cpu, board, compiler in ON_BOARDS
    }  # fmt: skip
    models = {"net": {"source": "net.tflite", "vectors": "net.npz"}}
    (folder / "mlfbuild.yml").write_text(json.dumps({"mlfbuild": 1, "targets": targets, "models": models}))
    return folder / "mlfbuild.yml"


@pytest.mark.parametrize("index", [
    pytest.param(index, id="-".join(row), marks=[] if row in ON_PUSH else pytest.mark.sweep)
    for index, row in enumerate(ON_BOARDS)
])  # fmt: skip
def test_a_network_is_right_on_the_board(
    project: Path, tool: Callable[..., str], newest_clang: dict[str, str], monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    cpu, board, compiler = ON_BOARDS[index]
    tool(compiler_program(CPUS[cpu], GCC), "cmake", "ninja", BOARDS[board].emulator)
    monkeypatch.setenv("MLFBUILD_CLANG", newest_clang["MLFBUILD_CLANG"])
    name = list(load(project).targets)[index]
    targets = target_jobs(load(project), [name])
    build(targets)
    (job,) = verify_jobs(load(project), targets, project.parent / "build")
    report = verify_job(job)
    assert report.passed, report.text()
    commands = next((project.parent / "build").rglob(f"{name}/**/build.ninja")).read_text()
    assert ("clang" in commands) == (compiler == "clang")
