"""The overview as text, Markdown, CSV, JSON, Parquet and an HTML page."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any

from mlfbuild.core import (
    UsageError,
    counted,
    lazy_module,
    markdown_code,
    markdown_table,
    require_extra,
    text_table,
    write_atomic,
)
from mlfbuild.jobs import check_replaced
from mlfbuild.report.fleet.columns import COLUMNS, INDEX, Value
from mlfbuild.report.fleet.overview import FigureChange, Fleet
from mlfbuild.report.fleet.shown import GROWTH, SHORT, beside, known_columns, summary

FORMAT = 1
"""Version of the JSON form."""
_VERSION = "mlfbuild_fleet"
PLACE = {
    "report": "Path of the report or the baseline",
    "commit": "Commit of these figures, its time in UTC and its subject; empty for files of a folder",
    "date": "",
    "subject": "",
    "current": "Whether these figures are the last ones of an image that is still there",
}
"""The first columns of CSV, JSON and Parquet, with their meaning as in ``COLUMNS``, which follow."""
_SHOWN = 10
"""Changes that the text lists."""
_IN_TEXT = {"image", "target", "flash", "ram", "stack", "cycles", "latency", "budget", "verified", "instructions"}
"""Columns of the text, except with ``-v``; it must fit a terminal."""


def rows(fleet: Fleet, *, no: object = False, yes: object = True) -> Iterator[tuple[Any, ...]]:
    """Yield the values of ``PLACE`` and ``COLUMNS`` for each version of each image, oldest first; ``None`` is unknown.

    A version holds until the next one of its image: a commit that changed nothing has no row. ``no`` and ``yes`` stand
    for the values of ``current``.
    """
    for image in fleet.images:
        report, last, now = image.report, len(image.versions), yes if image.removed is None else no
        for number, (commit, figures) in enumerate(image.versions, 1):
            about = (commit.id, commit.date, commit.subject) if commit else (None, None, None)
            yield report, *about, now if number == last else no, *figures


NAMES = (*PLACE, *(column.name for column in COLUMNS))
"""The names of the columns of ``rows``."""


def fleet_csv(fleet: Fleet) -> str:
    """Return ``rows`` as CSV with a header; unknown values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(NAMES)
    writer.writerows(rows(fleet, no="false", yes="true"))
    return text.getvalue()


def fleet_json(fleet: Fleet) -> str:
    """Return ``rows`` as a list of objects, one on each line, so that two files can be compared."""
    # ``json.dumps`` of each row would take half as long again.
    form = f"{{{', '.join(f'{json.dumps(name)}: %s' for name in NAMES)}}}"
    lines = ",\n".join(form % tuple(map(_value, row)) for row in rows(fleet))
    return f'{{"{_VERSION}": {FORMAT}, "rows": [\n{lines}\n]}}\n'


def _value(value: Value) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def fleet_parquet(fleet: Fleet) -> bytes:
    """Return ``rows`` as a Parquet file: dates are timestamps in UTC; raises ``ToolNotFoundError`` without pyarrow."""
    require_extra("parquet", "fleet", "writing Parquet")
    pa, parquet = lazy_module("pyarrow"), lazy_module("pyarrow.parquet")
    kinds: dict[object, Any] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    types = dict.fromkeys(PLACE, pa.string()) | {column.name: kinds[column.kind] for column in COLUMNS}
    types |= {"date": pa.timestamp("s", tz="UTC"), "current": pa.bool_()}
    listed = list(rows(fleet))
    values: dict[str, list[Any]] = {name: [row[index] for row in listed] for index, name in enumerate(NAMES)}
    values["date"] = [text and datetime.fromisoformat(text.replace("Z", "+00:00")) for text in values["date"]]
    file = io.BytesIO()
    parquet.write_table(pa.table({name: pa.array(values[name], types[name]) for name in NAMES}), file)
    return file.getvalue()


def fleet_text(fleet: Fleet, *, verbose: bool = False) -> str:
    """Return the present figures as a table, and the last changes; with ``verbose`` all columns and changes."""
    header, align, listed = _table(fleet, verbose=verbose)
    parts = [summary(fleet), text_table(listed, header=header, align=align)]
    changes = fleet.changes if verbose else fleet.changes[:_SHOWN]
    if changes:
        shown = [(change.commit.id[:SHORT], *change_cells(change), change.commit.subject) for change in changes]
        more = len(fleet.changes) - len(changes)
        rest = f"\n  and {counted(more, 'earlier change')}; -v lists all" if more else ""
        parts.append("changes, the last commit first\n" + text_table(shown, align="lllrrl", indent=2) + rest)
    return "\n\n".join(filter(None, parts))


