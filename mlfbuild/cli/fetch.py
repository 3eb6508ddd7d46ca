"""``mlfbuild fetch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.cli.progress import showing_progress

if TYPE_CHECKING:
    from mlfbuild.usecases import Fetched


@verb("file", "format")
def fetch(options: SharedOptions) -> None:
    """Download the repositories and archives of dependencies.

    Files go to the cache and are checked by their hash before each build that uses them. The cache is $MLFBUILD_CACHE,
    or mlfbuild in the user's cache folder. Only fetch and lock access the network.
    """
    from mlfbuild.build import locked
    from mlfbuild.usecases import fetch_dependencies, read_project, what

    project = read_project(options.file)
    with showing_progress(options, "fetch") as progress:
        found = fetch_dependencies(project, pins=locked(project), progress=progress)
    if options.json:
        show_json([_json(each) for each in found])
    elif not options.quiet:
        lines = [f"{each.provision.name}: {what(each)}{'' if each.new else ', already in the cache'}" for each in found]
        show("\n".join(lines or ["nothing to fetch: no dependency comes from a repository or an archive"]))


def _json(found: Fetched) -> dict[str, Any]:
    provision = found.provision
    return {
        "name": provision.name,
        "kind": provision.kind,
        "from": provision.place,
        "version": provision.version or None,
        "commit": found.commit or None,
        "sha256": provision.sha256 or None,
        "tree": found.tree,
        "folder": found.folder,
        "fetched": found.new,
    }
