"""Apply all rules to an archive, and report all findings as data or as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import groupby
from typing import Any

from mlfbuild.archive.read import read_files
from mlfbuild.archive.validate import code, graph, layout, memory, metadata, names
from mlfbuild.archive.validate.codes import CODES, Finding, Severity, finding
from mlfbuild.archive.validate.views import ArchiveView, Rule
from mlfbuild.core import counted
from mlfbuild.library import Content, parse_json

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
        """Return the report as JSON-ready data; CI reads ``valid``, the counts and ``findings[].code``.

        Findings have the fields of ``Finding``. ``errors``, ``warnings`` and ``notes`` are the counts; ``valid`` is
        false if there are errors.
        """
        return {
            "archive": self.where,
            "valid": not self.failed,
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "notes": self.count("note"),
            "findings": [vars(finding) for finding in self.findings],
        }

    def text(self) -> str:
        """Return the report as lines for people, one paragraph per code, the last line without a line end.

        A paragraph has the code with its meaning, the first findings and the advice. The last line has the verdict and
        the number of errors, warnings and notes.
        """
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for number, group in groupby(self.findings, key=lambda finding: finding.code):
            found = list(group)
            yield f"{found[0].severity} {number}: {CODES[number].meaning}"
            yield from (f"  {finding.place}: {finding.message}" for finding in found[:_SHOWN])
            if len(found) > _SHOWN:
                yield f"  ... and {len(found) - _SHOWN:,} more; --format json lists them"
            yield f"  -> {CODES[number].advice}"
        counts = ", ".join(counted(self.count(severity), severity) for severity in _ORDER)
        yield f"{self.where}: {'invalid' if self.failed else 'valid'}: {counts}"


def report(where: str, findings: Iterable[Finding]) -> Report:
    """Return the report of ``findings``, which may have any order."""
    # Sorting is stable, so findings of one code stay in the order in which the rules found them.
    return Report(where, tuple(sorted(findings, key=lambda item: (_ORDER.index(item.severity), item.code))))


RULES: tuple[Rule, ...] = (
    *layout.RULES, *metadata.RULES, *names.RULES, *memory.RULES, *graph.RULES, *code.RULES,
)  # fmt: skip

_METADATA = re.compile(r"metadata(?:-[0-9]+)?\.json", re.ASCII)
# A damaged archive may have a finding for each of its tensors, of which there can be millions.
_MAX_OF_ONE_CODE = 100


def validate(files: Mapping[str, Content], where: str, now: datetime | None = None) -> Report:
    """Return the report about the archive with ``files`` (relative path without ``./`` -> content).

    ``where`` is the name of the archive; dates are compared with ``now``, by default the current time. Raises the
    errors of ``read_files`` if the files are not an archive that can be read.

    The archive is read twice: as a library, for rules about its meaning, and as plain JSON, for rules about keys and
    types that the reader tolerates.

    In the result, more than ``_MAX_OF_ONE_CODE`` findings of a code are replaced by one with their number, so that a
    report stays readable and small.
    """
    library = read_files(files, where)
    # `read_files` has refused archives with more than one of these.
    member = next(path for path in files if _METADATA.fullmatch(path))
    document = parse_json(bytes(files[member]), where)
    assert isinstance(document, dict)  # because read_files accepted it
    archive = ArchiveView(files, member, document, library, now or datetime.now(timezone.utc))
    found = (item for rule in RULES for item in rule(archive))
    return report(where, _limited(found))


def _limited(found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first findings of each code, and one more with the number of findings that are left out."""
    counts: Counter[str] = Counter()
    for item in found:
        counts[item.code] += 1
        if counts[item.code] <= _MAX_OF_ONE_CODE:
            yield item
    for name, count in counts.items():
        if count > _MAX_OF_ONE_CODE:
            yield finding(name, "elsewhere", f"{count - _MAX_OF_ONE_CODE:,} more findings like these are left out")
