"""``mlfbuild completion``."""

from __future__ import annotations

import click

from mlfbuild.cli.options import COMPLETION_VARIABLE, SharedOptions, verb
from mlfbuild.cli.output.printing import show_as_it_is


@verb()
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(_options: SharedOptions, shell: str) -> None:
    """Print the script that completes commands in a shell.

    SHELL is bash, zsh or fish. The script completes commands, options, files, and names of targets, models, CPUs and
    boards. To use it in every new shell, write one line to the start-up file of the shell:

    \b
    ~/.bashrc                    source <(mlfbuild completion bash)
    ~/.zshrc, after compinit     source <(mlfbuild completion zsh)
    ~/.config/fish/config.fish   mlfbuild completion fish | source
    """  # noqa: D301  # click keeps the lines below this character as they are
    from mlfbuild.usecases import completion_script

    show_as_it_is(completion_script(shell, "mlfbuild", COMPLETION_VARIABLE).strip())
