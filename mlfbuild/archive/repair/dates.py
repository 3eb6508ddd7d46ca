"""Dates of exports: TVM writes local time and marks it as UTC.

The time zone is not in the metadata, but the members of a tar file have their times in UTC. The exporter writes
``metadata.json`` right after it has taken the date, and the other files after it. If the times show this order, the
difference of date and time is the time zone. An archive that was packed again does not, with few exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from mlfbuild.archive.paths import METADATA
from mlfbuild.archive.repair.repairs import Repair, key_place, repair, with_each_module
from mlfbuild.archive.validate.metadata import DATE_FORMAT, is_local_time, parsed_date
from mlfbuild.library import Library, Module

_QUARTER = 15 * 60  # seconds; all time zones are multiples
_WEST, _EAST = -12 * 3600, 14 * 3600
_EARLY, _LATE = 2, 60  # seconds from the date to the time of metadata.json; measured: 0 to 1
_OTHERS_EARLY = 60  # seconds that another file of the exporter may be older than metadata.json
_OLDER_FOLDERS = ("runtime/", "templates/", "dependencies/")  # copied, with times of their own


@dataclass(frozen=True)
class DateInDoubt:
    """A date that stays as it is."""

    place: str
    reason: str


def with_dates_in_utc(library: Library, times: Mapping[str, int]) -> tuple[Library, tuple[Repair, ...]]:
    """Return ``library`` with dates in UTC where ``times``, of the members by path, prove their time zone (MLF206)."""

    def correct(module: Module) -> tuple[Module, list[Repair]]:
        offset = _offset(module, times) if is_local_time(module) else None
        date = parsed_date(module.export_datetime)
        if offset is None or date is None:
            return module, []
        new = (date - timedelta(seconds=offset)).strftime(DATE_FORMAT)
        found = repair(
            "MLF206",
            key_place(library, module, "export_datetime"),
            f"{module.export_datetime}, local time",
            f"{new}, UTC (the times of the members prove the zone UTC{_shown_offset(offset)})",
        )
        return replace(module, export_datetime=new, export_utc=True), [found]

    return with_each_module(library, correct)


def dates_in_doubt(library: Library, times: Mapping[str, int]) -> tuple[DateInDoubt, ...]:
    """Return the dates in local time that ``times`` do not prove."""
    unproved = (module for module in library.modules if is_local_time(module) and _offset(module, times) is None)
    return tuple(
        DateInDoubt(key_place(library, module, "export_datetime"), _reason(module, times)) for module in unproved
    )


def _offset(module: Module, times: Mapping[str, int]) -> int | None:
    """Return the offset of the exporter's time zone in seconds, or ``None`` if it is not proved."""
    date, written = parsed_date(module.export_datetime), times.get(METADATA)
    if date is None or written is None or date.year == datetime.max.year:
        return None
    difference = int(date.timestamp()) - written
    offset = round(difference / _QUARTER) * _QUARTER
    if not _WEST <= offset <= _EAST or not -_EARLY <= offset - difference <= _LATE:
        return None
    others = (time for path, time in times.items() if not path.startswith(_OLDER_FOLDERS))
    return offset if min(others) >= written - _OTHERS_EARLY else None


def _reason(module: Module, times: Mapping[str, int]) -> str:
    written = times.get(METADATA)
    packed = f", of {_shown_time(written)}," if written is not None else ""
    return (
        f"{module.export_datetime} is local time of an unknown time zone: the times of the members{packed} "
        "are not those of the export"
    )


def _shown_time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime(DATE_FORMAT)
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"


def _shown_offset(seconds: int) -> str:
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}"
