"""The installed and missing programs of a machine, with programs in a PATH of the test."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core.errors import ProjectFileError, UsageError
from mlfbuild.core.processes import find_tool
from mlfbuild.core.system_packages import SYSTEMS, how_to_install, this_system
from mlfbuild.targets import CPUS
from mlfbuild.usecases import Diagnosis, diagnose
from support.errors import assert_printed, raises
from support.exporters import python_with_tvm

PROJECT = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
  m0: {cpu: cortex-m0plus}
  pc: {cpu: host}
  own: {cpu: cortex-m7, toolchain: own.cmake}
models:
  net: {source: net.tflite}
"""
TOOLS = ("gcc", "cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]) -> Callable[..., Path]:
    """A machine with only the named programs: links to the real ones, or scripts."""

    def make(*names: str, **scripts: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in names:
            (folder / name).symlink_to(tool(name))
        for name, text in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        for name in (*TOOLS, "clang"):
            monkeypatch.delenv(f"MLFBUILD_{name.upper().replace('-', '_')}", raising=False)
        monkeypatch.delenv("CC", raising=False)
        (tmp_path / "mlfbuild.yml").write_text(PROJECT)
        for name in ("net.tflite", "kws.tflite", "vww.bin", "any.bin", "own.cmake"):
            (tmp_path / name).touch()
        (tmp_path / "main.c").write_text("void Reset_Handler(void) { for (;;) {} }\n")
        return tmp_path / "mlfbuild.yml"

    return make


def states(found: Diagnosis) -> dict[str, tuple[tuple[str, ...], str]]:
    return {target.name: (target.missing, target.unverified) for target in found.targets}


def test_machine_with_all_programs(machine: Callable[..., Path]) -> None:
    found = diagnose(machine(*TOOLS))
    assert states(found) == {
        "m4": ((), ""),
        "m0": ((), "no board that QEMU emulates"),
        "pc": ((), ""),
        "own": ((), "no board that QEMU emulates"),
    }
    assert found.healthy and found.install == ()
    programs = {program.name: program for program in found.programs}
    assert programs["clang"].path is None
    assert all(programs[name].version[0].isdigit() for name in TOOLS if name != "gcc")
    assert programs["cc"].path == find_tool("gcc")


def test_machine_without_programs(machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlfbuild.core.system_packages.this_system", lambda: SYSTEMS["debian"])
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    found = diagnose(machine())
    assert not found.healthy
    (*missing, compiler), unverified = states(found)["m4"]
    assert (missing, unverified) == (["cmake is missing", "ninja is missing"], "qemu-system-arm is missing")
    assert_printed(compiler, "program-not-found", "arm-none-eabi-gcc")
    assert_printed(states(found)["pc"][0][2], "no-host-compiler", "cc")
    assert states(found)["own"][0] == ("cmake is missing", "ninja is missing"), "its compiler is its file's to say"
    packages = "cmake ninja-build gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm gcc libc6-dev"
    assert found.install == (f"sudo apt-get install {packages}",)


def test_only_the_selected_targets_are_checked(machine: Callable[..., Path]) -> None:
    project = machine("gcc", "cmake", "ninja")
    assert diagnose(project, ["pc"]).healthy
    found = diagnose(project, ["m0"])
    assert not found.healthy and "gcc-arm-none-eabi" in found.install[0] and "qemu" not in found.install[0]
    with raises(UsageError, "unknown-target", "target 'm5'"):
        diagnose(project, ["m5"])


def test_without_emulator_targets_can_be_built_but_not_verified(machine: Callable[..., Path]) -> None:
    found = diagnose(machine("gcc", "cmake", "ninja", "arm-none-eabi-gcc"))
    assert found.healthy and states(found)["m4"] == ((), "qemu-system-arm is missing")
    assert "qemu-system-arm" in found.install[0]


def test_instruction_budgets_require_the_emulator(machine: Callable[..., Path]) -> None:
    project = machine("cmake", "ninja", "arm-none-eabi-gcc")
    project.write_text(PROJECT.replace("net.tflite}", "net.tflite, budget: {instructions: 1 M}}"))
    assert states(diagnose(project, ["m4"]))["m4"][0] == (), "no firmware holds it"
    project.write_text(project.read_text() + "firmware: {app: {sources: [main.c], targets: [m4, m0]}}\n")
    words = "is missing (required to check budgets of runs)"
    found = diagnose(project, ["m4", "m0"])
    assert states(found)["m4"] == ((f"qemu-system-arm {words}", f"cc {words}"), "qemu-system-arm is missing")
    assert states(found)["m0"][0] == (), "a target without a board has no such budgets"
    assert "qemu-system-arm" in found.install[0] and not found.healthy


def test_a_compiler_without_a_c_library_and_an_old_cmake(machine: Callable[..., Path]) -> None:
    scripts = {"arm-none-eabi-gcc": 'for last; do :; done; echo "${last##*=}"', "cmake": "echo 'cmake version 3.18.4'"}
    found = diagnose(machine("gcc", "ninja", **scripts), ["m4"])
    assert states(found)["m4"][0] == (
        "CMake 3.18.4 is older than 3.22",
        f"{find_tool('arm-none-eabi-gcc')} has no C library for cortex-m4",
    )


def test_compiler_that_does_not_support_the_core(machine: Callable[..., Path]) -> None:
    found = diagnose(machine("gcc", "cmake", "ninja", **{"arm-none-eabi-gcc": "exit 1"}), ["m4"])
    assert states(found)["m4"][0] == (f"cortex-m4: {find_tool('arm-none-eabi-gcc')} cannot compile for it",)


def test_variable_with_a_wrong_path_is_reported(machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    project = machine(*TOOLS)
    monkeypatch.setenv("MLFBUILD_NINJA", "/nowhere/ninja")
    found = diagnose(project, ["m4"])
    assert states(found)["m4"][0] == ("ninja is missing",)
    assert found.install == ("correct or unset the variable MLFBUILD_NINJA=/nowhere/ninja",)


def test_without_a_project_every_cpu_is_listed(machine: Callable[..., Path]) -> None:
    machine(*TOOLS)
    found = diagnose(None)
    assert [target.name for target in found.targets] == list(CPUS)
    assert found.healthy, "none of them was asked for"
    (missing,) = states(found)["rv32imc"][0]
    assert_printed(missing, "program-not-found", "riscv64-unknown-elf-gcc")
    assert found.install == ()


# Programs that compile models ----------------------------------------------------------------------------------------

MODELS = """
  kws: {source: kws.tflite, compiler: tvm, python: tools/python, targets: [m4]}
  vww: {source: vww.bin, compiler: command, command: "tools/{{export}} {source} {output}", targets: [pc]}
  any: {source: any.bin, compiler: command, command: "{name} {source} {output}", targets: [pc]}
"""


@pytest.fixture
def models(machine: Callable[..., Path]) -> Path:
    """The project file of a machine with all programs, with two models that require further programs."""
    project = machine(*TOOLS, "sh", "python3")
    project.write_text(PROJECT + MODELS.strip("\n"))
    return project


def compilers(found: Diagnosis) -> dict[str, tuple[Path | None, str]]:
    return {each.name: (each.path, each.version) for each in found.programs if " of " in each.name}


def test_installed_compilers_of_models(models: Path) -> None:
    python = python_with_tvm(models.parent / "tools/python", "0.14.0")
    export = models.parent / "tools/{export}"
    export.write_text("#!/bin/sh\n")
    export.chmod(0o755)
    found = diagnose(models)
    assert found.healthy and found.install == ()
    assert compilers(found) == {"TVM of kws": (python, "0.14.0"), "command of vww": (export, "")}
    assert states(diagnose(models, ["own"])) == {"own": ((), "no board that QEMU emulates")}


def test_missing_compilers_of_models(models: Path) -> None:
    found = diagnose(models)
    reasons = ["model kws: TVM's interpreter: tools/python: no such file", "model vww: tools/{export}: no such file"]
    assert not found.healthy
    assert {name: missing for name, (missing, _) in states(found).items() if missing} == {
        "m4": (reasons[0],), "pc": (reasons[1],)
    }  # fmt: skip
    assert found.install == tuple(f"{why}: write its path relative to the project file's folder" for why in reasons)
    assert compilers(found) == {"TVM of kws": (None, ""), "command of vww": (None, "")}
    assert diagnose(models, ["m0"]).healthy and compilers(diagnose(models, ["m0"])) == {}


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("0.19.0", "TVM 0.19.0 does not have Model Library Format"),
        ("", "cannot import tvm (ModuleNotFoundError: No module named 'tvm')"),
    ],
)
def test_python_without_a_supported_tvm(models: Path, version: str, why: str) -> None:
    python = models.parent / "tools/python"
    if version:
        python_with_tvm(python, version)
    else:
        python.parent.mkdir()
        python.symlink_to(sys.executable)
    found = diagnose(models, ["m4"])
    reason = f"model kws: {python}: {why}"
    assert states(found)["m4"][0] == (reason,)
    assert found.install == (
        f"{reason}: install TVM 0.8 to 0.18 for it, or name another interpreter (python: in the project file)",
    )


def test_project_file_with_mistakes_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "mlfbuild.yml").write_text("mlfbuild: 1\ntargets: {}\n")
    with pytest.raises(ProjectFileError):
        diagnose(tmp_path / "mlfbuild.yml")


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("ID=ubuntu\nID_LIKE=debian\n", "Debian"),
        ('NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n', "Debian"),
        ("ID=fedora\n", "Fedora"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "Fedora"),
        ("ID=arch\n", "Arch Linux"),
        ("ID=alpine\n", "Alpine Linux"),
        ("ID=nixos\n", None),
        ("", None),
    ],
)
def test_system_is_recognised_by_its_name(tmp_path: Path, release: str, name: str | None) -> None:
    (tmp_path / "os-release").write_text(release)
    system = this_system(tmp_path / "os-release")
    assert (system and system.name) == name
    assert this_system(tmp_path / "none") is None


def test_programs_without_a_package_have_a_download_page() -> None:
    lines = how_to_install(["cmake", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"], SYSTEMS["darwin"])
    assert lines[:2] == ["brew install cmake", "brew install --cask gcc-arm-embedded"]
    assert lines[2].startswith("install the RISC-V GNU Toolchain from https://")
