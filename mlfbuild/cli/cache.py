"""``mlfbuild cache``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.options import FILE, SharedOptions, verb
from mlfbuild.cli.output.printing import show, show_json
from mlfbuild.core import CheckFailedError, counted, text_table

if TYPE_CHECKING:
    from mlfbuild.cache import CacheSettings


@verb("format")
@click.argument("action", type=click.Choice(["stats", "clear", "verify"]), metavar="stats|clear|verify")
@click.option("--folder", type=FILE, metavar="DIR", help="Use the cache in this folder.")
def cache(options: SharedOptions, action: str, folder: Path | None) -> None:
    """Show, empty or check the local cache of results.

    `stats` shows its size, how often a result was found in it, and the limit and server of the project file. `clear`
    removes all results, and `verify` hashes every file, removes those that are damaged, and exits with status 1 if
    there were any. The default folder is $MLFBUILD_CACHE/results, or mlfbuild/results in the user's cache folder. Files
    on a server are not touched.
    """
    from mlfbuild.cache import CacheSettings
    from mlfbuild.usecases import cache_settings, clear_local_cache, local_cache_content

    folder = folder.absolute() if folder else None
    # The others need no project file, so mistakes in it do not prevent them.
    settings = cache_settings(options.file, folder) if action == "stats" else CacheSettings(folder)
    if action == "verify":
        _verify(options, settings)
        return
    content = clear_local_cache(settings) if action == "clear" else local_cache_content(settings)
    if options.json:
        chosen = {} if action == "clear" else {"limit": settings.limit, "remote": settings.remote}
        show_json({**dataclasses.asdict(content), **chosen})
    elif action == "stats":
        size = f"{content.bytes:,} of {settings.limit:,}"
        rows = [("folder", str(content.folder)), ("results", f"{content.results:,}"), ("blobs", f"{content.blobs:,}")]
        rows += [("bytes", size), ("hits", f"{content.hits:,}")]
        show(text_table([*rows, *([("server", settings.remote)] if settings.remote else [])]))
    elif not options.quiet:
        removed = f"{counted(content.results, 'result')} and {counted(content.blobs, 'blob')}"
        show(f"{content.folder}: removed {removed}, {counted(content.bytes, 'byte')}")


def _verify(options: SharedOptions, settings: CacheSettings) -> None:
    from mlfbuild.usecases import verify_local_cache

    found = verify_local_cache(settings)
    bad = [*found.damaged, *found.incomplete]
    if options.json:
        show_json(found)
    elif bad or not options.quiet:
        lines = [*(f"{name}: damaged, removed" for name in found.damaged)]
        lines += [f"{name}: a blob is missing, removed" for name in found.incomplete]
        show("\n".join([*lines, f"{found.folder}: checked {counted(found.checked, 'file')}"]))
    if bad:
        raise CheckFailedError(
            "cache-damaged",
            place=found.folder,
            reason=f"{counted(len(bad), 'file')} of the cache had to be removed",
            hint="check the disk if this happens again; builds make them anew",
            problems=bad,
        )
