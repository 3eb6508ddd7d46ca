"""The programs that the cross build uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.build.project_jobs import firmware_jobs, load, target_jobs
from mlfbuild.core.errors import ToolNotFoundError, UsageError
from mlfbuild.usecases.build import build_firmware, build_project as build
from support.errors import raises
from support.firmware_repo import tiny_network


def test_chosen_ninja_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]) -> None:
    tool("cmake")
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels: {net: {source: net.tflite}}\n"
        "firmware: {app: {sources: [main.c]}}\n"
    )
    ninja = tmp_path / "my-ninja"
    ninja.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\nexec {tool("ninja")} "$@"\n')
    ninja.chmod(0o755)
    monkeypatch.setenv("MLFBUILD_NINJA", str(ninja))
    project = load(tmp_path / "mlfbuild.yml")
    targets = target_jobs(project)
    (image,) = build(targets, firmware_jobs(project, targets)).firmware
    assert image.elf.is_file()
    assert "--version" in (tmp_path / "calls").read_text()
    (tmp_path / "calls").unlink()
    build(targets, firmware_jobs(project, targets))
    assert (tmp_path / "calls").is_file(), "CMake remembers it"


def test_compiler_in_a_cmake_definition_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[[str], str]
) -> None:
    for name in ("cmake", "ninja"):
        tool(name)
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4, board: mps2-an386}}\nmodels: {net: {source: net.tflite}}\n"
        "firmware: {app: {sources: [main.c]}}\n"
    )
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", "/nowhere/gcc")
    project = load(tmp_path / "mlfbuild.yml")
    targets = target_jobs(project)
    build(targets)
    (job,) = firmware_jobs(project, targets)
    with raises(ToolNotFoundError, "program-not-found", "/nowhere/gcc"):
        build_firmware(job)
    build_firmware(job, [f"MLFBUILD_ARM_NONE_EABI_GCC={tool('arm-none-eabi-gcc')}"])
    assert job.elf.is_file()


def test_a_program_that_nothing_starts_is_refused_before_it_is_compiled(
    tmp_path: Path, tool: Callable[[str], str]
) -> None:
    tool("arm-none-eabi-gcc")
    (tmp_path / "net.tflite").write_bytes(tiny_network(1))
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4}}\nmodels: {net: {source: net.tflite}}\n"
        "firmware: {app: {sources: [main.c]}}\n"
    )
    project = load(tmp_path / "mlfbuild.yml")
    targets = target_jobs(project)
    (job,) = firmware_jobs(project, targets)
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
