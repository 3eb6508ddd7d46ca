"""Expected errors: their class, code and place, raised or printed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from mlfbuild.core import MlfError

WORDINGS = Path(__file__).parent.parent / "golden/core/test_errors/test_all_wordings/wordings.txt"


@contextmanager
def raises(
    kind: type[MlfError], code: str, place: str | None = None, *, at: str | None = None
) -> Iterator[pytest.ExceptionInfo[MlfError]]:
    """Check that the block raises an error of this class and code, whose place ends in ``place`` or equals ``at``.

    With ``at``, the message is also one line.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert (type(caught.value), caught.value.code) == (kind, code)
    if at is not None:
        assert caught.value.place == at and "\n" not in caught.value.message, caught.value
    if place is not None:
        assert caught.value.place.endswith(place) and bool(caught.value.place) == bool(place), caught.value.place


def assert_printed(text: str, code: str, place: str = "", *facts: str) -> None:
    """Check that ``text``, such as the output of SCons or CMake, contains the error ``code`` about ``place``.

    The words come from the golden file of wordings, so a test that calls this does not repeat them. ``facts`` are
    names or numbers that the text contains, too. White space may differ, because CMake wraps lines.
    """
    before = re.escape(f"{place}: ") if place else ""
    words = " ".join(text.split())
    reasons = [reason for pattern, reason in _wordings() if re.fullmatch(pattern, code)]
    assert any(re.search(before + reason, words) for reason in reasons), (code, text)
    assert [fact for fact in facts if fact not in words] == [], text


@cache
def _wordings() -> list[tuple[str, str]]:
    """Return patterns for code and reason of each error, in which ``{name}`` stands for any text.

    Errors whose code is known only at run time, such as ``{error.code}``, are left out.
    """
    entry = re.compile(r"^(\S.*) \(\w+\)\n(?:    place: .*\n)?    reason: (.*)$", re.MULTILINE)
    found = [(_pattern(code), _pattern(reason)) for code, reason in entry.findall(WORDINGS.read_text())]
    return [(code, reason) for code, reason in found if re.match("[a-z]", code)]


def _pattern(template: str) -> str:
    parts, depth = [""], 0
    for character in template:
        if character == "{" and depth == 0:
            parts.append("")
        depth += (character == "{") - (character == "}")
        if depth == 0 and character != "}":
            parts[-1] += character
    return ".*?".join(map(re.escape, parts))
