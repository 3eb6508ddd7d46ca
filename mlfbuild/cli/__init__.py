"""The command ``mlfbuild``: the only place that prints and exits.

``app`` lists the verbs, ``options`` has the options that they share, ``output`` prints, ``watch`` and ``live`` show
what is being done, ``events`` has the form of all this for programs, ``run`` turns every error into its message and
exit code. A verb imports the steps it needs when it is called, so that ``mlfbuild compile`` never pays for reading
project files.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from mlfbuild.core import INTERRUPTED_EXIT_CODE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` by default) as this process's last act and return its exit status."""
    try:
        from mlfbuild.cli.run import run

        status = run(sys.argv[1:] if arguments is None else arguments)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # from here on Ctrl-C could only tear Python's own clean-up
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Python ends itself by the signal where the interrupt struck inside an exec(), as dataclasses use at import,
        # and forgets that with the next exec().
        exec("")  # noqa: S102  # a constant, run for that effect alone
        _say_interrupted(sys.argv[1:] if arguments is None else arguments)
        return INTERRUPTED_EXIT_CODE
    return status


def _say_interrupted(arguments: Sequence[str]) -> None:
    from mlfbuild.cli.events import interrupted_event, line_of, wants_events

    message = "interrupted; nothing half-written is left: run the same command again to go on"
    text = line_of(interrupted_event(message)) if wants_events(arguments) else f"mlfbuild: {message}"
    sys.stderr.write(f"{text}\n")
