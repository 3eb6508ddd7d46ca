import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from support.command import Folder
from support.desk import write_desk
from support.libraries import graph_library, native_library

IMAGE_SOURCES = {
    "alpha.c": "static const char tvmgen_alpha_filter[1000] = {1};\n"
    "static char tvmgen_alpha_workspace[2048];\n"
    "int tvmgen_alpha_run(int at) { return tvmgen_alpha_workspace[at]++ + tvmgen_alpha_filter[at]; }\n",
    "helper.c": "int helper(int at) { return at * 3; }\n",
    "main.c": "int tvmgen_alpha_run(int), helper(int);\n"
    "void _start(int at) { for (;;) at = tvmgen_alpha_run(helper(at)); }\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # worker processes outlive a test and keep its folder
    return Folder(tmp_path, capsys)


@pytest.fixture
def host_tools(tool: Callable[..., str]) -> None:
    """Require the tools for builds for this machine."""
    tool("cmake", "ninja", "gcc")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """A copy of examples/boards whose device is QEMU, driven through GDB."""
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm", "gdb-multiarch")
    return write_desk(tmp_path_factory.mktemp("desk") / "desk")


@pytest.fixture(scope="session")
def linked(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """Return a folder with ``app.elf`` and its map, from a build without mlfbuild."""
    folder = tmp_path_factory.mktemp("linked")
    gcc = [tool("arm-none-eabi-gcc"), "-mcpu=cortex-m4", "-mthumb", "-Os"]
    for name, text in IMAGE_SOURCES.items():
        (folder / name).write_text(text)
        subprocess.run([*gcc, "-c", name], cwd=folder, check=True)
    for library, member in (("mlf_alpha", "alpha.o"), ("helper", "helper.o")):
        subprocess.run([tool("arm-none-eabi-ar"), "rcs", f"lib{library}.a", member], cwd=folder, check=True)
    libraries = ["main.o", "libmlf_alpha.a", "libhelper.a"]
    subprocess.run([*gcc, "-nostdlib", "-Wl,-Map=%.map", *libraries, "-o", "app.elf"], cwd=folder, check=True)
    return folder


@pytest.fixture
def bare(folder: Folder, linked: Path) -> Folder:
    """Return a folder with the image and without a project file."""
    (folder.root / "mlfbuild.yml").unlink()
    for name in ("app.elf", "app.elf.map"):
        shutil.copy(linked / name, folder.root)
    return folder


@pytest.fixture
def archives(folder: Folder) -> Folder:
    """Return a folder with ``tiny.tar``, ``net.tar`` (a graph), ``both.tar`` and ``junk.tar``."""
    folder.write("tiny.tar", pack_archive(native_library("tiny")))
    folder.write("net.tar", pack_archive(graph_library("net")))
    folder.write("both.tar", pack_archive(native_library("one", "two")))
    folder.write("junk.tar", b"junk" * 300)
    return folder
