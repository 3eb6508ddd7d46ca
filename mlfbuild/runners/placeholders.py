"""Placeholders of the user's commands: ``{probe}`` and ``{elf}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mlfbuild.core import UsageError

PROBE = "{probe}"


def filled(words: Sequence[str], probe: str | None, place: str, image: Path | None = None) -> tuple[str, ...]:
    """Return ``words`` with the serial number of the probe for {probe}, and the path of ``image`` for {elf}.

    Raises ``UsageError`` if {probe} is used and ``probe`` is ``None``.
    """
    if probe is None and any(PROBE in word for word in words):
        reason = f"the command contains {PROBE}, but the runner has no probe"
        raise UsageError("probe-not-chosen", place=place, reason=reason, hint="add probe: with its serial number")
    values = {PROBE: probe or "", **({} if image is None else {"{elf}": str(image.resolve())})}
    return tuple(_replaced(word, values) for word in words)


def _replaced(word: str, values: Mapping[str, str]) -> str:
    """Return ``word`` with the values in place of their names, which may occur in a value again."""
    name = min((name for name in values if name in word), key=word.index, default=None)
    if name is None:
        return word
    # One pass from the left, instead of a replace() for each name: a path that contains "{probe}" must stay as it is.
    before, _, after = word.partition(name)
    return before + values[name] + _replaced(after, values)