def fleet_markdown(fleet: Fleet) -> str:
    """Return the present figures as a table; names are in code spans."""
    header, align, listed = _table(fleet, verbose=False)
    cells = [
        [
            cell if side == "r" else markdown_code(cell)
            for cell, side in zip(row, align.ljust(len(row), "l"), strict=True)
        ]
        for row in listed
    ]
    return f"{summary(fleet)}\n\n{markdown_table(header, cells, align=align)}"


def change_cells(change: FigureChange) -> tuple[str, str, str, str]:
    """Return the image, the figure, the new value, and the difference of a change."""
    column = COLUMNS[INDEX[change.column]]
    return change.title, column.title, column.text(change.now), _signed(change.now - change.before)


def _signed(more: int) -> str:
    return f"{more:+,}" if more else "same"


def _table(fleet: Fleet, *, verbose: bool) -> tuple[list[str], str, list[list[str]]]:
    """Return the titles of the columns, the side that each is aligned to, and a row for each image.

    Flash and RAM have their growth over the range beside them, if something grew. The commit that recorded the figures
    comes last, and the path of the report if several have the same image.
    """
    columns = [column for column in known_columns(fleet) if verbose or column.name in _IN_TEXT]
    if not verbose and "cycles" in {column.name for column in columns}:
        columns = [column for column in columns if column.name != "instructions"]  # cycles say more
    grown = {name for name in GROWTH if any(image.growth(name) for image in fleet.present)}
    header, align = [], ""
    for column in columns:
        header += [column.title, *(["change"] if column.name in grown else [])]
        align += "r" if column.kind is int else "l"
        align += "r" if column.name in grown else ""
    header += [*(["commit"] if fleet.commits else []), *(["report"] if fleet.repeated else [])]
    listed = []
    for image in fleet.present:
        cells = []
        for column in columns:
            cells.append(f"{column.text(image.now.value(column.name)) or '-'} {beside(image, column)}".rstrip())
            cells += [_signed(image.growth(column.name) or 0)] if column.name in grown else []
        commit = image.now.commit
        cells += [f"{commit.id[:SHORT]} {image.now.date[:10]}"] if commit else []
        listed.append([*cells, *([image.report] if fleet.repeated else [])])
    return header, align, listed


def _html(fleet: Fleet) -> str:
    from mlfbuild.report.html import fleet_page  # loads templates

    return fleet_page(fleet)


_FORMS: Mapping[str, Callable[[Fleet], str | bytes]] = {
    ".html": _html,
    ".txt": lambda fleet: f"{fleet_text(fleet)}\n",
    ".md": lambda fleet: f"{fleet_markdown(fleet)}\n",
    ".csv": fleet_csv,
    ".json": fleet_json,
    ".parquet": fleet_parquet,
}
# What each form begins with: only such a file may be replaced, so that a mistyped -o does not destroy another one.
_MARKS = {
    ".html": re.compile(rb"<!DOCTYPE html>.*?mlfbuild fleet</title>", re.DOTALL),
    ".txt": re.compile(rb"[\d,]+ images? (for|in) [\d,]+ (target|file)"),
    ".md": re.compile(rb"[\d,]+ images? (for|in) [\d,]+ (target|file)"),
    ".csv": re.compile(",".join(NAMES).encode()),
    ".json": re.compile(rb'\{"mlfbuild_fleet"'),
    ".parquet": re.compile(rb"PAR1"),
}


def check_fleet_output(output: Path) -> None:
    """Raise ``ConflictError`` if ``output`` exists and is not an overview of its form.

    Raises ``UsageError`` for a folder and for a suffix that is none of a form, and ``ToolNotFoundError`` for Parquet
    without pyarrow.
    """
    if output.suffix not in _FORMS:
        raise UsageError(
            "unknown-fleet-form",
            place=output,
            reason="an overview is HTML, text, Markdown, CSV, JSON or Parquet",
            hint=f"name the file {', '.join([*_FORMS][:-1])} or {[*_FORMS][-1]}",
        )
    if output.suffix == ".parquet":
        require_extra("parquet", output, "writing Parquet")

    def is_ours(path: Path) -> bool:
        data = path.read_bytes()
        return not data or _MARKS[output.suffix].match(data) is not None

    check_replaced(output, (), "overview", f"fleet overview in this form ({output.suffix})", is_ours)


def write_fleet(path: Path, fleet: Fleet) -> None:
    """Write the overview to ``path`` in the form of its suffix; raises ``StorageError``."""
    made = _FORMS[path.suffix](fleet)
    write_atomic(path, made if isinstance(made, bytes) else made.encode())
