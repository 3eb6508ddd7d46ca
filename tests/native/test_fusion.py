"""Operators executed row by row: all kinds of chains equal TensorFlow Lite Micro; the effect of ``memory``."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.compilers import compiler_called
from mlfbuild.library import CompileRequest, Library
from mlfbuild.native.graph.ops import Add, Conv2D
from mlfbuild.native.lowering.chains import Reach, follows, plan_chain, stages_of
from mlfbuild.native.passes import fusion
from mlfbuild.targets import CPUS
from support.board_cases import wrong_networks
from support.chain_networks import branched_case, chain_case
from support.checks import board_jobs, check_on_host
from support.drawing import Case
from support.examples import first_on_push
from support.host_c import run_cases_on_host
from support.native import compile_bytes, generated
from support.sketch import Sketch

NETWORKS = 7
LIMITS = {
    "kws_int8": (17_152, 12_800),
    "ic_int8": (49_728, 36_864),
    "ad_int8": (768, 768),
    "vww_int8": (55_296, 40_960),
}
"""Limits of the arena in bytes: for balanced, which the best other tool needs, and for smallest."""


@pytest.fixture
def whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also execute small networks row by row, although calls cost more than the rest."""
    monkeypatch.setitem(fusion.MOST_EXTRA, "smallest", 1e9)


def compiled(cases: Sequence[Case], cpu: str) -> list[Library]:
    """Return the libraries of ``cases``, at least half of which must have chains."""
    libraries = [compile_bytes(case.model, f"net{at}", cpu, "smallest") for at, case in enumerate(cases)]
    chained = [library for library in libraries if "struct mlf_line_buffer" in generated(library)]
    assert len(chained) >= len(cases) / 2
    return libraries


WITHOUT_COPIES = 151
"""A network with a chain that begins with a window without padding, which is read in place."""


def check_chains(seeds: Sequence[int], cpu: str, *, quantized: bool) -> None:
    cases = [chain_case(seed, quantized=quantized) for seed in seeds]
    check_on_host(compiled(cases, cpu), cases, seeds)


KINDS = (("cortex-m4", True), ("cortex-m55", True), ("cortex-m3", True), ("cortex-m4", False))


