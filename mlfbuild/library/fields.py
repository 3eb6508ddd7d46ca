"""JSON from outside: parsed strictly, and its members taken out with their types checked."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn, TypeGuard

from mlfbuild.core import InputFileError, advised, shown

_LARGEST = 2**63 - 1


def parse_json(data: bytes, where: str, advice: str = "make it again") -> object:
    """Return the value of the JSON text ``data``; ``advice`` says what to do about a damaged one.

    Raises ``InputFileError`` where it is not JSON in UTF-8, names a key twice, or holds NaN or an infinity.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key stands twice in one object")
        return dict(pairs)

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError:
        raise InputFileError(f"{where}: not sound JSON: nested too deeply; {advice}") from None
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are ValueErrors
        raise InputFileError(f"{where}: not sound JSON: {error}; {advice}") from None


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


class Fields:
    """A JSON object of unknown origin; each method takes one member and raises ``InputFileError`` for a wrong type.

    ``where`` names the file in messages, ``path`` the way to the object in it: ``modules.kws.memory``.
    ``advice`` says what to do about a damaged one.
    """

    def __init__(self, value: object, where: str, path: str = "", advice: str = "make it again") -> None:
        self.where = where
        self._path = path
        self._advice = advice
        if not isinstance(value, dict):
            raise InputFileError(f"{where}{path and f': {path}'}: must be an object; {advice}")
        self._members: dict[str, object] = value

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def names(self) -> Sequence[str]:
        """Return the names of the members, sorted."""
        return sorted(self._members)

    def unsorted_names(self) -> Sequence[str]:
        """Return the names of the members, as they stand in the file."""
        return list(self._members)

    def holds(self, key: str, kind: type[object]) -> bool:
        """Whether the member is there and of the JSON type that Python calls ``kind``; a flag is no whole number."""
        value = self._members.get(key)
        return isinstance(value, kind) and not (kind is int and isinstance(value, bool))

    def holds_all(self, key: str, kind: type[object]) -> bool:
        """Whether the member is a list of nothing but the JSON type that Python calls ``kind``."""
        value = self._members.get(key)
        return isinstance(value, list) and all(
            isinstance(item, kind) and not (kind is int and isinstance(item, bool)) for item in value
        )

    def is_null(self, key: str) -> bool:
        """Whether the member is null or absent."""
        return self._members.get(key) is None

    def error(self, key: str, reason: str) -> InputFileError:
        """Return the error that blames the member ``key``."""
        return InputFileError(advised(f"{self.where}: {self._path_of(key)}: {reason}", self._advice))

    def _path_of(self, key: str) -> str:
        return f"{self._path}.{shown(key)}" if self._path else shown(key)

    def _get(self, key: str) -> object:
        if key not in self._members:
            raise self.error(key, "is missing")
        return self._members[key]

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; ``default`` where the member is absent, if there is one."""
        if default is not None and key not in self._members:
            return default
        value = self._get(key)
        if not isinstance(value, str):
            raise self.error(key, "must be a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a string, or ``None`` where the member is null or absent."""
        return None if self._members.get(key) is None else self.text(key)

    def integer(self, key: str, *, minimum: int = 0) -> int:
        """Return a whole number from ``minimum`` to 2^63-1."""
        value = self._get(key)
        if not _is_whole(value) or not minimum <= value <= _LARGEST:
            raise self.error(key, f"must be a whole number of at least {minimum}")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self._get(key)
        if isinstance(value, float) and math.isfinite(value):
            return value
        if _is_whole(value) and abs(value) <= _LARGEST:
            return float(value)
        raise self.error(key, "must be a number")

    def member(self, key: str) -> Fields:
        """Return an object."""
        return Fields(self._get(key), self.where, self._path_of(key), self._advice)

    def objects(self, key: str) -> list[Fields]:
        """Return a list of objects, empty where the member is absent."""
        path = self._path_of(key)
        return [
            Fields(item, self.where, f"{path}[{index}]", self._advice) for index, item in enumerate(self._list(key))
        ]

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, empty where the member is absent."""
        values = self._list(key)
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, "must be a list of strings")
        return tuple(str(value) for value in values)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers of at least 0, empty where the member is absent."""
        values = self._list(key)
        whole = [value for value in values if _is_whole(value) and 0 <= value <= _LARGEST]
        if len(whole) != len(values):
            raise self.error(key, "must be a list of whole numbers of at least 0")
        return tuple(whole)

    def _list(self, key: str) -> list[object]:
        value = self._members.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, "must be a list")
        return value
