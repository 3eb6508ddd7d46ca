"""Write the outcomes as a table, a line per test, and as a section of the evidence."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx

from onnx_tests.runner import Outcome, Result
from onnx_tests.suite import SIZES

TABLE = Path(__file__).with_name("outcomes.txt")
PAGE = Path(__file__).resolve().parents[2] / "benchmarks/evidence.md"
COMMON = 10
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
    """Write the table, and the section of the page between two marks."""
    TABLE.write_text("".join(f"{line(result)}\n" for result in results))
    before, begin, rest = PAGE.read_text().partition("<!-- onnx-tests -->\n")
    PAGE.write_text(
        "".join(
            [
                before,
                begin,
                *(f"{text}\n" for text in _section(results)),
                "<!-- end -->",
                rest.partition("<!-- end -->")[2],
            ]
        )
    )


def _section(results: Sequence[Result]) -> Iterator[str]:
    yield from (
        f"These are all tests of operators and networks in the package onnx {onnx.__version__}. A test *passes* if the",
        "C computes the expected outputs within the tolerances of onnx's own runner. Otherwise the model is refused",
        "with a reason. A wrong result, a crash or a traceback is a defect.",
        "",
        "| set | tests | pass as shipped | pass with constant inputs | wrong |",
        "|---|---:|---:|---:|---:|",
        *(_row(name, [each for each in results if each.test.set == name]) for name in SIZES),
        "",
        "*As shipped*, the compiler gets only the file `model.onnx`. *With constant inputs*, all inputs but the first",
        "are constants if the model is refused as shipped, as real networks have their weights, axes and sizes.",
        "",
        f"Reasons for refused node tests as shipped, if at least {COMMON} tests have them:",
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
