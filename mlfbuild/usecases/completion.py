"""Complete commands in shells, with the scripts and the protocol of click."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

SHELLS: Mapping[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


def completion_script(shell: str, program: str, variable: str) -> str:
    """Return the script with which ``shell``, one of ``SHELLS``, completes the commands of ``program``.

    It runs the program with the environment ``variable``. click's own ``source()`` would start the shell to check its
    version.
    """
    script = SHELLS[shell](click.Group(), {}, program, variable)
    return script.source_template % script.source_vars()
