"""Results go to stdout, diagnostics to stderr: as text, or with ``--format json`` as JSON and events.

On a terminal, text is wrapped at words, and what passed is green and what failed red. Output of programs and results
for programs are never wrapped, so that they can be copied.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from mlfbuild.cli.options import SharedOptions
from mlfbuild.cli.output.events import error_event, line_of
from mlfbuild.core import MlfError, ProcessFailedError, ProjectFileError, StorageError, printable, terminal_text

PASSED = "green"
FAILED = "red"
_NAME = "mlfbuild:"
_COMMAND = re.compile(r"`[^`]+`|\b(?:pip|apt-get) install .*")
"""A command in a message: the terminal breaks it if it is too long, so that it is copied as one line."""
# Stands for a space inside a command while the text is wrapped: ``textwrap`` breaks lines at white space only.
_KEPT_SPACE = "\x1f"
_NO_COLOURS: Mapping[str, str] = {}


def prepare() -> None:
    """Make stdout accept every text: characters that the terminal's encoding lacks are printed as escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Without it, a name in another script could end the command with ``UnicodeEncodeError``. Stderr has this error
        # handler by default.
        sys.stdout.reconfigure(errors="backslashreplace")


def on_terminal(stream: IO[str]) -> bool:
    """Return whether ``stream`` is a terminal with more abilities than a printer, and not one of a CI system."""
    ci = os.environ.get("CI", "false").lower() not in {"", "0", "false"}
    return stream.isatty() and os.environ.get("TERM", "") not in {"", "dumb"} and not ci


def has_colour(stream: IO[str]) -> bool:
    """Return whether to print colours to ``stream``; see https://no-color.org."""
    return on_terminal(stream) and not os.environ.get("NO_COLOR")


def _coloured(text: str, colours: Mapping[str, str], stream: IO[str]) -> str:
    """Return ``text`` without control characters, with the words in ``colours`` in theirs if the stream has colours."""
    clean = terminal_text(text)
    for words, colour in colours.items() if has_colour(stream) else ():
        # The same change as that of the text, so that the words are found in it.
        part = terminal_text(words)
        clean = clean.replace(part, click.style(part, fg=colour))
    return clean


