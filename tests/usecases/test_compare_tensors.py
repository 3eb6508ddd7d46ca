"""Pairs of equal tensors in two networks."""

import pytest

from mlfbuild.core.errors import UsageError
from mlfbuild.library import TensorInfo, TracedTensor
from mlfbuild.verify.compare_report import TensorPair, Traced, pair_ports, pair_traced
from support.errors import raises


def tensor(name: str, *shape: int, dtype: str = "int8") -> TensorInfo:
    size = 1
    for extent in shape:
        size *= extent
    return TensorInfo(name, dtype, size * (4 if dtype == "float32" else 1), shape)


def traced(*tensors: TensorInfo, model: str = "net", views: tuple[str, ...] = ()) -> Traced:
    return Traced(model, [TracedTensor(each, "", "" if each.name in views else f"f_{each.name}") for each in tensors])


def named(*pairs: tuple[int, int]) -> tuple[TensorPair, ...]:
    return tuple(TensorPair(first, second, by_name=True) for first, second in pairs)


def ordered(*pairs: tuple[int, int]) -> tuple[TensorPair, ...]:
    return tuple(TensorPair(first, second, by_name=False) for first, second in pairs)


def test_tensors_are_paired_by_name_in_any_order() -> None:
    first = traced(tensor("a", 4), tensor("b", 4), tensor("c", 8))
    assert pair_traced(first, traced(tensor("c", 8), tensor("a", 4), tensor("b", 4))) == named((0, 1), (1, 2), (2, 0))


def test_names_of_tvm_are_compared_without_the_module() -> None:
    first = traced(tensor("tvmgen_kws_fused_add", 4), tensor("tvmgen_kws_fused_relu", 4), model="kws")
    second = traced(tensor("tvmgen_default_fused_relu", 4), tensor("tvmgen_default_fused_add", 4), model="default")
    assert pair_traced(first, second) == named((0, 1), (1, 0))
    both = traced(tensor("tvmgen_net_a", 4), tensor("a", 4))
    assert pair_traced(both, traced(tensor("a", 4), tensor("b", 4))) == (*named((0, 0)), *ordered((1, 1)))


def test_same_name_with_different_types_is_no_pair() -> None:
    first, second = traced(tensor("a", 4)), traced(tensor("a", 2))
    assert pair_traced(first, second) == ()
    assert pair_traced(first, traced(tensor("a", 1, dtype="float32"))) == (), "as many bytes, another type"


def test_other_names_are_paired_by_order_within_type_and_shape() -> None:
    first = traced(tensor("a", 1, 4), tensor("b", 2, 2), tensor("c", 4, 1, 1), tensor("d", 8))
    second = traced(tensor("w", 2, 1, 2), tensor("x", 8, dtype="uint8"), tensor("y", 4), tensor("z", 1, 4))
    assert pair_traced(first, second) == ordered((0, 2), (1, 0), (2, 3))


def test_different_numbers_of_tensors_are_not_paired() -> None:
    first = traced(tensor("a", 4), tensor("b", 4), tensor("same", 4))
    assert pair_traced(first, traced(tensor("x", 4), tensor("same", 4))) == named((2, 1))


def test_views_are_not_paired() -> None:
    """A reshape that is not executed has no counterpart in other networks."""
    first = traced(tensor("pool", 1, 1, 64), tensor("flat", 64), views=("flat",))
    assert pair_traced(first, traced(tensor("mean", 64))) == ordered((0, 0))
    by_name = traced(tensor("flat", 64), views=("flat",))
    assert pair_traced(first, by_name) == named((1, 0))


def test_ports_are_paired_by_name_or_by_position() -> None:
    first = (tensor("x", 4), tensor("b/c", 2))
    assert pair_ports("input", first, (tensor("b_c", 2), tensor("x", 4))) == named((0, 1), (1, 0))
    assert pair_ports("input", first, (tensor("x", 4), tensor("other", 2))) == ordered((0, 0), (1, 1))
    assert pair_ports("input", first[:1], (TensorInfo("x", "int8", 4),)) == named((0, 0)), "a shape that is not told"


@pytest.mark.parametrize(
    ("second", "code", "facts"),
    [
        ((), "port-counts-differ", ["1 output", "0"]),
        ((tensor("y", 4, dtype="uint8"),), "port-types-differ", ["'y' int8 [4]", "'y' uint8 [4]"]),
        ((TensorInfo("z", "int8", 5),), "port-types-differ", ["'y' int8 [4]", "'z' int8 5 bytes"]),
    ],
)
def test_ports_that_do_not_match_are_rejected(second: tuple[TensorInfo, ...], code: str, facts: list[str]) -> None:
    with raises(UsageError, code) as caught:
        pair_ports("output", (tensor("y", 4),), second)
    assert all(fact in caught.value.reason for fact in facts)
