"""Wishes of archives and provisions of the project -> sources of libraries that a build compiles, pinned by hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.requirements.alone import brought_along as brought_along
    from mlfbuild.requirements.bundle import (
        bundled as bundled,
        bundled_source as bundled_source,
        bundled_sources as bundled_sources,
    )
    from mlfbuild.requirements.cache import Cache as Cache, default_cache as default_cache
    from mlfbuild.requirements.claims import unsound as unsound, without_secret as without_secret
    from mlfbuild.requirements.download import fetch_url as fetch_url, url_tree as url_tree
    from mlfbuild.requirements.drifts import differences as differences, drift as drift, left_over as left_over
    from mlfbuild.requirements.folder import content_sha256 as content_sha256, folder_source as folder_source
    from mlfbuild.requirements.git import (
        GitPin as GitPin,
        fetch_pinned as fetch_pinned,
        fetch_version as fetch_version,
    )
    from mlfbuild.requirements.identity import content_hash as content_hash
    from mlfbuild.requirements.lock import (
        Lock as Lock,
        LockedDependency as LockedDependency,
        LockedModel as LockedModel,
        LockedToolchain as LockedToolchain,
        check_replaceable as check_replaceable,
        lock_path as lock_path,
        read_lock as read_lock,
    )
    from mlfbuild.requirements.needs import needed as needed, needs_key as needs_key
    from mlfbuild.requirements.resolution import resolve as resolve, wish_problems as wish_problems
    from mlfbuild.requirements.roots import pin_of as pin_of, root_of as root_of
    from mlfbuild.requirements.types import Dependency as Dependency, Package as Package, Source as Source
    from mlfbuild.requirements.versions import is_range as is_range, same_version as same_version
    from mlfbuild.requirements.words import lines_to_add as lines_to_add, title as title
else:
    __getattr__ = lazy_attributes(__name__)
