"""List every finding: its code, severity, meaning and advice, which ``codes.toml`` contains.

The hundreds of a code are the subject: 1 files, 2 metadata, 3 names, 4 memory, 5 graph, 6 parameters, 7 code, 8
external dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from mlfbuild.core import Diagnostic, shown, table_of_package

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One problem or note; ``code`` is a key of ``codes.CODES`` and never changes its meaning."""

    code: str
    severity: Severity
    """``error``: builds fail or the archive contradicts itself; ``warning``: a known fault of an exporter, or a problem
    for some tools; ``note``: useful to know."""
    place: str
    """A member, a member and a symbol in it, or ``metadata.json`` and the path of a key."""
    message: str
    advice: str
    """The next command or edit, in the imperative."""
    repairable: bool
    """Whether ``mlfbuild convert --repair`` corrects it; a date only if its time zone is proved."""

    def diagnostic(self, where: object) -> Diagnostic:
        """Return the finding in the form of the findings of errors; ``where`` is the archive.

        ``kws.tar: metadata.json: modules.kws.target`` becomes its place, the message its reason, and the advice its
        hint.
        """
        return Diagnostic(self.code, place=f"{where}: {self.place}", reason=self.message, hint=self.advice)


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
