"""``mlfbuild merge``."""

from __future__ import annotations

from pathlib import Path

import click

from mlfbuild.cli.options import OUTPUT, SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.core import counted, listed


@verb("format")
@click.argument("archives", type=click.Path(path_type=Path), nargs=-1, required=True)
@OUTPUT
def merge(options: SharedOptions, archives: tuple[Path, ...], output: Path) -> None:
    """Write several ARCHIVES as one.

    One firmware can link the result. If modules, symbols or dependencies conflict, the exit status is 1.
    """
    from mlfbuild.usecases import merge_archives

    modules = merge_archives(archives, output)
    size = output.stat().st_size
    if options.json:
        show_json({"archive": output, "modules": modules, "size": size})
    elif not options.quiet:
        show(f"{output}: {counted(len(modules), 'module')} ({listed(modules)}), {size:,} bytes")
