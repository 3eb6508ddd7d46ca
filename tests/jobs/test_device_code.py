"""Code for other devices in builds: compiled with the compiler and the options of its device, and nothing else."""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.archive import read_files
from mlfbuild.c_analysis import CPU_ARCH, object_facts
from mlfbuild.core import InputFileError, UnsupportedModelError, UsageError
from mlfbuild.jobs import load, target_jobs
from mlfbuild.jobs.devices import TargetDevices
from mlfbuild.jobs.toolchains import locked_toolchain
from mlfbuild.jobs.tree import TreeSettings, parts_of, unpack, write_target_tree
from mlfbuild.library import CodegenFile
from mlfbuild.project import DeviceKeys
from mlfbuild.targets import CPUS, cmake_folder
from mlfbuild.usecases import plan_build
from mlfbuild.verify.devices import refuse_device_code
from support import warm
from support.aot_archives import A, B
from support.device_archives import COMMANDS, DEVICE_FILES, device_archive, device_files
from support.errors import assert_printed, raises
from support.libraries import native_library

HOST = CPUS["host"]
ACCEL = DeviceKeys(cpu="host", flags=("-DACCEL=7", "-Wa,-g"))
MAIN = """\
#include <stdint.h>
#include <stdio.h>
#include "mlf_net_accel.h"
#include "tvmgen_net.h"

int accel_flavour(void);

int main(void)
{
    float a[4] = {1, 2, 3, 4}, b[4] = {2, 2, 2, 2}, y[4] = {0};
    struct tvmgen_net_inputs inputs = {a, b};
    struct tvmgen_net_outputs outputs = {y};
    int status = (int)tvmgen_net_run(&inputs, &outputs);
    unsigned at = MLF_NET_ACCEL_COMMANDS_BIN_SIZE - 4;
    int aligned = (uintptr_t)mlf_net_accel_commands_bin % MLF_NET_ACCEL_COMMANDS_BIN_ALIGNMENT == 0;
    printf("%d %d %d %d %d, %d", status, (int)y[0], (int)y[1], (int)y[2], (int)y[3], accel_flavour());
    printf(", %u %u %d\\n", (unsigned)mlf_net_accel_commands_bin_size, mlf_net_accel_commands_bin[at], aligned);
    return 0;
}
"""
"""y = 2 (a + w) b, the flavour of the device's code, and size, an element and alignment of its commands."""
PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host, devices: {accel: {cpu: host, flags: [-DACCEL=7]}}}
models:
  net: {source: net.tar}
"""
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
find_package(mlfbuild CONFIG REQUIRED)
add_compile_definitions(HOST_ONLY)
mlfbuild_models(mlfbuild.yml)
add_executable(app main.c)
target_link_libraries(app PRIVATE mlf::net)
"""
SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"], toolpath=["site_tools"], CPPDEFINES=["HOST_ONLY"])
models = env.MlfModels("mlfbuild.yml")
models.apply(env)
env.Program("app", ["main.c"])
"""


def printed(flavour: int) -> str:
    return f"0 6 4 20 48, {flavour}, {len(COMMANDS)} {COMMANDS[-4]} 1\n"


@dataclass
class Repo:
    """A project for this machine with the model ``net``; the folder's name has a space."""

    root: Path

    def write(self, name: str, text: str | bytes) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(text.encode() if isinstance(text, str) else text)

    def flavour(self, number: int) -> None:
        self.write("mlfbuild.yml", PROJECT.replace("ACCEL=7", f"ACCEL={number}"))

    def factor(self, number: int) -> None:
        """Change a header of the device's code."""
        header = f"#define FACTOR {number}.0f\n".encode()
        self.write("net.tar", device_archive({**DEVICE_FILES, "codegen/accel/include/accel.h": header}))

    def run(self, *command: str | Path) -> str:
        done = subprocess.run(command, cwd=self.root, text=True, check=False, stdout=-1, stderr=-2)
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[..., str]) -> Repo:
    tool("cc", "cmake", "ninja")
    found = Repo(tmp_path / "my firmware")
    found.write("net.tar", device_archive())
    found.write("main.c", MAIN)
    found.write("mlfbuild.yml", PROJECT)
    return found


# Rebuilding ----------------------------------------------------------------------------------------------------------


