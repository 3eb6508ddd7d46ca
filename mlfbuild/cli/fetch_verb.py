"""The verb that brings dependencies to this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlfbuild.cli.options import Settings, verb
from mlfbuild.cli.output import show, show_json
from mlfbuild.cli.watch import watching

if TYPE_CHECKING:
    from mlfbuild.usecases import Fetched


@verb("file", "format")
def fetch(settings: Settings) -> None:
    """Fetch repositories and archives of dependencies.

    They go to the cache, whose files are hashed before a build takes them. It is $MLFBUILD_CACHE, by default mlfbuild
    in the user's cache folder. Builds take what it has; of all verbs only fetch and lock go out.
    """
    from mlfbuild.build import locked
    from mlfbuild.usecases import fetch_dependencies, read_project, what

    project = read_project(settings.file)
    with watching(settings, "fetch") as watch:
        found = fetch_dependencies(project, pins=locked(project), progress=watch)
    if settings.json:
        show_json([_fetched(each) for each in found])
    elif not settings.quiet:
        lines = [f"{each.provision.name}: {what(each)}{'' if each.new else ', there already'}" for each in found]
        show("\n".join(lines or ["no dependency comes from outside"]))


def _fetched(found: Fetched) -> dict[str, Any]:
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
