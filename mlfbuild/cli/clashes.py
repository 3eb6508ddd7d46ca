"""``mlfbuild clashes``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json

_FILE = click.Path(path_type=Path)


@verb("format")
@click.argument("libraries", nargs=-1, metavar="[MODEL=]LIBRARY...")
@click.option("--list", "listing", type=_FILE, metavar="FILE", help="Read more libraries, one on each line.")
@click.option("--image", default="image", metavar="NAME", help="Name of the linked image in messages.")
@click.option("--stamp", type=_FILE, metavar="FILE", help="Write this empty file if there are none.")
def clashes(
    options: SharedOptions, libraries: tuple[str, ...], listing: Path | None, image: str, stamp: Path | None
) -> None:
    """Fail if two linked models share a global symbol.

    mlfbuild's CMake package runs this step before it links. Each LIBRARY is a static library or an object of one model.
    Without MODEL= the file name says which one; =LIBRARY is code of the firmware.
    """
    from mlfbuild.usecases import compare_linked

    compared = compare_linked(libraries, listing=listing, image=image, stamp=stamp)
    if options.json:
        show_json({"image": image, "models": compared})
    elif options.verbose:
        show(f"{image}: no model shares a global symbol with another ({', '.join(compared)})")
