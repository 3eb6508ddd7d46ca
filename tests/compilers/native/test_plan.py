"""Plans of random graphs, played through: whatever a node reads must still be there."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from mlfbuild.compilers.native.ops import lower
from mlfbuild.compilers.native.ops.call import Call, Parameter, Scratch
from mlfbuild.compilers.native.plan import ALIGNMENT, Area, Location, Plan, plan_memory
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Graph
from mlfbuild.graph.ops import Add, AveragePool2D, Conv2D, Pad, Reshape
from mlfbuild.targets import CPUS
from support.sketch import Sketch


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to 14 nodes over NHWC tensors, each reading any earlier tensor; inputs and constants may be outputs."""
    s = Sketch()
    known = [s.tensor("x", 1, 4, 4, 2), s.tensor("z", 1, 4, 4, 2), s.tensor("c", 1, 4, 4, 2, constant=True)]
    shapes = dict.fromkeys(known, (1, 4, 4, 2))
    for index in range(draw(st.integers(0, 14))):
        name = f"t{index}"
        source = draw(st.sampled_from(known))
        batch, height, width, channels = shapes[source]
        kind = draw(st.sampled_from(["add", "reshape", "reshape", "pad", "pool", "conv"]))
        if kind == "add":
            other = draw(st.sampled_from([name for name in known if shapes[name] == shapes[source]]))
            shapes[name] = shapes[source]
            s.node(Add(), source, other, s.tensor(name, *shapes[name]))
        elif kind == "reshape":
            shapes[name] = (batch, width, height, channels)
            s.node(Reshape(), source, s.tensor(name, *shapes[name]))
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
    return s.graph(["x", "z"], draw(st.lists(st.sampled_from(known), min_size=1, max_size=4)))


def bytes_of(graph: Graph, plan: Plan, name: str) -> set[tuple[object, ...]]:
    """Every byte of a tensor as (area, buffer, offset)."""
    location, size = plan.locations[name], graph.tensor(name).size
    if location.area is Area.ARENA:
        assert location.position % ALIGNMENT == 0
        assert location.position + size <= plan.arena_size
        return {(Area.ARENA, location.position + offset) for offset in range(size)}
    buffer = name if location.area is Area.CONSTANT else location.position
    return {(location.area, buffer, offset) for offset in range(size)}


def with_scratch(call: Call, size: int) -> Call:
    """``call`` with a parameter for ``size`` bytes of scratch memory; none for 0."""
    scratch = (Parameter("void *", "scratch", Scratch(size)),) if size else ()
    return replace(call, parameters=(*call.parameters, *scratch))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data(), graphs())
def test_nothing_is_lost_before_it_is_read(data: st.DataObject, graph: Graph) -> None:
    lowered = [lower(graph, node, Settings(CPUS["cortex-m4"])) for node in graph.nodes]
    calls = [with_scratch(call, data.draw(st.sampled_from([0, 0, 7, 64]))) for call in lowered]
    plan = plan_memory(graph, calls)
    value = {name: name for name in graph.tensors}
    for node in graph.nodes:
        if isinstance(node.operator, Reshape):
            value[node.outputs[0]] = value[str(node.inputs[0])]
    memory: dict[tuple[object, ...], str] = {}
    assert [plan.locations[name] for name in graph.inputs] == [Location(Area.INPUT, 0), Location(Area.INPUT, 1)]
    for name in (*graph.inputs, *(tensor.name for tensor in graph.constants)):
        memory.update(dict.fromkeys(bytes_of(graph, plan, name), name))
    for node, call, scratch in zip(graph.nodes, calls, plan.scratch, strict=True):
        assert scratch % ALIGNMENT == 0
        assert scratch + call.scratch <= plan.arena_size
        memory.update({(Area.ARENA, scratch + offset): "scratch" for offset in range(call.scratch)})
        for name in node.inputs:
            assert name is not None
            assert {memory.get(byte) for byte in bytes_of(graph, plan, name)} == {value[name]}
        output = node.outputs[0]
        area = plan.locations[output].area
        assert area in {Area.ARENA, Area.OUTPUT} or (area is Area.INPUT and isinstance(node.operator, Reshape))
        if area is Area.OUTPUT:
            assert value[output] == value[graph.outputs[plan.locations[output].position]]
        assert not {(Area.ARENA, scratch + offset) for offset in range(call.scratch)} & bytes_of(graph, plan, output)
        memory.update(dict.fromkeys(bytes_of(graph, plan, output), value[output]))
    copied = {index: name for name, index in plan.copies}
    for index, name in enumerate(graph.outputs):
        assert copied.get(index, name) == name
        assert {memory[byte] for byte in bytes_of(graph, plan, name)} == {value[name]}
        assert index in copied or (plan.locations[name].area, plan.locations[name].position) == (Area.OUTPUT, index)
