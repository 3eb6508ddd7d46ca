"""The drawn test networks cover every operator with every type that docs/operators.md promises.

They are compared with a reference in ``tests/native/graph/test_references.py`` (numpy), ``test_kernels.py`` (C with
sanitizers) and ``test_kernels.py`` (also C on an emulated Cortex-M4 and Cortex-M55); networks with a state in
tests of streams. Operators and types that no reference supports are listed here.
"""

from collections.abc import Mapping, Sequence

import pytest

from mlfbuild.library import Library, Module
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.frontends.tflite.operators import CUSTOM, SUPPORTED, operator_name
from mlfbuild.native.graph import Operator, ops
from mlfbuild.native.graph.nodes import evaluate
from support.drawing import Array
from support.host_c import run_many_on_host
from support.native import compile_bytes
from support.networks import TYPES, drawn
from support.oracle import assert_equal, litert_run, tflite_micro_run
from support.streaming_networks import STREAMING

UNJUDGED: Mapping[str, Sequence[str]] = {
    "ARG_MAX": ("int16",), "ARG_MIN": ("int16",), "BITWISE_XOR": ("int64",), "CAST": ("uint64",),
    "DEPTH_TO_SPACE": ("int16", "bool"), "DIV": ("int64",), "PACK": ("bool",), "POW": ("int64",),
    "RELU_0_TO_1": ("int16",), "RELU_N1_TO_1": ("int16",), "REVERSE_SEQUENCE": ("int8", "bool"),
    "RIGHT_SHIFT": ("int64",), "SPACE_TO_DEPTH": ("int16", "bool"), "SPLIT": ("bool",), "SPLIT_V": ("bool",),
    "TFLite_Detection_PostProcess": ("int8",), "UNPACK": ("int64",),
}  # fmt: skip
"""Types that neither TensorFlow Lite Micro nor LiteRT takes, and converters write nevertheless or that cost nothing."""

UNJUDGED_AND_TYPES = [(operator, dtype) for operator, types in UNJUDGED.items() for dtype in types]


def promised(operator: type[Operator]) -> set[str]:
    """Return the types of the drawn tensor; for SELECT, those of the selected values, not of the condition."""
    types = operator.results if issubclass(operator, ops.SelectV2) else operator.types
    return {dtype.value for dtype in types}


def streamed(operator: str) -> set[str]:
    """Return the types of the streams of ``operator``, the first words of their kinds."""
    return {dtype for kind, (dtype, _) in STREAMING.items() if kind.split()[0] == operator}


def test_every_operator_is_drawn_with_every_type() -> None:
    for name in (*CUSTOM, *map(operator_name, SUPPORTED)):
        operator = ops.operator_class(name)
        if operator is not None:
            covered = {*TYPES.get(name, ()), *streamed(name), *UNJUDGED.get(name, ())}
            place = "draw it in tests/support/*_networks.py, with rows of OPERATORS and TYPES"
            assert covered == promised(operator), f"{name}: {place}"


@pytest.mark.parametrize(("operator", "dtype"), UNJUDGED_AND_TYPES)
def test_unreferenced_types_have_no_reference(operator: str, dtype: str) -> None:
    case = drawn(operator, dtype, 1)[0]
    for run in (tflite_micro_run, litert_run):
        with pytest.raises(RuntimeError):
            run(case.model, case.inputs)


def test_unreferenced_types_agree_with_numpy() -> None:
    """Other types of these operators have a reference and share the code except for the element size."""
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
