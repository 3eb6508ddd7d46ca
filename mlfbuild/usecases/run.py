"""Run a network of an archive or of a model file with given inputs, here or on an emulated board."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import ProcessFailedError, write_atomic
from mlfbuild.executor import chosen_module
from mlfbuild.jobs import TargetJob, check_arrays_output, load as load_project, open_model, target_jobs
from mlfbuild.library import Module, ResolvedLibrary, TensorInfo, corrected_sources, dtype_called
from mlfbuild.requirements import bundled_libraries
from mlfbuild.targets import Board, board_called
from mlfbuild.usecases.verify import with_device
from mlfbuild.verify import connected, device_of, generated_inputs, load_inputs
from mlfbuild.verify.device import DeviceMachine, run_on_device
from mlfbuild.verify.host import Model, load

Array = npt.NDArray[Any]

_HEADER = 64 * 1024
"""More than what an ``.npz`` file has beside the elements of an array."""
_BUILD_SECONDS = 900.0
"""Time to compile the network in a sandbox."""


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a run: those of a file, or else one case of zeros, or of random numbers if there is a seed."""

    path: Path | None = None
    seed: int | None = None

    def load(self, network: Model | Module) -> tuple[int, tuple[Array, ...]]:
        """Return the number of cases, and an array (cases, elements) for each input; raises as ``load_inputs``."""
        if self.path is not None:
            return load_inputs(self.path, network)
        return 1, generated_inputs(network, self.seed)

    def __str__(self) -> str:
        """Return what they are, for people."""
        if self.path is not None:
            return str(self.path)
        return "zeros" if self.seed is None else f"random numbers, seed {self.seed}"


@dataclass(frozen=True)
class ArchiveRun:
    """The result of a run: the network's name, the number of cases, and its tensors in call order."""

    model: str
    cases: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    values: Mapping[str, Array]
    """The outputs by name: (cases, *shape), or (cases, elements) if the shape is unknown."""
    device: str = ""
    """The device that it ran on; empty if it was not a device of a target."""
    notes: tuple[str, ...] = ()
    """The sources of which a corrected copy was compiled."""

    def as_json(self) -> dict[str, Any]:
        """Return the outputs as nested lists; ``None`` stands for NaN and infinity, which JSON cannot have."""
        return {name: _as_json(array) for name, array in self.values.items()}

    def views(self) -> Iterator[tuple[TensorInfo, str]]:
        """Yield each output with the first and the last elements of its first case, and their range, on one line."""
        for tensor in self.outputs:
            yield tensor, _view(self.values[tensor.name][0], tensor)


def _as_json(array: Array) -> Any:
    values = array.astype(object)
    values[~np.isfinite(array)] = None
    return values.tolist()


def _view(values: Array, tensor: TensorInfo) -> str:
    flat = values.reshape(-1)
    if not flat.size:
        return "no elements"
    real = tensor.dequantized(flat)
    # Nine numbers at most: with seven or more, numpy prints three at each end.
    words = np.array2string(real, threshold=9, edgeitems=4, max_line_width=1000, precision=5)
    stored = "" if tensor.scale is None else f"; stored as {flat.min():g} to {flat.max():g}"
    return f"{words}, from {real.min():.5g} to {real.max():.5g}{stored}"


def run_archive(
    archive: Path,
    model: str | None,
    inputs: Path | RunInputs,
    output: Path | None,
    timeout: float,
    board: str | None = None,
    *,
    sandbox: bool = False,
    target: DeviceTarget | None = None,
) -> ArchiveRun:
    """Run the network ``model`` of ``archive`` with every case of ``inputs``; write ``output``, if there is one.

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
    given = inputs if isinstance(inputs, RunInputs) else RunInputs(inputs)
    if output is not None:
        check_arrays_output(output, archive, *([given.path] if given.path is not None else []))
    if target is not None:
        result = _run_on_target(archive, model, given, timeout, target)
    elif sandbox:
        result = _run_in_sandbox(archive, model, given, timeout, board)
    elif board is None:
        result = _run_here(archive, model, given, timeout)
    else:
        result = _run_on_board(archive, model, given, timeout, board_called(board))
    if output is not None:
        write_atomic(output, _npz(result.values))
    return result


def _run_here(archive: Path, model: str | None, inputs: RunInputs, timeout: float) -> ArchiveRun:
    network = load(archive, model, isolated=True, timeout=timeout)
    try:
        cases, arrays = inputs.load(network)
        outputs: dict[str, list[Array]] = {tensor.name: [] for tensor in network.outputs}
        for case in range(cases):
            named = {t.name: _shaped(array[case], t) for t, array in zip(network.inputs, arrays, strict=True)}
            for name, value in _run_case(network, case, named).items():
                outputs[name].append(value)
    finally:
        # The network runs in another process, which would otherwise stay.
        network.close()
    values = {name: np.stack(found) for name, found in outputs.items()}
    return ArchiveRun(network.name, cases, network.inputs, network.outputs, values, notes=network.notes)


def _run_case(network: Model, case: int, inputs: dict[str, Array]) -> dict[str, Array]:
    try:
        return network.run(inputs)
    except ProcessFailedError as error:
        place, reason = f"{network.name}: case {case}", error.reason.removeprefix(f"{network.name}: ")
        raise type(error)(error.code, error.output, place=place, reason=reason, hint=error.hint) from None


def _run_on_board(archive: Path, model: str | None, inputs: RunInputs, timeout: float, board: Board) -> ArchiveRun:
    from mlfbuild.verify.emulator import run_on_board

    module, libraries = _opened(archive, model, board.cpu)
    cases, arrays = inputs.load(module)
    return _result(module, cases, run_on_board(module, board, arrays, str(archive), timeout, libraries))


def _opened(archive: Path, model: str | None, cpu: str) -> tuple[Module, tuple[ResolvedLibrary, ...]]:
    """Return a network of ``archive`` and the libraries in it that it requires; a model is compiled for ``cpu``."""
    library, where = open_model(archive, cpu), str(archive)
    module = chosen_module(library, model, where)
    return module, bundled_libraries(library, module, where)


def _result(module: Module, cases: int, outputs: Sequence[Array], device: str = "") -> ArchiveRun:
    named = {tensor.name: array for tensor, array in zip(module.outputs, outputs, strict=True)}
    return ArchiveRun(module.name, cases, module.inputs, module.outputs, named, device, corrected_sources(module))


@dataclass(frozen=True)
class DeviceTarget:
    """A target of a project file that has a device."""

    target: TargetJob
    toolchain: Path
    """The target's CMake toolchain file."""
    place: str
    """Of its runner, in messages."""