def steps(output: str) -> list[str]:
    """Return the last word of each step that CMake's build prints, except for that of the model."""
    found = re.findall(r"^\[.+?\] (?:Building|Linking|Comparing) (.+)$", output, re.MULTILINE)
    return sorted(Path(step.split(" for ")[0].split(" ")[-1]).name for step in found)


@pytest.mark.parametrize("generator", ["Ninja", pytest.param("Unix Makefiles", marks=pytest.mark.sweep)])
def test_cmake_builds_again_what_a_change_of_the_device_concerns(repo: Repo, generator: str) -> None:
    repo.write("CMakeLists.txt", CMAKELISTS)
    package = (f"-Dmlfbuild_DIR={cmake_folder()}", f"-DMLFBUILD_COMMAND={warm.command('mlfbuild')}")
    repo.run("cmake", "-S", ".", "-B", "out", "-G", generator, "-DCMAKE_C_FLAGS=-DHOST_ONLY", *package)

    def build() -> list[str]:
        return steps(repo.run("cmake", "--build", "out"))

    assert "libmlf_net.accel.a" in build()
    assert repo.run("out/app") == printed(7)
    assert build() == []
    device = ["app", "app", "libmlf_net.accel.a", "net_lib0.c"]
    repo.flavour(8)
    assert build() == device
    assert repo.run("out/app") == printed(8)
    assert build() == []


def test_scons_builds_again_what_a_change_of_the_device_concerns(repo: Repo) -> None:
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("site_tools/mlf.py", "from mlfbuild.scons import exists, generate\n")

    def build() -> list[str]:
        done = warm.run("SCons", "-Q", cwd=repo.root, status=0)
        compiled = re.findall(r"^(?:\S*cc|ar) .*$", done.stdout, re.MULTILINE)
        for line in compiled:
            assert ("HOST_ONLY" in line) == ("-DACCEL" not in line and line.startswith("gcc") and " -c " in line), line
        return [re.split(r" -o |rcs? ", line)[1].split(" ")[0].rpartition("/")[2] for line in compiled]

    assert build()[-3:] == ["codegen-accel-src-net_lib0.c.o", "libmlf_net.accel.a", "app"]
    assert repo.run("./app") == printed(7)
    device = ["codegen-accel-src-net_lib0.c.o", "libmlf_net.accel.a", "app"]
    repo.flavour(8)
    assert build() == device
    repo.factor(-2)
    assert {*build()} == {*device, "executor-net_entry.o", "libmlf_net.a"}
    assert repo.run("./app").startswith("0 -6 -4 -20 -48, 8")
    assert build() == []


# Fragments, which need no mlfbuild -----------------------------------------------------------------------------------


@pytest.fixture(params=[pytest.param("declared", marks=pytest.mark.sweep), "not declared"])
def tree(request: pytest.FixtureRequest, repo: Repo) -> tuple[Repo, bool]:
    """Return a repo with the tree ``net``, and whether its files name the compiler of the device."""
    declared = request.param == "declared"
    devices = TargetDevices("pc", HOST, {"accel": ACCEL}) if declared else None
    unpack(
        read_files(device_files(), "net.tar"),
        repo.root / "net",
        archive_id="ab",
        settings=TreeSettings(devices=devices),
    )
    return repo, declared


def test_fragment_of_cmake(tree: tuple[Repo, bool]) -> None:
    repo, declared = tree
    text = CMAKELISTS.replace("find_package(mlfbuild CONFIG REQUIRED)", "include(net/mlf.cmake)")
    text = text.replace("mlfbuild_models(mlfbuild.yml)\n", "")
    repo.write("CMakeLists.txt", text + ("" if declared else "target_link_libraries(app PRIVATE mlf::net.accel)\n"))
    words = ["cmake", "-S", ".", "-B", "out", "-G", "Ninja", "-DCMAKE_C_FLAGS=-DHOST_ONLY"]
    if not declared:
        refused = subprocess.run(words, cwd=repo.root, text=True, check=False, capture_output=True)
        assert refused.returncode == 1
        assert "MLF_DEVICE_ACCEL_COMPILER" in refused.stderr
        words += ["-DMLF_DEVICE_ACCEL_COMPILER=cc", "-DMLF_DEVICE_ACCEL_FLAGS=-O1;-DACCEL=7"]
    repo.run(*words)
    repo.run("cmake", "--build", "out")
    assert repo.run("out/app") == printed(7)
    repo.write("net/codegen/accel/include/accel.h", "#define FACTOR -2.0f\n")
    device = ["app", "libmlf_net.accel.a", "net_lib0.c"]
    assert steps(repo.run("cmake", "--build", "out")) == device
    assert repo.run("out/app").startswith("0 -6 -4 -20 -48, 7")
    repo.run("cmake", "out", "-DMLF_DEVICE_ACCEL_FLAGS=-O1;-DACCEL=9")
    assert steps(repo.run("cmake", "--build", "out")) == device
    assert steps(repo.run("cmake", "--build", "out")) == []


