"""The command ``mlfbuild``: the only room that prints and exits.

Verb ``x`` is in ``x.py``, and its work in ``mlfbuild.usecases.x``. ``app`` lists the verbs, ``options`` has the options
that they share, ``output`` prints, ``progress`` shows what long work is doing (``live`` on terminals), ``events`` has
the form of all this for programs, and ``invocation`` turns every error into its message and exit code.

A verb's module is imported when that verb is called, and imports the rooms that it needs when it runs.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from mlfbuild.core import INTERRUPTED_EXIT_CODE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` by default) as this process's last act and return its exit status."""
    try:
        from mlfbuild.cli.invocation import run

        status = run(sys.argv[1:] if arguments is None else arguments)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C could now only interrupt Python's clean-up
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # If the interrupt came during an exec(), which dataclasses use at import, Python ends itself by the signal. It
        # forgets that with the next exec().
        exec("")  # noqa: S102  # a constant, for that effect
        _print_interrupted(sys.argv[1:] if arguments is None else arguments)
        return INTERRUPTED_EXIT_CODE
    return status


def _print_interrupted(arguments: Sequence[str]) -> None:
    from mlfbuild.cli.events import interrupted_event, line_of, wants_events

    message = "interrupted; no partial output was left: run the command again to continue"
    text = line_of(interrupted_event(message)) if wants_events(arguments) else f"mlfbuild: {message}"
    sys.stderr.write(f"{text}\n")
