"""What functions call, as the instructions of an image say."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.report.calls import calls_of
from mlfbuild.report.image import read_image
from mlfbuild.report.stack.objdump import read_program


def test_calls_and_last_jumps_of_an_image(image: Path) -> None:
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
