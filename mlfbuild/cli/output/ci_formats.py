"""Results in the forms that CI systems read: annotations of GitHub Actions, SARIF and JUnit XML.

- ``--format github`` prints results as text, and errors as workflow commands such as
  ``::error file=F,line=L,col=C,title=T::text``, which the runner of GitHub Actions reads in stdout and stderr and shows
  at their file and line in the changes of a pull request.
- ``validate --format sarif`` prints findings as a log of the Static Analysis Results Interchange Format, SARIF 2.1.0.
- ``verify --junit`` writes JUnit XML, which GitLab, Jenkins and others read. It contains no durations, so the same
  results give the same bytes. Names are identifiers with dots between them, because CI systems recognise a test in two
  runs by class name and name, and make folders of the dots; texts for people are properties and contents of elements.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from mlfbuild import __version__
from mlfbuild.cli.output.events import position
from mlfbuild.core import Diagnostic, MlfError, ProcessFailedError, sha256, terminal_text, write_atomic

if TYPE_CHECKING:
    from mlfbuild.archive.validate import Finding, Report
    from mlfbuild.usecases import EvaluationReport
    from mlfbuild.verify import VerifyReport

Level = Literal["error", "warning", "notice"]


def error_annotations(error: MlfError) -> Iterator[str]:
    """Yield a line for the error, or for each of its findings, and the output of the program that failed."""
    findings: tuple[str | Diagnostic, ...] = getattr(error, "problems", ())
    for finding in findings or (error,):
        text = finding.message if isinstance(finding, MlfError) else str(finding)
        code = error.code if isinstance(finding, str) else finding.code
        yield annotation("error", text, title=f"mlfbuild: {code}")
    if isinstance(error, ProcessFailedError) and error.output.strip():
        yield error.output.rstrip()


def annotation(level: Level, text: str, *, title: str = "mlfbuild") -> str:
    """Return the workflow command for ``text``, with the file that ``text`` begins with, if any.

    Its form is that of "Workflow commands for GitHub Actions": ``::error
    file=fw/mlfbuild.yml,line=4,col=9,title=T::text``. A percent sign and line ends are escaped, in properties also
    colon and comma, because they end a property.
    """
    found = position(text)
    names = {"line": "line", "column": "col"}
    properties = {names[name]: str(found[name]) for name in names if name in found}
    # A message about a whole file begins with its name and a colon.
    file = str(found.get("file") or text.partition(": ")[0])
    properties = {"file": below_repository(Path(file)), **properties} if _is_file(file) else {}
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in {**properties, "title": title}.items())
    return f"::{level} {listed}::{_escaped(terminal_text(text))}"


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def below_repository(path: Path) -> str:
    """Return the path by which GitHub knows a file: from the top of the checkout, not from the current folder."""
    with contextlib.suppress(ValueError, KeyError):
        path = path.resolve().relative_to(Path(os.environ["GITHUB_WORKSPACE"]).resolve())
    return path.as_posix()


def _escaped(text: str, also: str = "") -> str:
    # The percent sign first, which the others become.
    for character in f"%\r\n{also}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text


# SARIF ----------------------------------------------------------------------------------------------------------------

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(report: Report, archive: Path) -> dict[str, Any]:
    """Return the findings about ``archive`` as a SARIF log with one run; its rules are the codes that were found.

    Paths are relative to the top of the checkout on GitHub. The fingerprint of a result contains its code, place and
    message, so that a code scanner knows it again in the next version of the archive.
    """
    codes = sorted({finding.code for finding in report.findings})
    driver = {"name": "mlfbuild", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code), archive) for finding in report.findings],
    }
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    from mlfbuild.archive.validate import CODES

    kind = CODES[code]
    return {
        "id": code,
        "shortDescription": {"text": _sentence(kind.meaning)},
        "help": {"text": _sentence(kind.advice)},
        "defaultConfiguration": {"level": kind.severity},
    }


def _result(finding: Finding, rule: int, archive: Path) -> dict[str, Any]:
    path = below_repository(archive)
    uri = Path(path).as_uri() if Path(path).is_absolute() else quote(path)
    # A code scanner of GitHub shows no result without a line, and an archive has none.
    physical = {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}
    identity = sha256(f"{finding.code}\0{finding.place}\0{finding.message}".encode())
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": f"{finding.place}: {finding.message}; {finding.advice}."},
        "locations": [
            {
                "physicalLocation": physical,
                "logicalLocations": [{"fullyQualifiedName": finding.place, "kind": "member"}],
            }
        ],
        "partialFingerprints": {"mlfbuildFinding/v1": identity},
    }


def _sentence(text: str) -> str:
    """Return ``text`` as SARIF asks for plain text messages: with an upper-case letter first and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