def test_fragment_of_make(tree: tuple[Repo, bool], tool: Callable[..., str]) -> None:
    tool("make")
    repo, declared = tree
    repo = Repo(repo.root.rename(repo.root.with_name("firmware")))  # make does not support spaces
    device = "" if declared else "MLF_DEVICE_ACCEL_COMPILER := cc\nMLF_DEVICE_ACCEL_FLAGS := -O1 -DACCEL=7\n"
    linked = "" if declared else " $(MLF_DEVICE_LIBRARIES)"
    repo.write(
        "Makefile",
        f"{device}include net/mlf.mk\nCPPFLAGS += $(MLF_INCLUDES) -DHOST_ONLY\n"
        f"app: main.c $(MLF_LIBRARIES){linked}\n\t$(CC) $(CPPFLAGS) $^ -o $@\n",
    )
    repo.run("make")
    assert repo.run("./app") == printed(7)
    assert "up to date" in repo.run("make")
    if not declared:
        repo.write("Makefile", (repo.root / "Makefile").read_text().replace("ACCEL=7", "ACCEL=9"))
        assert repo.run("make").count(" -c ") == 1
        assert repo.run("./app") == printed(9)
        repo.write("Makefile", "include net/mlf.mk\n")
        refused = subprocess.run(["make"], cwd=repo.root, text=True, check=False, capture_output=True)
        assert (refused.returncode, "MLF_DEVICE_ACCEL_COMPILER" in refused.stderr) == (2, True)


def test_fragment_of_scons(tree: tuple[Repo, bool]) -> None:
    repo, declared = tree
    device = "" if declared else 'MLF_DEVICE_ACCEL_COMPILER="cc", MLF_DEVICE_ACCEL_FLAGS="-O1 -DACCEL=7", '
    linked = "" if declared else 'env.Append(LIBS=net["MLF_DEVICE_LIBRARIES"])\n'
    text = (
        f'env = Environment({device}CPPDEFINES=["HOST_ONLY"])\n'
        'net = SConscript("net/SConscript", exports="env", variant_dir="out", duplicate=False)\n'
        f'env.Append(**net)\n{linked}env.Program("app", ["main.c"])\n'
    )
    repo.write("SConstruct", text)
    assert warm.run("SCons", "-Q", cwd=repo.root, merged=True, check=True).returncode == 0
    assert repo.run("./app") == printed(7)
    assert "up to date" in warm.run("SCons", "-Q", cwd=repo.root).stdout
    if not declared:
        repo.write("SConstruct", text.replace(device, ""))
        refused = warm.run("SCons", "-Q", cwd=repo.root)
        assert (refused.returncode, "MLF_DEVICE_ACCEL_COMPILER" in refused.stderr) == (2, True)


# An image for a board ------------------------------------------------------------------------------------------------

BOARD = """\
mlfbuild: 1
targets:
  m55:
    cpu: cortex-m55
    board: mps3-an547
    regions: {.npu_data: DDR}
    devices:
      accel: {cpu: cortex-m33, flags: [-DACCEL=33], section: .npu_data}
      dsp: {cpu: rv32imc, flags: [-DDSP]}
models:
  net: {source: net.tar}
firmware:
  app: {sources: [main.c]}
"""
DSP = {
    "codegen/dsp/src/net_lib1.c": b"#ifndef DSP\n#error\n#endif\nint dsp_main(void) { return 3; }\n",
    "codegen/dsp/lib/net_program.bin": b"\x13\0\0\0",
}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """A folder with firmware for a board, and code for two other devices, of which one is linked."""
    tool("cmake", "ninja", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "qemu-system-arm")
    root = tmp_path_factory.mktemp("board")
    (root / "net.tar").write_bytes(device_archive({**DEVICE_FILES, **DSP}))
    (root / "main.c").write_text(MAIN)
    (root / "mlfbuild.yml").write_text(BOARD)
    warm.run("mlfbuild", "build", "-f", root / "mlfbuild.yml", merged=True, status=0)
    return root


