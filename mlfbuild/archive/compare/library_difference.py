"""The result of a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class LibraryDifference:
    """One difference between two libraries."""

    module: str | None
    """The module; ``None`` for files of no module and for modules that only one library has."""
    what: str
    """``module``, ``executor``, ``target``, ``input``, ``memory``, ``parameter``, ``graph``, ``code``, ..."""
    name: str
    """The tensor, function, array or file; empty if the module has only one such thing."""
    left: Any
    """The first library's value, ready for JSON; ``None`` if it has none."""
    right: Any
    """The second library's value, ready for JSON; ``None`` if it has none."""
    text: str
    """The difference in words, without ``what`` and ``name``."""


@dataclass(frozen=True)
class LibraryComparison:
    """All differences between two libraries, and notes about changes that are not counted as differences."""

    differences: tuple[LibraryDifference, ...]
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether the two libraries have the same meaning."""
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON-ready data."""
        differences = [asdict(difference) for difference in self.differences]
        return {"equal": self.equal, "differences": differences, "notes": list(self.notes)}


def distinct(names: Iterable[str]) -> Iterator[str]:
    """Yield ``names`` with numbers after repeated ones: a second ``add`` is ``add#2``."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}"


def change(left: object, right: object) -> str:
    """Return the text for a changed value: ``0 -> 1,024``."""
    return f"{_shown(left)} -> {_shown(right)}"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
