"""Coordinates of the nodes and edges of a network's drawing.

Operators are in layers from top to bottom, each below the operators that it reads, and in lanes from left to right, as
in a log of git: the longest path keeps its lane, branches and residuals take lanes at its right. If a single tensor
passes from one layer to the next, the drawing is divided there into blocks, which the page flows in columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlfbuild.report.html.layers import Vertex, block_numbers, bounds_of, layers_of, writers

NODE_WIDTH = 166
NODE_HEIGHT = 40
_LINE_WIDTH = 20
"""Width of a lane that has only edges."""
_MARGIN = 6
_GAP = 34
_LABEL = 20
"""Height of the label with the shape in the gap below a node."""
_ENTER = 8
"""Space above a block that begins with an edge."""
_TRACK = 8
"""Distance of parallel edges in a gap."""
_PORT = 16
"""Distance of edges that end at one node."""


@dataclass(frozen=True)
class Placed:
    """The upper left corner of a node, in pixels."""

    key: int
    x: int
    y: int


@dataclass(frozen=True)
class DrawnEdge:
    """A tensor between operators; ``path`` is an SVG path, ``arrow`` is false if it continues in another block."""

    tensor: int
    path: str
    arrow: bool
    end: tuple[int, int]

    @property
    def head(self) -> str:
        """The path of the arrow's head."""
        x, y = self.end
        return f"M{x - 4} {y - 6}L{x + 4} {y - 6}L{x} {y}Z"


@dataclass(frozen=True)
class Block:
    """A part of the drawing, in pixels."""

    width: int
    height: int
    nodes: tuple[Placed, ...]
    lines: tuple[DrawnEdge, ...]


def blocks(vertices: Sequence[Vertex]) -> tuple[Block, ...]:
    """Return the drawing of a network, whose ``vertices`` are in an order of execution.

    Reads of a tensor before it is written are ignored. The same vertices produce the same drawing.

    Blocks follow each other from top to bottom; an edge between two of them ends at the edge of the first and goes on
    in the second, as ``DrawnEdge.arrow`` shows. All lengths are whole pixels.
    """
    layers = layers_of(vertices)
    writer = writers(vertices)
    # Sorted, so that the same vertices give the same drawing.
    edges = sorted({
        (writer[tensor], reader, tensor)
        for reader, vertex in enumerate(vertices)
        for tensor in vertex.reads
        # Reports are not trusted: a reader before its writer would make a cycle.
        if writer.get(tensor, reader) < reader
    })  # fmt: skip
    bounds = bounds_of(layers, edges)
    inside: dict[int, list[int]] = defaultdict(list)
    block_of = block_numbers(layers, bounds)
    for index, block in enumerate(block_of):
        inside[block].append(index)
    by_block: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for edge in edges:
        # An edge that crosses several blocks has a part in each.
        for block in range(block_of[edge[0]], block_of[edge[1]] + 1):
            by_block[block].append(edge)
    return tuple(_Drawing(vertices, layers, inside[block], by_block[block]).block() for block in sorted(inside))


@dataclass
class _Carried:
    """A lane that a tensor takes from its writer down to its last reader."""

    lane: int
    tensor: int
    source: int
    readers: set[int] = field(default_factory=set)


_ENTRY, _EXIT = -1, -2


