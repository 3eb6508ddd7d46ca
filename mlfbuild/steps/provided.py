"""The sources of what the project provides, as they lie on this machine: nothing here goes out."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.dependencies.claims import without_secret
from mlfbuild.dependencies.folder import folder_source
from mlfbuild.dependencies.types import Source
from mlfbuild.manifest import Provision


def provided_source(provision: Provision) -> Source:
    """Return the library that ``provision``, which is no package, has.

    Raises as ``folder_source``.
    """
    assert provision.path is not None
    source = folder_source(provision.path, provision)
    return replace(source, url=public_address(provision))


def public_address(provision: Provision) -> str:
    """Return what may stand in an archive: neither a folder of this machine nor a password."""
    local = provision.kind == "path" or provision.path is not None or provision.place.startswith("file:")
    return "" if local else without_secret(provision.place)
