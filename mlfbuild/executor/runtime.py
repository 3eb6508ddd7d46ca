"""The part of TVM's runtime that each module gets: headers of ``runtime/tvm``, which rename its symbols."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from mlfbuild.core import read_bytes
from mlfbuild.library import Content
from mlfbuild.targets import RUNTIME

FOLDER = "executor"
"""The folder of generated sources in an unpacked tree."""
RUNTIME_NAME = "runtime"
"""The folder of the runtime's headers, relative to the generated sources."""
RUNTIME_FOLDER = f"{FOLDER}/{RUNTIME_NAME}"
"""The folder of the runtime's headers, relative to the tree."""
BUNDLED_FOLDER = f"{FOLDER}/bundled"
"""The folder of ``crt_config.h`` for the archive's own runtime, relative to the tree."""
WORKSPACE_HEADER = "mlf_workspace.h"
"""Defines the runtime functions that kernels call."""
BUNDLED_HEADER = "mlf_bundled.h"
"""Defines the functions that the archive's own runtime calls; used instead of ``WORKSPACE_HEADER``."""
OBJECTS_HEADER = "mlf_objects.h"
"""Defines symbols that compiled objects refer to and firmware does not need."""
_RUNTIME = RUNTIME / "tvm"
# The renaming is read from the header itself, so that C and Python cannot disagree about a name.
_OWN = re.compile(rb"^#define (\w+) MLF_OF_MODULE\((\w+)\)$", re.MULTILINE)

# Headers directly in the folder belong to mlfbuild's executor; only those in subfolders stand for TVM's own.
PROVIDED_HEADERS = tuple(
    path.relative_to(_RUNTIME).as_posix() for path in sorted(_RUNTIME.rglob("*.h")) if path.parent != _RUNTIME
)
"""The headers of TVM's runtime that sources of modules can include."""


@functools.cache
def provided_names() -> Mapping[str, str]:
    """Return the global names of TVM's runtime, each with the prefix of the name that replaces it in a module.

    ``c_runtime_api.h`` renames them: they are defined by the runtime, or by every module.
    """
    return _renamed_in("tvm/runtime/c_runtime_api.h")


def _renamed_in(header: str) -> dict[str, str]:
    text = read_bytes(_RUNTIME / header, "runtime header")
    return {name.decode(): own.decode() for name, own in _OWN.findall(text)}


def own_names(owner: str, *headers: str) -> dict[str, str]:
    """Return global name of TVM's runtime -> its name in the module ``owner``, which ends with ``_<owner>``.

    Names that ``headers``, such as ``BUNDLED_HEADER`` and ``OBJECTS_HEADER``, rename are included.
    """
    names = dict(provided_names())
    for header in headers:
        names |= _renamed_in(header)
    return {name: f"{own}_{owner}" for name, own in names.items()}


def runtime_files() -> dict[str, Content]:
    """Return the runtime's headers: path in the tree -> content.

    They are the same for each module: names are made unique by the macro ``MLF_MODULE`` of the source that includes
    them.
    """
    return {
        f"{RUNTIME_FOLDER}/{path.relative_to(_RUNTIME).as_posix()}": read_bytes(path, "runtime header")
        for path in sorted(_RUNTIME.rglob("*.h"))
    }
