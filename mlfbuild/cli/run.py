"""Runs the command line; each error becomes its message on stderr and its exit code, here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mlfbuild.cli.app import app
from mlfbuild.cli.events import line_of, storage_event, usage_event, wants_events
from mlfbuild.cli.options import Settings
from mlfbuild.cli.output import emit, prepare, silence, tell, write
from mlfbuild.core import MlfError, StorageError


def run(arguments: Sequence[str]) -> int:
    """Run the verb that ``arguments`` name and return the exit status.

    Only Ctrl-C and a defect of mlfbuild itself leave this function as exceptions.
    """
    prepare()
    try:
        return _invoke(arguments)
    except click.ClickException as error:
        if wants_events(arguments):
            emit(usage_event(_usage(error)))
        else:
            error.show()
        return error.exit_code
    except MlfError as error:
        tell(error, events=wants_events(arguments))
        return error.exit_code
    except BrokenPipeError:  # the reader of our output has seen enough: `mlfbuild plan | head -1`
        silence()
        return 0
    except OSError as error:
        silence()
        place = f"{error.filename}: " if error.filename else ""
        message = f"{place}{error.strerror or error}; check free space and permissions"
        write(line_of(storage_event(message)) if wants_events(arguments) else f"mlfbuild: {message}")
        return StorageError.exit_code


def _usage(error: click.ClickException) -> str:
    """Return what is wrong with a command line, and where to look."""
    context = getattr(error, "ctx", None)
    verb = context.command_path if context else "mlfbuild"
    return f"{error.format_message().rstrip('.')}; see `{verb} --help`"


def _invoke(arguments: Sequence[str]) -> int:
    # Not app.main(): that would answer Ctrl-C and a closed pipe itself, with other exit codes.
    try:
        with app.make_context("mlfbuild", list(arguments), obj=Settings()) as context:
            app.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0
