"""Measure, empty and check the local cache of results."""

from __future__ import annotations

from mlfbuild.cache import (
    CacheContent,
    CacheFaults,
    CacheSettings,
    cache_content,
    clear_cache,
    results_folder,
    verify_cache,
)


def local_cache_content(settings: CacheSettings) -> CacheContent:
    """Return how much the local cache of ``settings`` has; raises ``StorageError`` for a user without a home folder."""
    return cache_content(settings.folder or results_folder())


def clear_local_cache(settings: CacheSettings) -> CacheContent:
    """Remove all results from the local cache of ``settings`` and return what they were; raises ``StorageError``."""
    return clear_cache(settings.folder or results_folder())


def verify_local_cache(settings: CacheSettings) -> CacheFaults:
    """Hash the local cache of ``settings``, remove what is damaged, and return that; raises ``StorageError``."""
    return verify_cache(settings.folder or results_folder())
