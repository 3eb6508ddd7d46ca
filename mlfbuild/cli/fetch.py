"""``mlfbuild fetch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlfbuild.cli.options import SharedOptions, verb
from mlfbuild.cli.output.printing import show_result
from mlfbuild.cli.output.progress import showing_progress

if TYPE_CHECKING:
    from mlfbuild.usecases import Fetched


@verb("file", "format")
def fetch(options: SharedOptions) -> None:
    """Fetch repositories and archives of required libraries.

    They are kept in the cache: $MLFBUILD_CACHE, by default mlfbuild in the user's cache folder. Builds use the cache
    and hash its files before each use. Only fetch and lock access the network.
    """
    from mlfbuild.jobs import locked
    from mlfbuild.project import load_project
    from mlfbuild.usecases import fetch_dependencies, what

    # Not ``load``, as files that the project names need not exist yet.
    project = load_project(options.file)
    with showing_progress(options, "fetch") as progress:
        # At the locked commits, so that a build after `fetch` has what the lock file lists.
        found = fetch_dependencies(project, pins=locked(project), progress=progress)
    lines = [f"{each.provider.name}: {what(each)}{'' if each.new else ', already fetched'}" for each in found]
    text = "\n".join(lines or ["nothing to fetch: no provider is a repository or an archive on a server"])
    show_result(options, [_json(each) for each in found], text)


def _json(found: Fetched) -> dict[str, Any]:
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
