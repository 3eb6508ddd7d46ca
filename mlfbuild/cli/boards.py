"""``mlfbuild boards``."""

from __future__ import annotations

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.core import UsageError, listed, text_table


@verb("format")
@click.argument("names", metavar="[NAME]...", nargs=-1)
def boards(options: SharedOptions, names: tuple[str, ...]) -> None:
    """List the processor cores, boards and microcontrollers by name.

    The words are those of `cpu`, `board` and `mcu` of a target. NAME is the beginning of some, or of a board's
    microcontroller, or a part of a title: `boards stm32f4`. In the name of a microcontroller, `?` stands for any
    letter. One with `cycles` has a cycle model; `debugger` is the GDB server for the one on the board, and `serial`
    marks those with a serial port.
    """
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
    rows += [
        (
            each.key,
            each.name,
            each.cpu,
            f"{each.flash >> 10:,}" if each.flash else "",
            f"{each.ram >> 10:,}" if each.ram else "",
            each.server,
            "; ".join(
                filter(None, [each.mcu, "cycles" if each.cycles else "", "serial" if each.usb else "", each.title])
            ),
        )
        for each in found
    ]
    show(text_table(rows))
