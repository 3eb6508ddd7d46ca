"""Options of a model: how compilers refuse them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import UsageError
from mlfbuild.project import Mistake

if TYPE_CHECKING:
    from mlfbuild.compilers.types import Compiler, CompileRequest


def invalid_option(reason: str) -> Mistake:
    """Return the mistake of an option whose value is not accepted."""
    return Mistake("invalid-option", reason=reason, hint="correct or remove it")


def check_switch(value: object) -> Mistake | None:
    """Return the mistake if ``value`` is neither true nor false."""
    return None if isinstance(value, bool) else invalid_option("must be true or false")


def refuse_options(compiler: Compiler, request: CompileRequest) -> None:
    """Raise ``UsageError`` for the first option of ``request`` that ``compiler`` does not accept."""
    for key, mistake in compiler.check_options(request.options):
        raise refused(f"{request.name}: options.{key}", mistake)


def refused(place: str, mistake: Mistake) -> UsageError:
    """Return ``mistake`` as an error at ``place``."""
    return UsageError(mistake.code, place=place, reason=mistake.reason, hint=mistake.hint)
