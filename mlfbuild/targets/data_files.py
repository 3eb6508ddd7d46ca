"""Read the tables in ``data``: TOML files whose entries are the rows, with comments that describe the keys."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from mlfbuild.core import Mistake
from mlfbuild.core.keys import DERIVED, Keys, read_keys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).resolve().parent / "data"
"""The folder of the tables."""
_Row = TypeVar("_Row", bound=Keys)


def parsed(text: str) -> dict[str, Any]:
    """Return the content of a TOML file; raises ``ValueError`` with line and column in its text."""
    content: dict[str, Any] = tomllib.loads(text)
    return content


def rows(table: str, kind: type[_Row]) -> Iterator[tuple[str, _Row]]:
    """Yield the name and the keys of each entry of ``table``, a file of ``data``, in its order.

    A field ``name`` of ``kind`` that is not a key gets the name. Raises ``Mistake`` with the place in its reason.
    """
    path = DATA / f"{table}.toml"
    is_named = any(each.name == "name" and each.metadata == DERIVED for each in fields(kind))  # type: ignore[arg-type]  # every subclass is a dataclass
    name = ""
    try:
        for name, values in parsed(path.read_text(encoding="utf-8")).items():
            yield name, read_keys(kind, values, **({"name": name} if is_named else {}))
    except Mistake as mistake:
        raise Mistake(mistake.code, reason=f"{path}: {name}: {mistake.reason}", hint=mistake.hint) from None
