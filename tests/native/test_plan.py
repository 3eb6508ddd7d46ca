"""Plans of random graphs, simulated: every value that a node reads is still in memory."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings, strategies as st

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.library.cgen.alignment import ALIGNMENT
from mlfbuild.native.graph import Graph, State
from mlfbuild.native.graph.ops import Add, AveragePool2D, Concatenation, Conv2D, Pad, Reshape, Slice
from mlfbuild.native.graph.ops.movement.views import Steps
from mlfbuild.native.lowering.call import KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.lowering.dispatch import lower
from mlfbuild.native.memory import better_order
from mlfbuild.native.memory.plan import Plan, plan_memory, use_free_memory
from mlfbuild.native.memory.storages import Location, StorageKind
from mlfbuild.native.memory.views import views_of
from mlfbuild.native.settings import CodegenSettings
from mlfbuild.targets import CPUS
from support.errors import raises
from support.examples import examples
from support.host_c import run_on_host
from support.native import compile_bytes, generated
from support.oracle import assert_equal, tflite_micro_run
from support.sketch import Sketch
from support.tflite_builder import Network


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw up to 14 nodes over NHWC tensors, each reading any earlier tensors; any tensors are outputs or states."""
    s = Sketch()
    states = [f"s{index}" for index in range(draw(st.integers(0, 3)))]
    known = [s.tensor(name, 1, 4, 4, 2) for name in ("x", "z", *states)] + [s.tensor("c", 1, 4, 4, 2, constant=True)]
    shapes = dict.fromkeys(known, (1, 4, 4, 2))
    for index in range(draw(st.integers(0, 14))):
        name = f"t{index}"
        source = draw(st.sampled_from(known))
        batch, height, width, channels = shapes[source]
        kind = draw(st.sampled_from(["add", "reshape", "reshape", "pad", "pool", "conv", "join", "join", "part"]))
        if kind == "add":
            other = draw(st.sampled_from([name for name in known if shapes[name] == shapes[source]]))
            shapes[name] = shapes[source]
            s.node(Add(), source, other, s.tensor(name, *shapes[name]))
        elif kind == "reshape":
            shapes[name] = (batch, width, height, channels)
            s.node(Reshape(), source, s.tensor(name, *shapes[name]))
        elif kind == "join":
            others = draw(st.lists(st.sampled_from([name for name in known if shapes[name][2:] == shapes[source][2:]]),
                                   min_size=1, max_size=3))  # fmt: skip
            shapes[name] = (batch, sum(shapes[each][1] for each in (source, *others)), width, channels)
            s.node(Concatenation(1), source, *others, s.tensor(name, *shapes[name]))
        elif kind == "part":
            first = draw(st.integers(0, height - 1))
            steps = [(0, batch), (first, draw(st.integers(1, height - first))), (0, width), (0, channels)]
            shapes[name] = (batch, steps[1][1], width, channels)
            s.node(
                Slice(tuple(Steps(start, 1, count) for start, count in steps)), source, s.tensor(name, *shapes[name])
            )
        elif kind == "pad":
            shapes[name] = (batch, height, width, channels + 1)
            s.node(Pad(((0, 0), (0, 0), (0, 0), (0, 1))), source, s.tensor(name, *shapes[name]))
        elif kind == "pool":
            shapes[name] = shapes[source]
            s.node(AveragePool2D((1, 1)), source, s.tensor(name, *shapes[name]))
        else:
            shapes[name] = (batch, height, width, 3)
            s.node(Conv2D(), source, s.weights(f"w{index}", 3, 1, 1, channels), s.tensor(name, *shapes[name]))
        known.append(name)
    drawn = s.graph(["x", "z", *states], draw(st.lists(st.sampled_from(known), min_size=1, max_size=4)))
    left = st.sampled_from([name for name in known if shapes[name] == (1, 4, 4, 2)])
    kept = [State(name, draw(left), np.full((1, 4, 4, 2), index, np.int8)) for index, name in enumerate(states)]
    return Graph(drawn.name, list(drawn.tensors.values()), drawn.nodes, ["x", "z"], drawn.outputs, kept)


def bytes_of(graph: Graph, plan: Plan, name: str) -> list[tuple[object, ...]]:
    """Return every byte of a tensor in order, as (area, buffer, offset)."""
    location, size = plan.locations[name], graph.tensor(name).size
    if location.area is StorageKind.ARENA:
        assert location.position % ALIGNMENT == 0
        assert location.position + size <= plan.arena_size
        return [(StorageKind.ARENA, location.position + offset) for offset in range(size)]
    buffer = name if location.area is StorageKind.CONSTANT else location.position
    return [(location.area, buffer, offset) for offset in range(size)]


def values_of(graph: Graph) -> dict[str, list[object]]:
    """Return the value of each byte of a tensor: its own, or that of a byte of another tensor."""
    value: dict[str, list[object]] = {
        name: [(name, offset) for offset in range(tensor.size)] for name, tensor in graph.tensors.items()
    }
    for node in graph.nodes:
        views = {view.part: view for view in views_of(graph, node)}
        inputs = [str(name) for name in node.inputs]
        if isinstance(node.operator, Reshape):
            value[node.outputs[0]] = value[inputs[0]]
        elif views and isinstance(node.operator, Concatenation):
            value[node.outputs[0]] = [byte for name in inputs for byte in value[name]]
        elif views:
            start = views[node.outputs[0]].offset
            value[node.outputs[0]] = value[inputs[0]][start : start + graph.tensor(node.outputs[0]).size]
    return value


