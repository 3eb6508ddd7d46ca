"""Replace If, Loop and Scan by the nodes that they run.

A graph has no control flow: its nodes run in a fixed order, and every tensor is written once. ``flow`` therefore turns
a node with graphs in its attributes into a sequence of plain nodes of ONNX, which the importer folds or converts like
any other. It is a generator, and the importer must handle each node before it requests the next one: the condition of a
loop may be computed by nodes of the loop, and become constant only when they are folded.

``inlining`` yields the copies of a graph and names the tensors in them.

Rules:

1. An If with a constant condition becomes the branch that is run. Otherwise both branches are run, and a Where selects
   each result. Both must then have the same shape, and a note tells the user what it costs.
2. A Loop with a constant trip count or condition is unrolled until the trips are over or its condition is false.
3. A Loop that ends when data say so is unrolled as often as it may run: as often as the tensors that it collects have
   rows in the declared shapes, or as often as its constant trip count says. After its end, a Where keeps the states.
4. A Scan is unrolled once for each element of its inputs along their axes.
5. Each iteration takes its nodes from the budget of the model, so that a small file cannot expand without limit.

Examples, with the nodes that ``flow`` yields:

    y = If(flag) {then_branch: p = Relu(x); else_branch: q = Neg(x)}, flag computed
        y/then_branch/p = Relu(x)            y/else_branch/q = Neg(x)
        y/flag/y = Reshape(flag, [])         y = Where(y/flag/y, y/then_branch/p, y/else_branch/q)

    total, rows = Loop(2, "", x) {state -> sum = Add(state, x), row = Identity(sum)}
        total/0/sum = Add(x, x)              total/0/row = Identity(total/0/sum)
        total/1/sum = Add(total/0/sum, x)    total/1/row = Identity(total/1/sum)
        total = Identity(total/1/sum)        rows = Concat of both rows, each with a new axis 0

    last = Scan(zero, x) {s, e -> n = Add(s, e)}, x of 2 elements
        last/element/0/0 = Gather(x, 0)      last/0/n = Add(zero, last/element/0/0)
        last/element/1/0 = Gather(x, 1)      last/1/n = Add(last/0/n, last/element/1/0)
        last = Identity(last/1/n)

It does not make loops in C, does not skip the branch that is not selected, and refuses with ``control-flow-dynamic``
loops whose number of trips has no limit in the file, and results whose shape depends on data. Sequences and optional
values in bodies are refused as in the rest of a model, and so is the Scan of opset 8, which has a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.onnx.affine import Constants
from mlfbuild.native.frontends.onnx.inlining import Body, Surroundings
from mlfbuild.native.frontends.onnx.raw_graph import RawNode
from mlfbuild.native.graph import GraphError

CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})
"""The operators whose attributes are graphs."""


def decided(node: RawNode, constants: Constants) -> bool:
    """Return whether ``node`` is an If with a constant condition."""
    return node.operator == "If" and bool(node.inputs) and node.inputs[0] in constants


def flow(node: RawNode, around: Surroundings) -> Iterator[RawNode]:
    """Yield the nodes that ``node``, an operator of ``CONTROL_FLOW``, runs.

    Each node must be computed or converted before the next one is requested, because the condition of a loop may
    become constant only then. Raises ``UnsupportedModelError`` if the nodes depend on data.
    """
    return {"If": _branch, "Loop": _loop, "Scan": _scan}[node.operator](Body(node, around))


def _branch(body: Body) -> Iterator[RawNode]:
    condition, count = body.constant(0, "condition"), len(body.node.outputs)
    if not body.given(0):
        raise GraphError(body.node.place, "has no condition")
    # A graph has no branches: both are computed, and their results are selected.
    if condition is None:
        yield from _both(body)
        return
    name = "then_branch" if condition else "else_branch"
    graph, results = body.graph(name, 0, count), list[str]()
    body.take(graph)
    yield from body.run(graph, name, [], results)
    yield from body.aliases(results, body.node.outputs)


def _both(body: Body) -> Iterator[RawNode]:
    """Run both branches of an If, because the condition is computed in every run."""
    results: dict[str, list[str]] = {"then_branch": [], "else_branch": []}
    for name, found in results.items():
        graph = body.graph(name, 0, len(body.node.outputs))
        body.take(graph)
        yield from body.run(graph, name, [], found)
    for first, second, output in zip(*results.values(), body.node.outputs, strict=True):
        yield from body.selected(body.given(0), first, second, output)
    reason = f"the condition {body.given(0)!r} is computed in every run"
    body.around.notes.append(f"{body.node.place}: both branches are computed, because {reason}")


_UNROLLED = "export the network with a fixed number of steps, or call it in a loop of the firmware"


def _loop(body: Body) -> Iterator[RawNode]:
    node = body.node
    states = list(node.inputs[2:])
    graph = body.graph("body", 2 + len(states), 1 + len(node.outputs))
    condition = body.constant(1, "condition")
    limit = body.constant(0, "trip count")
    if limit is not None and limit.dtype.kind not in "iu":
        raise GraphError(node.place, f"the trip count is {limit.dtype.name}, not an integer")
    trips = None if limit is None else int(limit)
    if not body.given(0) and not body.given(1):
        raise GraphError(node.place, "has neither a trip count nor a condition, so it never ends")
    pieces: list[list[str]] = [[] for _ in node.outputs[len(states) :]]
    for index, what in ((0, "trip count"), (1, "condition")):
        if body.given(index) and body.given(index) not in body.around.constants:
            trips = _most_trips(body, trips, len(states), f"the {what} {body.given(index)!r}")
    goes_on, count = condition is None or bool(condition), 0
    running = "" if condition is not None else body.given(1)
    while goes_on and (trips is None or count < trips):
        body.take(graph)
        number = body.number(f"iteration/{count}", np.int64(count))
        results: list[str] = []
        yield from body.run(graph, count, [number, body.number("condition", np.True_), *states], results)
        flags = [running] if running else []
        if body.given(0) and body.given(0) not in body.around.constants:
            flags.append(body.name("is a trip", count))
            yield body.make("Less", [number, body.given(0)], flags[-1])
        yield from _kept(body, count, flags, states, results)
        for found, piece in zip(pieces, results[1 + len(states) :], strict=True):
            found.append(piece)
        if body.given(1):
            after = body.around.constants.get(results[0])
            # A condition that is computed in every run cannot end the unrolling. The iterations after the end run as
            # well, and ``_kept`` discards their results.
            goes_on = after is None or bool(after.all())
            if after is None:
                trips = _most_trips(body, trips, len(states), "whether the loop goes on")
                before, running = running or results[0], body.name("goes on", count)
                yield body.make("And", [before, results[0]], running)
        count += 1
    yield from body.aliases(states, node.outputs)
    for found, output in zip(pieces, node.outputs[len(states) :], strict=True):
        yield from body.stacked(found, 0, output)


def _most_trips(body: Body, trips: int | None, states: int, what: str) -> int:
    """Return how often a loop runs whose end depends on data: as often as the tensors that it collects have rows.

    If it collects none, ``trips`` is the limit.
    """
    collected = [name for name in body.node.outputs[states:] if name]
    shapes = [body.around.declared.get(name) for name in collected]
    sizes = {shape[0] for shape in shapes if shape}
    if not all(shapes) or len(sizes) > 1 or (trips is None and not sizes):
        raise body.dynamic(f"{what} is computed in every run", _UNROLLED)
    return sizes.pop() if sizes else trips or 0


def _kept(body: Body, count: int, flags: Sequence[str], states: list[str], results: Sequence[str]) -> Iterator[RawNode]:
    """Yield the nodes that set ``states`` to the results of iteration ``count`` if all ``flags`` are true."""
    active = body.name("runs", count)
    if flags:
        yield body.make("And", [flags[0], flags[-1]], active)
    for index, (before, after) in enumerate(zip(list(states), results[1:], strict=False)):
        states[index] = after
        # A state that the body passes through needs no selection.
        if flags and before != after:
            states[index] = body.name("state", count, index)
            yield from body.selected(active, after, before, states[index])


def _scan(body: Body) -> Iterator[RawNode]:
    node = body.node
    if body.around.opset < 9:
        raise UnsupportedModelError(
            "operator-variant-unsupported", place=node.place, reason="the Scan of version 8 is not supported",
            hint="export the model for version 9 or later",
        )  # fmt: skip
    scans = node.attributes.get("num_scan_inputs")
    if not isinstance(scans, int) or not 1 <= scans <= len(node.inputs):
        raise GraphError(node.place, f"num_scan_inputs is {scans}")
    states, sources = list(node.inputs[:-scans]), node.inputs[-scans:]
    graph = body.graph("body", len(node.inputs), len(node.outputs))
    axes, count = _scan_axes(body, sources)
    backwards = _numbers(body, "scan_input_directions", scans)
    joined = len(node.outputs) - len(states)
    pieces: list[list[str]] = [[] for _ in range(joined)]
    body.take(graph, count)
    for step in range(count):
        elements = []
        for index, (name, axis) in enumerate(zip(sources, axes, strict=True)):
            # Backwards only changes which element a step gets. The results are reversed separately, by another
            # attribute.
            at = count - 1 - step if backwards[index] else step
            elements.append(body.name("element", step, index))
            yield body.make("Gather", [name, body.number(f"at {at}", np.int64(at))], elements[-1], {"axis": axis})
        results: list[str] = []
        yield from body.run(graph, step, [*states, *elements], results)
        states = results[: len(states)]
        for found, piece in zip(pieces, results[len(states) :], strict=True):
            found.append(piece)
    yield from body.aliases(states, node.outputs)
    targets = zip(
        pieces,
        node.outputs[len(states) :],
        _numbers(body, "scan_output_axes", joined),
        _numbers(body, "scan_output_directions", joined),
        strict=True,
    )
    for found, output, axis, back in targets:
        yield from body.stacked(found[::-1] if back else found, axis, output)


def _scan_axes(body: Body, sources: Sequence[str]) -> tuple[list[int], int]:
    """Return the axis along which each input is scanned, and the number of steps."""
    axes = _numbers(body, "scan_input_axes", len(sources))
    counts = set()
    for index, name in enumerate(sources):
        shape = body.around.shape(name)
        if shape is None or not -len(shape) <= axes[index] < len(shape):
            raise GraphError(body.node.place, f"cannot scan {name!r} along axis {axes[index]}")
        axes[index] %= len(shape)
        counts.add(shape[axes[index]])
    if len(counts) != 1:
        raise GraphError(body.node.place, f"scans inputs of {' and '.join(map(str, sorted(counts)))} steps together")
    return axes, counts.pop()


def _numbers(body: Body, name: str, count: int) -> list[int]:
    found = body.node.attributes.get(name, (0,) * count)
    if not isinstance(found, tuple) or len(found) != count or not all(isinstance(value, int) for value in found):
        raise GraphError(body.node.place, f"attribute {name} is not a list of {count} integers")
    return [int(value) for value in found]
