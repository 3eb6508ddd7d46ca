"""What a module gets of TVM's runtime: the headers of ``runtime/tvm``, and the names that are its own by them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from mlfbuild.core import read_bytes
from mlfbuild.library import Content
from mlfbuild.targets import RUNTIME

FOLDER = "executor"
"""Of an unpacked tree: where the generated sources stand."""
RUNTIME_NAME = "runtime"
"""The folder of the runtime's headers, beside the generated sources."""
RUNTIME_FOLDER = f"{FOLDER}/{RUNTIME_NAME}"
"""The same in an unpacked tree."""
BUNDLED_FOLDER = f"{FOLDER}/bundled"
"""Of an unpacked tree: where ``crt_config.h`` for the archive's own runtime stands."""
WORKSPACE_HEADER = "mlf_workspace.h"
"""Defines what kernels call of the runtime."""
BUNDLED_HEADER = "mlf_bundled.h"
"""Defines what the archive's own runtime calls, in place of that."""
OBJECTS_HEADER = "mlf_objects.h"
"""Defines what compiled objects name and firmware does not need."""
_RUNTIME = RUNTIME / "tvm"
_OWN = re.compile(rb"^#define (\w+) MLF_OF_MODULE\((\w+)\)$", re.MULTILINE)

PROVIDED_HEADERS = tuple(
    path.relative_to(_RUNTIME).as_posix() for path in sorted(_RUNTIME.rglob("*.h")) if path.parent != _RUNTIME
)
"""What the sources of modules may include of TVM's runtime."""


@functools.cache
def provided_names() -> Mapping[str, str]:
    """Return the global names of TVM's runtime, each with the first part of what a module has in its place.

    They are those that ``c_runtime_api.h`` renames: what the runtime defines, and what every module would.
    """
    return _renamed_in("tvm/runtime/c_runtime_api.h")


def _renamed_in(header: str) -> dict[str, str]:
    text = read_bytes(_RUNTIME / header, "runtime header")
    return {name.decode(): own.decode() for name, own in _OWN.findall(text)}


def own_names(owner: str, *headers: str) -> dict[str, str]:
    """Return what the module ``owner`` calls the global names of TVM's runtime: ``TVMBackendAllocWorkspace_kws``.

    Those that ``headers`` rename, of ``BUNDLED_HEADER`` and ``OBJECTS_HEADER``, are among them.
    """
    names = dict(provided_names())
    for header in headers:
        names |= _renamed_in(header)
    return {name: f"{own}_{owner}" for name, own in names.items()}


def runtime_files() -> dict[str, Content]:
    """Return the runtime's headers: path in the tree -> content."""
    return {
        f"{RUNTIME_FOLDER}/{path.relative_to(_RUNTIME).as_posix()}": read_bytes(path, "runtime header")
        for path in sorted(_RUNTIME.rglob("*.h"))
    }
