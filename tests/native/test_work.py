"""The work of the compiler grows with the operators of a network, and the searches for a small plan are limited."""

import pytest

from mlfbuild.native.graph.ops import Add
from support.native import compile_bytes, compile_network
from support.size_networks import FAMILIES
from support.sketch import Sketch
from support.steps import assert_linear, calls

_SEARCHES = 4_000_000
"""Calls of all searches together: they stop after as many steps in a large network as in a small one."""
_LAYER = 36_000
"""Calls for each layer."""
_SIZES = (5, 10, 20, 40, 80, 120, 160, 200, 300, 400)


@pytest.mark.parametrize("tensors", [500, pytest.param(2000, marks=pytest.mark.sweep)])
def test_passes_and_plans_are_linear(tensors: int) -> None:
    def work(count: int) -> object:
        s = Sketch()
        tensor = s.tensor("x", 1, 4)
        for index in range(count):
            tensor = s.node(Add(), tensor, tensor, s.tensor(f"t{index}", 1, 4))
        return compile_network(s.graph(["x"], [tensor]))

    assert_linear(work, tensors // 4)


@pytest.mark.sweep
@pytest.mark.parametrize("layers", _SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_forty_networks_of_all_sizes_take_limited_work(family: str, layers: int) -> None:
    model = FAMILIES[family](layers)
    assert calls(lambda: compile_bytes(model)) <= _SEARCHES + _LAYER * layers
