"""The programs that the cross build uses."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild import report
from mlfbuild.core.errors import ProcessFailedError, ToolNotFoundError, UsageError
from mlfbuild.jobs import FirmwareJob, TargetJob, firmware_jobs, load, target_jobs
from mlfbuild.jobs.firmware_build import check_flags
from mlfbuild.usecases.build import build_firmware, build_project as build
from support.errors import raises
from support.firmware_repo import PROJECT, FirmwareRepo, tiny_network


def write_project(folder: Path, target: str) -> None:
    """Write a project with a model, ``target`` and a firmware that does nothing."""
    (folder / "net.tflite").write_bytes(tiny_network(1))
    (folder / "main.c").write_text("int main(void) { return 0; }\n")
    (folder / "mlfbuild.yml").write_text(
        f"mlfbuild: 1\ntargets: {{{target}}}\nmodels: {{net: {{source: net.tflite}}}}\n"
        "firmware: {app: {sources: [main.c]}}\n"
    )


def jobs_of(folder: Path) -> tuple[list[TargetJob], FirmwareJob]:
    """Return the targets of the project, and its only firmware."""
    project = load(folder / "mlfbuild.yml")
    targets = target_jobs(project)
    (job,) = firmware_jobs(project, targets)
    return targets, job


def test_chosen_ninja_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[..., str]) -> None:
    tool("cmake")
    write_project(tmp_path, "pc: {cpu: host}")
    ninja = tmp_path / "my-ninja"
    ninja.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\nexec {tool("ninja")} "$@"\n')
    ninja.chmod(0o755)
    monkeypatch.setenv("MLFBUILD_NINJA", str(ninja))
    targets, job = jobs_of(tmp_path)
    build(targets, [job])
    assert job.elf.is_file()
    assert "--version" in (tmp_path / "calls").read_text()
    (tmp_path / "calls").unlink()
    build(targets, [job])
    assert (tmp_path / "calls").is_file(), "CMake remembers it"


def test_a_build_heals_half_of_a_cmake_cache(tmp_path: Path, tool: Callable[..., str]) -> None:
    """A full disk leaves it while Ninja runs CMake again, here because of a changed input."""
    tool("cmake", "ninja")
    write_project(tmp_path, "pc: {cpu: host}")
    targets, job = jobs_of(tmp_path)
    build(targets, [job])
    image, cache = job.elf.read_bytes(), job.build / "CMakeCache.txt"
    cache.write_text(cache.read_text()[:-40] + "\nhalf")
    for path in tmp_path.rglob("CMakeLists.txt"):  # newer than build.ninja, and not in the future
        os.utime(path)
    build(targets, [job])
    assert "\nhalf" not in cache.read_text()
    assert job.elf.read_bytes() == image


def test_empty_compilation_database_is_reported(tmp_path: Path, tool: Callable[..., str]) -> None:
    """CMake leaves it on a full disk and exits with status 0."""
    tool("cmake", "ninja")
    write_project(tmp_path, "pc: {cpu: host}")
    targets, job = jobs_of(tmp_path)
    build(targets, [job])
    database = job.build / "compile_commands.json"
    database.write_bytes(b"")
    with raises(ProcessFailedError, "compile-commands-damaged", str(database)):
        check_flags(job)


def test_compiler_in_a_cmake_definition_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[..., str]
) -> None:
    tool("cmake", "ninja")
    write_project(tmp_path, "m4: {cpu: cortex-m4, board: mps2-an386}")
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", "/nowhere/gcc")
    targets, job = jobs_of(tmp_path)
    build(targets)
    with raises(ToolNotFoundError, "program-not-found", "/nowhere/gcc"):
        build_firmware(job)
    build_firmware(job, [f"MLFBUILD_ARM_NONE_EABI_GCC={tool('arm-none-eabi-gcc')}"])
    assert job.elf.is_file()


def test_a_program_that_nothing_starts_is_refused_before_it_is_compiled(
    tmp_path: Path, tool: Callable[..., str]
) -> None:
    tool("arm-none-eabi-gcc")
    write_project(tmp_path, "m4: {cpu: cortex-m4}")
    targets, job = jobs_of(tmp_path)
    for _ in range(2):
        with raises(UsageError, "start-up-code-missing", "firmware 'app' for target 'm4'") as caught:
            build(targets, [job])
        assert "board: mps2-an386" in caught.value.hint
        assert not list(job.build.rglob("*.obj"))
    (tmp_path / "main.c").write_text(
        "void _exit(int status) { for (;;) (void)status; }\nint main(void) { return 0; }\n"
    )
    build(targets, [job])
    assert job.elf.is_file()


def test_an_image_is_read_once_and_a_link_that_cannot_be_checked_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[..., str]
) -> None:
    tool("arm-none-eabi-gcc")
    repo = FirmwareRepo(tmp_path)
    repo.write("mlfbuild.yml", PROJECT.replace("[m4]}", "[m4], budget: {flash: 100k, stack: 2k}}"))
    project = load(tmp_path / "mlfbuild.yml")
    build(target_jobs(project))
    (job,) = firmware_jobs(project, target_jobs(project))
    read: list[Path] = []
    whole = report.image_sizes
    monkeypatch.setattr(report, "image_sizes", lambda job: read.append(job.elf) or whole(job))
    shown: list[str] = []
    for _ in range(2):
        build_firmware(job, show=shown.append)
        assert len(read) == 1
    assert [line.partition(": ")[2].partition(": ")[2].partition(":")[0] for line in shown.pop().splitlines()] == [
        "model alpha", "model beta",
    ], "main does not call them"  # fmt: skip

    repo.write("mlfbuild.yml", PROJECT)
    (job,) = firmware_jobs(load(tmp_path / "mlfbuild.yml"), target_jobs(project))
    own_map = "target_link_options(app PRIVATE LINKER:-Map=other.map)\n"
    repo.write("CMakeLists.txt", repo.read("CMakeLists.txt").decode() + own_map)
    job.linker_map.unlink()
    for _ in range(2):
        build_firmware(job, show=shown.append)
    not_checked = f"mlfbuild: app.elf: not checked: faults of the link: {job.linker_map}: "
    hint = "add target_link_options(app PRIVATE LINKER:-Map=%.map)"
    assert shown == [f"{not_checked}no such linker map; {hint}"], "once for each link"
    repo.replace("CMakeLists.txt", own_map, "")
    repo.replace("CMakeLists.txt", "include(", "add_compile_options(-flto)\ninclude(")
    build_firmware(job, show=shown.append)
    assert len(shown) == 2 and "model alpha: no code of it" in shown[1]
