"""Turn errors into SCons' own: one line, and no traceback for a user's mistake."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from SCons.Action import Action
from SCons.Errors import BuildError, UserError
from SCons.Util import display

from mlfbuild.core import MlfError, terminal_text

T = TypeVar("T")

_OUR_FOLDER = Path(__file__).parent

BuildFunction = Callable[[list[Any], list[Any], Any], None]


def action(function: BuildFunction, comstr: str | None, varlist: Sequence[str] = ()) -> Any:
    """Return the SCons action that calls ``function(target, source, env)`` and prints ``comstr``, if there is one.

    If the value of a construction variable in ``varlist`` changes, SCons runs it again.
    """

    @functools.wraps(function)
    def run(target: list[Any], source: list[Any], env: Any) -> None:
        try:
            function(target, source, env)
        except MlfError as error:
            raise BuildError(
                node=target[0], errstr=_words(error), status=error.exit_code, exitstatus=error.exit_code, action=None
            ) from None

    return Action(run, comstr, varlist=list(varlist))


def as_user_error(function: Callable[..., T]) -> Callable[..., T]:
    """Turn errors of ``function``, which runs while SConscripts are read, into SCons' ``UserError``."""

    @functools.wraps(function)
    def run(*arguments: Any, **keywords: Any) -> T:
        try:
            return function(*arguments, **keywords)
        except MlfError as error:
            raise _at_the_users_line(UserError(_words(error))) from None

    return run


def _at_the_users_line(error: Exception) -> Exception:
    """Return ``error`` so that SCons prints the line of the SConscript: it uses the innermost frame of other files."""
    frame = inspect.currentframe()
    while frame is not None and _is_ours_or_of_scons(frame.f_code.co_filename):
        frame = frame.f_back
    return error if frame is None else error.with_traceback(TracebackType(None, frame, frame.f_lasti, frame.f_lineno))


def _is_ours_or_of_scons(filename: str) -> bool:
    return Path(filename).is_relative_to(_OUR_FOLDER) or f"{os.sep}SCons{os.sep}" in filename


def _words(error: MlfError) -> str:
    """Return the error's text with relative paths, as in the SConscript: SCons passes absolute ones."""
    return terminal_text(str(error).replace(f"{Path.cwd()}{os.sep}", ""))


def show(text: str) -> None:
    """Print ``text`` as SCons prints its own lines (quiet under ``-s``)."""
    if text.strip():
        display(terminal_text(text.rstrip()))