# JUnit ----------------------------------------------------------------------------------------------------------------


_SUITE = "mlfbuild.verify"
_UNFIT = re.compile(r"[^A-Za-z0-9_.+-]+")


@dataclass(frozen=True)
class JUnitCase:
    """One module on one target, or what was not verified (``result`` is None)."""

    suite: str
    """The target; the device or board if there is none."""
    name: str
    """The model, a dot, and the module if its name is another one."""
    result: VerifyReport | EvaluationReport | MlfError | None
    finding: Diagnostic | None = None
    """The mistake, with its place in the project file."""
    text: str = ""
    """The reason why it was not verified."""


def write_junit(path: Path, cases: Sequence[JUnitCase]) -> None:
    """Write ``cases`` to the file ``path`` as JUnit XML, with a test suite for each target; raises ``StorageError``.

    Cases of one target must follow each other. A wrong output is a ``failure``, a model that could not be checked an
    ``error``, and one that was left out is ``skipped``. A finding gives its case the file and line of the project file.
    GitLab shows the content of these elements and not their attribute ``message``, so the content repeats it.
    """
    root = Element("testsuites", {"name": _SUITE, **_junit_counts(cases)})
    for suite, group in itertools.groupby(cases, key=lambda case: case.suite):
        members = list(group)
        element = SubElement(root, "testsuite", {"name": _identifier(suite), **_junit_counts(members)})
        devices = {case.result.board for case in members if _has_report(case.result)}
        properties = SubElement(element, "properties")
        for name, values in (("target", [suite]), ("device", sorted(devices))):
            for value in values:
                SubElement(properties, "property", {"name": name, "value": _xml_text(value)})
        for case in members:
            _add_case(element, case)
    indent(root)
    write_atomic(path, tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _identifier(suite: str) -> str:
    """Return the name of a test suite; a device such as ``gdb localhost:3333`` is ``gdb_localhost_3333``."""
    return f"{_SUITE}.{_UNFIT.sub('_', suite)}"


def _has_report(
    result: VerifyReport | EvaluationReport | MlfError | None,
) -> TypeGuard[VerifyReport | EvaluationReport]:
    return result is not None and not isinstance(result, MlfError)


def _junit_counts(cases: Iterable[JUnitCase]) -> dict[str, str]:
    kinds = [_junit_kind(case) for case in cases]
    counted = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": str(len(kinds)), **{name: str(kinds.count(kind)) for name, kind in counted.items()}}


def _junit_kind(case: JUnitCase) -> str:
    if case.result is None:
        return "skipped"
    if isinstance(case.result, MlfError):
        return "error"
    return "passed" if case.result.passed else "failure"


def _add_case(suite: Element, case: JUnitCase) -> None:
    where = position(str(case.finding)) if case.finding else {}
    place: dict[str, str] = {name: str(where[name]) for name in ("file", "line") if name in where}
    names = {"classname": _identifier(case.suite), "name": _UNFIT.sub("_", case.name)}
    element = SubElement(suite, "testcase", {**names, **place})
    if case.result is None:
        SubElement(element, "skipped", message=_xml_text(case.text)).text = _xml_text(case.text)
    elif isinstance(case.result, MlfError):
        body = SubElement(element, "error", type=case.result.code, message=_xml_text(case.result.message))
        body.text = _xml_text(str(case.result))
    elif case.result.passed:
        SubElement(element, "system-out").text = _xml_text(case.result.text())
    else:
        kind = case.finding.code if case.finding else "verify-failed"
        body = SubElement(element, "failure", type=kind, message=_xml_text(case.result.problems[0]))
        body.text = _xml_text("\n".join([*case.result.problems, case.result.hint]).rstrip("\n"))


def _xml_text(text: str) -> str:
    """Return ``text`` without the characters that XML cannot contain."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in terminal_text(text))
