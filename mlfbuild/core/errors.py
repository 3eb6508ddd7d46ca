"""Every error a user can meet: one class for each exit code, four fields for each error.

An error is data, and its text is one view of it::

    raise InputFileError(
        "archive-not-tar",
        place=path,
        reason="the file is not a tar archive",
        hint="pass an archive in Model Library Format, such as one that `mlfbuild compile` wrote",
    )

The fields:

- ``code`` is a stable id in kebab-case, unique to this mistake: programs and tests use it, and it does not change if
  the words do
- ``place`` locates the mistake: file, line, key, node, tensor
- ``reason`` is one clause that describes it
- ``hint`` is one sentence in the imperative with the next step, or empty if nothing helps

The views: ``str(error)`` is ``place: reason; hint`` on one line. ``--format json`` prints the fields
(``mlfbuild/cli/output/events.py``), and CI formats make annotations of ``place``. The class determines the exit code,
which is documented and which scripts compare, so an error never changes its class to get other words.

The rules:

1. The code that finds a mistake knows only a part of its place. A caller that knows more adds it with ``within``:
   ``node 'conv1'`` becomes ``kws.tflite: node 'conv1'``. Checks of single values know no place at all: they return a
   ``Mistake`` (``core.mistakes``), which becomes a ``Diagnostic`` with ``at``.
2. If several things are wrong, all are reported at once: ``problems`` has a ``Diagnostic`` for each, and the error's
   own fields summarise them.
3. An error crosses process boundaries, because compile actions run in workers. Python pickles exceptions by their
   positional arguments, which would lose the keywords: ``__reduce__`` restores the fields instead.
4. A hint must be able to help. If the tool that wrote a file no longer exists, "export it again" is not a hint.
5. Text from files is printed by ``quoted`` or ``shown`` only, so that a name cannot steer a terminal.

For example, the compiler raises ``UnsupportedModelError`` (exit code 4) for each node without a kernel, ``lower_all``
joins them into one, and the command prints ``kws: CONV_2D 'conv1': ...; change the model, or use another compiler``.

``tests/golden/core/test_errors/test_all_wordings/wordings.txt`` lists every code with its class and words, so that a
change of words is one diff to review. An exception that is not an ``MlfError`` is a defect of mlfbuild and keeps its
traceback: nothing here turns a defect into a message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from typing_extensions import Self

# About one screen; the number of nodes that fail for one reason is not limited, because they share a line.
_REASONS = 20
"""The number of reasons that the text of a refusal shows."""

_E = TypeVar("_E", bound="MlfError")


def _text(place: str, reason: str, hint: str) -> str:
    text = f"{place}: {reason}" if place else reason
    return f"{text}; {hint}" if hint else text


def _places(problems: Sequence[Diagnostic]) -> str:
    """Return the first place of ``problems``, and how many others there are."""
    count = len({problem.place for problem in problems}) - 1
    others = f" and {count} more {'place' if count == 1 else 'places'}" if count else ""
    return f"{problems[0].place}{others}"


@dataclass(frozen=True)
class Diagnostic:
    """One of several findings that an error reports at once; the fields are those of an error."""

    code: str
    place: str
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return _text(self.place, self.reason, self.hint)


class MlfError(Exception):
    """Base of all errors with a documented exit code.

    Catch it where work for a user begins; everything else is a defect and keeps its traceback. ``place`` may be any
    object, such as a ``Path``, and is turned into text.
    """

    exit_code = 1

    def __init__(self, code: str, *, reason: str, place: object = "", hint: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.place = str(place)
        self.reason = reason
        self.hint = hint

    @classmethod
    def kind(cls) -> str:
        """Return the class in kebab-case: ``tool-not-found`` for ``ToolNotFoundError``."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__.removesuffix("Error")).lower()

    @property
    def message(self) -> str:
        """The error on one line, without the output of programs and without further findings."""
        return _text(self.place, self.reason, self.hint)

    def diagnostic(self) -> Diagnostic:
        """Return the fields of this error.

        For an error that collects findings of several places: code, place, reason and hint are copied, the class with
        its exit code is not.
        """
        return Diagnostic(self.code, self.place, self.reason, self.hint)

    def within(self, place: object) -> Self:
        """Return this error with ``place``, which contains the place that it names, before it.

        The result is a copy of the same class with the same code, reason and hint::

            raise error.within("kws.tflite") from None   # "node 'conv1'" becomes "kws.tflite: node 'conv1'"
        """
        # A copy: a caller may catch one error and report it for several places.
        other: Self = _restored(type(self), vars(self))
        other.place = f"{place}: {self.place}" if self.place else str(place)
        return other

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by their arguments, and most of the fields are keywords.
        return _restored, (type(self), vars(self))


def _restored(cls: type[_E], fields: dict[str, Any]) -> _E:
    # `__init__` differs between the subclasses, so the fields are restored without it.
    error = cls.__new__(cls)
    error.__dict__.update(fields)
    error.args = (fields["code"],)
    return error


class CheckFailedError(MlfError):
    """A check failed: a mismatch, an exceeded budget, an invalid archive.

    ``problems`` has a finding for each place that is wrong, for views that show them there; the error's text has none.
    """

    exit_code = 1
    problems: tuple[str | Diagnostic, ...] = ()

    def __init__(
        self,
        code: str,
        *,
        reason: str,
        place: object = "",
        hint: str = "",
        problems: Sequence[str | Diagnostic] = (),
    ) -> None:
        super().__init__(code, place=place, reason=reason, hint=hint)
        self.problems = tuple(problems)


