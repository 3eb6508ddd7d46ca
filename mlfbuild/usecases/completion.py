"""Complete commands in shells, with the scripts and the protocol of click."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


def completion_script(shell: str, program: str, variable: str) -> str:
    """Return the script with which ``shell``, such as bash, completes the commands of ``program``.

    It runs the program with the environment ``variable``. click's own ``source()`` would start the shell to check its
    version.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(click.Group(), {}, program, variable)
    return script.source_template % script.source_vars()
