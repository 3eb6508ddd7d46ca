"""Multiply-accumulates of a network, and the use of its arena over time."""

from mlfbuild.library import Network, NetworkOperator, NetworkScratch, NetworkTensor


def tensor(name: str, offset: int, size: int, first: int, last: int, memory: str = "arena") -> NetworkTensor:
    return NetworkTensor(name, "int8", (size,), size, memory, offset, first, last)


TENSORS = (
    tensor("x", 0, 1000, 0, 0, "input"), tensor("a", 0, 100, 0, 1), tensor("b", 100, 50, 0, 2),
    tensor("over a", 0, 80, 1, 3), tensor("half of b", 125, 25, 2, 3), tensor("kept", 0, 500, 0, 3, "state"),
)  # fmt: skip
OPERATORS = (
    NetworkOperator("first", "CONV_2D", "tvmgen_net_conv2d_0", ("tvmgen_net_conv2d_0_filter",), 40),
    NetworkOperator("second", "ADD", "tvmgen_net_add_1", (), 0, scratch=NetworkScratch(150, 10)),
    NetworkOperator("third", "RESHAPE", "", (), 0),
    NetworkOperator("fourth", "FULLY_CONNECTED", "tvmgen_net_fully_connected_3", (), 2),
)
NET = Network(160, TENSORS, OPERATORS)


def test_bytes_in_use_count_once() -> None:
    assert NET.usage == (150, 160, 130, 105)
    assert NET.peak == 1


def test_macs_are_unknown_if_those_of_one_operator_are() -> None:
    assert NET.macs == 42
    assert Network(0, (), (*OPERATORS, NetworkOperator("fifth", "", "f"))).macs is None


def test_an_empty_network() -> None:
    assert (Network(0, (), ()).usage, Network(0, (), ()).peak, Network(0, (), ()).macs) == ((), 0, 0)


def test_renaming_changes_names_in_c() -> None:
    renamed = NET.renamed(lambda name: name.replace("_net_", "_other_"))
    assert [operator.function for operator in renamed.operators] == [
        "tvmgen_other_conv2d_0", "tvmgen_other_add_1", "", "tvmgen_other_fully_connected_3",
    ]  # fmt: skip
    assert renamed.operators[0].symbols == ("tvmgen_other_conv2d_0_filter",)
    assert (renamed.tensors, renamed.arena) == (NET.tensors, NET.arena)
