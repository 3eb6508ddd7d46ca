"""Replace the two operators that advance a ring buffer by one that does it in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import Concatenation, Shift, Slice, Steps
from mlfbuild.native.passes.rewrite import rebuild


def shift_states(graph: Graph) -> Graph:
    """Join a SLICE that drops the oldest rows of a state and a CONCATENATION that appends new ones, in either order.

    As separate operators, they copy the remaining rows into the arena and back. They are joined only if no other node
    reads the tensor between them.
    """
    states = {state.before for state in graph.states}
    places = {node: at for at, node in enumerate(graph.nodes)}
    producers = {name: node for node in graph.nodes for name in node.outputs}
    shifts: dict[Node, Node] = {}
    for sliced in (node for node in graph.nodes if isinstance(node.operator, Slice)):
        # A file may append first and drop then, or the other way round: the join is before or after the slice.
        before = producers.get(str(sliced.inputs[0]))
        for join in _joins(graph, sliced, [*([before] if before else []), *graph.readers(sliced.outputs[0])]):
            shift = _shift(graph, sliced, join)
            # Only a state is worth it: with another first operand, the copy is the operator's task and not its cost.
            if shift is not None and shift.inputs[0] in states:
                # The new node takes the place of the later one: only there are the inputs of both known.
                first, last = sorted((sliced, join), key=places.__getitem__)
                shifts[last] = shift
                places.pop(first)
                break
    return rebuild(graph, [shifts.get(node, node) for node in graph.nodes if node in places])


def _joins(graph: Graph, sliced: Node, near: Iterable[Node]) -> Iterator[Node]:
    """Yield those of ``near``, the nodes before and after ``sliced``, that are CONCATENATIONs of two tensors."""
    for join in near:
        if isinstance(join.operator, Concatenation) and len(join.inputs) == 2:
            if join.inputs[0] == sliced.outputs[0] and _is_only_reader(graph, join, sliced.outputs[0]):
                yield join
            if join.outputs[0] == sliced.inputs[0] and _is_only_reader(graph, sliced, join.outputs[0]):
                yield join


def _is_only_reader(graph: Graph, node: Node, name: str) -> bool:
    return name not in graph.results and graph.readers(name) == (node,)


def _shift(graph: Graph, sliced: Node, join: Node) -> Node | None:
    """Return the node that replaces both, or ``None`` if they do not advance a ring buffer."""
    # Whichever comes second writes the new state; the name and the outputs of the replacement are its.
    assert isinstance(sliced.operator, Slice) and isinstance(join.operator, Concatenation)
    is_last = sliced.inputs[0] == join.outputs[0]
    last = sliced if is_last else join
    # The first operand is the old state, the second the new rows: CONCATENATION(old, new) or (slice of old, new).
    node = Node(
        last.name, Shift(join.operator.axis), (join if is_last else sliced).inputs[:1] + join.inputs[1:], last.outputs
    )
    # A SLICE that drops a dimension is none of a ring buffer.
    if sliced.operator.dropped or node.operator.check(graph.inputs_of(node), graph.outputs_of(node)) is not None:
        return None
    axis, output = join.operator.axis, graph.tensor(last.outputs[0])
    new = graph.tensor(str(join.inputs[1])).shape[axis]
    # The slice must drop exactly as many rows as are appended, from the front, and nothing else.
    wanted = [Steps(0, 1, size) for size in output.shape]
    wanted[axis] = Steps(new, 1, output.shape[axis] - (0 if is_last else new))
    return node if list(sliced.operator.steps) == wanted else None
