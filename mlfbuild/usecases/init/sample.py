"""A case for the network: from the user's vectors, or by its operators' own arithmetic in numpy."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlfbuild.build.tree import subject_of
from mlfbuild.core import UnsupportedModelError, UsageError, listed, read_bytes
from mlfbuild.frontends import read_model
from mlfbuild.graph import Array, Tensor, evaluate
from mlfbuild.targets import Board
from mlfbuild.usecases.init.network import EXAMPLE, Network
from mlfbuild.verify import load_vectors


@dataclass(frozen=True, eq=False)
class Sample:
    """One case for a network of one module, and the vectors file that it comes from."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    """Flat, in call order."""
    vectors: bytes
    """Content of the ``.npz`` file."""
    file: str
    """Path of that file in the project; empty where ``verify`` cannot take the network."""
    computed: bool
    """Whether mlfbuild worked the outputs out itself."""


def sample_of(network: Network, vectors: Path | None, board: Board) -> Sample | None:
    """Return a case for ``network``, ``None`` for an archive without ``vectors``.

    Raises ``UsageError`` for vectors of several modules, and what ``load_vectors`` does.
    """
    if vectors is None and network.path == EXAMPLE:
        vectors = EXAMPLE.with_suffix(".npz")
    if vectors is None and network.compiler == "archive":
        return None
    if len(network.library.modules) > 1:
        raise UsageError(f"--vectors {vectors}: are of one network, and {network.path} holds several; leave them out")
    (module,) = network.library.modules
    file = "" if why_no_verify(network, board) else f"tests/{network.name}.npz"
    if vectors is None:
        inputs, outputs = _computed(network)
        return Sample(_flat(inputs), _flat(outputs), _npz(inputs, outputs), file, computed=True)
    cases = load_vectors(vectors, module)
    content = read_bytes(vectors, "vectors file")
    return Sample(_first(cases.inputs), _first(cases.outputs), content, file, computed=False)


def why_no_verify(network: Network, board: Board) -> str:
    """Return why ``mlfbuild verify`` cannot check ``network`` even with vectors; empty where it can."""
    names = [module.name for module in network.library.modules]
    if len(names) > 1:
        return f"an archive of several modules needs vectors of each in mlfbuild.yml, and this one has {listed(names)}"
    try:
        subject_of(network.library.modules[0], board.name)
    except UnsupportedModelError as error:
        return str(error)
    return ""


def _first(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(array[0] for array in arrays)


def _flat(arrays: list[Array]) -> tuple[Array, ...]:
    return tuple(array.reshape(-1) for array in arrays)


def _computed(network: Network) -> tuple[list[Array], list[Array]]:
    graph = read_model(network.path, network.name)
    inputs = {name: _pattern(graph.tensor(name)) for name in graph.inputs}
    values = evaluate(graph, inputs)
    return [inputs[name] for name in graph.inputs], [values[name] for name in graph.outputs]


def _pattern(tensor: Tensor) -> Array:
    """Return values without any meaning, the same on every machine: bytes from -128 to 127, floats from -1 to 1."""
    count = int(np.prod(tensor.shape))
    values = (np.arange(count, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(24)).astype(np.uint8)
    dtype = np.dtype(tensor.dtype.numpy)
    pattern: Array = values.view(np.int8) if dtype.kind == "i" else values
    if dtype.kind == "f":
        pattern = (values.astype(np.int16) - 128) / 128
    return np.asarray(pattern.astype(dtype).reshape(tensor.shape))


def _npz(inputs: list[Array], outputs: list[Array]) -> bytes:
    arrays: dict[str, Any] = {}
    for kind, values in (("in", inputs), ("out", outputs)):
        arrays |= {f"{kind}{index}": array[np.newaxis] for index, array in enumerate(values)}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()
