"""docs/operators.md lists every operator and the element types that it takes."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.frontends.tflite.operators import SHAPES, SUPPORTED, operator_name
from mlfbuild.graph import DType, Operator, ops

PAGE = Path(__file__).parents[2] / "docs/operators.md"


def words(types: tuple[DType, ...]) -> str:
    return "all" if set(types) == set(DType) else ", ".join(dtype.value for dtype in types)


def row(operator: type[Operator]) -> str:
    return f"| {operator.name} | {words(operator.types)} | {words(operator.results)} |"


def row_of_shapes(code: int) -> str:
    kind = SHAPES[code]
    if kind.values > 1 or len(kind.types) == len(DType):  # of the type of what it reads
        return f"| {operator_name(code)} | {words(kind.types)} |  |"
    return f"| {operator_name(code)} | all | {words(kind.types)} |"


def test_the_page_lists_what_is_supported() -> None:
    of_variables = "| {} | all |  |"
    expected = [
        row(operator)
        if (operator := ops.operator_class(operator_name(code))) is not None
        else row_of_shapes(code)
        if code in SHAPES
        else of_variables.format(operator_name(code))
        for code in SUPPORTED
    ]
    found = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and line[2:3].isupper()]
    assert found == expected
