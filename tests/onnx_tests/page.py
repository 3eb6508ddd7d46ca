"""Write the outcomes as a table, a line per test, and as a page of the documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx

from onnx_tests.runner import Outcome, Result
from onnx_tests.suite import SIZES

TABLE = Path(__file__).with_name("outcomes.txt")
PAGE = Path(__file__).resolve().parents[2] / "docs/onnx-node-tests.md"
_SETS = {
    "node": "node tests, which onnx's `collect_testcases` computes",
    "node-expanded": "the same with the definitions of operators written out (`_expanded`)",
    "simple": "`simple`",
    "pytorch-converted": "`pytorch-converted`",
    "pytorch-operator": "`pytorch-operator`",
}


def line(result: Result) -> str:
    """Return the line of a test; the outcome with constant inputs follows if it is another one."""
    words = [str(result.test), result.shipped.word]
    if result.constant.word != result.shipped.word:
        words.append(result.constant.word)
    return "\t".join(words)


def committed() -> dict[str, str]:
    """Return the lines of the committed table by test."""
    return {text.split("\t")[0]: text for text in TABLE.read_text().splitlines()} if TABLE.exists() else {}


def changes(results: Sequence[Result]) -> list[str]:
    """Return the lines of ``results`` that differ from the committed table, with the committed ones."""
    known = committed()
    lines = {str(result.test): line(result) for result in results}
    return [f"- {known.get(name, name)}\n+ {text}" for name, text in lines.items() if known.get(name) != text]


def write(results: Sequence[Result]) -> None:
    """Write the table and the page."""
    TABLE.write_text("".join(f"{line(result)}\n" for result in results))
    PAGE.write_text("\n".join(_page(results)) + "\n")


def _page(results: Sequence[Result]) -> Iterator[str]:
    yield from (
        "# ONNX's own tests",
        "",
        "The `onnx` package contains tests of its operators, and networks that old versions of PyTorch exported. This",
        f"page counts all tests of onnx {onnx.__version__}; none is left out. A test *passes* if the C of the archive",
        "computes the expected outputs within the tolerances that the test sets. Otherwise the model is refused with a",
        "reason. A wrong result, a crash or a traceback is a defect.",
        "",
        "| set | tests | pass as shipped | pass with constant inputs | wrong |",
        "|---|---:|---:|---:|---:|",
        *(_row(name, [each for each in results if each.test.set == name]) for name in SIZES),
        "",
        "## How they are counted",
        "",
        "- *As shipped*: the compiler gets only the file `model.onnx` of a test, alone in a folder. The inputs and",
        "  outputs of the test are read after the archive has been written. Then the C of the archive is compiled and",
        "  run on this machine.",
        "- *With constant inputs*: many tests pass weights, axes or sizes as inputs, which real networks have as",
        "  constants. If a model is refused as shipped, it is tried again with all inputs except the first as",
        "  constants.",
        "- Shapes and element types must be equal. The tolerances are those of onnx's own runner: 1e-3 of the expected",
        "  value and 1e-7, if the test does not set others. Networks with float16 inputs or outputs, which become",
        "  float32, are therefore not counted as passed.",
        "",
        "`make onnx-tests` runs all tests and compares the outcomes with `tests/onnx_tests/outcomes.txt`, which has a",
        "line for each test; `make onnx-tests ONLY=test_add*` runs some of them and prints the reasons.",
        "",
        "## Other compilers",
        "",
        "Other compilers from ONNX to C, as measured for the project on the node tests as shipped:",
        "",
        "| compiler | node tests that pass | of |",
        "|---|---:|---:|",
        f"| mlfbuild | {_passed(results)} | {SIZES['node']} |",
        "| onnx2c | 448 | 1404 |",
        "| emx-onnx-cgen | 141 of a sample | 156 |",
        "",
        "emx-onnx-cgen states that all 1,914 official files pass. In a sample of 156 of them, 141 did.",
        "",
        "## Refused",
        "",
        "Reasons for the node tests as shipped:",
        "",
        "| tests | reason |",
        "|---:|---|",
        *_reasons([each.shipped for each in results if each.test.set == "node"]),
    )


def _row(name: str, results: Sequence[Result]) -> str:
    shipped, constant = (sum(getattr(each, word).passed for each in results) for word in ("shipped", "constant"))
    failed = sum(each.shipped.failed or each.constant.failed for each in results)
    return f"| {_SETS[name]} | {len(results)} | {shipped} | {constant} | {failed} |"


def _passed(results: Sequence[Result]) -> int:
    return sum(each.shipped.passed for each in results if each.test.set == "node")


def _reasons(outcomes: Sequence[Outcome]) -> Iterator[str]:
    counts = Counter(each.reason.replace("|", "\\|") for each in outcomes if not each.passed)
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"| {count} | {reason} |"
