"""Write the outcomes as a table, a line per test, and as a page of the documentation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx

from onnx_tests.runner import Outcome, Result
from onnx_tests.suite import SIZES

TABLE = Path(__file__).with_name("outcomes.txt")
PAGE = Path(__file__).resolve().parents[2] / "docs/onnx-node-tests.md"
COMMON = 5
"""How many tests must have a reason that the page lists."""
_TYPE = re.compile(r"\b(type|conversion to) [A-Z0-9]+")
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
        f"This page counts all tests of operators and networks in the package onnx {onnx.__version__}. A test *passes*",
        "if the C of the archive computes the expected outputs, with equal shapes and element types, within the",
        "tolerances of onnx's own runner. Otherwise the model is refused with a reason. A wrong result, a crash or a",
        "traceback is a defect.",
        "",
        "| set | tests | pass as shipped | pass with constant inputs | wrong |",
        "|---|---:|---:|---:|---:|",
        *(_row(name, [each for each in results if each.test.set == name]) for name in SIZES),
        "",
        "- *As shipped*: the compiler gets only the file `model.onnx`, alone in a folder.",
        "- *With constant inputs*: if a model is refused as shipped, it is tried again with all inputs but the first",
        "  as constants, as real networks have their weights, axes and sizes.",
        "",
        "`make onnx-tests` compares the outcomes with `tests/onnx_tests/outcomes.txt`, which has a line for each test;",
        "`make onnx-tests ONLY=test_add*` runs some of them and prints the reasons.",
        "",
        "Of other compilers from ONNX to C, onnx2c passes 448 of the 1404 node tests as shipped. emx-onnx-cgen states",
        "that all pass; of a sample of 156, 141 did.",
        "",
        "## Refused",
        "",
        f"Reasons for the node tests as shipped, if at least {COMMON} tests have them:",
        "",
        "| tests | reason |",
        "|---:|---|",
        *_reasons([each.shipped for each in results if each.test.set == "node"]),
    )


def _row(name: str, results: Sequence[Result]) -> str:
    shipped, constant = (sum(getattr(each, word).passed for each in results) for word in ("shipped", "constant"))
    failed = sum(each.shipped.failed or each.constant.failed for each in results)
    return f"| {_SETS[name]} | {len(results)} | {shipped} | {constant} | {failed} |"


def _reasons(outcomes: Sequence[Outcome]) -> Iterator[str]:
    reasons = (each.reason.replace("|", "\\|") for each in outcomes if not each.passed)
    counts = Counter(_TYPE.sub(r"\1 ...", reason) for reason in reasons)
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count >= COMMON:
            yield f"| {count} | {reason} |"
