"""Read the tables in ``data``: TOML files whose entries are the rows, and CSV files; comments describe the keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from mlfbuild.core import Mistake, table_of_package
from mlfbuild.core.keys import DERIVED, Keys, read_keys

DATA = Path(__file__).resolve().parent / "data"
"""The folder of the tables."""
_Row = TypeVar("_Row", bound=Keys)


def rows(table: str, kind: type[_Row]) -> Iterator[tuple[str, _Row]]:
    """Yield the name and the keys of each entry of ``table``, a file of ``data``, in its order.

    A field ``name`` of ``kind`` that is not a key gets the name. Raises ``Mistake`` with the place in its reason.
    """
    path = DATA / f"{table}.toml"
    is_named = any(each.name == "name" and each.metadata == DERIVED for each in fields(kind))  # type: ignore[arg-type]  # every subclass is a dataclass
    name = ""
    try:
        for name, values in table_of_package(path).items():
            yield name, read_keys(kind, values, **({"name": name} if is_named else {}))
    except Mistake as mistake:
        raise Mistake(mistake.code, reason=f"{path}: {name}: {mistake.reason}", hint=mistake.hint) from None


def csv_rows(table: str) -> Iterator[dict[str, str]]:
    """Yield the rows of ``table``, a CSV file of ``data`` in which lines that begin with ``#`` are comments."""
    import csv  # most commands read no such table

    lines = (DATA / f"{table}.csv").read_text(encoding="utf-8").splitlines()
    yield from csv.DictReader(line for line in lines if not line.startswith("#"))
