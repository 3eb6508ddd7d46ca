"""Render the files of a user's template with jinja, in a sandbox: no attribute or call of Python's own, no files.

A template comes from a stranger, but so does the project that it makes: building that runs its commands. The sandbox
therefore only ensures that ``init`` itself runs none, and writes no more than a limit.

``within_limits`` runs work on a stranger's text in a process of its own, with limits of time and memory. A regular
expression such as ``(a|aa)+$``, nested loops of a template, and ``'x'|center(2000000000)`` are small texts that take
hours or all memory. Python cannot stop them inside a process: the C code of ``re`` holds the interpreter.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError, meta, nodes
from jinja2.sandbox import SandboxedEnvironment

from mlfbuild.core import Diagnostic, ProjectFileError, suggestion

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


LARGEST_FILE = 4 << 20
"""Bytes of a rendered file."""


class _Sandbox(SandboxedEnvironment):
    """Also refuses to repeat a text more often than a file is large."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiply numbers only, and raise small powers only."""
        # ``'x' * 2000000000`` and ``9 ** 9 ** 9`` are a few characters that take gigabytes or minutes.
        if not all(isinstance(each, int | float) for each in (left, right)) or (operator == "**" and abs(right) > 64):
            raise UndefinedError(f"{operator} is only for numbers")
        return super().call_binop(context, operator, left, right)


def _environment() -> _Sandbox:
    return _Sandbox(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)


def unsound(text: str, place: str, known: Collection[str]) -> list[Diagnostic]:
    """Return the mistakes in the template ``text``: of its syntax, and names that are not ``known``.

    Nothing is rendered. ``place`` is the template's file, to which the line of each mistake is added; ``known`` has
    the names that values will be given for.
    """
    environment = _environment()
    # jinja's own functions, such as `range`, are globals of its environment and need no declaration.
    try:
        tree = environment.parse(text)
        names = meta.find_undeclared_variables(tree) - set(known) - environment.globals.keys()
    except TemplateSyntaxError as error:  # also for unknown filters and tests
        return [_finding("template-syntax", f"{place}:{error.lineno}", error.message or "invalid syntax")]
    except RecursionError:
        return [_finding("template-syntax", place, "the expressions are nested too deeply")]
    except ValueError as error:  # Python limits the digits of numbers
        return [_finding("template-syntax", place, str(error))]
    return [*_unknown(tree, names, place, known), *_imports(tree, place)]


def _unknown(tree: nodes.Template, names: Collection[str], place: str, known: Collection[str]) -> Iterator[Diagnostic]:
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        lines.setdefault(node.name, node.lineno)
    for name in sorted(names, key=lambda name: lines.get(name, 0)):
        hint = "declare it under variables, or correct the name"
        reason = f'unknown name "{name}"{suggestion(name, known)}'
        yield _finding("template-unknown-name", f"{place}:{lines.get(name, 1)}", reason, hint)


def _imports(tree: nodes.Template, place: str) -> Iterator[Diagnostic]:
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        hint = "write its content here"
        yield _finding("template-includes", f"{place}:{node.lineno}", "a template cannot include other files", hint)


def _finding(code: str, place: str, reason: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code, place, reason=reason, hint=hint)


def rendered(text: str, place: str, values: Mapping[str, Any]) -> bytes:
    """Return the template ``text`` filled in with ``values``; raises ``ProjectFileError`` with the reason."""
    parts: list[str] = []
    size = 0
    try:
        # In parts, so that a loop without an end is stopped at the limit instead of filling the memory.
        for part in _environment().from_string(text).generate(**values):
            parts.append(part)
            size += len(part)
            if size > LARGEST_FILE:
                raise UndefinedError(f"it is larger than {LARGEST_FILE >> 20} MiB")
        return "".join(parts).encode()
    # For ``within_limits``, which reports it as a limit of the work and not as a mistake in the text.
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a stranger's template; Python also limits nested loops and surrogates
        reason = f"cannot be rendered: {str(error) or type(error).__name__}"
        raise ProjectFileError([_finding("template-not-rendered", place, reason, "correct the template")]) from None
