"""Make the blob with which firmware in the field gets the values of a network that was trained again.

    new model file or archive, model of the project or archive of the firmware -> structures compared -> blob

The code of the firmware and the new values must have one structure. Both are made the same way: a model file is
compiled for the CPU and with the options of the firmware's model, and an archive has its structure as a text. The
first line that differs names the operator.

Both networks then run on this machine with the same inputs, which shows how far their outputs are apart. Whether the
new network is better is for ``evaluate``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.archive import open_archive, write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core import CheckFailedError, MlfError, Trust, UsageError, counted, write_atomic
from mlfbuild.jobs import QuantizeStep, check_replaced, is_model, make_quantized, open_if_archive, target_jobs
from mlfbuild.library import (
    BLOB_MAGIC,
    REPLACEABLE,
    CompileRequest,
    Library,
    Module,
    OptionValue,
    ParameterBlob,
    TensorInfo,
    aligned_parts,
    blob_file,
    dtype_called,
    read_blob,
)
from mlfbuild.library.keys import InterfaceNames
from mlfbuild.project import Project
from mlfbuild.targets import CPUS
from mlfbuild.usecases.run import ArchiveRun, RunInputs, run_archive

_FIRST_LINES = {
    "blob": "is for another processor core or layout",
    "kernels": "has kernels of another version of mlfbuild",
    "input": "has another input",
    "output": "has another output",
    "size": "has another size",
}
"""First word of a line of a structure -> what is wrong if it differs."""
_OF_NETWORKS = ("trees", "tree-room", "tflm")
"""Options that the compiler refuses for networks without certain operators."""


@dataclass(frozen=True)
class NewParameters:
    """The source of a blob."""

    source: Path
    """The new network: a model file or an archive."""
    firmware: str
    """The model of the project, or the archive, that the firmware was built with."""
    output: Path
    version: int = 0
    vectors: Path | None = None
    """Inputs with which both networks run; by default the vectors of the project's model, or random numbers."""
    tests: int = 0
    """The number of test vectors in the blob."""
    target: str | None = None
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    """With an archive as the firmware: the options with which its model was compiled."""


@dataclass(frozen=True)
class MadeParameters:
    """A blob, and how its outputs differ from those of the firmware."""

    path: Path
    model: str
    structure: str
    version: int
    size: int
    values: int
    """Bytes that differ from the blob in the firmware."""
    cases: int
    different: int
    """Cases with another output."""
    largest: float
    """The largest difference of an output, in the numbers that it stands for."""
    other_class: int
    """Cases whose first output has its maximum at another place."""
    tests: int

    def text(self) -> str:
        """Return the result in four lines."""
        cases, structure = counted(self.cases, "case"), self.structure[:16]
        return "\n".join(
            [
                f"{self.path}: {self.size:,} bytes for {self.model}, version {self.version}, structure {structure}",
                f"  {self.values:,} bytes of values differ; {counted(self.tests, 'test vector')}",
                f"  outputs differ in {self.different} of {cases}, at most by {self.largest:g}",
                f"  the maximum of the first output is elsewhere in {self.other_class} of {cases}",
            ]
        )


def make_parameters(wanted: NewParameters, project: Project | None = None) -> MadeParameters:
    """Write the blob, and compare both networks.

    ``project`` is needed if the firmware is named by a model. Raises ``CheckFailedError`` if the structures differ,
    ``UsageError`` for a model without ``parameters: replaceable``, and as the compiler and ``open_archive``.
    """
    check_replaced(wanted.output, (wanted.source,), "blob", "parameter blob", _is_blob)
    firmware = _firmware(wanted, project)
    given = RunInputs(wanted.vectors or firmware.vectors, seed=0)
    with tempfile.TemporaryDirectory(prefix="mlfbuild-") as folder:
        old, new = firmware.library, _new_library(wanted, firmware, Path(folder))
        structures = [_text(_module(each, where), "txt") for each, where in _named(wanted, old, new)]
        _check_structures(structures[0], structures[1], wanted)
        # By position: vectors may have the names of the firmware's tensors, and those of the new network are others.
        given = _by_position(given, _module(old, wanted.firmware), Path(folder) / "inputs.npz")
        runs = [_run(library, Path(folder) / f"{at}.tar", given) for at, library in enumerate((old, new))]
        module = _module(new, str(wanted.source))
        vectors = _tests(wanted, module, given, runs[1])
    blob, before = (read_blob(_file(_module(each, ""), "bin"), str(wanted.source)) for each in (new, old))
    blob = replace(blob, version=wanted.version, vectors=vectors)
    data = blob.data()
    write_atomic(wanted.output, data)
    return _compared(wanted, blob, before, len(data), runs)


def _is_blob(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(BLOB_MAGIC)) == BLOB_MAGIC


def _named(wanted: NewParameters, old: Library, new: Library) -> tuple[tuple[Library, str], tuple[Library, str]]:
    return (old, wanted.firmware), (new, str(wanted.source))


