"""Options that verbs share, and the decorator that makes a function a verb.

The options of ``SharedOptions`` may be written before the verb or after it; a verb refuses those that do not apply to
it. The decorators below them are options of a few verbs.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mlfbuild.core import MlfError, UsageError
from mlfbuild.project import ENGINES

if TYPE_CHECKING:
    from mlfbuild.project import Project

F = TypeVar("F", bound=Callable[..., Any])
Completer = Callable[[click.Context, click.Parameter, str], list[str]]

COMPLETION_VARIABLE = "_MLFBUILD_COMPLETE"
"""Environment variable in which a shell passes its name and asks for completions."""
_PROJECT_FILE = "mlfbuild.yml"
FILE = click.Path(path_type=Path)


@dataclass
class SharedOptions:
    """Values of the shared options; ``given`` has the names of those that are on the command line."""

    named_file: Path | None = None
    target: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    format: str = "text"
    verbose: bool = False
    quiet: bool = False
    frozen: bool = False
    offline: bool = False
    no_wait: bool = False
    on: str = ""
    given: set[str] = field(default_factory=set)

    @property
    def file(self) -> Path:
        """The project file: that of -f, or the nearest ``mlfbuild.yml`` in this folder and those above it."""
        return self.named_file or nearest_project_file()

    @file.setter
    def file(self, path: Path) -> None:
        self.named_file = path

    def placed(self, project: Project) -> Project:
        """Return ``project`` with the engine of --on instead of its own."""
        return replace(project, jobs=replace(project.jobs, engine=self.on)) if self.on else project

    @property
    def json(self) -> bool:
        """Whether results are printed as JSON."""
        return self.format == "json"


def nearest_project_file() -> Path:
    """Return the relative path of ``mlfbuild.yml`` in the working folder or the nearest folder above it.

    If there is none, return that in the working folder. The search ends at the top of a Git repository, and before a
    folder in which everyone can create files, such as ``/tmp``: a project file names commands that builds run.
    """
    folder, above = Path.cwd(), Path()
    while True:
        if (folder / _PROJECT_FILE).is_file():
            return above / _PROJECT_FILE
        if (folder / ".git").exists() or folder.parent == folder or folder.parent.stat().st_mode & stat.S_IWOTH:
            return Path(_PROJECT_FILE)
        folder, above = folder.parent, above / ".."


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    # An option is in the command and in the verb: the one that is absent must not overwrite what the other has stored.
    if value is None or value in ((), False):
        return
    options, name = context.ensure_object(SharedOptions), str(parameter.name)
    setattr(options, name, value)
    options.given.add(name)


def _change_folder(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    try:
        os.chdir(value)
    except OSError as error:
        raise click.BadParameter(f"{value}: {error.strerror}") from None


def _option(*names: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(*names, expose_value=False, **{"callback": _store, **attributes})


def format_option(*forms: str) -> Callable[[F], F]:
    """Return the option --format; ``github`` is text with errors as annotations of GitHub Actions.

    ``markdown`` is a table for the summary of a CI job.
    """
    listed = f"{', '.join(forms[:-1])} or {forms[-1]}"  # as the metavar, all forms would need half a line
    return _option("--format", type=click.Choice(forms), metavar="FORM", help=f"One of {listed}; default text.")


def _complete_names(kind: str) -> Completer:
    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        """Return the models or targets of the project; none if its file is missing or has mistakes."""
        from mlfbuild.project import load_project

        options = context.find_object(SharedOptions)
        try:
            project = load_project((options or SharedOptions()).file)
        # A message would be printed into the line that the user is typing.
        except MlfError:
            return []
        return [name for name in getattr(project, kind) if name.startswith(incomplete)]

    return complete


def complete_cpu(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the processor cores that begin with ``incomplete``."""
    from mlfbuild.targets import CPUS

    return [name for name in CPUS if name.startswith(incomplete)]


