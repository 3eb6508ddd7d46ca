"""Options that verbs share; each may stand before the verb or after it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Settings:
    """Values of the shared options; ``given`` has the names of those on the command line."""

    file: Path = Path("mlfbuild.yml")
    target: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    format: str = "text"
    verbose: bool = False
    quiet: bool = False
    frozen: bool = False
    offline: bool = False
    given: set[str] = field(default_factory=set)

    @property
    def json(self) -> bool:
        """Whether results are wanted as JSON."""
        return self.format == "json"


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is None or value in ((), False):
        return
    settings = context.find_object(Settings)
    assert settings is not None
    assert parameter.name is not None
    setattr(settings, parameter.name, value)
    settings.given.add(parameter.name)


def _change_folder(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    try:
        os.chdir(value)
    except OSError as error:
        raise click.BadParameter(f"{value}: {error.strerror}") from None


def _option(*names: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(*names, expose_value=False, **{"callback": _store, **attributes})


_DIRECTORY = _option("-C", "directory", metavar="DIR", is_eager=True, callback=_change_folder, help="Work in DIR.")
_OPTIONS = {
    "file": _option(
        "-f", "--file", type=click.Path(path_type=Path), metavar="FILE", help="Project file, default mlfbuild.yml."
    ),
    "target": _option("--target", multiple=True, metavar="NAME", help="Only this target; may be repeated."),
    "model": _option("--model", multiple=True, metavar="NAME", help="Only this model; may be repeated."),
    "jobs": _option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Jobs at a time, default one a CPU."),
    "format": _option("--format", type=click.Choice(["text", "json"]), help="Form of the result, default text."),
    "frozen": _option(
        "--frozen", is_flag=True, help="Build what mlfbuild.lock has; any drift from it is exit status 1."
    ),
    "offline": _option("--offline", is_flag=True, help="Fetch nothing. Builds never do: there it only says so."),
    "verbose": _option("-v", "--verbose", is_flag=True, help="Say more: all of a long list, and what was up to date."),
    "quiet": _option("-q", "--quiet", is_flag=True, help="Say nothing but errors and what was asked for."),
}


def shared(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds shared options to a verb; every verb has -C, -v and -q."""

    def decorate(function: F) -> F:
        for name in reversed([*names, "verbose", "quiet"]):
            function = _OPTIONS[name](function)
        return _DIRECTORY(function)

    return decorate


shared_by_all = shared(*(name for name in _OPTIONS if name not in {"verbose", "quiet"}))
"""Adds every shared option: for the command itself, before the verb."""


class Verb(click.Command):
    """A verb; it refuses shared options that mean nothing to it, wherever they stand."""

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb."""
        settings = ctx.find_object(Settings)
        assert settings is not None
        own = {parameter.name for parameter in self.params}
        for name in sorted(settings.given - own):
            raise click.UsageError(f"--{name} means nothing to `{ctx.command_path}`", ctx)
        return super().invoke(ctx)


def verb(*names: str) -> Callable[[Callable[..., None]], Verb]:
    """Return a decorator that makes a verb with these shared options; the function gets ``Settings`` first."""

    def decorate(function: Callable[..., None]) -> Verb:
        name = function.__name__.replace("_", "-")
        command = click.command(name, cls=Verb)(shared(*names)(click.make_pass_decorator(Settings)(function)))
        assert isinstance(command, Verb)
        command.params.sort(key=lambda parameter: parameter.name in {"directory", *_OPTIONS})  # its own come first
        return command

    return decorate
