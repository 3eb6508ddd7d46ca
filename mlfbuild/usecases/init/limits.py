"""Run work on a stranger's text in a process of its own, with limits of time and memory.

A regular expression such as ``(a|aa)+$``, nested loops of a template, and ``'x'|center(2000000000)`` are small texts
that take hours or all memory. Python cannot stop them inside a process: the C code of ``re`` holds the interpreter.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from mlfbuild.core import ProjectFileError

_T = TypeVar("_T")

SECONDS = 10
"""Of CPU, and of time where a system does not limit CPU; files of templates are rendered in milliseconds."""
BYTES = 1 << 30
"""More than the process has when it starts; where a system does not tell that, memory is not limited."""
_FORK = "fork" if sys.platform == "linux" else "spawn"
"""A fork takes milliseconds, and commands that read templates have no threads; elsewhere, it is not safe."""


def within_limits(place: str, function: Callable[..., _T], *arguments: Any) -> _T:
    """Return ``function(*arguments)``, computed in another process; raises its ``MlfError``.

    Raises ``ProjectFileError`` for ``place`` if it takes more than ``SECONDS`` or ``BYTES``.
    """
    context: Any = multiprocessing.get_context(_FORK)  # typeshed gives its base class no Process
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, SECONDS, function, arguments), daemon=True)
    process.start()
    # This process's copy of the end for writing: while one is open, ``recv`` would wait instead of raising ``EOFError``
    # when the other process dies.
    sender.close()
    with receiver, contextlib.ExitStack() as stack:
        # Called in reverse: the process is killed, then joined, even if it is still computing or Ctrl-C ends the wait.
        stack.callback(process.join)
        stack.callback(process.kill)
        try:
            # twice, because a busy machine may let it wait for the CPU
            answer = receiver.recv() if receiver.poll(2 * SECONDS) else MemoryError()
        except EOFError:
            answer = MemoryError()
    if isinstance(answer, MemoryError):
        reason = f"it takes more than {SECONDS} s or {BYTES >> 30} GiB of memory"
        hint = "simplify its loops, numbers and patterns"
        raise ProjectFileError.of("template-too-expensive", place, reason=reason, hint=hint)
    if isinstance(answer, Exception):
        raise answer
    (result,) = answer
    return result  # type: ignore[no-any-return]  # what the function returned


def _answer(sender: Connection, seconds: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    _limit(seconds)
    try:
        # In a tuple, so that a result which is an exception is told from an exception that was raised.
        answer: Any = (function(*arguments),)
    except Exception as error:  # noqa: BLE001 - raised again by the other process
        answer = error
    sender.send(answer)


def _limit(seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    # The soft and the hard limit, so that the work cannot raise it again. At the limit the system ends the process, and
    # the other side reads the end of the pipe.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    # A process that the limit ends would otherwise leave a large core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