def complete_board(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the boards that begin with ``incomplete``."""
    from mlfbuild.targets import BOARDS

    return [name for name in BOARDS if name.startswith(incomplete)]


def _names(name: str, text: str, complete: Completer | None = None) -> Callable[[F], F]:
    # Repeatable also if only one is allowed, so that two of them are refused, not the first one ignored.
    return _option(name, multiple=True, metavar="NAME", help=text, shell_complete=complete)


# Eager: the folder is changed before the values of other options are read.
_DIRECTORY = _option(
    "-C", "directory", metavar="DIR", is_eager=True, callback=_change_folder, help="Change to DIR first."
)
_OPTIONS = {
    "file": _option("-f", "--file", type=FILE, metavar="FILE", help="Project file; default: the nearest mlfbuild.yml."),
    "target": _names("--target", "Use only this target; repeatable.", _complete_names("targets")),
    "one_target": _names("--target", "Target of the project file.", _complete_names("targets")),
    "model": _names("--model", "Use only this model; repeatable.", _complete_names("models")),
    "one_model": _names("--model", "Network of the archive, if it has several."),
    "project_model": _names("--model", "Model of the project file.", _complete_names("models")),
    "jobs": _option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Parallel jobs; default all CPUs."),
    "format": format_option("text", "json", "github"),
    "summary_format": format_option("text", "json", "github", "markdown"),
    "frozen": _option("--frozen", is_flag=True, help="Fail if anything differs from mlfbuild.lock."),
    "offline": _option("--offline", is_flag=True, help="Do not access the network (builds never do)."),
    "on": _option("--on", type=click.Choice(ENGINES), metavar="ENGINE", help="Compile here, or on dask."),
    "no_wait": _option("--no-wait", is_flag=True, help="Fail if another build is using the build folder."),
    "verbose": _option("-v", "--verbose", is_flag=True, help="Print complete lists and what is up to date."),
    "quiet": _option("-q", "--quiet", is_flag=True, help="Print only errors and the requested result."),
}


def shared(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds these shared options, and -C, -v and -q, which all verbs have."""

    def decorate(function: F) -> F:
        # Decorators apply from the last to the first, so reversed they are in the help in the order of ``names``.
        for name in reversed([*names, "verbose", "quiet"]):
            function = _OPTIONS[name](function)
        return _DIRECTORY(function)

    return decorate


_ONE = {"one_target", "one_model", "project_model", "summary_format"}
shared_by_all = shared(*(name for name in _OPTIONS if name not in {"verbose", "quiet", *_ONE}))
"""Adds every shared option to the command itself, so that it may be written before the verb."""


class Verb(click.Command):
    """A verb; it refuses shared options that do not apply to it, even if they are before the verb."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse ``args``; an option that is the name of a format, such as ``--json``, leads to ``--format``."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            types = (parameter.type for parameter in self.params if parameter.name == "format")
            form = error.option_name.removeprefix("--")
            if any(form in kind.choices for kind in types if isinstance(kind, click.Choice)):
                raise click.NoSuchOption(error.option_name, None, [f"--format {form}"], ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb."""
        own = {parameter.name for parameter in self.params}
        for name in sorted(ctx.ensure_object(SharedOptions).given - own):
            raise click.UsageError(f"--{name.replace('_', '-')} does not apply to `{ctx.command_path}`", ctx)
        return super().invoke(ctx)


def verb(*names: str) -> Callable[[Callable[..., None]], Verb]:
    """Return a decorator that makes a function the verb of its name, with these shared options.

    The function gets ``SharedOptions`` first, then its own options by name.
    """

    def decorate(function: Callable[..., None]) -> Verb:
        # The function of ``compile`` ends with an underscore, because its name is one of Python's.
        name = function.__name__.rstrip("_").replace("_", "-")
        command = click.command(name, cls=Verb)(shared(*names)(click.make_pass_decorator(SharedOptions)(function)))
        assert isinstance(command, Verb)
        command.params.sort(key=lambda parameter: parameter.name in {"directory", *_OPTIONS})  # its own come first
        return command

    return decorate


# Options of several verbs --------------------------------------------------------------------------------------------

ARCHIVE = click.argument("archive", type=FILE)
OUTPUT = click.option("-o", "output", type=FILE, required=True, metavar="OUT.tar", help="Archive to write.")
BUILD_DIR = click.option("--build-dir", type=FILE, metavar="DIR", help="Build folder, default build.")
PLACE = click.option(
    "--place", "places", multiple=True, metavar="CLASS=SECTION", help="Put params, workspace, ... into a section."
)


INPUTS = click.option("--inputs", type=FILE, metavar="X.npz", help="Arrays in0.. or NAME; first axis: cases.")
elf_option = click.option("--elf", type=FILE, metavar="FILE", help="Use this image; nothing is built.")
"""An image instead of a firmware of the project."""

bundle_option = click.option("--bundle", type=FILE, metavar="FILE", help="Use this bundle; no project needed.")
signers_option = click.option(
    "--signers", type=FILE, metavar="FILE", help="With --bundle: who may have signed its provenance."
)
runner_option = click.option(
    "--runner", multiple=True, metavar="KEY=VALUE", help="With --bundle: key of a runner; repeatable."
)


def timeout_option(
    *, default: float | None = None, usual: int = 60, what: str = "Time limit of a case"
) -> Callable[[F], F]:
    """Return the option --timeout; its help names ``what`` is limited, and the ``default`` or the ``usual`` limit."""
    # A limit of 0 would end every case.
    seconds = click.FloatRange(min=0, min_open=True)
    text = f"{what}, default {default or usual:g}."
    return click.option("--timeout", type=seconds, default=default, metavar="SECONDS", help=text)


def setting(text: str, option: str = "-O") -> tuple[str, str | int | float | bool]:
    """Split ``key=value``; the value is a number, true or false if it is one in JSON, and a string otherwise."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UsageError(
            "option-without-value", place=f"{option} {text}", reason="the value is missing", hint="write KEY=VALUE"
        )
    try:
        read = json.loads(value)
    # So ``-O kernels=fast`` needs no quotes, which a shell would remove.
    except ValueError:
        return key, value
    # Lists, objects and ``null`` of JSON are not values of options.
    return key, read if isinstance(read, (bool, int, float)) else value
