"""The only date in archives: a constant, or ``SOURCE_DATE_EPOCH`` if it is set."""

from __future__ import annotations

import datetime as dt
import os

from mlfbuild.core import UsageError, quoted

_DEFAULT = 315532800  # 1980-01-01 00:00:00 UTC: too old for a real date, and valid for all tools
EPOCH = "SOURCE_DATE_EPOCH"
"""Environment variable with the date (https://reproducible-builds.org/specs/source-date-epoch)."""
UNDATED = "1980-01-01 00:00:00Z"
"""The constant in metadata; it means that the date was not recorded."""
_LATEST = 0o77777777777  # the largest number of eleven octal digits in a tar header


def source_date() -> int:
    """Return the time for all dates in archives, in seconds since 1970.

    Raises ``UsageError`` if ``SOURCE_DATE_EPOCH`` is not a valid number.
    """
    text = os.environ.get(EPOCH)
    if not text:
        return _DEFAULT
    # The specification of SOURCE_DATE_EPOCH asks for an error if the value is malformed: a default would hide the
    # mistake.
    if not text.isdecimal() or int(text) > _LATEST:
        raise UsageError(
            "source-date-invalid",
            place=EPOCH,
            reason=f"{quoted(text)} is not a number of seconds since 1970",
            hint="unset or correct it",
        )
    return int(text)


def source_datetime() -> str:
    """Return ``source_date()`` in the form of the metadata: ``YYYY-MM-DD HH:MM:SSZ``.

    Without ``SOURCE_DATE_EPOCH`` it is ``UNDATED``, which ``mlfbuild inspect`` does not show.
    """
    return dt.datetime.fromtimestamp(source_date(), tz=dt.timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
