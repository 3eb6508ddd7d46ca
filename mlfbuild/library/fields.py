"""Read JSON files that are not trusted: strict parsing, and typed access to the members of objects."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, NoReturn, TypeGuard, TypeVar

from mlfbuild.core import InputFileError, shown

# Numbers in files become sizes and indices, which other tools keep in 64 bits with a sign.
_LARGEST = 2**63 - 1


def parse_json(data: bytes, where: str, advice: str = "write the file again") -> object:
    """Return the value of the JSON text ``data`` from the file ``where``; ``advice`` is the hint of errors.

    Raises ``InputFileError`` if the text is not JSON in UTF-8, an object has a key twice, or a number is NaN or
    infinite.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # Python keeps the last value, other readers the first: two tools would read two different files.
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("an object has the same key twice")
        return dict(pairs)

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        # Strict, because Python accepts NaN and repeated keys, which other readers of the file refuse or read
        # differently.
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:  # JSONDecodeError and UnicodeDecodeError are ValueErrors
        reason = str(error)
    raise InputFileError("json-invalid", place=where, reason=f"the text is not valid JSON: {reason}", hint=advice)


def _is(value: object, kind: type[object]) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _is_whole(value: object) -> TypeGuard[int]:
    return _is(value, int)


_Record = TypeVar("_Record")


