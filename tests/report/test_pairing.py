"""Constants and operators of two reports are paired by what they are, not by the number of their operator."""

from typing import Any

import pytest

from mlfbuild.library import Network
from mlfbuild.report.document.compare import OwnerChange, compare_reports
from mlfbuild.report.html.operators import earlier
from mlfbuild.report.html.owners import tree
from support import reports
from support.chain_networks import chain_case
from support.native import compile_bytes

Json = dict[str, Any]


def weights(number: int, size: int, tensor: str = "", source: str = "", content: str = "") -> Json:
    known = {"tensor": tensor, "source": source, "content": content}
    return {
        **reports.piece(f"tvmgen_kws_conv2d_{number}_packed", "weights", size),
        **{key: value for key, value in known.items() if value},
    }


def compared(before: list[Json], now: list[Json]) -> OwnerChange:
    old, new = (
        reports.report(reports.image("app for m4", [reports.owner("kws", *pieces)], [])) for pieces in (before, now)
    )
    (image,) = compare_reports(new, old).images
    (owner,) = image.owners
    return owner


def changes(owner: OwnerChange) -> list[tuple[str, int | None, int | None]]:
    return [(piece.name, piece.bytes.before, piece.bytes.now) for piece in owner.pieces]


FIRST = weights(0, 4000, "conv/kernel", "a1", "11")
SECOND = weights(1, 4000, "dense/kernel", "b2", "22")


@pytest.mark.parametrize(
    "now",
    [
        [weights(0, 4000, "dense/kernel", "b2", "22"), weights(1, 4000, "conv/kernel", "a1", "11")],
        [weights(0, 4000, "dense/kernel", "b2", "33"), weights(1, 4000, "conv/kernel", "a1", "44")],
        [weights(2, 4000, "x/kernel", "b2", "33"), weights(3, 4000, "y/kernel", "a1", "44")],
        [weights(2, 4000, "", "", "22"), weights(3, 4000, "", "", "11")],
    ],
    ids=["moved", "in another layout", "renamed", "with known bytes only"],
)
def test_constants_that_only_moved_are_repacked(now: list[Json]) -> None:
    owner = compared([FIRST, SECOND], now)
    assert owner.pieces == ()
    assert sorted(piece.bytes.now or 0 for piece in owner.repacked) == [4000, 4000]
    assert {piece.name for piece in owner.repacked} == {piece["name"] for piece in now}


def test_constants_at_their_place_are_not_mentioned() -> None:
    owner = compared([FIRST, SECOND], [FIRST, SECOND])
    assert (owner.pieces, owner.repacked) == ((), ())


def test_new_weights_of_the_same_size_are_not_repacked() -> None:
    trained = weights(1, 4000, "conv/kernel", "c3", "55")
    owner = compared([FIRST], [trained])
    assert (owner.pieces, owner.repacked) == ((), ())


def test_a_layer_that_is_inserted_is_the_only_new_one() -> None:
    inserted = weights(0, 700, "new/kernel", "d4", "66")
    owner = compared(
        [FIRST, SECOND], [inserted, *(weights(at, *rest) for at, rest in ((1, values(FIRST)), (2, values(SECOND))))]
    )
    assert changes(owner) == [("tvmgen_kws_conv2d_0_packed", None, 700)]
    assert len(owner.repacked) == 2


def values(piece: Json) -> tuple[int, str, str, str]:
    return piece["size"], piece["tensor"], piece["source"], piece["content"]


def test_a_layout_that_takes_more_bytes_is_a_change() -> None:
    owner = compared([FIRST], [weights(7, 4096, "conv/kernel", "a1", "77")])
    assert changes(owner) == [("tvmgen_kws_conv2d_7_packed", 4000, 4096)]
    assert owner.repacked == ()


def test_equal_names_do_not_pair_other_tensors() -> None:
    owner = compared([FIRST], [weights(0, 4100, "other/kernel", "e5", "88")])
    assert changes(owner) == [("tvmgen_kws_conv2d_0_packed", None, 4100), ("tvmgen_kws_conv2d_0_packed", 4000, None)]


def test_reports_without_tensors_are_paired_by_name() -> None:
    owner = compared([weights(0, 4000)], [weights(0, 4100, "conv/kernel", "a1", "11")])
    assert changes(owner) == [("tvmgen_kws_conv2d_0_packed", 4000, 4100)]


def test_the_treemap_compares_a_moved_constant_with_itself() -> None:
    moved = weights(9, 4000, "conv/kernel", "a1", "99")
    old, new = (
        reports.image("app for m4", [reports.owner("kws", *pieces)], [])
        for pieces in ([FIRST, SECOND], [moved, weights(0, 4400, "dense/kernel", "b2", "98")])
    )
    (kws,) = tree(new, old, "flash")["children"]
    leaves = {leaf["name"]: (leaf["old"], leaf["size"]) for leaf in kws["children"]}
    assert leaves == {moved["name"]: (4000, 4000), "tvmgen_kws_conv2d_0_packed": (4000, 4400)}
    assert (kws["old"], kws["size"]) == (8000, 8400)


# Operators -----------------------------------------------------------------------------------------------------------


def operator(name: str, size: int, instructions: int | None = None) -> Json:
    kinds = {"code": 0, "weights": size, "tables": 0}
    return {"name": name, "operator": "CONV_2D", "macs": size, "instructions": instructions, **kinds}


def test_fused_operators_are_compared_with_their_parts() -> None:
    parts, fused = (
        [operator("a", 10, 1), operator("b", 20, 2), operator("c", 30, 3)],
        [operator("a + b", 31, 4), operator("c", 30, 3)],
    )
    assert earlier(fused, parts) == [
        {"code": 0, "weights": 30, "tables": 0, "instructions": 3},
        {"code": 0, "weights": 30, "tables": 0, "instructions": 3},
    ]
    assert earlier(parts, fused)[:2] == [{}, {}]
    assert earlier([operator("d", 1)], parts) == [None]


@pytest.mark.parametrize("now_is_fused", [True, False])
def test_the_comparison_lists_fused_operators_once(now_is_fused: bool) -> None:
    parts, fused = [operator("a", 10), operator("b", 20), operator("c", 30)], [operator("a + b", 31), operator("c", 30)]
    sides = (fused, parts) if now_is_fused else (parts, fused)
    new, old = (
        reports.report(
            reports.image("app", [reports.owner("kws", networks=[{"module": "kws", "operators": side}])], [])
        )
        for side in sides
    )
    (change,) = compare_reports(new, old).images[0].owners[0].operators
    assert (change.name, change.operator) == ("a + b", "CONV_2D")
    assert (change.bytes.before, change.bytes.now) == ((30, 31) if now_is_fused else (31, 30))


# What the compiler records -------------------------------------------------------------------------------------------


def network_of(memory: str) -> Network:
    network = compile_bytes(chain_case(4).model, memory=memory).modules[0].network
    assert network is not None
    return network


def test_the_option_memory_changes_symbols_but_no_origin() -> None:
    fastest, smallest = network_of("fastest"), network_of("smallest")
    origins = [{(each.tensor, each.source) for each in network.constants} for network in (fastest, smallest)]
    assert origins[0] == origins[1]
    assert len(origins[0]) > 1
    assert {each.symbol for each in fastest.constants} != {each.symbol for each in smallest.constants}
