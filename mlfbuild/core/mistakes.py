"""Why a value is refused, before anything knows where the value stands, and the nearest known word.

Checks of single values return or raise a ``Mistake``: a code, a reason and a hint. The reader of a project file, or a
command, knows the place and adds it::

    >>> unknown("cpu", "cortex-m44", ["cortex-m4", "cortex-m7"]).reason
    'unknown cpu "cortex-m44" (did you mean "cortex-m4"?)'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import partial
from typing import Any

from mlfbuild.core.errors import Diagnostic, UsageError
from mlfbuild.core.text import in_quotes

_FEW = 5
"""Known words that a message lists if none is near."""


class Mistake(ValueError):  # noqa: N818 - usually returned as a value, not raised
    """A reason to refuse a value: the fields of an error without its place, which the reader of the file adds.

    A ``ValueError``, because pydantic collects those that checks of single values raise.
    """

    def __init__(self, code: str, *, reason: str, hint: str = "") -> None:
        super().__init__(f"{reason}; {hint}" if hint else reason)
        self.code = code
        self.reason = reason
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by their arguments, and these are keywords.
        return partial(Mistake, self.code, reason=self.reason, hint=self.hint), ()

    def at(self, place: object) -> Diagnostic:
        """Return this mistake as a finding at ``place``.

        ``place`` is turned into text: a path, a key such as ``models.kws.cpu``, or an option of the command line.
        """
        return Diagnostic(self.code, str(place), reason=self.reason, hint=self.hint)

    def error(self, place: object) -> UsageError:
        """Return this mistake as an error at ``place``, for callers that stop at the first one."""
        return UsageError(self.code, place=place, reason=self.reason, hint=self.hint)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean "kws"?)`` for the word of ``known`` nearest to ``word``, or ``""`` if none is near.

    Case is ignored, and ``m4`` is near to ``cortex-m4``, which ends with it. The text begins with a blank, so that it
    can follow a reason as it is.
    """
    # difflib counts a letter in another case as a difference, which is the most common mistake in names.
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    ends = [candidate for candidate in by_lower_case if candidate.endswith(f"-{word.lower()}")]
    near = ends or difflib.get_close_matches(word.lower(), by_lower_case, n=1)
    return f" (did you mean {in_quotes(by_lower_case[near[0]])}?)" if near else ""


def unknown(what: str, word: str, known: Iterable[str], code: str = "") -> Mistake:
    """Return the mistake ``unknown cpu "cortex-m44" (did you mean "cortex-m4"?)``; with known words if none is near.

    Its code is ``code``, or ``unknown-`` and ``what``.
    """
    words = list(known)
    few = ", ".join(words[:_FEW]) + (", ..." if len(words) > _FEW else "")
    near = suggestion(word, words) or (f" (known: {few})" if words else "")
    return Mistake(
        code or f"unknown-{what.lower().replace(' ', '-')}", reason=f"unknown {what} {in_quotes(word)}{near}"
    )
