"""The sources of what the project provides, as they lie on this machine: nothing here goes out."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.project import Provision
from mlfbuild.requirements import GitPin, Source, default_cache, folder_source, pin_of, root_of, without_secret


def provided_source(provision: Provision, pin: GitPin | None = None) -> Source:
    """Return the library that ``provision``, which is no package, has.

    ``pin`` says which commit of a repository; by default that of ``pin_of``. Raises as ``root_of`` and
    ``folder_source``.
    """
    cache = default_cache()
    if provision.kind == "git" and pin is None:
        pin = pin_of(provision, cache)
    root = root_of(provision, cache, pin)
    source = folder_source(root, provision, commit=pin.commit if pin else "")
    return replace(source, url=public_address(provision))


def public_address(provision: Provision) -> str:
    """Return what may stand in an archive: neither a folder of this machine nor a password."""
    local = provision.kind == "path" or provision.folder is not None or provision.place.startswith("file:")
    return "" if local else without_secret(provision.place)
