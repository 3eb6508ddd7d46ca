"""Turn errors into SCons' own: one line, and no traceback for a user's mistake."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from SCons.Action import Action
from SCons.Errors import BuildError, UserError
from SCons.Node import no_state, up_to_date
from SCons.Script import BUILD_TARGETS, GetOption
from SCons.Subst import SUBST_RAW
from SCons.Util import display

from mlfbuild.core import MlfError, terminal_text

T = TypeVar("T")

_OUR_FOLDER = Path(__file__).parent

BuildFunction = Callable[[list[Any], list[Any], Any], None]
Begin = Callable[..., None]
"""Prints the line of a step that has something to do, or another one, its only argument."""
CheckedFunction = Callable[[list[Any], list[Any], Any, Begin], None]


def action(function: BuildFunction, comstr: str | None, varlist: Sequence[str] = ()) -> Any:
    """Return the SCons action that calls ``function(target, source, env)`` and prints ``comstr``, if there is one.

    If the value of a construction variable in ``varlist`` changes, SCons runs it again.
    """

    @functools.wraps(function)
    def run(target: list[Any], source: list[Any], env: Any) -> None:
        try:
            function(target, source, env)
        except MlfError as error:
            # SCons prints a traceback for any other exception.
            raise _build_error(target[0], error) from None

    return Action(run, comstr, varlist=list(varlist))


def checked_action(function: CheckedFunction, comstr: str) -> Any:
    """Return the SCons action of a step that finds out by itself if there is something to do.

    The step may be up to date although SCons cannot know that: only Ninja knows the headers of firmware, and
    ``mlfbuild build`` may have made the files. ``function(target, source, env, begin)`` calls ``begin``, which prints
    ``comstr``, before it changes something. If it never does, SCons regards the targets as up to date and prints so.
    """

    @functools.wraps(function)
    def run(target: list[Any], source: list[Any], env: Any) -> None:
        begun: list[bool] = []

        def begin(line: str = "") -> None:
            # Once, although a step may call it for each part of its work.
            if not begun:
                begun.append(True)
                if not _announced():
                    _print(line or env.subst(comstr, SUBST_RAW, target, source), target, source, env)

        try:
            function(target, source, env, begin)
        except MlfError as error:
            raise _build_error(target[0], error) from None
        if not begun:
            _leave_up_to_date(target)

    def planned(target: list[Any], source: list[Any], env: Any) -> str | None:
        """Return the line that SCons prints; otherwise ``begin`` prints it."""
        return env.subst(comstr, SUBST_RAW, target, source) if _announced() else None

    return Action(run, planned)


def _announced() -> bool:
    """Return whether SCons prints lines of actions that do not run: planned ones, and those with a cached result."""
    return bool(GetOption("no_exec") or GetOption("cache_show"))


def _build_error(node: Any, error: MlfError) -> BuildError:
    return BuildError(node=node, errstr=_words(error), status=error.exit_code, exitstatus=error.exit_code, action=None)


def _print(line: str, target: list[Any], source: list[Any], env: Any) -> None:
    """Print the line of an action as SCons does, with the function that replaces its own if the user has set one."""
    # Users replace this function to shorten or colour lines; ours should look like all others.
    printer = env.get("PRINT_CMD_LINE_FUNC")
    if printer is None:
        display(line)
    elif not GetOption("silent"):
        printer(line, target, source, env)


def _leave_up_to_date(nodes: list[Any]) -> None:
    """Have SCons record ``nodes`` as if it had not built them, and print what it prints for those on its command line.

    SCons decides before it runs an action whether to print that a target is up to date.
    """
    wanted = {os.path.abspath(str(name).removeprefix("#")) for name in BUILD_TARGETS}  # noqa: PTH100 - names of SCons
    for node in nodes:
        node.set_state(up_to_date)
        for other in node.side_effects:
            other.set_state(no_state)
        if node.get_abspath() in wanted:
            display(f"scons: `{node}' is up to date.")


def as_user_error(function: Callable[..., T]) -> Callable[..., T]:
    """Turn errors of ``function``, which runs while SConscripts are read, into SCons' ``UserError``.

    SCons then prints one line with the place in the SConscript that called it, and exits with status 2. Other
    exceptions pass: they are defects.
    """

    @functools.wraps(function)
    def run(*arguments: Any, **keywords: Any) -> T:
        try:
            return function(*arguments, **keywords)
        except MlfError as error:
            raise _at_the_users_line(UserError(_words(error))) from None

    return run


def _at_the_users_line(error: Exception) -> Exception:
    """Return ``error`` so that SCons prints the line of the SConscript: it uses the innermost frame of other files."""
    # A traceback with this one frame makes SCons print `File "SConstruct", line 12`, the line that the user can
    # correct.
    frame = inspect.currentframe()
    while frame is not None and _is_ours_or_of_scons(frame.f_code.co_filename):
        frame = frame.f_back
    return error if frame is None else error.with_traceback(TracebackType(None, frame, frame.f_lasti, frame.f_lineno))


def _is_ours_or_of_scons(filename: str) -> bool:
    return Path(filename).is_relative_to(_OUR_FOLDER) or f"{os.sep}SCons{os.sep}" in filename


def _words(error: MlfError) -> str:
    """Return the error's text with relative paths, as in the SConscript: SCons passes absolute ones.

    Only paths that begin with the working folder become relative, so that each stays one that a shell finds.
    """
    # Only at the begin of a word: the folder may occur in the middle of another path.
    here = re.escape(f"{Path.cwd()}{os.sep}")
    return terminal_text(re.sub(rf"""(?<![^\s"'`(\[<=,:]){here}""", "", str(error)))


def show(text: str) -> None:
    """Print ``text`` as SCons prints its own lines (quiet under ``-s``)."""
    if text.strip():
        display(terminal_text(text.rstrip()))
