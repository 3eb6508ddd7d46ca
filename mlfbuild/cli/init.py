"""``mlfbuild init``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import FILE, SharedOptions, complete_board, complete_cpu, verb
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.core import UsageError, text_table

if TYPE_CHECKING:
    from mlfbuild.usecases.init import InitReport

_PURPOSE = {
    "flash": "write to your board",
    "lock": "get the libraries that its code needs",
    "build": "build",
    "run": "run on QEMU",
    "verify": "check every output on QEMU",
}

_CMAKE_LINES = """\
next, in CMakeLists.txt:
  include(cmake/mlfbuild.cmake)
  mlfbuild_models(mlfbuild.yml TARGET <target>)
  target_link_libraries(<executable> PRIVATE mlf::<model>)"""

_SCONS_LINES = """\
next, in SConstruct:
  env = Environment(tools=["default", "mlf"])
  models = env.MlfModels("mlfbuild.yml", target="<target>")
  models.apply(env)   # or app = env.MlfFirmware("<firmware>", models=models)"""


@verb("format")
@click.argument("folder", metavar="[DIR]", type=FILE, default=".")
@click.option("--template", metavar="NAME", help="scons (default), cmake, bare-metal, project-api, DIR, URL.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Value of a variable of the template.")
@click.option("--model", "source", type=FILE, metavar="FILE", help="Model file to start with.")
@click.option("--archive", type=FILE, metavar="FILE", help="Archive to start with.")
@click.option("--vectors", type=FILE, metavar="FILE", help="Inputs and expected outputs of the model.")
@click.option(
    "--board", "boards", multiple=True, metavar="NAME", help="Emulated board (mps2-an386), or yours; repeatable.",
    shell_complete=complete_board,
)  # fmt: skip
@click.option(
    "--cpu", "cpus", multiple=True, metavar="NAME", help="Core, on its emulated board; repeatable.",
    shell_complete=complete_cpu,
)  # fmt: skip
@click.option("--mcu", "mcus", multiple=True, metavar="NAME", help="Your microcontroller; repeatable.")
@click.option("--cmake-only", is_flag=True, help="Write only cmake/mlfbuild.cmake, for a CMake repository.")
@click.option("--scons-only", is_flag=True, help="Write only site_scons, for a SCons repository.")
@click.option("--update", is_flag=True, help="Write files of another version of mlfbuild again.")
def init(
    options: SharedOptions,
    folder: Path,
    template: str | None,
    settings: tuple[str, ...],
    source: Path | None,
    archive: Path | None,
    vectors: Path | None,
    boards: tuple[str, ...],
    cpus: tuple[str, ...],
    mcus: tuple[str, ...],
    cmake_only: bool,
    scons_only: bool,
    update: bool,
) -> None:
    """Create a firmware project around a model.

    The project is written to DIR, or to this folder, and builds and runs on QEMU as it is. Without --model and
    --archive it contains a small example. Existing files are not overwritten: either all files are written, or none.

    --template may also be a folder or a Git repository (URL, or URL@VERSION) with mlfbuild-template.yml; --set gives
    values to its variables. A repository is fetched, which needs the network.

    --board, --cpu and --mcu name the targets. A microcontroller gets start-up code and a linker script with its
    memories, and a second target runs the firmware on QEMU.

    With --cmake-only or --scons-only, add the file with which the build of an existing repository finds mlfbuild. With
    --update, write the JSON Schema, the tool for SCons and the file for CMake again if another version of mlfbuild
    wrote them.
    """
    from mlfbuild.usecases.init import InitRequest, init_cmake, init_project, init_scons, init_update

    alone = {"cmake-only": cmake_only, "scons-only": scons_only, "update": update}
    if any(alone.values()):
        given = {"template": template, "model": source, "archive": archive, "vectors": vectors, "set": settings}
        given |= {"board": boards, "cpu": cpus, "mcu": mcus}
        first, *others = [name for name, value in alone.items() if value]
        _refuse_with(f"--{first}", [*(name for name, value in given.items() if value), *others])
        report = {"cmake-only": init_cmake, "scons-only": init_scons, "update": init_update}[first](folder)
    else:
        board, *more = boards or (None,)
        request = InitRequest(
            folder, template or "scons", board, source, archive, vectors, _settings(settings),
            boards=tuple(name for name in more if name), cpus=cpus, mcus=mcus,
        )  # fmt: skip
        report = init_project(request)
    if options.json:
        show_json({"written": report.written, "commands": report.commands, "notes": report.notes})
        return
    if options.quiet:
        return
    lines = _written_lines(report, verbose=options.verbose)
    if any(alone.values()):
        show("\n".join([*lines, *([_CMAKE_LINES] if cmake_only else []), *([_SCONS_LINES] if scons_only else [])]))
        return
    lines.append(f"next{'' if folder == Path() else f', in {shlex.quote(str(folder))}'}:")
    commands = [(command, f" # {_PURPOSE[name]}") for name, command in report.commands.items()]
    show("\n".join([*lines, text_table(commands, indent=2)]))


def _written_lines(report: InitReport, *, verbose: bool) -> list[str]:
    # Generated files are last.
    own = report.written[: len(report.written) - report.generated]
    lines = [f"wrote {path}" for path in (report.written if verbose else own)]
    if report.generated and not verbose:
        lines.append(f"wrote {report.generated} files of the model as C (-v lists them)")
    return lines + [f"note: {note}" for note in report.notes]


def _settings(settings: tuple[str, ...]) -> dict[str, str]:
    """Return the values by name; raises ``UsageError`` for other texts and for a name that has two values."""
    values: dict[str, str] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not (name and equals) or name in values:
            raise UsageError(
                "setting-invalid",
                place=f"--set {text}",
                reason=f"{name} already has a value" if name in values else "it is not a name and a value",
                hint="omit one of them" if name in values else "write --set NAME=VALUE",
            )
        values[name] = value
    return values


def _refuse_with(option: str, others: list[str]) -> None:
    if others:
        raise UsageError.exclusive(
            f"{option} and --{others[0]}",
            f"{option} is for an existing repository, whose project file names models and boards",
            "omit one of the options",
        )
