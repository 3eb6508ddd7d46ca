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
@click.option("--builder", default="", metavar="URI", help="URI of who ran the build, default mlfbuild's.")
@BUILD_DIR
def provenance(
    options: SharedOptions, elf: Path, output: Path | None, key: Path | None, builder: str, build_dir: Path | None
) -> None:
    """Write where the image ELF is from.

    The result is an in-toto statement with SLSA's provenance: hashes of the image, of its archives and of their inputs,
    and the versions of the tools. Nothing is built; the exit status is 1 if the image is not made from the present
    inputs. The same build gives the same bytes.

    ELF is a firmware of the project. Another image that links its models needs --target if there are several.
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
