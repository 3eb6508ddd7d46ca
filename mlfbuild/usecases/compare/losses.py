"""Run a float network and its quantised one on the same cases, and measure what each tensor has lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.compilers import compiler_called
from mlfbuild.core import UsageError
from mlfbuild.datasets import DataKeys, Dataset, open_data
from mlfbuild.jobs import default_name, is_model
from mlfbuild.library import CompileRequest, TensorInfo
from mlfbuild.native import Graph, evaluate_in_turn, read_network
from mlfbuild.quantization import LossCases, LossMeter, LossReport, is_quantized, node_names, unpaired_text
from mlfbuild.targets import CPUS
from mlfbuild.verify.host import Model, load_library

Array = npt.NDArray[Any]
_BATCH, _BYTES = 16, 1 << 22
"""The most cases at a time, and about the most bytes of their tensors."""
_COPY = "copy of "


def is_float_with_quantized(first: Path, second: Path) -> bool:
    """Return whether ``first`` is a model file of a float network, and ``second`` one of a quantised network.

    Raises ``UsageError`` if it is the other way round, and the errors of reading a model.
    """
    if not (is_model(first) and is_model(second)):
        return False
    quantized = [is_quantized(path) for path in (first, second)]
    if quantized == [True, False]:
        raise UsageError(
            "quantized-network-first",
            place=first,
            reason=f"it is quantised, and {second} is the float network",
            hint="name the float network first",
        )
    return quantized == [False, True]


@dataclass(frozen=True)
class _Side:
    """One of the two networks, with the graph of its file."""

    graph: Graph
    model: Model

    def info(self, name: str) -> TensorInfo:
        """Return the tensor ``name`` with its scale."""
        tensor = self.graph.tensor(name)
        found = TensorInfo(name, tensor.dtype.value, tensor.size, tensor.shape)
        scale = tensor.quantization
        return found if scale is None else replace(found, scale=scale.scale, zero_point=scale.zero_point)


def file_losses(network: Path, quantized: Path, data: DataKeys, *, timeout: float = 60.0) -> LossReport:
    """Return ``measured_losses`` of two model files."""
    first, second = (
        CompileRequest(default_name(path), path, CPUS["host"], options={}) for path in (network, quantized)
    )
    return measured_losses(first, second, data, timeout=timeout)


def measured_losses(
    network: CompileRequest, quantized: CompileRequest, data: DataKeys, *, timeout: float = 60.0, most: int = 0
) -> LossReport:
    """Return what each tensor of ``quantized`` loses against the float ``network``, over the cases of ``data``.

    With ``most``, take at most so many cases of data whose number is known before, evenly spread over all of them.

    Both are compiled for this machine, whatever their CPU is. Tensors are paired by their names in the files. The code
    runs in processes of its own, and a case may take ``timeout`` seconds. Networks with a state keep it from case to
    case; what makes their noise is judged with the initial state.

    Raises ``UsageError`` if no tensor or not every input of one has its name in the other, ``InputFileError`` for data
    that do not fit, ``ProcessFailedError`` if a network fails, and as the native compiler.
    """
    with ExitStack() as stack:
        sides = [_opened(request, timeout, stack) for request in (network, quantized)]
        first, second = sides
        kinds = dict(_paired(first, second, f"{network.source} and {quantized.source}"))
        inputs = [tensor.source_name or tensor.name for tensor in first.model.inputs]
        meters = {name: LossMeter(second.info(name)) for name in (*inputs, *kinds)}
        cut = _cut(first.graph, [*inputs, *kinds])
        cases = 0
        whole = 4 * sum(prod(meter.tensor.shape or ()) for meter in meters.values())
        size = max(1, min(_BATCH, _BYTES // whole))
        for batch in _chosen(open_data(data, first.model.inputs), most, size):
            _add_cases(first, second, cut, [dict(zip(inputs, values, strict=True)) for values in batch], meters)
            cases += len(batch)
    keepable = node_names(network.source)
    found = [meters[name].result(name, "") for name in inputs]
    for name, kind in kinds.items():
        inner, before = _origin(first.graph, name, meters)
        found.append(meters[name].result(name, kind, before, [keepable[each] for each in inner if each in keepable]))
    views = sum(1 for each in first.model.traced if each.function and each.tensor.name not in kinds)
    return LossReport(cases, tuple(found), tuple(first.graph.outputs), views)


def _chosen(data: Dataset, most: int, size: int) -> Iterator[list[tuple[Array, ...]]]:
    stride = -(-(data.cases or 0) // most) if most else 1
    every = (values for batch in data.batches(size) for values in zip(*batch.inputs, strict=True))
    chosen = islice(every, 0, None, max(1, stride))
    while batch := [*islice(chosen, size)]:
        yield batch


def _opened(request: CompileRequest, timeout: float, stack: ExitStack) -> _Side:
    traced = replace(request, cpu=CPUS["host"], options={**request.options, "trace": True})
    library = compiler_called("native").compile(traced)
    model = stack.enter_context(load_library(library, str(request.source), isolated=True, timeout=timeout))
    return _Side(read_network(request)[0], model)


def _paired(first: _Side, second: _Side, place: str) -> Iterator[tuple[str, str]]:
    """Yield the tensors that operators of both write, with the kind of operator in the first."""
    known = {each.tensor.name: each.tensor for each in second.model.traced}
    inputs = [[tensor.source_name or tensor.name for tensor in side.model.inputs] for side in (first, second)]
    own = {each.tensor.name: each for each in first.model.traced if each.function}
    pairs = {
        name: each.operator
        for name, each in own.items()
        if name in known
        and all(name in side.graph.tensors for side in (first, second))
        and {known[name].shape, first.graph.tensor(name).shape} == {each.tensor.shape}
    }
    if sorted(inputs[0]) != sorted(inputs[1]) or not pairs:
        sides = (inputs if sorted(inputs[0]) != sorted(inputs[1]) else [list(own), list(known)])  # fmt: skip
        raise UsageError(
            "networks-not-paired",
            place=place,
            reason=f"one has {unpaired_text(sides[0])}, and the other {unpaired_text(sides[1])}",
            hint="name a float network, and the file that was quantised from it",
        )
    yield from pairs.items()


def _add_cases(
    first: _Side, second: _Side, cut: Graph, cases: Sequence[Mapping[str, Array]], meters: Mapping[str, LossMeter]
) -> None:
    """Run both networks on ``cases``, each with values by the names of inputs, and add all tensors to their meters."""
    stored = [{name: meters[name].tensor.quantized(value) for name, value in values.items()} for values in cases]
    real = [{**values, **first.model.trace(values)} for values in cases]
    got = [{**values, **second.model.trace(values)} for values in stored]
    floats = {name: meter for name, meter in meters.items() if real[0][name].dtype.kind == "f"}
    # All cases of a tensor at a time: rounding small arrays one by one takes longer than the networks.
    known, kept = (_stacked(each, floats) for each in (real, got))
    noisy = {name: meter.tensor.dequantized(kept[name]) for name, meter in floats.items()}
    rounded = {name: meter.round(known[name]) for name, meter in floats.items()}
    alone, after = (
        _stacked([_replayed(cut, values, each, at) for at, values in enumerate(real)], floats)
        for each in (noisy, rounded)
    )
    for name, meter in floats.items():
        # An input of the network is written by none.
        own = (known[name], known[name]) if name in cases[0] else (alone[name], after[name])
        meter.add(LossCases(known[name], noisy[name], rounded[name], *own))


def _stacked(cases: Sequence[Mapping[str, Array]], names: Iterable[str]) -> dict[str, Array]:
    return {name: np.stack([values[name] for values in cases]) for name in names}


def _cut(graph: Graph, known: Sequence[str]) -> Graph:
    """Return ``graph`` with a copy of each tensor in ``known`` as input, which its readers read instead."""
    copies = {name: f"{_COPY}{name}" for name in known}
    tensors = [*graph.tensors.values(), *(replace(graph.tensor(name), name=copies[name]) for name in known)]
    nodes = [replace(node, inputs=tuple(copies.get(name or "", name) for name in node.inputs)) for node in graph.nodes]
    inputs = [*graph.inputs, *copies.values()]
    return Graph(graph.name, tensors, nodes, inputs, graph.outputs, graph.states)


def _replayed(cut: Graph, real: Mapping[str, Array], values: Mapping[str, Array], at: int) -> dict[str, Array]:
    """Return what each operator of a ``cut`` graph makes of case ``at`` of ``values``, or of ``real`` without any."""
    own = {name: array[at] for name, array in values.items()}
    inputs = {name: {**real, **own}[name.removeprefix(_COPY)] for name in cut.inputs}
    return next(evaluate_in_turn(cut, [inputs]))


def _origin(graph: Graph, name: str, known: Mapping[str, LossMeter]) -> tuple[list[str], list[str]]:
    """Return what is computed between tensors that are compared and ``name``, itself last, and these tensors."""
    makers = {output: node for node in graph.nodes for output in node.outputs}
    inner, before, reached = [name], list[str](), [name]
    while reached:
        node = makers.get(reached.pop())
        for read in filter(None, node.inputs if node else ()):
            if read in known:
                before.append(read)
            elif read in makers and read not in inner:
                inner.insert(0, read)
                reached.append(read)
    return inner, before
