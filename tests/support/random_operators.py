"""Steps of random networks: activations, operators of two tensors, and those that move elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from support.drawing import ACTIVATIONS

if TYPE_CHECKING:
    from support.random_graphs import RandomGraph

LARGEST_SPREAD = 1e6
"""Greatest magnitude of float tensors that are multiplied, so that relative errors stay small."""

LARGEST = 1500
"""Elements of a tensor up to which operators that enlarge it are applied."""


def broadcast(*shapes: tuple[int, ...]) -> float:
    """Return the number of elements of the broadcast shape, infinity if the shapes do not broadcast."""
    try:
        return float(np.prod(np.broadcast_shapes(*shapes)))
    except ValueError:
        return float("inf")


def unary(g: RandomGraph, source: int) -> None:
    """Apply an activation; some prescribe the scale of the output."""
    name = g.choice(("RELU", "RELU6", "LEAKY_RELU", "ELU", "HARD_SWISH", "LOGISTIC", "TANH", "ABS"))
    quantized, options = g.quantized(source), {}
    affine = g.rescaled(source, 1)
    if name == "RELU6" and quantized:
        affine = {"scale": g.scale_of(source), "zero_point": g.network.tensors[source].zero_points[0]}
    elif name == "LOGISTIC" and quantized:
        affine = {"scale": 1 / 256, "zero_point": -128}
    elif name == "TANH" and quantized:
        affine = {"scale": 1 / 128, "zero_point": 0}
    elif name == "LEAKY_RELU":
        options = {"Alpha": 0.25}
    elif name == "HARD_SWISH" and quantized:
        affine["scale"] = max(affine["scale"], g.scale_of(source) / 100)
    output = g.network.unary(name, source, "LeakyReluOptions" if options else None, options, **affine)
    g.learn(output, 6 + g.spread[source], exact=name in {"RELU", "RELU6", "ABS"} and source in g.exact)


def binary(g: RandomGraph, source: int) -> None:
    """Combine two tensors that broadcast; MAXIMUM and MINIMUM need equal scales."""
    shape, quantized = g.shape_of(source), g.quantized(source)
    name = g.choice(("SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"))
    fits = [t for t in g.known if g.quantized(t) == quantized and broadcast(g.shape_of(t), shape) <= LARGEST]
    if name in {"MAXIMUM", "MINIMUM"} and quantized:
        spec = g.network.tensors[source]
        same = {"scale": spec.scales[0], "zero_point": spec.zero_points[0]}
        other = g.network.constant(g.data([g.choice((size, 1)) for size in shape], quantized=True), **same)
        g.learn(g.network.binary(name, source, other, **same), 4.0, exact=True)
        return
    other = g.choice([source, *fits])
    spreads = g.spread[source], g.spread[other]
    spread = {"MUL": spreads[0] * spreads[1], "SQUARED_DIFFERENCE": sum(spreads) ** 2}.get(name, sum(spreads))
    if not quantized and spread > LARGEST_SPREAD:
        return
    larger = max(source, other, key=g.scale_of)
    factor = (
        {"SUB": 1.3, "MUL": 50 * min(g.scale_of(source), g.scale_of(other)), "SQUARED_DIFFERENCE": 200.0}[name]
        if quantized
        else 1.0
    )
    options = {"activation": g.choice(ACTIVATIONS)} if name in {"SUB", "MUL"} else {}
    if name == "SQUARED_DIFFERENCE" and quantized:
        factor *= g.scale_of(larger)
    output = g.network.binary(name, source, other, **options, **g.rescaled(larger, factor))
    g.learn(output, max(spread, 1.0), exact={source, other} <= g.exact)


def move(g: RandomGraph, source: int) -> None:
    """Apply a transposition, a slice, a concatenation of a tensor with itself, or a split."""
    shape, net, exact = g.shape_of(source), g.network, source in g.exact
    if not shape:
        return
    axis = g.number(0, len(shape) - 1)
    kind = g.choice(("TRANSPOSE", "SLICE", "CONCATENATION", "SPLIT"))
    outputs = []
    if kind == "TRANSPOSE":
        order = g.random.permutation(len(shape)).tolist()
        outputs = [net.move(kind, source, [shape[at] for at in order], net.integers(order))]
    elif kind == "SLICE":
        starts = [g.number(0, (size - 1) // 2) for size in shape]
        sizes = [size - start for size, start in zip(shape, starts, strict=True)]
        outputs = [net.move(kind, source, sizes, net.integers(starts), net.integers(sizes))]
    elif kind == "CONCATENATION" and np.prod(shape) <= LARGEST / 2:
        output = net.like(source, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]))
        outputs = [net.operator(kind, [source, source], output, "ConcatenationOptions", Axis=axis)]
    elif kind == "SPLIT" and shape[axis] % 2 == 0:
        halves = [net.like(source, (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])) for _ in range(2)]
        outputs = net.many(kind, [net.integers(axis), source], halves, "SplitOptions", NumSplits=2)
    for output in outputs:
        g.learn(output, g.spread[source], exact=exact)
