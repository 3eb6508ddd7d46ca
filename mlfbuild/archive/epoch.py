"""The one date that archives carry: a constant, unless ``SOURCE_DATE_EPOCH`` says otherwise."""

from __future__ import annotations

import datetime as dt
import os

from mlfbuild.core import UsageError

_DEFAULT = 315532800  # 1980-01-01 00:00:00 UTC: old enough to be no real date, new enough for every tool
UNDATED = "1980-01-01 00:00:00Z"
"""The same in metadata: it says that nobody recorded when."""
_LATEST = 0o77777777777  # what eleven octal digits of a tar header hold


def source_date() -> int:
    """Return seconds since 1970 for every time that is written; raises ``UsageError`` for a bad environment."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if not text:
        return _DEFAULT
    if not text.isdecimal() or int(text) > _LATEST:
        raise UsageError(f"SOURCE_DATE_EPOCH={text}: must be a number of seconds since 1970; unset or correct it")
    return int(text)


def source_datetime() -> str:
    """Return ``source_date()`` as metadata has it: ``YYYY-MM-DD HH:MM:SSZ``."""
    moment = dt.datetime.fromtimestamp(source_date(), tz=dt.timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")
