"""Run a network of an archive or of a model file with given inputs, here or on an emulated board."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.build import check_arrays_output, open_model
from mlfbuild.core import ProcessFailedError, write_atomic
from mlfbuild.executor import chosen_module
from mlfbuild.library import TensorInfo
from mlfbuild.requirements import bundled_libraries
from mlfbuild.targets import Board, board_called
from mlfbuild.verify import load_inputs
from mlfbuild.verify.host import Model, load

Array = npt.NDArray[Any]

_HEADER = 64 * 1024
"""More than what an ``.npz`` file has beside the elements of an array."""
_BUILD_SECONDS = 900.0
"""Time to compile the network in a sandbox."""


@dataclass(frozen=True)
class ArchiveRun:
    """The result of a run: the network's name, the number of cases, and the outputs in call order."""

    model: str
    cases: int
    outputs: tuple[TensorInfo, ...]


def run_archive(
    archive: Path,
    model: str | None,
    inputs: Path,
    output: Path,
    timeout: float,
    board: str | None = None,
    *,
    sandbox: bool = False,
) -> ArchiveRun:
    """Run the network ``model`` of ``archive`` with every case of ``inputs``; write ``output``.

    If ``archive`` is a model file, it is compiled for the board's CPU, or for this machine.

    ``output`` is an ``.npz`` file with one array for each output, named after the tensor; the first axis is the case. A
    network with state keeps it from case to case. Without ``board`` the code runs in a separate process on this
    machine, otherwise as firmware on QEMU; each case may take ``timeout`` seconds. With ``sandbox``, it is compiled and
    run as in ``mlfbuild.verify.run_in_sandbox``.

    Raises as ``mlfbuild.load``, ``run_in_sandbox`` and ``run_on_board``; ``InputFileError`` if ``inputs`` do not fit
    the network, ``UsageError`` for an unknown board, and ``ConflictError`` if ``output`` is one of the inputs, or
    exists and is not an ``.npz`` file. If the network fails, crashes or hangs, raises ``ProcessFailedError``, which
    names the case, and writes nothing.
    """
    check_arrays_output(output, archive, inputs)
    if sandbox:
        result, arrays = _run_in_sandbox(archive, model, inputs, timeout, board)
    elif board is None:
        result, arrays = _run_here(archive, model, inputs, timeout)
    else:
        result, arrays = _run_on_board(archive, model, inputs, timeout, board_called(board))
    write_atomic(output, _npz(arrays))
    return result


def _run_here(archive: Path, model: str | None, path: Path, timeout: float) -> tuple[ArchiveRun, dict[str, Array]]:
    network = load(archive, model, isolated=True, timeout=timeout)
    try:
        cases, arrays = load_inputs(path, network)
        outputs: dict[str, list[Array]] = {tensor.name: [] for tensor in network.outputs}
        for case in range(cases):
            named = {t.name: _shaped(array[case], t) for t, array in zip(network.inputs, arrays, strict=True)}
            for name, value in _run_case(network, case, named).items():
                outputs[name].append(value)
    finally:
        network.close()
    return ArchiveRun(network.name, cases, network.outputs), {
        name: np.stack(values) for name, values in outputs.items()
    }


def _run_case(network: Model, case: int, inputs: dict[str, Array]) -> dict[str, Array]:
    try:
        return network.run(inputs)
    except ProcessFailedError as error:
        place, reason = f"{network.name}: case {case}", error.reason.removeprefix(f"{network.name}: ")
        raise type(error)(error.code, error.output, place=place, reason=reason, hint=error.hint) from None


def _run_on_board(
    archive: Path, model: str | None, path: Path, timeout: float, board: Board
) -> tuple[ArchiveRun, dict[str, Array]]:
    from mlfbuild.verify.emulator import run_on_board

    library, where = open_model(archive, board.cpu), str(archive)
    module = chosen_module(library, model, where)
    cases, arrays = load_inputs(path, module)
    outputs = run_on_board(module, board, arrays, where, timeout, bundled_libraries(library, module, where))
    named = {tensor.name: array for tensor, array in zip(module.outputs, outputs, strict=True)}
    return ArchiveRun(module.name, cases, module.outputs), named


def _run_in_sandbox(
    archive: Path, model: str | None, path: Path, timeout: float, board: str | None
) -> tuple[ArchiveRun, dict[str, Array]]:
    from mlfbuild.verify import run_in_sandbox

    module = chosen_module(open_model(archive), model, str(archive))
    cases, _ = load_inputs(path, module)
    arguments = [str(archive), "--inputs", str(path), "--timeout", str(timeout)]
    arguments += [*(["--model", model] if model else []), *(["--board", board] if board else [])]
    size = sum(cases * tensor.size + _HEADER for tensor in module.outputs) + _HEADER
    arrays = run_in_sandbox(arguments, (archive, path), seconds=cases * timeout + _BUILD_SECONDS, size=size)
    if [*arrays] != [tensor.name for tensor in module.outputs] or {len(array) for array in arrays.values()} != {cases}:
        reason = "returned other arrays than the outputs of the network"
        raise ProcessFailedError("sandbox-answer-wrong", place="sandbox", reason=reason)
    return ArchiveRun(module.name, cases, module.outputs), arrays


def _shaped(values: Array, tensor: TensorInfo) -> Array:
    return values if tensor.shape is None else values.reshape(tensor.shape)


def _npz(arrays: Mapping[str, Array]) -> bytes:
    """Return ``arrays`` as ``numpy.savez`` writes them, but without dates and with any name."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return data.getvalue()
