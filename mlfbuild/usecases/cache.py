"""Measure, empty and check the local cache of results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlfbuild.cache import (
    CacheContent,
    CacheFaults,
    CacheSettings,
    cache_content,
    clear_cache,
    results_folder,
    verify_cache,
)
from mlfbuild.project import load_project, workspace_projects


def cache_settings(project_file: Path, folder: Path | None) -> CacheSettings:
    """Return the settings of ``cache`` in the project file, or the default ones if it does not exist.

    ``folder`` is the local cache; ``None`` is the default one. Raises as ``load_project``.
    """
    # A workspace has no section of its own.
    is_project = project_file.is_file() and not workspace_projects(project_file)
    settings = load_project(project_file).cache.settings() if is_project else CacheSettings()
    return replace(settings, folder=folder)


def local_cache_content(settings: CacheSettings) -> CacheContent:
    """Return how much the local cache of ``settings`` has; raises ``StorageError`` for a user without a home folder."""
    return cache_content(settings.folder or results_folder())


def clear_local_cache(settings: CacheSettings) -> CacheContent:
    """Remove all results from the local cache of ``settings`` and return what they were; raises ``StorageError``."""
    return clear_cache(settings.folder or results_folder())


def verify_local_cache(settings: CacheSettings) -> CacheFaults:
    """Hash the local cache of ``settings``, remove what is damaged, and return that; raises ``StorageError``."""
    return verify_cache(settings.folder or results_folder())
