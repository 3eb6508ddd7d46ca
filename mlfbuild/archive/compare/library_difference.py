"""The result of a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

_Value = TypeVar("_Value")


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
        """Return the comparison as JSON-ready data.

        It has ``equal``, ``differences`` with the fields of ``LibraryDifference``, and ``notes``, in the order in which
        the text shows them.
        """
        differences = [asdict(difference) for difference in self.differences]
        return {"equal": self.equal, "differences": differences, "notes": list(self.notes)}


def distinct(names: Iterable[str]) -> Iterator[str]:
    """Yield ``names`` with numbers after repeated ones: a second ``add`` is ``add#2``.

    The order stays, so that the results can be zipped with what ``names`` belong to. A name that already ends like that
    is not recognised: ``add#2``, ``add``, ``add`` yields ``add#2`` twice.
    """
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}"


def by_name(
    of: tuple[str | None, str],
    left: Mapping[str, _Value],
    right: Mapping[str, _Value],
    facts: Callable[[_Value], Any],
    both: Callable[[str, _Value, _Value], Iterable[LibraryDifference]],
    noun: str = "",
) -> Iterator[LibraryDifference]:
    """Yield the differences between the values of two mappings, in the order of ``left`` and then of ``right``.

    ``of`` has module and kind of the differences. A name of one side is a difference with the ``facts`` about its
    value; ``both`` yields those of a name that both sides have. ``noun`` begins the text: ``node only in the first``.
    """
    for name in [*left, *(name for name in right if name not in left)]:
        if name not in right:
            yield LibraryDifference(*of, name, facts(left[name]), None, f"{noun}only in the first")
        elif name not in left:
            yield LibraryDifference(*of, name, None, facts(right[name]), f"{noun}only in the second")
        else:
            yield from both(name, left[name], right[name])


def change(left: object, right: object) -> str:
    """Return the text for a changed value: ``0 -> 1,024``."""
    return f"{_shown(left)} -> {_shown(right)}"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
