"""What a comparison found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """One thing in which two libraries differ."""

    module: str | None
    """The module it is about; ``None`` for files of no module and for modules that only one library has."""
    what: str
    """``module``, ``executor``, ``target``, ``input``, ``memory``, ``parameter``, ``graph``, ``code``, ..."""
    name: str
    """The tensor, function, array or file; empty where the module has only one such thing."""
    left: Any
    """The first library's value, ready for JSON; ``None`` where it has none."""
    right: Any
    """The second library's value."""
    text: str
    """The difference in words, without ``what`` and ``name``."""


@dataclass(frozen=True)
class Comparison:
    """All differences of two libraries, and what is worth knowing though it is none."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether the two libraries mean the same."""
        return not self.differences

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON-ready data."""
        differences = [asdict(difference) for difference in self.differences]
        return {"equal": self.equal, "differences": differences, "notes": list(self.notes)}


def distinct(names: Iterable[str]) -> Iterator[str]:
    """Yield ``names`` so that each is another one: a second ``add`` is ``add#2``."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}"


def told(left: object, right: object) -> str:
    """Return the words for a value that changed."""
    return f"{_shown(left)} -> {_shown(right)}"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
