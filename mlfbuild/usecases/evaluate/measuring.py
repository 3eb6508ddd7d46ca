"""Put a test set through a network, and the outputs into a metric, batch by batch."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from mlfbuild.core import InputFileError, OnProgress, UsageError, listed, shown
from mlfbuild.datasets import Batch, Dataset, open_data, user_function
from mlfbuild.evaluation import METRICS, Evaluation, measure, needs_labels
from mlfbuild.library import Module, TensorInfo
from mlfbuild.usecases.evaluate.jobs import EvaluateJob
from mlfbuild.usecases.evaluate.machines import Run

Array = npt.NDArray[Any]

_CASES, _BYTES = 256, 1 << 22
"""The most cases of a batch, and about the most bytes of its inputs."""


def measured(job: EvaluateJob, module: Module, run: Run, on_progress: OnProgress) -> Evaluation:
    """Return the metric of ``job`` for ``module``, which ``run`` runs, over the whole test set.

    Raises ``InputFileError`` if data are damaged or do not fit the network, ``UsageError`` for an output or a function
    that does not exist, ``CheckFailedError`` without cases, and as ``run``.
    """
    keys, number = job.keys, _output(job, module)
    tensor = module.outputs[number]
    data = _opened(job, module, number)
    function = None if keys.metric in METRICS else user_function(keys.metric, job.root)
    metric = measure(keys, tensor, function, data.classes)
    state = module.state_size > 0 and job.on_target
    size = 1 if state else max(1, min(_CASES, _BYTES // max(1, sum(each.size for each in module.inputs))))
    done = 0
    for batch in data.batches(size):
        try:
            outputs = run(stored(batch, module.inputs, real=keys.max_drop is not None), done)[number]
            metric.add(tensor.dequantized(outputs), _expected(job, batch))
        except InputFileError as error:
            # The code of the user has a place of its own.
            raise (error if error.code == "function-failed" else error.within(keys.data.source)) from None
        done += len(batch)
        on_progress("running", done, data.cases or 0)
    return metric.result()


def stored(batch: Batch, inputs: Sequence[TensorInfo], *, real: bool = False) -> list[Array]:
    """Return the inputs of ``batch`` as the network takes them: quantised, unless they have its type already.

    Raises ``InputFileError`` for real numbers of which an integer input has no scale, and if only ``real`` numbers are
    accepted, for others.
    """
    return [_stored(array, tensor, real=real) for array, tensor in zip(batch.inputs, inputs, strict=True)]


def _stored(array: Array, tensor: TensorInfo, *, real: bool) -> Array:
    if array.dtype.name == tensor.dtype:
        if real and tensor.scale is not None:
            raise InputFileError(
                "data-not-real",
                place=shown(tensor.name),
                reason=f"the data are {tensor.dtype} for the quantised network, and max-drop also runs the float one",
                hint="write real numbers as float32",
            )
        return array
    if tensor.scale is None and not tensor.dtype.startswith("float"):
        raise InputFileError(
            "data-not-quantizable",
            place=shown(tensor.name),
            reason=f"the data are real numbers, but the input is {tensor.dtype} without a scale",
            hint=f"write the data as {tensor.dtype}",
        )
    return tensor.quantized(array)


def _opened(job: EvaluateJob, module: Module, number: int) -> Dataset:
    wanted = needs_labels(job.keys.metric)
    # A function of the user takes labels, or else expected outputs.
    if wanted is False or (wanted is None and not _have_labels(job, module)):
        return open_data(job.keys.data, module.inputs, module.outputs[: number + 1])
    return open_data(job.keys.data, module.inputs)


def _have_labels(job: EvaluateJob, module: Module) -> bool:
    """Return whether the first case of the data has a label."""
    try:
        with contextlib.closing(iter(open_data(job.keys.data, module.inputs).batches(1))) as batches:  # type: ignore[type-var]
            return next(batches).labels is not None
    except InputFileError:  # the data are opened again, with expected outputs
        return False


def _expected(job: EvaluateJob, batch: Batch) -> Array:
    """Return what the metric compares the outputs with: labels (cases,) or expected outputs (cases, elements)."""
    wanted = needs_labels(job.keys.metric)
    if batch.labels is not None and wanted is not False:
        return batch.labels
    if batch.outputs and wanted is not True:
        return batch.outputs[-1]
    raise InputFileError(
        "data-labels-missing",
        reason=f"the data have no labels, which {job.keys.metric} needs",
        hint="add an array labels with the class of each case",
    )


def _output(job: EvaluateJob, module: Module) -> int:
    """Return the index of the output that is measured."""
    if job.keys.output is None:
        return 0
    for number, tensor in enumerate(module.outputs):
        if job.keys.output in tensor.names:
            return number
    raise UsageError(
        "unknown-output",
        place=f"models.{job.model.model}.evaluate.output",
        reason=f"the network has no output {shown(job.keys.output)}",
        hint=f"use one of {listed([shown(tensor.name) for tensor in module.outputs])}",
    )