def objects_of(library: Path) -> Iterator[bytes]:
    for name in subprocess.run(["ar", "t", library], text=True, check=True, capture_output=True).stdout.split():
        yield subprocess.run(["ar", "p", library, name], check=True, capture_output=True).stdout


def test_host_code_calls_the_library_of_another_core(board: Path) -> None:
    ran = warm.run("mlfbuild", "run-firmware", "app", "-f", board / "mlfbuild.yml")
    assert ran.stdout == printed(33)


def test_each_library_is_compiled_for_its_device(board: Path) -> None:
    built = board / "build/m55/app"
    libraries = {path.name: list(objects_of(path)) for path in built.rglob("libmlf_net*.a")}
    assert {*libraries} == {"libmlf_net.a", "libmlf_net_blobs.a", "libmlf_net.accel.a", "libmlf_net.dsp.a"}

    def architectures(library: str) -> set[tuple[str, int]]:
        facts = [object_facts(data, library) for data in libraries[library]]
        return {(each.machine, each.attributes.get(CPU_ARCH, 0)) for each in facts}

    assert architectures("libmlf_net.a") == {("EM_ARM", 21)}, "Armv8.1-M"
    assert architectures("libmlf_net.accel.a") == {("EM_ARM", 17)}, "Armv8-M"
    assert architectures("libmlf_net.dsp.a") == {("EM_RISCV", 0)}


def test_data_is_in_its_section_and_aligned(board: Path) -> None:
    with (board / "build/m55/app/app.elf").open("rb") as file:
        elf = ELFFile(file)
        section = elf.get_section_by_name(".npu_data")
        (symbol,) = elf.get_section_by_name(".symtab").get_symbol_by_name("mlf_net_accel_commands_bin")
        assert symbol["st_size"] == len(COMMANDS)
        assert symbol["st_value"] % 16 == 0
        offset = symbol["st_value"] - section["sh_addr"]
        assert section.data()[offset : offset + len(COMMANDS)] == COMMANDS
        assert elf.get_section_by_name(".symtab").get_symbol_by_name("dsp_main") is None


def test_plan_names_each_library(board: Path) -> None:
    (model,) = plan_build(load(board / "mlfbuild.yml"))["models"]
    found = {each["device"]: (each["library"], each["linked"]) for each in model["devices"]}
    assert found == {"accel": ("libmlf_net.accel.a", True), "dsp": ("libmlf_net.dsp.a", False)}


def test_sizes_of_device_code_are_those_of_the_model(board: Path) -> None:
    report = warm.run("mlfbuild", "report", "-f", board / "mlfbuild.yml", "--format", "json").stdout
    assert '"mlf_net.accel"' not in report
    assert '"accel_flavour"' in report


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [{}, {"acel": ACCEL}, {"accel": DeviceKeys(section=".npu")}])
def test_code_without_a_compiler_is_refused(declared: dict[str, DeviceKeys], tmp_path: Path) -> None:
    library = read_files(device_files(), "net.tar")
    with raises(UsageError, "device-not-declared", at="module net: codegen/accel") as caught:
        unpack(
            library,
            tmp_path / "net",
            archive_id="ab",
            settings=TreeSettings(devices=TargetDevices("m55", HOST, declared)),
        )
    assert "targets.m55.devices.accel" in caught.value.hint
    assert ('"acel"' in caught.value.reason) == ("acel" in declared)
    assert not (tmp_path / "net").exists()


