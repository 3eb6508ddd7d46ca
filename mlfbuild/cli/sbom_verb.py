"""The verb that writes software bills of materials."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import note, show, show_json

_PATH = click.Path(path_type=Path)


@verb("file", "target", "model", "format")
@click.option(
    "-o", "outputs", type=_PATH, multiple=True, metavar="FILE",
    help="Write the document to FILE: CycloneDX (.cdx.json, bom.json) or SPDX (.spdx.json, .spdx); may be repeated.",
)  # fmt: skip
@click.option(
    "--as", "form", type=click.Choice(["cyclonedx", "spdx", "spdx-tag-value"]),
    help="Form of the document, whatever FILE is called; without -o it is printed.",
)  # fmt: skip
@click.option(
    "--elf", "elfs", type=_PATH, multiple=True, metavar="FILE",
    help="An image that another build linked, for the one target; may be repeated.",
)  # fmt: skip
@click.option("--name", default="", metavar="NAME", help="What the product is called, by default as its firmware.")
@click.option("--release", default="", metavar="VERSION", help="Version of the product.")
@click.option("--supplier", default="", metavar="NAME", help="Organisation that hands out the product.")
@click.option("--strict", is_flag=True, help="Exit status 1 where something is missing in it.")
@click.option("--build-dir", type=_PATH, metavar="DIR", help="Where everything was built, default build beside the "
              "project file.")  # fmt: skip
def sbom(
    settings: Settings,
    outputs: tuple[Path, ...],
    form: str | None,
    elfs: tuple[Path, ...],
    name: str,
    release: str,
    supplier: str,
    strict: bool,
    build_dir: Path | None,
) -> None:
    """Tell what the firmware is made of: a software bill of materials.

    Images, models, generated code, kernels, external dependencies and tools, with versions, hashes, licences and
    package URLs, of what is in the build folder now. Builds nothing: what is not built yet, or has no licence that
    anybody told, is said on standard error and left out.
    """
    from mlfbuild.build import load
    from mlfbuild.report.sbom import as_json, as_text, check_outputs, document, output_forms, write_document

    wanted = output_forms(outputs, form)
    check_outputs(wanted)
    from mlfbuild.usecases import (
        bill_of_materials,
        check_complete,  # imports what has only now been found to be there
    )

    project = load(settings.file)
    product = {"name": name, "version": release, "supplier": supplier}
    bom = bill_of_materials(project, settings.target, settings.model, build_dir, elfs=elfs, **product)
    for line in bom.notes:
        note(line)
    for path, chosen in wanted.items():
        write_document(bom, path, chosen)
        if not settings.quiet:
            note(f"{path}: written")
    if form is not None and not outputs:
        show(document(bom, form).rstrip("\n"))
    elif settings.json:
        show_json(as_json(bom))
    elif not outputs and not settings.quiet:
        show(as_text(bom))
    if strict:
        check_complete(bom)
