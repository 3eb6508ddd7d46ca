"""TVM's C runtime as archives bring it along: the folder ``runtime``, and a template of its configuration.

TVM's exporter has added both to AOT archives for that runtime since 0.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from mlfbuild.library.types import ArchiveFile

INCLUDE_DIR = "runtime/include"
BACKEND = "runtime/src/runtime/crt/common/crt_backend_api.c"
"""The source of the functions that kernels call."""
CONFIGURATIONS = ("templates/crt_config.h.template", "runtime/template/crt_config-template.h")
"""Where ``crt_config.h`` may stand: since TVM 0.12, and before."""


def bundled_configuration(files: Iterable[ArchiveFile]) -> str | None:
    """Return which of ``CONFIGURATIONS`` is among ``files``; ``None`` where they hold no runtime that can be built."""
    paths = {file.path for file in files}
    if PurePosixPath(BACKEND) not in paths or not any(path.is_relative_to(INCLUDE_DIR) for path in paths):
        return None
    return next((path for path in CONFIGURATIONS if PurePosixPath(path) in paths), None)
