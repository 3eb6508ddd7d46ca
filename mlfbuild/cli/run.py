"""Runs the command line; each error becomes its message on stderr and its exit code, here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mlfbuild.cli.app import app
from mlfbuild.cli.options import Settings
from mlfbuild.cli.output import note, prepare, silence
from mlfbuild.errors import MlfError, ProjectFileError, StorageError


def run(arguments: Sequence[str]) -> int:
    """Run the verb that ``arguments`` name and return the exit status.

    Only Ctrl-C and a defect of mlfbuild itself leave this function as exceptions.
    """
    prepare()
    try:
        return _invoke(arguments)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except MlfError as error:
        # Project file problems start with file:line:column, which editors jump to.
        note(str(error) if isinstance(error, ProjectFileError) else f"mlfbuild: {error}")
        return error.exit_code
    except BrokenPipeError:  # the reader of our output has seen enough: `mlfbuild plan | head -1`
        silence()
        return 0
    except OSError as error:
        silence()
        place = f"{error.filename}: " if error.filename else ""
        note(f"mlfbuild: {place}{error.strerror or error}; check free space and permissions")
        return StorageError.exit_code


def _invoke(arguments: Sequence[str]) -> int:
    # Not app.main(): that would answer Ctrl-C and a closed pipe itself, with other exit codes.
    try:
        with app.make_context("mlfbuild", list(arguments), obj=Settings()) as context:
            app.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0