@dataclass(frozen=True)
class _Firmware:
    """The library that the firmware was built with."""

    library: Library
    request: CompileRequest
    vectors: Path | None = None
    quantize: QuantizeStep | None = None
    trust: Trust | None = None
    """The accepted signers of an archive with the new network."""


def _firmware(wanted: NewParameters, project: Project | None) -> _Firmware:
    archive = Path(wanted.firmware)
    if archive.suffix == ".tar" or project is None:
        return _of_archive(archive, wanted)
    if wanted.options:
        raise UsageError(
            "options-of-project-model",
            place="-O",
            reason="the project file has the options of its models",
            hint="remove -O",
        )
    jobs = target_jobs(project, [] if wanted.target is None else [wanted.target], [wanted.firmware])
    models = [model for target in jobs for model in target.models]
    if len({model.request.cpu.name for model in models}) != 1:
        raise UsageError(
            "several-targets",
            place="--target",
            reason=f"a blob is for one processor core, and {wanted.firmware} is not built for exactly one here",
            hint="choose a target with --target",
        )
    request, step = models[0].request, models[0].quantize
    vectors, trust = project.models[wanted.firmware].vectors.get(""), project.trust_in("archive")
    if models[0].compiler == "archive":
        return replace(_of_archive(request.source, wanted, trust), vectors=vectors)
    if request.options.get("parameters") != REPLACEABLE:
        raise UsageError(
            "parameters-linked",
            place=f"{project.path}: models.{wanted.firmware}",
            reason="has its values in the code",
            hint="add parameters: replaceable, and build the firmware with it",
        )
    if step is not None:
        make_quantized(step)
    return _Firmware(compiler_called("native").compile(request), request, vectors, step, trust)


def _of_archive(archive: Path, wanted: NewParameters, trust: Trust | None = None) -> _Firmware:
    library = open_archive(archive, trust)
    module = _module(library, wanted.firmware)
    cpu = _text(module, "txt").splitlines()[0].rpartition(" ")[2]
    if cpu not in CPUS:
        raise _without_blob(wanted.firmware)
    options = {**wanted.options, "parameters": REPLACEABLE}
    return _Firmware(library, CompileRequest(module.name, archive, CPUS[cpu], options=options), trust=trust)


def _new_library(wanted: NewParameters, firmware: _Firmware, folder: Path) -> Library:
    """Return the library of the new network; it is quantised as the firmware's model is in its build."""
    if not is_model(wanted.source):
        return open_if_archive(wanted.source, firmware.trust)
    source = wanted.source
    if firmware.quantize is not None:
        step = replace(firmware.quantize, source=source, made=folder / f"{firmware.request.name}{source.suffix}")
        make_quantized(step)
        source = step.made
    options = {**_reserved(_text(_module(firmware.library, wanted.firmware), "txt")), **firmware.request.options}
    request = replace(firmware.request, source=source, options=options)
    try:
        return compiler_called("native").compile(request)
    except UsageError:
        _check_operators(wanted, firmware.library, request)
        raise


def _reserved(structure: str) -> dict[str, str]:
    """Return the option with the memory that firmware reserves for trees: by default, a forest's size decides it."""
    rooms = set(re.findall(r"stream uint32_t\[(\d+)\]", structure))
    return {"tree-room": f"{4 * int(rooms.pop())}"} if len(rooms) == 1 else {}


def _check_operators(wanted: NewParameters, old: Library, request: CompileRequest) -> None:
    """Raise ``CheckFailedError`` if the new network has other operators than ``old``.

    For a ``request`` that was refused: it fits the firmware's model, and that it does not fit this one follows from
    the operators, which say more than an option for trees or a name too few.
    """
    options = {key: value for key, value in request.options.items() if key not in _OF_NETWORKS}
    try:
        new = compiler_called("native").compile(replace(request, options=options, interface=InterfaceNames()))
    except MlfError:
        return  # the refusal of the whole request is the one to report
    texts = [_text(_module(each, where), "txt") for each, where in _named(wanted, old, new)]
    if any(was != now for was, now in _operators(*texts)):
        _check_structures(texts[0], texts[1], wanted)


def _module(library: Library, where: str) -> Module:
    found = [module for module in library.modules if blob_file(module, "txt") is not None]
    if len(found) != 1:
        raise _without_blob(where)
    return found[0]


def _without_blob(where: str) -> UsageError:
    return UsageError(
        "archive-without-blob",
        place=where,
        reason="has no blob of parameters, or more than one",
        hint="use an archive of one model that was compiled with parameters: replaceable",
    )


def _file(module: Module, suffix: str) -> bytes:
    data = blob_file(module, suffix)
    if data is None:
        raise _without_blob(module.name)
    return data


def _text(module: Module, suffix: str) -> str:
    return _file(module, suffix).decode("utf-8", "replace")


