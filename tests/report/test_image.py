"""Sections and symbols of an ELF file, compared with binutils."""

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core.errors import InputFileError
from mlfbuild.report.operators.image_networks import calls_of
from mlfbuild.report.sizes.image import Berkeley, read_image
from mlfbuild.report.stack.pointers import read_program
from support.errors import raises


def test_sizes_agree_with_the_size_program(image: Path, tool: Callable[[str], str]) -> None:
    tool("arm-none-eabi-gcc")
    printed = subprocess.run(["arm-none-eabi-size", str(image)], capture_output=True, text=True, check=True).stdout
    text, data, bss = map(int, printed.splitlines()[1].split()[:3])
    found = read_image(image)
    assert found.berkeley == Berkeley(text, data, bss)
    assert (found.flash, found.ram) == (text + data, data + bss)


def test_flash_and_ram_of_a_section(image: Path) -> None:
    sections = {section.name: section for section in read_image(image).sections}
    assert (sections[".text"].flash, sections[".text"].ram) == (sections[".text"].size, 0)
    assert sections[".text"].code and not sections[".rodata"].code
    assert (sections[".data"].flash, sections[".data"].ram) == (100, 100)
    assert (sections[".bss"].flash, sections[".bss"].ram) == (0, 2048 + 64 + 512)
    assert sections[".stack"].ram == 4096


def test_symbols_are_sorted_and_without_the_thumb_bit(image: Path) -> None:
    symbols = read_image(image).symbols
    assert [symbol.address for symbol in symbols] == sorted(symbol.address for symbol in symbols)
    run = next(symbol for symbol in symbols if symbol.name == "tvmgen_alpha_run")
    assert run.function and run.address % 2 == 0 and run.size > 0


def test_other_files_are_not_read_as_images(tmp_path: Path, image: Path, tool: Callable[[str], str]) -> None:
    cases = {
        "missing.elf": (None, ""),
        "text.elf": (b"hello", "not-an-elf-image"),
        "cut.elf": (image.read_bytes()[:200], "image-damaged"),
        "object.elf": ((image.parent / "main.c.obj").read_bytes(), "image-not-linked"),
    }
    for name, (content, code) in cases.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(InputFileError) as raised:
            read_image(tmp_path / name)
        assert raised.value.code == code or not code, name
        assert str(raised.value).startswith(str(tmp_path / name)) and "\n" not in str(raised.value), name
    strip = tool("arm-none-eabi-gcc").removesuffix("gcc") + "strip"
    subprocess.run([strip, str(image), "-o", str(tmp_path / "stripped.elf")], check=True)
    with raises(InputFileError, "image-stripped", "stripped.elf"):
        read_image(tmp_path / "stripped.elf")


@given(st.data())
def test_damaged_images_are_refused_or_read(image: Path, tmp_path_factory: pytest.TempPathFactory, data) -> None:
    content = bytearray(image.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.elf"
    path.write_bytes(content)
    with contextlib.suppress(InputFileError):
        read_image(path)


# Calls of functions from the instructions of an image.


def test_calls_and_tail_calls_of_an_image(image: Path) -> None:
    program = read_program(image)
    assert program is not None
    functions = {symbol.name: symbol.address for symbol in read_image(image).symbols if symbol.function}
    names = {address: name for name, address in functions.items()}
    found = calls_of(program, functions.values())
    called = {names[caller]: {names[to] for to in targets} for caller, targets in found.items()}
    assert called == {
        "Reset_Handler": {"main"},
        "main": {"tvmgen_alpha_run", "tvmgen_beta_run", "helper"},
        "tvmgen_alpha_run": {"tvmgen_alpha_conv2d_0"},
        "tvmgen_alpha_conv2d_0": set(),
        "tvmgen_beta_run": set(),
        "helper": set(),
    }
    assert calls_of(program, [1]) == {1: frozenset()}, "where no function begins"


@pytest.mark.parametrize("flags", [["-mcpu=cortex-m4"], ["-mcpu=cortex-m55", "-mpure-code"]], ids=["literal", "movw"])
def test_functions_that_are_called_by_address(tmp_path: Path, tool: Callable[[str], str], flags: list[str]) -> None:
    (tmp_path / "app.c").write_text(
        "__attribute__((noipa)) static int inner(int at) { return at * 3; }\n"
        "__attribute__((noipa)) static int apply(int (*what)(int), int at) { return what(at) + 1; }\n"
        "int _start(int at) { return apply(inner, at) + 2; }\n"
    )
    gcc = [tool("arm-none-eabi-gcc"), *flags, "-mthumb", "-O2", "-nostdlib"]
    subprocess.run([*gcc, "app.c", "-o", "app.elf"], cwd=tmp_path, check=True)
    program, symbols = read_program(tmp_path / "app.elf"), read_image(tmp_path / "app.elf").symbols
    assert program is not None
    functions = {symbol.name: symbol.address for symbol in symbols if symbol.function}
    found = calls_of(program, functions.values())
    assert found[functions["_start"]] == {functions["apply"], functions["inner"]}
    assert found[functions["apply"]] == found[functions["inner"]] == frozenset()
