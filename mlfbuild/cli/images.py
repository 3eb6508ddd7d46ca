"""The verbs that read an image or libraries of any build: params writes constants, clashes compares symbols."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json, show_result


@verb("format")
@click.argument("elf", type=FILE)
@click.option("--section", default=".mlf_params", metavar="NAME", help="Section to write, default .mlf_params.")
@click.option("-o", "output", type=FILE, required=True, metavar="OUT.bin", help="File to write.")
def params(options: SharedOptions, elf: Path, section: str, output: Path) -> None:
    """Write the constants of the image ELF to a file.

    The file has the bytes of one section, for the programmer of external flash. The address that they are linked for
    is printed.
    """
    from mlfbuild.jobs import write_params_binary

    written = write_params_binary(elf, section, output)
    text = f"{output}: {written.size:,} bytes of {section} for address {written.address:#010x}"
    show_result(options, {"file": output, **vars(written)}, text)


@verb("format")
@click.argument("libraries", nargs=-1, metavar="[MODEL=]LIBRARY...")
@click.option("--list", "listing", type=FILE, metavar="FILE", help="Read more libraries, one on each line.")
@click.option("--image", default="image", metavar="NAME", help="Name of the linked image in messages.")
@click.option("--stamp", type=FILE, metavar="FILE", help="Write this empty file if there are none.")
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
