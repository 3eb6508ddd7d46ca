"""Inputs for a network, and the outputs that mlfbuild's own reference computes for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild import __version__
from mlfbuild.native import Array, Graph, Tensor, evaluate_in_turn
from mlfbuild.verify import VectorsOrigin

CASES = 8


def random_inputs(tensors: Sequence[Tensor], cases: int, seed: int) -> list[Array]:
    """Return ``cases`` inputs for each of ``tensors``, [cases, *shape], the same for a seed on every machine.

    Integers of 8 and 16 bits have their whole range, floats are from -1 to 1, and larger integers, which are usually
    indices, 0 or 1. ``RandomState`` is the generator whose numbers numpy promises not to change.
    """
    random = np.random.RandomState(seed)
    return [_random(random, tensor, cases) for tensor in tensors]


def _random(random: np.random.RandomState, tensor: Tensor, cases: int) -> Array:
    dtype, shape = np.dtype(tensor.dtype.numpy), (cases, *tensor.shape)
    if dtype.kind == "f":
        return random.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        limits = np.iinfo(dtype)
        return random.randint(limits.min, limits.max + 1, shape).astype(dtype)
    return random.randint(0, 2, shape).astype(dtype)


def own_outputs(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs [cases, *shape] of ``graph`` in mlfbuild's own arithmetic, in numpy."""
    runs = (dict(zip(graph.inputs, case, strict=True)) for case in zip(*inputs, strict=True))
    results = [[values[name] for name in graph.outputs] for values in evaluate_in_turn(graph, runs)]
    return [np.stack(output) for output in zip(*results, strict=True)]


def own_origin(seed: int | None, model: str) -> VectorsOrigin:
    """Return the origin of ``own_outputs`` for the files whose hash is ``model``."""
    return VectorsOrigin(f"mlfbuild {__version__}", checked=False, seed=seed, model=model)