def device_target(file: Path, name: str) -> DeviceTarget:
    """Return the target ``name`` of the project ``file``.

    An emulated board counts as a device. Raises ``ProjectFileError`` as ``load``, and ``UsageError`` if there is no
    such target, or it has no device.
    """
    project = load_project(file)
    (job,) = target_jobs(project, [name])
    # This machine has no toolchain file, and is not a device.
    job = with_device(job if job.toolchain is not None else replace(job, runner=None, board=None))
    assert job.toolchain is not None
    return DeviceTarget(job, job.toolchain, f"{project.path}: targets.{name}.runner")


def load_on_device(archive: Path, model: str | None, target: DeviceTarget, timeout: float = 60.0) -> Model:
    """Return the network ``model`` of ``archive``, whose code runs on the device of ``target`` until it is closed.

    Raises as ``mlfbuild.load``, as ``device_of`` and as ``run_on_device``.
    """
    device = device_of(target.target, target.place)
    module, libraries = _opened(archive, model, target.target.cpu.name)
    return Model(module, DeviceMachine(module, device, target.toolchain, str(archive), libraries, timeout))


def _run_on_target(
    archive: Path, model: str | None, inputs: RunInputs, timeout: float, target: DeviceTarget
) -> ArchiveRun:
    device = device_of(target.target, target.place)
    module, libraries = _opened(archive, model, target.target.cpu.name)
    cases, arrays = inputs.load(module)
    with connected(device) as connection:
        outputs = run_on_device(module, connection, target.toolchain, arrays, str(archive), timeout, libraries)
        return _result(module, cases, outputs, connection.name)


def _run_in_sandbox(
    archive: Path, model: str | None, inputs: RunInputs, timeout: float, board: str | None
) -> ArchiveRun:
    from mlfbuild.verify import run_in_sandbox

    module = chosen_module(open_model(archive), model, str(archive))
    # Inputs are read here only to refuse wrong ones with a good message and to know the number of cases.
    cases, given = inputs.load(module)
    # The most that a correct answer takes, so that the code inside cannot fill the disk.
    size = sum(cases * tensor.size + _HEADER for tensor in module.outputs) + _HEADER
    with tempfile.TemporaryDirectory(prefix="mlfbuild-run-") as folder:
        path = inputs.path or Path(folder) / "inputs.npz"
        if inputs.path is None:
            named = zip(module.inputs, given, strict=True)
            shaped = [np.stack([_shaped(case, tensor) for case in array]) for tensor, array in named]
            path.write_bytes(_npz({f"in{index}": array for index, array in enumerate(shaped)}))
        arguments = [str(archive), "--inputs", str(path), "--timeout", str(timeout)]
        arguments += [*(["--model", model] if model else []), *(["--board", board] if board else [])]
        arrays = run_in_sandbox(arguments, (archive, path), seconds=cases * timeout + _BUILD_SECONDS, size=size)
    # The sandbox runs code of a stranger, which may have written this answer.
    expected = {tensor.name: (dtype_called(tensor.dtype), (cases,), cases * tensor.size) for tensor in module.outputs}
    if {name: (array.dtype, array.shape[:1], array.nbytes) for name, array in arrays.items()} != expected:
        reason = "returned other arrays than the outputs of the network"
        raise ProcessFailedError("sandbox-answer-wrong", place="sandbox", reason=reason)
    return ArchiveRun(module.name, cases, module.inputs, module.outputs, arrays, notes=corrected_sources(module))


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
