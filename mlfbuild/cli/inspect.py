"""``mlfbuild inspect``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.cli.options import ARCHIVE, SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.core import counted, text_table

if TYPE_CHECKING:
    from mlfbuild.library import Identity


@verb("model", "format")
@ARCHIVE
def inspect(options: SharedOptions, archive: Path) -> None:
    """Show the modules, interface, memory and files of ARCHIVE.

    ARCHIVE may be a .tflite or .onnx file: it is compiled for this machine.

    Long lists are shortened to their largest entries, except with -v or --format json. If ARCHIVE is a firmware image,
    as an ELF file or as the bytes of its flash, list the models in it.
    """
    from mlfbuild.usecases import archive_text, inspect_archive, models_in_image

    # An image is recognised first, because reading it as an archive would only end in an error.
    found = models_in_image(archive)
    if found is not None:
        _show_models(options, archive, found)
    elif options.json:
        show_json(inspect_archive(archive, options.model))
    else:
        show(archive_text(archive, options.model, verbose=options.verbose))


def _show_models(options: SharedOptions, image: Path, found: Sequence[Identity]) -> None:
    if options.json:
        show_json({"image": image, "models": found})
        return
    rows = [
        (each.model, f"sha256 {each.sha256}", f"compiled by mlfbuild {each.version}" if each.version else "")
        for each in found
    ]
    show(f"{counted(len(found), 'model')} in {image}\n{text_table(rows, indent=2)}")
