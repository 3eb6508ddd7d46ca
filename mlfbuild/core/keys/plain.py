"""Read keys from plain values without pydantic, whose import costs more than all of mlfbuild's own tables.

    read_keys(CacheKeys, {"size": "8 KiB", "line": 32, "ways": 4})  ->  CacheKeys(size=8192, line=32, ways=4)

The values are those of a TOML file. The same classes, conversions and checks hold as in a project file, but reading
ends at the first mistake. Types that no table needs (``ProjectPath``, ``TextOr``, unions) are not supported.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from mlfbuild.core import Mistake, in_quotes, unknown
from mlfbuild.core.keys.checks import Reader
from mlfbuild.core.keys.declaration import Keys

_Keys = TypeVar("_Keys", bound=Keys)


def read_keys(kind: type[_Keys], values: object, **derived: object) -> _Keys:
    """Return ``values`` as the keys of ``kind``; ``derived`` are its fields that are not keys.

    Raises ``Mistake``, whose reason begins with the way to the value: ``memories.flash.width: 3 is not a power of
    two``.
    """
    # Tables have hundreds of entries of one kind, so the readers of a class are built once.
    fields, readers = kind.fields(), _readers(kind)  # type: ignore[arg-type]  # mypy takes classes for unhashable
    found = dict(derived)
    for key, value in _mapping(values).items():
        if key not in fields:
            raise unknown("key", str(key), fields)
        found[fields[key].name] = _at(key, readers[fields[key].name], value)
    for key, field in fields.items():
        has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if field.name not in found and not has_default:
            raise Mistake("missing-key", reason=f"missing key {in_quotes(key)}", hint=f"add {key}")
    return kind(**found)


@functools.cache
def _readers(kind: type[Keys]) -> Mapping[str, Reader]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: _reader(hints[field.name]) for field in kind.fields().values()}


def _reader(hint: Any) -> Reader:
    """Return the function that reads a value of the type ``hint``, with the checks in it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        # Checks wrap the reader from the inside out, in the order in which the annotation lists them, as in pydantic.
        return functools.reduce(lambda read, check: check.around(read), hint.__metadata__, _reader(inner[0]))
    if type(None) in inner:  # TOML has no null
        return _reader(next(each for each in inner if each is not type(None)))
    if origin in {tuple, frozenset}:
        each = _reader(inner[0])
        return lambda value: origin(_list(each, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = map(_reader, inner)
        return lambda value: {key(name): _at(name, item, each) for name, each in _mapping(value).items()}
    if issubclass(hint, Keys):
        return functools.partial(read_keys, hint)
    return functools.partial(_exactly, hint)


def _exactly(kind: type, value: object) -> object:
    # isinstance would accept true for 1, because bool is a subclass of int.
    if type(value) is not kind:
        raise _wrong_type(kind.__name__, value)
    return value


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _wrong_type("a mapping", value)
    return value


def _list(read: Reader, value: object) -> Iterable[object]:
    if not isinstance(value, list):
        raise _wrong_type("a list", value)
    return [_at(str(index), read, each) for index, each in enumerate(value)]


def _at(name: str, read: Reader, value: object) -> Any:
    """Return what ``read`` makes of ``value``; the mistake that it raises is reported at ``name``."""
    try:
        return read(value)
    except Mistake as mistake:
        # If the mistake has a cause, it comes from here, so its reason already begins with a key.
        separator = "." if mistake.__cause__ else ": "
        raise Mistake(mistake.code, reason=f"{name}{separator}{mistake.reason}", hint=mistake.hint) from mistake


def _wrong_type(wanted: str, value: object) -> Mistake:
    return Mistake("wrong-type", reason=f"expected {wanted}, got {value!r}")
