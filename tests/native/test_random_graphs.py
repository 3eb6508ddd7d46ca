"""Random networks of many operators, with sanitizers, equal TensorFlow Lite Micro; each runs on two cases."""

from collections.abc import Iterable

import numpy as np
import pytest

from mlfbuild.library.keys import ArenaMemory
from support.examples import examples
from support.host_c import run_many_on_host
from support.native import compile_bytes
from support.oracle import assert_equal, tflite_micro_cases
from support.random_graphs import random_case


def check(
    seeds: Iterable[int],
    steps: int,
    *,
    optimise: str = "-O0",
    sanitize: bool = True,
    io: str = "caller",
    memories: tuple[ArenaMemory, ...] = (),
) -> None:
    """Compare every output of the network of each of ``seeds`` on two cases, the second with reversed inputs."""
    jobs, expected = [], []
    for seed in seeds:
        network = random_case(seed, steps)
        cases = [network.inputs, tuple(np.flip(value).copy() for value in network.inputs)]
        library = compile_bytes(network.model, f"net{seed}", io=io, memories=memories)
        jobs += [(library, library.modules[0], case) for case in cases]
        expected += tflite_micro_cases(network.model, cases)
    results = run_many_on_host(jobs, optimise=optimise, sanitize=sanitize)
    for (_, module, _), got, wanted in zip(jobs, results, expected, strict=True):
        for info, value, right in zip(module.outputs, got, wanted, strict=True):
            assert_equal(value, right, f"{info.name} of\n{module.source_text.decode()}")


def test_random_networks() -> None:
    check(range(examples(40)), steps=16)


def test_random_networks_with_inputs_and_outputs_in_the_arena() -> None:
    check(range(40, 40 + examples(30)), steps=16, io="arena")


THREE = tuple(ArenaMemory(f"m{at}", size, f".m{at}", at, at) for at, size in enumerate((512, 2048, 1 << 20)))


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(1000, 2000, 50))
def test_many_random_networks(first: int) -> None:
    check(range(first, first + 50), steps=16)
    check(range(first, first + 50), steps=16, io="arena")
    check(range(first, first + 50), steps=16, io="arena", memories=THREE)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(2000, 2200, 20))
def test_large_random_networks(first: int) -> None:
    check(range(first, first + 20), steps=60)


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(3000, 3500, 50))
def test_random_networks_optimised(first: int) -> None:
    """Optimising the aliases between tensors does not change the results."""
    check(range(first, first + 50), steps=16, optimise="-O3", sanitize=False)
