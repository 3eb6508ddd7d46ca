"""The verbs about mlfbuild itself: its table of boards, its schemas, its CMake package and shell completion."""

from __future__ import annotations

from collections.abc import Mapping

import click

from mlfbuild.cli.options import COMPLETION_VARIABLE, SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_as_it_is, show_json
from mlfbuild.core import UsageError, listed

_SHELLS: Mapping[str, str] = {"bash": "BashComplete", "zsh": "ZshComplete", "fish": "FishComplete"}
"""The class of click with the script of each shell."""


@verb("format")
@click.argument("names", metavar="[NAME]...", nargs=-1)
def boards(options: SharedOptions, names: tuple[str, ...]) -> None:
    """List the processor cores, boards and microcontrollers by name.

    The words are those of `cpu`, `board` and `mcu` of a target. NAME is the beginning of some, or of a board's
    microcontroller, or a part of a title: `boards stm32f4`. In the name of a microcontroller, `?` stands for any
    letter. One with `cycles` has a cycle model; `debugger` is the GDB server for the one on the board, and `serial`
    marks those with a serial port.
    """
    from mlfbuild.core import text_table
    from mlfbuild.targets import close_boards
    from mlfbuild.usecases import known_targets

    found = known_targets(names)
    if not found:
        close = listed([each for name in names for each in close_boards(name)])
        raise UsageError(
            "unknown-mcu",
            place=" ".join(names),
            reason="no core, board or microcontroller has this name",
            hint=f"did you mean {close}?"
            if close
            else "for another microcontroller, write cpu, and its memories under timing and runner",
        )
    if options.json:
        show_json(found)
        return
    rows = [("key", "name", "core", "flash KiB", "RAM KiB", "debugger", "")]
    for each in found:
        sizes = [f"{size >> 10:,}" if size else "" for size in (each.flash, each.ram)]
        notes = [each.mcu, "cycles" if each.cycles else "", "serial" if each.usb else "", each.title]
        rows.append((each.key, each.name, each.cpu, sizes[0], sizes[1], each.server, "; ".join(filter(None, notes))))
    show(text_table(rows))


@verb("format")
@click.option("--report", is_flag=True, help="Print the schema of `report --format json`.")
@click.option("--events", is_flag=True, help="Print the schema of lines on standard error.")
def schema(_options: SharedOptions, report: bool, events: bool) -> None:
    """Print the JSON Schema of the project file.

    Editors use it to complete and check mlfbuild.yml. With --events, print the schema of each line that --format json
    writes to standard error.
    """
    from mlfbuild.cli.output.events import event_schema
    from mlfbuild.project import json_schema
    from mlfbuild.report import report_schema

    if report and events:
        raise UsageError.exclusive("--report and --events", "these are two schemas", "request one at a time")
    show_json(report_schema() if report else event_schema() if events else json_schema())


@verb("format")
def cmake_dir(options: SharedOptions) -> None:
    """Print the folder of the CMake package and toolchain files."""
    from mlfbuild.targets import cmake_folder

    if options.json:
        show_json({"cmake_dir": cmake_folder()})
    else:
        show(str(cmake_folder()))


@verb()
@click.argument("shell", metavar="SHELL", type=click.Choice([*_SHELLS]))
def completion(_options: SharedOptions, shell: str) -> None:
    """Print the script that completes commands in a shell.

    SHELL is bash, zsh or fish. The script completes commands, options, files, and names of targets, models, CPUs and
    boards. To use it in every new shell, write one line to the start-up file of the shell:

    \b
    ~/.bashrc                    source <(mlfbuild completion bash)
    ~/.zshrc, after compinit     source <(mlfbuild completion zsh)
    ~/.config/fish/config.fish   mlfbuild completion fish | source
    """  # noqa: D301  # click keeps the lines below this character as they are
    from click import shell_completion

    script = getattr(shell_completion, _SHELLS[shell])(click.Group(), {}, "mlfbuild", COMPLETION_VARIABLE)
    # Not ``source()``, which would start the shell to check its version.
    show_as_it_is((script.source_template % script.source_vars()).strip())
