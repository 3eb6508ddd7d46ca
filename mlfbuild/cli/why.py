"""``mlfbuild why``."""

from __future__ import annotations

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json


@verb("file", "target", "format")
@click.argument("names", nargs=-1, metavar="[MODEL|FIRMWARE]...")
def why(options: SharedOptions, names: tuple[str, ...]) -> None:
    """Say why models and images were built, and what the next build makes.

    For each archive, verification and evaluation of a MODEL and each image of a FIRMWARE, by default all of them: which
    inputs changed since it was made, where it was made or which cache it is from, and which change made that build
    necessary. Nothing is built.
    """
    from mlfbuild.jobs import load
    from mlfbuild.usecases import explanation_lines, explanations

    found = explanations(load(options.file), names, options.target)
    if options.json:
        show_json({"results": [vars(one) for one in found]})
    else:
        show("\n".join(line for one in found for line in explanation_lines(one)))
