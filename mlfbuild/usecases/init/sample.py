"""Provide a case for the network: from the user's vectors, or computed with numpy.

The inputs of computed cases are random, and their outputs those of mlfbuild's own reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlfbuild import __version__
from mlfbuild.core import UnsupportedModelError, UsageError, listed, read_bytes
from mlfbuild.jobs.tree import subject_of
from mlfbuild.library import CompileRequest
from mlfbuild.native import Array, Graph, Tensor, evaluate_in_turn, read_network
from mlfbuild.targets import CPUS, Board
from mlfbuild.usecases.init.project_network import EXAMPLE, ProjectNetwork
from mlfbuild.verify import VectorsOrigin, load_vectors, random_array, vectors_file

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


@dataclass(frozen=True, eq=False)
class Sample:
    """One case for a network of one module, and the vectors file that it comes from."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    """Flat arrays, in call order."""
    vectors: bytes
    """Content of the ``.npz`` file."""
    file: str
    """Path of that file in the project; empty if ``verify`` cannot check the network."""
    computed: bool
    """Whether mlfbuild computed the outputs."""


def sample_of(network: ProjectNetwork, vectors: Path | None, board: Board) -> Sample | None:
    """Return a case for ``network``, or ``None`` for an archive without ``vectors``.

    Raises ``UsageError`` for vectors if the archive has several modules, and as ``load_vectors``.
    """
    # The example model has vectors beside it.
    if vectors is None and network.path == EXAMPLE:
        vectors = EXAMPLE.with_suffix(".npz")
    if vectors is None and network.compiler == "archive":
        return None
    if len(network.library.modules) > 1:
        raise UsageError(
            "vectors-of-several-modules",
            place=f"--vectors {vectors}",
            reason=f"vectors are for one network, and {network.path} has several",
            hint="omit --vectors, and add vectors for each module to mlfbuild.yml later",
        )
    (module,) = network.library.modules
    file = "" if why_no_verify(network, board) else f"tests/{network.name}.npz"
    if vectors is None:
        inputs, outputs, content = _computed(network)
        return Sample(_first(inputs), _first(outputs), content, file, computed=True)
    cases = load_vectors(vectors, module)
    content = read_bytes(vectors, "vectors file")
    return Sample(_first(cases.inputs), _first(cases.outputs), content, file, computed=False)


def why_no_verify(network: ProjectNetwork, board: Board) -> str:
    """Return why ``mlfbuild verify`` cannot check ``network`` even with vectors; empty if it can."""
    names = [module.name for module in network.library.modules]
    if len(names) > 1:
        return f"the archive has several modules ({listed(names)}): add vectors for each of them to mlfbuild.yml"
    try:
        subject_of(network.library.modules[0], board.name)
    except UnsupportedModelError as error:
        return str(error)
    return ""


def _first(arrays: Sequence[Array]) -> tuple[Array, ...]:
    return tuple(array[0].reshape(-1) for array in arrays)


def _computed(network: ProjectNetwork) -> tuple[list[Array], list[Array], bytes]:
    """Return inputs and outputs of all cases, and the vectors file."""
    # The outputs do not depend on the CPU, so the network is read for this machine.
    graph, identity = read_network(CompileRequest(network.name, network.path, CPUS["host"]))
    inputs = random_inputs([graph.tensor(name) for name in graph.inputs], CASES, 0)
    outputs = own_outputs(graph, inputs)
    return inputs, outputs, vectors_file(inputs, outputs, own_origin(0, identity))
