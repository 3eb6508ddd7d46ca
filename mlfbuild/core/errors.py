"""Every error a user can meet, one class for each exit code.

All of them live here so that each exit code has one meaning and both drivers (the command and SCons) say the same
words. A message is one line: the place, the reason, and what to do next. Whatever is not an ``MlfError`` is a defect
of mlfbuild and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Sequence


class MlfError(Exception):
    """Base of all errors with a documented exit code; ``str(error)`` is the text to show."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class CheckFailedError(MlfError):
    """What was checked failed: a mismatch, an exceeded budget, an invalid archive."""

    exit_code = 1


class OverBudgetError(CheckFailedError):
    """An image, or a model in it, takes more than its budget; the image is there all the same."""


class DriftError(CheckFailedError):
    """What there is differs from the lock file; ``problems`` holds a line for each thing that does."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type[DriftError], tuple[str, tuple[str, ...]]]:
        return type(self), (self.message, self.problems)

    def __str__(self) -> str:
        return "\n  ".join([self.message, *(self.problems if len(self.problems) > 1 else ())])


class UsageError(MlfError):
    """The command line or an API call asks for something that does not exist."""

    exit_code = 2


class ProjectFileError(MlfError):
    """The project file has mistakes; ``problems`` holds one ready line for each, in file order."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type[ProjectFileError], tuple[tuple[str, ...]]]:
        return type(self), (self.problems,)


class ToolNotFoundError(MlfError):
    """A program or package that this step needs is not installed; the message says how to get it."""

    exit_code = 3


class NotFetchedError(MlfError):
    """A dependency is not on this machine, and this step fetches nothing."""

    exit_code = 3


class UnsupportedModelError(MlfError):
    """The model is sound but asks for what the compiler does not have; names node, operator and what is supported."""

    exit_code = 4


class InputFileError(MlfError):
    """An input file is unreadable, unsafe or not what it claims to be."""

    exit_code = 5


class ConflictError(MlfError):
    """Going on would overwrite or delete a file that mlfbuild did not write."""

    exit_code = 6


class ProcessFailedError(MlfError):
    """An external program failed; ``output`` is what it printed."""

    exit_code = 7

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output

    def __reduce__(self) -> tuple[type[ProcessFailedError], tuple[str, str]]:
        return type(self), (self.message, self.output)

    def __str__(self) -> str:
        return f"{self.message}\n{self.output.rstrip()}" if self.output.strip() else self.message


class TimedOutError(ProcessFailedError):
    """An external program was stopped because it took too long."""


class StorageError(MlfError):
    """The disk is full, a folder is read-only, or permission is missing."""

    exit_code = 8


INTERRUPTED_EXIT_CODE = 130
