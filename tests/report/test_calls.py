"""Calls of functions from the instructions of an image."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.report.operators.image_networks import calls_of
from mlfbuild.report.sizes.image import read_image
from mlfbuild.report.stack.pointers import read_program


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
