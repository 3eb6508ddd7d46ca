"""Run the command line; the only place that turns errors into messages on stderr and exit codes."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence

import click

from mlfbuild.cli.app import app
from mlfbuild.cli.options import COMPLETION_VARIABLE, SharedOptions
from mlfbuild.cli.output.events import requested_format
from mlfbuild.cli.output.printing import prepare, report_error, silence, write
from mlfbuild.core import MlfError, StorageError, UsageError


def run(arguments: Sequence[str]) -> int:
    """Run the verb that ``arguments`` name and return the exit status.

    Only Ctrl-C and defects of mlfbuild leave this function as exceptions.
    """
    prepare()
    # Before anything is parsed: the shell passes an unfinished command line in variables, and no arguments.
    if COMPLETION_VARIABLE in os.environ:
        return _complete(os.environ[COMPLETION_VARIABLE])
    # From the words, because an error of parsing comes before click has read ``--format``.
    form = requested_format(arguments)
    try:
        return _invoke(arguments)
    except click.ClickException as error:
        if form in {"json", "github"}:
            report_error(_usage_error(error), form)
        else:
            # Through ``write``, so that names with control characters are printed as text, and a closed stderr does no
            # harm.
            usage = io.StringIO()
            error.show(usage)
            write(usage.getvalue().rstrip("\n"))
        return error.exit_code
    except MlfError as error:
        report_error(error, form)
        return error.exit_code
    except BrokenPipeError:  # the reader of our output needs no more of it: `mlfbuild plan | head -1`
        silence()
        return 0
    # A full disk, or a file without permission, in code that does not expect it: the user can correct both, so it is no
    # defect of mlfbuild and needs no traceback.
    except OSError as error:
        silence()
        problem = StorageError(
            "system-error",
            place=error.filename or "",
            reason=error.strerror or str(error),
            hint="check free space and permissions",
        )
        report_error(problem, form)
        return problem.exit_code


def _complete(instruction: str) -> int:
    """Answer a shell that runs the script of `mlfbuild completion`; click does that only in its own ``main``."""
    from click.shell_completion import shell_complete

    return shell_complete(app, {"obj": SharedOptions()}, "mlfbuild", COMPLETION_VARIABLE, instruction)


def _usage_error(error: click.ClickException) -> UsageError:
    """Return click's error with our fields."""
    context = getattr(error, "ctx", None)
    verb = context.command_path if context else "mlfbuild"
    reason = error.format_message().rstrip(".")
    return UsageError("command-line-invalid", reason=reason, hint=f"see `{verb} --help`")


def _invoke(arguments: Sequence[str]) -> int:
    # app.main() would handle Ctrl-C and a closed pipe itself, with other exit codes.
    try:
        with app.make_context("mlfbuild", list(arguments), obj=SharedOptions()) as context:
            app.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0
