"""No network takes more than benchmarks/results/counts.json says; ``benchmarks/instructions.py --update`` renews that.

Every case is compiled, built and run on QEMU, and its outputs are compared with those of TensorFlow Lite Micro.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from counting.firmware import GUARDED, compiler_version
from counting.measure import NETWORKS, Case, Result, measure
from counting.peers import best
from counting.report import PAGES, updated
from counting.results import CASES, COMMITTED, UPDATE, Committed, grown, load, save
from counting.roofline import model_of, roofline

KWS = Case("kws", "cortex-m4")
ACCEPTED = f"where that is worth it, `{UPDATE}` commits the new figures"


@pytest.fixture(scope="session")
def committed() -> Committed:
    return load()


@pytest.fixture(scope="session")
def ready(shared: Path, tool: Callable[..., str], committed: Committed) -> Committed:
    """What is committed, where this machine's compiler is the one that it was counted with."""
    assert (shared / "tools/count.py").exists()
    tool("arm-none-eabi-gcc", "qemu-system-arm", "gcc")
    reason = f"counts are committed for GCC {committed.compiler}, not {compiler_version()}"
    if compiler_version() != committed.compiler and os.environ.get("MLFBUILD_CI") != "1":
        pytest.skip(reason)
    assert compiler_version() == committed.compiler, f"{reason}; `{UPDATE}`"
    return committed


def swept(case: Case) -> bool:
    """Return whether only the sweep and ``make benchmark`` measure the case.

    On each push a network of convolutions is measured for the Cortex-M4 and the Cortex-M55, and the smallest one for
    other cores and another choice of memory.
    """
    return (case.network, case.cpu, case.memory) not in {
        ("kws", "cortex-m4", "balanced"),
        ("kws", "cortex-m55", "balanced"),
        ("ad", "cortex-m7", "balanced"),
        ("ad", "cortex-m33", "balanced"),
        ("ad", "cortex-m4", "smallest"),
    }


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.sweep] if swept(case) else []) for case in CASES], ids=str
)
def test_no_figure_grew(case: Case, ready: Committed, tmp_path: Path) -> None:
    problems = list(grown(case, ready.results.get(case), measure(case, tmp_path)))
    assert problems == [], "\n".join(problems)


def test_a_slower_kernel_is_noticed(ready: Committed, tmp_path: Path) -> None:
    """Without the core's extension, C takes the place of assembly: right numbers, in four times the instructions."""
    case = Case("ad", "cortex-m4")
    result = measure(case, tmp_path, flags=["-U__ARM_FEATURE_DSP"])
    problems = [line for line in grown(case, ready.results[case], result) if ": instructions " in line]
    old = f"{ready.results[case].instructions:,}"
    assert len(problems) == 1
    assert problems[0].startswith(
        f"ad on cortex-m4, memory: balanced: instructions {old} -> {result.instructions:,} (+3"
    )
    assert problems[0].endswith(f" %, at most 1 % unnoticed); {ACCEPTED}")


def result(**changed: int) -> Result:
    figures = {"instructions": 1000, "code": 1000, "constants": 1000, "arena": 1000, "stack": 1000}
    return Result(kinds={}, constants_ratio=1.0, arena_bound=1000, io=8, **{**figures, **changed})


@pytest.mark.parametrize(
    ("figure", "most", "percent"),
    [("instructions", 1010, 1), ("code", 1010, 1), ("constants", 1010, 1), ("arena", 1000, 0), ("stack", 1050, 5)],
)
def test_what_may_grow(figure: str, most: int, percent: int) -> None:
    assert list(grown(KWS, result(), result(**{figure: most}))) == []
    assert list(grown(KWS, result(), result(**{figure: 1}))) == []  # less is never wrong
    (line,) = grown(KWS, result(), result(**{figure: most + 1}))
    change = f"{figure} 1,000 -> {most + 1:,} (+{percent}.10 %, at most {percent} % unnoticed)"
    assert line == f"kws on cortex-m4, memory: balanced: {change}; {ACCEPTED}"


def test_what_was_nothing_may_not_become_something() -> None:
    (line,) = grown(KWS, result(arena=0), result(arena=16))
    assert "arena 0 -> 16 (from nothing, at most 0 % unnoticed)" in line


def test_a_case_that_nobody_counted_is_no_success() -> None:
    (line,) = grown(KWS, None, result())
    assert line == f"kws-m4-balanced: has no committed counts; add them with `{UPDATE}`"