def with_scratch(call: KernelCall, size: int) -> KernelCall:
    """Return ``call`` with a parameter for ``size`` bytes of scratch memory; unchanged for 0."""
    scratch = (Parameter("void *", "scratch", ScratchBuffer(size)),) if size else ()
    alone = scratch and not call.scratch
    return replace(
        call, parameters=(*call.parameters, *scratch), grown=(lambda free: (free, call.body)) if alone else None
    )


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(st.data(), graphs())
def test_values_are_in_memory_when_they_are_read(data: st.DataObject, graph: Graph) -> None:
    lowered = [lower(graph, node, CodegenSettings(CPUS["cortex-m4"])) for node in graph.nodes]
    calls = [with_scratch(call, data.draw(st.sampled_from([0, 0, 7, 64]))) for call in lowered]
    if exchange(graph):
        with raises(UnsupportedModelError, "states-swapped", at=graph.name):
            plan_memory(graph, calls)
        return
    if data.draw(st.booleans()):
        graph, calls = better_order(graph, calls) or (graph, calls)
    plan = plan_memory(graph, calls)
    if data.draw(st.booleans()):
        size = plan.arena_size
        calls, plan = use_free_memory(calls, plan)
        assert plan.arena_size == size
    value = values_of(graph)
    memory: dict[tuple[object, ...], object] = {}
    assert [plan.locations[name] for name in graph.inputs] == [
        Location(StorageKind.INPUT, 0),
        Location(StorageKind.INPUT, 1),
    ]
    for name in (*graph.sources, *(tensor.name for tensor in graph.constants)):
        memory.update(zip(bytes_of(graph, plan, name), value[name], strict=True))
    for index, (node, call, scratch) in enumerate(zip(graph.nodes, calls, plan.scratch, strict=True)):
        assert scratch % ALIGNMENT == 0
        assert scratch + call.scratch <= plan.arena_size
        memory.update({(StorageKind.ARENA, scratch + offset): "scratch" for offset in range(call.scratch)})
        for name in node.inputs:
            assert name is not None
            assert [memory.get(byte) for byte in bytes_of(graph, plan, name)] == value[name]
        output = node.outputs[0]
        area = plan.locations[output].area
        assert area in {StorageKind.ARENA, StorageKind.OUTPUT, StorageKind.STATE} or (
            area is StorageKind.INPUT and isinstance(node.operator, Reshape)
        )
        if area is StorageKind.OUTPUT:
            assert value[output] == value[graph.outputs[plan.locations[output].position]]
        assert not {(StorageKind.ARENA, scratch + offset) for offset in range(call.scratch)} & {
            *bytes_of(graph, plan, output)
        }
        if index in plan.views:  # nothing is done
            assert [memory.get(byte) for byte in bytes_of(graph, plan, output)] == value[output]
        memory.update(zip(bytes_of(graph, plan, output), value[output], strict=True))
    for name, to in plan.copies:
        places = [(to.area, to.position, offset) for offset in range(graph.tensor(name).size)]
        memory.update(zip(places, [memory[byte] for byte in bytes_of(graph, plan, name)], strict=True))
    results = [(name, Location(StorageKind.OUTPUT, index)) for index, name in enumerate(graph.outputs)]
    results += [(state.after, plan.locations[state.before]) for state in graph.states]
    for name, place in results:
        size = graph.tensor(name).size
        assert [memory[(place.area, place.position, offset)] for offset in range(size)] == value[name]
    places = [plan.locations[state.before].position for state in graph.states]
    assert places == [32 * index for index in range(len(places))]
    assert plan.state_size == 32 * len(places)


def exchange(graph: Graph) -> bool:
    """Return whether following each state to its new value, through RESHAPEs, forms a cycle.

    A RESHAPE to an output copies, so the output keeps the old value of a state.
    """
    reshapes = [node for node in graph.nodes if isinstance(node.operator, Reshape)]
    same = {node.outputs[0]: str(node.inputs[0]) for node in reshapes if node.outputs[0] not in graph.outputs}
    after = {state.before: state.after for state in graph.states}

    def source(name: str) -> str:
        return source(same[name]) if name in same else name

    for start, left in after.items():
        at, steps = source(left), 0
        while at in after and at != start and steps < len(after):
            at, steps = source(after[at]), steps + 1
        if at == start and steps:
            return True
    return False


def test_parts_of_tensors_are_not_copied() -> None:
    """Images are concatenated along their height, then split where the first one ends at a multiple of 16 bytes."""
    for width, copied in ((8, False), (7, True)):
        network = Network()
        image = network.input((1, 2, width, 4), 0.05, 3)
        top, bottom = (
            network.unary("LEAKY_RELU", image, "LeakyReluOptions", {"Alpha": alpha}, scale=0.05, zero_point=3)
            for alpha in (0.25, 0.5)
        )
        joined = network.operator(
            "CONCATENATION", [top, bottom], network.like(top, (1, 4, width, 4)), "ConcatenationOptions", Axis=1
        )
        pooled = network.pool2d("MAX", joined, (1, 1))
        axis = network.constant(np.array(1, np.int32))
        halves = [network.like(top, (1, 2, width, 4)) for _ in range(2)]
        network.many("SPLIT", [axis, pooled], halves, "SplitOptions", NumSplits=2)
        model = network.build([network.add(*halves, scale=0.1)])
        library = compile_bytes(model, "pieces")
        text = generated(library)
        assert ("concatenation" in text, "split" in text) == (copied, copied)
        value = np.arange(2 * width * 4, dtype=np.int64).astype(np.int8).reshape(1, 2, width, 4)
        (got,) = run_on_host(library, [value])
        assert_equal(got, tflite_micro_run(model, [value])[0], f"width {width}")
        if not copied:
            assert library.modules[0].main[0].workspace_size == 4 * width * 4