class Fields:
    """A JSON object from a file that is not trusted; each method reads one member.

    ``where`` is the file and ``path`` the object in it, such as ``modules.kws.memory``; errors name both as their
    place. ``advice`` is the hint of errors. The methods raise ``InputFileError`` if the member has another type. The
    object remembers which members were read, so that ``unread`` can list the others.

    For example::

        Fields({"memory": {"size": 4}}, "metadata.json").member("memory").integer("size")  # 4
    """

    __slots__ = ("_advice", "_members", "_opened", "_path", "_place", "_read", "where")

    def __init__(self, value: object, where: str, path: str = "", advice: str = "write the file again") -> None:
        self.where = where
        self._path = path
        self._advice = advice
        self._place: tuple[str, ...] | None = None
        self._read: set[str] = set()
        self._opened: dict[str, Fields | list[Fields]] | None = None  # most objects contain no others
        if not isinstance(value, dict):
            place = f"{where}: {path}" if path else where
            raise InputFileError("json-type-wrong", place=place, reason="must be an object", hint=advice)
        self._members: dict[str, object] = value

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def names(self) -> Sequence[str]:
        """Return the names of the members, sorted."""
        return sorted(self._members)

    def unsorted_names(self) -> Sequence[str]:
        """Return the names of the members in the order of the file."""
        return list(self._members)

    def holds(self, key: str, kind: type[object]) -> bool:
        """Return whether the member exists and is a ``kind``; ``true`` and ``false`` do not count as ``int``.

        For members that may have several forms. The member does not count as read, and nothing is raised: an
        absent member holds nothing.
        """
        return _is(self._members.get(key), kind)

    def holds_all(self, key: str, kind: type[object]) -> bool:
        """Return whether the member is a list in which each item is a ``kind``."""
        value = self._members.get(key)
        return isinstance(value, list) and all(_is(item, kind) for item in value)

    def is_null(self, key: str) -> bool:
        """Return whether the member is null or absent."""
        return self._members.get(key) is None

    def raw(self, key: str) -> object:
        """Return the value of the member without counting it as read; ``None`` if it is absent.

        For values that are kept as they are, such as unknown fields. Use ``skip`` to count it as read.
        """
        return self._members.get(key)

    def skip(self, *keys: str) -> None:
        """Count members as read, if they exist."""
        self._read.update(key for key in keys if key in self._members)

    def leave(self, key: str) -> None:
        """Count a member that ``member`` returned as not read.

        For an object that turns out to be of another version: it is then listed by ``unread`` as a whole.
        """
        self._read.discard(key)
        if self._opened is not None:
            self._opened.pop(key, None)

    def put_at(self, *place: str) -> None:
        """Set the keys and indices that lead to the object in ``unread``, if they are not those of the file."""
        self._place = place

    def unread(self, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
        """Yield place, from ``place`` on, and value of each member that was not read, also in the objects that were.

        The objects are then forgotten, because a document has many.
        """
        place = place if self._place is None else self._place
        if len(self._read) < len(self._members):
            yield from (((*place, key), value) for key, value in self._members.items() if key not in self._read)
        # Taken out before the recursion, so that a large document is released while it is walked.
        found, self._opened = self._opened, None
        for key, opened in (found or {}).items():
            if isinstance(opened, Fields):
                yield from opened.unread((*place, key))
            else:
                for index, item in enumerate(opened):
                    yield from item.unread((*place, key, str(index)))

    def error(self, key: str, reason: str, *, code: str = "json-value-invalid", hint: str = "") -> InputFileError:
        """Return an error about the member ``key``; without ``hint`` it has the hint of the file.

        ``reason`` is a clause whose subject is the member, such as ``must be 1``. The place of the error is the
        file with the path of the member. Callers raise the result.
        """
        return InputFileError(
            code, place=f"{self.where}: {self._path_of(key)}", reason=reason, hint=hint or self._advice
        )

    def _type_error(self, key: str, expected: str) -> InputFileError:
        return self.error(key, f"must be {expected}", code="json-type-wrong")

    def _path_of(self, key: str) -> str:
        return f"{self._path}.{shown(key)}" if self._path else shown(key)

    def _get(self, key: str) -> object:
        if key not in self._members:
            raise self.error(key, "is missing", code="json-member-missing")
        self._read.add(key)
        return self._members[key]

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; if the member is absent and ``default`` is not ``None``, ``default``.

        An empty string is a string. Raises ``InputFileError`` if the member is of another type, or absent
        without a default.
        """
        if default is not None and key not in self._members:
            return default
        value = self._get(key)
        if not isinstance(value, str):
            raise self._type_error(key, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a string, or ``None`` if the member is null or absent."""
        if self._members.get(key) is None:
            self.skip(key)
            return None
        return self.text(key)

    def integer(self, key: str, *, minimum: int = 0) -> int:
        """Return a whole number from ``minimum`` to 2^63-1.

        ``true`` and ``1.0`` are not whole numbers. Raises ``InputFileError`` if the member is absent, of another
        type or out of this range.
        """
        value = self._get(key)
        if not _is_whole(value) or not minimum <= value <= _LARGEST:
            raise self._type_error(key, f"a whole number of at least {minimum}")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._type_error(key, "true or false")
        return value

    def number(self, key: str) -> float:
        """Return a finite number.

        Whole numbers count, ``true`` and ``false`` do not. Raises ``InputFileError`` if the member is absent,
        of another type or infinite.
        """
        value = self._get(key)
        # 1e999 is valid JSON, and Python reads it as infinity.
        if isinstance(value, float) and math.isfinite(value):
            return value
        if _is_whole(value) and abs(value) <= _LARGEST:
            return float(value)
        raise self._type_error(key, "a number")

    def record(self, kind: type[_Record], **given: Any) -> _Record:
        """Return the dataclass ``kind`` with the members that are called like its fields, and the values ``given``.

        Types of fields are texts, whole numbers of at least 0, numbers, flags, and tuples of texts or numbers. Fields
        with a default may be absent. For example, ``record(Span)`` reads ``{"size": 4, "first": 0, "last": 1}``. Raises
        as the methods for single members.
        """
        for each in fields(kind):  # type: ignore[arg-type]  # a dataclass
            optional = each.default is not MISSING or each.default_factory is not MISSING
            if each.name not in given and (each.name in self or not optional):
                # The types are texts, because all modules postpone the evaluation of annotations.
                given[each.name] = _READERS[str(each.type).removesuffix(" | None")](self, each.name)
        return kind(**given)

    def member(self, key: str) -> Fields:
        """Return an object.

        Each call returns the same object, so that members that one caller reads count as read for all. Raises
        ``InputFileError`` if the member is absent or no object.
        """
        value = self._get(key)
        if self._opened is None:
            self._opened = {}
        # The same object for each call, so that members read through one count as read for all.
        opened = self._opened.get(key)
        if not isinstance(opened, Fields):
            opened = self._opened[key] = Fields(value, self.where, self._path_of(key), self._advice)
        return opened

    def objects(self, key: str) -> list[Fields]:
        """Return a list of objects, empty if the member is absent.

        As for ``member``, each call returns the same objects. Raises ``InputFileError`` if the member is no
        list, or an item is not an object.
        """
        values = self._list(key)
        if not values:
            return []
        if self._opened is None:
            self._opened = {}
        opened = self._opened.get(key)
        if not isinstance(opened, list):
            path = self._path_of(key)
            opened = [Fields(item, self.where, f"{path}[{index}]", self._advice) for index, item in enumerate(values)]
            self._opened[key] = opened
        return opened

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings, empty if the member is absent."""
        values = self._list(key)
        if not all(isinstance(value, str) for value in values):
            raise self._type_error(key, "a list of strings")
        return tuple(str(value) for value in values)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers of at least 0, empty if the member is absent."""
        values = self._list(key)
        whole = [value for value in values if _is_whole(value) and 0 <= value <= _LARGEST]
        if len(whole) != len(values):
            raise self._type_error(key, "a list of whole numbers of at least 0")
        return tuple(whole)

    def optional_integers(self, key: str) -> tuple[int | None, ...]:
        """Return a list of whole numbers of at least 0 and ``None`` for null, empty if the member is absent."""
        values = self._list(key)
        whole = [value for value in values if value is None or (_is_whole(value) and 0 <= value <= _LARGEST)]
        if len(whole) != len(values):
            raise self._type_error(key, "a list of whole numbers of at least 0 and of null")
        return tuple(whole)

    def _list(self, key: str) -> list[object]:
        # Counted as read before the type is known: the error is about it, and nothing else is reported.
        self.skip(key)
        value = self._members.get(key, [])
        if not isinstance(value, list):
            raise self._type_error(key, "a list")
        return value


_READERS: Mapping[str, Callable[[Fields, str], object]] = {
    "str": Fields.text, "int": Fields.integer, "float": Fields.number, "bool": Fields.flag,
    "tuple[str, ...]": Fields.texts, "tuple[int, ...]": Fields.integers,
}  # fmt: skip
"""The methods of ``Fields.record`` by the type of a field."""
