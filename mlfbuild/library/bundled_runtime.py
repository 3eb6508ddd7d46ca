"""TVM's C runtime in archives: the folder ``runtime``, and a template of its configuration.

Since TVM 0.9 the exporter adds both to AOT archives for that runtime. Code of mlfbuild for TVM's executors names a
release in TVM's repository instead: firmware that contains an executor has its own copy of the runtime.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from mlfbuild.library.known_libraries import STANDALONE_CRT
from mlfbuild.library.value import ArchiveFile, ExternalDependency

INCLUDE_DIR = "runtime/include"
BACKEND = "runtime/src/runtime/crt/common/crt_backend_api.c"
"""The source file with the functions that kernels call."""
CONFIGURATIONS = ("templates/crt_config.h.template", "runtime/template/crt_config-template.h")
"""Paths of the template of ``crt_config.h``: since TVM 0.12, and before."""

TVM_RUNTIME = ExternalDependency(STANDALONE_CRT, "https://github.com/apache/tvm", "git", "v0.14.0")
"""The runtime whose headers code of mlfbuild for TVM's executors includes; those of 0.9 to 0.18 are compatible."""


def bundled_configuration(files: Iterable[ArchiveFile]) -> str | None:
    """Return the path of ``CONFIGURATIONS`` in ``files``; ``None`` if they have no runtime that can be built."""
    paths = {file.path for file in files}
    if PurePosixPath(BACKEND) not in paths or not any(path.is_relative_to(INCLUDE_DIR) for path in paths):
        return None
    return next((path for path in CONFIGURATIONS if PurePosixPath(path) in paths), None)
