"""``mlfbuild bundle``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import FILE, SharedOptions, complete_board, complete_cpu, verb
from mlfbuild.cli.output.hashes import bundle_json, bundle_rows
from mlfbuild.cli.output.printing import note, show_result
from mlfbuild.cli.output.progress import building, working
from mlfbuild.core import UsageError, sha256, text_table

if TYPE_CHECKING:
    from mlfbuild.usecases import WrittenBundle


@verb("file", "one_target", "model", "jobs", "frozen", "offline", "no_wait", "format")
@click.argument("archives", type=FILE, nargs=-1, metavar="[ARCHIVE]...")
@click.option("--vectors", multiple=True, metavar="[MODULE=]FILE", help="With ARCHIVE: inputs and expected outputs.")
@click.option(
    "--cpu",
    metavar="CPU",
    help="With ARCHIVE: core, by default that of ARCHIVE.",
    shell_complete=complete_cpu,
)
@click.option("--board", metavar="NAME", help="With ARCHIVE: board that QEMU emulates.", shell_complete=complete_board)
@click.option("--mcu", metavar="NAME", help="With ARCHIVE: microcontroller of the device.")
@click.option("--elf", type=FILE, metavar="FILE", help="Make the bundle for this image only.")
@click.option("--provenance", type=FILE, metavar="FILE", help="Include this statement and its signature.")
@click.option("-o", "output", type=FILE, required=True, metavar="OUT.mlfbundle", help="Bundle to write.")
def bundle(
    options: SharedOptions,
    archives: tuple[Path, ...],
    vectors: tuple[str, ...],
    cpu: str | None,
    board: str | None,
    mcu: str | None,
    elf: Path | None,
    provenance: Path | None,
    output: Path,
) -> None:
    """Pack the data with which another machine verifies an image.

    The bundle has the interface, vectors and hashes of each model, and the target. It has no code, no weights, and no
    commands, addresses or paths of this machine. On the other machine, `mlfbuild flash --bundle` and
    `mlfbuild verify --bundle` compare the image with it first. The same input gives the same bytes.

    Without ARCHIVE, the models of the project that have vectors are built and bundled for one target.
    """
    from mlfbuild.usecases import bundle_archives, bundle_project

    # Options of the other way to make a bundle are refused: ignoring them would make another bundle than the one asked
    # for.
    for_files = {"--vectors": vectors, "--cpu": cpu, "--board": board, "--mcu": mcu}
    project_options = sorted(options.given & {"file", "target", "model", "frozen"})
    refused = (
        [f"--{name}" for name in project_options] if archives else [name for name, value in for_files.items() if value]
    )
    if refused:
        hint = "omit it, or omit ARCHIVE" if archives else "omit it, or name an ARCHIVE"
        reason = "applies only to a project" if archives else "applies only to archives"
        raise UsageError.not_applicable(refused[0], reason, hint)
    if archives:
        with working(options, "bundling"):
            written = bundle_archives(
                archives, vectors, output, cpu=cpu, board=board, mcu=mcu, image=elf, provenance=provenance
            )
    else:
        from mlfbuild.jobs import load

        project = load(options.file)
        with building(options, project) as progress:
            written = bundle_project(
                project,
                options.target,
                options.model,
                output,
                image=elf,
                provenance=provenance,
                jobs=options.jobs,
                frozen=options.frozen,
                progress=progress,
            )
    _show(options, written)


def _show(options: SharedOptions, written: WrittenBundle) -> None:
    found = written.bundle
    for model in found.models:
        if model.vectors is None and not options.quiet:
            note(f"no vectors for module {model.subject.name}: its ID is compared, but it is not run")
    rows = bundle_rows(found, written.sha256)
    if found.provenance:
        rows += [("provenance", "signed" if found.signature else "not signed", sha256(found.provenance))]
    rows += [("image", "only this one", found.image_sha256)] if found.image_sha256 else []
    value = {"bundle": written.path, **bundle_json(found, written.sha256)}
    show_result(options, value, f"{written.path}: written\n{text_table(rows, indent=2)}")
