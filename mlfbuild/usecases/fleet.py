"""Collect the reports of many images and commits into one overview; nothing is built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlfbuild.core import InputFileError, counted, listed
from mlfbuild.report.fleet import Fleet, figure_table, fleet_of_commits, fleet_of_folders

_WRITE = "write one with `mlfbuild report -o FILE.json`"


def fleet_report(folders: Sequence[Path], revisions: str = "", pattern: str = "") -> tuple[Fleet, int]:
    """Return the overview of the reports in ``folders``, or of those committed in ``revisions``.

    ``revisions`` is ``OLD..NEW`` in the repository of the working folder, and ``pattern`` a glob of Git for the paths
    of reports, by default all JSON files below this folder. Also returns how many contents were parsed; the others were
    in the cache. Raises as ``fleet_of_folders`` and ``fleet_of_commits``, and ``InputFileError`` if there is no report.
    """
    with figure_table() as table:
        if revisions:
            found = fleet_of_commits(revisions, pattern or "**/*.json", table)
        else:
            found = fleet_of_folders(folders, table)
    if not found.images and not found.unreadable:
        raise InputFileError(
            "no-reports",
            place=f"--git {revisions}" if revisions else listed([str(folder) for folder in folders]),
            reason=f"no report or baseline of mlfbuild among {counted(found.files, 'file')}",
            hint=f"{_WRITE}{' and commit it' if revisions else ''}",
        )
    return found, table.parsed


def check_readable(fleet: Fleet) -> None:
    """Raise ``InputFileError`` if a file cannot be read that is there at the end; older ones are only listed."""
    current = [each for each in fleet.unreadable if each.current]
    if current:
        first = current[0].problem
        others = f" (and {counted(len(current) - 1, 'other file')})" if len(current) > 1 else ""
        raise InputFileError(
            "fleet-unreadable",
            place=first.place,
            reason=f"{first.reason}{others}",
            hint=first.hint or "write it again",
        )
