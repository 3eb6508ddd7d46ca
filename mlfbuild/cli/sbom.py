"""``mlfbuild sbom``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import BUILD_DIR, FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import note, show, show_as_it_is, show_json

_FORMS = click.Choice(["cyclonedx", "spdx", "spdx-tag-value"])


@verb("file", "target", "model", "format")
@click.option("-o", "outputs", type=FILE, multiple=True, metavar="FILE", help="Write CycloneDX or SPDX to FILE.")
@click.option("--as", "form", type=_FORMS, metavar="FORM", help="cyclonedx, spdx or spdx-tag-value.")
@click.option("--elf", "elfs", type=FILE, multiple=True, metavar="FILE", help="Image that another build linked.")
@click.option("--name", default="", metavar="NAME", help="Name of the product, default its firmware's.")
@click.option("--release", default="", metavar="VERSION", help="Version of the product, default the project file's.")
@click.option("--supplier", default="", metavar="NAME", help="Organisation that supplies the product.")
@click.option("--strict", is_flag=True, help="Fail if the bill is incomplete.")
@BUILD_DIR
def sbom(
    options: SharedOptions,
    outputs: tuple[Path, ...],
    form: str | None,
    elfs: tuple[Path, ...],
    name: str,
    release: str,
    supplier: str,
    strict: bool,
    build_dir: Path | None,
) -> None:
    """Write a software bill of materials.

    The bill lists images, models, generated code, kernels, dependencies and tools, with versions, hashes, licences and
    package URLs, as they are in the build folder. Nothing is built. Messages name what has not been built, or has no
    known licence; with --strict they make the exit status 1.

    The suffix of FILE decides its form: CycloneDX (.cdx.json, bom.json) or SPDX (.spdx.json, .spdx). --as chooses the
    form for any name; without -o the document is printed. -o and --elf may be repeated; --elf needs one --target.
    """
    from mlfbuild.jobs import load
    from mlfbuild.report.sbom import as_json, as_text, check_outputs, document, output_forms, write_document

    wanted = output_forms(outputs, form)
    # Before the project is read: an output in the way, or a missing package, is known at once.
    check_outputs(wanted)
    from mlfbuild.usecases import bill_of_materials, check_complete  # after the check that the extra is installed

    project = load(options.file)
    product = {"name": name, "version": release, "supplier": supplier}
    bom = bill_of_materials(project, options.target, options.model, build_dir, elfs=elfs, **product)
    for line in bom.notes:
        note(line)
    for path, chosen in wanted.items():
        write_document(bom, path, chosen)
        if not options.quiet:
            note(f"{path}: written")
    if form is not None and not outputs:
        show_as_it_is(document(bom, form).rstrip("\n"))
    elif options.json:
        show_json(as_json(bom))
    elif not outputs and not options.quiet:
        show(as_text(bom))
    # Last, so that the bill is written even if it is incomplete.
    if strict:
        check_complete(bom)
