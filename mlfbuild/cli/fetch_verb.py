"""The verb `fetch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.cli.watch import watching

if TYPE_CHECKING:
    from mlfbuild.usecases import Fetched


@verb("file", "format")
def fetch(settings: Settings) -> None:
    """Fetch repositories and archives of required libraries.

    They are kept in the cache: $MLFBUILD_CACHE, by default mlfbuild in the user's cache folder. Builds use the cache
    and hash its files before each use. Only fetch and lock access the network.
    """
    from mlfbuild.build import locked
    from mlfbuild.usecases import fetch_dependencies, read_project, what

    project = read_project(settings.file)
    with watching(settings, "fetch") as watch:
        found = fetch_dependencies(project, pins=locked(project), progress=watch)
    if settings.json:
        show_json([_fetched(each) for each in found])
    elif not settings.quiet:
        lines = [f"{each.provider.name}: {what(each)}{'' if each.new else ', already fetched'}" for each in found]
        show("\n".join(lines or ["nothing to fetch: no provider is a repository or an archive on a server"]))


def _fetched(found: Fetched) -> dict[str, Any]:
    provider = found.provider
    return {
        "name": provider.name,
        "kind": provider.kind,
        "from": provider.place,
        "version": provider.version or None,
        "commit": found.pin.commit if found.pin else None,
        "sha256": provider.sha256 or None,
        "tree": found.pin.tree if found.pin else None,
        "folder": found.folder,
        "fetched": found.new,
    }