class _ImageError(CheckFailedError):
    """Findings about images, which have been linked and stay; the error's fields are those of the first finding."""

    problems: tuple[Diagnostic, ...]

    def __init__(self, problems: Sequence[Diagnostic], reports: Sequence[str] = ()) -> None:
        first = problems[0]
        super().__init__(first.code, place=first.place, reason=first.reason, hint=first.hint, problems=problems)
        self.reports = tuple(reports)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.problems), *([f"see {', '.join(self.reports)}"] if self.reports else [])])


class OverBudgetError(_ImageError):
    """Images, or models in them, exceed budgets; ``problems`` has one for each, ``reports`` the files with details."""


class LinkFaultsError(_ImageError):
    """A link put data of models where they cannot be; ``problems`` has one for each fault."""


class DriftError(CheckFailedError):
    """The project or this machine differs from the lock file; ``problems`` has a line for each difference."""

    problems: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join([self.message, *(self.problems if len(self.problems) > 1 else ())])


class UsageError(MlfError):
    """The command line or an API call requests something that does not exist."""

    exit_code = 2

    @classmethod
    def needs_another(cls, option: str, reason: str, hint: str) -> Self:
        """Return the error for an ``option`` that means nothing without another one.

        ``option`` is as the user writes it, such as ``--vectors``; ``reason`` explains why it means nothing alone, and
        ``hint`` names the option to add.
        """
        return cls("option-needs-another", place=option, reason=reason, hint=hint)

    @classmethod
    def not_applicable(cls, option: str, reason: str, hint: str) -> Self:
        """Return the error for an ``option`` that has no meaning beside another one.

        ``option`` is as the user writes it, ``reason`` explains why it has no effect here, and ``hint`` names the
        option with which it must be omitted.
        """
        return cls("option-not-applicable", place=option, reason=reason, hint=hint)

    @classmethod
    def exclusive(cls, options: str, reason: str, hint: str) -> Self:
        """Return the error for ``options`` that contradict each other.

        ``options`` names them in one text, such as ``--from and --elf``; ``hint`` says which of them to omit.
        """
        return cls("options-exclude-each-other", place=options, reason=reason, hint=hint)


class ProjectFileError(MlfError):
    """The project file has mistakes; ``problems`` has all of them, in file order."""

    exit_code = 2

    def __init__(self, problems: Sequence[str | Diagnostic]) -> None:
        self.problems = tuple(problems)
        super().__init__("project-file", reason="\n".join(map(str, problems)))

    @classmethod
    def of(cls, code: str, place: str, reason: str, hint: str = "") -> Self:
        """Return the error for one mistake; the arguments are the fields of its ``Diagnostic``."""
        return cls([Diagnostic(code, place, reason, hint)])


class ToolNotFoundError(MlfError):
    """A program or package that this step needs is not installed; ``hint`` is the command that installs it."""

    exit_code = 3


class NotFetchedError(MlfError):
    """A requirement is not on this machine, and this step does not access the network."""

    exit_code = 3


class UnsupportedModelError(MlfError):
    """The model is valid but uses an operator, type or size that is not supported; ``place`` names the node.

    If there are several reasons, ``problems`` has all of them, and the error's fields are those of the first.
    """

    exit_code = 4
    problems: tuple[Diagnostic, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[UnsupportedModelError]) -> UnsupportedModelError:
        """Return one error with the reasons of all ``errors``, each once.

        ``errors`` must not be empty; the fields of the result are those of the first. With one reason, ``problems`` is
        empty.
        """
        first = errors[0]
        found = [error.problems or (error.diagnostic(),) for error in errors]
        problems = tuple(dict.fromkeys(problem for each in found for problem in each))
        error = cls(first.code, place=first.place, reason=first.reason, hint=first.hint)
        error.problems = problems if len(problems) > 1 else ()
        return error

    def within(self, place: object) -> Self:
        """Return this error with ``place`` before its own, and before those of all reasons."""
        error = super().within(place)
        error.problems = tuple(replace(problem, place=f"{place}: {problem.place}") for problem in self.problems)
        return error

    def __str__(self) -> str:
        if not self.problems:
            return self.message
        # A line for each reason with its places: a network repeats an operator many times.
        groups: dict[tuple[str, str], list[Diagnostic]] = {}
        for problem in self.problems:
            groups.setdefault((problem.reason, problem.hint), []).append(problem)
        lines = [_text(_places(problems), *words) for words, problems in groups.items()]
        rest = len(lines) - _REASONS
        more = [f"and {rest} more reasons, which --format json lists"] if rest > 0 else []
        return "\n".join([*lines[:_REASONS], *more])


class InputFileError(MlfError):
    """An input file is unreadable, unsafe or not of the expected format."""

    exit_code = 5


class ConflictError(MlfError):
    """Continuing would overwrite or delete a file that mlfbuild did not write, or that another build is writing."""

    exit_code = 6


class ProcessFailedError(MlfError):
    """An external program failed; ``output`` is its output."""

    exit_code = 7

    def __init__(self, code: str, output: str = "", *, reason: str, place: object = "", hint: str = "") -> None:
        super().__init__(code, place=place, reason=reason, hint=hint)
        self.output = output

    def __str__(self) -> str:
        return f"{self.message}\n{self.output.rstrip()}" if self.output.strip() else self.message


class TimedOutError(ProcessFailedError):
    """An external program took too long and was stopped."""


class StorageError(MlfError):
    """The disk is full, a folder is read-only, or permission is missing."""

    exit_code = 8


# 128 + SIGINT, as shells report a program that Ctrl-C ended.
INTERRUPTED_EXIT_CODE = 130