class _Drawing:
    """The drawing of one block: lanes first, then coordinates, then lines."""

    def __init__(
        self, vertices: Sequence[Vertex], layers: Sequence[int], inside: list[int], edges: list[tuple[int, int, int]]
    ) -> None:
        self._vertices = vertices
        here = set(inside)
        first = min(layers[index] for index in inside)
        self._layer = {index: layers[index] - first + 1 for index in inside}
        self._last = max(self._layer.values())
        # Two vertices above and below the block stand for everything outside of it.
        self._layer[_ENTRY], self._layer[_EXIT] = 0, self._last + 1
        self._edges = sorted({
            (source if source in here else _ENTRY, reader if reader in here else _EXIT, tensor)
            for source, reader, tensor in edges
        })  # fmt: skip
        self._out: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._into: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for source, reader, tensor in self._edges:
            self._out[source][tensor].append(reader)
            self._into[reader].append((source, reader, tensor))
        self._rows: dict[int, list[int]] = defaultdict(list)
        for index in inside:
            self._rows[self._layer[index]].append(index)
        self._lane: dict[int, int] = {}
        self._carrier: dict[tuple[int, int, int], int] = {}

    def block(self) -> Block:
        """Return the block's drawing."""
        self._take_lanes()
        self._place_lanes()
        tracks = self._tracks()
        self._place_layers(tracks)
        nodes = tuple(
            Placed(self._vertices[index].key, self._x(index) - NODE_WIDTH // 2, self._top[self._layer[index]])
            for layer in sorted(self._rows)
            for index in self._rows[layer]
        )
        lines = tuple(
            DrawnEdge(tensor, _rounded(points), reader != _EXIT, points[-1])
            for source, reader, tensor in self._edges
            for points in (self._points(source, reader, tensor, tracks),)
        )
        return Block(self._width, self._height, nodes, lines)

    def _take_lanes(self) -> None:
        """Give every node a lane, and every edge the lane that carries it."""
        carried: list[_Carried] = []
        # Everything from above enters in the first lane.
        if _ENTRY in self._out:
            self._lane[_ENTRY] = 0
            carried += self._leave(_ENTRY, carried, set())
        for layer in range(1, self._last + 1):
            self._place_row(layer, carried)
            taken = {self._lane[index] for index in self._rows[layer]}
            # Lanes are free again below their last reader, which keeps drawings of long chains narrow.
            carried = [line for line in carried if line.readers]
            for index in sorted(self._rows[layer], key=self._lane.__getitem__):
                carried += self._leave(index, carried, taken)
        self._lane[_EXIT] = 0

    def _place_row(self, layer: int, carried: Sequence[_Carried]) -> None:
        incoming = {
            index: sorted((line for line in carried if index in line.readers), key=lambda line: line.lane)
            for index in self._rows[layer]
        }
        for index in self._rows[layer]:
            for line in incoming[index]:
                self._carrier[line.source, index, line.tensor] = line.lane
                line.readers.discard(index)
        # Lanes of tensors that pass this layer stay taken: a node there would cover their lines.
        held = {line.lane for line in carried if line.readers}
        # Nodes with inputs choose first, so that a chain keeps its lane; the others take what is left.
        for index in sorted(self._rows[layer], key=lambda index: (not incoming[index], index)):
            ending = [line.lane for line in incoming[index] if line.lane not in held]
            self._lane[index] = ending[0] if ending else _free(held)
            held.add(self._lane[index])

    def _leave(self, index: int, carried: Sequence[_Carried], nodes: set[int]) -> list[_Carried]:
        """Return the lanes of the tensors of a node; the tensor of the nearest reader keeps the node's lane."""
        taken = {line.lane for line in carried} | nodes
        found: list[_Carried] = []
        own = True
        for tensor, readers in sorted(self._out[index].items()) if index in self._out else ():
            # The nearest reader first: its edge is the short one that stays in the node's lane.
            readers.sort(key=lambda reader: (self._layer[reader], reader))
            # All further readers share a second lane, which branches off to each of them.
            for group in filter(None, (readers[:1], readers[1:])):
                lane = self._lane[index] if own else _free(taken)
                own = False
                taken.add(lane)
                found.append(_Carried(lane, tensor, index, set(group)))
                if _EXIT in group:
                    self._carrier[index, _EXIT, tensor] = lane
        return found

    def _place_lanes(self) -> None:
        with_nodes = {lane for index, lane in self._lane.items() if index >= 0} | {0}
        self._lane_x: list[int] = []
        x = _MARGIN
        for lane in range(1 + max([*self._lane.values(), *self._carrier.values()])):
            # A lane without nodes needs room only for lines.
            width = NODE_WIDTH if lane in with_nodes else _LINE_WIDTH
            self._lane_x.append(x + width // 2)
            x += width + _MARGIN
        self._width = x

    def _x(self, index: int) -> int:
        return self._lane_x[self._lane[index]]

    def _port(self, source: int, reader: int, tensor: int) -> int:
        """Return the x position of an edge's end on its reader, next to the edge that comes straight from above."""
        lane = self._carrier[source, reader, tensor]
        own = self._lane[reader]
        if lane == own or reader == _EXIT:
            return self._x(reader)
        lanes = [self._carrier[edge] for edge in self._into[reader]]
        nearer = {other for other in lanes if (own < other <= lane) or (lane <= other < own)}
        # Not beyond the corner of the node.
        offset = min(len(nearer) * _PORT, NODE_WIDTH // 2 - _MARGIN)
        return self._x(reader) + (offset if lane > own else -offset)

    def _runs(self, edge: tuple[int, int, int]) -> list[tuple[int, int, int]]:
        """Return the horizontal parts of an edge: the layer above the gap, and both ends."""
        source, reader, _ = edge
        lane_x = self._lane_x[self._carrier[edge]]
        out = (self._layer[source], self._x(source), lane_x)
        into = (self._layer[reader] - 1, lane_x, self._port(*edge))
        return [(gap, start, end) for gap, start, end in (out, into) if start != end]

    def _tracks(self) -> dict[tuple[int, int], int]:
        """Return the track of each tensor in a gap, so that horizontal parts of different tensors do not overlap."""
        spans: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
        for edge in self._edges:
            for gap, start, end in self._runs(edge):
                # The horizontal parts of one tensor share a track, because they may join.
                low, high = spans[gap].get(edge[2], (start, end))
                spans[gap][edge[2]] = (min(low, high, start, end), max(low, high, start, end))
        tracks: dict[tuple[int, int], int] = {}
        for gap, tensors in spans.items():
            ends: list[int] = []
            for tensor, (low, high) in sorted(tensors.items(), key=lambda item: (item[1], item[0])):
                # The first track whose last part has ended: with parts sorted by their begin, this needs the fewest
                # tracks.
                track = next((track for track, end in enumerate(ends) if end < low), len(ends))
                ends[track : track + 1] = [high]
                tracks[gap, tensor] = track
        return tracks

    def _place_layers(self, tracks: dict[tuple[int, int], int]) -> None:
        height = dict.fromkeys(range(1, self._last + 1), _GAP) | {0: _ENTER if _ENTRY in self._out else 0}
        for (gap, _), track in tracks.items():
            # A gap grows by its tracks, so that lines never touch the node below.
            height[gap] = max(height[gap], _GAP + track * _TRACK)
        self._top, self._gap_top = {0: 0}, {0: 0}
        # Two pixels at least, so that the outline of a node in the first row is not cut off.
        y = max(2, height[0])
        for layer in range(1, self._last + 1):
            self._top[layer] = y
            self._gap_top[layer] = y + NODE_HEIGHT
            y += NODE_HEIGHT + height[layer]
        self._top[self._last + 1] = y
        leaves = _EXIT in self._into
        self._height = y if leaves else self._gap_top[self._last] + 2

    def _points(
        self, source: int, reader: int, tensor: int, tracks: dict[tuple[int, int], int]
    ) -> list[tuple[int, int]]:
        top = 0 if source == _ENTRY else self._gap_top[self._layer[source]]
        points = [(self._x(source), top)]
        for gap, start, end in self._runs((source, reader, tensor)):
            y = self._gap_top[gap] + (_LABEL if gap else _TRACK) + tracks[gap, tensor] * _TRACK
            points += [(start, y), (end, y)]
        bottom = self._height if reader == _EXIT else self._top[self._layer[reader]]
        return [*points, (points[-1][0], bottom)]


def _free(taken: set[int]) -> int:
    # With one lane more than are taken, one of them is free.
    return next(lane for lane in range(len(taken) + 1) if lane not in taken)


def _rounded(points: Sequence[tuple[int, int]], radius: int = 6) -> str:
    """Return a path with round corners through ``points``, which turn by right angles."""
    start = points[0]
    parts = [f"M{start[0]} {start[1]}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        (x, y), (from_x, from_y), (to_x, to_y) = (
            corner,
            _towards(corner, before, radius),
            _towards(corner, after, radius),
        )
        parts.append(f"L{from_x} {from_y}Q{x} {y} {to_x} {to_y}")
    return "".join(parts) + f"L{points[-1][0]} {points[-1][1]}"


def _towards(corner: tuple[int, int], other: tuple[int, int], radius: int) -> tuple[int, int]:
    x, y = (other[0] - corner[0], other[1] - corner[1])
    length = abs(x) + abs(y)
    # Two points in one place have no direction, and need no corner.
    if not length:
        return corner
    # At most half of a short part, because both of its ends may be corners.
    reach = min(radius, length // 2)
    return corner[0] + x * reach // length, corner[1] + y * reach // length
