"""Every operator with every type that docs/operators.md promises is among the networks that other tests draw.

Those are judged in ``tests/graph/test_references.py`` (numpy), ``test_kernels.py`` (C under sanitizers) and
``test_operators_on_boards.py`` (C on an emulated Cortex-M4 and Cortex-M55), those that keep a state in
tests of streams. What no judge takes is listed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from mlfbuild.frontends.tflite import parse_tflite
from mlfbuild.frontends.tflite.operators import SUPPORTED, operator_name
from mlfbuild.graph import Operator, ops
from mlfbuild.graph.evaluation import evaluate
from mlfbuild.library import Library, Module
from support.drawing import Array
from support.host_c import run_many_on_host
from support.native import compile_bytes
from support.networks import TYPES, drawn
from support.oracle import assert_equal, litert_run, tflite_micro_run
from support.streaming_networks import STREAMING

UNJUDGED: Mapping[str, Sequence[str]] = {
    "ARG_MAX": ("int16",),
    "ARG_MIN": ("int16",),
    "DEPTH_TO_SPACE": ("int16", "bool"),
    "PACK": ("bool",),
    "RELU_0_TO_1": ("int16",),
    "RELU_N1_TO_1": ("int16",),
    "SPACE_TO_DEPTH": ("int16", "bool"),
    "SPLIT": ("bool",),
    "SPLIT_V": ("bool",),
    "UNPACK": ("int64",),
}
"""Types that neither TensorFlow Lite Micro nor LiteRT takes, and converters write nevertheless or that cost nothing."""

UNJUDGED_AND_TYPES = [(operator, dtype) for operator, types in UNJUDGED.items() for dtype in types]


def promised(operator: type[Operator]) -> set[str]:
    """The types of the tensor that a network is drawn for: of SELECT not the condition, but what it selects."""
    types = operator.results if issubclass(operator, ops.SelectV2) else operator.types
    return {dtype.value for dtype in types}


def streamed(operator: str) -> set[str]:
    """The types of the streams of ``operator``, the first word of their kinds."""
    return {dtype for kind, (dtype, _) in STREAMING.items() if kind.split()[0] == operator}


def test_every_operator_is_drawn_with_every_type() -> None:
    for name in map(operator_name, SUPPORTED):
        operator = ops.operator_class(name)
        if operator is not None:
            covered = {*TYPES.get(name, ()), *streamed(name), *UNJUDGED.get(name, ())}
            assert covered == promised(operator), name


@pytest.mark.parametrize(("operator", "dtype"), UNJUDGED_AND_TYPES)
def test_what_is_not_judged_has_no_judge(operator: str, dtype: str) -> None:
    case = drawn(operator, dtype, 1)[0]
    for run in (tflite_micro_run, litert_run):
        with pytest.raises(RuntimeError):
            run(case.model, case.inputs)


def test_what_is_not_judged_agrees_with_numpy() -> None:
    """The other types of these operators are judged, and share their code but for the size of an element."""
    jobs: list[tuple[Library, Module, tuple[Array, ...]]] = []
    expected: list[list[Array]] = []
    for operator, dtype in UNJUDGED_AND_TYPES:
        for case in drawn(operator, dtype, 4):
            graph = parse_tflite(case.model, "net", "net")
            values = evaluate(graph, dict(zip(graph.inputs, case.inputs, strict=True)))
            expected.append([values[name] for name in graph.outputs])
            library = compile_bytes(case.model, f"net{len(jobs)}")
            jobs.append((library, library.modules[0], case.inputs))
    for (_, module, _), outputs, wanted in zip(jobs, run_many_on_host(jobs), expected, strict=True):
        for got, right in zip(outputs, wanted, strict=True):
            assert_equal(got, right, module.source_text.decode())
