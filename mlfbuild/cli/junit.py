"""``verify --junit``: results as JUnit XML, the form of test results that GitLab, Jenkins and others read.

It contains no durations, so the same results give the same bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from mlfbuild.cli.events import position
from mlfbuild.core import Diagnostic, MlfError, terminal_text, write_atomic

if TYPE_CHECKING:
    from mlfbuild.verify import VerifyReport


@dataclass(frozen=True)
class JUnitCase:
    """One module on one target, or a line about one that was not verified (``result`` is None)."""

    suite: str
    name: str
    result: VerifyReport | MlfError | None
    finding: Diagnostic | None = None
    """The mistake, with its place in the project file."""


def write_junit(path: Path, cases: Sequence[JUnitCase]) -> None:
    """Write ``cases`` with a test suite for each target; raises ``StorageError``."""
    root = Element("testsuites", {"name": "mlfbuild verify", **_counts(cases)})
    for suite, group in itertools.groupby(cases, key=lambda case: case.suite):
        members = list(group)
        element = SubElement(root, "testsuite", {"name": _text(suite), **_counts(members)})
        for case in members:
            _add(element, case)
    indent(root)
    write_atomic(path, tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _counts(cases: Iterable[JUnitCase]) -> dict[str, str]:
    kinds = [_kind(case) for case in cases]
    counted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": str(len(kinds)), **{name: str(kinds.count(kind)) for name, kind in counted.items()}}


def _kind(case: JUnitCase) -> str:
    if case.result is None:
        return "skipped"
    if isinstance(case.result, MlfError):
        return "error"
    return "passed" if case.result.passed else "failure"


def _add(suite: Element, case: JUnitCase) -> None:
    where = position(str(case.finding)) if case.finding else {}
    place: dict[str, str] = {name: str(where[name]) for name in ("file", "line") if name in where}
    element = SubElement(suite, "testcase", {"classname": _text(case.suite), "name": _text(case.name), **place})
    if case.result is None:
        SubElement(element, "skipped", message=_text(case.name))
    elif isinstance(case.result, MlfError):
        body = SubElement(element, "error", type=case.result.code, message=_text(case.result.message))
        body.text = _text(str(case.result))
    elif case.result.passed:
        SubElement(element, "system-out").text = _text(case.result.text())
    else:
        body = SubElement(element, "failure", type="verify-failed", message=_text(case.result.problems[0]))
        body.text = _text("\n".join([*case.result.problems, case.result.hint]).rstrip("\n"))


def _text(text: str) -> str:
    """Return ``text`` without the characters that XML cannot contain."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in terminal_text(text))
