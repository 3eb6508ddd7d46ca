"""Other implementations that compute the outputs of a model file: TensorFlow Lite Micro, LiteRT, and ONNX's own.

TensorFlow Lite Micro is the reference of integer networks, which mlfbuild equals bit for bit. A network with an
operator that it lacks is for LiteRT's reference kernels. For ``.onnx`` files,
the package ``onnx`` has a ``ReferenceEvaluator``. None of them knows a signature or states that the project chooses.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mlfbuild.core import ToolNotFoundError, UnsupportedModelError, printable
from mlfbuild.native import Array, Choices

_ARENA = 256 << 20
"""Bytes that TensorFlow Lite Micro may use; the system provides only those that it writes."""
_HINT = "compute them with mlfbuild itself (--self), or use outputs of your training framework (--from)"

Judge = Callable[[Path, Sequence[Array]], list[Array]]
"""A function of a model file and its inputs [cases, *shape], which returns the outputs [cases, *shape]."""


def judged(model: Path, inputs: Sequence[Array], outputs: int, choices: Choices) -> tuple[str, list[Array]]:
    """Return name and version of the judge of the file ``model``, and its ``outputs`` for ``inputs``, [cases, *shape].

    Raises ``ToolNotFoundError`` if none is installed, and ``UnsupportedModelError`` if none can run the model.
    """
    # A judge would disagree for this reason alone.
    if choices.signature is not None or choices.state:
        chosen = "a signature" if choices.signature is not None else "states"
        reason = f"the project chooses {chosen}, and other implementations run the file as it is"
        raise UnsupportedModelError("vectors-without-judge", place=model, reason=reason, hint=_HINT)
    judges = _for_onnx(choices) if model.suffix == ".onnx" else _for_tflite(outputs)
    refusals = []
    for name, judge in judges:
        results = _outputs_or_refusal(judge, model, inputs)
        if isinstance(results, list):
            return name, results
        refusals.append(f"{name}: {results}")
    if refusals:
        reason = f"no other implementation runs the model ({'; '.join(refusals)})"
        raise UnsupportedModelError("vectors-without-judge", place=model, reason=reason, hint=_HINT)
    packages = "onnx" if model.suffix == ".onnx" else "tflite-micro"
    reason = "no other implementation that computes the outputs is installed"
    raise ToolNotFoundError(
        "judge-not-installed", place=model, reason=reason, hint=f"pip install {packages}, or add --self"
    )


def _outputs_or_refusal(judge: Judge, model: Path, inputs: Sequence[Array]) -> list[Array] | str:
    try:
        with _silent():
            return judge(model, inputs)
    except Exception as error:  # noqa: BLE001 - of the other implementation, which does not document them
        return printable(" ".join(str(error).split())) or type(error).__name__


def _for_tflite(outputs: int) -> Iterator[tuple[str, Judge]]:
    with contextlib.suppress(ImportError):
        from tflite_micro.python.tflite_micro import runtime

        yield _named("TensorFlow Lite Micro", "tflite-micro"), lambda *case: _tflite_micro(runtime, outputs, *case)
    with contextlib.suppress(ImportError):
        from ai_edge_litert import interpreter

        yield _named("LiteRT", "ai-edge-litert"), lambda *case: _litert(interpreter, *case)


def _for_onnx(choices: Choices) -> Iterator[tuple[str, Judge]]:
    with contextlib.suppress(ImportError):
        from onnx.reference import ReferenceEvaluator

        yield _named("ONNX ReferenceEvaluator", "onnx"), lambda *case: _onnx(ReferenceEvaluator, choices, *case)


def _named(title: str, package: str) -> str:
    try:
        return f"{title} {metadata.version(package)}"
    except metadata.PackageNotFoundError:  # installed by other means than pip
        return title


def _tflite_micro(runtime: Any, outputs: int, model: Path, inputs: Sequence[Array]) -> list[Array]:
    interpreter = runtime.Interpreter.from_bytes(model.read_bytes(), arena_size=_ARENA)
    results = []
    for case in zip(*inputs, strict=True):
        for index, value in enumerate(case):
            interpreter.set_input(value, index)
        interpreter.invoke()
        # A copy, because the interpreter reuses the memory of its outputs.
        results.append([np.array(interpreter.get_output(index)) for index in range(outputs)])
    return _stacked(results)


def _litert(module: Any, model: Path, inputs: Sequence[Array]) -> list[Array]:
    # The reference kernels rather than the default ones (XNNPACK and vector code), which may round otherwise.
    kernels = module.OpResolverType.BUILTIN_REF
    interpreter = module.Interpreter(model_content=model.read_bytes(), experimental_op_resolver_type=kernels)
    places = [detail["index"] for detail in interpreter.get_input_details()]
    for place, array in zip(places, inputs, strict=True):
        # Vectors have one more axis, that of the cases; a free dimension of the model gets the size of a case.
        interpreter.resize_tensor_input(place, array.shape[1:])
    interpreter.allocate_tensors()
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    results = []
    for case in zip(*inputs, strict=True):
        for place, value in zip(places, case, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()
        results.append([np.array(interpreter.get_tensor(place)) for place in outputs])
    return _stacked(results)


def _onnx(evaluator: Any, choices: Choices, model: Path, inputs: Sequence[Array]) -> list[Array]:
    import onnx

    graph = onnx.load(model).graph
    constants = {constant.name for constant in graph.initializer}
    bound = choices.numbers
    fixed = {value.name: _bound(value, bound[value.name]) for value in graph.input if value.name in bound}
    # Before IR version 4, ONNX lists constants among the inputs of the graph as well.
    wanted = [value for value in graph.input if value.name not in constants and value.name not in bound]
    types = [onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in wanted]
    session = evaluator(str(model))
    results = []
    for case in zip(*inputs, strict=True):
        values = zip(wanted, case, types, strict=True)
        results.append(session.run(None, fixed | {each.name: value.astype(dtype) for each, value, dtype in values}))
    return _stacked(results)


def _bound(value: Any, number: float | bool) -> Array:
    """Return the constant input ``value``, an ``onnx.ValueInfoProto``, filled with ``number``."""
    import onnx

    tensor = value.type.tensor_type
    # A dimension without a size is taken as 1.
    shape = [size.dim_value or 1 for size in tensor.shape.dim]
    return np.full(shape, number, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))


def _stacked(results: Sequence[Sequence[Array]]) -> list[Array]:
    return [np.stack(output) for output in zip(*results, strict=True)]


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep what C++ code of the judges prints away from the terminal."""
    with tempfile.TemporaryFile() as nowhere, contextlib.redirect_stdout(io.StringIO()):
        # The descriptor, not ``sys.stderr``: C++ code does not write through Python.
        kept = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