def wrapped(text: str, stream: IO[str] | None = None) -> str:
    """Return ``text`` wrapped at words if ``stream`` (default stderr) is a terminal, so that its edge cuts no word."""
    if not on_terminal(stream or sys.stderr):
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(line if len(line) <= width else _wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _KEPT_SPACE), line)
    text = textwrap.fill(whole, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return text.replace(_KEPT_SPACE, " ")


def show(text: str, colours: Mapping[str, str] = _NO_COLOURS) -> None:
    """Print a result, some words of it in colours; raises ``StorageError`` if stdout is a file on a full disk."""
    inside = {wrapped(words, sys.stdout): colour for words, colour in colours.items()}
    _print(_coloured(wrapped(terminal_text(text), sys.stdout), inside, sys.stdout))


def show_as_it_is(text: str) -> None:
    """Print a result for a program, or a document; raises as ``show``."""
    _print(terminal_text(text))


def stream(text: str) -> None:
    """Print a part of the output of firmware, without a line end; raises as ``show``."""
    _print(terminal_text(text), newline=False)


def copy(parts: Iterable[bytes]) -> None:
    """Write bytes to stdout, which is not a terminal, unchanged; raises as ``show``."""
    for part in parts:
        _print(part, newline=False)


def _print(text: str | bytes, *, newline: bool = True) -> None:
    try:
        click.echo(text, nl=newline)
    except BrokenPipeError:
        silence()
    except OSError as error:
        silence()
        raise StorageError(
            "output-not-writable", place="standard output", reason=str(error.strerror), hint="check free space"
        ) from None


_collected: list[list[Any]] = []


@contextlib.contextmanager
def collecting_json() -> Iterator[list[Any]]:
    """Collect what ``show_json`` would print during the block, in the list that the block gets."""
    _collected.append([])
    try:
        yield _collected[-1]
    finally:
        _collected.pop()


def show_json(value: Any) -> None:
    """Print a result as JSON, of dictionaries, lists, texts, numbers, dataclasses and paths, which have slashes.

    Raises as ``show``, and ``TypeError`` for other values.
    """
    if _collected:
        _collected[-1].append(json.loads(json.dumps(value, default=_plain)))
        return
    show_as_it_is(json.dumps(value, indent=2, default=_plain))


def show_result(options: SharedOptions, value: Any, text: str) -> None:
    """Print a result of a verb: ``value`` as JSON with ``--format json``, otherwise ``text`` unless ``-q`` is given.

    Raises as ``show_json``. For results that are printed even with ``-q``, call ``show``.
    """
    if options.json:
        show_json(value)
    elif not options.quiet:
        show(text)


_MOST_NOTES = 5


def show_notes(options: SharedOptions, subject: str, notes: Sequence[str]) -> None:
    """Print the first ``notes`` about ``subject`` as diagnostics, and all with ``-v``; JSON has them in its result.

    These are remarks of the compiler on operators of a model, of which a large network has hundreds; ``-q`` omits them.
    """
    if options.quiet or options.json:
        return
    listed = notes if options.verbose else notes[:_MOST_NOTES]
    for text in listed:
        note(f"note: {subject}: {printable(text)}")
    if len(notes) > len(listed):
        note(f"note: {subject}: {len(notes) - len(listed)} more such operators; -v or `mlfbuild inspect` lists them")


def note_all(options: SharedOptions, lines: Iterable[object], about: str = "") -> None:
    """Print ``lines`` as diagnostics, each after ``about``, unless ``-q`` is given; raises nothing, as ``write``."""
    for line in () if options.quiet else lines:
        note(f"{about}{line}")


def note_unless_quiet(options: SharedOptions) -> Callable[[str], None]:
    """Return ``note``, or a function that prints nothing."""
    return (lambda _: None) if options.quiet else note


def note(text: str) -> None:
    """Print a diagnostic, as an event if results are printed as JSON.

    Diagnostics go to stderr. With ``--format github``, a text that begins with ``warning:`` becomes an annotation of
    the file that it names.
    """
    context = click.get_current_context(silent=True)
    options = context.find_object(SharedOptions) if context else None
    if options is not None and options.json:
        emit({"event": "message", "text": text})
    elif options is not None and options.format == "github" and text.startswith("warning: "):
        from mlfbuild.cli.output.ci_formats import annotation

        write(annotation("warning", text.removeprefix("warning: ")))
    else:
        write(wrapped(text))


def report_error(error: MlfError, form: str) -> None:
    """Print an error in the form that ``--format`` names, whether or not it ends the run.

    ``form`` is text, json, github or markdown. Use it for each error of several; the last one is raised, and
    ``invocation`` prints it in the same way.
    """
    if form == "json":
        emit(error_event(error))
        return
    if form == "markdown":
        from mlfbuild.cli.output.markdown import error_markdown

        # Also on stdout: the summary of a failed job must have the reason.
        show_as_it_is(error_markdown(error))
    write(error_text(error, form), {_NAME: FAILED})


def error_text(error: MlfError, form: str = "text") -> str:
    """Return an error as text; editors can jump to mistakes in project files, which begin with file:line:column."""
    if form == "github":
        from mlfbuild.cli.output.ci_formats import error_annotations

        return "\n".join(error_annotations(error))
    if isinstance(error, ProjectFileError):
        return wrapped(str(error))
    if isinstance(error, ProcessFailedError) and error.output.strip():
        return "\n".join([wrapped(f"{_NAME} {error.message}"), error.output.rstrip()])
    return wrapped(f"{_NAME} {error}")


def emit(event: Mapping[str, Any]) -> None:
    """Print an event."""
    write(line_of(event))


def write(text: str, colours: Mapping[str, str] = _NO_COLOURS) -> None:
    """Print ``text`` to stderr without its control characters, with the words in ``colours`` in these colours.

    Errors are ignored, as there is no other place to report them.
    """
    with contextlib.suppress(OSError):
        # A closed stderr must not end a build that is otherwise right.
        click.echo(_coloured(text, colours, sys.stderr), err=True)


def write_styled(text: str) -> None:
    """Print ``text``, which has only our own control characters, to stderr as ``write``."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True, color=has_colour(sys.stderr))


def silence() -> None:
    """Redirect stdout to nothing, so that Python's flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        # The descriptor and not ``sys.stdout``, whose buffer still has text that Python writes at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Path):
        return value.as_posix()
    raise TypeError(f"{type(value).__name__} has no JSON form")
