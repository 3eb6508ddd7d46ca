"""Inputs for a network, and the outputs that mlfbuild's own reference computes for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild import __version__
from mlfbuild.native import Array, Graph, Tensor, evaluate_in_turn
from mlfbuild.verify import VectorsOrigin, random_array

CASES = 8


def random_inputs(tensors: Sequence[Tensor], cases: int, seed: int) -> list[Array]:
    """Return ``cases`` inputs for each of ``tensors``, [cases, *shape], as ``random_array``."""
    random = np.random.RandomState(seed)
    return [random_array(random, np.dtype(tensor.dtype.numpy), (cases, *tensor.shape)) for tensor in tensors]


def own_outputs(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the outputs [cases, *shape] of ``graph`` in mlfbuild's own arithmetic, in numpy."""
    runs = (dict(zip(graph.inputs, case, strict=True)) for case in zip(*inputs, strict=True))
    results = [[values[name] for name in graph.outputs] for values in evaluate_in_turn(graph, runs)]
    return [np.stack(output) for output in zip(*results, strict=True)]


def own_origin(seed: int | None, model: str) -> VectorsOrigin:
    """Return the origin of ``own_outputs`` for the files whose hash is ``model``."""
    return VectorsOrigin(f"mlfbuild {__version__}", checked=False, seed=seed, model=model)
