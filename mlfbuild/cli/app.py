"""The command ``mlfbuild`` and its verbs."""

from __future__ import annotations

import difflib

import click

from mlfbuild import __version__
from mlfbuild.cli.archive_verbs import compare, convert, inspect, merge, validate
from mlfbuild.cli.fetch_verb import fetch
from mlfbuild.cli.file_verbs import clashes, compile_model, run, unpack
from mlfbuild.cli.init_verb import init
from mlfbuild.cli.lock_verb import lock
from mlfbuild.cli.options import shared_by_all
from mlfbuild.cli.placement_verbs import params
from mlfbuild.cli.profile_verb import profile
from mlfbuild.cli.project_verbs import build, check, generate, plan, verify
from mlfbuild.cli.report_verb import report
from mlfbuild.cli.sbom_verb import sbom
from mlfbuild.cli.tool_verbs import cmake_dir, doctor, schema

SECTIONS = (
    ("Project", (init, check, plan, fetch, lock, generate, build, verify, report, profile, sbom)),
    (
        "Files, no project needed",
        (compile_model, inspect, validate, convert, merge, compare, unpack, run, params, clashes),
    ),
    ("About the tool", (doctor, schema, cmake_dir)),
)


class _Group(click.Group):
    """Lists verbs in sections and knows the nearest one to a misspelt word."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in SECTIONS:
            with formatter.section(title):
                formatter.write_dl([(verb.name or "", verb.get_short_help_str(80)) for verb in verbs])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.commands, n=1)
            ctx.fail(f"No such command {args[0]!r}" + (f" (did you mean {near[0]!r}?)." if near else "."))
        return super().resolve_command(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mlfbuild", message="%(prog)s %(version)s")
@shared_by_all
def app() -> None:
    """Put machine-learning models into microcontroller firmware.

    A project file, mlfbuild.yml, names models, targets and firmware. `mlfbuild COMMAND --help` tells about a command.
    Exit status: 0 done, 1 a check failed, 2 usage or project file, 3 missing tool, 4 unsupported model, 5 bad input
    file, 6 would overwrite, 7 an external program failed, 8 disk or permission, 130 interrupted.
    """


for _, _verbs in SECTIONS:
    for _verb in _verbs:
        app.add_command(_verb)
