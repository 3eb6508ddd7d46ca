"""Wishes of archives and provisions of the project -> sources of libraries that a build compiles, pinned by hash."""
