"""Options of ``compiler: tvm`` in the project file, each checked alone; what a version lacks is ``tvmc``'s matter."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mlfbuild.project import quoted, suggestion

if TYPE_CHECKING:
    from mlfbuild.compilers.types import OptionValue

_RESERVED = frozenset({
    "-f", "--output-format", "-o", "--output", "--module-name", "--target", "--executor", "--runtime",
    "--cross-compiler", "--pass-config", "--config", "-O", "--opt-level", "-h", "--help",
})  # fmt: skip
"""Arguments of tvmc that have an option of their own here, or would undo what is asked of it."""

Check = Callable[["OptionValue"], str | None]


def option_problems(options: Mapping[str, OptionValue]) -> list[tuple[str, str]]:
    """Return (key, reason) for each option that is unknown or has a value that it cannot have."""
    reasons = ((key, OPTIONS[key](value) if key in OPTIONS else _unknown(key)) for key, value in options.items())
    return [(key, reason) for key, reason in reasons if reason]


def words(value: OptionValue) -> list[str]:
    """Return the words of an option that holds several, split as a shell does."""
    return shlex.split(str(value))


def _unknown(key: str) -> str:
    return f"unknown option{suggestion(key, OPTIONS) or '; compiler tvm has ' + ', '.join(OPTIONS)}"


def _one_of(*known: str) -> Check:
    return lambda value: None if value in known else f"must be {' or '.join(known)}"


def _truth(value: OptionValue) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _bytes(value: OptionValue) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return None if whole and value & (value - 1) == 0 else "must be a power of two, in bytes"  # type: ignore[operator]


def _level(value: OptionValue) -> str | None:
    return None if value in range(4) and not isinstance(value, bool) else "must be 0, 1, 2 or 3"


def _target(value: OptionValue) -> str | None:
    fine = isinstance(value, str) and value.strip()
    return None if fine else 'must be a target of TVM, as c or "cmsis-nn,c"'


def _pass_config(value: OptionValue) -> str | None:
    found = _several(value)
    if isinstance(found, str):
        return found
    wrong = next((word for word in found if not word.partition("=")[0] or "=" not in word), None)
    return None if wrong is None else f"{quoted(wrong)} is not name=value, as tir.usmp.enable=1"


def _arguments(value: OptionValue) -> str | None:
    found = _several(value)
    if isinstance(found, str):
        return found
    taken = next((word for word in found if word.partition("=")[0] in _RESERVED), None)
    return None if taken is None else f"{quoted(taken.partition('=')[0])} is set by mlfbuild; leave it out"


def _several(value: OptionValue) -> list[str] | str:
    """Return the words of ``value``, or what is wrong with it."""
    if not isinstance(value, str):
        return "must be text: words with spaces between them"
    try:
        return words(value)
    except ValueError as error:
        return f"cannot be split into words: {str(error).lower()}"


OPTIONS: Mapping[str, Check] = {
    "target": _target,
    "runtime": _one_of("crt", "cpp"),
    "interface-api": _one_of("c", "packed"),
    "unpacked-api": _truth,
    "link-params": _truth,
    "system-lib": _truth,
    "workspace-byte-alignment": _bytes,
    "constant-byte-alignment": _bytes,
    "opt-level": _level,
    "pass-config": _pass_config,
    "arguments": _arguments,
    "hook": _truth,
}
"""The check of each option, by its name; the names are tvmc's without the executor's or runtime's before them.

``hook`` is no option of TVM: mlfbuild executes the graph, and asks between its calls.
"""
