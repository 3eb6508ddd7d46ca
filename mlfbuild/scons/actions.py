"""From our errors to SCons's: one line, and no traceback for a user's mistake."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from SCons.Action import Action
from SCons.Errors import BuildError, UserError
from SCons.Util import display

from mlfbuild.errors import MlfError

T = TypeVar("T")

BuildFunction = Callable[[list[Any], list[Any], Any], None]


def action(function: BuildFunction, comstr: str) -> Any:
    """Return the SCons action that calls ``function(target, source, env)`` and prints ``comstr``."""

    @functools.wraps(function)
    def run(target: list[Any], source: list[Any], env: Any) -> None:
        try:
            function(target, source, env)
        except MlfError as error:
            raise BuildError(
                node=target[0], errstr=_words(error), status=error.exit_code, exitstatus=error.exit_code, action=None
            ) from None

    return Action(run, comstr)


def as_user_error(function: Callable[..., T]) -> Callable[..., T]:
    """Turn our errors in ``function``, which runs while SConscripts are read, into SCons's ``UserError``."""

    @functools.wraps(function)
    def run(*arguments: Any, **keywords: Any) -> T:
        try:
            return function(*arguments, **keywords)
        except MlfError as error:
            raise UserError(_words(error)) from None

    return run


def _words(error: MlfError) -> str:
    """Return the error's text with paths as the user wrote them: SCons hands out absolute ones."""
    return str(error).replace(f"{Path.cwd()}{os.sep}", "")


def show(text: str) -> None:
    """Print ``text`` as SCons prints its own lines (quiet under ``-s``)."""
    if text.strip():
        display(text.rstrip())
