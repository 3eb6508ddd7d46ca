"""Run a network of an archive or of a model file with given inputs, here or on an emulated board."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import OnProgress, ProcessFailedError, UsageError, no_progress, write_atomic
from mlfbuild.executor import chosen_module
from mlfbuild.jobs import TargetJob, check_arrays_output, load as load_project, open_model, target_jobs
from mlfbuild.library import TensorInfo, corrected_sources
from mlfbuild.project import RunnerKeys
from mlfbuild.requirements import bundled_libraries
from mlfbuild.targets import Board, board_called
from mlfbuild.verify import connected, device_of, load_inputs
from mlfbuild.verify.device import DeviceMachine, run_on_device
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
    device: str = ""
    """The device that it ran on; empty if it was no device of a target."""
    notes: tuple[str, ...] = ()
    """The sources of which a corrected copy was compiled."""


def run_archive(
    archive: Path,
    model: str | None,
    inputs: Path,
    output: Path,
    timeout: float,
    board: str | None = None,
    *,
    sandbox: bool = False,
    target: DeviceTarget | None = None,
    on_progress: OnProgress = no_progress,
) -> ArchiveRun:
    """Run the network ``model`` of ``archive`` with every case of ``inputs``; write ``output``.

    If ``archive`` is a model file, it is compiled for the CPU of the board or target, or for this machine.

    ``output`` is an ``.npz`` file with one array for each output, named after the tensor; the first axis is the case. A
    network with state keeps it from case to case. The code runs on the device of ``target``, as firmware on QEMU if a
    ``board`` is named, and otherwise in a separate process on this machine; each case may take ``timeout`` seconds.
    With ``sandbox``, it is compiled and run as in ``mlfbuild.verify.run_in_sandbox``.

    For example, ``run_archive(Path("kws.tar"), None, Path("x.npz"), Path("y.npz"), 60.0, board="mps2-an386")``.

    Raises as ``mlfbuild.load``, ``run_in_sandbox`` and ``run_on_board``; ``InputFileError`` if ``inputs`` do not fit
    the network, ``UsageError`` for an unknown board, and ``ConflictError`` if ``output`` is one of the inputs, or
    exists and is not an ``.npz`` file. If the network fails, crashes or hangs, raises ``ProcessFailedError``, which
    names the case, and writes nothing.
    """
    check_arrays_output(output, archive, inputs)
    if target is not None:
        result, arrays = _run_on_target(archive, model, inputs, timeout, target, on_progress)
    elif sandbox:
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
        # The network runs in another process, which would otherwise stay.
        network.close()
    return ArchiveRun(network.name, cases, network.outputs, notes=network.notes), {
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
    return ArchiveRun(module.name, cases, module.outputs, notes=corrected_sources(module)), named


@dataclass(frozen=True)
class DeviceTarget:
    """A target of a project file that has a device."""

    target: TargetJob
    place: str
    """Of its runner, in messages."""


def device_target(file: Path, name: str) -> DeviceTarget:
    """Return the target ``name`` of the project ``file``.

    An emulated board counts as a device. Raises ``ProjectFileError`` as ``load``, and ``UsageError`` if there is no
    such target, or it has no device.
    """
    project = load_project(file)
    (job,) = target_jobs(project, [name])
    if job.runner is None and job.board is not None:
        job = replace(job, runner=RunnerKeys(qemu=job.board.name))
    if job.runner is None or job.toolchain is None:
        raise UsageError(
            "runner-missing",
            place=f"target {name}",
            reason="the target has no device",
            hint="add a runner to the target",
        )
    return DeviceTarget(job, f"{project.path}: targets.{name}.runner")


def load_on_device(archive: Path, model: str | None, target: DeviceTarget, timeout: float = 60.0) -> Model:
    """Return the network ``model`` of ``archive``, whose code runs on the device of ``target`` until it is closed.

    Raises as ``mlfbuild.load``, as ``device_of`` and as ``run_on_device``.
    """
    job, where = target.target, str(archive)
    device = device_of(job, target.place)
    library = open_model(archive, job.cpu.name)
    module = chosen_module(library, model, where)
    assert job.toolchain is not None  # device_target has checked it
    machine = DeviceMachine(module, device, job.toolchain, where, bundled_libraries(library, module, where), timeout)
    return Model(module, machine)


def _run_on_target(
    archive: Path, model: str | None, path: Path, timeout: float, target: DeviceTarget, on_progress: OnProgress
) -> tuple[ArchiveRun, dict[str, Array]]:
    job, where = target.target, str(archive)
    device = device_of(job, target.place)
    library = open_model(archive, job.cpu.name)
    module = chosen_module(library, model, where)
    cases, arrays = load_inputs(path, module)
    assert job.toolchain is not None  # device_target has checked it
    libraries = bundled_libraries(library, module, where)
    with connected(device) as connection:
        outputs = run_on_device(module, connection, job.toolchain, arrays, where, timeout, libraries, on_progress)
        name = connection.name
    named = {tensor.name: array for tensor, array in zip(module.outputs, outputs, strict=True)}
    return ArchiveRun(module.name, cases, module.outputs, name, corrected_sources(module)), named


def _run_in_sandbox(
    archive: Path, model: str | None, path: Path, timeout: float, board: str | None
) -> tuple[ArchiveRun, dict[str, Array]]:
    from mlfbuild.verify import run_in_sandbox

    module = chosen_module(open_model(archive), model, str(archive))
    # Inputs are read here only to refuse wrong ones with a good message and to know the number of cases.
    cases, _ = load_inputs(path, module)
    arguments = [str(archive), "--inputs", str(path), "--timeout", str(timeout)]
    arguments += [*(["--model", model] if model else []), *(["--board", board] if board else [])]
    # The most that a correct answer takes, so that the code inside cannot fill the disk.
    size = sum(cases * tensor.size + _HEADER for tensor in module.outputs) + _HEADER
    arrays = run_in_sandbox(arguments, (archive, path), seconds=cases * timeout + _BUILD_SECONDS, size=size)
    # The sandbox runs code of a stranger, which may have written this answer: it is not trusted to have the right names
    # and sizes.
    if [*arrays] != [tensor.name for tensor in module.outputs] or {len(array) for array in arrays.values()} != {cases}:
        reason = "returned other arrays than the outputs of the network"
        raise ProcessFailedError("sandbox-answer-wrong", place="sandbox", reason=reason)
    return ArchiveRun(module.name, cases, module.outputs, notes=corrected_sources(module)), arrays


def _shaped(values: Array, tensor: TensorInfo) -> Array:
    return values if tensor.shape is None else values.reshape(tensor.shape)


def _npz(arrays: Mapping[str, Array]) -> bytes:
    """Return ``arrays`` as ``numpy.savez`` writes them, but without dates and with any name."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, array in arrays.items():
            # ``ZipInfo`` without a time has the year 1980, so equal outputs make equal files. ``numpy.savez`` takes
            # names as keywords, and a tensor called ``file`` would collide with its own parameter.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return data.getvalue()
