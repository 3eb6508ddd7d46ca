"""The drawing of a network: nodes do not overlap, and edges lead from writers to readers around nodes."""

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from mlfbuild.report.html.graph import NODE_HEIGHT, NODE_WIDTH, Block, blocks
from mlfbuild.report.html.layers import Vertex


def vertices(*reads: Sequence[int]) -> list[Vertex]:
    """Return vertices that each write the tensor with their number and read the given ones."""
    return [Vertex(index, tuple(tensors), (index,)) for index, tensors in enumerate(reads)]


CHAIN = vertices([], [0], [1], [2])
SKIP = vertices([], [0], [1], [0, 2], [3])
BRANCHES = vertices([], [0], [0], [2], [0], [1, 3, 4])
DENSE = vertices([], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3])
APART = vertices([], [0], [], [2])
TWO_INPUTS = vertices([], [], [0], [1, 2], [3])


def test_chain_is_divided_between_all_nodes() -> None:
    drawn = blocks(CHAIN)
    assert [[node.key for node in block.nodes] for block in drawn] == [[0], [1], [2], [3]]
    assert len({block.nodes[0].x for block in drawn}) == 1
    assert [len(block.lines) for block in drawn] == [1, 2, 2, 1]


def test_skip_connection_is_in_one_block() -> None:
    first, skip, last = blocks(SKIP)
    assert [[node.key for node in block.nodes] for block in (first, skip, last)] == [[0], [1, 2, 3], [4]]
    assert len({node.x for node in skip.nodes}) == 1
    around = [line for line in skip.lines if line.tensor == 0 and "Q" in line.path]
    assert len(around) == 1
    assert max(x for x, _ in points(around[0].path)) > skip.nodes[0].x + NODE_WIDTH


def test_branches_are_side_by_side() -> None:
    drawn = blocks(BRANCHES)
    tops = {node.key: (node.x, node.y) for node in drawn[1].nodes}
    assert len({tops[key][0] for key in (1, 2, 4)}) == 3
    assert len({tops[key][1] for key in (1, 2, 4)}) == 1
    assert tops[3][1] < tops[5][1]


def test_reads_before_writes_are_not_drawn() -> None:
    (block, _) = blocks([Vertex(0, (1,), (0,)), Vertex(1, (0,), (1,))])
    assert [line.tensor for line in block.lines] == [0]


def points(path: str) -> list[tuple[int, int]]:
    numbers = [int(number) for number in re.findall(r"-?\d+", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def check(network: list[Vertex]) -> None:
    drawn = blocks(network)
    assert drawn == blocks(network)
    assert sorted(node.key for block in drawn for node in block.nodes) == [vertex.key for vertex in network]
    expected = {(tensor, vertex.key) for vertex in network for tensor in vertex.reads if tensor < vertex.key}
    found = []
    for block in drawn:
        check_apart(block)
        found += [check_line(block, path.tensor, path.path, path.arrow) for path in block.lines]
    assert {end for end in found if end is not None} == expected


def check_apart(block: Block) -> None:
    corners = [(node.x, node.y) for node in block.nodes]
    for index, (x, y) in enumerate(corners):
        assert x >= 0 and y >= 0 and x + NODE_WIDTH <= block.width and y + NODE_HEIGHT <= block.height
        for other_x, other_y in corners[:index]:
            assert abs(x - other_x) >= NODE_WIDTH or abs(y - other_y) >= NODE_HEIGHT


def check_line(block: Block, tensor: int, path: str, arrow: bool) -> tuple[int, int] | None:
    """Check that a line begins and ends at nodes and crosses none; return (tensor, reader) if it ends here."""
    way = points(path)
    starts = [node for node in block.nodes if node.key == tensor]
    if starts:
        assert way[0] == (starts[0].x + NODE_WIDTH // 2, starts[0].y + NODE_HEIGHT)
    else:
        assert way[0][1] == 0
    for (x1, y1), (x2, y2) in pairwise(way):
        for node in block.nodes:
            across = min(x1, x2) < node.x + NODE_WIDTH and max(x1, x2) > node.x
            along = min(y1, y2) < node.y + NODE_HEIGHT and max(y1, y2) > node.y
            assert not (across and along), f"tensor {tensor} passes node {node.key}"
    if not arrow:
        assert way[-1][1] == block.height
        return None
    (x, y) = way[-1]
    ends = [node for node in block.nodes if node.y == y and node.x < x < node.x + NODE_WIDTH]
    return tensor, ends[0].key


@pytest.mark.parametrize("network", [CHAIN, SKIP, BRANCHES, DENSE, APART, TWO_INPUTS])
def test_lines_lead_from_writers_to_readers(network: list[Vertex]) -> None:
    check(network)


@given(st.lists(st.lists(st.integers(1, 9), max_size=4), min_size=1, max_size=14))
def test_any_network_is_drawn_whole(back: list[list[int]]) -> None:
    check(vertices(*(sorted({index - far for far in reach if far <= index}) for index, reach in enumerate(back))))


def test_a_network_without_operators_has_no_blocks() -> None:
    assert blocks([]) == ()
