"""Compute test vectors: inputs for a model, and the outputs of another implementation for them.

    model file, inputs -> [judge] -> tests/kws.npz with its origin, src/sample.h with the first case

The judges are TensorFlow Lite Micro, LiteRT, and ONNX's own. TensorFlow Lite Micro is the reference of integer
networks, which mlfbuild equals bit for bit. A network with an operator that it lacks is for LiteRT's reference kernels.
For ``.onnx`` files, the package ``onnx`` has a ``ReferenceEvaluator``. None of them knows a signature or states that
the project chooses.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mlfbuild.compilers import compiler_called
from mlfbuild.core import (
    ConflictError,
    MlfError,
    ToolNotFoundError,
    UnsupportedModelError,
    UsageError,
    installed_version,
    printable,
    quoted,
    write_atomic,
    write_if_changed,
)
from mlfbuild.jobs import CompileJob, make_quantized, target_jobs
from mlfbuild.library import Library
from mlfbuild.native import Array, Choices, Graph, read_network, windows_of
from mlfbuild.project import VECTORS_FOLDER, Project
from mlfbuild.usecases.init import CASES, Sample, own_origin, own_outputs, random_inputs, sample_arrays, sample_h
from mlfbuild.verify import VectorsOrigin, load_inputs, read_arrays, vectors_file, vectors_origin

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
    return f"{title} {installed_version(package)}".rstrip()


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


_SAMPLE = Path("src/sample.h")
"""The path to which ``init`` writes it."""
_SAMPLE_NAME = re.compile(r"^static const \w+ sample_(\w+)\[", re.MULTILINE)


@dataclass(frozen=True)
class RecomputedVectors:
    """The vectors of a model, and the files that were written."""

    model: str
    path: Path
    cases: int
    origin: VectorsOrigin
    written: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def recompute_vectors(
    project: Project,
    name: str,
    *,
    cases: int | None = None,
    seed: int | None = None,
    inputs: Path | None = None,
    own: bool = False,
) -> RecomputedVectors:
    """Compute the vectors of the model ``name`` with a judge, or with mlfbuild's ``own`` reference; write them.

    ``inputs`` is a file with the inputs of the cases. Without it, they are ``cases`` random ones of ``seed``. The
    defaults are those of the present file if mlfbuild wrote it.

    Raises ``UsageError`` for an unknown model, or one whose source is an archive, ``ConflictError`` if the present
    vectors are the user's own, ``InputFileError`` for ``inputs`` that do not fit, ``ToolNotFoundError`` and
    ``UnsupportedModelError`` if there is no judge.
    """
    job = _job(project, name)
    path = project.models[name].vectors.get("", project.root / VECTORS_FOLDER / f"{name}.npz")
    known = vectors_origin(path) if path.is_file() else None
    if path.is_file() and known is None:
        raise ConflictError(
            "vectors-of-user",
            place=path,
            reason="mlfbuild did not compute these vectors, or they were changed since",
            hint="keep them, or remove the file to let mlfbuild compute others",
        )
    return _recomputed(project, job, path, known, cases=cases, seed=seed, inputs=inputs, own=own)


def renewed_vectors(project: Project, name: str) -> RecomputedVectors | str:
    """Compute the vectors of ``name`` again as they were computed before, for a new version of the model.

    Returns the reason if they stay as they are: they are the user's own, or their judge is not installed.
    """
    path = project.models[name].vectors.get("")
    try:
        known = None if path is None else vectors_origin(path)
        if path is None or known is None:
            return "" if path is None else f"{path} is not from mlfbuild and stays as it is: replace it with --vectors"
        return _recomputed(project, _job(project, name), path, known, own=not known.checked)
    except MlfError as error:
        return f"{path} was not computed again: {error}"


def _job(project: Project, name: str) -> CompileJob:
    jobs = [job for target in target_jobs(project, models=[name]) for job in target.models]
    if jobs[0].compiler != "native":
        raise UsageError(
            "vectors-of-another-compiler",
            place=f"model {name}",
            reason=f"its compiler is {jobs[0].compiler}, and only networks that mlfbuild reads can be computed",
            hint="use outputs of your training framework, saved with numpy.savez",
        )
    return jobs[0]


def _recomputed(
    project: Project,
    job: CompileJob,
    path: Path,
    known: VectorsOrigin | None,
    *,
    cases: int | None = None,
    seed: int | None = None,
    inputs: Path | None = None,
    own: bool,
) -> RecomputedVectors:
    if job.quantize is not None:
        make_quantized(job.quantize)
    library = compiler_called("native").compile(job.request)
    graph, identity = read_network(job.request)
    tensors = [graph.tensor(name) for name in graph.inputs]
    # The present inputs are kept if they were not random: mlfbuild could not make them again.
    given = inputs or (path if known is not None and known.seed is None and cases is None and seed is None else None)
    if given is not None:
        count, flat = load_inputs(given, library.modules[0])
        arrays = [array.reshape(count, *tensor.shape) for array, tensor in zip(flat, tensors, strict=True)]
        origin = own_origin(None, identity)
    else:
        number = seed if seed is not None else known.seed if known is not None and known.seed is not None else 0
        count = cases if cases is not None else _count(path) if known is not None else CASES
        arrays, origin = random_inputs(tensors, count, number), own_origin(number, identity)
    if own:
        outputs = own_outputs(graph, arrays)
    else:
        known_to_judge, choices = _as_in_file(job, arrays), Choices.of(job.request.options)
        judge, outputs = judged(job.request.source, known_to_judge, len(graph.outputs), choices)
        outputs = [_fitted(job, judge, array, name, graph) for array, name in zip(outputs, graph.outputs, strict=True)]
        origin = replace(origin, judge=judge, checked=True)
        if job.request.source.suffix == ".onnx":
            outputs = _own_within_a_step(graph, arrays, outputs)
    written, notes = [], []
    content = vectors_file(arrays, outputs, origin)
    sample = project.root / _SAMPLE
    if sample.is_file():
        shown = path.relative_to(project.root).as_posix() if path.is_relative_to(project.root) else path.name
        text = _sample_text(library, arrays, outputs, shown)
        if known is not None and _is_own_sample(sample, path, shown):
            if write_if_changed(sample, text.encode()):  # first: it is recognised by the old vectors
                written.append(sample)
        elif sample.read_bytes() != text.encode():
            notes.append(f"{sample} stays as it is: it is not case 0 of {shown} as mlfbuild writes it")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != content:
        write_atomic(path, content)
        written.insert(0, path)
    return RecomputedVectors(job.model, path, count, origin, tuple(written), tuple(notes))


def _as_in_file(job: CompileJob, inputs: Sequence[Array]) -> Sequence[Array]:
    """Return ``inputs`` for the file of ``job`` as it is: with the option ``stream``, the window of each run."""
    if not job.request.options.get("stream"):
        return inputs
    options = {key: value for key, value in job.request.options.items() if key != "stream"}
    graph, _ = read_network(replace(job.request, options=options))
    return [windows_of(inputs[0], graph.tensor(graph.inputs[0]))]


def _own_within_a_step(graph: Graph, inputs: Sequence[Array], outputs: list[Array]) -> list[Array]:
    """Return mlfbuild's own outputs if all are quantised and no element is more than a step from ``outputs``.

    Sums in another order of a judge that computes in floats round to another integer now and then; `verify`, which
    compares every bit, is to find other mistakes.
    """
    if any(graph.tensor(name).quantization is None for name in graph.outputs):
        return outputs
    own = own_outputs(graph, inputs)
    steps = (np.abs(np.subtract(one, other, dtype=np.int64)).max() for one, other in zip(own, outputs, strict=True))
    return own if max(steps) <= 1 else outputs


def _count(path: Path) -> int:
    with np.load(path, allow_pickle=False) as arrays:
        return int(next(iter(arrays.values())).shape[0])


def _fitted(job: CompileJob, judge: str, array: Array, name: str, graph: Graph) -> Array:
    """Return the output ``array`` of a judge in the type and shape of the tensor ``name``."""
    tensor = graph.tensor(name)
    if array.ndim == len(tensor.shape) + 1 and job.request.options.get("stream"):
        newest = (slice(None), *(slice(-size, None) for size in tensor.shape))  # of the rows of a window
        array = array[newest]
    shape, dtype = (len(array), *tensor.shape), np.dtype(tensor.dtype.numpy)
    converted = array.astype(dtype)
    # Nothing is rounded to fit: a judge with another type computes something else.
    if array.size != int(np.prod(shape)) or not np.array_equal(converted, array, equal_nan=dtype.kind == "f"):
        theirs, own = f"{array.dtype}{list(array.shape[1:])}", f"{dtype}{list(tensor.shape)}"
        reason = f"the output {quoted(name)} of {printable(judge)} is {theirs}, that of mlfbuild {own}"
        hint = "report it with the model"
        raise UsageError("judge-disagrees", place=job.request.source, reason=reason, hint=hint)
    return converted.reshape(shape)


def _sample_text(library: Library, inputs: Sequence[Array], outputs: Sequence[Array], vectors: str) -> str:
    first, expected = (tuple(array[0].reshape(-1) for array in arrays) for arrays in (inputs, outputs))
    return sample_h(library, Sample(first, expected, b"", vectors, computed=False), f"case 0 of {vectors}")


def _is_own_sample(sample: Path, vectors: Path, shown: str) -> bool:
    """Return whether ``sample`` is what mlfbuild wrote from the present ``vectors``, which may be of another shape."""
    text = sample.read_text(errors="replace")
    arrays = read_arrays(vectors)
    keys = [f"{side}{at}" for side in ("in", "out") for at in range(len(arrays)) if f"{side}{at}" in arrays]
    names = _SAMPLE_NAME.findall(text)
    values = [arrays[key][0].reshape(-1) for key in keys]
    return len(names) == len(keys) and text == sample_arrays(names, values, f"case 0 of {shown}")
