"""``mlfbuild provenance``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from mlfbuild.cli.options import BUILD_DIR, FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import note, show_as_it_is
from mlfbuild.core import UsageError


@verb("file", "target", "format")
@click.argument("elf", type=FILE)
@click.option("-o", "output", type=FILE, metavar="FILE", help="Write the statement to FILE.")
@click.option("--sign", "key", type=FILE, metavar="KEY", help="Also write FILE.sig with this key, as `mlfbuild sign`.")
@click.option("--builder", default="", metavar="URI", help="URI of the system that ran the build; default mlfbuild's.")
@BUILD_DIR
def provenance(
    options: SharedOptions, elf: Path, output: Path | None, key: Path | None, builder: str, build_dir: Path | None
) -> None:
    """Record how the image ELF was built.

    The result is an in-toto statement with SLSA provenance: hashes of the image, of its archives and of their inputs,
    and the versions of the tools. The command builds nothing; if the image was not built from the present inputs, the
    exit status is 1. The same build gives the same bytes.

    ELF is a firmware of the project, or another image that links its models; then add --target if the project has
    several targets.
    """
    if key is not None and output is None:
        raise UsageError.needs_another("--sign", "the signature is a file beside the statement", "add -o FILE")
    if builder and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", builder):
        reason, hint = "is not a URI", "write it as https://ci.example.com/runner"
        raise UsageError("builder-not-uri", place=f"--builder {builder}", reason=reason, hint=hint)
    from mlfbuild.jobs import load
    from mlfbuild.usecases import image_provenance, write_provenance

    statement = image_provenance(load(options.file), elf, options.target, build_dir, builder=builder)
    if output is None:
        show_as_it_is(statement.to_text().rstrip("\n"))
        return
    for path in write_provenance(statement, output, key):
        if not options.quiet:
            note(f"{path}: written")
