"""Report all findings about one archive, as data or as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mlfbuild.archive.validate.codes import CODES
from mlfbuild.archive.validate.findings import Finding, Severity
from mlfbuild.core import counted

_ORDER: tuple[Severity, ...] = ("error", "warning", "note")
_SHOWN = 5
"""Largest number of findings of one code in the text."""


@dataclass(frozen=True)
class Report:
    """The findings about an archive."""

    where: str
    """The archive's name."""
    findings: tuple[Finding, ...]
    """Errors first, then warnings and notes, each sorted by code."""

    @property
    def failed(self) -> bool:
        """Whether a finding is an error."""
        return self.count("error") > 0

    def count(self, severity: Severity) -> int:
        """Return how many findings have ``severity``."""
        return sum(finding.severity == severity for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-ready data; CI reads ``valid``, the counts and ``findings[].code``."""
        return {
            "archive": self.where,
            "valid": not self.failed,
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "notes": self.count("note"),
            "findings": [vars(finding) for finding in self.findings],
        }

    def text(self) -> str:
        """Return the report as lines for people, one paragraph per code, the last line without a line end."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for code, group in groupby(self.findings, key=lambda finding: finding.code):
            found = list(group)
            yield f"{found[0].severity} {code}: {CODES[code].meaning}"
            yield from (f"  {finding.place}: {finding.message}" for finding in found[:_SHOWN])
            if len(found) > _SHOWN:
                yield f"  ... and {len(found) - _SHOWN:,} more; --format json lists them"
            yield f"  -> {CODES[code].advice}"
        counts = ", ".join(counted(self.count(severity), severity) for severity in _ORDER)
        yield f"{self.where}: {'invalid' if self.failed else 'valid'}: {counts}"


def report(where: str, findings: Iterable[Finding]) -> Report:
    """Return the report of ``findings``, which may have any order."""
    return Report(where, tuple(sorted(findings, key=lambda item: (_ORDER.index(item.severity), item.code))))
