"""Findings: what is wrong with an archive, where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing; ``code`` stands in ``codes.CODES`` and never changes its meaning."""

    code: str
    severity: Severity
    """``error``: something breaks or the archive contradicts itself; ``warning``: a known fault of an exporter, or
    something a tool trips over; ``note``: worth knowing."""
    place: str
    """A member, a member and a symbol in it, or ``metadata.json`` and the way to a key."""
    message: str
    advice: str
    """What to do about it."""
