"""Run an archive's network with the inputs of a file and keep its outputs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.emulator.vectors import load_inputs
from mlfbuild.files import write_atomic
from mlfbuild.host import Model, load
from mlfbuild.library import TensorInfo
from mlfbuild.steps.outputs import check_arrays_output

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RunResult:
    """What was run."""

    model: str
    cases: int
    outputs: tuple[TensorInfo, ...]


def run_archive(archive: Path, model: str | None, inputs: Path, output: Path, timeout: float) -> RunResult:
    """Run the network ``model`` of ``archive`` on this machine with every case of ``inputs``; write ``output``.

    ``output`` is an ``.npz`` file of one array an output, named as the tensor, whose first axis counts cases. A network
    with state goes on from case to case. Its code runs in a process of its own, each case at most ``timeout`` seconds.

    Raises as ``mlfbuild.load`` does, ``InputFileError`` where ``inputs`` does not fit the network, and
    ``ProcessFailedError`` where the network fails, crashes or hangs: then nothing is written. ``ConflictError`` where
    ``output`` is there and is no ``.npz`` file, or is what is to be read.
    """
    check_arrays_output(output, archive, inputs)
    network = load(archive, model, isolated=True, timeout=timeout)
    try:
        cases, results = _run(network, inputs)
    finally:
        network.close()
    write_atomic(output, _npz(results))
    return RunResult(network.name, cases, network.outputs)


def _run(network: Model, path: Path) -> tuple[int, dict[str, Array]]:
    cases, arrays = load_inputs(path, network)
    outputs: dict[str, list[Array]] = {tensor.name: [] for tensor in network.outputs}
    for case in range(cases):
        named = {t.name: _shaped(array[case], t) for t, array in zip(network.inputs, arrays, strict=True)}
        for name, value in network.run(named).items():
            outputs[name].append(value)
    return cases, {name: np.stack(values) for name, values in outputs.items()}


def _shaped(values: Array, tensor: TensorInfo) -> Array:
    return values if tensor.shape is None else values.reshape(tensor.shape)


def _npz(arrays: Mapping[str, Array]) -> bytes:
    """Return ``arrays`` as ``numpy.savez`` would write them, but for dates and for names that it cannot take."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return data.getvalue()
