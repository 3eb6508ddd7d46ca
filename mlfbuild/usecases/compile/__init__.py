"""Compile one model file without a project: into an archive file, or into an ``Archive`` for scripts and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.compile.archive import Archive, Table, compiled_archive
    from mlfbuild.usecases.compile.file import compile_file, file_job
else:
    __getattr__ = lazy_attributes(__name__)