def test_a_missing_compiler_is_named_with_its_key(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc")
    (tmp_path / "net.tar").write_bytes(device_archive())
    (tmp_path / "main.c").write_text(MAIN)
    project = re.sub(r"accel: {.*}", "accel: {c-compiler: no-such-gcc}", BOARD).replace(
        "    regions: {.npu_data: DDR}\n", ""
    )
    (tmp_path / "mlfbuild.yml").write_text(project)
    ran = warm.run("mlfbuild", "build", "-f", tmp_path / "mlfbuild.yml", status=3)
    assert_printed(ran.stderr, "program-not-found", "targets.m55.devices.accel")


def test_data_needs_no_declaration() -> None:
    files = {"codegen/npu-2/net_commands.bin": COMMANDS, "codegen/npu-2/empty": b""}
    (part,) = parts_of(read_files(device_files(files, ""), "net.tar"), devices=TargetDevices("m55", HOST)).modules
    assert part.devices == ()
    (blobs,) = part.blobs
    assert (blobs.header, blobs.reads) == (
        "blobs/mlf_net_npu_2.h", ("codegen/npu-2/empty", "codegen/npu-2/net_commands.bin"),
    )  # fmt: skip


def test_files_with_one_name_in_c_are_refused() -> None:
    files = {"codegen/npu/a-b.bin": b"1", "codegen/npu/a_b.bin": b"2"}
    with raises(UsageError, "device-files-equal-in-c"):
        parts_of(read_files(device_files(files, ""), "net.tar"))


@pytest.mark.parametrize("names", [("a b",), ("a-b", "a_b"), ("Blobs",), ("$x",)])
def test_names_of_devices_that_builds_cannot_contain_are_refused(names: tuple[str, ...]) -> None:
    files = {f"codegen/{name}/net.bin": b"1" for name in names}
    with raises(InputFileError, "device-name-not-buildable"):
        parts_of(read_files(device_files(files, ""), "net.tar"))


def test_objects_are_linked_or_become_data() -> None:
    library = read_files(device_files({"codegen/accel/lib/net_lib0.o": b"\x7fELF"}, ""), "net.tar")
    for link in (True, False):
        keys = DeviceKeys(c_compiler="npu-gcc", link=link)
        (part,) = parts_of(library, devices=TargetDevices("m55", HOST, {"accel": keys})).modules
        (device,) = part.devices
        assert device.objects == ("codegen/accel/lib/net_lib0.o",)
        assert [blobs.reads for blobs in part.blobs] == ([] if link else [device.objects])
        assert (device.name, device.tools.linked) == ("accel", link)


def test_only_code_of_the_same_machine_and_abi_is_linked_by_default() -> None:
    def linked(host: str, **keys: str) -> bool:
        tools = TargetDevices("t", CPUS[host], {"accel": DeviceKeys(**keys)}).tools("accel")  # type: ignore[arg-type]
        assert tools is not None
        return tools.linked

    assert linked("cortex-m55", cpu="cortex-m33")
    assert not linked("cortex-m55", cpu="cortex-m0"), "soft-float"
    assert not linked("cortex-m55", cpu="rv32imc")
    assert not linked("cortex-m55", c_compiler="npu-gcc"), "unknown"


def test_compiler_and_options_of_a_toolchain_file(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "gcc")
    toolchain = tmp_path / "dsp.cmake"
    toolchain.write_text('set(CMAKE_C_COMPILER gcc)\nset(CMAKE_C_FLAGS_INIT "-O1 -DA=1")\nadd_compile_options(-DB)\n')
    devices = TargetDevices("t", HOST, {"dsp": DeviceKeys(toolchain=toolchain, flags=("-DC",))})
    tools = devices.tools("dsp")
    assert tools is not None
    assert (tools.compiler, tools.flags) == ("gcc", ("-O1", "-DA=1", "-DB", "-DC"))
    toolchain.write_text('set(CMAKE_C_COMPILER gcc)\nadd_compile_options("-DX=a b")\n')
    with pytest.raises(UsageError) as caught:
        devices.tools("dsp")
    assert caught.value.place == str(toolchain)


def test_paths_of_compilers_start_at_the_project_file(tmp_path: Path) -> None:
    keys = DeviceKeys(cpu="cortex-m4", c_compiler="tools/clang-19")
    tools = TargetDevices("t", HOST, {"accel": keys}, tmp_path).tools("accel")
    assert tools is not None
    assert (tools.compiler, tools.flags[0]) == (f"{tmp_path}/tools/clang-19", "--target=arm-none-eabi")


def test_objects_for_another_core_are_refused(board: Path, tmp_path: Path) -> None:
    (own,) = objects_of(board / "build/m55/app/libmlf_net.dsp.a")
    (tmp_path / "net.tar").write_bytes(device_archive({"codegen/accel/lib/net_lib0.o": own}, ""))
    (tmp_path / "mlfbuild.yml").write_text(BOARD.replace("firmware:\n  app: {sources: [main.c]}\n", ""))
    ran = warm.run("mlfbuild", "build", "-f", tmp_path / "mlfbuild.yml", status=2)
    assert_printed(ran.stderr, "object-for-another-cpu", "codegen/accel/lib/net_lib0.o")
    assert not (tmp_path / "build/mlf/m55/net").exists()


def test_lock_names_the_compilers_of_devices(board: Path) -> None:
    (target,) = target_jobs(load(board / "mlfbuild.yml"))
    assert {*locked_toolchain(target, board).programs} == {"arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"}


def test_check_names_devices_without_compiler_and_without_code(tmp_path: Path) -> None:
    (tmp_path / "net.tar").write_bytes(device_archive())

    def check(devices: str) -> tuple[int, str]:
        (tmp_path / "mlfbuild.yml").write_text(PROJECT.replace("{accel: {cpu: host, flags: [-DACCEL=7]}}", devices))
        ran = warm.run("mlfbuild", "check", "-f", tmp_path / "mlfbuild.yml", merged=True)
        return ran.returncode, ran.stdout

    for devices in ("{}", "{acel: {cpu: host}}", "{accel: {section: .npu}}"):
        status, output = check(devices)
        assert status == 2
        assert_printed(output, "device-not-declared", "targets.pc.devices.accel")
    status, output = check("{accel: {cpu: host}, dsp: {cpu: host}}")
    assert status == 0
    assert_printed(output, "device-not-used", "targets.pc.devices.dsp")


@pytest.mark.parametrize("board", [(), ("--board", "mps3-an547")])
def test_code_of_a_device_is_not_run_without_a_project(board: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "net.tar").write_bytes(device_archive())
    np.savez(tmp_path / "x.npz", in0=A, in1=B)
    ran = warm.run("mlfbuild", "run", "net.tar", "--inputs", "x.npz", "-o", "y.npz", *board, cwd=tmp_path, status=4)
    assert_printed(ran.stderr, "device-code-not-run", "codegen/accel", "accel")
    assert not (tmp_path / "y.npz").exists()


def test_data_of_a_device_does_not_prevent_a_run_that_does_not_use_it() -> None:
    data = CodegenFile(PurePosixPath("accel/lib/commands.bin"), b"\1")
    module = replace(native_library("net").modules[0], device_files=(data,))
    refuse_device_code(module)
    used = CodegenFile(PurePosixPath("host/src/use.c"), b"extern const char mlf_net_accel_commands_bin[];")
    for refused in (
        replace(module, codegen=(*module.codegen, used)),
        replace(module, device_files=(data, CodegenFile(PurePosixPath("accel/src/a.c"), b"int a;"))),
    ):
        with pytest.raises(UnsupportedModelError):
            refuse_device_code(refused)


def test_init_writes_no_project_without_the_compiler_of_a_device(tmp_path: Path) -> None:
    (tmp_path / "net.tar").write_bytes(device_archive())
    ran = warm.run("mlfbuild", "init", "--archive", "net.tar", "new", cwd=tmp_path, status=4)
    assert " accel" in ran.stderr
    assert not (tmp_path / "new").exists()


def test_packages_contain_data_but_no_code_of_devices(tmp_path: Path) -> None:
    cpu = CPUS["cortex-m55"]
    for name, files in (("data", {"codegen/npu/net.bin": b"1"}), ("code", {"codegen/npu/net_lib0.c": b"int npu;"})):
        library = read_files(device_files(files, ""), "net.tar")
        unpack(library, tmp_path / name / "net", archive_id="ab", settings=TreeSettings(model="net"))
        if name == "data":
            write_target_tree(tmp_path / name, ["net"], None, cpu, ["zephyr"])
            continue
        with raises(UnsupportedModelError, "device-code-in-package"):
            write_target_tree(tmp_path / name, ["net"], None, cpu, ["zephyr"])


def test_settings_of_devices_decide_about_trees_but_not_about_archives(tmp_path: Path) -> None:
    (tmp_path / "net.tar").write_bytes(device_archive())

    def job(text: str) -> tuple[str, str]:
        (tmp_path / "mlfbuild.yml").write_text(text)
        ((found,),) = (target.models for target in target_jobs(load(tmp_path / "mlfbuild.yml")))
        return found.settings(), found.unpack_settings()

    first, second = job(PROJECT), job(PROJECT.replace("ACCEL=7", "ACCEL=8"))
    assert first[0] == second[0]
    assert first[1] != second[1]
