"""The layers of a network's drawing, and the layers below which it can be divided into blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Vertex:
    """A node of the drawing; ``reads`` and ``writes`` are numbers of tensors."""

    key: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def writers(vertices: Sequence[Vertex]) -> dict[int, int]:
    """Return the number of the vertex that writes each tensor.

    If a damaged report has several, the first one counts.
    """
    writer: dict[int, int] = {}
    for index, vertex in enumerate(vertices):
        for tensor in vertex.writes:
            writer.setdefault(tensor, index)
    return writer


def layers_of(vertices: Sequence[Vertex]) -> list[int]:
    """Return the layer of each vertex: one below the deepest that it reads; inputs are one above their readers."""
    writer = writers(vertices)
    layers = [0] * len(vertices)
    first_reader: dict[int, int] = {}
    for index, vertex in enumerate(vertices):
        # A tensor that is written later is not a source here, so a damaged report makes no cycle.
        sources = [writer[tensor] for tensor in vertex.reads if writer.get(tensor, index) < index]
        layers[index] = 1 + max((layers[source] for source in sources), default=-1)
        for source in sources:
            first_reader[source] = min(first_reader.get(source, layers[index]), layers[index])
    for index, vertex in enumerate(vertices):
        # Otherwise inputs of late operators would all be in the first layer, with edges across the whole drawing.
        if not vertex.reads and index in first_reader:
            layers[index] = first_reader[index] - 1
    return layers


def bounds_of(layers: Sequence[int], edges: Iterable[tuple[int, int, int]]) -> list[int]:
    """Return the layers below which at most one tensor passes, so that the drawing can be divided there.

    ``edges`` are (writer, reader, tensor): numbers of two vertices and of the tensor between them. A tensor with
    several readers counts once, until the last of them.
    """
    last: dict[tuple[int, int], int] = {}
    # The last reader decides how far a tensor passes down.
    for source, reader, tensor in edges:
        last[source, tensor] = max(last.get((source, tensor), 0), layers[reader])
    # As differences, +1 below the writer and -1 at the last reader: their running sum is what passes each layer.
    passing = [0] * (max(layers, default=0) + 2)
    for (source, _), end in last.items():
        passing[layers[source]] += 1
        passing[end] -= 1
    found, now = [], 0
    for layer, change in enumerate(passing):
        now += change
        if now <= 1:
            found.append(layer)
    return found


def block_numbers(layers: Sequence[int], bounds: Sequence[int]) -> list[int]:
    """Return the block of each vertex if the drawing is divided below the layers ``bounds``.

    Blocks are numbered from 0, from top to bottom; ``bounds`` are those of ``bounds_of``.
    """
    number, numbers = 0, {}
    cuts = set(bounds)
    for layer in range(max(layers, default=0) + 1):
        numbers[layer] = number
        number += layer in cuts
    return [numbers[layer] for layer in layers]