@pytest.mark.usefixtures("whatever_it_costs")
@pytest.mark.parametrize(("cpu", "quantized"), first_on_push(KINDS, 2))
def test_chains_equal_tensorflow_lite_micro(cpu: str, quantized: bool) -> None:
    portable = cpu == "cortex-m3" or not quantized  # each call is expanded in place, which takes long to build
    seeds = range(NETWORKS // 2 if portable else NETWORKS)
    check_chains([*seeds, *([WITHOUT_COPIES] if quantized else [])], cpu, quantized=quantized)


@pytest.mark.sweep
@pytest.mark.usefixtures("whatever_it_costs")
@pytest.mark.parametrize("first", range(100, 300, 20))
@pytest.mark.parametrize(("cpu", "quantized"), KINDS)
def test_chains_equal_tensorflow_lite_micro_for_many_cases(first: int, cpu: str, quantized: bool) -> None:
    check_chains(range(first, first + 20), cpu, quantized=quantized)


@pytest.mark.usefixtures("whatever_it_costs")
@pytest.mark.parametrize("cpu", first_on_push(["cortex-m4", "cortex-m55"]))
def test_chains_with_branches_equal_tensorflow_lite_micro(cpu: str) -> None:
    cases = [branched_case(seed) for seed in range(4)]
    libraries = compiled(cases, cpu)
    assert any("MAX_POOL_2D + ADD" in text or "PAD + ADD" in text for text in map(generated, libraries))
    check_on_host(libraries, cases, range(4))


@pytest.mark.usefixtures("whatever_it_costs")
@pytest.mark.parametrize("cpu", first_on_push(["cortex-m55", "cortex-m4"]))
def test_chains_run_on_boards(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    cases = [chain_case(seed) for seed in range(24, 24 + NETWORKS)]
    assert wrong_networks(board_jobs(compiled(cases, cpu), cases), cpu, tmp_path, tool, optimise="-O2") == []


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m55", "cortex-m4"]))
@pytest.mark.parametrize("model", LIMITS)
def test_memory_option_trades_arena_for_instructions(shared: Path, model: str, cpu: str) -> None:
    libraries = [compile_model(shared, model, cpu, memory) for memory in ("fastest", "balanced", "smallest")]
    fastest, balanced, smallest = (library.modules[0].main[0].workspace_size for library in libraries)
    assert fastest >= balanced >= smallest
    assert balanced <= LIMITS[model][0]
    assert smallest <= LIMITS[model][1]
    chained = ["struct mlf_line_buffer" in generated(library) for library in libraries]
    assert chained == [False, balanced < fastest, smallest < fastest]
    notes = [[text for text in library.modules[0].notes if "has no effect" in text] for library in libraries]
    assert [len(found) for found in notes] == [0, 0, smallest == balanced]
    if smallest == balanced:
        network = libraries[2].modules[0].network
        assert network is not None
        assert f"{network.usage[network.peak]:,} bytes, in use while operator {network.peak} " in notes[2][0]
    if (model, cpu) == ("ic_int8", "cortex-m4"):
        assert balanced < 0.75 * fastest  # residual blocks; kernels for Helium overwrite their input anyway
    if model == "vww_int8":
        assert smallest < 0.5 * fastest  # an image that is larger than all that follow it


@pytest.mark.parametrize(("model", "cpu"), [("ic_int8", "cortex-m4"), ("vww_int8", "cortex-m55")])
def test_smallest_arenas_give_the_same_numbers(shared: Path, model: str, cpu: str, tool: Callable[[str], str]) -> None:
    tool("gcc")
    vectors = np.load(shared / "golden" / f"{model}.npz")
    library = compile_model(shared, model, cpu, "smallest")
    got = np.stack(
        [case[0] for case in run_cases_on_host(library, [[case] for case in vectors["in0"][:3]], optimise="-O1")]
    )
    np.testing.assert_array_equal(got, vectors["out0"][:3].reshape(got.shape))


def compile_model(shared: Path, model: str, cpu: str, memory: str) -> Library:
    source = shared / "models" / f"{model}.tflite"
    return compiler_called("native").compile(CompileRequest(model, source, CPUS[cpu], options={"memory": memory}))


@pytest.mark.parametrize(("cpu", "expected"), [("cortex-m4", ("64", "16")), ("cortex-m33", ("128", "5"))])
def test_a_chain_has_few_rows_if_all_filters_then_fit_into_ram(
    shared: Path, cpu: str, expected: tuple[str, str]
) -> None:
    """On a Cortex-M4, whose loads from flash and RAM do not overlap; the arena is the same."""
    library = compile_model(shared, "ic_int8", cpu, "balanced")
    fields = re.findall(
        r"\.rows = (\d+),\s+\.inputs = 144,(?:\s+\.\w+ = -?\d+,){4}\s+\.copied = (\d+)", generated(library)
    )
    assert fields[:2] == [expected] * 2
    assert library.modules[0].main[0].workspace_size == 28_288


def test_comment_of_a_function_names_its_operators(shared: Path) -> None:
    text = generated(compile_model(shared, "ic_int8", "cortex-m4", "balanced"))
    assert "/* CONV_2D + CONV_2D + ADD int8[1,32,32,16] -> int8[1,32,32,16]\n" in text
    assert "/* CONV_2D + ADD int8[1,32,32,16], int8[1,16,16,32] -> int8[1,16,16,32]\n" in text


def test_rows_of_each_step() -> None:
    """Two windows of 3x3, the second with stride 2: the rows that each operator computes in each step."""
    s = Sketch()
    s.tensor("x", 1, 12, 4, 2)
    padding = ((1, 1), (1, 1))
    s.node(Conv2D(padding=padding), "x", s.weights("w", 2, 3, 3, 2), s.tensor("y", 1, 12, 4, 2))
    s.node(Conv2D(padding=padding, stride=(2, 2)), "y", s.weights("v", 2, 3, 3, 2), s.tensor("z", 1, 6, 2, 2))
    first, second = stages_of(s.graph(["x"], ["z"]))
    assert first is not None
    assert second is not None
    assert (first.reach, second.reach) == (Reach(3, 1, 1, 1), Reach(3, 2, 1, 1))
    chain = plan_chain([first, second], 2, in_place=True)
    assert chain is not None
    assert [(lines.count, lines.kept, lines.lead) for lines in chain.lines] == [(4, 2, 1), (4, 1, 0), (2, 0, 0)]
    assert (chain.first_step, chain.steps) == (-1, 3)
    assert plan_chain([first, second], 4, in_place=True) is None  # 6 rows are no whole number of steps


def test_image_that_is_added_later_stays_in_its_line_buffer() -> None:
    s = Sketch()
    s.tensor("x", 1, 8, 4, 2)
    for source, output in ("xa", "ab", "bc", "cd"):
        weights = s.weights(f"w{output}", 2, 3, 3, 2)
        s.node(Conv2D(padding=((1, 1), (1, 1))), source, weights, s.tensor(output, 1, 8, 4, 2))
    s.node(Add(), "d", "a", s.tensor("e", 1, 8, 4, 2))
    chained = [stage for stage in stages_of(s.graph(["x"], ["e"])) if stage is not None]
    assert follows(chained[4], chained[2:3]) is None  # reads neither the input nor the output of that
    assert follows(chained[4], chained[3:4]) == chained[4]  # adds a complete image
    chain = plan_chain(chained, 1, in_place=False)
    assert chain is not None
    assert chain.operands == (0, 0, 0, 0, 1)
    rows = [(lines.kept, lines.lead) for lines in chain.lines]
    assert rows == [(2, 4), (3, 3), (2, 2), (2, 1), (0, 0), (0, 0)]
    assert chain.lines[1].offset(1) == 8  # where the convolution begins to read; the row before is for the addition


def test_output_never_overwrites_rows_that_are_read_later() -> None:
    s = Sketch()
    s.tensor("x", 1, 8, 4, 2)
    s.node(Conv2D(), "x", s.weights("w", 4, 1, 1, 2), s.tensor("y", 1, 8, 4, 4))
    s.node(Conv2D(padding=((1, 1), (1, 1))), "y", s.weights("v", 8, 3, 3, 4), s.tensor("z", 1, 8, 4, 8))
    first, second = stages_of(s.graph(["x"], ["z"]))
    assert first is not None
    assert second is not None
    growing = plan_chain([first], 2, in_place=True)
    assert growing is not None
    assert growing.backward
    assert plan_chain([second], 2, in_place=True) is None  # needs rows above and below
    assert plan_chain([second], 2, in_place=False) is not None
