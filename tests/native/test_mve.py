"""The int8 kernels for Helium: C on this machine and assembly on QEMU are bit-exact."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.library import Library
from mlfbuild.targets import CPUS
from support.board_cases import Job, clang_command, wrong_networks
from support.checks import board_jobs, check_kinds_on_host, check_on_host
from support.drawing import Case
from support.examples import first_on_push
from support.host_c import WARNINGS, run, write_tree
from support.mve_networks import KINDS
from support.native import compile_bytes, generated

NETWORKS = 8
SWEEP_NETWORKS = 150
RARE = {"DEPTHWISE_CONV_2D": (1008,)}
"""Further seeds by kind: rows of windows of three elements with channels that shift to the left and to the right."""

CALLS = {
    "CONV_2D": "mlf_conv2d_(pointwise_|strip_)?int8_mve",
    "CONV_2D 1x1": "mlf_(conv2d|kept)_pointwise_int8_mve",
    "CONV_2D small": "mlf_conv2d_4x2_int8_mve",
    "CONV_2D long": "mlf_dot_2x4_(near3|rows(3|6|12))_",
    "FULLY_CONNECTED": "mlf_(fully_connected|conv2d)_int8_mve",
    "DEPTHWISE_CONV_2D": "mlf_depthwise_(conv2d|planes)_int8_mve",
    "DEPTHWISE_CONV_2D 3x3": "mlf_depthwise_planes_int8_mve",
    "ADD": "mlf_add_(linear_)?int8_mve",
    "POOL_2D": "mlf_(average|max)_pool_int8_mve",
}
"""What the last layer of most networks of a kind calls."""


ROUNDINGS = {
    **dict.fromkeys(CALLS, ("relu", "right", "any")),
    "DEPTHWISE_CONV_2D": ("relu", "right", "any", "all"),
    "CONV_2D small": (),
    "CONV_2D long": ("right", "any"),
    "DEPTHWISE_CONV_2D 3x3": (),
    "ADD": ("relu", "right"),
    "POOL_2D": (),
}
"""The functions of a kind that must be among those called."""


def drawn(kind: str, seeds: Sequence[int]) -> list[Case]:
    return [KINDS[kind](seed, extreme=seed % 4 == 1) for seed in seeds]


def compiled(cases: Sequence[Case], kind: str, prefix: str = "net") -> list[Library]:
    """Return the libraries of ``cases``; more than half must use the tested kernels."""
    libraries = [compile_bytes(case.model, f"{prefix}{index}", "cortex-m55") for index, case in enumerate(cases)]
    sources = [generated(library) for library in libraries]
    assert sum(re.search(CALLS[kind], source) is not None for source in sources) > len(cases) // 2
    for rounding in ROUNDINGS[kind]:
        assert any(f"_{rounding}, " in source for source in sources), rounding
    return libraries


def test_c_equals_tensorflow_lite_micro() -> None:
    check_kinds_on_host(KINDS, range(NETWORKS), drawn, compiled)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_c_equals_tensorflow_lite_micro_for_many_cases(kind: str) -> None:
    seeds = range(NETWORKS, NETWORKS + SWEEP_NETWORKS)
    cases = drawn(kind, seeds)
    check_on_host(compiled(cases, kind), cases, seeds, optimise="-O1")


def check_on_board(seeds: Mapping[str, Sequence[int]], folder: Path, tool: Callable[[str], str], optimise: str) -> None:
    """Check the networks of each kind with ``seeds`` in one image."""
    jobs: list[Job] = []
    for kind, numbers in seeds.items():
        cases = drawn(kind, numbers)
        jobs += board_jobs(compiled(cases, kind, f"net{len(jobs)}_"), cases)
    assert wrong_networks(jobs, "cortex-m55", folder, tool, optimise=optimise) == []


def test_assembly_equals_tensorflow_lite_micro(tmp_path: Path, tool: Callable[[str], str]) -> None:
    seeds = {kind: [*range(100, 100 + NETWORKS), *RARE.get(kind, ())] for kind in KINDS}
    check_on_board(seeds, tmp_path, tool, "-O2")


@pytest.fixture(params=first_on_push(["gcc", "clang"]))
def helium_compiler(
    request: pytest.FixtureRequest, tool: Callable[[str], str], newest_clang: dict[str, str]
) -> list[str]:
    """Return the command of a compiler with its flags for the core."""
    if request.param == "gcc":
        return [tool("arm-none-eabi-gcc"), *CPUS["cortex-m55"].flags]
    return clang_command(newest_clang["MLFBUILD_CLANG"], "cortex-m55", tool)


def compile_together(cases: Sequence[Case], command: Sequence[str], folder: Path) -> Path:
    """Compile the networks as one file, whose kernels are compiled once, and return the object."""
    for index, case in enumerate(cases):
        write_tree(compile_bytes(case.model, f"net{index}", "cortex-m55"), folder)
    sources = sorted(path.name for path in (folder / "host/src").glob("*.c"))
    (folder / "all.c").write_text("".join(f'#include "host/src/{source}"\n' for source in sources))
    run([*command, "-I", "host/include", "-c", "all.c"], folder)
    return folder / "all.o"


def test_assembly_that_computes_addresses_is_aligned(helium_compiler: list[str], tmp_path: Path) -> None:
    cases = [KINDS[kind](seed) for kind in ("CONV_2D", "FULLY_CONNECTED") for seed in range(6)]
    with compile_together(cases, [*helium_compiler, "-Os", "-ffunction-sections"], tmp_path).open("rb") as file:
        sections = ELFFile(file).iter_sections()
        found = {each.name: each["sh_addralign"] for each in sections if re.match(r"\.text\.mlf_dot_\dx\d_", each.name)}
    assert len(found) > 4 and set(found.values()) == {4}, "ADR counts from a multiple of 4"


def test_compilers_for_helium_print_no_warnings(helium_compiler: list[str], tmp_path: Path) -> None:
    cases = [KINDS[kind](seed) for kind in KINDS for seed in range(4)]
    compile_together(cases, [*helium_compiler, *WARNINGS, "-O1"], tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("optimise", ["-O0", "-Os", "-O3"])
@pytest.mark.parametrize("kind", KINDS)
def test_assembly_equals_tensorflow_lite_micro_for_many_cases(
    kind: str, optimise: str, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    check_on_board({kind: range(200, 260)}, tmp_path, tool, optimise)