def _check_structures(old: str, new: str, wanted: NewParameters) -> None:
    if old == new:
        return
    # Kernels and sizes follow from operators: the first one that differs says more.
    pairs = list(_operators(old, new)) or [("", "")]
    pairs += [pair for pair in zip(old.splitlines(), new.splitlines(), strict=False) if not pair[0][:1].isdigit()]
    was, now = next(pair for pair in pairs if pair[0] != pair[1])
    word = (was or now).partition(" ")[0]
    place = f"{wanted.source}: operator {word}" if word.isdigit() else str(wanted.source)
    if not was or not now:
        reason = f"is missing in {wanted.firmware if now else wanted.source}"
    else:
        about, other = _part_that_differs(now, was)
        reason = f"is {about}, and {other} in {wanted.firmware}"
        if not word.isdigit():
            reason = f"{_FIRST_LINES.get(word, 'has another structure')}: {about} instead of {other}"
    hint = "train the same architecture, or build new firmware"
    if Path(wanted.firmware).suffix == ".tar" and _shapes(was) == _shapes(now):
        hint = f"add the options with which {wanted.firmware} was compiled, each with -O, or build new firmware"
    if word == "kernels":
        hint = "use the version of mlfbuild that built the firmware"
    raise CheckFailedError("other-structure", place=place, reason=reason, hint=hint)


def _operators(*structures: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of both structures about each operator; empty if one has fewer."""
    both = ([line for line in text.splitlines() if line[:1].isdigit()] for text in structures)
    yield from zip_longest(*both, fillvalue="")


def _part_that_differs(line: str, other: str) -> tuple[str, str]:
    """Return the first parts of two lines that differ: shapes, kernel and code, or values."""
    parts = (each.partition(" ")[2].split("; ") for each in (line, other))
    return next(((a, b) for a, b in zip(*parts, strict=False) if a != b), (line, other))


def _by_position(given: RunInputs, module: Module, path: Path) -> RunInputs:
    cases, inputs = given.load(module)
    arrays: dict[str, Any] = {
        f"in{at}": array if tensor.shape is None else array.reshape(cases, *tensor.shape)
        for at, (array, tensor) in enumerate(zip(inputs, module.inputs, strict=True))
    }
    np.savez(path, **arrays)
    return RunInputs(path)


def _shapes(line: str) -> str:
    return line.partition("; ")[0]


def _run(library: Library, path: Path, inputs: RunInputs) -> ArchiveRun:
    write_archive(library, path)
    return run_archive(path, None, inputs, None, 60.0)


def _tests(wanted: NewParameters, module: Module, given: RunInputs, run: ArchiveRun) -> tuple[bytes, ...]:
    """Return the first cases as test vectors: their inputs, and the outputs of the new network."""
    if not wanted.tests:
        return ()
    if any(tensor.dtype.startswith("float") for tensor in module.outputs):
        raise UsageError(
            "tests-of-floats",
            place="--self-test",
            reason="the outputs are float32, which may differ by rounding on the device",
            hint="remove it",
        )
    cases, inputs = given.load(module)
    if cases < wanted.tests:
        raise UsageError(
            "too-few-cases", place="--self-test", reason=f"there are only {cases} cases", hint="use fewer, or --vectors"
        )
    outputs = [run.values[tensor.name] for tensor in module.outputs]
    return tuple(
        aligned_parts(
            [
                *(_bytes(array[case], tensor) for array, tensor in zip(inputs, module.inputs, strict=True)),
                *(_bytes(array[case], tensor) for array, tensor in zip(outputs, module.outputs, strict=True)),
            ]
        )
        for case in range(wanted.tests)
    )


def _bytes(values: Any, tensor: TensorInfo) -> bytes:
    return np.asarray(values, dtype_called(tensor.dtype)).tobytes()


def _compared(
    wanted: NewParameters, blob: ParameterBlob, before: ParameterBlob, size: int, runs: Sequence[ArchiveRun]
) -> MadeParameters:
    old, new = runs
    flat = [
        (_real(a, old).reshape(old.cases, -1), _real(b, new).reshape(new.cases, -1))
        for a, b in zip(old.outputs, new.outputs, strict=True)
    ]
    different = np.any([(a != b).any(axis=1) for a, b in flat], axis=0)
    first = flat[0]
    differing = sum(a != b for a, b in zip(blob.content, before.content, strict=True))
    return MadeParameters(
        wanted.output,
        new.model,
        blob.structure,
        blob.version,
        size,
        differing,
        new.cases,
        int(different.sum()),
        max(float(np.abs(a - b).max()) for a, b in flat),
        int((first[0].argmax(axis=1) != first[1].argmax(axis=1)).sum()),
        len(blob.vectors),
    )


def _real(tensor: TensorInfo, run: ArchiveRun) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.dequantized(run.values[tensor.name]), np.float64)
