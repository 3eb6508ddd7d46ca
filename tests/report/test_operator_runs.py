"""Instructions of calls, their operators of the network, the table of a run, and budgets."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mlfbuild.library import Network, NetworkOperator, NetworkTensor
from mlfbuild.report.budgets.limits import BudgetRecord
from mlfbuild.report.budgets.runs import excesses
from mlfbuild.report.operators.cycles import TimedPart
from mlfbuild.report.operators.operator_runs import ModelRun, figures_of, operator_runs, short_name, total
from mlfbuild.report.operators.profile import CallCount, Profile
from mlfbuild.report.text.runs import run_text
from mlfbuild.targets import CPUS
from mlfbuild.timing import CycleCount

M4 = CPUS["cortex-m4"]
TENSOR = NetworkTensor("x", "int8", (1, 4), 4, "arena", 0, 0, 1)
OPERATORS = (
    NetworkOperator("net/a/Relu;net/a/BiasAdd", "CONV_2D", "conv", macs=3001, inputs=(0,)),
    NetworkOperator("net/flatten", "RESHAPE", "", macs=0, inputs=(0,)),
    NetworkOperator("net/b/Relu", "CONV_2D", "conv", macs=3001, inputs=(0,)),
    NetworkOperator("out", "SOFTMAX", "softmax", macs=0, inputs=(0,)),
)
NETWORK = Network(4, (TENSOR,), OPERATORS)
CALLS = (CallCount("conv", 6000), CallCount("conv", 5000), CallCount("softmax", 900))
NONE = BudgetRecord(Path("none.json"))
PROFILE = Profile("net", "mps2-an386", CALLS, 100, 64)


def run_of(network: Network | None, profile: Profile = PROFILE, model: str = "net", inputs: str = "") -> ModelRun:
    return ModelRun("m4", model, inputs, profile, operator_runs(profile, network, M4))


def instructions(image: int | None = None, **models: int) -> dict[str, dict[str, int]]:
    whole = {} if image is None else {"": image}
    return {name: {"instructions": count} for name, count in {**whole, **models}.items()}


def test_operators_without_function_have_no_call() -> None:
    first, second, last = operator_runs(PROFILE, NETWORK, M4)
    assert [each.number for each in (first, second, last)] == [0, 2, 3]
    assert (first.instructions, second.instructions, last.instructions) == (6000, 5000, 900)
    assert (second.name, second.operator, second.macs, second.bound) == ("net/b/Relu", "CONV_2D", 3001, 1501)
    assert (last.macs, last.bound) == (0, 0)
    assert [each.bound for each in operator_runs(PROFILE, NETWORK, CPUS["cortex-m23"])] == [3001, 3001, 0]


@pytest.mark.parametrize(
    "network", [None, Network(4, (TENSOR,), OPERATORS[:3]), Network(4, (TENSOR,), OPERATORS[::-1])]
)
def test_calls_that_do_not_match_the_network_have_no_names(network: Network | None) -> None:
    found = operator_runs(PROFILE, network, M4)
    assert [each.function for each in found] == ["conv", "conv", "softmax"]
    assert {(each.number, each.name, each.macs, each.bound) for each in found} == {(None, "", None, None)}


def test_unknown_bounds() -> None:
    nameless = NetworkOperator("node", "fused", "conv")
    (found,) = operator_runs(Profile("net", "b", CALLS[:1], 0, 0), Network(0, (), (nameless,)), M4)
    assert (found.operator, found.macs, found.bound) == ("fused", None, None)
    assert total([1, 2]) == 3 and total([1, None]) is None and total([]) == 0


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("net/conv2d/Relu;net/conv2d/BiasAdd", "conv2d/Relu"),
        ("Identity", "Identity"),
        ("net/a/Relu;x + net/b/Relu", "a/Relu + b/Relu"),
        ("bad\x1b[31m", "'bad\\x1b[31m'"),
        ("", ""),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short
    assert len(short_name(name * 100)) < 100


def test_table_of_a_run(golden: Callable[[str, str], None]) -> None:
    golden(run_text(run_of(NETWORK, inputs="net.npz")) + "\n", "table.txt")
    golden(run_text(run_of(NETWORK), verbose=True) + "\n", "verbose.txt")
    golden(run_text(run_of(None, model="other")) + "\n", "functions.txt")


def test_table_of_a_run_fits_a_terminal() -> None:
    large = Profile("net", "mps2-an386", (CallCount("conv", 123_456_789),), 0, 64)
    name = "net/" + "long" * 30
    network = Network(4, (TENSOR,), (NetworkOperator(name, "DEPTHWISE_CONV_2D", "conv", macs=98_765_432, inputs=(0,)),))
    lines = run_text(run_of(network, large)).splitlines()[1:]
    assert max(map(len, lines)) == 80 and lines[1].endswith("..")
    assert name in run_text(run_of(network, large), verbose=True)


def test_names_are_escaped() -> None:
    hostile = NetworkOperator("net/\x1b[2J", "CONV\r", "conv", macs=1, inputs=(0,))
    run = run_of(Network(4, (TENSOR,), (hostile,)), Profile("net", "b", CALLS[:1], 0, 0))
    for text in (run_text(run), run_text(run, verbose=True), *map(str, excesses([run], instructions(net=0), NONE))):
        assert text.replace("\n", "").isprintable()


def test_exceeded_budgets_of_instructions() -> None:
    runs = [run_of(NETWORK, inputs="net.npz"), run_of(None, Profile("b", "b", CALLS[2:], 100, 0), model="b")]
    assert figures_of(runs) == instructions(13_000, net=12_000, b=1_000)
    assert list(excesses(runs, instructions(13_000, net=12_000, b=1_000), NONE)) == []
    before = BudgetRecord(Path("none.json"), "", {"net": {"instructions": 11_000}, "": {"instructions": 13_001}})
    model, image = excesses(runs, instructions(12_999, net=11_000), before)
    assert (model.code, model.place) == ("instructions-over-budget", "model net")
    for fact in ("12,000", "the first case of net.npz", "1,000 over", "11,000", "1,000 more"):
        assert fact in model.reason
    assert "a/Relu (CONV_2D) 6,000, b/Relu (CONV_2D) 5,000, out (SOFTMAX) 900" in model.hint
    assert (image.code, image.place) == ("instructions-over-budget", "the models of the image")
    for fact in ("13,000", "1 over", "12,999", "1 fewer"):
        assert fact in image.reason
    assert "net 12,000, b 1,000" in image.hint


PART = TimedPart("stm32l4r5", 120_000_000, 12)
TIMED = replace(
    PROFILE,
    calls=tuple(
        replace(call, cycles=CycleCount(call.instructions, call.instructions // 2, 100, 900)) for call in CALLS
    ),
    part=PART,
    rest_cycles=CycleCount(60, 30, 10, 100),
)


def test_table_of_modelled_cycles(golden: Callable[[str, str], None]) -> None:
    golden(run_text(run_of(NETWORK, TIMED)) + "\n", "table.txt")


def test_a_run_without_calls_has_a_table_of_modelled_cycles() -> None:
    run = run_of(NETWORK, replace(TIMED, calls=()))
    assert run_text(run).splitlines()[-1].split()[0] == "200"


def test_exceeded_budgets_of_cycles_and_latency() -> None:
    run = run_of(NETWORK, TIMED, inputs="net.npz")
    cycles = sum(call.cycles.total for call in TIMED.calls if call.cycles) + 200
    latency = -(-cycles * 10**9 // PART.clock)
    assert figures_of([run])["net"] == {"instructions": 12_000, "cycles": cycles, "latency": latency}
    assert list(excesses([run], {"net": {"cycles": cycles, "latency": latency}}, NONE)) == []
    before = BudgetRecord(Path("none.json"), "", {"net": {"cycles": cycles - 3}})
    limits = {"net": {"cycles": cycles - 1, "latency": latency - 1}, "": {"latency": 1_000}}
    of_cycles, of_latency, of_image = excesses([run], limits, before)
    later = BudgetRecord(Path("none.json"), "", {"net": {"latency": latency + 1_000}})
    assert "1.000 us less than in the last build" in next(excesses([run], {"net": {"latency": 1}}, later)).reason
    assert [each.code for each in (of_cycles, of_latency)] == ["cycles-over-budget", "latency-over-budget"]
    for fact in (f"{cycles:,} cycles (modelled, +-12 %)", "stm32l4r5 at 120 MHz", "net.npz, 1 over", "3 more than in"):
        assert fact in of_cycles.reason
    assert "a/Relu (CONV_2D) 10,000, b/Relu (CONV_2D) 8,500" in of_cycles.hint, "the parts with most cycles"
    assert "(modelled, +-12 %)" in of_latency.reason and "0.001 us over" in of_latency.reason
    assert of_image.place == "the models of the image" and "over the budget of 1 us" in of_image.reason
    assert "net 2" in of_image.hint
    assert list(excesses([run_of(NETWORK)], limits, NONE)) == [], "a run without a microcontroller has no cycles"


def test_modules_of_one_model_add_up() -> None:
    runs = [run_of(NETWORK), run_of(NETWORK, inputs="two.npz")]
    assert figures_of(runs) == instructions(24_000, net=24_000)
    (found,) = excesses(runs, instructions(net=0), NONE)
    assert (found.code, found.place) == ("instructions-over-budget", "model net")
    assert all(fact in found.reason for fact in ("24,000 instructions for zeros and", "two.npz, 24,000 over"))
