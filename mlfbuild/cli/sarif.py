"""``validate --format sarif``: findings as a log of the Static Analysis Results Interchange Format, SARIF 2.1.0."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mlfbuild import __version__
from mlfbuild.cli.github import below_repository
from mlfbuild.core import sha256

if TYPE_CHECKING:
    from mlfbuild.archive.validate import Finding, Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(report: Report, archive: Path) -> dict[str, Any]:
    """Return the findings about ``archive`` as a log with one run; its rules are the codes that were found."""
    codes = sorted({finding.code for finding in report.findings})
    driver = {"name": "mlfbuild", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code), archive) for finding in report.findings],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


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