# What is committed ---------------------------------------------------------------------------------------------------


def test_every_case_is_committed_and_written_in_one_way(committed: Committed, tmp_path: Path) -> None:
    assert list(committed.results) == list(CASES)
    save(committed, tmp_path / "counts.json")
    assert (tmp_path / "counts.json").read_bytes() == COMMITTED.read_bytes()


def test_kinds_of_operators_add_up_to_the_counted_instructions(committed: Committed) -> None:
    assert [
        str(case) for case, r in committed.results.items() if r.kinds and sum(r.kinds.values()) != r.instructions
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_have_the_committed_figures(page: Path, committed: Committed, shared: Path) -> None:
    assert shared.is_dir()  # the roofline is computed from the networks
    text = page.read_text()
    assert "<!-- counts: " in text
    assert updated(text, committed) == text, f"differs from the results; {UPDATE}"
    first = next(iter(committed.results))
    changed = {**committed.results, first: replace(committed.results[first], instructions=1, arena=1)}
    # These have only figures of other benchmarks, whose tests hold them.
    others = page.name in {"latency.md", "field-updates.md", "evidence.md"}
    assert (updated(text, replace(committed, results=changed)) == text) == others


INSTRUCTIONS = {
    "cortex-m0plus": {"kws": 15e6, "ic": 52e6, "ad": 1.3e6, "vww": 26e6},
    "cortex-m4": {"kws": 4.4e6, "ic": 16.5e6, "ad": 0.38e6, "vww": 13.0e6},
    "cortex-m7": {"kws": 4.4e6, "ic": 16.5e6, "ad": 0.38e6, "vww": 13.0e6},
    "cortex-m55": {"kws": 0.95e6, "ic": 2.7e6, "ad": 0.075e6, "vww": 3.2e6},
}
CODE = {"kws": 16, "ic": 14, "ad": 4, "vww": 20}
SMALLEST = {"kws": 12.5, "ic": 36, "ad": 0.75, "vww": 40}
LARGER_FILTERS = {("ic", "cortex-m4"), ("ic", "cortex-m33")}
"""Networks with 3x3 filters whose weights are stored two to a number, for a tenth fewer cycles."""
PEERS_ARENA = {"kws": 17_152, "ic": 49_728, "ad": 768, "vww": 55_296}


@pytest.mark.parametrize("network", CODE)
def test_int8_networks_keep_the_promises(network: str, committed: Committed) -> None:
    results = committed.results
    for cpu, most in INSTRUCTIONS.items():
        assert results[Case(network, cpu)].instructions <= most[network]
    assert results[Case(network, "cortex-m4")].code <= CODE[network] * 1024
    for case, figures in results.items():
        if case.network == network:
            assert figures.constants_ratio <= (1.13 if (network, case.cpu) in LARGER_FILTERS else 1.05)
            assert figures.stack < 1024
            assert figures.arena <= PEERS_ARENA[network]
            fastest = results[Case(network, case.cpu)].instructions
            assert figures.instructions <= 1.3 * fastest
    assert results[Case(network, "cortex-m4", "smallest")].arena <= SMALLEST[network] * 1024


@pytest.mark.parametrize("network", [network for network in NETWORKS if network.endswith("_f32")])
@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m7", "cortex-m55"])
def test_float_networks_are_a_quarter_below_every_peer(network: str, cpu: str, committed: Committed) -> None:
    peer = best(network, cpu)
    assert peer is not None
    assert committed.results[Case(network, cpu)].instructions <= 0.75 * (peer.instructions(cpu) or 0)


def test_every_core_of_the_benchmark_has_a_board() -> None:
    assert {case.cpu for case in CASES} == {*GUARDED, "cortex-m0plus"}


ROOFLINES = {
    "kws": (3_423_332, 779_664),
    "ic": (12_886_477, 2_378_175),
    "ad": (332_078, 42_003),
    "vww": (9_889_148, 2_277_720),
}


@pytest.mark.parametrize(("network", "totals"), ROOFLINES.items())
def test_the_roofline_is_that_of_the_published_table(network: str, totals: tuple[int, int], shared: Path) -> None:
    assert shared.is_dir()
    for cpu, total in zip(("cortex-m4", "cortex-m55"), totals, strict=True):
        kinds = roofline(Case(network, cpu).graph(), model_of(cpu))
        assert sum(kinds.values()) == pytest.approx(total, abs=1)
