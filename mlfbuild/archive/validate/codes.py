"""List every finding: its code, severity, meaning and advice, which ``codes.toml`` contains.

The hundreds of a code are the subject: 1 files, 2 metadata, 3 names, 4 memory, 5 graph, 6 parameters, 7 code, 8
external dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.archive.validate.findings import Finding, Severity
from mlfbuild.core import shown, table_of_package


@dataclass(frozen=True)
class FindingKind:
    """Common properties of all findings of one code."""

    severity: Severity
    meaning: str
    advice: str

    @property
    def repairable(self) -> bool:
        """Whether ``mlfbuild convert --repair`` removes the findings; a date only if its time zone is proved."""
        return self.advice.startswith(_REPAIR)


_REPAIR = "run mlfbuild convert --repair"

CODES: Mapping[str, FindingKind] = {
    code: FindingKind(**kind) for code, kind in table_of_package(Path(__file__).with_name("codes.toml")).items()
}
"""The meaning of each finding code."""


def finding(code: str, place: str, message: str) -> Finding:
    """Return the finding ``code`` at ``place``; place and message may contain names from the archive."""
    common = CODES[code]
    return Finding(code, common.severity, shown(place), shown(message), common.advice, common.repairable)
