"""Lower operators that move elements: their assignments between views become loops with literal strides."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import C_TYPES, Array, DType, Graph, Node, Tensor
from mlfbuild.native.graph.bases import Move, Movement
from mlfbuild.native.lowering.call import KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.activation import moved_as, signed_pointer, suffix
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings

_DIMENSIONS = 5

_Place = tuple[int, str, int]
"""(address of the numpy array, name of the parameter, bytes) of a tensor."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call that does all copies one after the other."""
    operator = node.operator
    assert isinstance(operator, Movement)
    sources = list(graph.inputs_of(node).present)
    outputs = graph.outputs_of(node)
    named = {**_named("input", sources), **_named("output", outputs)}
    # These arrays are never read or written: only addresses and strides of views are used, and unused pages are free.
    arrays = {name: np.empty(tensor.shape, tensor.dtype.numpy) for name, tensor in named.items()}
    moves = operator.moves(list(arrays.values())[: len(sources)], list(arrays.values())[len(sources) :])
    dtype = outputs[0].dtype
    c_type = C_TYPES[dtype]
    filling = operator.filling(outputs[0])
    lines = [] if filling is None else [f"memset(output, {trained(filling)}, {outputs[0].size});"]
    places = sorted((array.ctypes.data, name, array.nbytes) for name, array in arrays.items())
    parts = [part for move in moves for part in _parts(move)]
    lines += [line for at, part in enumerate(parts) for line in _copy(f"copy{at}", dtype, part, places)]
    parameters = tuple(
        Parameter(f"{c_type} *" if name.startswith("output") else f"const {c_type} *", name, tensor.name)
        for name, tensor in named.items()
    )
    return KernelCall(operator.name.lower(), "movement.h", parameters, tuple(lines))


def _named(word: str, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """Return parameter name -> tensor; the names are numbered if there are several."""
    return {word if len(tensors) == 1 else f"{word}{index}": tensor for index, tensor in enumerate(tensors)}


def _parts(move: Move) -> Iterator[Move]:
    """Split ``move`` along its shortest dimension until the kernel supports the number of dimensions."""
    source, target = move
    if len(_runs(source, target)) <= _DIMENSIONS + 1:
        yield move
        return
    # The shortest one makes the fewest copies.
    axis = min((axis for axis, size in enumerate(source.shape) if size > 1), key=lambda axis: source.shape[axis])
    for at in range(source.shape[axis]):
        part = (*[slice(None)] * axis, slice(at, at + 1))
        yield from _parts((source[part], target[part]))


def _copy(name: str, dtype: DType, move: Move, places: Sequence[_Place]) -> Iterator[str]:
    """Yield the statements of one assignment of elements of ``dtype``; ``name`` is for its strides."""
    source, target = move
    *outer, (run, _, _) = _runs(source, target)
    origin, goal = _place(source, places), _place(target, places)
    if not outer:
        yield f"memcpy({goal}, {origin}, {run * source.itemsize});"
        return
    if run == 1:
        # No element is read after it was written, so that the order is free.
        outer.sort(key=itemgetter(0))
    padded = [(1, 0, 0)] * (_DIMENSIONS - len(outer)) + outer
    yield from struct_lines(
        "mlf_copy",
        name,
        {
            "sizes": braces([size for size, _, _ in padded]),
            "from_strides": braces([stride for _, stride, _ in padded]),
            "to_strides": braces([stride for _, _, stride in padded]),
            "run": str(run),
        },
    )
    pointers = f"{signed_pointer(origin, dtype, 'const ')}, {signed_pointer(goal, dtype)}"
    yield f"mlf_copy_{suffix(moved_as(dtype))}(&{name}, {pointers});"


def _runs(source: Array, target: Array) -> list[tuple[int, int, int]]:
    """Return (size, source stride, target stride) of the merged dimensions; the last one is a run of elements."""
    merged: list[tuple[int, int, int]] = []
    strides = zip(source.shape, source.strides, target.strides, strict=True)
    for size, source_bytes, target_bytes in strides:
        step = (source_bytes // source.itemsize, target_bytes // target.itemsize)
        if size == 1:
            continue
        # Both sides continue without a gap from one row of this dimension to the next.
        if merged and merged[-1][1:] == (size * step[0], size * step[1]):
            merged[-1] = (merged[-1][0] * size, *step)
        else:
            merged.append((size, *step))
    if merged and merged[-1][1:] == (1, 1):
        return merged
    return [*merged, (1, 1, 1)]


def _place(view: Array, places: Sequence[_Place]) -> str:
    """Return the C expression of the address of the first element of ``view``."""
    address = view.ctypes.data
    start, name, size = places[bisect_right(places, address, key=itemgetter(0)) - 1]
    assert start <= address < start + size, "a view of no tensor"
    offset = (address - start) // view.itemsize
    return f"{name} + {offset}" if offset else name
