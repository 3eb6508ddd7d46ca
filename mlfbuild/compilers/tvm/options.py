"""Check the options of ``compiler: tvm``, one by one; ``tvmc`` checks what a version or an executor does not have."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mlfbuild.core import Mistake, in_quotes, unknown
from mlfbuild.library import check_switch, invalid_option

if TYPE_CHECKING:
    from mlfbuild.library import OptionValue

_RESERVED = frozenset({
    "-f", "--output-format", "-o", "--output", "--module-name", "--target", "--executor", "--runtime",
    "--cross-compiler", "--pass-config", "--config", "-O", "--opt-level", "-h", "--help",
})  # fmt: skip
"""Arguments of tvmc that mlfbuild sets, some of them from other options."""

Check = Callable[["OptionValue"], Mistake | None]


def option_problems(options: Mapping[str, OptionValue]) -> list[tuple[str, Mistake]]:
    """Return (key, mistake) for each option that is unknown or has a value that is not accepted.

    Only the value itself is checked. Whether the executor and the release of TVM have the option is known when TVM has
    been found; ``tvmc_arguments`` checks that.
    """
    found = (
        (key, OPTIONS[key](value) if key in OPTIONS else unknown("option", key, OPTIONS))
        for key, value in options.items()
    )
    return [(key, mistake) for key, mistake in found if mistake]


def words(value: OptionValue) -> list[str]:
    """Split the value of an option that holds several words, as a shell does.

    Raises ``ValueError`` for a quote that is not closed; ``option_problems`` has refused such values before.
    """
    return shlex.split(str(value))


def _one_of(*known: str) -> Check:
    return lambda value: None if value in known else invalid_option(f"must be {' or '.join(known)}")


def _bytes(value: OptionValue) -> Mistake | None:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0 and value & (value - 1) == 0:
        return None
    return invalid_option("must be a power of two, in bytes")


def _level(value: OptionValue) -> Mistake | None:
    # True equals 1, so it is in the range.
    fine = value in range(4) and not isinstance(value, bool)
    return None if fine else invalid_option("must be 0, 1, 2 or 3")


def _target(value: OptionValue) -> Mistake | None:
    fine = isinstance(value, str) and value.strip()
    return None if fine else invalid_option('must be a target of TVM, such as c or "cmsis-nn,c"')


def _pass_config(value: OptionValue) -> Mistake | None:
    found = _several(value)
    if isinstance(found, Mistake):
        return found
    wrong = next((word for word in found if not word.partition("=")[0] or "=" not in word), None)
    return None if wrong is None else invalid_option(f"{in_quotes(wrong)} is not name=value, such as tir.usmp.enable=1")


def _arguments(value: OptionValue) -> Mistake | None:
    found = _several(value)
    if isinstance(found, Mistake):
        return found
    taken = next((name for word in found if (name := word.partition("=")[0]) in _RESERVED), None)
    if taken is None:
        return None
    return Mistake("reserved-tvmc-argument", reason=f"mlfbuild sets {in_quotes(taken)}", hint="remove it")


def _several(value: OptionValue) -> list[str] | Mistake:
    """Return the words of ``value``, or the mistake in it."""
    if not isinstance(value, str):
        return invalid_option("must be text: words with spaces between them")
    try:
        return words(value)
    except ValueError as error:
        return Mistake("unclosed-quote", reason=f"cannot be split into words: {str(error).lower()}")


OPTIONS: Mapping[str, Check] = {
    "target": _target,
    "runtime": _one_of("crt", "cpp"),
    "interface-api": _one_of("c", "packed"),
    "unpacked-api": check_switch,
    "link-params": check_switch,
    "system-lib": check_switch,
    "workspace-byte-alignment": _bytes,
    "constant-byte-alignment": _bytes,
    "opt-level": _level,
    "pass-config": _pass_config,
    "arguments": _arguments,
    "hook": check_switch,
}
"""The check of each option; the names are those of tvmc without the prefix of the executor or runtime.

``hook`` is an option of mlfbuild, which executes the graph and calls the hook before each operator.
"""
