"""Networks with several subgraphs: loops, branches and composites."""

import numpy as np

from support.tflite_builder import Network

STEPS = 4
ROWS = np.random.default_rng(2).normal(0, 1, (STEPS, 3)).astype(np.float32)


def condition(limit: int = STEPS) -> Network:
    net = Network()
    i, *_ = net.input((), dtype="int32"), net.input((1, 3)), net.input((STEPS, 3))
    answer = net.activation((), dtype="bool")
    net.outputs = [net.operator("LESS", [i, net.integers(limit)], answer, "LessOptions")]
    return net


def step(step_size: int = 1, operator: str = "TANH") -> Network:
    """Return the body of a recurrent layer: its hidden row is a function of the sum with a row of the sequence."""
    net = Network()
    i, hidden, rows = net.input((), dtype="int32"), net.input((1, 3)), net.input((STEPS, 3))
    row = net.move("GATHER", rows, (1, 3), net.move("RESHAPE", i, (1,)), kind="GatherOptions", Axis=0)
    weights = net.constant(np.arange(9, dtype=np.float32).reshape(3, 3) / 10)
    total = net.add(row, net.operator("FULLY_CONNECTED", [hidden, weights, -1], net.activation((1, 3)),
                                      "FullyConnectedOptions"))  # fmt: skip
    after = net.operator(operator, [total], net.activation((1, 3), name="hidden"))
    following = net.activation((), dtype="int32")
    net.operator("ADD", [i, net.integers(step_size)], following, "AddOptions")
    net.outputs = [following, after, rows]
    return net


def loop(*subgraphs: Network, start: int | None = 0, body: int = 2) -> Network:
    net = Network()
    rows = net.input((STEPS, 3))
    first = net.input((), dtype="int32") if start is None else net.integers(start)
    hidden = net.constant(np.zeros((1, 3), np.float32))
    outputs = [net.activation((), dtype="int32"), net.activation((1, 3), name="last"), net.activation((STEPS, 3))]
    net.many("WHILE", [first, hidden, rows], outputs, "WhileOptions", CondSubgraphIndex=1, BodySubgraphIndex=body)
    net.outputs = outputs
    net.others = list(subgraphs)
    return net


def int8_loop(affine: dict[str, float]) -> Network:
    """Return FULLY_CONNECTED, a loop of STEPS of the same in a subgraph, and another one."""
    weights = np.random.default_rng(4).integers(-127, 128, (8, 8)).astype(np.int8)

    def layer(net: Network, source: int) -> int:
        return net.fully_connected(source, weights, None, weight_scales=[0.004], **affine)

    body = Network()
    i, row = body.input((), dtype="int32"), body.input((1, 8), **affine)
    following = body.activation((), dtype="int32")
    body.operator("ADD", [i, body.integers(1)], following, "AddOptions")
    body.outputs = [following, layer(body, row)]
    test = Network()
    i, _ = test.input((), dtype="int32"), test.input((1, 8), **affine)
    test.outputs = [test.operator("LESS", [i, test.integers(STEPS)], test.activation((), dtype="bool"), "LessOptions")]
    net = Network()
    first = layer(net, net.input((1, 8), **affine))
    results = [net.activation((), dtype="int32"), net.activation((1, 8), **affine)]
    net.many("WHILE", [net.integers(0), first], results, "WhileOptions", CondSubgraphIndex=1, BodySubgraphIndex=2)
    net.outputs = [layer(net, results[1])]
    net.others = [test, body]
    return net


def branch(condition: bool | None, operator: str = "MUL") -> Network:
    """Return an IF that adds or multiplies."""
    net = Network()
    x = net.input((1, 3))
    chosen = net.input((), dtype="bool") if condition is None else net.constant(np.array(condition))
    y = net.constant(np.array([[3, 4, 5]], np.float32))
    for kind in ("ADD", operator):
        other = Network()
        inputs = [other.input((1, 3)), other.input((1, 3))]
        other.outputs = [other.binary(kind, *inputs)]
        net.others.append(other)
    net.operator("IF", [chosen, x, y], net.activation((1, 3)), "IfOptions", ThenSubgraphIndex=1, ElseSubgraphIndex=2)
    return net


def composite(net: Network, inputs: list[int], outputs: list[int], subgraph: int) -> int:
    net.many("STABLEHLO_COMPOSITE", inputs, outputs)
    net.operators[-1].decomposition = subgraph
    return outputs[0]


def doubled(*inner: int) -> Network:
    """Return a subgraph that doubles its first input and returns its second one; ``inner`` is a subgraph it calls."""
    net = Network()
    x, y = net.input((2,)), net.input((2,))
    for subgraph in inner:
        x = composite(net, [x, y], [net.activation((2,)), net.activation((2,))], subgraph)
    net.outputs = [net.add(x, x), y]
    return net


def caller(*others: Network, subgraph: int = 1) -> Network:
    net = Network()
    x, y = net.input((2,)), net.constant(np.array([0.5, 8], np.float32))
    outputs = [net.activation((2,)), net.activation((2,))]
    composite(net, [x, y], outputs, subgraph)
    net.outputs = [net.binary("MUL", *outputs)]
    net.others = list(others)
    return net
