"""Quantise one model file: check it and its data, let an engine do it, and say what came of it."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlfbuild.core import (
    LOOK,
    InputFileError,
    MlfError,
    ProcessFailedError,
    ToolNotFoundError,
    UsageError,
    better_error,
    counted,
    quoted,
    read_bytes,
    require_extra,
    run,
    write_atomic,
)
from mlfbuild.datasets import open_data
from mlfbuild.library import TensorInfo, port_names
from mlfbuild.library.keys import PortNames
from mlfbuild.native import Choices, Graph, Tensor, read_model
from mlfbuild.quantization.engine_request import EngineRequest
from mlfbuild.quantization.engines import engine_of
from mlfbuild.quantization.quantize_keys import MINMAX, QuantizeKeys, quantize_problems

FEW_CASES = 100
"""Fewer cases seldom have the extremes of the field."""
_INT32 = np.iinfo(np.int32)
_BATCH = 64
_ENVIRONMENT = {"TQDM_DISABLE": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
_CONVERTING = {"QUANTIZE", "DEQUANTIZE"}
_FLOAT = "float32"


@dataclass(frozen=True)
class QuantizedOperator:
    """One operator of the quantised network, in order of execution."""

    name: str
    """Its first output."""
    kind: str
    reason: str = ""
    """Why it runs in float32; empty if it runs on integers."""


@dataclass(frozen=True)
class QuantizedNetwork:
    """A description of a quantised file."""

    cases: int
    operators: tuple[QuantizedOperator, ...]
    warnings: tuple[str, ...]
    """Sentences about the data: too few cases, values that clip."""

    @property
    def floats(self) -> tuple[QuantizedOperator, ...]:
        """The operators that run in float32."""
        return tuple(each for each in self.operators if each.reason)

    @property
    def summary(self) -> str:
        """The numbers of calibration cases and of operators that run on integers."""
        whole, of = len(self.operators) - len(self.floats), counted(len(self.operators), "operator")
        return f"quantised with {counted(self.cases, 'case')}, {whole} of {of} on integers"

    @property
    def notes(self) -> tuple[str, ...]:
        """All that a user should know, a sentence each."""
        floats = (f"{each.kind} {quoted(each.name)} stays in float32: {each.reason}" for each in self.floats)
        return (*self.warnings, *floats)


@dataclass(frozen=True)
class _Range:
    """The least and the greatest number of one input."""

    low: float
    high: float
    step: float = 0.0
    """Between two numbers that the quantised input holds."""


def quantize(
    source: Path,
    keys: QuantizeKeys,
    out: Path,
    choices: Choices | None = None,
    names: PortNames = (),
) -> QuantizedNetwork:
    """Quantise the float network ``source`` as ``keys`` say, and write the result to ``out``, whole or not at all.

    ``choices`` are sizes of free dimensions; ``names`` are further names of inputs, in call order or by the name in the
    file, that arrays of the data may have. The same inputs give the same bytes.

    Raises ``UsageError`` for keys that do not fit, for a network that is quantised already or has no numbers in
    float32; ``InputFileError`` for data that do not fit the network or are constant; ``ToolNotFoundError`` without the
    engine; ``ProcessFailedError`` if it fails; and the errors of reading a model.
    """
    for key, mistake in quantize_problems(source, keys):
        raise mistake.error(f"{source}: {key}" if key else source)
    inputs = _inputs(_read(source, choices), source, names)
    ranges, cases = _measured(keys, inputs)
    require_extra(
        str(engine_of(source)), source, f"quantising {'an' if source.suffix == '.onnx' else 'a'} {source.suffix} file"
    )
    with tempfile.TemporaryDirectory(prefix="mlfbuild-quantize-") as folder:
        made = Path(folder) / f"quantized{source.suffix}"
        reasons = _run_engine(EngineRequest(source, keys, inputs, cases, made))
        # Read before it is written to its place: a file that the compiler cannot read must not replace a good one.
        graph = read_model(made, "network", choices=choices)
        write_atomic(out, read_bytes(made, "quantised model"))
    operators = tuple(_operators(graph, reasons))
    return QuantizedNetwork(cases, operators, tuple(_warnings(graph, keys, cases, inputs, ranges)))


def is_quantized(path: Path, choices: Choices | None = None) -> bool:
    """Return whether the model file ``path`` is a quantised network; raises the errors of reading a model."""
    return _quantized_tensor(_read(path, choices)) is not None


def _read(path: Path, choices: Choices | None) -> Graph:
    try:
        return read_model(path, "network", choices=choices)
    except (InputFileError, ToolNotFoundError) as error:
        raise better_error(error, path) from None


def _quantized_tensor(graph: Graph) -> Tensor | None:
    return next((each for each in graph.tensors.values() if each.quantization is not None), None)


def _inputs(graph: Graph, source: Path, names: PortNames) -> tuple[TensorInfo, ...]:
    """Return the inputs of a float network; raises ``UsageError`` for another one."""
    quantized = _quantized_tensor(graph)
    if quantized is not None:
        raise UsageError(
            "quantized-already",
            place=source,
            reason=f"the network is quantised: {quoted(quantized.name)} is {quantized.dtype.value} with a scale",
            hint="compile it as it is (remove quantize), or name the float network",
        )
    if not any(graph.tensor(name).dtype.value == _FLOAT for name in graph.inputs):
        raise UsageError(
            "no-float-input",
            place=source,
            reason="no input of the network is float32, so that there is no range to measure",
            hint="remove quantize",
        )
    own, _ = port_names(graph.inputs, ())
    given = names if isinstance(names, Mapping) else dict(zip(graph.inputs, names, strict=False))
    return tuple(
        _info(graph.tensor(name), given.get(name, known)) for name, known in zip(graph.inputs, own, strict=True)
    )


def _info(tensor: Tensor, name: str) -> TensorInfo:
    source_name = "" if name == tensor.name else tensor.name
    return TensorInfo(name, tensor.dtype.value, tensor.size, tensor.shape, source_name=source_name)


def _measured(keys: QuantizeKeys, inputs: Sequence[TensorInfo]) -> tuple[list[_Range], int]:
    """Return the range of each input and the number of cases; this reads all data once, and so finds its mistakes."""
    ranges = [_Range(np.inf, -np.inf) for _ in inputs]
    cases = 0
    for batch in open_data(keys.calibration, inputs).batches(_BATCH):
        cases += len(batch)
        ranges = [
            _Range(min(old.low, float(array.min())), max(old.high, float(array.max())))
            for old, array in zip(ranges, batch.inputs, strict=True)
        ]
    for tensor, found in zip(inputs, ranges, strict=True):
        if found.low == found.high and tensor.dtype == _FLOAT:
            raise InputFileError(
                "calibration-constant",
                place=keys.calibration.source,
                reason=f"all values of {quoted(tensor.name)} are {found.low:g}, so that they have no range",
                hint="calibrate with data like those of the field",
            )
    return ranges, cases


def _run_engine(request: EngineRequest) -> dict[str, str]:
    """Run the engine in a process of its own; raises its ``MlfError``, and ``ProcessFailedError`` if it fails."""
    folder = request.out.parent
    asked, answered = folder / "request", folder / "reply"
    asked.write_bytes(pickle.dumps(request))
    program = Path(__file__).with_name("engine_process.py")
    try:
        run([sys.executable, program, asked, answered], env={**os.environ, **_ENVIRONMENT})
    except ProcessFailedError as error:
        raise ProcessFailedError(
            "quantize-failed",
            error.output,
            place=request.source,
            reason="the library that quantises it failed",
            hint=LOOK,
        ) from None
    reply = pickle.loads(answered.read_bytes())  # noqa: S301 - the process is our own
    if isinstance(reply, MlfError):
        raise reply
    assert isinstance(reply, dict)
    return reply


def _operators(graph: Graph, reasons: Mapping[str, str]) -> Iterator[QuantizedOperator]:
    for node in graph.nodes:
        names = [name for name in (*node.inputs, *node.outputs) if name]
        kind, first = node.operator.name, node.outputs[0]
        computes = any(graph.tensor(name).dtype.value == _FLOAT for name in names) and kind not in _CONVERTING
        yield QuantizedOperator(first, kind, _reason(graph, first, reasons) if computes else "")


def _reason(graph: Graph, output: str, reasons: Mapping[str, str]) -> str:
    # Notes of the front ends name the tensor in quotes, and the reason follows these words.
    told = (note.partition(", because ")[2] for note in graph.notes if f"'{output}'" in note)
    return reasons.get(output) or next(filter(None, told), "the tensors around it are not quantised")


def _warnings(
    graph: Graph, keys: QuantizeKeys, cases: int, inputs: Sequence[TensorInfo], ranges: Sequence[_Range]
) -> Iterator[str]:
    if cases < FEW_CASES:
        yield (
            f"{cases} cases calibrate the network; fewer than {FEW_CASES} seldom have the extremes of the field, "
            "and what lies beyond them clips"
        )
    if keys.method != MINMAX:
        yield f"method {keys.method} may clip rare values of weights or activations; minmax clips none of the data"
    for each in graph.tensors.values():
        clipped = _clipped_biases(each)
        if clipped:
            yield (
                f"{counted(clipped, 'value')} of the bias {quoted(each.name)} clip at 32 bits, because the input of "
                "its layer has a small scale; `mlfbuild compare` shows what that loses"
            )
    for tensor, found in zip(inputs, ranges, strict=True):
        held = _held_range(graph, tensor.source_name or tensor.name)
        # A step is rounding: zero must be exact, so that the range moves.
        if held is not None and (found.low < held.low - held.step or found.high > held.high + held.step):
            yield (
                f"values of {quoted(tensor.name)} clip: the data are in [{found.low:g}, {found.high:g}], "
                f"and its integers hold [{held.low:g}, {held.high:g}]"
            )


def _clipped_biases(tensor: Tensor) -> int:
    """Return how many values of a bias are at the ends of int32, to which ai-edge-quantizer also clips int64."""
    if tensor.data is None or tensor.quantization is None or tensor.dtype.value not in ("int32", "int64"):
        return 0
    return int(np.count_nonzero((tensor.data <= _INT32.min) | (tensor.data >= _INT32.max)))


def _held_range(graph: Graph, name: str) -> _Range | None:
    """Return what the quantised input ``name``, or what quantises it first, can hold; ``None`` if it stays float."""
    readers = (
        node.outputs[0] for node in graph.nodes if node.inputs[:1] == (name,) and node.operator.name == "QUANTIZE"
    )
    found = (graph.tensor(each) for each in (name, *readers))
    tensor = next((each for each in found if each.quantization is not None), None)
    if tensor is None or tensor.quantization is None:
        return None
    limits, scale, zero = np.iinfo(tensor.dtype.numpy), tensor.quantization.scale, tensor.quantization.zero_point
    return _Range(scale * (int(limits.min) - zero), scale * (int(limits.max) - zero), scale)
