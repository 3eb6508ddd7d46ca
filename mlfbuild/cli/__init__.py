"""The command ``mlfbuild``: the only room that prints and exits.

Verb ``x`` is in ``x.py`` and its work in ``mlfbuild.usecases.x``; verbs that are read together share a module, such as
``archives``. ``app`` lists the verbs, ``options`` has the options that they share, and ``output`` prints results and
progress, and turns every error into its message and exit code.

A verb's module is imported when that verb is called, and imports the rooms that it needs when it runs.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from mlfbuild.core import INTERRUPTED_EXIT_CODE, STOP_SIGNALS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` by default) as this process's last act and return its exit status."""
    try:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP, and it stays ignored
                signal.signal(number, signal.default_int_handler)
        # After the handlers are set: imports take a good part of a short run, and Ctrl-C during them must end it in the
        # same way.
        from mlfbuild.cli.output.invocation import run

        status = run(sys.argv[1:] if arguments is None else arguments)
        _ignore_stops()  # they could now only interrupt Python's clean-up
    except KeyboardInterrupt:
        _ignore_stops()
        # If the interrupt came during an exec(), which dataclasses use at import, Python ends itself by the signal. It
        # forgets that with the next exec().
        exec("")  # noqa: S102  # a constant, for that effect
        _print_interrupted(sys.argv[1:] if arguments is None else arguments)
        return INTERRUPTED_EXIT_CODE
    return status


def _ignore_stops() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _print_interrupted(arguments: Sequence[str]) -> None:
    from mlfbuild.cli.output.events import interrupted_event, line_of, requested_format

    message = "interrupted; run the command again to continue"
    text = line_of(interrupted_event(message)) if requested_format(arguments) == "json" else f"mlfbuild: {message}"
    sys.stderr.write(f"{text}\n")
